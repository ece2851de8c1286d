"""Telephone numbers: the same digits with or without separators, country code and extension."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .masks import word_set

_SHORTEST = 7  # digits of a number without the codes before it
_LONGEST = 15  # digits, as ITU-T E.164 has it
_MOST_DIGITS = 19  # of it, with 00 and a zero before the area's code
_SHORTEST_ABROAD = 8

_DIGITS = re.compile(r"\d+")
_BETWEEN = re.compile(r"[\s.\-/()_\u2010-\u2013]{0,3}")
_EXTENSION = re.compile(
    r"""[\s,;.\-/(]{0,3}
    (?:\#|x|ext|extn|extension|durchwahl|dw|app|apparat|poste|extensión|int|interno|toestel|tst|wew
    |wewn|dahili)
    [\s.:\-]{0,3}(?P<digits>\d{1,6})(?![^\W_])""",
    re.IGNORECASE | re.VERBOSE,
)
# The codes before the digits that were found, where these stand apart from them.
_CODES = re.compile(
    r"""(?<!\d)(?:
    (?:(?:\+|\b00)[\s\-/.]?\d{1,3}[\s\-/.]{0,2}(?:\(0\)\s?)?|\b1[\s\-.]{1,2})?
    \(?0?[\s\-/.(]?
    )$""",
    re.VERBOSE,
)
_LONGEST_CODES = 24

# Country codes: 1 and 7, those of two digits, and all others of three.
_TWO_DIGITS = word_set(
    """
    20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64
    65 66 81 82 84 86 90 91 92 93 94 95 98
    """
)


class Telephones:
    """All telephone numbers, and where they stand in a text."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._endings: set[str] = set()

    def add(self, value: str, number: int) -> None:
        """Adds a telephone number, with the number that its marks have."""
        for reading in _readings_of(value):
            self._numbers.setdefault(reading, number)
            self._endings.add(reading[-_SHORTEST:])

    def find(self, text: str) -> Iterator[tuple[int, int, int]]:
        """The places of a text that have a telephone number: start, end and its number."""
        if not self._numbers:
            return
        groups: list[re.Match[str]] = []
        for group in _DIGITS.finditer(text):
            if groups and not _BETWEEN.fullmatch(text, groups[-1].end(), group.start()):
                groups.clear()
            groups.append(group)
            place = self._number_at_end(groups)
            if place is not None:
                start, number = place
                before = text[max(0, start - _LONGEST_CODES) : start]
                codes = _CODES.search(before)
                extension = _EXTENSION.match(text, group.end())
                end = extension.end() if extension else group.end()
                yield start - len(codes[0] if codes else ""), end, number
                groups.clear()

    def _number_at_end(self, groups: list[re.Match[str]]) -> tuple[int, int] | None:
        """The fewest groups of digits at the end that are a telephone number: start and number."""
        digits = ""
        for group in reversed(groups[-_MOST_DIGITS:]):
            digits = group[0] + digits
            if len(digits) > _MOST_DIGITS:
                break
            if digits[-_SHORTEST:] in self._endings:
                for reading in _readings(digits):
                    if reading in self._numbers:
                        return group.start(), self._numbers[reading]
        return None


def is_telephone(value: str) -> bool:
    """Whether it has as many digits as a telephone number, so that it is one however written."""
    digits = _DIGITS.findall(_EXTENSION.sub("", value))
    return bool(_readings_of(value)) and len("".join(digits)) <= _LONGEST


def is_short_telephone(value: str) -> bool:
    """Whether it is a number such as 110, or an extension."""
    return len("".join(_DIGITS.findall(value))) <= _LONGEST


def _readings_of(value: str) -> set[str]:
    """The readings of a telephone number, with its extension and without."""
    extension = _EXTENSION.search(value)
    written = value[: extension.start()] if extension else value
    digits = "".join(_DIGITS.findall(written.replace("(0)", "")))
    if written.strip().startswith("+") or digits.startswith("00"):
        digits = digits.lstrip("0")
        readings = {_without_country(digits)}
    else:
        readings = _readings(digits)
    if extension is not None:
        readings |= {reading + extension["digits"] for reading in readings}
    return {reading for reading in readings if len(reading) >= _SHORTEST}


def _readings(digits: str) -> set[str]:
    """What digits are without the zeros before them, and without a country's code."""
    digits = digits.lstrip("0")
    national = _without_country(digits)
    if len(national) < _SHORTEST_ABROAD:
        return {digits}
    return {digits, national}


def _without_country(digits: str) -> str:
    length = 3
    if digits[:1] in ("1", "7"):
        length = 1
    elif digits[:2] in _TWO_DIGITS:
        length = 2
    return digits[length:].lstrip("0")
