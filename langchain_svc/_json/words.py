"""What stands without quotes: numbers, literals of several languages, and bare words."""

# ruff: noqa: RUF001 - what models write has such characters

from __future__ import annotations

import math
import re
from typing import Any

from .endings import Around, Place, Scalar, field_follows, structure_at
from .marks import CLOSERS, COMMAS, QUOTES, VALUE_START, is_key, peek, stops

# NaN and the infinities are not JSON; "no value" is the nearest that JSON can say.
_LITERALS: dict[str, Any] = {
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
    "null": None,
    "Null": None,
    "NULL": None,
    "None": None,
    "NaN": None,
    "nan": None,
    "Infinity": None,
    "+Infinity": None,
    "-Infinity": None,
    "undefined": None,
}
_JSON_WORDS = frozenset({"true", "false", "null"})

_STRICT = re.compile(r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?", re.ASCII)
_DIGITS = r"\d+(?:_\d+)*"
_LOOSE = re.compile(
    rf"[-+]?(?:(?!0\d){_DIGITS}(\.(?:{_DIGITS})?)?|(\.{_DIGITS}))([eE][+-]?\d+)?", re.ASCII
)


def literal(word: str) -> tuple[Any, int]:
    """What a word without quotes stands for, and how many repairs that took.

    A word that is neither a number nor a literal stands for itself. Numbers with leading zeros
    are such words: they are codes more often than numbers, and a schema that wants a number can
    still make one of them.
    """
    if word in _LITERALS:
        return _LITERALS[word], int(word not in _JSON_WORDS)
    value = number(word)
    if value is None:
        return word, 1
    if isinstance(value, float) and not math.isfinite(value):  # 1e999
        return None, 1
    return value, int(not _STRICT.fullmatch(word))


def number(word: str) -> int | float | None:
    """The number a word is, also in the ways of writing of other languages; None if it is none."""
    found = _LOOSE.fullmatch(word)
    if found is None:
        return None
    plain = word.replace("_", "")
    try:
        return float(plain) if any(found.groups()) else int(plain)
    except ValueError:  # more digits than this Python reads
        return None


_MARK = re.compile(r"\n\s*|[,;，；{}\])｝］】\"`<]|\s(?://|/\*|#\s|<!--)")
_SHORT = re.compile(r"(?:[-+.\d][\w.+-]*|true|false|null|True|False|None)(?![\w.+-])")


def read_word(text: str, at: int, place: Place, around: Around) -> Scalar:
    """The value without quotes that begins at `at`; it is at least one character long."""
    end = _word_end(text, at, place, around)
    token = text[at:end].strip()
    stray = token.endswith('"')
    value, repairs = literal(token.rstrip('"').rstrip() if stray else token)
    return Scalar(value, max(end, at + 1), repairs + stray, cut=end >= len(text))


def _word_end(text: str, at: int, place: Place, around: Around) -> int:
    short = _SHORT.match(text, at)
    if short and _next_begins(text, short.end(), place, around):
        return short.end()
    braces = 0  # opened inside the word
    for found in _MARK.finditer(text, at):
        mark = found.start()
        if text[mark] == "{" or (text[mark] == "}" and braces):
            braces += 1 if text[mark] == "{" else -1
        elif _ends_at(text, mark, place, around):
            return mark + (text[mark] == '"' and not is_key(text, mark))
    return len(text)


def _next_begins(text: str, at: int, place: Place, around: Around) -> bool:
    """Whether the next field or item begins behind a number or a literal, comma or not."""
    after = peek(text, at)
    if text[after : after + 1] in COMMAS:
        return text[(follows := peek(text, after + 1)) : follows + 1] in QUOTES
    if place is Place.ITEM:
        return after > at and VALUE_START.match(text, after) is not None
    return is_key(text, after, words=around.words)


def _ends_at(text: str, at: int, place: Place, around: Around) -> bool:
    """Whether the mark at `at` ends the word."""
    char = text[at]
    if char in COMMAS:
        return place is Place.ITEM or field_follows(text, at, around)
    if char in CLOSERS:
        return around.closes(char)
    if char == '"':  # it was forgotten at the beginning, or the next key begins
        return structure_at(text, at + 1) or is_key(text, at)
    if char in "`<":
        return stops(text, at)
    if char == "\n" and place is Place.FIELD:  # text without quotes may have several lines
        return structure_at(text, at) or is_key(text, peek(text, at), words=around.words)
    return True
