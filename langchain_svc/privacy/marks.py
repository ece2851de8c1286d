"""The marks that stand for identifiers, and the writings that they are restored to.

`[PERSON_1]` is the first writing of the first person, `[PERSON_1_2]` the second.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from threading import Lock

KINDS = ("PERSON", "DATE", "ID", "PHONE", "EMAIL", "PLACE", "TEXT")

# Models write a mark a little otherwise: [Person 1], PERSON_1, \[PERSON\_1\]. Without brackets it
# needs its underscore: "person 1" is English.
_KIND = "|".join(KINDS)
_LOOSE = r"(?:\\?[_ -])"
_NUMBERS = rf"(\d{{1,6}})(?:{_LOOSE}(\d{{1,6}}))?"
_IN_BRACKETS = rf"({_KIND}){_LOOSE}?{_NUMBERS}"
_BARE = rf"({_KIND})\\?_(\d{{1,6}})(?:\\?_(\d{{1,6}}))?"
_MARK = re.compile(
    rf"\\\[ ?{_IN_BRACKETS} ?\\\]|\[ ?{_IN_BRACKETS} ?\]|(?<!\w){_BARE}(?!\w)",
    re.IGNORECASE | re.ASCII,
)
_LOOKALIKE = re.compile(
    rf"\\?\[ ?{_IN_BRACKETS} ?\\?\]|{_BARE}", re.IGNORECASE | re.ASCII
)
# A text without any of these, in small letters, holds no mark: the patterns are slow on long texts.
_SIGNS = tuple(
    sign.format(kind.lower())
    for kind in KINDS
    for sign in ("{}_", "{}\\_", "[{}", "[ {}")
)
LONGEST_MARK = 48


def _beginnings(word: str) -> str:
    """A pattern for all beginnings of a word."""
    pattern = ""
    for letter in reversed(word):
        pattern = f"{letter}(?:{pattern})?"
    return pattern


_FIRST_LETTERS = "|".join(map(_beginnings, KINDS))
_UNFINISHED = re.compile(
    rf"""(?:
    \\?(?:\[\ ?(?:(?:{_KIND})[\\_\ \d-]{{0,20}}|{_FIRST_LETTERS})?)?
    |(?<!\w)(?:(?:{_KIND})(?:\\|\\?_[\\_\d]{{0,18}})?|{_FIRST_LETTERS})
    )\Z""",
    re.IGNORECASE | re.ASCII | re.VERBOSE,
)


def unfinished_mark(text: str) -> int:
    """Where at the end of a text a mark may have begun, or the text's length."""
    match = _UNFINISHED.search(text, max(0, len(text) - LONGEST_MARK))
    if match is None:
        return len(text)
    return match.start()


def lookalikes(text: str) -> Iterator[tuple[int, int]]:
    """The places of a text that look like a mark before any identifier is hidden."""
    if _may_have_marks(text):
        for match in _LOOKALIKE.finditer(text):
            yield match.span()


def _may_have_marks(text: str) -> bool:
    if "_" not in text and "[" not in text:
        return False
    small = text.lower()
    return any(sign in small for sign in _SIGNS)


class MarkTable:
    """The marks that were given out. One lock: threads may hide and restore at the same time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._marks: dict[tuple[str, int, str], str] = {}
        self._owners: dict[str, tuple[str, int]] = {}
        self._writings: dict[tuple[str, int], list[str]] = {}
        self._numbers: dict[tuple[str, str], int] = {}
        self._counts: dict[str, int] = {}

    def reserve(self, kind: str, number: int) -> None:
        """Keeps the numbers of a kind up to this one for the record's own identifiers."""
        self._counts[kind] = max(number, self._counts.get(kind, 0))

    def number_of(self, kind: str, key: str) -> int:
        """The number of a value that the record does not name; the same for the same key."""
        with self._lock:
            number = self._numbers.get((kind, key))
            if number is None:
                number = self._counts.get(kind, 0) + 1
                self._counts[kind] = number
                self._numbers[kind, key] = number
            return number

    def mark(self, kind: str, number: int, writing: str) -> str:
        """The mark of a writing."""
        with self._lock:
            mark = self._marks.get((kind, number, writing))
            if mark is None:
                writings = self._writings.setdefault((kind, number), [])
                writings.append(writing)
                mark = f"[{kind}_{number}]"
                if len(writings) > 1:
                    mark = f"[{kind}_{number}_{len(writings)}]"
                self._marks[kind, number, writing] = mark
                self._owners.setdefault(writing, (kind, number))
            return mark

    def owner(self, writing: str) -> tuple[str, int] | None:
        """The kind and the number that a writing was marked with; None if it never was."""
        return self._owners.get(writing)

    def restored(self, text: str, start: int = 0) -> Iterable[tuple[int, int, str]]:
        """The marks of a text that were given out: start, end and the writing."""
        if not _may_have_marks(text):
            return []
        marks: list[tuple[int, int, str]] = []
        for match in _MARK.finditer(text, start):
            if match.end() == len(text) and _is_half(text, match.start()):
                continue
            # The groups of one of three forms; the first writing has no number of its own.
            kind, number, index = [*filter(None, match.groups()), "1"][:3]
            writings = self._writings.get((kind.upper(), int(number)), [])
            position = int(index) - 1
            if 0 <= position < len(writings):
                marks.append((*match.span(), writings[position]))
        return marks


def _is_half(text: str, start: int) -> bool:
    """Whether a mark at the end of a text lacks its bracket, as [PERSON_1 of [PERSON_12]."""
    before = text[max(0, start - 2) : start].rstrip()
    return before.endswith("[") and text[-1].isdigit()
