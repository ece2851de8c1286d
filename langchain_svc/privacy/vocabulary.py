"""The words of all identifiers, and where forms of them stand in a text."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from .spelling import TOKEN, fold, inflections, spellings

# So many are looked for one by one, which is faster than all words of a text.
_FEW_WORDS = 24


@dataclass(frozen=True, repr=False)
class Hit:
    """A word of a text that is a form of some word of an identifier.

    Attributes:
        start: Where the word starts in the text.
        end: Where it ends.
        spelling: The word as the text has it.
        form: The word in its base form.
        bases: The words of identifiers that it may be a form of.
        is_inflected: Whether it has an ending that those words do not have.
    """

    start: int
    end: int
    spelling: str
    form: str
    bases: frozenset[str]
    is_inflected: bool

    @property
    def is_capital(self) -> bool:
        """Whether the word is written with a capital letter."""
        return self.spelling[0].isupper()


@dataclass(frozen=True, repr=False)
class Scan:
    """A text, its different words, and the hits among them in the order of the text."""

    text: str
    words: Collection[str]
    hits: list[Hit]


class Vocabulary:
    """All forms of the words of all identifiers, with the words that they are forms of."""

    def __init__(self, languages: Collection[str]) -> None:
        self._languages = languages
        self._bases: set[str] = set()
        self._forms: dict[str, set[str]] = {}
        self._inflected: dict[str, set[str]] = {}

    def add(self, word: str) -> str:
        """Adds a word with its transcriptions and endings; returns its base form."""
        base = fold(word)
        if base in self._bases:
            return base
        self._bases.add(base)
        for spelling in spellings(word):
            self.add_form(spelling, base)
            for form in inflections(spelling, self._languages):
                self._inflected.setdefault(form, set()).add(base)
        return base

    def add_form(self, form: str, base: str) -> None:
        """Adds a form in which a word is written, such as its abbreviation."""
        self._forms.setdefault(form, set()).add(base)

    def scan(self, text: str) -> Scan:
        """The places of a text that have a form of any word."""
        words = set(TOKEN.findall(text))
        entries: dict[str, tuple[str, frozenset[str], bool]] = {}
        for word in words:
            form = fold(word)
            if form in self._forms:
                bases = self._forms[form]
                entries[word] = (form, frozenset(bases), False)
            elif form in self._inflected:
                bases = self._inflected[form]
                entries[word] = (form, frozenset(bases), True)
        if not entries:
            return Scan(text, words, [])
        hits = [
            Hit(start, start + len(word), word, *entries[word])
            for start, word in _places(text, entries)
        ]
        return Scan(text, words, hits)


def _places(text: str, words: Collection[str]) -> list[tuple[int, str]]:
    """Where these words stand in a text, in its order."""
    if len(words) > _FEW_WORDS:
        tokens = TOKEN.finditer(text)
        return [(token.start(), token[0]) for token in tokens if token[0] in words]
    places: list[tuple[int, str]] = []
    for word in words:
        start = text.find(word)
        while start >= 0:
            end = start + len(word)
            token = TOKEN.match(text, start, end + 1)  # it may be very long
            ends_here = token is not None and token.end() == end
            goes_back = start > 0 and TOKEN.fullmatch(text, start - 1, start + 1)
            if ends_here and not goes_back:
                places.append((start, word))
            start = text.find(word, end)
    places.sort()
    return places
