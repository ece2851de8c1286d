"""Identifiers that are hidden as a whole: addresses, organizations, other texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .person_names import stands_out
from .vocabulary import ALWAYS_CAPITAL, COMMON, TOKEN, Hit, Scan, Vocabulary, fold
from .whole_values import WholeValues

_FARTHEST = 4  # characters between two words of a phrase
_SHORTEST_PLACE = 3
_SHORTEST_CODE = 4
_SHORTEST_STREET = 6
_ABBREVIATED = {
    "strasse": ("str",),
    "straat": ("str",),
    "street": ("st", "str"),
    "avenue": ("ave", "av"),
    "avenida": ("av", "avda"),
    "road": ("rd",),
    "lane": ("ln",),
    "drive": ("dr",),
    "boulevard": ("blvd", "bd"),
    "platz": ("pl",),
    "ulica": ("ul",),
    "sokak": ("sok", "sk"),
    "sokagi": ("sok", "sk"),
    "caddesi": ("cad", "cd"),
    "mahallesi": ("mah", "mh"),
}
_PIECES = re.compile(r"[,;\n]")


@dataclass(frozen=True, repr=False)
class Phrase:
    """Words in their base form, with the kind and the number that their marks have."""

    bases: tuple[str, ...]
    kind: str
    number: int

    @property
    def is_place(self) -> bool:
        """Whether it is of an address or an organization, and not exactly what to hide."""
        return self.kind == "PLACE"


class Phrases:
    """All phrases, and where they stand in a text."""

    def __init__(self, vocabulary: Vocabulary, values: WholeValues) -> None:
        self._vocabulary = vocabulary
        self._values = values
        self._by_first: dict[str, list[Phrase]] = {}
        self.counts: dict[str, int] = {}
        self._known: dict[tuple[str, ...], tuple[str, int]] = {}

    def add(self, kind: str, text: str) -> None:
        """Adds a phrase; the same words have one number."""
        words = TOKEN.findall(text)
        bases = tuple(map(fold, words))
        if not bases:
            return
        if bases not in self._known:
            number = self.counts.get(kind, 0) + 1
            self.counts[kind] = number
            self._add_words(kind, words, number)
        # A city may be a common word: Reading, Essen.
        if len(words) > 1 or kind != "PLACE":
            self._values.add(*self._known[bases], text)

    def _add_words(self, kind: str, words: list[str], number: int) -> None:
        bases = tuple(map(self._vocabulary.add, words))
        if bases in self._known:
            return
        self._known[bases] = (kind, number)
        for base in bases:
            for ending, abbreviations in _ABBREVIATED.items():
                if base.endswith(ending):
                    stem = base.removesuffix(ending)
                    for abbreviation in abbreviations:
                        self._vocabulary.add_form(stem + abbreviation, base)
        phrases = self._by_first.setdefault(bases[0], [])
        phrases.append(Phrase(bases, kind, number))
        phrases.sort(key=lambda phrase: -len(phrase.bases))

    def add_address(self, address: str) -> None:
        """Adds an address: its lines, and of each the street without its number and the city."""
        pieces = _PIECES.split(address)
        for piece in pieces:
            self.add("PLACE", piece)
            words = TOKEN.findall(piece)
            known = self._known.get(tuple(map(fold, words)))
            if known is None or len(words) == 1:
                continue
            _, number = known
            letters = [word for word in words if not word.isdigit() and len(word) > 1]
            if _says_where(letters):
                self._add_words("PLACE", letters, number)
            for word in words:
                if word.isdigit() and len(word) > _SHORTEST_CODE:  # a postal code
                    self._add_words("PLACE", [word], number)
        # All of it is a writing of its first line.
        known = self._known.get(tuple(map(fold, TOKEN.findall(pieces[0]))))
        if known is not None and len(pieces) > 1:
            self._values.add(*known, address)

    def find(self, scan: Scan) -> Iterator[tuple[int, int, str, int]]:
        """The places of a text that have a phrase: start, end, kind and number."""
        hits = scan.hits
        for index, hit in enumerate(hits):
            match = self._match_at(scan.text, hits, index)
            if match is not None:
                last = hits[index + len(match.bases) - 1]
                yield hit.start, last.end, match.kind, match.number

    def _match_at(self, text: str, hits: list[Hit], index: int) -> Phrase | None:
        for base in hits[index].bases:
            for phrase in self._by_first.get(base, ()):
                candidates = hits[index : index + len(phrase.bases)]
                if _matches(text, candidates, phrase):
                    return phrase
        return None


def _says_where(words: list[str]) -> bool:
    """Whether the words of a line without its numbers still say where it is."""
    if len(words) == 1:
        word = fold(words[0])
        return len(word) >= _SHORTEST_STREET and word not in COMMON
    return any(fold(word) not in COMMON for word in words)


def _matches(text: str, hits: list[Hit], phrase: Phrase) -> bool:
    if len(hits) < len(phrase.bases):
        return False
    for hit, base in zip(hits, phrase.bases, strict=True):
        if base not in hit.bases:
            return False
        if hit.is_inflected and not (phrase.is_place and hit.is_capital):
            return False
    for index in range(1, len(hits)):
        gap = text[hits[index - 1].end : hits[index].start]
        if len(gap) > _FARTHEST or TOKEN.search(gap):
            return False
    if len(hits) == 1 and phrase.is_place:
        return _is_place(text, hits[0])
    return True


def _is_place(text: str, hit: Hit) -> bool:
    """Whether one word alone is a place: Essen is a city, and a meal."""
    if hit.form.isdigit():
        return True
    is_common = hit.form in COMMON or hit.form in ALWAYS_CAPITAL
    if is_common or len(hit.form) < _SHORTEST_PLACE:
        return stands_out(text, hit)
    return True
