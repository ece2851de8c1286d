"""Strings: any quotes, raw line ends, inner quotes, forgotten quotes, and strings cut off."""

# ruff: noqa: RUF001 - what models write has such characters

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from .endings import Around, Inside, Place, Scalar, ended_before, ends, structure_at
from .escapes import unescape
from .marks import CLOSERS, QUOTES, peek

_TRIPLES = ('"""', "'''", "```")
_LABEL = re.compile(r"[^\n`]{0,60}\n")
_DOUBLED = re.compile(r"(\"\"|'')(?=[^\s,:}\]\"'])([^\"'\n]{1,300})([\"']{1,2})")
_MOST_TRIPLES = 20
_TAG = re.compile(r"</[A-Za-z][\w-]*>\Z|<[|｜][^<>]*>\Z")
_LONGEST_TAG = 40
_RAW = re.compile(r"[\x00-\x1f]")
_SEARCHES = {quote: re.compile(f"[{re.escape(ends)}\\\\]") for quote, ends in QUOTES.items()}
_ESCAPED_QUOTE = re.compile(r'\\+"')


def begins_string(text: str, at: int) -> bool:
    r"""Whether a string begins at `at`, with a quote or, escaped once too often, with \"."""
    return text[at] in QUOTES or text.startswith('\\"', at)


def read_string(text: str, at: int, place: Place, around: Around) -> Scalar | None:
    """The string that begins at `at`; None if these backticks are the fence around the JSON.

    Args:
        text: The whole text.
        at: Where the opening quote stands.
        place: Whether it is a key, a field's value or a list's item.
        around: The open containers.
    """
    if text[at] == "\\":
        return _escaped_once_more(text, at)
    if place in (Place.FIELD, Place.ITEM) and text.startswith(_TRIPLES, at):
        triple = _triple(text, at, around)
        if triple or text[at] == "`":
            return triple
    doubled = _DOUBLED.match(text, at)
    if doubled and (structure_at(text, doubled.end()) or place is Place.KEY):
        return Scalar(unescape(doubled[2])[0], doubled.end(), 1)
    inside = Inside(at + 1)
    end, resume = _find_end(text, place, around, inside, _SEARCHES[text[at]])
    repairs = inside.quotes + (text[at] != '"')
    if end is None:
        return _unterminated(text, around.closers, inside, repairs)
    raw = text[at + 1 : end]
    value, odd = unescape(raw)
    repairs += odd + bool(_RAW.search(raw)) + (resume != end + 1)
    return Scalar(value, resume, repairs)


def _find_end(
    text: str, place: Place, around: Around, inside: Inside, search: re.Pattern[str]
) -> tuple[int | None, int]:
    """Where the string's text ends and where reading goes on; (None, …) if it does not end."""
    at = seen = inside.begin
    while found := search.search(text, at):
        mark = found.start()
        if found[0] == "\\":
            at = mark + 2
            continue
        inside.braces += text.count("{", seen, mark) - text.count("}", seen, mark)
        seen = mark
        if ends(text, mark, place, around, inside):
            return mark, mark + 1 + _is_doubled(text, mark)
        before = ended_before(text, mark, place, around, inside)
        if before is not None:
            return before, before
        inside.quotes += 1
        inside.last = mark
        at = mark + 1
    return None, len(text)


def _is_doubled(text: str, mark: int) -> bool:
    """Whether one quote too many follows a closing quote: "value"", or ""value""."""
    return text.startswith(text[mark], mark + 1) and structure_at(text, mark + 2)


def _unterminated(text: str, closers: Sequence[str], inside: Inside, repairs: int) -> Scalar:
    """A string with no end: its closing quote was forgotten, or the text was cut off in it."""
    begin = inside.begin
    body = _without_tail(text[begin:])
    kept = _without_closers(body, closers)
    if kept is None:
        value, odd = unescape(body, cut=True)
        return Scalar(value, len(text), repairs + odd + 1, cut=True, lost=True)
    end = resume = begin + len(kept)
    if inside.quotes % 2:  # one of them was its end, and junk follows
        end, resume = inside.last, inside.last + 1
    value, odd = unescape(text[begin:end])
    return Scalar(value, resume, repairs + odd + 1, lost=True)


def _without_tail(raw: str) -> str:
    """The text without the fence, or the tag, that closes what the JSON was in."""
    kept = raw.rstrip()
    bare = kept.rstrip("`")
    if len(kept) - len(bare) > 2:  # noqa: PLR2004 - three backticks or more
        return bare.rstrip()
    tag = _TAG.search(kept[-_LONGEST_TAG:])
    return kept[: len(kept) - len(tag[0])].rstrip() if tag else raw


def _without_closers(raw: str, closers: Sequence[str]) -> str | None:
    """The string without the closing brackets at its end, if they close all that is open."""
    kept = raw.rstrip()
    for closer in closers:
        if not kept.endswith(closer) or kept.count(closer) <= kept.count(_OPENS[closer]):
            return None
        kept = kept[:-1].rstrip()
    return kept


_OPENS = {"}": "{", "]": "[", ")": "("}


def _triple(text: str, at: int, around: Around) -> Scalar | None:
    """A string in triple quotes, as in Python; None if these are no triple quotes."""
    mark = text[at : at + 3]
    begin = at + 3
    end = _triple_end(text, begin, mark, around)
    if end is None:
        return None
    if mark == "```":
        label = _LABEL.match(text, begin)
        begin = label.end() - 1 if label else begin
    inside = text[begin:end]
    if inside.startswith("\n"):  # a block of its own: as written, without the margin
        inside = textwrap.dedent(inside[1:]).rstrip()
    value, odd = unescape(inside)
    return Scalar(value, end + 3, odd + 1)


def _triple_end(text: str, begin: int, mark: str, around: Around) -> int | None:
    """Where the triple quotes stand that end the string: the first with structure after them."""
    end = text.find(mark, begin)
    for _ in range(_MOST_TRIPLES):
        if end < 0:
            return None
        while text.startswith(mark[0], end + 3):  # a quote of the text itself, before the three
            end += 1
        after = peek(text, end + 3)
        stray = text[after : after + 1] in CLOSERS and not around.closes(text[after])
        if structure_at(text, after) and not stray:
            return end
        end = text.find(mark, end + 3)
    return None


def _escaped_once_more(text: str, at: int) -> Scalar:
    r"""A string between \" and \", as in JSON that was encoded twice but for its outer quotes."""
    begin = at + 2
    for found in _ESCAPED_QUOTE.finditer(text, begin):
        if len(found[0]) == 2:  # noqa: PLR2004 - one backslash and the quote
            value, odd = unescape(unescape(text[begin : found.start()])[0])
            return Scalar(value, found.end(), odd + 1)
    value, odd = unescape(unescape(text[begin:], cut=True)[0], cut=True)
    return Scalar(value, len(text), odd + 1, cut=True)
