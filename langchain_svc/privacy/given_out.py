"""The writings that were restored, and so have left with their names: they are hidden first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from threading import Lock

# A shorter writing is hidden as a word of its own only: "Ha" stands in "Haemoglobin", and "12" in
# "120 mg". In scripts without spaces, two letters are a name.
_LEAST = 4
_UNSPACED = re.compile("[\u2e80-\u9fff\uac00-\ud7ff\uf900-\ufaff]")


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
    return letters + len(_UNSPACED.findall(writing))
