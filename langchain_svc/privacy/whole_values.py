"""Values as they are: those of the record, and the writings that were given out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from threading import Lock
from typing import NamedTuple

_SHORTEST_IN_ANY_CASE = 4

# Scripts that put no blanks between words, or endings behind them: each letter is a word.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f"
    "\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_INSIDE_WORD = re.compile(rf"[^\W_{_UNSPACED}]{{2}}")
_ONLY_UNSPACED = re.compile(rf"[{_UNSPACED}\s]+")


class _Whose(NamedTuple):
    """The kind and the number of a value's marks."""

    kind: str
    number: int


class WholeValues:
    """All values, and where they stand in a text, apart from letters and digits beside them."""

    def __init__(self) -> None:
        self._any_case: dict[str, _Whose] = {}
        self._as_written: dict[str, _Whose] = {}
        # By a value's first word: how many signs stand before it, and the value's length.
        self._shapes: dict[str, list[tuple[int, int]]] = {}

    def add(self, kind: str, number: int, value: str) -> None:
        """Adds a value; a short one, and one that is a single word, is found as it is written."""
        value = value.strip()
        small = _small(value)
        first = _WORD.search(small)
        if first is None:
            return
        signs = sum(map(str.isalnum, value))
        is_word = len(first[0]) == len(value) and value.isalpha()
        if is_word or signs < _SHORTEST_IN_ANY_CASE:
            self._as_written.setdefault(value, _Whose(kind, number))
        else:
            self._any_case.setdefault(small, _Whose(kind, number))
        shapes = self._shapes.setdefault(first[0], [])
        shape = (first.start(), len(value))
        if shape not in shapes:
            shapes.append(shape)
            shapes.sort(key=lambda shape: -shape[1])

    def add_name(self, number: int, name: str) -> None:
        """Adds a person's name if it is more than one word: May alone is a month, too."""
        if len(_WORD.findall(name)) > 1:
            self.add("PERSON", number, name)
            if _ONLY_UNSPACED.fullmatch(name):
                self.add("PERSON", number, "".join(name.split()))

    def find(self, text: str) -> Iterator[tuple[int, int, str, int]]:
        """The places of a text that have a value: start, end, kind and number."""
        if not self._shapes:
            return
        small = _small(text)
        last_end = 0
        for word in _WORD.finditer(small):
            for lead, length in self._shapes.get(word[0], ()):
                start = word.start() - lead
                end = start + length
                whose = self._whose(small[start:end], text[start:end])
                if whose is None or start < last_end:
                    continue
                if not _INSIDE_WORD.match(small, end - 1):
                    yield start, end, *whose
                    last_end = end
                    break

    def _whose(self, small: str, text: str) -> _Whose | None:
        whose = self._any_case.get(small)
        if whose is None and self._as_written:
            whose = self._as_written.get(text)
        return whose


def _small(text: str) -> str:
    """A text in small letters, each in its place."""
    return text.replace("\u0130", "i").lower().replace("\u03c2", "\u03c3")


# -- given out -------------------------------------------------------------------------------------
# The writings that were restored, and so have left with their names: they are hidden first.

# A shorter writing is hidden as a word of its own only: "Ha" stands in "Haemoglobin", and "12" in
# "120 mg". In scripts without spaces, two letters are a name.
_LEAST = 4
_UNSPACED_SCRIPTS = re.compile("[\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff]")


class GivenOut:
    """Finds writings exactly as they were given out, wherever they stand.

    A model writes endings, words and numbers right beside a mark, in which no finder of names would
    see one.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._writings: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, writings: Iterable[str]) -> None:
        """Remember what was restored."""
        new = {*writings} - self._writings
        if new:
            with self._lock:
                self._writings |= new
                self._pattern = None

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        """Where such a writing stands; of two that begin at one place, the longer."""
        if not self._writings:
            return
        with self._lock:
            pattern = self._pattern = self._pattern or _pattern_of(self._writings)
        for match in pattern.finditer(text):
            yield match.span()


def _pattern_of(writings: Iterable[str]) -> re.Pattern[str]:
    """The writings, longer ones first."""
    anywhere: list[str] = []
    alone: list[str] = []
    for writing in sorted(writings, key=len, reverse=True):
        kind = anywhere if _weight(writing) >= _LEAST else alone
        kind.append(re.escape(writing))
    patterns: list[str] = []
    if anywhere:
        patterns.append("|".join(anywhere))
    if alone:
        patterns.append(rf"(?<![^\W_])(?:{'|'.join(alone)})(?![^\W_])")
    return re.compile("|".join(patterns))


def _weight(writing: str) -> int:
    """Its letters and digits; in scripts without spaces each counts twice."""
    letters = sum(map(str.isalnum, writing))
    return letters + len(_UNSPACED_SCRIPTS.findall(writing))
