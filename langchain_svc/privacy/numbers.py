"""Identifiers with digits, telephone numbers and e-mail addresses, however they are separated."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from .masks import word_set
from .whole_values import WholeValues

_SEPARATORS = bytes(
    code for code in range(128) if not chr(code).isalnum() and code != ord("@")
)
_WIDE_SEPARATORS = (
    "\u00a0",
    "\u202f",
    "\u2007",
    "\u2009",
    "\u2010",
    "\u2011",
    "\u2012",
    "\u2013",
)
_BETWEEN = r"[\s.\-/()_\u2010-\u2013]{0,3}"
# Short numbers with dots or slashes are values of findings.
_BETWEEN_FEW = r"[ \-_\u00a0\u2010\u2011]?"
_SHORTEST_TOLERANT = 4
_SHORTEST_WITH_ANY_SEPARATOR = 9
_SHORTEST_WITHOUT_ZEROS = 6
_BLOCK = 256  # characters
_MOST_SEPARATED = 4  # a sign and the separators after it
_LONGEST_PREFIX = 24  # a country's code and what separates it
_ALPHANUMERIC = r"[^\W_]"

# What stands before a number, and what of it is part of the number. A pattern that starts with
# the number itself is faster than one that starts with this.
_PREFIXES = {
    "ID": re.compile(rf"(?<!{_ALPHANUMERIC})(?P<of_it>0*)$"),
    "EMAIL": re.compile(r"(?<![\w.+-])(?P<of_it>)$"),
}


@dataclass(frozen=True, repr=False)
class Number:
    """What an identifier looks like in a text.

    Attributes:
        key: Its letters and digits, as they stand in a text without separators.
        pattern: Finds its writings.
    """

    key: bytes
    pattern: str
    kind: str
    number: int


class Numbers:
    """All identifiers of this kind, and where they stand in a text."""

    def __init__(self, values: WholeValues) -> None:
        self._values = values
        self._telephones = Telephones()
        self._numbers: dict[tuple[str, str], Number] = {}
        self.counts: dict[str, int] = {}
        self._known: dict[tuple[str, str], int] = {}
        self._patterns: dict[str, re.Pattern[str]] = {}

    def add_identifier(self, value: str) -> None:
        """Adds an identifier. A short one, or one without digits, is looked for as it is."""
        signs = _signs(value)
        if not signs:
            return
        number = self._number("ID", value)
        has_digit = any(sign.isdigit() for sign in signs)
        if len(signs) < _SHORTEST_TOLERANT or not has_digit:
            return
        self._add_signs(signs, number)
        # Systems fill numbers up with zeros, and people leave these out.
        if signs.isdigit() and len(signs.lstrip("0")) >= _SHORTEST_WITHOUT_ZEROS:
            self._add_signs(signs.lstrip("0"), number)

    def _add_signs(self, signs: str, number: int) -> None:
        between = _BETWEEN
        if len(signs) < _SHORTEST_WITH_ANY_SEPARATOR:
            between = _BETWEEN_FEW
        body = between.join(map(re.escape, signs))
        self._add("ID", signs, f"{body}(?!{_ALPHANUMERIC})", number)

    def add_telecom(self, value: str) -> None:
        """Adds a telephone number, an e-mail address, or another address of this kind."""
        value = re.sub(
            r"^(?:tel|mailto|sms|fax):", "", value.strip(), flags=re.IGNORECASE
        )
        if "@" in value:
            words = re.escape(value.lower()).replace("@", r"\s?@\s?")
            key = "".join(
                sign for sign in value.lower() if sign.isalnum() or sign == "@"
            )
            number = self._number("EMAIL", value)
            self._add("EMAIL", key, rf"{words}(?!\w)", number)
        elif not any(sign.isdigit() for sign in value):
            self.add_identifier(value)
        elif is_telephone(value):
            self._telephones.add(value, self._number("PHONE", value))
        elif is_short_telephone(value):
            self._number("PHONE", value)
        else:
            self.add_identifier(value)

    def _number(self, kind: str, value: str) -> int:
        """The number of a value, which is looked for as it is; its writings share the number."""
        key = (kind, _signs(value))
        number = self._known.get(key)
        if number is None:
            number = self.counts.get(kind, 0) + 1
            self.counts[kind] = number
            self._known[key] = number
        self._values.add(kind, number, value)
        return number

    def _add(self, kind: str, key: str, pattern: str, number: int) -> None:
        added = Number(key.encode(), pattern, kind, number)
        self._numbers.setdefault((kind, pattern), added)

    def find(self, text: str) -> Iterator[tuple[int, int, str, int]]:
        """The places of a text that have a number: start, end, kind and number."""
        for start, end, telephone in self._telephones.find(text):
            yield start, end, "PHONE", telephone
        compact = CompactText(text)
        for number in self._numbers.values():
            last_end = 0
            for start, end in compact.windows(number.key):
                pattern = self._pattern(number)
                for match in pattern.finditer(text, max(start, last_end), end):
                    before = text[
                        max(0, match.start() - _LONGEST_PREFIX) : match.start()
                    ]
                    prefix = _PREFIXES[number.kind].search(before)
                    if prefix is not None:
                        last_end = match.end()
                        first = match.start() - len(prefix["of_it"])
                        yield first, last_end, number.kind, number.number

    def _pattern(self, number: Number) -> re.Pattern[str]:
        """Compiled when it is first needed: few of a record's identifiers stand in a text."""
        pattern = self._patterns.get(number.pattern)
        if pattern is None:
            pattern = re.compile(number.pattern, re.IGNORECASE)
            self._patterns[number.pattern] = pattern
        return pattern


