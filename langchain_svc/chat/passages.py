"""Documents as numbered passages, and where a quote stands in them. Pure.

A quote is looked up by its words and numbers in order (`words.py`), in each passage, and then over
the border of two passages of which one goes on in the other, as chunks of one document do.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from .sentences import sentence_ends
from .words import Words, quotes_of, words_of

# Chunks of one document go on in one another where so many words and signs are in both, or where
# their places in it say so.
_WORDS_IN_COMMON = 4
_SIGNS_IN_COMMON = 20
_WIDEST_GAP = 2  # white space that a splitter takes from between two chunks


@dataclass(frozen=True)
class Place:
    """Where a quote stands: in which passage, and between which characters of its text.

    `rest` is where it goes on, if it begins in one passage and ends in the next.
    """

    passage: Passage
    begin: int
    end: int
    rest: Place | None = None

    @property
    def text(self) -> str:
        """The quote as the document has it; of one that goes on, the part in this passage."""
        return self.passage.text[self.begin : self.end]

    @property
    def parts(self) -> Sequence[Place]:
        """The place, and that of its rest."""
        return [self] if self.rest is None else [self, *self.rest.parts]

    @property
    def sentences(self) -> str:
        """What the passage says there, in whole sentences."""
        ends = self.passage.sentence_ends
        begin = ends[bisect_right(ends, self.begin) - 1]
        end = ends[bisect_left(ends, self.end)]
        said = self.passage.text[begin:end]
        if self.rest is None:
            return said
        # The end of a chunk may cut a sentence, and the overlap is told twice: once is enough.
        rest = self.rest
        end = rest.passage.sentence_ends[
            bisect_left(rest.passage.sentence_ends, rest.end)
        ]
        return f"{self.passage.text[begin : self.end]} {rest.passage.text[rest.begin : end]}"


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
    def start(self) -> int | None:
        """Where it begins in its document, if a splitter has noted it."""
        value = self.metadata.get("start_index")
        return value if isinstance(value, int) and value >= 0 else None

    @cached_property
    def words(self) -> Words:
        """What quotes are looked up in."""
        return words_of(self.text)

    @cached_property
    def sentence_ends(self) -> Sequence[int]:
        """Where its sentences end, with its begin and its end."""
        return [0, *sentence_ends(self.text, wrapped=True), len(self.text)]

    def find(self, quote: str) -> Place | None:
        """The first place of a quote."""
        places = map(self.place_of, quotes_of(quote))
        return next((place for place in places if place is not None), None)

    def place_of(self, quote: Words) -> Place | None:
        """The first place of a quote's words."""
        found = self.words.find(quote)
        return self.place(*found) if found is not None else None

    def place(self, first: int, end: int) -> Place:
        """The place of a range of its words."""
        words = self.words.words
        return Place(self, words[first].begin, words[end - 1].end)


class _Joint(NamedTuple):
    """Two passages of one document, of which the first goes on in the second."""

    before: Passage
    after: Passage
    overlap: int  # how many words of the second the first has, too

    def place_of(self, quote: Words) -> Place | None:
        """The place of a quote that begins in the first and ends in the second."""
        old = self.before.words.words
        new = self.after.words.words[self.overlap :]
        length = len(quote.words)
        first = max(0, len(old) - length)
        found = Words([*old[first:], *new[:length]]).find(quote)
        if found is None:
            return None
        begin, end = found[0] + first, found[1] + first
        if not begin < len(old) < end:
            return None
        rest = self.after.place(self.overlap, self.overlap + end - len(old))
        place = self.before.place(begin, len(old))
        return Place(self.before, place.begin, place.end, rest)


class Passages:
    """The passages that one answer may cite."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.all: tuple[Passage, ...] = tuple(passages)
        self._by_number = {passage.number: passage for passage in passages}

    def find(self, quote: str, number: int | None = None) -> Place | None:
        """Where a quote stands: in the passage that is named, or else in the first that has it."""
        named = self._by_number.get(number or 0)
        first = [named] if named is not None else []
        needles = [*quotes_of(quote)]
        for sought in self._sought(first):
            for needle in needles:
                place = sought.place_of(needle)
                if place is not None:
                    return place
        return None

    def _sought(self, first: Sequence[Passage]) -> Iterator[Passage | _Joint]:
        """Where quotes may stand; the joints are sought only if no passage has one."""
        yield from first
        yield from self.all
        yield from self._joints

    @cached_property
    def _joints(self) -> Sequence[_Joint]:
        return [*_joints(self.all)]


def _joints(passages: Sequence[Passage]) -> Iterator[_Joint]:
    """Which passages go on in which."""
    by_begin: dict[object, list[Passage]] = {}
    for passage in passages:
        for key in _begins(passage):
            by_begin.setdefault(key, []).append(passage)
    for passage in passages:
        followers = {
            other.number: other
            for key in _continuations(passage)
            for other in by_begin.get(key, ())
            if other is not passage
        }
        for other in followers.values():
            overlap = _overlap(passage.words.keys, other.words.keys)
            if overlap is not None or _adjoin(passage, other):
                yield _Joint(passage, other, overlap or 0)


def _begins(passage: Passage) -> Iterator[object]:
    """By what the passage before one knows it: its first words, or the place where it begins."""
    keys = passage.words.keys
    if passage.url is not None and keys:
        yield passage.url, tuple(keys[:_WORDS_IN_COMMON])
        yield passage.url, passage.start


def _continuations(passage: Passage) -> Iterator[object]:
    """How a passage may begin in which one goes on."""
    keys = passage.words.keys
    if passage.url is not None:
        for first in range(len(keys) - _WORDS_IN_COMMON + 1):
            yield passage.url, tuple(keys[first : first + _WORDS_IN_COMMON])
        if passage.start is not None:
            end = passage.start + len(passage.text)
            yield from ((passage.url, end + gap) for gap in range(_WIDEST_GAP + 1))


def _adjoin(before: Passage, after: Passage) -> bool:
    """Whether their places in their document say that the second follows on the first."""
    if before.start is None or after.start is None:
        return False
    return 0 <= after.start - before.start - len(before.text) <= _WIDEST_GAP


def _overlap(before: Sequence[str], after: Sequence[str]) -> int | None:
    """With how many words one text ends and the other begins, if they are enough to be no chance.

    By the failure function of Knuth, Morris and Pratt, so in time linear in both.
    """
    keys: list[str | None] = [*after, None, *before]
    lengths = [0] * len(keys)
    for at in range(1, len(keys)):
        length = lengths[at - 1]
        while length and keys[at] != keys[length]:
            length = lengths[length - 1]
        lengths[at] = length + (keys[at] == keys[length])
    length = lengths[-1]
    if length < _WORDS_IN_COMMON or sum(map(len, after[:length])) < _SIGNS_IN_COMMON:
        return None
    return length
