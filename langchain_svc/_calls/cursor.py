"""A position in a text that may go on: what the readers of all formats read with.

A reader is an ordinary function. Where the text so far does not tell what comes next, the cursor
raises `More`, and the reader is run again when more has come. So nothing is decided by where a text
was cut, and a stream gives what the whole text gives.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from .._json import JsonValue, attempt_json, once
from .calls import CUT_OFF, MISSING, Raw
from .judge import Judge

# -- brackets -------------------------------------------------------------------------------------

_MARK = re.compile(r"[\"'{}\[\]()]")
_IN_STRING = {quote: re.compile(rf"[{quote}\\]") for quote in "\"'"}
_OPENERS = {"{": "}", "[": "]", "(": ")"}
_TOP = re.compile(r"[\"'{}\[\](),]")


class Brackets:
    """Follows strings and nesting of JSON or Python; a missing quote misleads it."""

    def __init__(self) -> None:
        self._closers: list[str] = []
        self._quote = ""
        self._escaped = False
        self._fed = 0
        self.closed = False

    @property
    def rest(self) -> tuple[str, str]:
        """What closes the string that is open, and what closes the brackets."""
        return self._quote, "".join(reversed(self._closers))

    def feed(self, text: str, start: int = 0, end: int | None = None) -> int | None:
        """The number of characters from the first one fed to the closing bracket, if it is here."""
        at, end = start, len(text) if end is None else end
        while not self.closed and at < end:
            if self._escaped:
                self._escaped, at = False, at + 1
                continue
            found = (_IN_STRING[self._quote] if self._quote else _MARK).search(
                text, at, end
            )
            at = found.end() if found else end
            if found:
                self._pass(found[0])
        self._fed += at - start
        return self._fed if self.closed else None

    def _pass(self, mark: str) -> None:
        if mark == "\\":
            self._escaped = True
            return
        if mark in _IN_STRING:
            self._quote = "" if self._quote else mark
        elif mark in _OPENERS:
            self._closers.append(_OPENERS[mark])
        else:
            del self._closers[-1:]
        self.closed = not self._closers and not self._quote


def bracket_end(text: str, start: int) -> int | None:
    """The index after what closes the bracket or quote at `start`; None while it is open."""
    length = Brackets().feed(text, start)
    return None if length is None else start + length


def split_commas(text: str) -> list[str]:
    """The parts between the commas of a text that stand in no bracket and in no string."""
    parts, begin, at = [], 0, 0
    while found := _TOP.search(text, at):
        mark, at = found[0], found.end()
        if mark == ",":
            parts.append(text[begin : found.start()])
            begin = at
        elif mark in _OPENERS or mark in _IN_STRING:
            at = bracket_end(text, found.start()) or len(text)
    return [part.strip() for part in [*parts, text[begin:]] if part.strip()]


# -- waiting --------------------------------------------------------------------------------------

_FREE = 1000  # characters
_EARNED = 2  # for each character that arrives


class More(Exception):  # noqa: N818 - no error, but a question
    """What stands here cannot be told yet: not before one of the characters of `need` has come.

    A value whose end is waited for begins at `brackets`.
    """

    def __init__(self, need: str = "", brackets: int | None = None) -> None:
        super().__init__(need)
        self.need = need
        self.brackets = brackets


class Pending:
    """Decides for each piece of text whether to look again.

    A look reads all that is held. So that the cost stays linear, what arrives earns credit for it;
    short texts are free, and so is the look when a value's last bracket has come.
    """

    def __init__(self) -> None:
        self._credit = 0
        self._need = ""
        self._brackets: Brackets | None = None

    def wait_for(self, text: str, more: More) -> None:
        """Wait for what `more` asks about `text`."""
        self._need, self._brackets = more.need, None
        if more.brackets is not None and len(text) - more.brackets > _FREE:
            brackets = Brackets()
            brackets.feed(text, more.brackets)
            self._brackets = None if brackets.closed else brackets

    def is_due(self, piece: str, size: int) -> bool:
        """Whether, with this piece, the text of now `size` characters should be looked at."""
        self._credit += _EARNED * len(piece)
        if self._brackets is not None and self._brackets.feed(piece) is not None:
            self._brackets = None
            return True
        if self._need and not any(char in piece for char in self._need):
            return False
        if size > _FREE and self._credit < size:
            return False
        self._credit -= size * (size > _FREE)
        return True


# -- JSON -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Json:
    """A JSON value in a text, or MISSING; `fault` says why it may not be used.

    `cost` is how many characters were looked at; `whole` says whether its last bracket came, and
    `repaired` whether it is no JSON as it stands.
    """

    value: Any
    end: int
    cost: int
    fault: str = ""
    whole: bool = False
    repaired: bool = False


# Where broken JSON may end: no call goes on after these, save in a string.
_SIGN = re.compile(
    r"</?tool_calls?>|<tool_response|\n[ \t]*```|\n[ \t]*Observation:|</?function|\[TOOL_CALLS\]"
    r"|<\|[\w/]{1,40}\|>|<｜|</?[a-z]{1,20}:tool|</longcat|</?TOOLCALL"
)
# A sign that the next call begins, whatever was left open before.
_NEXT = re.compile(r"<tool_call>\s*[{\[]|\n[ \t]*```json\s*[{\[]")
_NEXT_LINE = re.compile(r"\n[ \t]*(?=\{\s*[\"']?(?:name|tool|function|action)\b)")
_MAX_SIGNS, _LONGEST_SIGN, _WINDOW, _PART = 4, 60, 256, 4096
_OPEN_STRING = "Unterminated string"


def _refuse(name: str) -> Any:
    raise ValueError(name)


# Raw line ends in strings are read. NaN, infinities and a key with two values are not JSON.
_DECODER = json.JSONDecoder(
    strict=False, parse_constant=_refuse, object_pairs_hook=once
)


def json_at(text: str, begin: int, *, final: bool, lines: bool) -> Json:
    """The value that begins at `begin`; raises More.

    Of broken JSON the places where it may end are tried from left to right: signs that a call is
    over, and the bracket that seems to close it. One is accepted if nothing but closing brackets
    are missing before it. With `lines`, a line that begins another call ends what was left open.
    """
    size = _PART  # in parts, since an error of the decoder counts the lines before it
    while True:
        part = text[begin : begin + size]
        try:
            value, end = _DECODER.raw_decode(part)
        except (ValueError, RecursionError) as error:
            is_open = isinstance(error, json.JSONDecodeError) and (
                error.msg.startswith(_OPEN_STRING)
                or error.pos > len(part) - 8  # `\u00e`, `fals`
            )
            if is_open and begin + size >= len(text) and not final:
                raise More("}]", begin) from None
            if not is_open or begin + size >= len(text):
                return _broken_json(text, begin, final=final, lines=lines)
            size *= 4
        else:
            return Json(value, begin + end, end, whole=True)


def _broken_json(text: str, begin: int, *, final: bool, lines: bool) -> Json:
    cost, end, must_end = 0, begin, False
    for end, closing, last in _ends(text, begin):
        must_end = last
        tried = attempt_json(text[begin:end], 0)
        cost += tried.cost + end - begin
        found = tried.value
        if found and (found.complete or not (closing or found.cut_in_value)):
            return _repaired(found, begin + found.end, cost, found.spare)
    if not must_end and not final:
        raise More("}])>`:", begin)
    end = end if must_end else len(text)
    cost += end - begin
    line = _NEXT_LINE.search(text, begin, end) if lines else None
    end = line.start() if line else end
    tried = attempt_json(text[begin:end], 0)
    cost += tried.cost
    found = tried.value
    if found is None:
        return Json(MISSING, begin, cost)
    if found.cut_in_value and not found.complete:
        return Json(found.value, end, cost, CUT_OFF)
    fault = CUT_OFF if line else found.spare
    return _repaired(found, begin + found.end, cost, fault)


def _repaired(value: JsonValue, end: int, cost: int, fault: str) -> Json:
    return Json(value.value, end, cost, fault, value.complete, repaired=True)


def _ends(text: str, begin: int) -> Iterator[tuple[int, bool, bool]]:
    """Where the value may end; whether its closing bracket is there; whether it must end there.

    No farther than they are asked for, so that a text full of openers costs what its length does.
    """
    brackets, at, size, count, over = Brackets(), begin, _WINDOW, 0, False
    while at < len(text) and not over:
        end, size = min(len(text), at + size), 2 * size
        places = []
        for sign in _SIGN.finditer(text, at, end + _LONGEST_SIGN):
            if sign.start() >= end or over:
                break
            count += 1  # every one tried costs a reading of all that stands before it
            over = count == _MAX_SIGNS or _NEXT.match(text, sign.start()) is not None
            places.append((sign.start(), False, over))
        limit = places[-1][0] if over else end
        length = None if brackets.closed else brackets.feed(text, at, limit)
        yield from sorted(
            [*places, *([(begin + length, True, over)] if length else [])]
        )
        at = end


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
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at

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

    def take(self, *literals: str) -> bool:
        """Pass over the literal that stands here, if one does."""
        found = self.sees(*literals)
        if found:
            self.at += max(len(x) for x in literals if self.text.startswith(x, self.at))
        return found

    def word(self) -> str:
        """The name that stands here; it is not waited for if no offered name begins so."""
        begin = self.at
        self.skip(_WORD)
        word = self.text[begin : self.at]
        if self.open and self.judge.may_begin(word):
            raise More
        return word

    def match(
        self, pattern: re.Pattern[str], limit: int = 300, *, peek: bool = False
    ) -> re.Match[str] | None:
        """Pass over what the pattern matches here; it is waited for until `limit` characters came.

        It must end with a character of its own, so that a match cannot grow. `peek`: stay here.
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
        """The text up to the first pattern that is found, and its match; else to the very end."""
        begin, found = self.at, None
        for pattern in patterns:
            found = found or pattern.search(self.text, begin)
            if not self.final and (found is None or found.end() == len(self.text)):
                raise More(need)
        self.at = found.end() if found else len(self.text)
        self.cost += self.at - begin
        return self.text[begin : found.start() if found else self.at], found

    def bracketed(self) -> tuple[str, bool]:
        """The text from the bracket here to the one that closes it, and whether that came."""
        begin = self.at
        end = bracket_end(self.text, begin)
        if end is None and not self.final:
            raise More(")]}", begin)
        self.at = len(self.text) if end is None else end
        self.cost += self.at - begin
        return self.text[begin : self.at], end is not None

    def json(self, *, lines: bool = False) -> Json | None:
        """Pass over the JSON value that begins here, broken as it may be; None if there is none."""
        found = json_at(self.text, self.at, final=self.final, lines=lines)
        self.at = found.end
        self.cost += found.cost
        return None if found.value is MISSING else found


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
