"""Documents as numbered passages, and where a quote stands in them. Pure.

A quote is looked up by its words and numbers in order, in each passage, and then over the border of
two passages of which one goes on in the other, as chunks of one document do.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import regex

from .._text import characters, normalized, rendered

# -- sentences -------------------------------------------------------------------------------------
# Where sentences end, in an answer and in a document. Pure.
#
# A full stop ends none behind an initial, an abbreviation or the number of an item, nor where a
# small letter follows. What follows decides, so an end is known only when the next word has
# begun.

# Longer runs of signs end no sentence.
_STOP = r"(?<![.!?…])[.!?…]{1,20}[\"'”’»)\]*_]{0,20}(?=\s)|[。！？][」』”’）]{0,20}"
LONGEST_STOP = 41  # signs, with what stands behind them
_IN_AN_ANSWER = re.compile(rf"(?:{_STOP}|(?=\n))\s*")
# A document's line may end within a sentence.
_IN_A_DOCUMENT = re.compile(
    rf"(?:{_STOP}|(?=\n\s*\n|\n\s*(?:[-*+•#|]|\d{{1,3}}[.)])\s))\s*"
)
_LINE = re.compile(r"\n")
_PARAGRAPH = re.compile(r"\n\s*\n")
_LAST_WORD = re.compile(r"\S+\Z")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+")
_ITEM_NUMBER = re.compile(r"(?:\A|\n)[ \t>*_#]*(?:\d{1,3}|[a-z])\.[*_]*\Z")
_ABBREVIATIONS = frozenset(
    """
    al approx bzw ca cf dr eq est etc evtl fig figs frau ggf hr inkl jr mme mr mrs ms mt nr pp prof
    ref resp sr sra st tab usw vgl vol vs
    """.split()
)
# Only before a number: "No. 5", and "No. It is not."
_BEFORE_A_NUMBER = frozenset(
    """
    abb apr art aug bd ch dec feb jan jul jun mar no nov oct p s sec sep sept
    """.split()
)
_LONGEST_WORD = 60  # characters that are looked at before a full stop


def sentence_ends(text: str, begin: int = 0, *, wrapped: bool = False) -> Iterator[int]:
    """The places at which sentences end, behind their white space, save at the text's end.

    `wrapped`: whether a line may end within a sentence, as in a document.
    """
    pattern = _IN_A_DOCUMENT if wrapped else _IN_AN_ANSWER
    breaks = _PARAGRAPH if wrapped else _LINE
    for match in pattern.finditer(text, begin):
        end = match.end()
        if begin < end < len(text) and (
            breaks.search(text, match.start(), end) or _ends(text, match.start(), end)
        ):
            yield end


def _ends(text: str, stop: int, end: int) -> bool:
    """Whether a sentence ends with the sign at a place, behind which the next word begins."""
    if text[stop] in "。！？\n":
        return True
    following = text[end]
    if following.islower():
        return False
    if text[stop] != ".":
        return True
    first = max(0, stop - _LONGEST_WORD)
    if _ITEM_NUMBER.search(text, first, stop + 1):
        return False
    before = _LAST_WORD.search(text, first, stop + 1)
    word = before[0].lstrip("\"'“„«([*_") if before is not None else ""
    if _INITIALS.fullmatch(word):
        return False
    name = word.rstrip(".").casefold()
    if name in _ABBREVIATIONS:
        return False
    return not (following.isdigit() and name in _BEFORE_A_NUMBER)


# -- words -----------------------------------------------------------------------------------------
# A text as what its quotes are compared by: its words and numbers in order, with places. Pure.
#
# A copy may change all that stands between words: white space, line ends, quotation marks,
# emphasis, the bars of a table, the target of a link. It may change case, forms of letters, and
# the hyphens in words, which a line's end adds or drops. It changes no digit, and nothing that
# belongs to a number: a sign, a comparator, a decimal mark, an exponent, `%`. So "7 mg" is no
# quote of "≤ 7 mg", nor "25" of "2.5", nor "102" of "10²". Where a script puts no space between
# words, each sign is one.

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

    def range_of(self, needle: Words) -> tuple[int, int] | None:
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


# -- passages --------------------------------------------------------------------------------------

# Chunks of one document go on in one another where so many words and signs are in both, or where
# their places in it say so.
_WORDS_IN_COMMON = 4
_SIGNS_IN_COMMON = 20
_WIDEST_GAP = 2  # white space that a splitter takes from between two chunks


@dataclass(frozen=True)
class Place:
    """Where a quote stands: in which passage, and between which characters of its text.

    `rest` is where it goes on, if it begins in one passage and ends in the next.
    """

    passage: Passage
    begin: int
    end: int
    rest: Place | None = None

    @property
    def text(self) -> str:
        """The quote as the document has it; of one that goes on, the part in this passage."""
        return self.passage.text[self.begin : self.end]

    @property
    def parts(self) -> Sequence[Place]:
        """The place, and that of its rest."""
        return [self] if self.rest is None else [self, *self.rest.parts]

    @property
    def sentences(self) -> str:
        """What the passage says there, in whole sentences."""
        ends = self.passage.sentence_ends
        begin = ends[bisect_right(ends, self.begin) - 1]
        end = ends[bisect_left(ends, self.end)]
        said = self.passage.text[begin:end]
        if self.rest is None:
            return said
        # The end of a chunk may cut a sentence, and the overlap is told twice: once is enough.
        rest = self.rest
        end = rest.passage.sentence_ends[
            bisect_left(rest.passage.sentence_ends, rest.end)
        ]
        return f"{self.passage.text[begin : self.end]} {rest.passage.text[rest.begin : end]}"


@dataclass(frozen=True)
class Passage:
    """One document, with the number by which the model cites it.

    Attributes:
        number: Counted from 1.
        text: What it says.
        metadata: `title`, `url` or `source`, `page`: what a citation tells of it.
    """

    number: int
    text: str
    metadata: Mapping[str, object]

    @property
    def title(self) -> str | None:
        """Its title, if it has one."""
        return self._named("title")

    @property
    def url(self) -> str | None:
        """Its address, or else where its metadata says it comes from."""
        return self._named("url") or self._named("source")

    def _named(self, key: str) -> str | None:
        value = self.metadata.get(key)
        return value if isinstance(value, str) and value else None

    @cached_property
    def start(self) -> int | None:
        """Where it begins in its document, if a splitter has noted it."""
        value = self.metadata.get("start_index")
        return value if isinstance(value, int) and value >= 0 else None

    @cached_property
    def words(self) -> Words:
        """What quotes are looked up in."""
        return words_of(self.text)

    @cached_property
    def sentence_ends(self) -> Sequence[int]:
        """Where its sentences end, with its begin and its end."""
        return [0, *sentence_ends(self.text, wrapped=True), len(self.text)]

    def find(self, quote: str) -> Place | None:
        """The first place of a quote."""
        places = map(self.place_of, quotes_of(quote))
        return next((place for place in places if place is not None), None)

    def place_of(self, quote: Words) -> Place | None:
        """The first place of a quote's words."""
        found = self.words.range_of(quote)
        return self.place(*found) if found is not None else None

    def place(self, first: int, end: int) -> Place:
        """The place of a range of its words."""
        words = self.words.words
        return Place(self, words[first].begin, words[end - 1].end)


