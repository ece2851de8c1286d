"""Parses broken JSON in one pass forward; every decision looks at a bounded stretch of text.

- A key without a value is not a field; a container that the text leaves open is closed as it is.
- A closing bracket closes what it can. One that is missing, or one too many, may stand anywhere.
- A comma too many or too few changes nothing. What is neither key nor value is passed over.
- Where a string ends, `strings.py` says.
"""

from __future__ import annotations

import json
import math
import re
import textwrap
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from pydantic_core import from_json, to_json

from .scalars import Scalar, fraction, literal
from .signs import (
    ARROW,
    BLANK_LINE,
    CLOSERS,
    COLONS,
    COMMAS,
    ELLIPSIS,
    OPENERS,
    QUOTED_KEY,
    QUOTES,
    SPACE,
    STRUCTURE,
    VALUE_START,
    Container,
    Frame,
    Slot,
    can_close,
    comma_at,
    comma_separates,
    goes_on,
    holds_control_word,
    is_key,
    key_follows,
    lone_backslash,
    peek,
    quote_follows,
    skip,
    stops,
    structure_at,
    twice,
    unescape,
    whole_characters,
)
from .strings import StringScan

# ruff: noqa: RUF001 - what models write has such characters


MAX_DEPTH = 200
# Every string that turns out to have no end costs a look at the whole rest.
_MAX_UNTERMINATED = 8
_WORD = re.compile(r"[-+.\w]+")
_WORD_MARK = re.compile(r"\n\s*|[,;，；{}\])｝］】\"`<]|\s(?://|/\*|#\s|<!--)")
_SHORT_WORD = re.compile(
    r"(?:[-+.\d][\w.+-]*|true|false|null|True|False|None)(?![\w.+-])"
)
_BARE_KEY = re.compile(r"[\w$@][\w$@./-]{0,80}(?: [\w$-]{1,40}){0,3}")
_TRIPLES = ('"""', "'''", "```")
_MAX_TRIPLES = 20
_LABEL = re.compile(r"[^\n`]{0,60}(?=\n)")
_DOUBLED = re.compile(r"(\"\"|'')(?=[^\s,:}\]\"'])([^\"'\n]{1,300})([\"']{1,2})")
_TAIL = re.compile(
    r"\s{0,40}(?:`{3,9}|</[A-Za-z][\w-]{0,40}>|<[|｜][^<>]{0,40}>)\s{0,40}\Z"
)
_CONTROL = re.compile(r"[\x00-\x1f]")
_ESCAPED_QUOTE = re.compile(r'(?<!\\)\\"')
_QUOTATION = re.compile(r'(?<!\w)"(?=\S)[^"\n]{1,200}(?<=\S)"(?!\w)')
# A quote that may end its string, and one that may begin another.
_MAY_END = re.compile(r'"\s{0,40}[,:}\]]|"\s{1,40}\Z')
_MAY_BEGIN = re.compile(r'(?:[,:{\[]|\A\s)\s{0,40}"')
_EMPTY = re.compile(r"[{\[]\s{0,40}[}\]]")
_OPENER_OF = {"}": "{", "]": "[", ")": "("}

STRAY_WORDS = "it holds words where JSON has values"
UNESCAPED = "a quote in one of its strings is not escaped"
ELIDED = "it leaves something out with dots"
NO_VALUE = "a key in it has no value"
BRACKETS = "a bracket in it is missing, or one too many"
GOES_ON = "it goes on behind its last bracket"
UNWRITTEN = "a backslash in one of its strings is not escaped"


@dataclass(frozen=True)
class JsonValue:
    """One value that was read from a text."""

    value: Any
    end: int  # the index just after it
    complete: bool  # False: the text ended inside it
    # The text ended inside a string, number or word, which may be wrong.
    cut_in_value: bool
    repairs: int  # how much had to be repaired; 0 is strict JSON
    # What is left over of the text, so that another reading may be the right one: words without a
    # place, a key written twice, a bracket too many.
    spare: str = ""
    balanced: bool = True  # each bracket is closed by its own, and none is left


