"""Placeholder."""

from __future__ import annotations

from typing import Any


class RedisStore:
    """Not yet."""

    def __init__(self, url: str, *, local: bool) -> None:
        raise NotImplementedError

    account: Any
    place: str
