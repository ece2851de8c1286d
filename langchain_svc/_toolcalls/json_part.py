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
from dataclasses import dataclass
from typing import Any

from .._json.lenient import Value, attempt
from .brackets import bracket_end
from .hold import More
from .offer import CUT_OFF, MISSING


@dataclass(frozen=True)
class Json:
    """A JSON value in a text.

    Attributes:
        value: The value; MISSING where there is none.
        end: The index after it.
        cost: How many characters were looked at, each as often as it was. The same for every cut
            of the text, as what comes after it must not depend on cuts either.
        fault: Why the value may not be used, if it may not.
    """

    value: Any
    end: int
    cost: int
    fault: str = ""


# Where broken JSON may end: no call goes on after these, save in a string.
_SIGN = re.compile(
    r"</?tool_calls?>|<tool_response|\n[ \t]*```|\n[ \t]*Observation:|</?function|\[TOOL_CALLS\]"
    r"|<\|[\w/]{1,40}\|>|<｜|</?[a-z]{1,20}:tool|</longcat|</?TOOLCALL"
)
_MAX_SIGNS = 4  # every one tried costs a reading of all that stands before it
_NEED = "}])>`:"  # a sign or a value is complete with one of these
# A sign that the next call begins, whatever was left open before.
_NEXT = re.compile(r"<tool_call>\s*[{\[]|\n[ \t]*```json\s*[{\[]")
_NEXT_LINE = re.compile(r"\n[ \t]*(?=\{\s*[\"']?(?:name|tool|function|action)\b)")
_OPEN_STRING = "Unterminated string"
_HALF_WORD = 8  # `fals`, `\u00e`: what may become a part of JSON is shorter


def _refuse(name: str) -> Any:
    raise ValueError(name)


# Raw line ends in strings are read as they are; NaN and the infinities are no JSON.
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
    try:
        value, end = _DECODER.raw_decode(text, begin)
    except (ValueError, RecursionError) as error:
        if not final and _may_go_on(text, error):
            raise More("}]", begin) from None
    else:
        return Json(value, end, end - begin)
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

    def value(self, *, final: bool, lines: bool) -> Json:
        """The value up to the first place that can be its end."""
        signs, ends = self._signs()
        limit = signs[-1] if ends else len(self._text)
        closing = bracket_end(self._text, self._begin, limit)
        for end in sorted([*signs, *([closing] if closing else [])]):
            found = None if self._in_string(end) else self._read(end)
            if found and (found.complete or not (end == closing or found.cut_in_value)):
                return Json(found.value, self._begin + found.end, self._cost + end - self._begin)
        if not ends and not final:
            raise More(_NEED, self._begin)
        return self._cut_off(limit, signs, lines=lines)

    def _signs(self) -> tuple[list[int], bool]:
        """Where the value may end, and whether it must end at the last of these places."""
        found: list[int] = []
        at = self._begin
        while sign := _SIGN.search(self._text, at):
            found.append(sign.start())
            if len(found) == _MAX_SIGNS or _NEXT.match(self._text, sign.start()):
                return found, True
            at = sign.end()
        return found, False

    def _cut_off(self, limit: int, signs: list[int], *, lines: bool) -> Json:
        """What can be had of a value that nothing ends properly."""
        self._cost += limit - self._begin
        line = _NEXT_LINE.search(self._text, self._begin, limit) if lines else None
        end = line.start() if line else limit
        if signs and not self._in_string(limit):
            end = signs[0]  # else the sign belongs to the string that was cut off
            line = None
        found = self._read(end)
        if found is None:
            return Json(MISSING, self._begin, self._cost)
        if found.cut_in_value and not found.complete:
            return Json(found.value, end, self._cost, CUT_OFF)
        return Json(found.value, self._begin + found.end, self._cost, CUT_OFF if line else "")

    def _read(self, end: int) -> Value | None:
        tried = attempt(self._text[self._begin : end], 0)
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
