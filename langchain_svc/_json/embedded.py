"""JSON inside a text that goes on: where a value ends, though its own brackets may not say so.

Who reads a stream asks again when more has come: `More` says so. So nothing depends on where a text
was cut.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from .parser import JsonValue, attempt_json, once, refuse_constant


class More(Exception):  # noqa: N818 - no error, but a question
    """More text is needed to say what stands here: up to one of the characters of `need`.

    `brackets` is where a value begins of which the end has not come.
    """

    def __init__(self, need: str = "", brackets: int | None = None) -> None:
        super().__init__(need)
        self.need = need
        self.brackets = brackets


# -- brackets -------------------------------------------------------------------------------------

_MARK = re.compile(r"[\"'{}\[\]()]")
_IN_STRING = {quote: re.compile(rf"[{quote}\\]") for quote in "\"'"}
_OPENERS = {"{": "}", "[": "]", "(": ")"}
_TOP = re.compile(r"[\"'{}\[\](),]")


class Brackets:
    """Follows strings and brackets of JSON or Python; a missing quote misleads it."""

    def __init__(self) -> None:
        self._closers: list[str] = []
        self._quote = ""
        self._escaped = False
        self._length = 0  # characters that were followed
        self.closed = False

    @property
    def rest(self) -> tuple[str, str]:
        """What closes the string that is open, and what closes the brackets."""
        return self._quote, "".join(reversed(self._closers))

    def follow(self, text: str, start: int = 0, end: int | None = None) -> int | None:
        """The number of characters from the very first to the closing bracket, if it is here."""
        at = start
        if end is None:
            end = len(text)
        while not self.closed and at < end:
            if self._escaped:
                self._escaped = False
                at += 1
                continue
            marks = _IN_STRING[self._quote] if self._quote else _MARK
            match = marks.search(text, at, end)
            if match is None:
                at = end
            else:
                at = match.end()
                self._pass(match[0])
        self._length += at - start
        return self._length if self.closed else None

    def _pass(self, mark: str) -> None:
        if mark == "\\":
            self._escaped = True
            return
        if self._quote:
            self._quote = ""
        elif mark in _IN_STRING:
            self._quote = mark
        elif mark in _OPENERS:
            self._closers.append(_OPENERS[mark])
        else:
            del self._closers[-1:]
        self.closed = not self._closers and not self._quote


def bracket_end(text: str, start: int) -> int | None:
    """The index after what closes the bracket or quote at `start`; None while it is open."""
    length = Brackets().follow(text, start)
    if length is None:
        return None
    return start + length


def split_commas(text: str) -> list[str]:
    """The parts between the commas of a text that stand in no bracket and in no string."""
    parts: list[str] = []
    begin = 0
    at = 0
    while match := _TOP.search(text, at):
        mark = match[0]
        at = match.end()
        if mark == ",":
            parts.append(text[begin : match.start()])
            begin = at
        elif mark in _OPENERS or mark in _IN_STRING:
            at = bracket_end(text, match.start()) or len(text)
    parts.append(text[begin:])
    return [part.strip() for part in parts if part.strip()]


# -- a value ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Signs:
    """What says that a value is over, whatever was left open before.

    Attributes:
        end: Where broken JSON may end: nothing of a value stands behind it, save in a string.
        next: Where the next value begins for sure.
    """

    end: re.Pattern[str]
    next: re.Pattern[str]


@dataclass(frozen=True)
class Embedded:
    """A JSON value in a text.

    Attributes:
        value: The value; None where there is none, too.
        end: Where it ends.
        cost: How many characters were looked at.
        found: Whether one begins where it was looked for.
        whole: Whether its last bracket came.
        cut: Whether it breaks off inside a value.
        repaired: Whether it was no JSON.
        spare: Why what was repaired is in doubt; "" where it is not.
    """

    value: object
    end: int
    cost: int
    found: bool = True
    whole: bool = False
    cut: bool = False
    repaired: bool = False
    spare: str = ""


_MAX_SIGNS = 4
_LONGEST_SIGN = 60
_WINDOW = 256
_PART = 4096
_OPEN_STRING = "Unterminated string"


# Raw line ends in strings are read. NaN, infinities and a key with two values are not JSON.
_DECODER = json.JSONDecoder(
    strict=False, parse_constant=refuse_constant, object_pairs_hook=once
)


def embedded_json(text: str, begin: int, signs: Signs, *, final: bool) -> Embedded:
    """The value that begins at `begin`.

    Broken JSON may end at a sign that it is over, or at the bracket that seems to close it.
    These places are tried from left to right, and the first one is right before which nothing but
    closing brackets is missing.

    Raises:
        More: The value may go on.
    """
    size = _PART  # in parts, since an error of the decoder counts the lines before it
    while True:
        part = text[begin : begin + size]
        is_all = begin + size >= len(text)
        try:
            value, end = _DECODER.raw_decode(part)
        except (ValueError, RecursionError) as error:
            if not _is_open(error, part):
                return _broken_json(text, begin, signs, final=final)
            if is_all and not final:
                raise More("}]", begin) from None
            if is_all:
                return _broken_json(text, begin, signs, final=final)
            size *= 4
        else:
            return Embedded(value, begin + end, end, whole=True)


def _is_open(error: Exception, part: str) -> bool:
    """Whether the decoder may have failed because the text ends too early."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    is_near_end = error.pos > len(part) - 8  # `\u00e`, `fals`
    return is_near_end or error.msg.startswith(_OPEN_STRING)


