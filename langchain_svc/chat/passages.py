"""Documents as numbered passages, and where a quote stands in them. Pure.

A quote is looked up as whole words in a folded text. Folding levels what a copy changes without
changing what is said: white space, case, compatibility forms of letters (ligatures, full width),
quotation marks, soft hyphens, and hyphens inside words, which a line break may add or drop. It
keeps digits, signs and decimal marks, because 2.5 mg is not 25 mg. Each folded character knows the
characters of the original that it stands for, so a place is always one of the original text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from .._text import normalized

# Quotation marks differ between a text and its copy, and some languages put spaces inside.
_QUOTES = frozenset("\"'`´‘’‚‛“”„‟«»‹›「」『』")
_APOSTROPHES = frozenset("'’‛`´")
# Soft hyphen, zero width.
_INVISIBLE = frozenset("\u00ad\u200b\u200c\u200d\u2060\ufeff")
_DASHES = frozenset("-‐‑‒–—―−﹣－")
_MARKS_OF_A_NUMBER = frozenset(".,+-/:%°")
# Scripts that put no space between words: there a quote may begin anywhere.
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff]"
)
# Behind the hyphen of a broken word.
_LINE_BREAK = re.compile(r"[ \t]{0,40}\r?\n\s{0,200}")
_NUMBER = re.compile(r"\d+(?:[.,\u00a0\u202f' ]\d{3})*(?:[.,]\d+)?")
_CLUSTER = re.compile(
    r"(\s+)|(.[\u0300-\u036f\u0483-\u0487\u064b-\u065f\u3099\u309a]*)", re.DOTALL
)


@dataclass(frozen=True)
class Folded:
    """A folded text; `begins` and `ends` are the places of each character in the original."""

    text: str
    begins: Sequence[int]
    ends: Sequence[int]


def fold(text: str) -> Folded:
    """The folded form of a text, in time linear in its length."""
    characters: list[str] = []
    begins: list[int] = []
    ends: list[int] = []
    for folded, begin, end in _folded_clusters(text):
        for character in folded:
            characters.append(character)
            begins.append(begin)
            ends.append(end)
    return Folded("".join(characters), begins, ends)


def _folded_clusters(text: str) -> Iterator[tuple[str, int, int]]:
    """What each cluster of a text comes to, with its place; what is dropped is left out."""
    previous = ""
    skip_to = 0
    for match in _CLUSTER.finditer(text):
        begin, end = match.span()
        if begin < skip_to:
            continue
        if match[1]:
            folded = "" if previous in ("", " ") else " "
        elif text[begin] in _DASHES:
            folded, skip_to = _folded_dash(text, begin, end)
        else:
            folded = _folded_letter(text, begin, match[0])
        if folded:
            yield folded, begin, max(end, skip_to)
            previous = folded[-1]


def _folded_letter(text: str, begin: int, cluster: str) -> str:
    character = cluster[0]
    if character in _INVISIBLE:
        return ""
    if character in _QUOTES:
        return _folded_quote(text, begin)
    # A superscript is no digit of the number before it: 10² is not 102.
    if unicodedata.category(character) == "No":
        return cluster
    return normalized("NFKC", cluster).casefold()


def _folded_quote(text: str, begin: int) -> str:
    """An apostrophe inside a word stays, and so does a mark behind a digit: 5' is a length."""
    before = text[begin - 1 : begin]
    after = text[begin + 1 : begin + 2]
    if before.isdigit():
        return text[begin]
    if text[begin] in _APOSTROPHES and before.isalpha() and after.isalpha():
        return "'"
    return ""


def _folded_dash(text: str, begin: int, end: int) -> tuple[str, int]:
    """A dash, and where the text goes on: a word may be broken behind its hyphen.

    A hyphen between letters is dropped, with the line break behind it. Elsewhere it may be a sign.
    """
    broken = _LINE_BREAK.match(text, end)
    goes_on_at = broken.end() if broken else end
    before = text[begin - 1 : begin]
    after = text[goes_on_at : goes_on_at + 1]
    if before.isalpha() and after.isalpha():
        return "", goes_on_at
    if before.isalnum() and after.isalnum():
        return "-", goes_on_at
    return "-", end


@dataclass(frozen=True)
class Place:
    """Where a quote stands: in which passage, and between which characters of its text."""

    passage: Passage
    begin: int
    end: int

    @property
    def text(self) -> str:
        """The quote as the document has it."""
        return self.passage.text[self.begin : self.end]


@dataclass(frozen=True)
class Passage:
    """One document, with the number by which the model cites it.

    Attributes:
        number: Counted from 1.
        text: What it says.
        metadata: `title`, `url` or `source`, `page`: what a citation tells of it.
    """

    number: int
    text: str
    metadata: Mapping[str, object]

    @property
    def title(self) -> str | None:
        """Its title, if it has one."""
        return self._named("title")

    @property
    def url(self) -> str | None:
        """Its address, or else where its metadata says it comes from."""
        return self._named("url") or self._named("source")

    def _named(self, key: str) -> str | None:
        value = self.metadata.get(key)
        return value if isinstance(value, str) and value else None

    @cached_property
    def _folded(self) -> Folded:
        return fold(self.text)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The numbers that the text holds."""
        return frozenset(numbers_in(self.text))

    def find(self, quote: str) -> Place | None:
        """The first place of a quote, which must begin and end with whole words."""
        needle = fold(quote.strip()).text.strip(" .,;:…")
        if not any(character.isalnum() for character in needle):
            return None
        text = self._folded.text
        begin = text.find(needle)
        while begin >= 0:
            end = begin + len(needle)
            if _is_border(text, begin) and _is_border(text, end):
                return Place(
                    self, self._folded.begins[begin], self._folded.ends[end - 1]
                )
            begin = text.find(needle, begin + 1)
        return None


class Passages:
    """The passages that one answer may cite."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.all = tuple(passages)
        self._by_number = {passage.number: passage for passage in passages}

    def find(self, quote: str, number: int | None) -> Place | None:
        """Where a quote stands: in the passage that is named, or else in the first that has it."""
        named = self._by_number.get(number or 0)
        if named is not None:
            place = named.find(quote)
            if place is not None:
                return place
        for passage in self.all:
            if passage is not named:
                place = passage.find(quote)
                if place is not None:
                    return place
        return None


def numbers_in(text: str) -> list[str]:
    """The numbers of a text in one form: digits and the decimal mark, as they stand."""
    return [re.sub(r"[\u00a0\u202f' ]", "", match) for match in _NUMBER.findall(text)]


def _is_border(text: str, at: int) -> bool:
    """Whether a word, or a number, may begin or end between two characters of a folded text."""
    before = text[at - 1 : at]
    after = text[at : at + 1]
    if not before or not after:
        return True
    if before.isalnum() and after.isalnum():
        return bool(_UNSPACED.match(before) or _UNSPACED.match(after)) and not (
            before.isdigit() and after.isdigit()
        )
    return not _cuts_a_number(text, at)


def _cuts_a_number(text: str, at: int) -> bool:
    """Whether a border takes a sign or a decimal mark from the digits beside it."""
    before = text[at - 1]
    after = text[at]
    if before in _MARKS_OF_A_NUMBER and after.isdigit():
        further = text[at - 2 : at - 1]
        return further.isdigit() or before in "+-"
    if before.isdigit() and after in ".,/:":
        return text[at + 1 : at + 2].isdigit()
    return before.isdigit() and after in "%°"
