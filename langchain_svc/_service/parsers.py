"""What becomes of a good answer's body: texts as they arrive, or one value at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

from .. import errors
from .._wire import Redactor, Seen, StreamDecoder, UnreadableError
from .steps import Head, Lost

T = TypeVar("T")
# The reasons for which an answer may rightly be without any text.
_EMPTY_REASONS = frozenset({"content_filter"})


class TextParser:
    """Reads a streamed answer: every piece is a text.

    Args:
        merge: Make one piece of the events that came in one network read. It never waits for
            more; it only yields together what is there together.
        strict_end: See `StreamDecoder`.
    """

    def __init__(self, *, merge: bool = True, strict_end: bool = True) -> None:
        self.secrets: tuple[str, ...] = ()
        self.delivered = False
        self.whole = False
        self._merge = merge
        self._strict_end = strict_end
        self._texts: list[str] = []
        self._empty = False
        self._redactor = Redactor()
        self.decoder = StreamDecoder()

    def begin(self, head: Head) -> None:
        label = head.headers.get("content-type", "")
        self._redactor = Redactor(self.secrets)
        self.decoder = StreamDecoder(label, strict_end=self._strict_end)

    def feed(self, data: bytes) -> list[str]:
        return self._yielded(self.decoder.feed(data))

    def finish(self) -> list[str]:
        texts = self._yielded(self.decoder.finish(), last=True)
        reason = self.decoder.seen.finish_reason
        self._empty = not self._texts and reason not in _EMPTY_REASONS
        return texts

    def _yielded(self, texts: list[str], *, last: bool = False) -> list[str]:
        if len(texts) > 1 and self._merge:
            texts = ["".join(texts)]
        clean = [*map(self._redactor.feed, texts), *([self._redactor.finish()] if last else ())]
        texts = [text for text in clean if text]
        self._texts += texts
        return texts

    @property
    def seen(self) -> Seen:
        """What the stream said beside its text."""
        seen = self.decoder.seen
        named = (seen.model, seen.id, seen.finish_reason)
        model, id_, reason = (name and self._redactor.text(name) for name in named)
        return replace(seen, model=model, id=id_, finish_reason=reason)

    @property
    def fault(self) -> str | None:
        if self.decoder.seen.fault is None and self._empty:
            return "the stream ended without any text"
        return self.decoder.seen.fault

    @property
    def complete(self) -> bool:
        return self.decoder.complete

    @property
    def ended(self) -> bool:
        return self.decoder.seen.ended

    @property
    def error(self) -> Any:
        return self.decoder.seen.error

    @property
    def usage(self) -> dict[str, int] | None:
        return self.decoder.seen.usage

    @property
    def length(self) -> int:
        return sum(map(len, self._texts))

    @property
    def text(self) -> str:
        """All text yielded so far."""
        return "".join(self._texts)

    def failure(self, message: str, lost: Lost | None) -> errors.SvcError:
        del lost
        return errors.SvcStreamError(message, partial=self.text)


class WholeParser(Generic[T]):
    """Reads a whole answer: its one piece is what `parse` makes of the body."""

    def __init__(self, parse: Callable[[bytes], T]) -> None:
        self.secrets: tuple[str, ...] = ()
        self.delivered = False
        self.fault: str | None = None
        self.error: Any = None
        self.complete = False
        self.ended = False
        self.whole = True
        self.usage: Mapping[str, int] | None = None
        self.length: int | None = None
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
            answer = self._parse(Redactor(self.secrets).body(b"".join(self._parts)))
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
