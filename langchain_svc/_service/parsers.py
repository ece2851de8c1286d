"""What becomes of a good answer's body: events as they arrive, or one value at its end."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TypeVar

from .. import errors
from .._text import restored, restored_text
from .._wire import (
    Event,
    StreamDecoder,
    Text,
    UnreadableError,
    Usage,
    is_event_stream,
    v1,
)
from .steps import AnswerParser, Head, Loss

T = TypeVar("T")
_text_of = attrgetter("text")
# The reasons for which an answer may rightly be without any text.
_EMPTY_REASONS = frozenset({"content_filter"})


class EventParser(AnswerParser[list[Event]]):
    """Reads a streamed answer: a piece is the events that one network read completed.

    What the service says beside the text waits for the next text or for the end of the stream:
    until a text is handed on, the call may be tried again.

    Args:
        merge: Make one of the texts that came in one network read. It never waits for more; it
            only yields together what is there together.
        strict_end: See `StreamDecoder`.
    """

    def __init__(self, *, merge: bool = True, strict_end: bool = True) -> None:
        self._merge = merge
        self._strict_end = strict_end
        self._decoder = StreamDecoder()
        self._waiting: list[Event] = []
        self._texts: list[str] = []
        self.length: int = 0

    def read_head(self, head: Head) -> None:
        label = head.headers.get("content-type", "")
        self._decoder = StreamDecoder(label, strict_end=self._strict_end)

    def parse_chunk(self, data: bytes) -> list[Event] | None:
        return self._piece(self._decoder.decode(data))

    def close(self) -> list[Event] | None:
        piece = self._piece(self._decoder.close()) or self._waiting
        reason = self._decoder.state.finish_reason
        if self.fault is None and not self._texts and reason not in _EMPTY_REASONS:
            self.fault = "the stream ended without any text"
        return piece or None

    def _piece(self, events: list[Event]) -> list[Event] | None:
        piece = self._waiting
        texts: list[Text] = []
        for event in events:
            if isinstance(event, Text):
                texts.append(event)
                if self._merge and len(texts) > 1:
                    continue  # the first of them gets its text, below
            elif isinstance(event, Usage):
                self.usage = event.counts
            piece.append(event)
        state = self._decoder.state
        self.ended = state.ended
        self.complete = state.ended or state.finish_reason is not None
        self.fault = state.fault
        self.error = state.error
        if not texts:
            return None
        if self._merge and len(texts) > 1:
            texts[0].text = "".join(map(_text_of, texts))
            texts = texts[:1]
        for text in map(_text_of, texts):
            self._texts.append(text)
            self.length += len(text)
        self._waiting = []
        return piece

    def failure(self, message: str, loss: Loss | None) -> errors.SvcError:
        del loss
        partial = restored_text("".join(self._texts), self.pseudonyms, cut=True)
        return errors.SvcStreamError(message, partial=partial)


class WholeParser(AnswerParser[T]):
    """Reads a whole answer: its one piece is what `parse` makes of the body, and is given out."""

    whole = True

    def __init__(self, parse: Callable[[bytes], T]) -> None:
        self._parse = parse
        self._parts: list[bytes] = []
        self._status = 0

    def read_head(self, head: Head) -> None:
        self._status = head.status

    def parse_chunk(self, data: bytes) -> None:
        self._parts.append(data)

    def close(self) -> T | None:
        return restored(self._answer(), self.pseudonyms)

    def _answer(self) -> T | None:
        """The answer as the service wrote it; None where it cannot be read."""
        try:
            return self._parse(b"".join(self._parts))
        except UnreadableError as error:
            self.fault = str(error)
            self.error = error.error
            return None

    def failure(self, message: str, loss: Loss | None) -> errors.SvcError:
        if loss is None:
            return errors.SvcResponseError(message, status_code=self._status)
        if loss.kind in {"timeout", "silence"}:
            return errors.SvcTimeoutError(message)
        return errors.SvcConnectionError(message)


class CompletionParser(WholeParser[list[Event]]):
    """Reads a whole answer of a chat into the events that a stream of it would have brought.

    Their text is the service's, with marks: the turn gives it out. Some gateways stream every
    answer, so that a stream is read, too, where none was asked for.
    """

    def __init__(self, *, strict_end: bool = True) -> None:
        super().__init__(self._read)
        self._strict_end = strict_end

    def read_head(self, head: Head) -> None:
        super().read_head(head)
        self._head = head

    def _read(self, body: bytes) -> list[Event]:
        try:
            return v1.read_completion(body)
        except UnreadableError:
            if not is_event_stream(body, self._head.headers.get("content-type", "")):
                raise
        parser = EventParser(strict_end=self._strict_end)
        parser.read_head(self._head)
        events = [*(parser.parse_chunk(body) or ()), *(parser.close() or ())]
        if parser.fault is not None:
            raise UnreadableError(parser.fault, parser.error)
        return events

    def close(self) -> list[Event] | None:
        events = self._answer()
        for event in events or ():
            if isinstance(event, Usage):
                self.usage = event.counts
        return events
