"""Reads broken JSON in one pass forward; every decision looks at a bounded stretch of text.

- A key without a value is not a field; a container that the text leaves open is closed as it is.
- A closing bracket closes what it can, unless what follows could not stand there: a slip.
- A comma too many or too few changes nothing. What is neither key nor value is passed over.
- Whether a quote ends its string can be seen from what follows: after the value of a field come a
  comma and a key, or a closing bracket; after an item a comma and a value; after a key a colon. A
  quote that none of these follows is part of the text, unless it opens the next string because the
  quote before it was forgotten.
"""

# ruff: noqa: RUF001 - what models write has such characters

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from typing import Any

from .scalars import literal
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
    VALUE_START,
    WHOLE_STRING,
    is_key,
    peek,
    skip,
    stops,
    structure_at,
    unescape,
)  # fmt: skip

MAX_DEPTH = 200
_LONGEST_KEY = 1_000
_MAX_LOST_ENDS = (
    8  # every string that turns out to have no end costs a look at the whole rest
)
_ROOT, _KEY, _FIELD, _ITEM = "root", "key", "field", "item"  # where a string may stand
_WORD = re.compile(r"[-+.\w]+")
_WORD_MARK = re.compile(r"\n\s*|[,;，；{}\])｝］】\"`<]|\s(?://|/\*|#\s|<!--)")
_SHORT = re.compile(r"(?:[-+.\d][\w.+-]*|true|false|null|True|False|None)(?![\w.+-])")
_TRIPLES = ('"""', "'''", "```")
_LABEL = re.compile(r"[^\n`]{0,60}(?=\n)")
_DOUBLED = re.compile(r"(\"\"|'')(?=[^\s,:}\]\"'])([^\"'\n]{1,300})([\"']{1,2})")
_MOST_TRIPLES = 20
_TAIL = re.compile(
    r"\s{0,40}(?:`{3,9}|</[A-Za-z][\w-]{0,40}>|<[|｜][^<>]{0,40}>)\s{0,40}\Z"
)
_RAW = re.compile(r"[\x00-\x1f]")
_SEARCHES = {
    quote: re.compile(f"[{re.escape(ends)}\\\\]") for quote, ends in QUOTES.items()
}
_ESCAPED_QUOTE = re.compile(r'(?<!\\)\\"')
_KEY_OPENS = re.compile(
    rf"\"[^\"\n:{{}}]{{1,80}}\"\s{{0,20}}:\s{{0,40}}{VALUE_START.pattern}"
)
_KEY_IN_TAIL = re.compile(r",\s{0,40}([^\W\d][\w$-]{0,60})\s{0,20}:\s{0,20}$")
_KEY_TEXT = re.compile(r"\s*[^:{}\[\],\"]{1,80}(?=:)")
_LOST_OPENING = re.compile(r"\s{0,5}[^\"\s,\]][^\"\n,\]]{0,80}\"?")
_CUT_WORD = re.compile(r"(?:t|tr|tru|f|fa|fal|fals|n|nu|nul|-)\Z")
_CUT_KEY = re.compile(r"\"(?:[^\"\\\n]|\\[^\n]){0,200}\\?\Z")
_MAY_END = re.compile(
    r'"\s{0,40}[,:}\]]|[,:{\[]\s{0,40}"'
)  # a quote that may end its string
_INCHES = re.compile(r"(?:^|[\s(x×])\d+(?:[.,/]\d+)?$")
_BARE_KEY = re.compile(r"[\w$@][\w$@./-]{0,80}(?: [\w$-]{1,40}){0,3}")


STRAY_WORDS = "it holds words where JSON has values"
UNESCAPED = "a quote in one of its strings is not escaped"
ELIDED = "it leaves something out with dots"


def twice(key: str) -> str:
    """What is wrong where a key has two values: one of them would be lost."""
    return f"the key {key[:40]!r} stands twice"