@dataclass(frozen=True)
class Attempt:
    """The outcome of reading at one place."""

    value: JsonValue | None
    cost: int  # how many characters were looked at
    too_deep_until: int = 0  # all that begins before it is nested too deeply


class LenientParser:
    """Parses the value that begins at `at`."""

    def __init__(self, text: str, at: int, repairs: int = 0) -> None:
        self._text = text
        self._at = at
        self._root: Container | None = None
        self._frames: list[Frame] = []
        self._is_prose = False  # the root has text, and none of it is a key or a value
        self._is_cut = False  # the text ended inside a value
        self._spare = ""
        self._is_balanced = True
        self._repairs = repairs
        self._unterminated = 0  # strings without an end

    def parse(self) -> Attempt:
        """The value, and what it cost."""
        begin = self._at
        if self._text[begin] not in OPENERS:
            scalar = self._parse_scalar()
            if scalar is None:
                return Attempt(None, 0)
            return Attempt(scalar, scalar.end - begin)
        try:
            complete = self._parse_containers()
        except RecursionError:
            return Attempt(None, self._at - begin, too_deep_until=self._at)
        cost = self._at - begin + self._unterminated * (len(self._text) - begin)
        if self._is_prose:
            return Attempt(None, cost)
        return Attempt(self._value_read(self._root, complete=complete), cost)

    def _value_read(self, value: object, *, complete: bool) -> JsonValue:
        return JsonValue(
            value,
            self._at,
            complete,
            self._is_cut,
            self._repairs,
            self._spare,
            balanced=complete and self._is_balanced,
        )

    def _parse_scalar(self) -> JsonValue | None:
        if self._is_at_string():
            string = self._parse_string(Slot.ROOT)
            return self._value_read(string, complete=not self._is_cut)
        word = _WORD.match(self._text, self._at)
        if word is None:
            return None
        value, repairs = literal(word[0])
        if isinstance(value, str):
            return None
        self._at = word.end()
        self._repairs += repairs
        return self._value_read(value, complete=True)

    # -- containers -------------------------------------------------------------------------------

    def _parse_containers(self) -> bool:
        """Parse until the root is closed; returns whether it was."""
        self._open()
        while self._frames:
            before = self._at
            self._skip_space()
            if self._text_ends(before):
                break
            frame = self._frames[-1]
            char = self._text[self._at]
            if char in CLOSERS:
                self._close(CLOSERS[char])
            elif char in COMMAS:
                self._at += 1
                if char != ",":
                    self._repairs += 1
                frame.commas += 1
            elif dots := ELLIPSIS.match(self._text, self._at):
                self._pass_over(dots.end())
                self._doubt(ELIDED)
            elif frame.is_object:
                self._parse_field(frame)
            else:
                self._parse_item(frame)
        closed = not self._frames
        if not closed and self._is_at_end() and self._frames[-1].commas:
            self._is_cut = True  # it was about to go on
        while self._frames:
            self._repairs += 1
            self._pop()
        return closed

    def _is_at_end(self) -> bool:
        return self._at >= len(self._text)

    def _text_ends(self, before: int) -> bool:
        """Whether the JSON ends here: with the text, at a fence or tag, or where prose goes on."""
        text = self._text
        at = self._at
        if stops(text, at):
            return True
        # A paragraph that begins with a word is prose, unless this container has bare words, or
        # the word is a key or a value.
        frame = self._frames[-1]
        may_be_prose = frame.value and not frame.has_bare_words and text[at].isalpha()
        if may_be_prose and BLANK_LINE.search(text, before, at):
            return not (VALUE_START.match(text, at) or is_key(text, at))
        return False

    def _skip_space(self) -> None:
        """Go on behind white space and comments."""
        begin = self._at
        self._at = skip(self._text, begin)
        # Comments are no JSON. A single character is white space, or invisible, and no repair.
        if self._at - begin > 1 and not self._text[begin : self._at].isspace():
            self._repairs += 1

    def _pass_over(self, end: int) -> None:
        """Go on at `end`: what stands before it is no JSON."""
        self._at = end
        self._repairs += 1

    def _open(self) -> None:
        char = self._text[self._at]
        self._at += 1
        if char not in "{[":
            self._repairs += 1
        closer = OPENERS[char]
        container: Container = []
        if closer == "}":
            container = {}
        if self._frames:
            self._put(container)
        else:
            self._root = container
        self._push(Frame(closer, container))

    def _put(self, value: object) -> None:
        self._doubt(self._frames[-1].put(value))

    def _doubt(self, reason: str) -> None:
        """Note that another reading may be the right one; the first reason counts."""
        self._spare = self._spare or reason

    def _push(self, frame: Frame) -> None:
        if len(self._frames) >= MAX_DEPTH:
            raise RecursionError
        self._frames.append(frame)

    def _pop(self) -> None:
        frame = self._frames.pop()
        commas = frame.commas
        if not frame.value:
            commas -= 1  # the one that a container opens with, which nobody wrote
        self._repairs += max(0, commas)
        if frame.has_prose:
            self._doubt(STRAY_WORDS)
            self._is_prose = not frame.value and not self._frames

    def _close(self, closer: str) -> None:
        self._at += 1
        depth = self._depth_of(closer)
        if depth is None:
            self._pass_over(self._at)
            self._doubt(BRACKETS)
            return
        # The containers inside it were not closed by brackets of their own.
        left_open = self._frames[depth + 1 :]
        if not all(frame.value for frame in left_open):
            self._doubt(BRACKETS)
        self._is_balanced = self._is_balanced and not left_open
        self._repairs += len(left_open)
        if self._frames[depth].doubled:
            if self._text.startswith("}", self._at):
                self._at += 1
            else:
                self._is_balanced = False
        while len(self._frames) > depth:
            self._pop()

    def _depth_of(self, closer: str) -> int | None:
        """Where the innermost container stands that the bracket can close."""
        for depth in range(len(self._frames) - 1, -1, -1):
            if self._frames[depth].closer == closer:
                return depth
        return None

    # -- items and fields -------------------------------------------------------------------------

    def _parse_item(self, frame: Frame) -> None:
        if self._text[self._at] in COLONS:
            self._pass_over(self._at + 1)
            self._doubt(STRAY_WORDS)
        else:
            if QUOTED_KEY.match(self._text, self._at):  # [{"a": 1}, "b": 2}]
                self._doubt(BRACKETS)
            lacks_comma = not frame.commas
            is_empty = _EMPTY.match(self._text, self._at)
            self._settle_commas(frame)
            self._parse_value(frame, Slot.ITEM)
            if lacks_comma and (is_empty or frame.has_bare_words):
                self._doubt(STRAY_WORDS)

    def _parse_field(self, frame: Frame) -> None:
        if self._text[self._at] in OPENERS:
            self._parse_opener_for_key(frame)
            return
        quoted = self._is_at_string()
        if quoted:
            key = self._parse_string(Slot.KEY)
        else:
            key = self._parse_bare_key(frame)
        if key is None:
            return
        self._settle_commas(frame)
        if not self._pass_colon(quoted=quoted):
            # A key without a value is no field; a word may be prose.
            self._repairs += 1
            frame.has_prose = frame.has_prose or not quoted
            if self._is_at_end():
                self._is_cut = True
            else:
                self._doubt(STRAY_WORDS)
            return
        frame.key = key
        if not quoted:
            frame.has_bare_words = True
        if not self._parse_value(frame, Slot.FIELD):
            self._repairs += 1
            self._is_cut = self._is_cut or self._is_at_end()
            self._doubt(NO_VALUE)

    def _pass_colon(self, *, quoted: bool) -> bool:
        """Pass the colon, or what stands for it; returns whether a value may follow."""
        self._skip_space()
        arrow = ARROW.match(self._text, self._at)
        if arrow:
            self._at = arrow.end()
            self._skip_space()
            if arrow[0] != ":":
                self._repairs += 1
            return True
        if not quoted or self._is_at_end():
            return False
        self._repairs += 1  # {"a" "b"}: the colon was forgotten
        return self._text[self._at] in OPENERS or self._is_at_string()

    def _parse_bare_key(self, frame: Frame) -> str | None:
        key = _BARE_KEY.match(self._text, self._at)
        if key is None:
            self._pass_over(self._at + 1)
            frame.has_prose = True
            return None
        self._pass_over(key.end())
        if self._text.startswith(('"', "'"), self._at):
            self._at += 1  # {a": 1}: its opening quote was forgotten
        return key[0].strip()

    def _parse_opener_for_key(self, frame: Frame) -> None:
        """Pass over a bracket where a key should be: braces are doubled for templates."""
        frame.doubled = not frame.value and not frame.doubled
        if not frame.doubled:
            self._doubt(BRACKETS)
        self._pass_over(self._at + 1)

    def _settle_commas(self, frame: Frame) -> None:
        """Count a comma too many or too few before an item."""
        self._repairs += abs(frame.commas - 1)
        frame.commas = 0

    def _parse_value(self, frame: Frame, slot: Slot) -> bool:
        """Parse the value that stands here into the frame; returns whether one does."""
        text = self._text
        at = self._at
        if at >= len(text):
            return False
        if text[at] in OPENERS:
            self._open()
            return True
        if self._is_at_string():
            string = self._parse_string(slot)
            if string is None:
                return False
            self._put(string)
            return True
        if stops(text, at) or text[at] in STRUCTURE or ELLIPSIS.match(text, at):
            return False
        value = self._parse_word(slot)
        self._put(value)
        if slot is Slot.ITEM and isinstance(value, str):
            frame.has_bare_words = True
        return True

    # -- words ------------------------------------------------------------------------------------

    def _parse_word(self, slot: Slot) -> Scalar:
        """The value without quotes that begins here; it is at least one character long."""
        begin = self._at
        end = self._word_end(slot)
        token = self._text[begin:end].strip()
        word = token
        if token.endswith('"'):  # its opening quote was forgotten
            word = token.rstrip('"').rstrip()
            self._repairs += 1
        value, repairs = literal(word)
        self._at = max(end, begin + 1)
        self._repairs += repairs
        if isinstance(value, str) and '"' in token[:-1]:
            # It may as well be a string with stray words before it.
            self._doubt(STRAY_WORDS)
        self._is_cut = self._is_cut or end >= len(self._text)
        return value

    def _word_end(self, slot: Slot) -> int:
        text = self._text
        at = self._at
        short_word = _SHORT_WORD.match(text, at)
        if short_word and self._next_begins(short_word.end(), slot):
            return short_word.end()
        braces = 0  # opened inside the word
        for match in _WORD_MARK.finditer(text, at):
            mark = match.start()
            char = text[mark]
            if char == "{":
                braces += 1
            elif char == "}" and braces:
                braces -= 1
            elif self._ends_word(mark, slot):
                if char == '"' and not is_key(text, mark):
                    return mark + 1  # the quote belongs to the word
                return mark
        return len(text)

    def _next_begins(self, at: int, slot: Slot) -> bool:
        """Whether the next field or item begins behind a number or a literal, comma or not."""
        text = self._text
        after = peek(text, at)
        if comma_at(text, after):
            return quote_follows(text, after)
        if slot is Slot.ITEM:
            return after > at and VALUE_START.match(text, after) is not None
        return key_follows(text, after, self._frames)

    def _ends_word(self, at: int, slot: Slot) -> bool:
        """Whether the mark at `at` ends the word."""
        text = self._text
        char = text[at]
        if char in COMMAS:
            return slot is Slot.ITEM or comma_separates(text, at, slot, self._frames)
        if char in CLOSERS:
            return can_close(char, self._frames)
        if char == '"':  # it was forgotten at the beginning, or the next key begins
            return structure_at(text, at + 1) or is_key(text, at)
        if char in "`<":
            return stops(text, at)
        if char == "\n" and slot is Slot.FIELD:
            # Text without quotes may have several lines.
            if structure_at(text, at):
                return True
            return key_follows(text, peek(text, at), self._frames)
        return True

    # -- strings ----------------------------------------------------------------------------------

    def _is_at_string(self) -> bool:
        r"""Whether a string begins here, with a quote or, escaped once too often, with \"."""
        return self._text[self._at] in QUOTES or self._text.startswith('\\"', self._at)

    def _parse_string(self, slot: Slot) -> str | None:
        """The string that stands here, with those that a + adds to it; None for a fence."""
        parts: list[str] = []
        while True:
            part = self._parse_one_string(slot)
            if part is None:
                return None
            parts.append(part)
            plus = peek(self._text, self._at)
            joins = self._text.startswith("+", plus) and quote_follows(self._text, plus)
            if slot is Slot.ROOT or not joins:
                return "".join(parts)
            self._pass_over(peek(self._text, plus + 1))

    def _parse_one_string(self, slot: Slot) -> str | None:
        text = self._text
        at = self._at
        if text[at] == "\\":
            return self._parse_doubly_escaped(at + 2)
        if slot in (Slot.FIELD, Slot.ITEM) and text.startswith(_TRIPLES, at):
            string = self._parse_triple(at)
            if string is not None or text[at] == "`":
                return string
        doubled = _DOUBLED.match(text, at)
        if doubled and (slot is Slot.KEY or structure_at(text, doubled.end())):
            self._repairs += 1  # {""a"": ""b""}
            return self._end_string(doubled[2], doubled.end())
        return self._parse_quoted(slot)

    def _parse_quoted(self, slot: Slot) -> str:
        text = self._text
        at = self._at
        scan = StringScan(text, at + 1, slot, self._frames)
        ends = scan.find_end()
        self._repairs += scan.inner_quotes
        if text[at] != '"':
            self._repairs += 1
        if ends is None:
            return self._parse_unterminated(scan)
        end, resume = ends
        raw = text[at + 1 : end]
        if scan.inner_quotes and (resume == end or _may_be_two(raw)):
            self._doubt(UNESCAPED)
        if _CONTROL.search(raw):
            self._repairs += 1
        if resume != end + 1:
            self._repairs += 1
        return self._end_string(raw, resume)

    def _end_string(self, raw: str, resume: int) -> str:
        """The text of a string, behind which parsing goes on at `resume`."""
        value, repairs = unescape(raw)
        if holds_control_word(value):
            self._doubt(UNWRITTEN)
        self._at = resume
        self._repairs += repairs
        return value

    def _cut_string(self, raw: str) -> str:
        """The text of a string that the text ends inside of."""
        value, repairs = unescape(raw, cut=True)
        self._at = len(self._text)
        self._repairs += repairs
        self._is_cut = True
        return value

    def _parse_unterminated(self, scan: StringScan) -> str:
        """A string with no end: its closing quote was forgotten, or the text was cut off in it."""
        text = self._text
        begin = scan.begin
        self._unterminated += 1
        if self._unterminated > _MAX_UNTERMINATED:
            return self._cut_string(text[begin:])
        self._repairs += 1
        # A fence or a tag at the end of the text is not part of the string.
        body = text[begin:]
        tail = _TAIL.search(text, max(begin, len(text) - 60))
        if tail:
            body = text[begin : tail.start()]
        content = self._without_closers(body)
        if content is None:
            return self._cut_string(body)
        if scan.inner_quotes % 2:  # one of them was its end, and junk follows
            end = scan.last_inner_quote
            return self._end_string(text[begin:end], end + 1)
        return self._end_string(content, begin + len(content))

    def _without_closers(self, raw: str) -> str | None:
        """The string without the closing brackets at its end, if they close all that is open."""
        content = raw.rstrip()
        for frame in self._frames:
            if not content.endswith(frame.closer):
                return None
            # A bracket that the string itself opened belongs to the string.
            opened = content.count(_OPENER_OF[frame.closer])
            if content.count(frame.closer) <= opened:
                return None
            content = content[:-1].rstrip()
        return content

    def _parse_triple(self, at: int) -> str | None:
        """A string in triple quotes, as in Python; None if it has no end."""
        text = self._text
        quotes = text[at : at + 3]
        begin = at + 3
        end = self._triple_end(quotes, begin)
        if end is None:
            return None
        if quotes == "```":
            label = _LABEL.match(text, begin)
            if label:
                begin = label.end()
        content = text[begin:end]
        if content.startswith("\n"):
            # A block of its own: as written, without the margin.
            content = textwrap.dedent(content[1:]).rstrip()
        self._repairs += 1
        return self._end_string(content, end + 3)

    def _triple_end(self, quotes: str, begin: int) -> int | None:
        """Where the first triple quotes stand that the structure of JSON follows."""
        text = self._text
        end = text.find(quotes, begin)
        for _ in range(_MAX_TRIPLES):
            if end < 0:
                return None
            while text.startswith(quotes[0], end + 3):
                end += 1  # a quote of the text itself, before the three
            after = peek(text, end + 3)
            char = text[after : after + 1]
            is_stray = char in CLOSERS and not can_close(char, self._frames)
            if structure_at(text, after) and not is_stray:
                return end
            end = text.find(quotes, end + 3)
        return None

    def _parse_doubly_escaped(self, begin: int) -> str:
        r"""A string between \" and \", as in JSON encoded twice but for its outer quotes."""
        text = self._text
        self._repairs += 1
        closing = _ESCAPED_QUOTE.search(text, begin)
        if closing is None:
            raw, _ = unescape(text[begin:], cut=True)
            return self._cut_string(raw)
        raw, _ = unescape(text[begin : closing.start()])
        return self._end_string(raw, closing.end())