def _signs(value: str) -> str:
    return "".join(sign for sign in value.lower() if sign.isalnum())


class CompactText:
    """The letters and digits of a text, and @, without what separates them.

    It is made of blocks, so that a place in it says about where that is in the text.
    """

    def __init__(self, text: str) -> None:
        blocks: list[bytes] = []
        self._offsets: list[int] = []
        offset = 0
        for start in range(0, len(text), _BLOCK):
            block = _without_separators(text[start : start + _BLOCK])
            blocks.append(block)
            self._offsets.append(offset)
            offset += len(block)
        self._data = b"".join(blocks)

    def windows(self, key: bytes) -> Iterator[tuple[int, int]]:
        """The parts of the text that have these letters and digits."""
        last_index = -1
        position = self._data.find(key)
        while position >= 0:
            index = bisect_right(self._offsets, position) - 1
            if index > last_index:
                start = index * _BLOCK
                longest = _MOST_SEPARATED * len(key) + _LONGEST_PREFIX
                yield max(0, start - _LONGEST_PREFIX), start + _BLOCK + longest
                last_index = index
            position = self._data.find(key, position + 1)


def _without_separators(text: str) -> bytes:
    if not text.isascii():
        for separator in _WIDE_SEPARATORS:
            text = text.replace(separator, "")
    data = text.lower().encode("utf-8", "surrogatepass")
    return data.translate(None, _SEPARATORS)


# -- telephones ------------------------------------------------------------------------------------
# Telephone numbers: the same digits with or without separators, country code and extension.

_SHORTEST = 7  # digits of a number without the codes before it
_LONGEST = 15  # digits, as ITU-T E.164 has it
_MOST_DIGITS = 19  # of it, with 00 and a zero before the area's code
_SHORTEST_ABROAD = 8

_DIGITS = re.compile(r"\d+")
_BETWEEN_DIGITS = re.compile(r"[\s.\-/()_\u2010-\u2013]{0,3}")
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
            if groups and not _BETWEEN_DIGITS.fullmatch(
                text, groups[-1].end(), group.start()
            ):
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