class _Joint(NamedTuple):
    """Two passages of one document, of which the first goes on in the second."""

    before: Passage
    after: Passage
    overlap: int  # how many words of the second the first has, too

    def place_of(self, quote: Words) -> Place | None:
        """The place of a quote that begins in the first and ends in the second."""
        old = self.before.words.words
        new = self.after.words.words[self.overlap :]
        length = len(quote.words)
        first = max(0, len(old) - length)
        found = Words([*old[first:], *new[:length]]).range_of(quote)
        if found is None:
            return None
        begin, end = found[0] + first, found[1] + first
        if not begin < len(old) < end:
            return None
        rest = self.after.place(self.overlap, self.overlap + end - len(old))
        place = self.before.place(begin, len(old))
        return Place(self.before, place.begin, place.end, rest)


class Passages:
    """The passages that one answer may cite."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self.all: tuple[Passage, ...] = tuple(passages)
        self._by_number = {passage.number: passage for passage in passages}

    def find(self, quote: str, number: int | None = None) -> Place | None:
        """Where a quote stands: in the passage that is named, or else in the first that has it."""
        named = self._by_number.get(number or 0)
        first = [named] if named is not None else []
        needles = [*quotes_of(quote)]
        for sought in self._sought(first):
            for needle in needles:
                place = sought.place_of(needle)
                if place is not None:
                    return place
        return None

    def _sought(self, first: Sequence[Passage]) -> Iterator[Passage | _Joint]:
        """Where quotes may stand; the joints are sought only if no passage has one."""
        yield from first
        yield from self.all
        yield from self._joints

    @cached_property
    def _joints(self) -> Sequence[_Joint]:
        return [*_joints(self.all)]


def _joints(passages: Sequence[Passage]) -> Iterator[_Joint]:
    """Which passages go on in which."""
    by_begin: dict[object, list[Passage]] = {}
    for passage in passages:
        for key in _begins(passage):
            by_begin.setdefault(key, []).append(passage)
    for passage in passages:
        followers = {
            other.number: other
            for key in _continuations(passage)
            for other in by_begin.get(key, ())
            if other is not passage
        }
        for other in followers.values():
            overlap = _overlap(passage.words.keys, other.words.keys)
            if overlap is not None or _adjoin(passage, other):
                yield _Joint(passage, other, overlap or 0)


def _begins(passage: Passage) -> Iterator[object]:
    """By what the passage before one knows it: its first words, or the place where it begins."""
    keys = passage.words.keys
    if passage.url is not None and keys:
        yield passage.url, tuple(keys[:_WORDS_IN_COMMON])
        yield passage.url, passage.start


def _continuations(passage: Passage) -> Iterator[object]:
    """How a passage may begin in which one goes on."""
    keys = passage.words.keys
    if passage.url is not None:
        for first in range(len(keys) - _WORDS_IN_COMMON + 1):
            yield passage.url, tuple(keys[first : first + _WORDS_IN_COMMON])
        if passage.start is not None:
            end = passage.start + len(passage.text)
            yield from ((passage.url, end + gap) for gap in range(_WIDEST_GAP + 1))


def _adjoin(before: Passage, after: Passage) -> bool:
    """Whether their places in their document say that the second follows on the first."""
    if before.start is None or after.start is None:
        return False
    return 0 <= after.start - before.start - len(before.text) <= _WIDEST_GAP


def _overlap(before: Sequence[str], after: Sequence[str]) -> int | None:
    """With how many words one text ends and the other begins, if they are enough to be no chance.

    By the failure function of Knuth, Morris and Pratt, so in time linear in both.
    """
    keys: list[str | None] = [*after, None, *before]
    lengths = [0] * len(keys)
    for at in range(1, len(keys)):
        length = lengths[at - 1]
        while length and keys[at] != keys[length]:
            length = lengths[length - 1]
        lengths[at] = length + (keys[at] == keys[length])
    length = lengths[-1]
    if length < _WORDS_IN_COMMON or sum(map(len, after[:length])) < _SIGNS_IN_COMMON:
        return None
    return length
