"""A position in a text that may go on: all readers of calls move it forward.

A reader is an ordinary function. Where the text so far does not show what comes next, the cursor
raises `More`, and the scanner runs the reader again when more has come. So nothing depends on where
a text was cut, and a stream gives the same calls as the whole text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from .._json import More, Signs, bracket_end, embedded_json
from .calls import CUT_OFF, Raw
from .judge import STRAY_TEXT, Judge, accounts_for

# -- JSON -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Json:
    """A JSON value in a text."""

    value: object
    fault: str  # why it may not be used
    whole: bool  # its last bracket came


# Where broken JSON may end: no call goes on after these, save in a string.
_OVER = re.compile(
    r"</?tool_calls?>|<tool_response|\n[ \t]*```|\n[ \t]*Observation:|</?function|\[TOOL_CALLS\]"
    r"|<\|[\w/]{1,40}\|>|<｜|</?[a-z]{1,20}:tool|</longcat|</?TOOLCALL"
)
# A sign that the next call begins, whatever was left open before.
_NEXT = re.compile(r"<tool_call>\s*[{\[]|\n[ \t]*```json\s*[{\[]")
_SIGNS = Signs(_OVER, _NEXT)


# -- the cursor -----------------------------------------------------------------------------------

_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"[\w.-]*")


class Cursor:
    """Reads `text` from `at` on; `judge` knows the tools, and `families` other forms.

    Until the text is `final`, a method raises `More` where what may come would change its answer:

    - `char` and `space` at the end of the text; `skip` never does, so `open` may be looked at.
    - `sees` and `accept` where the text ends in the beginning of a literal.
    - `word` where it ends in what may begin an offered name.
    - `match` where nothing matches, and less than `limit` characters have come.
    - `until` where nothing matches, or a match reaches the end of the text. The reader is run again
      when a character of `need` comes, so one has to follow behind the match, too.
    - `bracketed` and `json` while the bracket here is open.
    """

    def __init__(
        self, text: str, at: int, judge: Judge, families: Families, *, final: bool
    ) -> None:
        self.text = text
        self.at = at
        self.judge = judge
        self.families = families
        self.final = final
        self.cost = 0  # how many characters were looked at to tell where something ends

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
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()

    def char(self) -> str:
        """The character here; "" at the end."""
        if self.open:
            raise More
        return self.text[self.at : self.at + 1]

    def sees(self, *literals: str) -> bool:
        """Whether one of the literals stands here."""
        if self.text.startswith(literals, self.at):
            return True
        rest = self.text[self.at : self.at + max(map(len, literals))]
        if not self.final and any(literal.startswith(rest) for literal in literals):
            raise More
        return False

    def accept(self, *literals: str) -> bool:
        """Pass over the longest of the literals that stands here, if one does."""
        if not self.sees(*literals):
            return False
        self.at += max(len(x) for x in literals if self.text.startswith(x, self.at))
        return True

    def word(self) -> str:
        """The name that stands here; more text is needed only where an offered name begins so."""
        begin = self.at
        self.skip(_WORD)
        word = self.text[begin : self.at]
        if self.open and self.judge.may_begin(word):
            raise More
        return word

    def match(
        self, pattern: re.Pattern[str], limit: int = 300, *, peek: bool = False
    ) -> re.Match[str] | None:
        """Pass over what the pattern matches here; `limit` characters are enough for it.

        The pattern must end with a character of its own, so that a match cannot grow. `peek`: stay.
        """
        match = pattern.match(self.text, self.at, self.at + limit)
        if match is None and not self.final and len(self.text) - self.at < limit:
            raise More
        if match and not peek:
            self.at = match.end()
        return match

    def until(
        self, *patterns: re.Pattern[str], need: str = ">"
    ) -> tuple[str, re.Match[str] | None]:
        """The text up to the first pattern that occurs, and its match; else all of the text."""
        begin = self.at
        match: re.Match[str] | None = None
        for pattern in patterns:
            match = match or pattern.search(self.text, begin)
            if not self.final and (match is None or match.end() == len(self.text)):
                raise More(need)
        if match is None:
            self.at = len(self.text)
            end = self.at
        else:
            self.at = match.end()
            end = match.start()
        self.cost += self.at - begin
        return self.text[begin:end], match

    def bracketed(self) -> tuple[str, bool]:
        """The text from the bracket here to the one that closes it, and whether that came."""
        begin = self.at
        end = bracket_end(self.text, begin)
        if end is None and not self.final:
            raise More(")]}", begin)
        self.at = end or len(self.text)
        self.cost += self.at - begin
        return self.text[begin : self.at], end is not None

    def json(self) -> Json | None:
        """Pass over the JSON value that begins here, broken as it may be; None if there is none."""
        begin = self.at
        found = embedded_json(self.text, begin, _SIGNS, final=self.final)
        self.at = found.end
        self.cost += found.cost
        if not found.found:
            return None
        fault = found.spare
        if found.cut:
            fault = CUT_OFF
        elif found.repaired and not fault:
            written = self.text[begin : found.end]
            fault = "" if accounts_for(written, found.value) else STRAY_TEXT
        return Json(found.value, fault, found.whole)


# -- the forms of other families ------------------------------------------------------------------

Reader = Callable[[Cursor], "list[Raw] | None"]


def _reads_nothing(_: Cursor, *_more: str) -> None:
    """The reader of a form that nobody reads."""


@dataclass(frozen=True)
class Families:
    """Readers of the forms of other model families; as it stands, there are none.

    Each returns the calls that it reads where the cursor stands, or None.
    """

    # By the mark that opens the form.
    readers: Mapping[str, Reader] = field(default_factory=lambda: MappingProxyType({}))
    # What stands after any other mark of calls.
    marked: Callable[[Cursor, str], list[Raw] | None] = _reads_nothing
    # What stands inside tags and is no JSON.
    inside: Reader = _reads_nothing
    # An element of calls that names a tool.
    named_element: Reader = _reads_nothing
    # What stands in an element of a tool's own name: the name, and the prefix of the element.
    own_element: Callable[[Cursor, str, str], list[Raw] | None] = _reads_nothing
    # What begins with a square bracket and is no JSON.
    listed: Reader = _reads_nothing
    # What stands in a fence of code.
    code: Reader = _reads_nothing
    # A call that an answer begins with, without any mark.
    unmarked: Reader = _reads_nothing
    # Those of the readers above whose calls count only where the answer ends with them.
    loose: frozenset[Reader] = frozenset()