def _may_be_two(raw: str) -> bool:
    """Whether quotes inside a string may be the end of one and the beginning of another."""
    if _MAY_END.search(raw):
        return True
    return _MAY_BEGIN.search(_QUOTATION.sub("", raw)) is not None


# -- lenient ---------------------------------------------------------------------------------------
# One JSON value out of a text, read leniently: syntax is repaired, values are never invented.


def read_json(text: str, start: int = 0) -> JsonValue | None:
    """The JSON value that begins at text[start], after white space; None where none begins.

    Deeper than 200 containers is not read. NaN and the infinities are read as None, "no value".
    """
    return attempt_json(text, start).value


def attempt_json(text: str, start: int = 0) -> Attempt:
    """Like `read_json`, for those who look in many places and must not look too often."""
    strict = _read_strict(text, start)
    if strict:
        return _and_behind(text, Attempt(strict, strict.end - start))
    at = skip(text, start)
    if text[at : at + 1] in ("", "("):
        return Attempt(None, 0)
    repairs = 0
    if text[start:at].strip():  # a comment before it
        repairs = 1
    return _and_behind(text, LenientParser(text, at, repairs).parse())


def _and_behind(text: str, attempt: Attempt) -> Attempt:
    """The same, having looked behind the value: the brackets that end it may be the wrong ones."""
    value = attempt.value
    if value is None or not value.complete or not isinstance(value.value, (dict, list)):
        return attempt
    at = peek(text, value.end)
    balanced = value.balanced and text[at : at + 1] not in ("}", "]")
    at = peek(text, _CLOSERS.match(text, at).end())  # type: ignore[union-attr]
    has_no_end = goes_on(text, at) or _GLUED.match(text, value.end) is not None
    if text.startswith(("{", "["), at):  # []{"a": 1}], and [1, ][2]]
        has_no_end = _ENDS_EARLY.search(text, value.end - 40, value.end) is not None
    if balanced == value.balanced and not has_no_end:
        return attempt
    spare = GOES_ON if has_no_end else value.spare
    return replace(attempt, value=replace(value, balanced=balanced, spare=spare))