@dataclass(frozen=True, order=True)
class _End:
    """Where a value of broken JSON may end."""

    at: int
    closed: bool  # by its own bracket
    must: bool  # it ends nowhere behind this place


def _broken_json(text: str, begin: int, signs: Signs, *, final: bool) -> Embedded:
    cost = 0
    last: _End | None = None
    for last in _ends(text, begin, signs):
        attempt = attempt_json(text[begin : last.at], 0)
        cost += attempt.cost + last.at - begin
        value = attempt.value
        # A sign may stand in a string; so nothing may be missing before it but brackets.
        if value and (value.complete or not (last.closed or value.cut_in_value)):
            return _repaired(begin, value, cost)
    must_end = last is not None and last.must
    if not must_end and not final:
        raise More("}])>`:", begin)
    end = last.at if last and must_end else len(text)
    return _left_open(text, begin, end, cost)


def _left_open(text: str, begin: int, end: int, cost: int) -> Embedded:
    """The value that was left open; `end` is the last place where it can end."""
    attempt = attempt_json(text[begin:end], 0)
    cost += end - begin + attempt.cost
    value = attempt.value
    if value is None:
        return Embedded(None, begin, cost, found=False)
    if value.cut_in_value and not value.complete:
        return Embedded(value.value, end, cost, cut=True, repaired=True)
    return _repaired(begin, value, cost)


def _repaired(begin: int, value: JsonValue, cost: int) -> Embedded:
    return Embedded(
        value.value,
        begin + value.end,
        cost,
        whole=value.complete,
        repaired=True,
        spare=value.spare,
    )


def _ends(text: str, begin: int, signs: Signs) -> Iterator[_End]:
    """The places where the value may end.

    They are searched no farther than the caller goes on, so that a text full of openers costs what
    its length does.
    """
    brackets = Brackets()
    size = _WINDOW
    at = begin
    tried = 0
    must = False
    while at < len(text) and not must:
        window_end = min(len(text), at + size)
        size *= 2
        places: list[_End] = []
        limit = window_end
        for sign in signs.end.finditer(text, at, window_end + _LONGEST_SIGN):
            if must or sign.start() >= window_end:
                break
            # Each that is tried costs a reading of all that stands before it.
            tried += 1
            must = (
                tried == _MAX_SIGNS or signs.next.match(text, sign.start()) is not None
            )
            places.append(_End(sign.start(), closed=False, must=must))
        if must:
            limit = places[-1].at
        length = None
        if not brackets.closed:
            length = brackets.follow(text, at, limit)
        if length:
            places.append(_End(begin + length, closed=True, must=must))
        yield from sorted(places)
        at = window_end
