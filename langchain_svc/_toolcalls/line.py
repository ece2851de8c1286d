"""What is known of the line that the parser is in: whether what stands here is quoted.

Models explain tool calls, and hand on texts that hold some. What is quoted is no call: in a code
span, in a line that begins with the `>` of a quotation, in a string of JSON, or between quotation
marks (also around nothing but a tag).
"""

from __future__ import annotations

import re

from .hold import More

_PAIRS = {
    '"': '"',
    "'": "'",
    "“": "”",
    "„": "“",
    "‘": "’",
    "«": "»",
    "「": "」",
    "<code>": "</code>",
}
_HEAD = 120  # characters that tell what a line is
_QUOTATION = re.compile(r"\s*>(?!>>)")
_JSON = re.compile(r"\s*(?:[{\[]|\"[^\"\n]*\"\s*:)")
_QUOTE = re.compile(r"\\.?|\"", re.DOTALL)


class Line:
    """The line that the position is in, as far as the position has come."""

    def __init__(self) -> None:
        self.ticks = ""  # the backticks that opened a code span
        self._head = ""
        self._in_quotes = False
        self._escaped = False  # a backslash stands before the position

    def pass_over(self, text: str) -> None:
        """The position moves over this text."""
        line = text.rfind("\n")
        if line >= 0:
            self.ticks = self._head = ""
            self._in_quotes = self._escaped = False
            text = text[line + 1 :]
        if not self._head.strip():
            text = text.lstrip()
        self._head += text[: _HEAD - len(self._head)]
        begin = int(self._escaped)
        self._escaped = self._escaped and not text
        for mark in _QUOTE.findall(text, begin):
            self._in_quotes ^= mark == '"'
            self._escaped = mark == "\\"

    @property
    def begun(self) -> bool:
        """Whether it holds more than white space."""
        return bool(self._head)

    @property
    def is_quotation(self) -> bool:
        """Whether it is a quotation in Markdown."""
        return _QUOTATION.match(self._head) is not None

    @property
    def in_string(self) -> bool:
        """Whether it is a line of JSON, and the position in a string of it."""
        return self._in_quotes and _JSON.match(self._head) is not None

    def has_before(self, mark: str) -> bool:
        """Whether other words stand before a quotation mark at its end."""
        return len(self._head.strip()) > len(mark)


def pair(text: str, at: int) -> tuple[str, str]:
    """The quotation mark that stands before `at`, and the one that closes it; else two times ""."""
    return next((pair for pair in _PAIRS.items() if text.endswith(pair[0], 0, at)), ("", ""))


def string_goes_on(text: str, at: int, *, final: bool) -> bool:
    """Whether a string of JSON in which a tag ends at `at` has the tag in it as text.

    A call has quotes of its own, without backslashes and before letters.
    """
    found = _NEXT_QUOTE.search(text, at)
    if not final and (found is None or (found["after"] == "" and found.end() == len(text))):
        raise More('"\n')
    if found is None or found["line"]:
        return False
    return bool(found["escaped"]) or found["after"] in _CLOSED


_NEXT_QUOTE = re.compile(r"(?P<escaped>\\\")|\"\s*(?P<after>\S?)|(?P<line>\n)")
_CLOSED = frozenset([*",:]}", ""])