@dataclass(frozen=True)
class JsonValue:
    """One value read from a text."""

    value: Any
    end: int  # the index just after it
    complete: bool  # False: the text ended inside it
    cut_in_value: (
        bool  # the text ended inside a string, number or word, which may be wrong
    )
    repairs: int  # how much had to be repaired; 0 is strict JSON
    # Why some of the text is in no value: words without a place, a key written twice.
    spare: str = ""


@dataclass(frozen=True)
class Attempt:
    """What reading at one place came to."""

    value: JsonValue | None
    cost: int  # how many characters were looked at
    too_deep_until: int = 0  # all that begins before it is nested too deeply


@dataclass
class _Inside:
    """What a scan has seen of a string's inside so far."""

    begin: int
    quotes: int = 0  # quotes that turned out to be text
    braces: int = 0  # how many more { than }
    last: int = 0  # where the last of these quotes stands


@dataclass
class _Frame:
    """One open container."""

    closer: str
    value: Any
    key: str = ""  # of the last field
    commas: int = 1  # since the last item; a container opens as if after a comma
    prose: bool = False  # it has what is neither key nor value
    bare: bool = False  # it has keys or items without quotes

    @property
    def is_object(self) -> bool:
        return isinstance(self.value, dict)

    def put(self, value: Any) -> str:
        """Add an item, or set the value of the last key; says if that key had another value."""
        if not self.is_object:
            self.value.append(value)
            return ""
        is_twice = self.key in self.value and self.value[self.key] != value
        self.value[self.key] = value
        return twice(self.key) if is_twice else ""


