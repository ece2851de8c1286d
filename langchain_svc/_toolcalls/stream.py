"""An answer that comes in pieces -> events. The same engine serves whole answers (`parse`).

Nothing that was handed on is ever taken back, so a call is handed on when it is known to be good:
whole, with a name on offer and arguments that fit. To hand on arguments sooner would be a promise
that no parser can keep. The text may be cut off in the next value, a required argument may never
come; and whoever adds up the events would hold half of a call that looks like one.

A call may also turn out to have been thought, when `</think>` follows whose `<think>` the prompt
held already. Thinking begins with prose, so calls after prose wait for the end of the text, unless
reasoning has ended before. Calls at the beginning do not wait, and prose never does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from .calls import BadCall, Call, Tool
from .offer import arguments_json
from .scanner import Piece, Prose, Scanner, Thought, ThoughtEnd


@dataclass(frozen=True)
class Content:
    """A piece of the prose around calls."""

    text: str


@dataclass(frozen=True)
class Reasoning:
    """A piece of what the model thought, which is no part of its answer."""

    text: str


@dataclass(frozen=True)
class CallStart:
    """A call begins; the indices count from 0."""

    index: int
    name: str


@dataclass(frozen=True)
class Arguments:
    """A piece of the JSON of a call's arguments; the pieces of an index add up to it."""

    index: int
    text: str


Event = Content | Reasoning | CallStart | Arguments | BadCall


class Sorter:
    """Decides which calls count, and when that is certain."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._scanner = Scanner(tools)
        self._waiting: list[Call | BadCall] = []
        self._doubtful = False  # there was prose, which may have been thought
        self._certain = False

    @property
    def ended(self) -> bool:
        """Whether the model invented a result: nothing after it counts."""
        return self._scanner.ended

    def feed(self, text: str) -> Iterator[Prose | Thought | Call | BadCall]:
        """What the text brings."""
        yield from self._sort(self._scanner.feed(text))
        if self.ended:
            yield from self._release()

    def finish(self) -> Iterator[Prose | Thought | Call | BadCall]:
        """What is left at the end of the text."""
        yield from self._sort(self._scanner.finish())
        yield from self._release()

    def _sort(self, pieces: Iterable[Piece]) -> Iterator[Prose | Thought | Call | BadCall]:
        for piece in pieces:
            if isinstance(piece, Prose):
                self._doubtful = True
                yield piece
            elif isinstance(piece, Thought):
                self._certain = True
                yield piece
            elif isinstance(piece, ThoughtEnd):
                if not self._certain:
                    self._waiting.clear()
                self._certain = True
            elif self._doubtful and not self._certain:
                self._waiting.append(piece)
            else:
                self._certain = True
                yield piece

    def _release(self) -> Iterator[Call | BadCall]:
        yield from self._waiting
        self._waiting = []


class StreamParser:
    """Turns the pieces of one answer into events: `feed(text)`, then `finish()`.

    The contents and calls are those of `parse`, however the text was cut. Nothing is raised.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._sorter = Sorter(tools)
        self._count = 0

    @property
    def ended(self) -> bool:
        """Whether the model invented a result: nothing after it counts, so the stream may close."""
        return self._sorter.ended

    def feed(self, text: str) -> list[Event]:
        """What this piece of text brings, in order."""
        return self._events(self._sorter.feed(text))

    def finish(self) -> list[Event]:
        """What is left, once the text has ended."""
        return self._events(self._sorter.finish())

    def _events(self, pieces: Iterable[Prose | Thought | Call | BadCall]) -> list[Event]:
        events: list[Event] = []
        prose: list[str] = []
        for piece in pieces:
            if isinstance(piece, Prose):
                prose.append(piece.text)
                continue
            if prose:
                events.append(Content("".join(prose)))
                prose = []
            events += self._of(piece)
        if prose:
            events.append(Content("".join(prose)))
        return events

    def _of(self, piece: Thought | Call | BadCall) -> list[Event]:
        if isinstance(piece, Thought):
            return [Reasoning(piece.text)]
        if isinstance(piece, BadCall):
            return [piece]
        index = self._count
        self._count += 1
        return [CallStart(index, piece.name), Arguments(index, arguments_json(piece.arguments))]
