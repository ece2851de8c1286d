"""Where a string ends, when its own quotes do not settle it.

Models forget to escape quotes inside strings, and forget quotes around them. Whether a quote ends
its string can be seen from what follows: after the value of a field come a comma and a key, or a
closing bracket; after an item of a list a comma and a value; after a key a colon. A quote that
none of these follows is part of the text, unless it opens the next string because the quote
before it was forgotten.

Every decision looks at a bounded stretch of text (`marks.peek`), so a text of n quotes costs n.
"""

# ruff: noqa: RUF001 - what models write has such characters

from __future__ import annotations

import enum
import re
from dataclasses import dataclass, field
from typing import Any

from .marks import (
    CLOSERS,
    COLONS,
    COMMAS,
    ELLIPSIS,
    QUOTES,
    VALUE_START,
    WHOLE_STRING,
    is_key,
    peek,
    stops,
)


class Place(enum.Enum):
    """What a string is where it stands."""

    ROOT = enum.auto()
    KEY = enum.auto()
    FIELD = enum.auto()
    ITEM = enum.auto()


@dataclass(frozen=True)
class Scalar:
    """One string, or one value without quotes."""

    value: Any
    end: int
    repairs: int = 0
    cut: bool = False  # the text ended inside it, or right behind what has no quotes
    lost: bool = False  # no quote ended it: the end was found by other signs


@dataclass
class Around:
    """The open containers around a string."""

    closers: list[str] = field(default_factory=list)  # what closes them, the innermost last
    words: bool = False  # the innermost one has keys or items without quotes

    def closes(self, char: str) -> bool:
        """Whether a closing bracket can close one of them."""
        return CLOSERS.get(char) in self.closers


@dataclass
class Inside:
    """What a scan has seen of a string's inside so far."""

    begin: int
    quotes: int = 0  # quotes that turned out to be text
    braces: int = 0  # how many more { than }
    last: int = 0  # where the last of these quotes stands


_KEY_OPENS = re.compile(
    r"\"[^\"\n:{}]{1,80}\"\s{0,20}:\s{0,40}(?:[\"\[{\d]|-\d|true\b|false\b|null\b|True\b|False\b|None\b)"
)
_TAIL = 100
_CLOSING_LINES = re.compile(r"\s{0,40}\n\s{0,40}[}\]][\s}\]]{0,40},$")
_KEY_IN_TAIL = re.compile(r",\s{0,40}([^\W\d][\w$-]{0,60})\s{0,20}:\s{0,20}$")
_KEY_TEXT = re.compile(r"\s*[^:{}\[\],\"]{1,80}(?=:)")
_LOST_OPENING = re.compile(r"\s{0,5}[^\"\s,\]][^\"\n,\]]{0,80}\"?")
_CUT_WORD = re.compile(r"(?:t|tr|tru|f|fa|fal|fals|n|nu|nul|-)\Z")
_CUT_KEY = re.compile(r"\"(?:[^\"\\\n]|\\[^\n]){0,200}\\?\Z")
_INCHES = re.compile(r"(?:^|[\s(x×])\d+(?:[.,/]\d+)?$")


def ends(text: str, at: int, place: Place, around: Around, inside: Inside) -> bool:
    """Whether the quote at `at` ends its string."""
    if place is Place.ROOT:
        return True
    after = peek(text, at + 1)
    if stops(text, after):
        return True
    char = text[after]
    if char in QUOTES:
        return _ends_before_quote(text, at, after, place, inside)
    if char == "+" and text[(plus := peek(text, after + 1)) : plus + 1] in QUOTES:
        return True
    return _BY_PLACE[place](text, at, after, around, inside)


def _key_ends(text: str, at: int, after: int, _around: Around, inside: Inside) -> bool:
    char = text[after]
    ended = char in COLONS or char in COMMAS or char in CLOSERS
    return ended or "\n" in text[inside.begin : at]


def _field_ends(text: str, at: int, after: int, around: Around, inside: Inside) -> bool:
    char = text[after]
    if char in CLOSERS:
        return _bracket_ends(text, after, around, inside)
    if char in COMMAS:
        return field_follows(text, after, around) or _key_alone(text, after, inside)
    return "\n" in text[at:after] and is_key(text, after, words=around.words)


def _item_ends(text: str, at: int, after: int, around: Around, inside: Inside) -> bool:
    char = text[after]
    if char in CLOSERS:
        return _bracket_ends(text, after, around, inside)
    if char in COMMAS:
        follows = _item_follows(text, after, around)
        return follows or _opening_lost(text, at, after + 1, inside)
    return after > at + 1 and _opening_lost(text, at, after, inside)


_BY_PLACE = {Place.KEY: _key_ends, Place.FIELD: _field_ends, Place.ITEM: _item_ends}


def _ends_before_quote(text: str, at: int, after: int, place: Place, inside: Inside) -> bool:
    """Whether a quote ends its string when another quote follows: a comma or a colon is missing."""
    if place is Place.KEY or is_key(text, after):
        return True
    if after == at + 1 and structure_at(text, after + 1):
        return inside.quotes % 2 == 0  # "value"" is a quote too many; "say "hi"" is not
    string = WHOLE_STRING.match(text, after)
    if place is not Place.ITEM or string is None:
        return False
    beyond = peek(text, string.end())
    return structure_at(text, beyond) or VALUE_START.match(text, beyond) is not None


