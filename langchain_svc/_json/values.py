"""Comparing JSON values: numbers by value, booleans apart from numbers."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any


def frozen(value: Any) -> Hashable:
    """A key that is equal for equal JSON values: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        return ("object", frozenset((key, frozen(item)) for key, item in value.items()))
    if isinstance(value, (list, tuple)):
        return ("array", tuple(frozen(item) for item in value))
    if isinstance(value, bool):
        return ("boolean", value)
    return value if isinstance(value, Hashable) else repr(value)


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON."""
    return frozen(one) == frozen(other)
