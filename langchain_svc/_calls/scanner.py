"""The parser's core: text in pieces -> prose, thoughts and calls, in order.

The text is prose, code between fences, or thoughts. In prose the next opener is searched
(`marks`), and its reader decides on the text from there (`cursor`). What cannot be decided yet is
looked at again when more has come (`Pending`), so all ways of cutting a text give the same.

What is read in vain is counted: a text that makes it grow out of proportion is not asked for calls
for a while (`_weary`).
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from .._json import Markers, closer_of
from . import asked, marks
from .calls import CUT_OFF, MISSING, BadCall, Call, Doubt, Raw, Tool
from .cursor import Cursor, Families, More, Pending, Reader
from .judge import Judge
from .line import Line, pair


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
_FREE_WASTE, _WASTE = 30_000, 4  # characters read in vain for each one read for good
_MOST_CALLS = 200
_TOO_MANY = (
    f"an answer may hold {_MOST_CALLS} calls; this one and all after it are left out"
)
_HALF_TAG = re.compile(r"\s*(<[^<>]*)?")
_OPENING = re.compile(r"\A\s*(?:<tool_call>|`{3,}\w*)\s*")


def _is_loose(call: Call | BadCall | Doubt) -> bool:
    return isinstance(call, Doubt) or call.loose


class Scanner:
    """Reads one answer: `parse_chunk` for each piece, then `close`."""

    def __init__(
        self, tools: Sequence[Tool], families: Families, *, fences: bool = False
    ) -> None:
        self.ended = False
        self._families = families
        self._readers = {"<tool_call>": asked.own, **families.readers}
        self._openers = marks.openers(frozenset(self._readers))
        self._loose = frozenset[Reader]((*families.loose, asked.bare, asked.fenced))
        self._asked = asked.fenced if fences else asked.own
        self.judge = Judge(tools)
        self._mode: Callable[[], Iterator[Piece]] = self._beginning
        self._text, self._at, self._done = (
            "",
            0,
            0,
        )  # the buffer, the place in it, and before it
        self._pieces: list[str] = []
        self._size = self._count = self._wasted = 0
        self._pending = Pending()
        self._holding = self._final = self._cut = False
        self._line = Line()
        self._has_words = False  # whether there was prose beside elements
        self._reacts = False  # whether the answer begins with a thought of ReAct
        self._gap: (
            list[str] | None
        ) = []  # text after a call, or before all, that may be no prose
        self._fence = ""  # the backticks of the fence that the position is inside of
        self._closer = ""  # what ends the reasoning that the position is inside of
        self._native = (
            False  # whether that is a model's own, and not an element of the answer
        )
        self._last: Sequence[Call | BadCall | Doubt] = ()
        self._in_marks = False  # whether the last call stood in marks
        self._pair: tuple[str, str] | None = None  # around marks that were dropped

    def parse_chunk(self, text: str) -> Iterator[Piece]:
        """What can be told of the text with this piece."""
        if self.ended or not text:
            return
        self._pieces.append(text)
        self._size += len(text)
        if not self._holding or self._pending.due(text, self._size):
            yield from self._run()

    def close(self, *, cut: bool = False) -> Iterator[Piece]:
        """What is left, now that nothing more will come; `cut` says that the text was cut off."""
        self._final, self._cut = True, cut
        if not self.ended:
            yield from self._run()

    @property
    def held(self) -> str:
        """The text of a call, in the form asked for, whose end is waited for; "" if none is."""
        opens_line = self._holding and not self._line.begun
        if not opens_line or not self._text.startswith("<tool_call>", self._at):
            return ""
        return self._text[self._at :] + "".join(self._pieces)

    # -- the buffer -------------------------------------------------------------------------------

    def _run(self) -> Iterator[Piece]:
        self._text += "".join(self._pieces)
        self._pieces = []
        if not self._done and not self._at:
            self._text = (
                self._text.lstrip()
            )  # so that the answer's first word stands first
        self._holding = False
        try:
            while self._at < len(self._text) and not self.ended:
                yield from self._mode()
        except More as more:
            self._holding = True
            self._pending.begin(self._text, more)
        if self.ended:
            self._at = len(self._text)
        keep = max(0, self._at - _LOOK_BACK)
        self._done += keep
        self._text = self._text[keep:]
        self._at -= keep
        self._size = len(self._text) - self._at + sum(map(len, self._pieces))

    def _say(
        self,
        end: int,
        *,
        element: bool = False,
        unread: bool = False,
        quoted: bool = False,
    ) -> Iterator[Piece]:
        text = self._text[self._at : end]
        self._at = end
        quoted = quoted or bool(self._line.ticks)
        if not text:
            return
        self._pair = None
        self._has_words = self._has_words or (
            not element and _LETTER.search(text) is not None
        )
        self._line.pass_over(text)
        if self._gap is not None and not self._last:  # the beginning of the answer
            text = text.lstrip()
        elif self._gap is not None:
            size = _GAP.match(text).end()  # type: ignore[union-attr]
            self._gap.append(text[:size])
            gap = "".join(self._gap).translate(_RESIDUE)
            text = gap + text[size:] if size < len(text) else ""
        if text:
            self._gap = None
            yield Prose(text, unread, quoted)

    def _skip(self, end: int, *, noise: bool = False) -> Iterator[Piece]:
        text = self._text[self._at : end]
        self._line.pass_over(text, markup=True)
        self._at = end
        gap, self._gap = self._gap, None if self._gap is None else []
        yield Markup("".join(gap or ()) + text, noise)

    def _up_to(self, markers: Markers, *, thought: bool = False) -> Iterator[Piece]:
        """All is prose, or thought, except for the beginning of a marker at the end."""
        end = (
            len(self._text) if self._final else markers.beginning(self._text, self._at)
        )
        if thought and end > self._at:
            yield Thought(self._text[self._at : end])
            self._at = end
        yield from self._say(end, quoted=bool(self._closer))
        if end < len(self._text):
            raise More

    def _find(self, mark: str, at: int, need: str) -> int:
        """Where a mark stands in the rest of the line; -1 where it does not."""
        line_end = self._text.find("\n", at)
        found = self._text.find(mark, at, line_end if line_end >= 0 else None)
        if found < 0 and line_end < 0 and not self._final:
            raise More(need)
        return found

    # -- prose ------------------------------------------------------------------------------------

    def _beginning(self) -> Iterator[Piece]:
        """The answer may begin with a call in a family's own format that has lost its marks."""
        c = Cursor(self._text, self._at, self.judge, self._families, final=self._final)
        self._reacts = c.char() == "T" and c.sees("Thought:")
        raws = self._families.unmarked(c)
        self._mode = self._prose
        if raws:
            yield from self._accept(raws, c.at, self._families.unmarked)

    def _prose(self) -> Iterator[Piece]:
        found = self._openers.search(self._text, self._at)
        at_end = (
            found is not None and not self._final and found.end() == len(self._text)
        )
        if (
            found
            and at_end
            and self._openers.beginning(self._text, self._at) < found.start()
        ):
            found = None  # it may be a part of a longer one
        if found is None:
            yield from self._up_to(self._openers)
            return
        begin = found.start()
        yield from self._say(begin)
        if found["ticks"]:
            yield from self._ticks(found["ticks"])
        elif quoted_until := self._quoted_until(found):
            yield from self._say(quoted_until, quoted=True)
        elif found["before"]:
            yield from self._skip(found.end())
        else:
            yield from self._opener(found)

    def _opener(self, found: re.Match[str]) -> Iterator[Piece]:
        begin, end = found.span()
        if found["json"]:
            if not self._final and self._openers.may_begin(self._text, begin):
                raise More  # `[TO`
            yield from self._try(asked.bare, begin, begin + 1)
        elif found["marker"]:
            yield from self._markup(found["marker"], end)
        elif mark := found["thinks"] or found["spoken"]:
            self._closer, self._mode = closer_of(mark), self._thinking
            self._native = found["thinks"] is not None
            self._at = end if self._native else begin
        elif found["thought"]:
            yield from self._skip(end)
            self._gap = []
            yield ThoughtEnd()
        elif (
            name := found["element"] or (found["mark"] or "")[1:-1]
        ) in self.judge.names:
            prefix = found["prefix"] or ""
            yield from self._try(
                lambda c: self._families.own_element(c, name, prefix), end, end
            )
        elif found["named"]:
            yield from self._try(self._families.named_element, begin, end)
        elif mark := found["mark"]:
            yield from self._markup(mark, end)
        else:
            yield from self._say(end, element=True)

    def _markup(self, mark: str, end: int) -> Iterator[Piece]:
        noise, spoken = (
            mark in marks.NOISE,
            mark == marks.OBSERVATION and not self._last,
        )
        if mark in self._readers:
            yield from self._try(self._readers[mark], end, end)
        elif not (noise or spoken) and marks.RESULT.search(mark):
            self.ended = True
        elif not (noise or spoken or marks.CLOSING.search(mark)):
            yield from self._try(lambda c: self._families.marked(c, mark), end, end)
        elif self._last or mark[1] in "|｜" or (noise and mark[1] != "/"):
            yield from self._skip(end, noise=noise)
        else:
            yield from self._say(end)

    def _try(self, reader: Reader, begin: int, otherwise: int) -> Iterator[Piece]:
        """Read a call from `begin` on; where there is none, the text up to `otherwise` is prose."""
        if self._weary():
            if reader is asked.bare:
                yield from self._say(otherwise)
            yield from self._skip(otherwise)
            return
        c = Cursor(self._text, begin, self.judge, self._families, final=self._final)
        raws = reader(c)
        self._wasted += max(0, c.cost - (c.at - begin))
        if raws is None:
            unread = reader not in (asked.bare, asked.own) and not self._line.begun
            end = (
                max(otherwise, c.at) if reader in (asked.bare, asked.own) else otherwise
            )
            yield from self._say(end, unread=unread)
        elif raws and self._is_in_marks(c.at):
            yield from self._say(c.at, quoted=True)
        else:
            yield from self._accept(raws, c.at, reader)

    def _accept(self, raws: list[Raw], end: int, reader: Reader) -> Iterator[Piece]:
        if not raws:
            self._pair = self._pair or pair(self._text, self._at)
            yield from self._skip(end)
            return
        text = self._text[self._at : end]
        deque(self._skip(end), maxlen=0)
        if self._is_cut_off(raws[-1], end):
            raws[-1] = replace(raws[-1], fault=CUT_OFF)
        calls = self._judged(raws, text, reader)
        is_doubtful = any(isinstance(call, Doubt) for call in calls)
        self._gap = None if is_doubtful else []
        in_marks, self._in_marks = self._in_marks, reader is not asked.bare
        if in_marks and reader is asked.bare and calls == self._last:
            return  # models write the last call once more without its tags
        self._last = calls
        self._count += len(calls)
        if self._count > _MOST_CALLS:
            self.ended = True
            del calls[_MOST_CALLS - self._count :]
            calls.append(BadCall(None, _TOO_MANY, asked=True))
        yield from calls

    def _is_cut_off(self, raw: Raw, end: int) -> bool:
        half = (
            None
            if raw.whole or not self._final
            else _HALF_TAG.fullmatch(self._text, end)
        )
        return half is not None and bool(
            self._cut or half[1] or raw.arguments in (MISSING, "", {})
        )

    def _judged(
        self, raws: list[Raw], text: str, reader: Reader
    ) -> list[Call | BadCall | Doubt]:
        is_asked = reader is self._asked
        loose = reader in self._loose and not is_asked
        if (
            reader is asked.bare and self._gap is not None
        ):  # it goes on from a call, or begins
            loose = bool(self._last) and _is_loose(self._last[-1])
        inside = _OPENING.sub("", text).rstrip()
        inside = inside.removesuffix("```").removesuffix("</tool_call>").strip()
        doubts = [self.judge.doubt(raw) for raw in raws]
        if any(doubts):  # what is left over of one may belong to any of them
            reason = next(filter(None, doubts))
            name = next(
                (tool.name for raw in raws if (tool := self.judge.find(raw.name))), None
            )
            bad = BadCall(
                name, reason, source=inside, text=text, asked=is_asked, loose=loose
            )
            return [Doubt(text, reason, bad)]
        texts = [text, *("" for _ in raws[1:])]
        return [
            self.judge.judge(raw, source=inside, text=text, asked=is_asked, loose=loose)
            for raw, text in zip(raws, texts, strict=True)
        ]

    def _weary(self) -> bool:
        return self._wasted > _FREE_WASTE + _WASTE * (self._done + self._at)

    # -- quotations -------------------------------------------------------------------------------

    def _quoted_until(self, found: re.Match[str]) -> int:
        """Where the quotation ends that the opener stands in; 0 if it stands in none."""
        begin, end = found.span()
        if self._line.ticks:
            closing = self._find(self._line.ticks, begin, "`\n")
            if closing < 0:
                self._line.ticks = ""  # a lone backtick opens nothing
            return max(0, closing)
        if self._line.quotes(self._text, end, final=self._final):
            return end
        closer = "" if found["json"] else pair(self._text, begin)[1]
        alone = closer and not found[0].endswith("=") and self._follows(closer, end)
        return end if alone else 0

    def _follows(self, mark: str, at: int) -> bool:
        if mark[0] == " ":
            at = _SPACE.match(self._text, at).end()  # type: ignore[union-attr]
        mark = mark.lstrip()
        rest = self._text[at : at + len(mark)]
        if rest != mark and mark.startswith(rest) and not self._final:
            raise More
        return rest == mark

    def _is_in_marks(self, end: int) -> bool:
        """Whether the call from here to `end` stands between quotation marks, and amid words."""
        opening, closer = self._pair or pair(self._text, self._at)
        amid_words = self._line.has_before(opening) or self._has_words
        if amid_words and closer and self._follows(closer, end):
            return True
        closer = self._line.closer if self._line.has_before('"') else ""
        return bool(closer) and self._find(closer, end, closer + "\n") >= 0

    # -- fences -----------------------------------------------------------------------------------

    def _ticks(self, ticks: str) -> Iterator[Piece]:
        end = self._at + len(ticks)
        if end == len(self._text) and not self._final:
            raise More
        if self._line.ticks or len(ticks) < 3:  # three make a fence
            yield from self._span(ticks, end)
            return
        if self._fence and not self._text[end : end + 1].isalnum():
            yield from self._skip(end)  # the end of a fence that held calls
            self._fence = ""
            return
        if not self._weary():
            c = Cursor(
                self._text, self._at, self.judge, self._families, final=self._final
            )
            raws = asked.fenced(c, after_prose=self._gap is None and not self._reacts)
            if raws:
                self._fence = ticks
                yield from self._accept(raws, c.at, asked.fenced)
                return
            self._wasted += c.cost
        line = _FENCE_LINE.match(self._text, end)
        if line is None and self._text.find(ticks[0], end) < 0 and not self._final:
            raise More(ticks[0] + "\n")
        if line is None:
            yield from self._span(ticks, end)
            return
        yield from self._say(line.end())
        self._fence, self._mode = ticks, self._code

    def _span(self, ticks: str, end: int) -> Iterator[Piece]:
        yield from self._say(end)
        if self._line.ticks in ("", ticks):
            self._line.ticks = "" if self._line.ticks else ticks

    def _code(self) -> Iterator[Piece]:
        """In a fence: up to the backticks that end it, everything is prose."""
        found = marks.ends("").search(self._text, self._at)
        if found is None:
            yield from self._up_to(marks.ends(""))
            return
        yield from self._say(found.start())
        end = found.end()
        if not found["ticks"]:  # the fence was left open in a thought
            self._fence, self._mode = "", self._prose
            return
        if end == len(self._text) and not self._final:
            raise More
        after = self._text[end : end + 1]
        alone = after in ("", "\n", "\r") or (
            not self._line.begun and not after.isalnum()
        )
        if alone and found[0].startswith(self._fence):
            self._fence, self._mode = "", self._prose
        yield from self._say(end)

    # -- reasoning --------------------------------------------------------------------------------

    def _thinking(self) -> Iterator[Piece]:
        """In a thought; or in an element of thoughts that a prompt may have asked for: prose."""
        native = self._native
        found = marks.ends(self._closer).search(self._text, self._at)
        if found is None:
            yield from self._up_to(marks.ends(self._closer), thought=native)
            return
        self._mode = self._prose
        if native and found.start() > self._at:
            yield Thought(self._text[self._at : found.start()])
        self._closer = ""
        if native:
            self._at = found.start()
            deque(self._skip(found.end()), maxlen=0)  # it belongs to the thought
        yield from self._say(found.end(), quoted=True)
