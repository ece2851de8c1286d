"""The parser's core: text in pieces -> prose, thoughts and calls, in order.

The text is prose, code between fences, or thoughts. In prose the next opener is searched
(`marks`), and its reader decides on the text from there (`cursor`). What cannot be decided yet is
looked at again when more has come (`Pending`), so all ways of cutting a text give the same pieces.

What is read in vain is counted: a text that makes it grow out of proportion is not asked for calls
for a while (`_is_weary`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from .._json import Brackets, More
from .._text import Markers, Pseudonymizer, closer_of
from . import asked, marks
from .calls import CUT_OFF, BadCall, Call, Doubt, Raw, Tool
from .cursor import Cursor, Families, Reader
from .judge import Judge
from .marks import CALL_MARK

# -- line ------------------------------------------------------------------------------------------
# The line that the parser is in: whether text in it is quoted.
#
# Models explain calls, and repeat texts that hold some. So text is no call in a code span, a
# line that begins with `>`, a string of JSON, quotation marks (also around a tag alone, and
# with other words beside the call), brackets, a table or an element.

_PAIRS = {
    '"': '"', "'": "'", "“": "”", "„": "“", "‘": "’", "«": "»", "「": "」", "`": "`", "(": ")",
}  # fmt: skip
_SPACED_PAIRS = {"|": "|", "<!--": "-->"}  # with white space inside of them
_QUOTED_ELEMENT = re.compile(r"<([A-Za-z][\w-]{0,30})(?:\s[^<>\n]{0,60})?>\Z")
_DIRECTED = {'"': '"', "“": "”", "«": "»", "「": "」"}
_EMPHASIS = re.compile(r"(?:\A|\s)\*{1,3}\Z")
_HEAD = 120  # characters that tell what a line is
_QUOTATION = re.compile(r"\s*[>|]")
_JSON = re.compile(r"\s*(?:[{\[]|\"[^\"\n]*\"\s*:)")
_QUOTE = re.compile(r"\\.?|[\"“”«»「」]", re.DOTALL)


class Line:
    """The line that the position is in, as far as the position has come."""

    def __init__(self) -> None:
        self.ticks = ""  # the backticks that opened a code span
        self._head = ""
        self.closer = ""  # of the quotation mark that is open
        self._escaped = False  # a backslash stands before the position

    def pass_over(self, text: str, *, markup: bool = False) -> None:
        """The position moves over this text; in markup, quotation marks quote nothing."""
        line_end = text.rfind("\n")
        if line_end >= 0:
            self.ticks = ""
            self.closer = ""
            self._head = ""
            self._escaped = False
            text = text[line_end + 1 :]
        if not self._head.strip():
            text = text.lstrip()
        self._head += text[: _HEAD - len(self._head)]
        if markup:
            return
        begin = 0
        if self._escaped and text:  # the backslash stood at the end of the last piece
            self._escaped = False
            begin = 1
        for mark in _QUOTE.findall(text, begin):
            self._escaped = mark == "\\"
            if not self.closer:
                self.closer = _DIRECTED.get(mark, "")
            elif mark == self.closer:
                self.closer = ""

    @property
    def has_begun(self) -> bool:
        """Whether it holds more than white space."""
        return bool(self._head)

    def quotes(self, text: str, at: int, *, final: bool) -> bool:
        """Whether a tag that ends at `at` stands in a quotation of Markdown or a string of JSON."""
        if self.closer == '"' and _JSON.match(self._head):
            return _goes_on(text, at, final=final)
        return self.is_quotation

    @property
    def is_quotation(self) -> bool:
        """Whether it is one of a quotation or a table in Markdown."""
        return _QUOTATION.match(self._head) is not None

    def has_before(self, mark: str) -> bool:
        """Whether it holds more than the quotation mark."""
        return len(self._head.strip()) > len(mark)


def pair(text: str, at: int) -> tuple[str, str]:
    """The mark of quotation right before `at` and the one that closes it, or two times "".

    A closer that may stand behind white space has a space before it.
    """
    before = text[max(0, at - 100) : at]
    element = _QUOTED_ELEMENT.search(before.rstrip())
    if element and not CALL_MARK.fullmatch(f"<{element[1]}>"):
        return element[0], f" </{element[1]}>"
    if _EMPHASIS.search(before):
        return "*", "*"
    for mark, closer in _SPACED_PAIRS.items():
        if before.rstrip(" ").endswith(mark):
            return mark, f" {closer}"
    for mark, closer in _PAIRS.items():
        if before.endswith(mark):
            return mark, closer
    return "", ""


def _goes_on(text: str, at: int, *, final: bool) -> bool:
    """Whether a string of JSON holds the tag that ends at `at`: a call has quotes of its own."""
    match = _NEXT_QUOTE.search(text, at)
    if not final:
        is_half = match and match["after"] == "" and match.end() == len(text)
        if match is None or is_half:
            raise More('"\n')
    if match is None or match["line"]:
        return False
    return bool(match["escaped"]) or match["after"] in _CLOSED


_NEXT_QUOTE = re.compile(r"(?P<escaped>\\\")|\"\s*(?P<after>\S?)|(?P<line>\n)")
_CLOSED = frozenset([*",:]}", ""])


# -- waiting --------------------------------------------------------------------------------------

_FREE = 1000  # characters
_EARNED = 2  # for each character that arrives


class Pending:
    """Decides for each piece of text whether to look again.

    A look reads the whole buffer. So that the cost stays linear, the text that arrives earns credit
    for it. Short texts are free, and so is the look when a value's last bracket has come.
    """

    def __init__(self) -> None:
        self._credit = 0
        self._need = ""
        self._brackets: Brackets | None = None

    def wait_for(self, text: str, more: More) -> None:
        """Wait for the characters that `more` needs behind `text`."""
        self._need = more.need
        self._brackets = None
        if more.brackets is not None and len(text) - more.brackets > _FREE:
            brackets = Brackets()
            brackets.follow(text, more.brackets)
            if not brackets.closed:
                self._brackets = brackets

    def is_due(self, piece: str, size: int) -> bool:
        """Whether, with this piece, the text of now `size` characters should be looked at."""
        self._credit += _EARNED * len(piece)
        if self._brackets is not None and self._brackets.follow(piece) is not None:
            self._brackets = None
            return True
        if self._need and not any(char in piece for char in self._need):
            return False
        if size <= _FREE:
            return True
        if self._credit < size:
            return False
        self._credit -= size
        return True


# -- the scanner ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prose:
    """Text of the answer itself.

    `unread`: it begins with a mark of calls that nothing reads. `quoted`: it stands in a code span,
    a quotation or an element of thoughts.
    """

    text: str
    unread: bool = False
    quoted: bool = False


@dataclass(frozen=True)
class Markup:
    """Text that belongs to calls, or to nothing; `noise`: it ends turns, or says who speaks."""

    text: str
    noise: bool = False


@dataclass(frozen=True)
class Thought:
    """Text of a block of reasoning."""

    text: str


@dataclass(frozen=True)
class ThoughtEnd:
    """The end of reasoning that had no beginning: all that came before was thought."""


Piece = Prose | Markup | Thought | ThoughtEnd | Call | BadCall | Doubt

_LOOK_BACK = 80  # characters kept before the position, for what a line begins with
_SPACE = re.compile(r"\s*")
_LETTER = re.compile(r"[^\W\d_]")
_GAP = re.compile(r"[\s;,}\]]*")  # what models write between calls
_RESIDUE = str.maketrans("", "", "}]")
_FENCE_LINE = re.compile(r"[^`~\n]*\n")
_FREE_WASTE = 30_000  # characters that may be read in vain in any text
_WASTE = 4  # and for each character that is read for good
MOST_CALLS = 200
_TOO_MANY = (
    f"an answer may hold {MOST_CALLS} calls; this one and all after it are left out"
)
_OPEN = "it does not end"
_HALF_TAG = re.compile(r"\s*(?:<[^<>]*)?")
_OPENING = re.compile(r"\A\s*(?:<tool_call>|`{3,}\w*)\s*")


def _is_loose(call: Call | BadCall | Doubt) -> bool:
    return isinstance(call, Doubt) or call.loose


class Scanner:
    """Splits one answer: `parse_chunk` for each piece of text, then `close`."""

    def __init__(
        self,
        tools: Sequence[Tool],
        families: Families,
        *,
        fences: bool = False,
        pseudonyms: Pseudonymizer | None = None,
    ) -> None:
        self.ended = False
        self.judge = Judge(tools, pseudonyms)
        self._families = families
        self._readers = {"<tool_call>": asked.read_tags, **families.readers}
        self._openers = marks.openers(frozenset(self._readers))
        self._loose = frozenset[Reader](
            (*families.loose, asked.read_bare, asked.read_fence)
        )
        self._asked = asked.read_fence if fences else asked.read_tags
        self._mode: Callable[[], Iterator[Piece]] = self._beginning

        # The text: a buffer, what has come after it, and what was dropped before it.
        self._text = ""
        self._at = 0  # the position in the buffer
        self._chunks: list[str] = []
        self.held = 0  # characters from the position on, with the chunks
        self._dropped = 0  # characters
        self._final = False
        self._cut = False

        # Whether the position waits for more text, and for what.
        self._waits = False
        self._pending = Pending()
        self._wasted = 0  # characters that were read in vain

        # What stands before the position.
        self._line = Line()
        self._has_words = False  # prose beside elements
        self._reacts = False  # the answer begins with a thought of ReAct
        # Text after a call, or before all, that may be no prose; None where prose is open.
        self._gap: list[str] | None = []
        self._fence = ""  # the backticks of the fence that the position is inside of
        self._closer = ""  # what ends the reasoning that the position is inside of
        # Whether that reasoning is a model's own, and not an element of the answer.
        self._native = False
        self._call_count = 0
        self._last_calls: Sequence[Call | BadCall | Doubt] = ()
        self._last_had_marks = False
        # What stands around marks of calls that were dropped.
        self._pair: tuple[str, str] | None = None

    def parse_chunk(self, text: str) -> Iterator[Piece]:
        """The pieces of the answer that are certain with this text."""
        if self.ended or not text:
            return
        self._chunks.append(text)
        self.held += len(text)
        if not self._waits or self._pending.is_due(text, self.held):
            yield from self._run()

    def close(self, *, cut: bool = False) -> Iterator[Piece]:
        """The other pieces, now that no text will come; `cut`: the text was cut off."""
        self._final = True
        self._cut = cut
        if not self.ended:
            yield from self._run()

    @property
    def open_call(self) -> str:
        """The text of a call in the form asked for whose end has not come; "" if there is none."""
        opens_line = self._waits and not self._line.has_begun
        if not opens_line or not self._text.startswith("<tool_call>", self._at):
            return ""
        return self._text[self._at :] + "".join(self._chunks)

    # -- the buffer -------------------------------------------------------------------------------

    def _run(self) -> Iterator[Piece]:
        self._text += "".join(self._chunks)
        self._chunks = []
        is_beginning = not self._dropped and not self._at
        if is_beginning:  # the answer's first word stands first
            self._text = self._text.lstrip()
        self._waits = False
        try:
            while self._at < len(self._text) and not self.ended:
                yield from self._mode()
        except More as more:
            self._waits = True
            self._pending.wait_for(self._text, more)
        if self.ended:
            self._at = len(self._text)
        surplus = max(0, self._at - _LOOK_BACK)
        self._dropped += surplus
        self._text = self._text[surplus:]
        self._at -= surplus
        self.held = len(self._text) - self._at + sum(map(len, self._chunks))

    def _pass_prose(
        self,
        end: int,
        *,
        element: bool = False,
        unread: bool = False,
        quoted: bool = False,
    ) -> Iterator[Piece]:
        """The text up to `end` is the answer's own."""
        text = self._text[self._at : end]
        self._at = end
        quoted = quoted or bool(self._line.ticks)
        if not text:
            return
        self._pair = None
        if not element and _LETTER.search(text):
            self._has_words = True
        self._line.pass_over(text)
        if self._gap is not None:
            text = self._without_gap(text)
        if text:
            self._gap = None
            yield Prose(text, unread, quoted)

    def _without_gap(self, text: str) -> str:
        """The text without what may be no prose before it, as far as that has come."""
        if self._gap is None or not self._last_calls:  # the beginning of the answer
            return text.lstrip()
        size = _GAP.match(text).end()  # type: ignore[union-attr]
        self._gap.append(text[:size])
        if size == len(text):
            return ""
        # Words follow, so the space before them counts; brackets closed nothing.
        return "".join(self._gap).translate(_RESIDUE) + text[size:]

    def _pass_markup(self, end: int, *, noise: bool = False) -> Markup:
        """The text up to `end` belongs to calls, or to nothing."""
        text = self._text[self._at : end]
        self._line.pass_over(text, markup=True)
        self._at = end
        if self._gap is not None:
            text = "".join(self._gap) + text
            self._gap = []
        return Markup(text, noise)

    def _up_to(self, markers: Markers, *, thought: bool = False) -> Iterator[Piece]:
        """All is prose, or thought, except for the beginning of a marker at the end."""
        end = len(self._text)
        if not self._final:
            end = markers.beginning(self._text, self._at)
        if thought and end > self._at:
            yield Thought(self._text[self._at : end])
            self._at = end
        yield from self._pass_prose(end, quoted=bool(self._closer))
        if end < len(self._text):
            raise More

    def _find(self, mark: str, at: int, need: str) -> int:
        """Where a mark stands in the rest of the line; -1 where it does not."""
        line_end = self._text.find("\n", at)
        if line_end >= 0:
            return self._text.find(mark, at, line_end)
        place = self._text.find(mark, at)
        if place < 0 and not self._final:
            raise More(need)
        return place

    # -- prose ------------------------------------------------------------------------------------

    def _beginning(self) -> Iterator[Piece]:
        """The answer may begin with a call in a family's own format that has lost its marks."""
        cursor = self._cursor(self._at)
        self._reacts = cursor.char() == "T" and cursor.sees("Thought:")
        raws = self._families.unmarked(cursor)
        self._mode = self._prose
        if raws:
            yield from self._accept(raws, cursor.at, self._families.unmarked)

    def _prose(self) -> Iterator[Piece]:
        match = self._openers.search(self._text, self._at)
        if match and match.end() == len(self._text) and not self._final:
            begin = self._openers.beginning(self._text, self._at)
            if begin < match.start():
                match = None  # it may be a part of a longer one
        if match is None:
            yield from self._up_to(self._openers)
            return
        yield from self._pass_prose(match.start())
        if match["ticks"]:
            yield from self._ticks(match["ticks"])
        elif quoted_until := self._quoted_until(match):
            yield from self._pass_prose(quoted_until, quoted=True)
        elif match["before"]:
            yield self._pass_markup(match.end())
        else:
            yield from self._opener(match)

    def _opener(self, match: re.Match[str]) -> Iterator[Piece]:
        begin, end = match.span()
        element = match["element"] or (match["mark"] or "")[1:-1]
        if match["json"]:
            if not self._final and self._openers.may_begin(self._text, begin):
                raise More  # `[TO`
            yield from self._try(asked.read_bare, begin, begin + 1)
        elif match["marker"]:
            yield from self._mark(match["marker"], end)
        elif match["thinks"]:
            self._closer = closer_of(match["thinks"])
            self._native = True
            self._at = end
            self._mode = self._thinking
        elif match["spoken"]:
            self._closer = closer_of(match["spoken"])
            self._native = False
            self._mode = self._thinking
        elif match["thought"]:
            yield self._pass_markup(end)
            self._gap = []
            yield ThoughtEnd()
        elif element in self.judge.names:
            own_element = self._families.own_element
            prefix = match["prefix"] or ""
            yield from self._try(
                lambda cursor: own_element(cursor, element, prefix), end, end
            )
        elif match["named"]:
            yield from self._try(self._families.named_element, begin, end)
        elif match["mark"]:
            yield from self._mark(match["mark"], end)
        else:
            yield from self._pass_prose(end, element=True)

    def _mark(self, mark: str, end: int) -> Iterator[Piece]:
        """A mark of calls, or one that says who speaks; it ends at `end`."""
        if mark in self._readers:
            yield from self._try(self._readers[mark], end, end)
            return
        noise = mark in marks.NOISE
        # Any text may hold observations; only behind a call they are results of calls.
        is_word = mark == marks.OBSERVATION and not self._last_calls
        if not noise and not is_word:
            if marks.RESULT.search(mark):
                self.ended = True
                return
            if not marks.CLOSING.search(mark):
                marked = self._families.marked
                yield from self._try(lambda cursor: marked(cursor, mark), end, end)
                return
        is_token = mark[1] in "|｜" or (noise and mark[1] != "/")
        if self._last_calls or is_token:
            yield self._pass_markup(end, noise=noise)
        else:
            yield from self._pass_prose(end)

    # -- calls ------------------------------------------------------------------------------------

    def _cursor(self, at: int) -> Cursor:
        return Cursor(self._text, at, self.judge, self._families, final=self._final)

    def _try(self, reader: Reader, begin: int, otherwise: int) -> Iterator[Piece]:
        """Read a call from `begin` on; where there is none, the text up to `otherwise` is prose."""
        if self._is_weary():
            if reader is asked.read_bare:
                yield from self._pass_prose(otherwise)
            else:
                yield self._pass_markup(otherwise)
            return
        cursor = self._cursor(begin)
        raws = reader(cursor)
        self._wasted += max(0, cursor.cost - (cursor.at - begin))
        if raws is None:
            unread = not self._line.has_begun
            if reader in (asked.read_bare, asked.read_tags):
                unread = False
                # The reader has passed over text in which no call can begin.
                otherwise = max(otherwise, cursor.at)
            yield from self._pass_prose(otherwise, unread=unread)
        elif raws and self._is_in_quotation_marks(cursor.at):
            yield from self._pass_prose(cursor.at, quoted=True)
        else:
            yield from self._accept(raws, cursor.at, reader)

    def _accept(self, raws: list[Raw], end: int, reader: Reader) -> Iterator[Piece]:
        if not raws:
            self._pair = self._pair or pair(self._text, self._at)
            yield self._pass_markup(end)
            return
        text = self._text[self._at : end]
        is_asked = reader is self._asked and not self._line.has_begun
        raws[-1] = self._with_its_end(raws[-1], end, is_asked=is_asked)
        self._pass_markup(end)  # the calls hold it
        calls = self._judge_all(raws, text, reader)
        self._gap = []
        if any(isinstance(call, Doubt) for call in calls):
            self._gap = None
        has_marks = reader is not asked.read_bare
        repeats = self._last_had_marks and not has_marks and calls == self._last_calls
        self._last_had_marks = has_marks
        if repeats:
            return  # models write the last call once more without its tags
        self._last_calls = calls
        self._call_count += len(calls)
        if self._call_count > MOST_CALLS:
            self.ended = True
            del calls[MOST_CALLS - self._call_count :]
            calls.append(BadCall(None, _TOO_MANY, asked=True))
        yield from calls

    def _with_its_end(self, raw: Raw, end: int, *, is_asked: bool) -> Raw:
        """The last call before `end`: cut off, left open by the model, or whole.

        It is cut off where the answer ends in it, and either the service says that it cut the
        answer, or the call has the form asked for: then the model was about to close it.
        """
        is_last = self._final and _HALF_TAG.fullmatch(self._text, end)
        is_open = is_last and not raw.whole
        if is_open and (self._cut or is_asked):
            return replace(raw, fault=CUT_OFF)
        if is_open or raw.fault == CUT_OFF:
            return replace(raw, fault="", leftover=raw.leftover or _OPEN)
        return raw

    def _judge_all(
        self, raws: list[Raw], text: str, reader: Reader
    ) -> list[Call | BadCall | Doubt]:
        is_asked = reader is self._asked
        loose = reader in self._loose and not is_asked
        if reader is asked.read_bare and self._gap is not None:
            # JSON behind a call is as certain as that call; JSON that begins the answer is certain.
            loose = bool(self._last_calls) and _is_loose(self._last_calls[-1])
        source = _OPENING.sub("", text).rstrip()
        source = source.removesuffix("```").removesuffix("</tool_call>").strip()
        leftovers = [raw.leftover for raw in raws if not raw.fault]
        reason = next(filter(None, leftovers), "")
        if reason:
            # What is left over of one call may belong to any of them.
            tools = map(self.judge.tool_named, (raw.name for raw in raws))
            name = next((tool.name for tool in tools if tool), None)
            bad = BadCall(
                name, reason, source=source, text=text, asked=is_asked, loose=loose
            )
            return [Doubt(text, reason, bad)]
        calls: list[Call | BadCall | Doubt] = []
        for raw in raws:
            call = self.judge.judge(
                raw, source=source, text=text, asked=is_asked, loose=loose
            )
            calls.append(call)
            text = ""  # the first call of a block has all of it
        return calls

    def _is_weary(self) -> bool:
        read_for_good = self._dropped + self._at
        return self._wasted > _FREE_WASTE + _WASTE * read_for_good

    # -- quotations -------------------------------------------------------------------------------

    def _quoted_until(self, match: re.Match[str]) -> int:
        """Where the quotation ends that the opener stands in; 0 if it stands in none."""
        begin, end = match.span()
        if self._line.ticks:
            closing = self._find(self._line.ticks, begin, "`\n")
            if closing >= 0:
                return closing
            self._line.ticks = ""  # a lone backtick opens nothing
            return 0
        if self._line.quotes(self._text, end, final=self._final):
            return end
        if match["json"] or match[0].endswith("="):
            return 0  # only a whole tag can be quoted alone
        closer = pair(self._text, begin)[1]
        if closer and self._follows(closer, end):
            return end
        return 0

    def _follows(self, mark: str, at: int) -> bool:
        """Whether a mark stands at `at`, or behind white space if it has a space before it."""
        if mark[0] == " ":
            at = _SPACE.match(self._text, at).end()  # type: ignore[union-attr]
            mark = mark[1:]
        rest = self._text[at : at + len(mark)]
        if rest != mark and mark.startswith(rest) and not self._final:
            raise More
        return rest == mark

    def _is_in_quotation_marks(self, end: int) -> bool:
        """Whether the call from the position to `end` is quoted.

        Where nothing but the call stands between the marks, there have to be words beside them:
        some models put a call that they mean into quotation marks.
        """
        opening, closer = self._pair or pair(self._text, self._at)
        if closer:
            is_amid_words = self._has_words or self._line.has_before(opening)
            if is_amid_words and self._follows(closer, end):
                return True
        # A quotation may have begun earlier in the line, with words before the call. It quotes the
        # call if it ends in this line, too.
        closer = self._line.closer
        if not closer or not self._line.has_before('"'):
            return False
        return self._find(closer, end, closer + "\n") >= 0

    # -- fences -----------------------------------------------------------------------------------

    def _ticks(self, ticks: str) -> Iterator[Piece]:
        end = self._at + len(ticks)
        if end == len(self._text) and not self._final:
            raise More
        is_span = self._line.ticks or len(ticks) < 3  # three make a fence
        if is_span or self._line.is_quotation:
            yield from self._code_span(ticks, end)
            return
        if self._fence and not self._text[end : end + 1].isalnum():
            yield self._pass_markup(end)  # the end of a fence that held calls
            self._fence = ""
            return
        if not self._is_weary():
            cursor = self._cursor(self._at)
            is_after_prose = self._gap is None and not self._reacts
            raws = asked.read_fence(cursor, after_prose=is_after_prose)
            if raws:
                self._fence = ticks
                yield from self._accept(raws, cursor.at, asked.read_fence)
                return
            self._wasted += cursor.cost
        line = _FENCE_LINE.match(self._text, end)
        if line is None:
            if not self._final and self._text.find(ticks[0], end) < 0:
                raise More(ticks[0] + "\n")
            yield from self._code_span(ticks, end)
            return
        yield from self._pass_prose(line.end())
        self._fence = ticks
        self._mode = self._code

    def _code_span(self, ticks: str, end: int) -> Iterator[Piece]:
        """These backticks open a code span, or close one."""
        yield from self._pass_prose(end)
        if not self._line.ticks:
            self._line.ticks = ticks
        elif self._line.ticks == ticks:
            self._line.ticks = ""

    def _code(self) -> Iterator[Piece]:
        """In a fence: up to the backticks that end it, everything is prose."""
        fence_ends = marks.ends("")
        match = fence_ends.search(self._text, self._at)
        if match is None:
            yield from self._up_to(fence_ends)
            return
        yield from self._pass_prose(match.start())
        end = match.end()
        if not match["ticks"]:  # the fence was left open in a thought
            self._fence = ""
            self._mode = self._prose
            return
        if end == len(self._text) and not self._final:
            raise More
        following = self._text[end : end + 1]
        stands_alone = following in ("", "\n", "\r")
        if not self._line.has_begun and not following.isalnum():
            stands_alone = True
        if stands_alone and match[0].startswith(self._fence):
            self._fence = ""
            self._mode = self._prose
        yield from self._pass_prose(end)

    # -- reasoning --------------------------------------------------------------------------------

    def _thinking(self) -> Iterator[Piece]:
        """In a thought; or in an element of thoughts that a prompt may have asked for: prose."""
        thought_ends = marks.ends(self._closer)
        match = thought_ends.search(self._text, self._at)
        if match is None:
            yield from self._up_to(thought_ends, thought=self._native)
            return
        self._mode = self._prose
        self._closer = ""
        if not self._native:
            yield from self._pass_prose(match.end(), quoted=True)
            return
        if match.start() > self._at:
            yield Thought(self._text[self._at : match.start()])
        self._at = match.start()
        self._pass_markup(match.end())  # it belongs to the thought
