"""An answer, whole or in pieces -> its prose, thoughts and calls.

Nothing that was yielded is ever taken back, so a call is yielded when it is known to be one.
Three things may come later that say it is not, and calls wait for them:

- A call may turn out to have been thought, when `</think>` follows whose `<think>` the prompt
  held already. Thinking begins with prose, so calls after prose wait for the end of the text,
  unless reasoning has ended before, or the model is known not to think so (`thinks=False`).
- JSON amid prose that nothing marks as a call is an example, when prose goes on after it.
- Once an answer holds a call in the form that was asked for, calls in other forms are quoted.

Calls at the beginning do not wait, and prose never does. What comes out is the same for every cut
of the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from .arguments import ArgumentStream, Begun, Ended, Written
from .calls import BadCall, Call, Parsed, Tool
from .scanner import Piece, Prose, Scanner, Thought, ThoughtEnd

Event = Piece | Begun | Written | Ended


class StreamParser:
    """Reads one answer: `feed` its pieces, then `finish`. Nothing is raised.

    Args:
        tools: The tools on offer.
        fences: Whether calls were asked for in fences, and not in tags.
        thinks: Whether all that comes first may turn out to have been thought.
        holds: If arguments are wanted while they are written: whether those of a call that has
            been written so far must be held back.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        *,
        fences: bool = False,
        thinks: bool = True,
        holds: Callable[[str], bool] | None = None,
    ) -> None:
        self._holds = holds
        self._arguments: ArgumentStream | None = None
        self._scanner = Scanner(tools, fences=fences)
        self._waiting: list[Call | BadCall] = []
        self._after_prose = False
        self._doubtful = thinks
        self._asked = False  # a call in the form that was asked for has come

    @property
    def ended(self) -> bool:
        """Whether the model invented a result: nothing after it counts, so the stream may close."""
        return self._scanner.ended

    def feed(self, text: str) -> Iterator[Event]:
        """What the text brings."""
        if self._arguments is not None and self._arguments.begun:
            yield from self._arguments.feed(text)
        yield from self._sort(self._scanner.feed(text))
        if self.ended:
            yield from self._release()
        elif self._holds is not None:
            yield from self._follow(self._holds)

    def finish(self, *, cut: bool = False) -> Iterator[Event]:
        """What is left at the end of the text; `cut` says that it was cut off."""
        yield from self._sort(self._scanner.finish(cut=cut))
        yield from self._release()

    def _follow(self, holds: Callable[[str], bool]) -> Iterator[Event]:
        """The arguments of the call that is being written."""
        following = self._arguments
        if following is not None and (following.begun or following.over):
            return
        held = self._scanner.held
        if held and not self._waiting and not (self._after_prose and self._doubtful):
            following = self._arguments = following or ArgumentStream(holds)
            yield from following.begin(held)

    def _sort(self, pieces: Iterable[Piece]) -> Iterator[Event]:
        for piece in pieces:
            if isinstance(piece, Prose):
                if piece.text.strip():
                    self._after_prose = True
                    yield from self._quoted_if(lambda call: call.loose)
                yield piece
            elif isinstance(piece, Thought):
                self._doubtful = False
                yield piece
            elif isinstance(piece, ThoughtEnd):
                if self._doubtful:
                    self._waiting.clear()
                    yield piece
                self._doubtful = False
            else:
                yield from self._call(piece)

    def _call(self, call: Call | BadCall) -> Iterator[Event]:
        following, self._arguments = self._arguments, None
        if following is not None and following.begun:
            self._asked, self._doubtful = True, False
            yield following.end(call)
            return
        if call.asked and not self._asked:
            self._asked = True
            yield from self._quoted_if(lambda other: not other.asked)
        if self._asked and not call.asked:
            yield Prose(call.source)
        elif self._waiting or (self._after_prose and (self._doubtful or call.loose)):
            self._waiting.append(call)
        else:
            self._doubtful = False
            yield call

    def _quoted_if(self, is_quoted: Callable[[Call | BadCall], bool]) -> Iterator[Piece]:
        """Of the calls that wait, those that turn out to be quoted are prose after all."""
        yield from (Prose(call.source) for call in self._waiting if is_quoted(call))
        self._waiting = [call for call in self._waiting if not is_quoted(call)]

    def _release(self) -> Iterator[Piece]:
        yield from self._waiting
        self._waiting = []


def parse(text: str, tools: Sequence[Tool], *, cut: bool = False) -> Parsed:
    """The answer's prose and its calls of the tools; never raises, whatever the text."""
    parser = StreamParser(tools)
    pieces = [*parser.feed(text), *parser.finish(cut=cut)]
    return Parsed(
        content="".join(piece.text for piece in pieces if isinstance(piece, Prose)).strip(),
        calls=tuple(piece for piece in pieces if isinstance(piece, (Call, BadCall))),
        reasoning="".join(piece.text for piece in pieces if isinstance(piece, Thought)).strip(),
    )
