"""The values that go into the parser and come out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Tool:
    """A function that the model was offered; `parameters` is the JSON schema of its arguments."""

    name: str
    parameters: Mapping[str, Any]

    @property
    def properties(self) -> Mapping[str, Any]:
        """The schemas of its arguments by their names."""
        return self.parameters.get("properties") or {}


@dataclass(frozen=True)
class Call:
    """A call that can be read: a name, and arguments that are a JSON object.

    Attributes:
        name: The tool's name; inside call tags it may be one that is not on offer.
        arguments: As the tool's schema wants them, where it is plain what was meant.
        problems: What is wrong with them by the schema. The tool that checks them says it better.
        source: What was written.
        asked: Whether it is in the form that the instructions ask for.
        loose: Whether nothing marked it as a call but its own JSON.
    """

    name: str
    arguments: dict[str, Any]
    problems: str = field(default="", compare=False)
    source: str = field(default="", compare=False)
    asked: bool = field(default=False, compare=False)
    loose: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class BadCall:
    """A call that cannot be read, or is cut off.

    Attributes:
        name: The tool's name, where it can be told.
        source: What was written.
        reason: What is wrong with it.
        cut: Whether the text ended inside of it.
        asked: Whether it is in the form that the instructions ask for.
        loose: Whether nothing marked it as a call but its own JSON.
    """

    name: str | None
    source: str
    reason: str
    cut: bool = False
    asked: bool = field(default=False, compare=False)
    loose: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class Parsed:
    """An answer taken apart.

    Attributes:
        content: The prose around the calls, without any markup of theirs.
        calls: The calls in order of appearance, those that cannot be read among them.
        reasoning: What stood in `<think>` blocks and the like; it is no part of the content.
    """

    content: str
    calls: tuple[Call | BadCall, ...]
    reasoning: str = ""
