"""Finding what concerns the parser in prose: whole markers, and the beginning of one at the end.

Prose is searched at the speed of `re`. Where a text that may go on ends in the beginning of a
marker, that much of it, and no more, is held back.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

from .formats import ENDINGS, LINE_STARTS, NOISE, READERS, REASONING, REASONING_ENDS

# An object whose first key may follow, or whose brace is doubled.
_OBJECT = r"\{(?=\s*(?:\{\s*)?(?:[\"'“”‘’`/#\w]|\Z))"
_OTHERS = (
    r"(?P<ticks>`+)"
    rf"|(?P<json>{_OBJECT}|\[(?=\s*(?:{_OBJECT}|[/#A-Za-z_]|\Z)))"
    r"|<(?P<element>[A-Za-z_][\w.-]*)>"
)


class Markers:
    """Some literal markers, those among them that count at the beginning of a line only, and more.

    Args:
        plain: Markers that count anywhere.
        line_starts: Markers that count at the beginning of a line.
        others: Patterns beside them.
    """

    def __init__(
        self, plain: Collection[str], line_starts: Collection[str] = (), others: str = ""
    ) -> None:
        # Looking back from after the first letter, instead of before it, keeps the search fast.
        words = [re.escape(word) for word in plain]
        for word in line_starts:
            first = re.escape(word[0])
            words.append(rf"{first}(?<![^\n]{first}){re.escape(word[1:])}")
        self._pattern = re.compile(f"(?P<marker>{'|'.join(words)})" + (others and f"|{others}"))
        self._beginnings = _beginnings(plain)
        self._line_beginnings = _beginnings(line_starts)
        self._longest = max(map(len, [*plain, *line_starts]))

    def search(self, text: str, at: int) -> re.Match[str] | None:
        """The first marker from `at` on."""
        return self._pattern.search(text, at)

    def beginning(self, text: str, at: int) -> int:
        """Where the text from `at` on ends in the beginning of a marker; its end if it does not."""
        for start in range(max(at, len(text) - self._longest), len(text)):
            tail = text[start:]
            if tail in self._beginnings or (
                tail in self._line_beginnings and text[start - 1 : start] in ("", "\n")
            ):
                return start
        return len(text)


def _beginnings(words: Collection[str]) -> frozenset[str]:
    return frozenset(word[:end] for word in words for end in range(1, len(word)))


@lru_cache(maxsize=1)
def openers() -> Markers:
    """What may concern the parser in prose.

    A match has one of the groups `marker`; `ticks`, backticks; `json`, a bracket that may begin
    JSON or a list of calls; and `element`, the name of any element without attributes.
    """
    markers = {*READERS, *NOISE, *REASONING, *REASONING_ENDS, *ENDINGS}
    return Markers(markers - LINE_STARTS, LINE_STARTS, _OTHERS)


@lru_cache(maxsize=1)
def code_ends() -> Markers:
    """What may end a fence of code; thoughts may leave one open."""
    return Markers(REASONING_ENDS, others="(?P<ticks>`+)")


@lru_cache(maxsize=len(REASONING))
def thought_end(closer: str) -> Markers:
    """What ends a thought."""
    return Markers([closer])
