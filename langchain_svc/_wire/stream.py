"""Bytes of a streamed answer -> events, whatever format the service chose.

The format of a stream's pieces and of its end is "not shown" (v1 API, section 4 rule 2;
general API, section 4 rule 2). The Content-Type label says which it is: server-sent events with
JSON chunks or plain text, JSON objects by line, or one JSON answer. Where no label does, the first
bytes tell events with JSON chunks and JSON from raw text.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .events import Event, Text
from .stream_formats import (
    FormatDecoder,
    ObjectsDecoder,
    SseDecoder,
    StreamState,
    TextDecoder,
    is_answer,
)

_BOM = b"\xef\xbb\xbf"
_LONGEST_HEAD = 1024  # bytes that decide
# A line before the first event, the fields that it has, and how that event begins.
_LINE_BEFORE = re.compile(rb"(?:(?:id|event|retry)?:[^\r\n]*)?(?:\r\n?|\n)")
_FIELDS = (b":", b"id:", b"event:", b"retry:")
_BEGINS_ANSWER = re.compile(
    rb'\A\{\s*"(?:choices|success|usage|object|done)"|'
    rb'"object"\s*:\s*"chat\.completion|"choices"\s*:\s*\[\s*\{'
)
_JSON_EVENTS = (b"data: {", b"data:{", b"data: [DONE]", b"data:[DONE]")


class StreamDecoder:
    """Turns the bytes of one streamed answer into events: `decode(data)`, then `close()`.

    The text is the same for every way of cutting the bytes. Nothing is raised: `state.fault`
    says why the stream cannot go on, after the events before the fault have been returned.

    Args:
        content_type: The answer's Content-Type header, or "".
        strict_end: Whether a stream in completion shape must have an end mark or a finish_reason.
    """

    def __init__(self, content_type: str = "", *, strict_end: bool = True) -> None:
        self.state = StreamState()
        self._label = _label(content_type)
        self._strict_end = strict_end
        self._decoder: FormatDecoder | None = None
        self._head: list[bytes] = []
        # The bytes without which more of the head says nothing new; None: only its end does.
        self._awaited: bytes | None = b""

    def decode(self, data: bytes) -> list[Event]:
        """The events that `data` completes, in order."""
        if self.state.ended or self.state.fault:
            return []
        if self._decoder is None:
            return self._decode_head(data)
        return self._decoder.decode(data)

    def close(self) -> list[Event]:
        """The last events, once the body has ended; then `state.fault` tells a broken end."""
        state = self.state
        if state.fault:
            return []
        events: list[Event] = []
        if self._decoder is None:
            events += self._decode_head(b"", final=True)
        if self._decoder is not None and not state.ended and not state.fault:
            events += self._decoder.close()
        if state.half:
            state.half = ""
            events.append(Text("\ufffd"))
        lacks_end = state.owes_end and not state.complete
        if lacks_end and self._strict_end and not state.fault:
            state.fault = (
                "the stream ended with neither an end mark nor a finish_reason"
            )
        return events

    def _decode_head(self, data: bytes, *, final: bool = False) -> list[Event]:
        """Chooses the decoder and gives it the head; nothing while the head leaves it open."""
        self._head.append(data)
        if not final and not self._may_decide(data):
            return []
        head = b"".join(self._head)
        self._head = [head]
        if not final and _BOM.startswith(head):
            return []
        body = head.removeprefix(_BOM)
        start = body.lstrip()
        if not start:
            return []
        if len(body) - len(start) > _LONGEST_HEAD:
            body = start
            self._head = [body]
        kind = _recognise(start[:_LONGEST_HEAD], self._label, final=final)
        if kind == "either":
            kind = self._answer_or_text(start, final=final)
        if kind is None:
            return []
        if kind == "html":
            self.state.fault = "the answer is a page of HTML"
            return []
        self._head = []
        self._decoder = _DECODERS[kind](self.state)
        if kind == "events":
            return self._decoder.decode(start)
        return self._decoder.decode(body)

    def _may_decide(self, data: bytes) -> bool:
        """Whether the newest bytes of the head may tell what it is, so that it is looked at."""
        if self._awaited is None:
            return False
        if self._awaited:
            return self._awaited in data
        # White space tells nothing, and keeps a connection alive.
        return bool(data.strip())

    def _answer_or_text(self, start: bytes, *, final: bool) -> str | None:
        """What JSON without a label is: its first line tells, or its end."""
        line, newline, _ = start.partition(b"\n")
        answer = None
        if final:
            answer = is_answer(start)
        elif newline:
            self._awaited = None
            answer = is_answer(line)
        else:
            self._awaited = b"\n"
        if answer is not None:
            return "objects" if answer else "text"
        if not final:
            return None
        # An object over several lines, or text.
        if _BEGINS_ANSWER.search(start):
            return "objects"
        return "text"


_DECODERS: dict[str, Callable[[StreamState], FormatDecoder]] = {
    "text": TextDecoder,
    "events": SseDecoder,
    "objects": ObjectsDecoder,
}


def is_event_stream(body: bytes, content_type: str) -> bool:
    """Whether a whole body holds server-sent events."""
    start = body.removeprefix(_BOM).lstrip()[:_LONGEST_HEAD]
    return _recognise(start, _label(content_type), final=True) == "events"


def _label(content_type: str) -> str:
    """What the label claims: events, objects, html or nothing."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "text/event-stream":
        return "events"
    if "json" in kind:
        return "objects"
    if kind in {"text/html", "application/xhtml+xml"}:
        return "html"
    return ""


def _recognise(start: bytes, label: str, *, final: bool) -> str | None:
    """The format's name, or None while more bytes could change it."""
    if start.startswith(b"<") and label:
        return "html"
    if start.startswith(b"{"):
        if label in {"events", "objects"}:
            return "objects"
        return "either"
    if label == "events":
        return "events"
    rest = _without_preamble(start)
    if rest.startswith(_JSON_EVENTS):
        return "events"
    # Events may follow where only lines before them came, or the beginning of one.
    if any(field.startswith(rest[: len(field)]) for field in _JSON_EVENTS + _FIELDS):
        if not final and len(start) < _LONGEST_HEAD:
            return None
        if not rest or (rest != start and not final):
            return "events"
    if label == "objects":
        return "objects"
    return "text"


def _without_preamble(start: bytes) -> bytes:
    """The bytes behind the lines that may come before the first event's data."""
    at = 0
    while line := _LINE_BEFORE.match(start, at):
        at = line.end()
    return start[at:]