class Reader:
    """Reads the value that begins at `at`."""

    def __init__(self, text: str, at: int) -> None:
        self._text, self._at = text, at
        self._root: Any = None
        self._prose = self._cut = False
        self._spare = ""
        self._repairs = self._lost = 0
        self._stack: list[_Frame] = []

    def read(self) -> Attempt:
        """The value, and what it cost."""
        begin = self._at
        if self._text[begin] not in OPENERS:
            value = self._scalar()
            return Attempt(value, value.end - begin if value else 0)
        try:
            complete = self._containers()
        except RecursionError:
            return Attempt(None, self._at - begin, too_deep_until=self._at)
        cost = self._at - begin + self._lost * (len(self._text) - begin)
        if self._prose:
            return Attempt(None, cost)
        fields = (self._root, self._at, complete, self._cut, self._repairs, self._spare)
        return Attempt(JsonValue(*fields), cost)

    def _scalar(self) -> JsonValue | None:
        if self._string_here():
            value = self._string(_ROOT)
            return JsonValue(value, self._at, not self._cut, self._cut, self._repairs)
        found = _WORD.match(self._text, self._at)
        value, repairs = literal(found[0]) if found else ("", 0)
        if isinstance(value, str) or not found:
            return None
        return JsonValue(
            value, found.end(), complete=True, cut_in_value=False, repairs=repairs
        )

    # -- containers -------------------------------------------------------------------------------

    def _containers(self) -> bool:
        """Read until the root is closed; says whether it was."""
        self._open()
        while self._stack:
            before = self._at
            self._skip(before)
            if self._text_ends(before):
                break
            frame, char = self._stack[-1], self._text[self._at]
            if char in CLOSERS:
                self._close(CLOSERS[char])
            elif char in COMMAS:
                self._at += 1
                self._repairs += char != ","
                frame.commas += 1
            elif dots := ELLIPSIS.match(self._text, self._at):
                self._junk(dots.end())
                self._spare = self._spare or ELIDED
            elif frame.is_object:
                self._field(frame)
            else:
                self._item(frame)
        closed = not self._stack
        if not closed and self._at >= len(self._text) and self._stack[-1].commas:
            self._cut = True  # it was about to go on
        while self._stack:
            self._repairs += 1
            self._pop()
        return closed

    def _text_ends(self, before: int) -> bool:
        """Whether the JSON ends here: with the text, at a fence or tag, or where prose goes on."""
        frame, text, at = self._stack[-1], self._text, self._at
        if stops(text, at):
            return True
        may_be_prose = frame.value and not frame.bare and text[at].isalpha()
        if may_be_prose and BLANK_LINE.search(text, before, at):
            return not (VALUE_START.match(text, at) or is_key(text, at))
        return False

    def _skip(self, at: int) -> None:
        """Go on behind white space and comments."""
        self._at = skip(self._text, at)
        self._repairs += self._at - at > 1 and not self._text[at : self._at].isspace()

    def _junk(self, end: int) -> None:
        self._at = end
        self._repairs += 1

    def _open(self) -> None:
        char = self._text[self._at]
        closer = OPENERS[char]
        self._at += 1
        self._repairs += char not in "{["
        value: Any = {} if closer == "}" else []
        if self._stack:
            self._put(value)
        else:
            self._root = value
        self._push(_Frame(closer, value))

    def _put(self, value: Any) -> None:
        problem = self._stack[-1].put(value)
        self._spare = self._spare or problem

    def _push(self, frame: _Frame) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise RecursionError
        self._stack.append(frame)

    def _pop(self) -> None:
        frame = self._stack.pop()
        self._repairs += max(0, frame.commas - (not frame.value))
        if frame.prose:
            self._spare = self._spare or STRAY_WORDS
            self._prose = not frame.value and not self._stack

    def _close(self, closer: str) -> None:
        self._at += 1
        depths = [at for at, frame in enumerate(self._stack) if frame.closer == closer]
        depth = depths[-1] if depths else -1
        skipped = len(self._stack) - 1 - depth
        if depth < 0 or not self._believed(depth, skipped):
            self._repairs += 1
            return
        self._repairs += skipped
        while len(self._stack) > depth:
            self._pop()

    def _believed(self, depth: int, skipped: int) -> bool:
        """Whether what follows a closing bracket can stand where it leaves us."""
        text, after = self._text, peek(self._text, self._at)
        if text[after : after + 1] not in COMMAS:
            return True
        after = peek(text, after + 1)
        parent = self._stack[depth - 1] if depth else None
        in_object = parent is not None and parent.is_object
        if self._stack[depth].is_object:
            return in_object or not QUOTED_KEY.match(text, after)
        if in_object if parent else skipped:
            string = WHOLE_STRING.match(text, after)
            beyond = peek(text, string.end()) if string else after
            return not (
                text.startswith(("{", "["), after)
                or text.startswith((",", "]"), beyond)
            )
        return True

    # -- items and fields -------------------------------------------------------------------------

    def _item(self, frame: _Frame) -> None:
        in_object = len(self._stack) > 1 and self._stack[-2].is_object
        if self._text[self._at] in COLONS:
            self._junk(self._at + 1)
        elif frame.value and in_object and QUOTED_KEY.match(self._text, self._at):
            self._pop()  # a key where an item should be: the closing bracket was forgotten
            self._repairs += 1
        else:
            self._after_comma(frame)
            self._value(frame, _ITEM)

    def _field(self, frame: _Frame) -> None:
        if self._text[self._at] in OPENERS:
            self._opener_for_key(frame)
            return
        quoted, lost = self._string_here(), self._lost
        key = self._string(_KEY) if quoted else self._bare_key(frame)
        if key is None:
            return
        self._after_comma(frame)
        if not self._arrow(quoted=quoted):
            self._repairs += 1
            ended = self._at >= len(self._text)
            self._cut = self._cut or ended
            may_go_on = quoted and (ended or lost < self._lost)
            frame.prose = frame.prose or not may_go_on
            return
        frame.key, frame.bare = key, frame.bare or not quoted
        if not self._value(frame, _FIELD):
            self._repairs += 1
            self._cut = self._cut or self._at >= len(self._text)

    def _arrow(self, *, quoted: bool) -> bool:
        """Pass the colon, or what stands for it; whether a value may follow."""
        self._skip(self._at)
        arrow = ARROW.match(self._text, self._at)
        if arrow:
            self._skip(arrow.end())
            self._repairs += arrow[0] != ":"
        elif quoted and self._at < len(self._text):
            self._repairs += 1
            return self._text[self._at] in OPENERS or self._string_here()
        return arrow is not None

    def _bare_key(self, frame: _Frame) -> str | None:
        found = _BARE_KEY.match(self._text, self._at)
        if found is None:
            self._junk(self._at + 1)
            frame.prose = True
            return None
        self._junk(found.end())
        self._at += self._text.startswith(
            ('"', "'"), self._at
        )  # its opening quote was forgotten
        return found[0].strip()

    def _opener_for_key(self, frame: _Frame) -> None:
        """An object or a list where a key should be."""
        self._repairs += 1
        last = frame.value.get(frame.key)
        if frame.value and len(self._stack) > 1 and not self._stack[-2].is_object:
            self._pop()  # [{"a": 1, {"a": 2}]: the closing brace was forgotten
        elif isinstance(last, (dict, list)):
            items = last if isinstance(last, list) else [last]
            frame.put(
                items
            )  # "a": {...}, {...}: the brackets of the list were forgotten
            self._push(_Frame("]", items))
        else:
            self._at += 1  # {{"a": 1}}: braces doubled, as templates want them

    def _after_comma(self, frame: _Frame) -> None:
        self._repairs += abs(frame.commas - 1)
        frame.commas = 0

    def _value(self, frame: _Frame, place: str) -> bool:
        """Read the value that stands here, if one does, into the frame."""
        text, at = self._text, self._at
        if at < len(text) and text[at] in OPENERS:
            self._open()
            return True
        if at < len(text) and self._string_here():
            string = self._string(place)
            if string is not None:
                self._put(string)
            return string is not None
        if (
            stops(text, at)
            or text[at] in CLOSERS
            or text[at] in COMMAS
            or ELLIPSIS.match(text, at)
        ):
            return False
        value = self._word(place)
        self._put(value)
        frame.bare = frame.bare or (place is _ITEM and isinstance(value, str))
        return True

    # -- words ------------------------------------------------------------------------------------

    def _word(self, place: str) -> Any:
        """The value without quotes that begins here; it is at least one character long."""
        begin, end = self._at, self._word_end(place)
        token = self._text[begin:end].strip()
        stray = token.endswith('"')
        value, repairs = literal(token.rstrip('"').rstrip() if stray else token)
        self._at = max(end, begin + 1)
        self._repairs += repairs + stray
        if isinstance(value, str) and '"' in token:
            self._spare = (
                self._spare or STRAY_WORDS
            )  # a word, or a string with words before it
        self._cut = self._cut or end >= len(self._text)
        return value

    def _word_end(self, place: str) -> int:
        text, at = self._text, self._at
        short = _SHORT.match(text, at)
        if short and self._next_begins(short.end(), place):
            return short.end()
        braces = 0  # opened inside the word
        for found in _WORD_MARK.finditer(text, at):
            mark = found.start()
            if text[mark] == "{" or (text[mark] == "}" and braces):
                braces += 1 if text[mark] == "{" else -1
            elif self._ends_word(mark, place):
                return mark + (text[mark] == '"' and not is_key(text, mark))
        return len(text)

    def _next_begins(self, at: int, place: str) -> bool:
        """Whether the next field or item begins behind a number or a literal, comma or not."""
        text, after = self._text, peek(self._text, at)
        if text[after : after + 1] in COMMAS:
            return text[(follows := peek(text, after + 1)) : follows + 1] in QUOTES
        if place is _ITEM:
            return after > at and VALUE_START.match(text, after) is not None
        return is_key(text, after, words=self._has_words)

    def _ends_word(self, at: int, place: str) -> bool:
        """Whether the mark at `at` ends the word."""
        text, char = self._text, self._text[at]
        if char in COMMAS:
            return place is _ITEM or self._follows(at, place)
        if char in CLOSERS:
            return self._closes(char)
        if char == '"':  # it was forgotten at the beginning, or the next key begins
            return structure_at(text, at + 1) or is_key(text, at)
        if char in "`<":
            return stops(text, at)
        if (
            char == "\n" and place is _FIELD
        ):  # text without quotes may have several lines
            return structure_at(text, at) or is_key(
                text, peek(text, at), words=self._has_words
            )
        return True

    # -- strings ----------------------------------------------------------------------------------

    def _string_here(self) -> bool:
        r"""Whether a string begins here, with a quote or, escaped once too often, with \"."""
        return self._text[self._at] in QUOTES or self._text.startswith('\\"', self._at)

    def _string(self, place: str) -> str | None:
        """The string that stands here, joined with those that a + adds to it."""
        parts = []
        while (part := self._one_string(place)) is not None:
            parts.append(part)
            plus = peek(self._text, self._at)
            after = peek(self._text, plus + 1)
            joined = (
                self._text[plus : plus + 1] == "+"
                and self._text[after : after + 1] in QUOTES
            )
            if place is _ROOT or not joined:
                return "".join(parts)
            self._junk(after)
        return None  # a fence, not a quote

    def _one_string(self, place: str) -> str | None:
        text, at = self._text, self._at
        if text[at] == "\\":
            return self._escaped_once_more(at + 2)
        if place in (_FIELD, _ITEM) and text.startswith(_TRIPLES, at):
            triple = self._triple(at)
            if triple is not None or text[at] == "`":
                return triple
        doubled = _DOUBLED.match(text, at)
        if doubled and (structure_at(text, doubled.end()) or place is _KEY):
            return self._take(doubled[2], doubled.end(), 1)
        inside = _Inside(at + 1)
        end, resume = self._find_end(place, inside)
        repairs = inside.quotes + (text[at] != '"')
        if end is None:
            return self._unterminated(inside, repairs)
        raw = text[at + 1 : end]
        if inside.quotes and (resume == end or _MAY_END.search(raw)):
            self._spare = self._spare or UNESCAPED
        return self._take(
            raw, resume, repairs + bool(_RAW.search(raw)) + (resume != end + 1)
        )

    def _take(self, raw: str, resume: int, repairs: int, *, cut: bool = False) -> str:
        value, odd = unescape(raw, cut=cut)
        self._at = resume
        self._repairs += repairs + odd
        self._cut = self._cut or cut
        return value

    def _find_end(self, place: str, inside: _Inside) -> tuple[int | None, int]:
        """Where the string's text ends and where reading goes on; (None, …) if it does not end."""
        text, at, seen = self._text, inside.begin, inside.begin
        search = _SEARCHES[text[at - 1]]
        while found := search.search(text, at):
            mark = found.start()
            if found[0] == "\\":
                at = mark + 2
                continue
            if place is _KEY and mark - inside.begin > _LONGEST_KEY:
                break
            inside.braces += text.count("{", seen, mark) - text.count("}", seen, mark)
            seen = mark
            if self._ends(mark, place, inside):
                doubled = text.startswith(text[mark], mark + 1) and structure_at(
                    text, mark + 2
                )
                return mark, mark + 1 + doubled
            before = self._ended_before(mark, place, inside)
            if before is not None:
                return before, before
            inside.quotes += 1
            inside.last = mark
            at = mark + 1
        return None, len(text)

    def _unterminated(self, inside: _Inside, repairs: int) -> str:
        """A string with no end: its closing quote was forgotten, or the text was cut off in it."""
        begin, text = inside.begin, self._text
        self._lost += 1
        if self._lost > _MAX_LOST_ENDS:
            return self._take(text[begin:], len(text), repairs, cut=True)
        tail = _TAIL.search(text, max(begin, len(text) - 60))
        body = text[begin : tail.start() if tail else None]
        kept = self._without_closers(body)
        if kept is None:
            return self._take(body, len(text), repairs + 1, cut=True)
        if inside.quotes % 2:  # one of them was its end, and junk follows
            return self._take(text[begin : inside.last], inside.last + 1, repairs + 1)
        return self._take(kept, begin + len(kept), repairs + 1)

    def _without_closers(self, raw: str) -> str | None:
        """The string without the closing brackets at its end, if they close all that is open."""
        kept = raw.rstrip()
        for frame in self._stack:
            opener = "{[("["}])".index(frame.closer)]
            if not kept.endswith(frame.closer) or kept.count(
                frame.closer
            ) <= kept.count(opener):
                return None
            kept = kept[:-1].rstrip()
        return kept

    def _triple(self, at: int) -> str | None:
        """A string in triple quotes, as in Python; None if there are none."""
        text, mark, begin = self._text, self._text[at : at + 3], at + 3
        end = text.find(mark, begin)
        for _ in range(_MOST_TRIPLES):  # the first with structure after them
            if end < 0:
                return None
            while text.startswith(
                mark[0], end + 3
            ):  # a quote of the text itself, before the three
                end += 1
            after = peek(text, end + 3)
            stray = text[after : after + 1] in CLOSERS and not self._closes(text[after])
            if structure_at(text, after) and not stray:
                break
            end = text.find(mark, end + 3)
        else:
            return None
        label = _LABEL.match(text, begin) if mark == "```" else None
        inside = text[label.end() if label else begin : end]
        if inside.startswith(
            "\n"
        ):  # a block of its own: as written, without the margin
            inside = textwrap.dedent(inside[1:]).rstrip()
        return self._take(inside, end + 3, 1)

    def _escaped_once_more(self, begin: int) -> str:
        r"""A string between \" and \", as in JSON encoded twice but for its outer quotes."""
        found = _ESCAPED_QUOTE.search(self._text, begin)
        end = found.start() if found else len(self._text)
        raw = unescape(self._text[begin:end], cut=not found)[0]
        return self._take(raw, found.end() if found else end, 1, cut=not found)

    # -- where a string ends, when its own quotes do not settle it --------------------------------

    @property
    def _has_words(self) -> bool:
        return bool(self._stack) and self._stack[-1].bare

    def _closes(self, char: str) -> bool:
        """Whether a closing bracket can close one of the open containers."""
        return any(frame.closer == CLOSERS.get(char) for frame in self._stack)

    def _ends(self, at: int, place: str, inside: _Inside) -> bool:
        """Whether the quote at `at` ends its string."""
        text, after = self._text, peek(self._text, at + 1)
        if place is _ROOT or stops(text, after):
            return True
        char = text[after]
        if char in QUOTES:
            return self._ends_before_quote(at, after, place, inside)
        if char == "+" and text[(plus := peek(text, after + 1)) : plus + 1] in QUOTES:
            return True
        if place is _KEY:
            structure = char in COLONS or char in COMMAS or char in CLOSERS
            return structure or "\n" in text[inside.begin : at]
        if char in CLOSERS:
            return self._bracket_ends(after, inside)
        if char in COMMAS:
            return self._comma_ends(at, after, place, inside)
        if place is _FIELD:
            return "\n" in text[at:after] and is_key(text, after, words=self._has_words)
        return after > at + 1 and self._opening_lost(at, after, inside)

    def _comma_ends(self, at: int, comma: int, place: str, inside: _Inside) -> bool:
        """Whether the comma behind a quote separates two fields or items, and is not text."""
        if self._follows(comma, place):
            return True
        if place is _FIELD:
            return self._key_alone(comma, inside)
        return self._opening_lost(at, comma + 1, inside)

    def _ends_before_quote(
        self, at: int, after: int, place: str, inside: _Inside
    ) -> bool:
        """Whether a quote ends its string when another follows: a comma or a colon is missing."""
        text = self._text
        if place is _KEY or is_key(text, after):
            return True
        if after == at + 1 and structure_at(text, after + 1):
            return (
                inside.quotes % 2 == 0
            )  # "value"" is a quote too many; "say "hi"" is not
        string = WHOLE_STRING.match(text, after)
        if place is not _ITEM or string is None:
            return False
        beyond = peek(text, string.end())
        return structure_at(text, beyond) or VALUE_START.match(text, beyond) is not None

    def _bracket_ends(self, at: int, inside: _Inside) -> bool:
        """Whether the bracket behind a quote closes a container, and not a brace of the text."""
        text, after = self._text, at
        if not self._closes(
            text[at]
        ):  # brackets that close nothing, before one that does
            for _ in range(3):
                after = peek(text, after + 1)
                if text[after : after + 1] not in CLOSERS or self._closes(text[after]):
                    break
            return self._closes(text[after : after + 1]) and structure_at(
                text, after + 1
            )
        after = peek(text, at + 1)
        if structure_at(text, after) and text[after : after + 1] not in COMMAS:
            return True
        if "\n" in text[at:after] or is_key(text, after):
            return True
        return inside.braces <= 0 or (text[after] in COMMAS and len(self._stack) > 1)

    def _follows(self, at: int, place: str) -> bool:
        """Whether the comma at `at` separates: a field, an item or the end of something follows."""
        text, words = self._text, self._has_words
        for _ in range(3):
            at = peek(text, at + 1)
            if text[at : at + 1] not in COMMAS:
                break
        if stops(text, at) or self._closes(text[at]) or ELLIPSIS.match(text, at):
            return True
        if place is _FIELD:  # [{"a": "b", {"a": ...: a closing brace is missing
            return is_key(
                text, peek(text, at + 1) if text[at] == "{" else at, words=words
            )
        return bool(words or VALUE_START.match(text, at) or _CUT_WORD.match(text, at))

    def _key_alone(self, at: int, inside: _Inside) -> bool:
        """Whether a key without a value follows the comma: "a": "b", "c"}, or one cut off: , "c."""
        after = peek(self._text, at + 1)
        string = WHOLE_STRING.match(self._text, after)
        if inside.quotes or string is None:
            return not inside.quotes and _CUT_KEY.match(self._text, after) is not None
        return structure_at(self._text, string.end())

    def _opening_lost(self, at: int, after: int, inside: _Inside) -> bool:
        """Whether an item ends at `at` and the next one lacks its opening quote: ["a" b" ]."""
        # Not inside a pair of quotes, nor after a number, where the quote means inches.
        if inside.quotes or _INCHES.search(self._text[max(inside.begin, at - 20) : at]):
            return False
        found = _LOST_OPENING.match(self._text, after)
        beyond = peek(self._text, found.end()) if found else 0
        return bool(found) and (
            stops(self._text, beyond) or self._text[beyond] in {"]", *COMMAS}
        )

    def _ended_before(self, at: int, place: str, inside: _Inside) -> int | None:
        """Where the string had ended already if the quote at `at` opens the next one; or None."""
        text = self._text
        if place is _KEY:
            found = _KEY_TEXT.match(text, inside.begin, at)
            return found.end() if found else None
        if place is _ITEM:
            return None if inside.quotes else self._before_comma(at, inside)
        if inside.braces <= 0 and _KEY_OPENS.match(text, at):
            glued = (
                text[at - 1].isalnum() or text[at - 1] in ".!?"
            )  # ...cher"rating": 4
            end = at if glued else self._before_comma(at, inside)
            if end is not None:
                return end
        start = max(inside.begin, at - 100)
        found = _KEY_IN_TAIL.search(text[start:at])
        string = WHOLE_STRING.match(text, at)
        if found is None or string is None or stops(text, string.end()):
            return None
        whole = self._ends(string.end() - 1, _FIELD, _Inside(at + 1))
        return start + found.start() if whole else None

    def _before_comma(self, at: int, inside: _Inside) -> int | None:
        """The position of the comma, or of the line end, right before `at`."""
        start = max(inside.begin, at - 100)
        head = self._text[start:at]
        bare = head.rstrip()
        if bare.endswith(","):
            end = _before_closing_lines(bare) if inside.braces < 0 else len(bare) - 1
            return start + end
        return start + len(bare) if "\n" in head[len(bare) :] else None


def _before_closing_lines(text: str) -> int:
    """Where the lines of closing brackets before a last comma begin; without any, at the comma."""
    comma = len(text) - 1
    begin = comma
    while begin and (text[begin - 1].isspace() or text[begin - 1] in "}]"):
        begin -= 1
    line = text.find("\n", begin, comma)
    if line < 0 or not text[line:comma].strip():
        return comma
    return begin + len(text[begin:line].rstrip())