_GLUED = re.compile(r"[A-Za-z0-9]")  # what no prose has right behind a bracket
_ENDS_EARLY = re.compile(r"[,:\[]\s*[}\])]\Z")
_CLOSERS = re.compile(r"[\s}\])]*")


def refuse_constant(name: str) -> NoReturn:
    """Python's parser reads NaN and the infinities, which are not JSON."""
    raise ValueError(name)


def _finite(digits: str) -> float:
    value = fraction(digits)
    if not math.isfinite(value):  # 1e999 is not a number either
        refuse_constant(digits)
    return value


def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object of these fields, for a decoder; ValueError where a key has two values."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        for key, value in pairs:
            if fields[key] != value:
                raise ValueError(twice(key))
    return fields


_DECODER = json.JSONDecoder(
    parse_constant=refuse_constant, parse_float=_finite, object_pairs_hook=once
)


def _read_strict(text: str, start: int) -> JsonValue | None:
    """What the standard library reads: fast, and most answers need no more."""
    at = SPACE.match(text, start).end()  # type: ignore[union-attr]
    if text[at : at + 1] not in ("{", "[", '"'):
        return None
    try:
        value, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    if lone_backslash(text, at, end):
        return None
    brackets = text.count("[", at, end) + text.count("{", at, end)
    if brackets > MAX_DEPTH and _is_too_deep(value):
        return None
    repairs = 0
    if "\\u" in text[at:end]:
        whole = whole_characters(value)
        repairs = int(whole != value)
        value = whole
    return JsonValue(value, end, complete=True, cut_in_value=False, repairs=repairs)


