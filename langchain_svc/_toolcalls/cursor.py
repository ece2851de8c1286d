"""A position in a text that may go on: what the readers of all formats read with.

A reader is an ordinary function that reads from left to right. Where it would have to know what
comes next and the text so far does not tell, the cursor raises `More`; the reader is then run
again from its beginning when more has come. So no reader ever decides on the strength of where a
text was cut, and a stream gives what the whole text gives. When nothing more can come (`final`),
the end of the text is an answer like any other.

For JSON that is broken, the places where it may end are tried from left to right, and whether one
is accepted depends on the text before it only, for the same reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .._json.lenient import read
from .brackets import bracket_end
from .offer import CUT_OFF, Offer

_SPACE = re.compile(r"\s*")
_WORD = re.compile(r"[\w.-]*")


def _refuse(name: str) -> Any:
    raise ValueError(name)


# Raw line ends in strings are read as they are; NaN and the infinities are no JSON.
_DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse)
_OPEN_STRING = "Unterminated string"

# Where a broken JSON value may end: the text of no call goes on after these, save in strings.
_SIGNS = re.compile(
    r"</?tool_calls?>|<tool_response|\n[ \t]*```|\n[ \t]*Observation:|</?function|\[TOOL_CALLS\]"
    r"|<\|[\w/]{1,40}\|>|<｜|</?[a-z]{1,20}:tool|</longcat|</?TOOLCALL"
)
_MAX_SIGNS = 8  # every one tried costs a reading of all that stands before it
_RESTART = re.compile(r"\n[ \t]*(?=\{\s*[\"']?(?:name|tool|function|action)\b)")


class More(Exception):  # noqa: N818 - no error, but a question
    """What stands here cannot be told yet.

    Attributes:
        need: Characters of which one must come before another look can tell more; "" for any.
        brackets: Where a bracketed value begins whose end is waited for, if one does.
    """

    def __init__(self, need: str = "", brackets: int | None = None) -> None:
        super().__init__(need)
        self.need = need
        self.brackets = brackets


@dataclass(frozen=True)
class Json:
    """A JSON value and, if it may not be used, the reason."""

    value: Any
    fault: str = ""


class Cursor:
    """Reads `text` from `at` on."""

    def __init__(self, text: str, at: int, offer: Offer, *, final: bool) -> None:
        self.text = text
        self.at = at
        self.offer = offer
        self.final = final

    @property
    def open(self) -> bool:
        """Whether the text has been read to its end and may go on."""
        return self.at >= len(self.text) and not self.final

    def space(self) -> None:
        """Pass over white space."""
        self.at = _end_of(_SPACE, self.text, self.at)
        if self.open:
            raise More

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
        end = _end_of(_WORD, self.text, self.at)
        word = self.text[self.at : end]
        if end == len(self.text) and not self.final and self.offer.may_begin(word):
            raise More
        self.at = end
        return word

    def match(self, pattern: re.Pattern[str], limit: int = 300) -> re.Match[str] | None:
        """Pass over what the pattern matches here.

        The pattern must end with a character of its own, so that a match cannot grow; it is
        waited for as long as no more than `limit` characters have come.
        """
        found = pattern.match(self.text, self.at)
        if found and found.end() - self.at <= limit:
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
            return self.text[begin:], None
        self.at = found.end()
        return self.text[begin : found.start()], found

    def bracketed(self) -> tuple[str, bool]:
        """The text from the bracket here to the one that closes it, and whether that came."""
        begin = self.at
        end = bracket_end(self.text, begin)
        if end is None and not self.final:
            raise More(")]}", begin)
        self.at = len(self.text) if end is None else end
        return self.text[begin : self.at], end is not None

    def json(self, *, restarts: bool = False) -> Json | None:
        """The JSON value that begins here, repaired if need be; None if there is none.

        Args:
            restarts: Whether a line that begins another call ends what was left open.
        """
        begin = self.at
        try:
            value, self.at = _DECODER.raw_decode(self.text, begin)
        except (ValueError, RecursionError):
            pass
        else:
            return Json(value)
        signs = list(_signs(self.text, begin))
        hopeless = len(signs) == _MAX_SIGNS
        limit = signs[-1] if hopeless else len(self.text)
        closing = bracket_end(self.text, begin, limit)
        for end in sorted([*signs, *([closing] if closing else [])]):
            found = self._broken(begin, end, closed=end == closing)
            if found:
                return found
        if not hopeless and not self.final:
            raise More("}])>`:", begin)
        return self._cut_off(begin, limit, signs, restarts=restarts)

    def _broken(self, begin: int, end: int, *, closed: bool) -> Json | None:
        """The value in the text up to `end`, if no more than its closers are missing."""
        part = self.text[begin:end]
        if _is_open_string(part):
            return None
        found = read(part)
        if found is None or not (found.complete or not (closed or found.cut_in_value)):
            return None
        self.at = begin + found.end
        return Json(found.value)

    def _cut_off(
        self, begin: int, limit: int, signs: Sequence[int], *, restarts: bool
    ) -> Json | None:
        """What can be had of a value that nothing ends properly."""
        restart = _RESTART.search(self.text, begin, limit) if restarts else None
        end = restart.start() if restart else limit
        if signs and not _is_open_string(self.text[begin:limit]):
            end = signs[0]  # else the sign is part of the string that the end cut off
        found = read(self.text[begin:end])
        self.at = end
        if found is None:
            return None
        if found.cut_in_value and not found.complete:
            return Json(found.value, CUT_OFF)
        self.at = begin + found.end
        return Json(found.value, CUT_OFF if restart and end == restart.start() else "")


def _signs(text: str, begin: int) -> Iterator[int]:
    at = begin
    for _ in range(_MAX_SIGNS):
        found = _SIGNS.search(text, at)
        if found is None:
            return
        yield found.start()
        at = found.end()


def _is_open_string(text: str) -> bool:
    """Whether the text is JSON, as it should be, up to a string that it ends in."""
    try:
        _DECODER.raw_decode(text)
    except json.JSONDecodeError as error:
        return error.msg.startswith(_OPEN_STRING)
    except (ValueError, RecursionError):
        pass
    return False


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
