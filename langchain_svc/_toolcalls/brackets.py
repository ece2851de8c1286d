"""Where a value in brackets or quotes ends, found piece by piece.

The text of strings is passed over, so brackets and tags in it mean nothing. Both kinds of quotes
count, which makes the scanner right for JSON and for Python's literals. Text without a quote where
one belongs misleads it; what it says is a proposal that a reader must confirm.
"""

from __future__ import annotations

import re

_MARK = re.compile(r"[\"'{}\[\]()]")
_IN_STRING = {quote: re.compile(rf"[{quote}\\]") for quote in "\"'"}
_OPENERS = {"{": "}", "[": "]", "(": ")"}


class Brackets:
    """Follows strings and nesting from an opening mark on: `feed`, until it says the end."""

    def __init__(self) -> None:
        self._closers: list[str] = []
        self._quote = ""
        self._escaped = False
        self._fed = 0
        self.closed = False

    @property
    def rest(self) -> tuple[str, str]:
        """What closes the string that is open, and what closes the brackets."""
        return self._quote, "".join(reversed(self._closers))

    def feed(self, text: str, start: int = 0, end: int | None = None) -> int | None:
        """The number of characters from the first one fed to the closing bracket, if it is here."""
        end = len(text) if end is None else end
        at = start
        while not self.closed and at < end:
            at = self._in_string(text, at, end) if self._quote else self._outside(text, at, end)
        self._fed += at - start
        return self._fed if self.closed else None

    def _in_string(self, text: str, at: int, end: int) -> int:
        if self._escaped:
            self._escaped = False
            return at + 1
        found = _IN_STRING[self._quote].search(text, at, end)
        if found is None:
            return end
        if found[0] == "\\":
            self._escaped = True
        else:
            self._quote = ""
            self.closed = not self._closers
        return found.end()

    def _outside(self, text: str, at: int, end: int) -> int:
        found = _MARK.search(text, at, end)
        if found is None:
            return end
        if found[0] in _IN_STRING:
            self._quote = found[0]
        elif found[0] in _OPENERS:
            self._closers.append(_OPENERS[found[0]])
        else:
            del self._closers[-1:]
            self.closed = not self._closers
        return found.end()


def bracket_end(text: str, start: int, end: int | None = None) -> int | None:
    """The index after what closes the bracket or quote at `start`; None while it is open."""
    length = Brackets().feed(text, start, end)
    return None if length is None else start + length


_TOP = re.compile(r"[\"'{}\[\](),]")


def split_commas(text: str) -> list[str]:
    """The parts between the commas of a text that stand in no bracket and in no string."""
    parts, begin, at = [], 0, 0
    while found := _TOP.search(text, at):
        mark, at = found[0], found.end()
        if mark == ",":
            parts.append(text[begin : found.start()])
            begin = at
        elif mark in _OPENERS or mark in _IN_STRING:
            at = bracket_end(text, found.start()) or len(text)
    return [part.strip() for part in [*parts, text[begin:]] if part.strip()]
