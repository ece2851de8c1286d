"""What is known of the line that the parser is in: whether what stands here is quoted.

Models explain tool calls, and repeat texts that hold some. What is quoted is not a call: in a code
span, in a line that begins with the `>` of a quotation, in a string of JSON, between quotation
marks (also around nothing but a tag, and with other words beside the call), in brackets or in an
element.
"""

from __future__ import annotations

import re

from .formats.marks import CALL_MARK
from .pending import More

_PAIRS = {
    '"': '"',
    "'": "'",
    "“": "”",
    "„": "“",
    "‘": "’",
    "«": "»",
    "「": "」",
    "`": "`",
    "(": ")",
    "|": "|",
    "<!--": "-->",
}
_ELEMENT = re.compile(r"<([A-Za-z][\w-]{0,30})(?:\s[^<>\n]{0,60})?>\Z")
_DIRECTED = {"“": "”", "«": "»", "「": "」"}
_EMPHASIS = re.compile(r"(?:\A|\s)\*{1,3}\Z")
_CALL = re.compile(CALL_MARK)
_HEAD = 120  # characters that tell what a line is
_QUOTATION = re.compile(r"\s*>(?!>>)")
_JSON = re.compile(r"\s*(?:[{\[]|\"[^\"\n]*\"\s*:)")
_QUOTE = re.compile(r"\\.?|[\"“”«»「」]", re.DOTALL)


class Line:
    """The line that the position is in, as far as the position has come."""

    def __init__(self) -> None:
        self.ticks = ""  # the backticks that opened a code span
        self._head = ""
        self._in_quotes = False
        self._closer = ""  # of the quotation mark that is open, if its kind has two forms
        self._escaped = False  # a backslash stands before the position

    def pass_over(self, text: str, *, markup: bool = False) -> None:
        """The position moves over this text; in markup, quotation marks quote nothing."""
        line = text.rfind("\n")
        if line >= 0:
            self.ticks = self._head = ""
            self._in_quotes = self._escaped = False
            self._closer = ""
            text = text[line + 1 :]
        if not self._head.strip():
            text = text.lstrip()
        self._head += text[: _HEAD - len(self._head)]
        if markup:
            return
        begin = int(self._escaped)
        self._escaped = self._escaped and not text
        for mark in _QUOTE.findall(text, begin):
            self._in_quotes ^= mark == '"'
            self._escaped = mark == "\\"
            if mark in _DIRECTED or mark == self._closer:
                self._closer = _DIRECTED.get(mark, "")

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

    @property
    def closer(self) -> str:
        """The quotation mark that would close the one that is open amid words; "" if none is."""
        return (self._closer or ('"' if self._in_quotes else "")) if self.has_before('"') else ""

    def has_before(self, mark: str) -> bool:
        """Whether other words stand before a quotation mark at its end."""
        return len(self._head.strip()) > len(mark)


def pair(text: str, at: int) -> tuple[str, str]:
    """What stands around a quotation: the mark right before `at`, and the one that closes it.

    What closes an element or a table's cell may stand behind white space, and is then returned
    with a space before it. Two times "" where there is no mark.
    """
    before = text[max(0, at - 100) : at]
    element = _ELEMENT.search(before.rstrip())
    if element and not _CALL.fullmatch(f"<{element[1]}>"):
        return element[0], f" </{element[1]}>"
    if _EMPHASIS.search(before):
        return "*", "*"
    for mark, closer in _PAIRS.items():
        apart = mark in {"|", "<!--"}
        if (before.rstrip(" ") if apart else before).endswith(mark):
            return mark, " " * apart + closer
    return "", ""


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
