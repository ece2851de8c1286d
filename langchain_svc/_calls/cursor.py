"""A position in a text that may go on: all readers of calls move it forward.

A reader is an ordinary function. Where the text so far does not show what comes next, the cursor
raises `More`, and the scanner runs the reader again when more has come. So nothing depends on where
a text was cut, and a stream gives the same calls as the whole text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from .._json import JsonValue, attempt_json, once, refuse_constant
from .calls import CUT_OFF, MISSING, Raw
from .judge import STRAY_TEXT, Judge, accounts_for

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


# -- waiting --------------------------------------------------------------------------------------

_FREE = 1000  # characters
_EARNED = 2  # for each character that arrives


class More(Exception):  # noqa: N818 - no error, but a question
    """More text is needed to say what stands here: up to one of the characters of `need`.

    `brackets` is where a value begins of which the end has not come.
    """

    def __init__(self, need: str = "", brackets: int | None = None) -> None:
        super().__init__(need)
        self.need = need
        self.brackets = brackets


class Pending:
    """Decides for each piece of text whether to look again.

    A look reads the whole buffer. So that the cost stays linear, the text that arrives earns credit
    for it. Short texts are free, and so is the look when a value's last bracket has come.
    """

    def __init__(self) -> None:
        self._credit = 0
        self._need = ""
        self._brackets: Brackets | None = None

    def wait_for(self, text: str, more: More) -> None:
        """Wait for the characters that `more` needs behind `text`."""
        self._need = more.need
        self._brackets = None
        if more.brackets is not None and len(text) - more.brackets > _FREE:
            brackets = Brackets()
            brackets.follow(text, more.brackets)
            if not brackets.closed:
                self._brackets = brackets

    def is_due(self, piece: str, size: int) -> bool:
        """Whether, with this piece, the text of now `size` characters should be looked at."""
        self._credit += _EARNED * len(piece)
        if self._brackets is not None and self._brackets.follow(piece) is not None:
            self._brackets = None
            return True
        if self._need and not any(char in piece for char in self._need):
            return False
        if size <= _FREE:
            return True
        if self._credit < size:
            return False
        self._credit -= size
        return True


# -- JSON -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Json:
    """A JSON value in a text, or MISSING."""

    value: object
    end: int
    cost: int  # how many characters were looked at
    fault: str = ""  # why it may not be used
    whole: bool = False  # its last bracket came


# Where broken JSON may end: no call goes on after these, save in a string.
_SIGN = re.compile(
    r"</?tool_calls?>|<tool_response|\n[ \t]*```|\n[ \t]*Observation:|</?function|\[TOOL_CALLS\]"
    r"|<\|[\w/]{1,40}\|>|<｜|</?[a-z]{1,20}:tool|</longcat|</?TOOLCALL"
)
# A sign that the next call begins, whatever was left open before.
_NEXT = re.compile(r"<tool_call>\s*[{\[]|\n[ \t]*```json\s*[{\[]")
_MAX_SIGNS = 4
_LONGEST_SIGN = 60
_WINDOW = 256
_PART = 4096
_OPEN_STRING = "Unterminated string"


# Raw line ends in strings are read. NaN, infinities and a key with two values are not JSON.
_DECODER = json.JSONDecoder(
    strict=False, parse_constant=refuse_constant, object_pairs_hook=once
)


def json_at(text: str, begin: int, *, final: bool) -> Json:
    """The value that begins at `begin`.

    Broken JSON may end at a sign that a call is over, or at the bracket that seems to close it.
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
                return _broken_json(text, begin, final=final)
            if is_all and not final:
                raise More("}]", begin) from None
            if is_all:
                return _broken_json(text, begin, final=final)
            size *= 4
        else:
            return Json(value, begin + end, end, whole=True)


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


def _broken_json(text: str, begin: int, *, final: bool) -> Json:
    cost = 0
    last: _End | None = None
    for last in _ends(text, begin):
        attempt = attempt_json(text[begin : last.at], 0)
        cost += attempt.cost + last.at - begin
        value = attempt.value
        # A sign may stand in a string; so nothing may be missing before it but brackets.
        if value and (value.complete or not (last.closed or value.cut_in_value)):
            return _repaired(text, begin, value, cost)
    must_end = last is not None and last.must
    if not must_end and not final:
        raise More("}])>`:", begin)
    end = last.at if last and must_end else len(text)
    return _cut_json(text, begin, end, cost)


def _cut_json(text: str, begin: int, end: int, cost: int) -> Json:
    """The value that was left open; `end` is the last place where it can end."""
    attempt = attempt_json(text[begin:end], 0)
    cost += end - begin + attempt.cost
    value = attempt.value
    if value is None:
        return Json(MISSING, begin, cost)
    if value.cut_in_value and not value.complete:
        return Json(value.value, end, cost, CUT_OFF)
    return _repaired(text, begin, value, cost)


def _repaired(text: str, begin: int, value: JsonValue, cost: int) -> Json:
    end = begin + value.end
    fault = value.spare
    if not fault and not accounts_for(text[begin:end], value.value):
        fault = STRAY_TEXT
    return Json(value.value, end, cost, fault, value.complete)


