"""What becomes of a good answer's body: texts as they arrive, or one value at its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from .. import errors
from .._wire import StreamDecoder, UnreadableError
from .steps import AnswerParser, Head, Lost

T = TypeVar("T")
# The reasons for which an answer may rightly be without any text.
_EMPTY_REASONS = frozenset({"content_filter"})


class TextParser(AnswerParser[str]):
    """Reads a streamed answer: every piece is a text.

    Args:
        merge: Make one piece of the events that came in one network read. It never waits for
            more; it only yields together what is there together.
        strict_end: See `StreamDecoder`.
    """

    def __init__(self, *, merge: bool = True, strict_end: bool = True) -> None:
        super().__init__()
        self._merge = merge
        self._strict_end = strict_end
        self._texts: list[str] = []
        self.length = 0
        self.decoder = StreamDecoder()

    def begin(self, head: Head) -> None:
        label = head.headers.get("content-type", "")
        self.decoder = StreamDecoder(label, strict_end=self._strict_end)

    def feed(self, data: bytes) -> list[str]:
        return self._yielded(self.decoder.feed(data))

    def finish(self) -> list[str]:
        texts = self._yielded(self.decoder.finish())
        reason = self.decoder.seen.finish_reason
        if self.fault is None and not self._texts and reason not in _EMPTY_REASONS:
            self.fault = "the stream ended without any text"
        return texts

    def _yielded(self, texts: list[str]) -> list[str]:
        if len(texts) > 1 and self._merge:
            texts = ["".join(texts)]
        self._texts += texts
        self.length = sum(map(len, texts), self.length or 0)
        seen = self.decoder.seen
        self.complete, self.ended, self.fault = (
            self.decoder.complete,
            seen.ended,
            seen.fault,
        )
        self.error, self.usage = seen.error, seen.usage
        return texts

    def failure(self, message: str, lost: Lost | None) -> errors.SvcError:
        del lost
        return errors.SvcStreamError(message, partial="".join(self._texts))


class WholeParser(AnswerParser[T]):
    """Reads a whole answer: its one piece is what `parse` makes of the body."""

    whole = True

    def __init__(self, parse: Callable[[bytes], T]) -> None:
        super().__init__()
        self._parse = parse
        self._parts: list[bytes] = []
        self._status = 0

    def begin(self, head: Head) -> None:
        self._status = head.status

    def feed(self, data: bytes) -> list[T]:
        self._parts.append(data)
        return []

    def finish(self) -> list[T]:
        try:
            answer = self._parse(b"".join(self._parts))
        except UnreadableError as error:
            self.fault, self.error = str(error), error.said
            return []
        self.usage = getattr(answer, "usage", None)
        return [answer]

    def failure(self, message: str, lost: Lost | None) -> errors.SvcError:
        if lost is None:
            return errors.SvcResponseError(message, status_code=self._status)
        if lost.kind in {"timeout", "silence"}:
            return errors.SvcTimeoutError(message)
        return errors.SvcConnectionError(message)