def _is_too_deep(value: object) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        items: list[object] = []
        for container in level:
            if isinstance(container, dict):
                items += container.values()
            elif isinstance(container, list):
                items += container
        level = [item for item in items if isinstance(item, (dict, list))]
    return bool(level)


# -- partial ---------------------------------------------------------------------------------------
# An object as far as it has come, while its text still streams in.
#
# Open strings are shown as far as they are, numbers once they are complete. What is shown is
# for looking at: broken JSON is shown no further. `answer.read_answer` reads the answer itself,
# from the whole text.

# An object that begins, and not a brace of prose such as {name}.
_OBJECT_BEGINS = re.compile(r"\{\s*(?:(?P<json>\"|\}|\Z)|'?\w+'?\s*[:=])")
# A number that ends with the text: more digits may follow.
_OPEN_NUMBER = re.compile(r"(?<=[:,\[\s])-?\d[-+.\deE]*\Z")
# May be read as an infinity, which is not JSON.
_INFINITE = re.compile(r"\d{300}|\d[eE]\+?\d{3}")


class PartialObject:
    """The first object of a text that comes in chunks; None before it begins.

    The text is parsed again when it has grown by a 64th, which keeps the cost linear.
    """

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._size = 0
        self._next_parse = 0  # the size from which on the text is parsed again
        self._value: dict[str, object] | None = None

    def parse_chunk(self, text: str) -> dict[str, object] | None:
        """The object so far. Values returned before stay as they were."""
        self._parts.append(text)
        self._size += len(text)
        if self._size >= self._next_parse:
            self._next_parse = self._size + self._size // 64
            self._parts = ["".join(self._parts)]
            self._value = _parse_beginning(self._parts[0]) or self._value
        return self._value


def _parse_beginning(text: str) -> dict[str, object] | None:
    match = _OBJECT_BEGINS.search(text)
    if match is None or match["json"] is None:
        return None
    data = _OPEN_NUMBER.sub("", text[match.start() :]).encode(errors="replace")
    value: dict[str, object]
    try:
        value = from_json(data, allow_inf_nan=False, allow_partial="trailing-strings")
        if _INFINITE.search(text):
            value = from_json(to_json(value, inf_nan_mode="null"))
    except ValueError:
        return None
    return value
