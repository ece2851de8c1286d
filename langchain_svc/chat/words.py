r"""A text as what its quotes are compared by: its words and numbers in order, with places. Pure.

A copy may change all that stands between words: white space, line ends, quotation marks, emphasis,
the bars of a table, the target of a link. It may change case, forms of letters, and the hyphens in
words, which a line's end adds or drops. It changes no digit, and nothing that belongs to a number:
a sign, a comparator, a decimal mark, an exponent, `%`. So "7 mg" is no quote of "≤ 7 mg", nor "25"
of "2.5", nor "102" of "10²". Where a script puts no space between words, each sign is one.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import regex

from .._text import characters, normalized, rendered

_LETTER = (
    r"[\p{L}\p{M}--\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
)
_SIGN = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}&&\p{L}]"
_RAISED = r"[\u00b2\u00b3\u00b9\u2070-\u209c\u00bc-\u00be\u2150-\u215e]"
_HYPHEN = r"[-\u2010\u2011](?:[ \t]{0,9}\r?\n[ \t>]{0,20})?"
_COMPARATORS = {
    "<=": "≤", "⩽": "≤", "≦": "≤", ">=": "≥", "⩾": "≥", "≧": "≥", "+/-": "±", "!=": "≠",
    "≈": "~", "∼": "~", "≃": "~",
}  # fmt: skip
_COMPARATOR = r"(?:<=|>=|\+/-|!=|[<>≤≥⩽⩾≦≧≈~∼≃±≠])"
# Blanks that stand in a number only; a plain one may stand between two.
_BLANK_IN_NUMBER = "\u00a0\u202f\u2009"
_TOKEN = regex.compile(
    rf"""
    (?<=\])\((?:[^()\s]|\([^()\s]*\)){{0,500}}(?:\s+"[^"\n]{{0,200}}")?\)  # a link's target
    |(?P<number>
        (?:{_COMPARATOR}\s{{0,9}})?
        (?:(?<![\w)\].])[-+\u2212\u2013])?
        (?:(?P<grouped>\d{{1,3}}(?:[{_BLANK_IN_NUMBER}'’,]\d{{3}})+(?!\d)(?:\.\d+)?)
          |(?:\d+|(?<![\w.])\.\d+)(?:[.,:/\u2010-\u2014\u2212-]\d+)*)
        (?:\^[-\u2212]?\d+|{_RAISED}+)?
        (?:[ {_BLANK_IN_NUMBER}]?[%‰])?)
    |(?P<sign>{_SIGN}\p{{M}}*)
    |(?P<word>{_LETTER}+(?:{_HYPHEN}{_LETTER}+)*(?:-?\d[A-Za-z0-9]*(?:\.\d+)*)?{_RAISED}*)
    |(?P<raised>°|{_RAISED}+)
    |(?P<relation>(?<=[\w)\]][ ]?){_COMPARATOR}(?=[ ]?[\w(]))
    """,
    regex.VERBOSE | regex.VERSION1,
)
_DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"))
_AROUND_DIGITS = str.maketrans(dict.fromkeys(f" \t\r\n{_BLANK_IN_NUMBER}'’"))
_LEADING_POINT = re.compile(r"(?<!\d)\.(?=\d)")
# Points of vowels are left out in most texts of Arabic and Hebrew.
_POINTS = regex.compile(r"[\p{M}\u0640]+")
_LEFT_OUT_IN = regex.compile(r"[\p{Arabic}\p{Hebrew}]")
_BETWEEN = regex.compile(r"[^\p{L}\p{M}\p{N}.°]+")
_COMPATIBILITY_FORMS = "\uf900"
_RAISED_DIGIT = regex.compile(_RAISED)
_EXPONENT = re.compile(r"(?<=\d)<sup>(?=[-\u2212]?\d)", re.IGNORECASE)
_SPACED_GROUPS = re.compile(r"(?<!\d)(?<!\d[ .,])\d{1,3}(?: \d{3})+(?!\d)")


class Word(NamedTuple):
    """A word or number in the one form in which it is compared, and its place in the text."""

    key: str
    begin: int
    end: int
    is_number: bool = False


@dataclass(frozen=True, eq=False)
class Words:
    """The words of a text, to be looked up in."""

    words: Sequence[Word]

    @cached_property
    def keys(self) -> Sequence[str]:
        """The form of each in which it is compared."""
        return [word.key for word in self.words]

    @cached_property
    def line(self) -> str:
        """All of them, with a blank around each."""
        return f" {' '.join(self.keys)} "

    @cached_property
    def _begins(self) -> Sequence[int]:
        """Where each begins in the line, at the blank before it."""
        begins: list[int] = []
        at = 0
        for key in self.keys:
            begins.append(at)
            at += len(key) + 1
        return begins

    def find(self, needle: Words) -> tuple[int, int] | None:
        """Which of the words are those of another text, as a range; None: they are not there."""
        if not needle.words:
            return None
        at = self.line.find(needle.line)
        if at < 0:
            return None
        first = bisect_left(self._begins, at)
        return first, first + len(needle.words)


def words_of(text: str) -> Words:
    """The words of a text, in time linear in its length."""
    return Words([*_words(text)])


def quotes_of(text: str) -> Iterator[Words]:
    """What a quote may be as words: as it is written, and with the blanks in its numbers joined."""
    yield words_of(text)
    joined = _SPACED_GROUPS.sub(lambda group: group[0].replace(" ", "\u00a0"), text)
    if joined != text:
        yield words_of(joined)


def _words(text: str) -> Iterator[Word]:
    # What is put in keeps the length, so that places stay: a model is shown `‹` for `<`.
    text = _EXPONENT.sub("^\u200b\u200b\u200b\u200b", text.replace("‹", "<"))
    reading = rendered(characters(text, is_mail=False))
    for match in _TOKEN.finditer(reading.text):
        kind = match.lastgroup
        if kind is not None:
            key = _number(match) if kind == "number" else _key(match[0], kind)
            if key:
                yield Word(key, *reading.place(*match.span()), kind == "number")


def _key(text: str, kind: str) -> str:
    if kind == "relation":
        return _COMPARATORS.get(text, text)
    if kind == "sign" and len(text) == 1 and text < _COMPATIBILITY_FORMS:
        return text
    if not text.isascii():
        if _LEFT_OUT_IN.search(text):
            text = _POINTS.sub("", text)
        # Not so a raised digit, which is no digit of the word.
        if _RAISED_DIGIT.search(text) is None:
            text = normalized("NFKC", text)
    key: str = _BETWEEN.sub("", text.casefold())
    return key


def _number(match: regex.Match[str]) -> str:
    text = match["number"].translate(_DASHES)
    if match["grouped"] is not None:
        text = text.replace(",", "")
    text = text.translate(_AROUND_DIGITS)
    for sign, same in _COMPARATORS.items():
        text = text.replace(sign, same)
    raised = regex.search(rf"(?<=\d){_RAISED}+", text)
    if raised is not None:
        exponent = normalized("NFKC", raised[0]).translate(_DASHES)
        text = f"{text[: raised.start()]}^{exponent}{text[raised.end() :]}"
    if not text.isascii():
        text = "".join(str(unicodedata.decimal(sign, sign)) for sign in text)
    return _LEADING_POINT.sub("0.", text)