def _ends(text: str, begin: int) -> Iterator[_End]:
    """The places where the value may end.

    They are searched no farther than the caller goes on, so that a text full of openers costs what
    its length does.
    """
    brackets = Brackets()
    size = _WINDOW
    at = begin
    signs = 0
    must = False
    while at < len(text) and not must:
        window_end = min(len(text), at + size)
        size *= 2
        places: list[_End] = []
        limit = window_end
        for sign in _SIGN.finditer(text, at, window_end + _LONGEST_SIGN):
            if must or sign.start() >= window_end:
                break
            # Each that is tried costs a reading of all that stands before it.
            signs += 1
            must = signs == _MAX_SIGNS or _NEXT.match(text, sign.start()) is not None
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


# -- the cursor -----------------------------------------------------------------------------------

_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"[\w.-]*")


class Cursor:
    """Reads `text` from `at` on; `judge` knows the tools, and `families` other forms."""

    def __init__(
        self, text: str, at: int, judge: Judge, families: Families, *, final: bool
    ) -> None:
        self.text = text
        self.at = at
        self.judge = judge
        self.families = families
        self.final = final
        self.cost = 0  # how many characters were looked at to tell where something ends

    @property
    def open(self) -> bool:
        """Whether the text has been read to its end and may go on."""
        return self.at >= len(self.text) and not self.final

    def space(self) -> None:
        """Pass over white space."""
        self.skip(_SPACE)
        if self.open:
            raise More

    def skip(self, pattern: re.Pattern[str]) -> None:
        """Pass over what the pattern matches here, which may be nothing."""
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()

    def char(self) -> str:
        """The character here; "" at the end."""
        if self.open:
            raise More
        return self.text[self.at : self.at + 1]

    def sees(self, *literals: str) -> bool:
        """Whether one of the literals stands here."""
        if self.text.startswith(literals, self.at):
            return True
        rest = self.text[self.at : self.at + max(map(len, literals))]
        if not self.final and any(literal.startswith(rest) for literal in literals):
            raise More
        return False

    def accept(self, *literals: str) -> bool:
        """Pass over the longest of the literals that stands here, if one does."""
        if not self.sees(*literals):
            return False
        self.at += max(len(x) for x in literals if self.text.startswith(x, self.at))
        return True

    def word(self) -> str:
        """The name that stands here; more text is needed only where an offered name begins so."""
        begin = self.at
        self.skip(_WORD)
        word = self.text[begin : self.at]
        if self.open and self.judge.may_begin(word):
            raise More
        return word

    def match(
        self, pattern: re.Pattern[str], limit: int = 300, *, peek: bool = False
    ) -> re.Match[str] | None:
        """Pass over what the pattern matches here; `limit` characters are enough for it.

        The pattern must end with a character of its own, so that a match cannot grow. `peek`: stay.
        """
        match = pattern.match(self.text, self.at, self.at + limit)
        if match is None and not self.final and len(self.text) - self.at < limit:
            raise More
        if match and not peek:
            self.at = match.end()
        return match

    def until(
        self, *patterns: re.Pattern[str], need: str = ">"
    ) -> tuple[str, re.Match[str] | None]:
        """The text up to the first pattern that occurs, and its match; else all of the text."""
        begin = self.at
        match: re.Match[str] | None = None
        for pattern in patterns:
            match = match or pattern.search(self.text, begin)
            if not self.final and (match is None or match.end() == len(self.text)):
                raise More(need)
        if match is None:
            self.at = len(self.text)
            end = self.at
        else:
            self.at = match.end()
            end = match.start()
        self.cost += self.at - begin
        return self.text[begin:end], match

    def bracketed(self) -> tuple[str, bool]:
        """The text from the bracket here to the one that closes it, and whether that came."""
        begin = self.at
        end = bracket_end(self.text, begin)
        if end is None and not self.final:
            raise More(")]}", begin)
        self.at = end or len(self.text)
        self.cost += self.at - begin
        return self.text[begin : self.at], end is not None

    def json(self) -> Json | None:
        """Pass over the JSON value that begins here, broken as it may be; None if there is none."""
        result = json_at(self.text, self.at, final=self.final)
        self.at = result.end
        self.cost += result.cost
        if result.value is MISSING:
            return None
        return result


# -- the forms of other families ------------------------------------------------------------------

Reader = Callable[[Cursor], "list[Raw] | None"]


def _reads_nothing(_: Cursor, *_more: str) -> None:
    """The reader of a form that nobody reads."""


@dataclass(frozen=True)
class Families:
    """Readers of the forms of other model families; as it stands, there are none.

    Each returns the calls that it reads where the cursor stands, or None.
    """

    # By the mark that opens the form.
    readers: Mapping[str, Reader] = field(default_factory=lambda: MappingProxyType({}))
    # What stands after any other mark of calls.
    marked: Callable[[Cursor, str], list[Raw] | None] = _reads_nothing
    # What stands inside tags and is no JSON.
    inside: Reader = _reads_nothing
    # An element of calls that names a tool.
    named_element: Reader = _reads_nothing
    # What stands in an element of a tool's own name: the name, and the prefix of the element.
    own_element: Callable[[Cursor, str, str], list[Raw] | None] = _reads_nothing
    # What begins with a square bracket and is no JSON.
    listed: Reader = _reads_nothing
    # What stands in a fence of code.
    code: Reader = _reads_nothing
    # A call that an answer begins with, without any mark.
    unmarked: Reader = _reads_nothing
    # Those of the readers above whose calls count only where the answer ends with them.
    loose: frozenset[Reader] = frozenset()
