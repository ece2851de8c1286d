"""A position in a text that may go on: what the readers of all formats read with.

A reader is an ordinary function that reads from left to right. Where it would have to know what
comes next and the text so far does not tell, the cursor raises `More`; the reader is then run
again from its beginning when more has come. So no reader ever decides on the strength of where a
text was cut, and a stream gives what the whole text gives. When nothing more can come (`final`),
the end of the text is an answer like any other.
"""

from __future__ import annotations

import re

from .brackets import bracket_end
from .json_part import Json, json_at
from .judge import MISSING, Judge
from .pending import More

_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"[\w.-]*")


class Cursor:
    """Reads `text` from `at` on."""

    def __init__(self, text: str, at: int, judge: Judge, *, final: bool) -> None:
        self.text = text
        self.at = at
        self.cost = 0  # how many characters were looked at to tell where something ends
        self.judge = judge
        self.final = final

    @property
    def open(self) -> bool:
        """Whether the text has been read to its end and may go on."""
        return self.at >= len(self.text) and not self.final

    def space(self) -> None:
        """Pass over white space."""
        self.skip(_SPACE)
        if self.open:
            raise More

    def skip(self, pattern: re.Pattern[str]) -> None:
        """Pass over what the pattern matches here, which may be nothing."""
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at

    def char(self) -> str:
        """The character here; "" at the end."""
        if self.open:
            raise More
        return self.text[self.at : self.at + 1]

    def sees(self, *literals: str) -> bool:
        """Whether one of the literals stands here."""
        if self.text.startswith(literals, self.at):
            return True
        if not self.final:
            rest = self.text[self.at : self.at + max(map(len, literals))]
            if any(literal.startswith(rest) for literal in literals):
                raise More
        return False

    def take(self, *literals: str) -> bool:
        """Pass over the literal that stands here, if one does."""
        found = self.sees(*literals)
        if found:
            self.at += max(len(x) for x in literals if self.text.startswith(x, self.at))
        return found

    def word(self) -> str:
        """The name that stands here; it is not waited for if no offered name begins so."""
        begin = self.at
        self.skip(_WORD)
        word = self.text[begin : self.at]
        if self.open and self.judge.may_begin(word):
            raise More
        return word

    def match(self, pattern: re.Pattern[str], limit: int = 300) -> re.Match[str] | None:
        """Pass over what the pattern matches here.

        The pattern must end with a character of its own, so that a match cannot grow; it is
        waited for as long as no more than `limit` characters have come.
        """
        found = pattern.match(self.text, self.at, self.at + limit)
        if found:
            self.at = found.end()
            return found
        if not self.final and len(self.text) - self.at < limit:
            raise More
        return None

    def until(self, pattern: re.Pattern[str], need: str = ">") -> tuple[str, re.Match[str] | None]:
        """The text up to the pattern, and its match; at the end of everything there is none."""
        begin = self.at
        found = pattern.search(self.text, begin)
        if found is None or (found.end() == len(self.text) and not self.final):
            if not self.final:
                raise More(need)
            self.at = len(self.text)
            self.cost += self.at - begin
            return self.text[begin:], None
        self.at = found.end()
        self.cost += self.at - begin
        return self.text[begin : found.start()], found

    def bracketed(self) -> tuple[str, bool]:
        """The text from the bracket here to the one that closes it, and whether that came."""
        begin = self.at
        end = bracket_end(self.text, begin)
        if end is None and not self.final:
            raise More(")]}", begin)
        self.at = len(self.text) if end is None else end
        self.cost += self.at - begin
        return self.text[begin : self.at], end is not None

    def json(self, *, lines: bool = False) -> Json | None:
        """Pass over the JSON value that begins here, broken as it may be; None if there is none.

        Args:
            lines: Whether a line that begins another call ends what was left open.
        """
        found = json_at(self.text, self.at, final=self.final, lines=lines)
        self.at = found.end
        self.cost += found.cost
        return None if found.value is MISSING else found
