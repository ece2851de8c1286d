"""The parser's core: text in pieces -> prose, thoughts and calls, in order.

The text is prose, code between fences, or thoughts. In prose the next opener is searched
(`openers`), and its reader decides on the text from there (`cursor`). Whatever cannot be decided
yet stays in the buffer, and the look is repeated when more has come (`hold`). Since every decision
rests on text that was seen, and none on where a piece ended, all ways of cutting a text give the
same.

What is quoted is no call: in a fence that does not begin with a call, and as `line` has it.

A reader that finds no call after much reading costs time. What is read in vain is counted, and a
text that makes it grow out of proportion is no longer asked for calls for a while (`_weary`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .bare import bare, fenced
from .calls import BadCall, Call, Tool
from .cursor import Cursor
from .formats import NOISE, OBSERVATION, READERS, REASONING, REASONING_ENDS
from .formats.named import first_line
from .formats.tags import Reader, own
from .formats.xml import own_element
from .hold import Hold, More
from .line import Line, pair, string_goes_on
from .offer import Offer, Raw
from .openers import code_ends, openers, thought_end


@dataclass(frozen=True)
class Prose:
    """Text of the answer itself."""

    text: str


@dataclass(frozen=True)
class Thought:
    """Text of a block of reasoning."""

    text: str


@dataclass(frozen=True)
class ThoughtEnd:
    """The end of reasoning that had no beginning: all that came before was thought."""


Piece = Prose | Thought | ThoughtEnd | Call | BadCall

_LOOK_BACK = 80  # characters kept before the position, for what a line begins with
_GAP = re.compile(r"[\s;,}\]]*")  # what models write between calls
_RESIDUE = str.maketrans("", "", "}]")
_FENCE_LINE = re.compile(r"[^`\n]*\n")
_WHOLE = (bare, own)  # where they find no call, what they passed over is prose
_FREE_WASTE = 30_000
_WASTE = 4  # characters read in vain for each one read for good


class Scanner:
    """Reads one answer: `feed` its pieces, then `finish`."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self.ended = False
        self._offer = Offer(tools)
        self._mode: Callable[[], Iterator[Piece]] = self._beginning
        self._text = ""
        self._at = 0
        self._pieces: list[str] = []
        self._size = 0
        self._hold: Hold = Hold()
        self._holding = False
        self._final = False
        self._line = Line()
        self._gap: list[str] | None = []  # text after a call, or before all, that may be no prose
        self._fence = ""  # the backticks of the fence that the position is inside of
        self._closer = ""  # what ends the reasoning that the position is inside of
        self._last: Sequence[Call | BadCall] = ()
        self._wasted = 0
        self._done = 0

    def feed(self, text: str) -> Iterator[Piece]:
        """What can be told of the text with this piece."""
        if self.ended or not text:
            return
        self._pieces.append(text)
        self._size += len(text)
        if not self._holding or self._hold.due(text, self._size):
            yield from self._run()

    def finish(self) -> Iterator[Piece]:
        """What is left, now that nothing more will come."""
        self._final = True
        if not self.ended:
            yield from self._run()

    # -- the buffer -------------------------------------------------------------------------------

    def _run(self) -> Iterator[Piece]:
        self._text += "".join(self._pieces)
        if not self._done and not self._at:
            self._text = self._text.lstrip()  # so that the answer's first word stands first
        self._pieces = []
        self._holding = False
        try:
            while self._at < len(self._text) and not self.ended:
                yield from self._mode()
        except More as more:
            self._holding = True
            self._hold.begin(self._text, more)
        if self.ended:
            self._at = len(self._text)
        keep = max(0, self._at - _LOOK_BACK)
        self._done += keep
        self._text = self._text[keep:]
        self._at -= keep
        self._size = len(self._text) - self._at

    def _cursor(self, at: int) -> Cursor:
        return Cursor(self._text, at, self._offer, final=self._final)

    def _say(self, end: int) -> Iterator[Piece]:
        """The text up to `end` is prose."""
        text = self._text[self._at : end]
        self._at = end
        if not text:
            return
        self._line.pass_over(text)
        if self._gap is not None:
            text = self._after_gap(text, self._gap)
        if text:
            self._gap = None
            yield Prose(text)

    def _after_gap(self, text: str, gap: list[str]) -> str:
        """What is prose of a text after a call, or of the text that begins the answer."""
        if not self._last:
            return text.lstrip()
        end = _GAP.match(text).end()  # type: ignore[union-attr]
        gap.append(text[:end])
        return "".join(gap).translate(_RESIDUE) + text[end:] if end < len(text) else ""

    # -- prose ------------------------------------------------------------------------------------

    def _beginning(self) -> Iterator[Piece]:
        """The answer's first line may be a tool's name, with JSON on the next."""
        c = self._cursor(self._at)
        named = self._offer.find(c.word()) is not None and c.take("\n")
        if named:
            yield from self._try(first_line, c.at, c.at)
        self._mode = self._prose

    def _prose(self) -> Iterator[Piece]:
        found = openers().search(self._text, self._at)
        if found is None:
            yield from self._say_most()
            return
        yield from self._say(found.start())
        if found["ticks"]:
            yield from self._ticks(found["ticks"])
        elif quoted_until := self._quoted_until(found):
            yield from self._say(quoted_until)
        elif found["json"]:
            if not self._final and openers().beginning(self._text, self._at) == self._at:
                raise More  # `[TO`
            yield from self._try(bare, found.start(), found.start() + 1)
        elif found["marker"]:
            yield from self._marker(found["marker"])
        else:
            yield from self._element(found)

    def _say_most(self) -> Iterator[Piece]:
        """All is prose, except for the beginning of a marker at the end."""
        end = len(self._text)
        if not self._final:
            end = openers().beginning(self._text, self._at)
            tag = self._text.rfind("<", self._at)
            if tag >= 0 and any(f"<{x}>".startswith(self._text[tag:]) for x in self._offer.names):
                end = min(end, tag)
            if self._text.startswith(OBSERVATION[0], end) and not self._last:
                end = len(self._text)
        yield from self._say(end)
        if end < len(self._text):
            raise More

    def _marker(self, marker: str) -> Iterator[Piece]:
        end = self._at + len(marker)
        if marker in READERS:
            yield from self._try(READERS[marker], end, end)
        elif marker in REASONING:
            self._at, self._closer, self._mode = end, REASONING[marker], self._reasoning
        elif marker in REASONING_ENDS:
            self._skip(end)
            yield ThoughtEnd()
        elif marker in NOISE:
            self._skip(end)
        elif marker != OBSERVATION or self._last:
            self.ended = True
        else:
            yield from self._say(end)

    def _element(self, found: re.Match[str]) -> Iterator[Piece]:
        name = found["element"]
        if name in self._offer.names:
            yield from self._try(lambda c: own_element(c, name), found.end(), found.end())
        else:
            yield from self._say(found.end())

    def _skip(self, end: int) -> None:
        """The text up to `end` is markup."""
        self._line.pass_over(self._text[self._at : end])
        self._at = end

    def _try(self, reader: Reader, begin: int, otherwise: int) -> Iterator[Piece]:
        """Read a call from `begin` on; where there is none, the text up to `otherwise` is prose.

        JSON that turns out to be data is prose as a whole, whatever it has inside.
        """
        if self._weary():
            if reader is bare:
                yield from self._say(otherwise)
            self._skip(otherwise)
            return
        c = self._cursor(begin)
        raws = reader(c)
        self._wasted += max(0, c.cost - (c.at - begin))
        if raws is None:
            yield from self._say(max(otherwise, c.at) if reader in _WHOLE else otherwise)
        elif raws and self._is_in_marks(c.at):
            yield from self._say(c.at)
        else:
            yield from self._accept(raws, c.at, echo=reader is bare)

    def _accept(self, raws: list[Raw], end: int, *, echo: bool = False) -> Iterator[Piece]:
        source = self._text[self._at : end]
        self._skip(end)
        calls = [self._offer.judge(raw, source) for raw in raws]
        if not calls:
            return
        self._gap = []
        if echo and calls == self._last:
            return  # models write the last call once more without its tags
        self._last = calls
        yield from calls

    def _weary(self) -> bool:
        return self._wasted > _FREE_WASTE + _WASTE * (self._done + self._at)

    # -- quotations and fences --------------------------------------------------------------------

    def _quoted_until(self, found: re.Match[str]) -> int:
        """Where the quotation ends that the opener stands in; 0 if it stands in none."""
        if self._line.ticks:
            return self._span_end(found.start())
        end = found.end()
        if self._line.is_quotation:
            return end
        if found["json"]:
            return 0
        if self._line.in_string and string_goes_on(self._text, end, final=self._final):
            return end
        closer = pair(self._text, found.start())[1]
        alone = closer and not found[0].endswith("=") and self._follows(closer, end)
        return end if alone else 0

    def _follows(self, mark: str, at: int) -> bool:
        rest = self._text[at : at + len(mark)]
        if rest != mark and mark.startswith(rest) and not self._final:
            raise More
        return rest == mark

    def _is_in_marks(self, end: int) -> bool:
        """Whether the call from here to `end` stands between quotation marks, and amid words."""
        opening, closer = pair(self._text, self._at)
        return self._line.has_before(opening) and bool(closer) and self._follows(closer, end)

    def _span_end(self, at: int) -> int:
        line_end = self._text.find("\n", at)
        closing = self._text.find(self._line.ticks, at, line_end if line_end >= 0 else None)
        if closing < 0 and line_end < 0 and not self._final:
            raise More("`\n")
        if closing < 0:
            self._line.ticks = ""  # a lone backtick opens nothing
        return max(0, closing)

    def _ticks(self, ticks: str) -> Iterator[Piece]:
        end = self._at + len(ticks)
        if end == len(self._text) and not self._final:
            raise More
        if self._line.ticks or len(ticks) < 3:  # noqa: PLR2004 - three make a fence
            yield from self._span(ticks, end)
        elif self._fence and not self._text[end : end + 1].isalnum():
            self._skip(end)  # the end of a fence that held calls
            self._fence = ""
        else:
            yield from self._open_fence(ticks, end)

    def _span(self, ticks: str, end: int) -> Iterator[Piece]:
        yield from self._say(end)
        if not self._line.ticks:
            self._line.ticks = ticks
        elif self._line.ticks == ticks:
            self._line.ticks = ""

    def _open_fence(self, ticks: str, end: int) -> Iterator[Piece]:
        c = self._cursor(self._at)
        found = None if self._weary() else fenced(c)
        if found:
            self._fence = ticks
            yield from self._accept(found, c.at)
            return
        self._wasted += c.cost
        line = _FENCE_LINE.match(self._text, end)
        if line is None and self._text.find("`", end) < 0 and not self._final:
            raise More("`\n")
        if line is None:
            yield from self._span(ticks, end)
            return
        yield from self._say(line.end())
        self._fence, self._mode = ticks, self._code

    def _code(self) -> Iterator[Piece]:
        """In a fence: up to the backticks that end it, everything is prose."""
        found = code_ends().search(self._text, self._at)
        if found is None:
            end = len(self._text) if self._final else code_ends().beginning(self._text, self._at)
            yield from self._say(end)
            if end < len(self._text):
                raise More
            return
        yield from self._say(found.start())
        end = found.end()
        if found[0] in REASONING_ENDS:  # the fence was left open in a thought
            self._fence, self._mode = "", self._prose
            return
        if end == len(self._text) and not self._final:
            raise More
        if found[0][0] == "`" and len(found[0]) >= len(self._fence) and self._ends_code(end):
            self._fence, self._mode = "", self._prose
        yield from self._say(end)

    def _ends_code(self, end: int) -> bool:
        """Whether backticks up to `end` stand alone at a line's beginning or at its end."""
        after = self._text[end : end + 1]
        return after in ("", "\n", "\r") or (not self._line.begun and not after.isalnum())

    # -- reasoning --------------------------------------------------------------------------------

    def _reasoning(self) -> Iterator[Piece]:
        markers = thought_end(self._closer)
        found = markers.search(self._text, self._at)
        end = len(self._text)
        if found:
            end = found.start()
        elif not self._final:
            end = markers.beginning(self._text, self._at)
        if end > self._at:
            yield Thought(self._text[self._at : end])
        self._at = end
        if found:
            self._skip(found.end())
            self._mode = self._prose
        elif end < len(self._text):
            raise More
