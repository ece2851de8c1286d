"""The containers that are open while broken JSON is parsed, and what may follow inside them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

from .signs import CLOSERS, ELLIPSIS, VALUE_START, comma_at, is_key, peek, stops

_CUT_WORD = re.compile(r"(?:t|tr|tru|f|fa|fal|fals|n|nu|nul|-)\Z")


Container = dict[str, object] | list[object]


class Slot(Enum):
    """Where a string or a word stands."""

    ROOT = auto()
    KEY = auto()
    FIELD = auto()  # the value of a field
    ITEM = auto()


def twice(key: str) -> str:
    """What is wrong where a key has two values: one of them would be lost."""
    return f"the key {key[:40]!r} stands twice"


@dataclass
class Frame:
    """One open container."""

    closer: str
    value: Container
    key: str = ""  # of the last field
    commas: int = 1  # since the last item; a container opens as if after a comma
    doubled: bool = False  # {{"a": 1}}, as templates want it
    has_prose: bool = False  # it has text that is neither key nor value
    has_bare_words: bool = False  # it has keys or items without quotes

    @property
    def is_object(self) -> bool:
        return isinstance(self.value, dict)

    def put(self, value: object) -> str:
        """Add an item, or set the last key's value; returns what is wrong if it had another."""
        if isinstance(self.value, list):
            self.value.append(value)
            return ""
        is_twice = self.key in self.value and self.value[self.key] != value
        self.value[self.key] = value
        if is_twice:
            return twice(self.key)
        return ""


def can_close(char: str, frames: list[Frame]) -> bool:
    """Whether a closing bracket can close one of the open containers."""
    closer = CLOSERS.get(char)
    return any(frame.closer == closer for frame in frames)


def expects_bare_words(frames: list[Frame]) -> bool:
    """Whether the innermost container had keys or items without quotes before."""
    return bool(frames) and frames[-1].has_bare_words


def key_follows(text: str, at: int, frames: list[Frame]) -> bool:
    """Whether a key and its colon stand at `at`, as the innermost container writes its keys."""
    return is_key(text, at, words=expects_bare_words(frames))


def comma_separates(text: str, comma: int, slot: Slot, frames: list[Frame]) -> bool:
    """Whether a field, an item, or the end of something follows the comma."""
    at = comma
    for _ in range(3):  # commas too many change nothing
        at = peek(text, at + 1)
        if not comma_at(text, at):
            break
    if stops(text, at) or can_close(text[at], frames) or ELLIPSIS.match(text, at):
        return True
    if slot is Slot.FIELD:
        if text[at] == "{":  # [{"a": "b", {"a": "c"}]: a closing brace was forgotten
            at = peek(text, at + 1)
        return key_follows(text, at, frames)
    if expects_bare_words(frames) or VALUE_START.match(text, at):
        return True
    return _CUT_WORD.match(text, at) is not None
