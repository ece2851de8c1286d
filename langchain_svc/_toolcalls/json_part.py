"""The JSON value that begins somewhere in a text, and where it ends, though the text may go on.

Correct JSON says itself where it ends, so tags and brackets in its strings mean nothing. For
broken JSON the places where it may end are tried from left to right: signs that a call is over,
and the bracket that seems to close it. A place is accepted if the repairing reader finds a value
in the text before it to which no more than closing brackets are missing. That rests on the text
before the place alone, which makes a stream give what the whole text gives.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .._json import JsonValue, attempt_json
from .brackets import Brackets
from .judge import CUT_OFF, MISSING
from .pending import More


@dataclass(frozen=True)
class Json:
    """A JSON value in a text.

    Attributes:
        value: The value; MISSING where there is none.
        end: The index after it.
        cost: How many characters were looked at, each as often as it was. The same for every cut
            of the text, as what comes after it must not depend on cuts either.
        fault: Why the value may not be used, if it may not.
        whole: Whether its last bracket came.
    """

    value: Any
    end: int
    cost: int
    fault: str = ""
    whole: bool = False


# Where broken JSON may end: no call goes on after these, save in a string.
_SIGN = re.compile(
    r"</?tool_calls?>|<tool_response|\n[ \t]*```|\n[ \t]*Observation:|</?function|\[TOOL_CALLS\]"
    r"|<\|[\w/]{1,40}\|>|<｜|</?[a-z]{1,20}:tool|</longcat|</?TOOLCALL"
)
_LONGEST_SIGN = 60
_MAX_SIGNS = 4
_WINDOW = 256
_PART = 4096
_NEED = "}])>`:"  # a sign or a value is complete with one of these
# A sign that the next call begins, whatever was left open before.
_NEXT = re.compile(r"<tool_call>\s*[{\[]|\n[ \t]*```json\s*[{\[]")
_NEXT_LINE = re.compile(r"\n[ \t]*(?=\{\s*[\"']?(?:name|tool|function|action)\b)")
_WORDS = "it holds words where JSON has values"
_OPEN_STRING = "Unterminated string"
_HALF_WORD = 8  # `fals`, `\u00e`: what may become a part of JSON is shorter


def _refuse(name: str) -> Any:
    raise ValueError(name)


# Raw line ends in strings are read; NaN and the infinities are not JSON.
_DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse)


def json_at(text: str, begin: int, *, final: bool, lines: bool) -> Json:
    """The value that begins at `begin`, if there is one.

    Args:
        text: The text so far.
        begin: The index of a `{` or `[`.
        final: Whether nothing more will come.
        lines: Whether a line that begins another call ends what was left open.

    Raises:
        More: More text must come before the value is known.
    """
    # In parts, since an error of the decoder counts the lines of all that stands before it.
    size = _PART
    while True:
        part = text[begin : begin + size]
        try:
            value, end = _DECODER.raw_decode(part)
        except (ValueError, RecursionError) as error:
            if not _may_go_on(part, error):
                break
            if begin + size >= len(text):
                if not final:
                    raise More("}]", begin) from None
                break
            size *= 4
        else:
            return Json(value, begin + end, end, whole=True)
    return _Broken(text, begin).value(final=final, lines=lines)


def _may_go_on(text: str, error: Exception) -> bool:
    """Whether what is wrong is only that the text ends."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    return error.msg.startswith(_OPEN_STRING) or error.pos > len(text) - _HALF_WORD


class _Broken:
    """The places where a value that is no correct JSON may end, and what it is if it ends there."""

    def __init__(self, text: str, begin: int) -> None:
        self._text = text
        self._begin = begin
        self._cost = 0
        self._signs: list[int] = []
        self._must_end = False  # at the last of the signs

    def value(self, *, final: bool, lines: bool) -> Json:
        """The value up to the first place that can be its end."""
        for end, closing in self._ends():
            found = None if self._in_string(end) else self._read(end)
            if found and (found.complete or not (closing or found.cut_in_value)):
                cost = self._cost + end - self._begin
                fault = _WORDS if found.words else ""
                return Json(found.value, self._begin + found.end, cost, fault, found.complete)
        if not self._must_end and not final:
            raise More(_NEED, self._begin)
        limit = self._signs[-1] if self._must_end else len(self._text)
        return self._cut_off(limit, lines=lines)

    def _ends(self) -> Iterator[tuple[int, bool]]:
        """The places where the value may end, and whether the bracket that closes it is there.

        They are looked for from left to right and no farther than they are asked for, so that a
        text full of openers costs what its length does.
        """
        brackets = Brackets()
        at, size = self._begin, _WINDOW
        while at < len(self._text) and not self._must_end:
            end, size = min(len(self._text), at + size), 2 * size
            signs = self._signs_between(at, end)
            limit = self._signs[-1] if self._must_end else end
            length = None if brackets.closed else brackets.feed(self._text, at, limit)
            closing = [(self._begin + length, True)] if length else []
            yield from sorted([(sign, False) for sign in signs] + closing)
            at = end

    def _signs_between(self, at: int, end: int) -> list[int]:
        """The signs that begin in this part of the text."""
        found: list[int] = []
        for sign in _SIGN.finditer(self._text, at, end + _LONGEST_SIGN):
            if sign.start() >= end:
                break
            found.append(sign.start())
            self._signs.append(sign.start())
            # Every one tried costs a reading of all that stands before it.
            if len(self._signs) == _MAX_SIGNS or _NEXT.match(self._text, sign.start()):
                self._must_end = True
                break
        return found

    def _cut_off(self, limit: int, *, lines: bool) -> Json:
        """What can be had of a value that nothing ends properly."""
        self._cost += limit - self._begin
        line = _NEXT_LINE.search(self._text, self._begin, limit) if lines else None
        end = line.start() if line else limit
        if self._signs and not self._in_string(limit):
            end = self._signs[0]  # else the sign belongs to the string that was cut off
            line = None
        found = self._read(end)
        if found is None:
            return Json(MISSING, self._begin, self._cost)
        if found.cut_in_value and not found.complete:
            return Json(found.value, end, self._cost, CUT_OFF)
        fault = CUT_OFF if line else ""
        return Json(found.value, self._begin + found.end, self._cost, fault, found.complete)

    def _read(self, end: int) -> JsonValue | None:
        tried = attempt_json(self._text[self._begin : end], 0)
        self._cost += tried.cost
        return tried.value

    def _in_string(self, end: int) -> bool:
        """Whether the text is correct JSON up to a string that it ends in."""
        try:
            _DECODER.raw_decode(self._text[self._begin : end])
        except json.JSONDecodeError as error:
            return error.msg.startswith(_OPEN_STRING)
        except (ValueError, RecursionError):
            pass
        return False
