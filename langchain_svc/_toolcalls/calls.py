"""The values that go into the parser and come out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Tool:
    """A function that the model was offered; `parameters` is the JSON schema of its arguments."""

    name: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class Call:
    """A call of an offered tool, with arguments that fit its schema."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class BadCall:
    """A call that must not run, with the text that was meant as one and what is wrong with it."""

    name: str | None
    text: str
    reason: str


@dataclass(frozen=True)
class Parsed:
    """An answer taken apart.

    Attributes:
        content: The prose around the calls, without any markup of theirs.
        calls: The calls in order of appearance, those that must not run among them.
        reasoning: What stood in `<think>` blocks and the like; it is no part of the content.
    """

    content: str
    calls: tuple[Call | BadCall, ...]
    reasoning: str = ""
