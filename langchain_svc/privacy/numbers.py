"""Identifiers with digits, telephone numbers and e-mail addresses, however they are separated."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .masks import word_set

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
_SHORTEST_TELEPHONE = 7
_LONGEST_LOCAL = 15
_NORTH_AMERICAN = 11  # with the 1 that is dialled first
_BLOCK = 256  # characters
_MOST_SEPARATED = 4  # a sign and the separators after it
_LONGEST_PREFIX = 24  # a country's code and what separates it
_ALPHANUMERIC = r"[^\W_]"

# What stands before a number, and what of it is part of the number. A pattern that starts with
# the number itself is faster than one that starts with this.
_PREFIXES = {
    "ID": re.compile(rf"(?<!{_ALPHANUMERIC})(?P<of_it>)$"),
    "EMAIL": re.compile(r"(?<![\w.+-])(?P<of_it>)$"),
    "PHONE": re.compile(
        r"""(?<!\d)(?P<of_it>
        (?:(?:\+|\b00)[\s\-/.]?\d{1,3}[\s\-/.]{0,2}(?:\(0\)\s?)?|\b1[\s\-.]{1,2})?
        \(?0?[\s\-/.(]?
        )$""",
        re.VERBOSE,
    ),
}

# Country codes: 1 and 7, those of two digits, and all others of three.
_TWO_DIGITS = word_set(
    """
    20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64
    65 66 81 82 84 86 90 91 92 93 94 95 98
    """
)


@dataclass(frozen=True, repr=False)
class Number:
    """What an identifier looks like in a text.

    Attributes:
        key: Its letters and digits, as they stand in a text without separators; empty if it is
            looked for as it is.
        exact: The identifier as it is.
        pattern: Finds its writings.
    """

    key: bytes
    exact: str
    pattern: str
    kind: str
    number: int


class Numbers:
    """All identifiers of this kind, and where they stand in a text."""

    def __init__(self) -> None:
        self._numbers: list[Number] = []
        self.counts: dict[str, int] = {}
        self._known: dict[tuple[str, str], int] = {}
        self._patterns: dict[str, re.Pattern[str]] = {}

    def add_identifier(self, value: str) -> None:
        """Adds an identifier. A short one, or one without digits, is looked for as it is."""
        value = value.strip()
        signs = [sign for sign in value.lower() if sign.isalnum()]
        if not signs:
            return
        has_digit = any(sign.isdigit() for sign in signs)
        if len(signs) < _SHORTEST_TOLERANT or not has_digit:
            self._add_exact("ID", value)
            return
        between = _BETWEEN
        if len(signs) < _SHORTEST_WITH_ANY_SEPARATOR:
            between = _BETWEEN_FEW
        body = between.join(map(re.escape, signs))
        pattern = f"{body}(?!{_ALPHANUMERIC})"
        self._add("ID", "".join(signs), value, pattern)
        if between == _BETWEEN_FEW and "".join(signs) != value.lower():
            self._add_exact("ID", value)

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
            pattern = rf"{words}(?!\w)"
            self._add("EMAIL", key, value, pattern)
            return
        digits = re.sub(r"\D", "", value.replace("(0)", ""))
        significant = significant_digits(value)
        if len(significant) < _SHORTEST_TELEPHONE:
            if value:
                self._add_exact("PHONE" if digits else "ID", value)
            return
        if len(digits) > _LONGEST_LOCAL:
            self.add_identifier(value)
            return
        body = _BETWEEN.join(significant)
        self._add("PHONE", significant, value, rf"{body}(?!\d)")

    def _add_exact(self, kind: str, value: str) -> None:
        pattern = f"{re.escape(value)}(?!{_ALPHANUMERIC})"
        self._add(kind, "", value, pattern)

    def _add(self, kind: str, key: str, value: str, pattern: str) -> None:
        """Adds a number once; the writings of the same value share its number."""
        if (kind, pattern) in self._known:
            return
        signs = "".join(sign for sign in value.lower() if sign.isalnum())
        number = self._known.get((kind, signs))
        if number is None:
            number = self.counts.get(kind, 0) + 1
            self.counts[kind] = number
        self._known[kind, signs] = number
        self._known[kind, pattern] = number
        self._numbers.append(Number(key.encode(), value, pattern, kind, number))

    def find(self, text: str) -> Iterator[tuple[int, int, str, int]]:
        """The places of a text that have a number: start, end, kind and number."""
        compact = CompactText(text)
        for number in self._numbers:
            windows: Iterable[tuple[int, int]] = ()
            if number.key:
                windows = compact.windows(number.key)
            elif number.exact in text:
                windows = [(0, len(text))]
            last_end = 0
            for start, end in windows:
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
            flags = re.IGNORECASE if number.key else re.NOFLAG
            pattern = re.compile(number.pattern, flags)
            self._patterns[number.pattern] = pattern
        return pattern


def significant_digits(telephone: str) -> str:
    """The digits of a telephone number without the country's code and the zeros before it."""
    number = telephone.replace("(0)", "").strip()
    digits = re.sub(r"\D", "", number)
    if number.startswith("+") or digits.startswith("00"):
        digits = digits.removeprefix("00")
        digits = digits[_country_length(digits) :]
    elif len(digits) == _NORTH_AMERICAN and digits.startswith("1"):
        digits = digits[1:]
    return digits.lstrip("0")


def _country_length(digits: str) -> int:
    if digits[:1] in ("1", "7"):
        return 1
    if digits[:2] in _TWO_DIGITS:
        return 2
    return 3


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
