"""Identifiers with digits, telephone numbers and e-mail addresses, however they are separated."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from .telephones import Telephones, is_short_telephone, is_telephone
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
