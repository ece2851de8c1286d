"""Where in a model's answer JSON may begin."""

# ruff: noqa: RUF001 - full-width brackets are meant

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .lenient import Attempt, JsonValue
from .reasoning import CLOSE, CLOSES, OPENS
from .signs import QUOTES, VALUE_START, is_key, peek

_MARK = re.compile(rf"(?P<opens>{OPENS})|{CLOSES}|(?P<bracket>[{{\[｛［])", re.IGNORECASE)
_FENCE_BEFORE = re.compile(r"(?:`{2,}|~{3,})[\w+-]*\s*$")
_LINE_BEFORE = re.compile(r"(?:\A|[\n:>`-])[ \t]*$")
_FENCE_LABEL = re.compile(r"(?:[\w+-]*\n)?")
_LOOK_BACK = 60
_INSIDE = frozenset(":,[{(=")
_IN_OBJECT = frozenset([*QUOTES, "}", "\\", "{"])
_IN_ARRAY = frozenset([*QUOTES, "]", "\\"])


@dataclass(frozen=True)
class Spot:
    """One place where JSON may begin."""

    at: int
    fenced: bool
    astray: bool  # amid a line of prose
    nested: bool  # inside another reading that fits


class Spots:
    """The places of a text, in order; what `was_read` at one decides where the next may be.

    Args:
        text: The model's answer.
        reasoning: Whether to look into its reasoning, too.
    """

    def __init__(self, text: str, *, reasoning: bool = False) -> None:
        self.turn = 0  # how many ends of reasoning were passed whose beginning is missing
        self._text = text
        self._reasoning = reasoning
        self._at = 0
        self._inside = 0  # up to here, a repaired reading has been through
        self._nested = False
        self._barred = False
        self._first = len(text) - len(text.lstrip())

    def __iter__(self) -> Iterator[Spot]:
        while found := _MARK.search(self._text, self._at):
            self._at = found.end()
            if found["bracket"]:
                if self._may_begin(found.start()):
                    yield self._spot(found.start())
            elif not self._reasoning:
                self._pass_reasoning(opens=found["opens"] is not None)

    def was_tried(self, tried: Attempt) -> None:
        """Say that nothing was read at the last spot."""
        self._at = max(self._at, tried.too_deep_until or 0)

    def was_read(self, value: JsonValue, *, fits: bool) -> None:
        """Say what was read at the last spot: its inside is passed over as far as it should be."""
        if not value.repairs:
            self._at = value.end
        elif value.end > self._inside:
            self._inside = value.end
            self._nested = fits
            self._barred = fits or isinstance(value.value, dict)

    def _pass_reasoning(self, *, opens: bool) -> None:
        if not opens:
            self.turn += 1
            return
        close = CLOSE.search(self._text, self._at)
        self._at = close.end() if close else len(self._text)

    def _spot(self, at: int) -> Spot:
        fenced = self._fenced(at)
        astray = not fenced and _LINE_BEFORE.search(self._text, max(0, at - _LOOK_BACK), at) is None
        nested = self._nested and at < self._inside
        return Spot(at, fenced, astray, nested)

    def _may_begin(self, at: int) -> bool:
        if at < self._inside and self._barred and self._continues(at):
            return False
        after = peek(self._text, at + 1)
        char = self._text[after : after + 1]
        if self._text[at] in "{｛":
            return char in _IN_OBJECT or char.isdigit() or is_key(self._text, after, words=True)
        if char.isalpha() and (self._fenced(at) or at == self._first):
            return True  # items without quotes; elsewhere these are brackets of prose
        return char in _IN_ARRAY or VALUE_START.match(self._text, after) is not None

    def _fenced(self, at: int) -> bool:
        return _FENCE_BEFORE.search(self._text, max(0, at - _LOOK_BACK), at) is not None

    def _continues(self, at: int) -> bool:
        """Whether the bracket at `at` stands where a value of the JSON around it would."""
        before = self._text[max(0, at - _LOOK_BACK) : at].rstrip()
        return before[-1:] in _INSIDE


def unfenced(text: str) -> str:
    """A text without the fence around all of it."""
    if not text.startswith("```"):
        return text
    body = text.strip("`")
    label = _FENCE_LABEL.match(body)
    return body[label.end() if label else 0 :].strip()