def structure_at(text: str, at: int) -> bool:
    """Whether a comma, a closing bracket or the end comes next."""
    at = peek(text, at)
    return stops(text, at) or text[at] in CLOSERS or text[at] in COMMAS


def _bracket_ends(text: str, at: int, around: Around, inside: Inside) -> bool:
    """Whether the bracket behind a quote closes a container, and not a brace of the text."""
    if not around.closes(text[at]):
        return _stray_brackets_end(text, at, around)
    after = peek(text, at + 1)
    if structure_at(text, after) and text[after : after + 1] not in COMMAS:
        return True
    if "\n" in text[at:after] or is_key(text, after):
        return True
    return inside.braces <= 0 or (text[after] in COMMAS and len(around.closers) > 1)


def _stray_brackets_end(text: str, at: int, around: Around) -> bool:
    """Whether brackets that close nothing stand before one that does, and then the text goes on."""
    for _ in range(3):
        at = peek(text, at + 1)
        if text[at : at + 1] not in CLOSERS:
            return False
        if around.closes(text[at]):
            return structure_at(text, at + 1)
    return False


def field_follows(text: str, at: int, around: Around) -> bool:
    """Whether the comma at `at` separates fields: a key follows, or the end of something."""
    after = _past_commas(text, at)
    if stops(text, after) or is_key(text, after, words=around.words):
        return True
    if text[after] == "{":  # [{"a": "b", {"a": ...: a closing brace is missing
        return is_key(text, peek(text, after + 1), words=around.words)
    return around.closes(text[after]) or bool(ELLIPSIS.match(text, after))


def _key_alone(text: str, at: int, inside: Inside) -> bool:
    """Whether a key without a value follows the comma: "a": "b", "c"}, or one cut off: , "c."""
    if inside.quotes:
        return False
    after = peek(text, at + 1)
    string = WHOLE_STRING.match(text, after)
    if string is None:
        return _CUT_KEY.match(text, after) is not None
    return structure_at(text, string.end())


def _item_follows(text: str, at: int, around: Around) -> bool:
    """Whether the comma at `at` separates items: a value follows, or the end of something."""
    after = _past_commas(text, at)
    if stops(text, after) or around.words or VALUE_START.match(text, after):
        return True
    if _CUT_WORD.match(text, after):
        return True
    return around.closes(text[after]) or bool(ELLIPSIS.match(text, after))


def _past_commas(text: str, at: int) -> int:
    for _ in range(3):
        at = peek(text, at + 1)
        if text[at : at + 1] not in COMMAS:
            break
    return at


def _opening_lost(text: str, at: int, after: int, inside: Inside) -> bool:
    """Whether an item ends at `at` and the next one lacks its opening quote: ["a" b" ].

    Not after a number, where the quote means inches, nor inside a pair of quotes.
    """
    if inside.quotes or _INCHES.search(text[max(inside.begin, at - 20) : at]):
        return False
    found = _LOST_OPENING.match(text, after)
    if found is None:
        return False
    after = peek(text, found.end())
    return stops(text, after) or text[after] == "]" or text[after] in COMMAS


def ended_before(text: str, at: int, place: Place, around: Around, inside: Inside) -> int | None:
    """Where the string had ended already if the quote at `at` opens the next one; or None.

    The position returned is the end of the string's text, and the reader goes on from there.
    """
    if place is Place.KEY:
        found = _KEY_TEXT.match(text, inside.begin, at)
        return found.end() if found else None
    if place is Place.FIELD:
        return _field_ended_before(text, at, around, inside)
    return None if inside.quotes else _before_comma(text, at, inside)


def _field_ended_before(text: str, at: int, around: Around, inside: Inside) -> int | None:
    if inside.braces <= 0 and _KEY_OPENS.match(text, at):
        before = text[at - 1]
        if before.isalnum() or before in ".!?":
            return at  # ...cher"rating": 4
        end = _before_comma(text, at, inside)
        if end is not None:
            return end
    start = max(inside.begin, at - _TAIL)
    found = _KEY_IN_TAIL.search(text[start:at])
    string = WHOLE_STRING.match(text, at)
    if found is None or string is None or stops(text, string.end()):
        return None
    whole = ends(text, string.end() - 1, Place.FIELD, around, Inside(at + 1))
    return start + found.start() if whole else None


def _before_comma(text: str, at: int, inside: Inside) -> int | None:
    """The position of the comma, or of the line end, right before `at`."""
    start = max(inside.begin, at - _TAIL)
    head = text[start:at]
    bare = head.rstrip()
    if bare.endswith(","):
        line = _CLOSING_LINES.search(bare) if inside.braces < 0 else None
        return start + (line.start() if line else len(bare) - 1)
    return start + len(bare) if "\n" in head[len(bare) :] else None
