"""Bytes of a streamed answer -> events, whatever format the service chose.

The format of a stream's pieces and of its end is "not shown" (v1 API, section 4 rule 2;
general API, section 4 rule 2). The Content-Type label says which it is: server-sent events with
JSON chunks or plain text, JSON objects by line, or one JSON answer. Where no label does, the first
bytes tell events with JSON chunks and JSON from raw text.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from pydantic_core import from_json

from .body import has_too_many_values
from .chunks import AnswerObject, End, Event, Metadata, Text, Usage, read_object
from .v1 import without_surrogates

# -- stream formats --------------------------------------------------------------------------------
# The decoders of the stream formats, each fed with bytes cut anywhere.
#
# Every decoder has `decode(data)` and `close()`, which return the events that became complete,
# and notes in one shared `StreamState` how far the stream has come. None raises: what arrived
# before a fault is returned first. Unfinished lines wait in a list and are joined once, which
# keeps the cost linear however small the reads are.

_BROKEN_UTF8 = "a character of the stream was cut in half or is not UTF-8"
_BROKEN_JSON = "a piece of the stream is malformed JSON"
_UNKNOWN_SHAPE = "the answer is JSON of an unknown shape"
_HALF_EVENT = "the stream ended inside an event"
_SURE_KEYS = frozenset(
    {"choices", "usage", "success", "done", "finish_reason", "error", "tokens"}
)
_BEHIND_NAME = len(b"data: ")
_END_EVENTS = frozenset({b"done", b"end", b"complete", b"finish"})
# The fields of a delta that hold nothing but the text, or nothing that is read.
_TEXT_FIELDS = frozenset({"content", "role"})
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass
class StreamState:
    """How far a stream has come.

    Attributes:
        ended: Whether the format's own end mark has come.
        owes_end: Whether the format has an end mark, so that ending without it is a break.
        finish_reason: Why the answer ended, once the stream has said so.
        fault: Why the stream cannot go on.
        error: An error object that stood in the stream.
        metadata: What the stream has said of the answer as a whole.
        half: The first half of a character, whose second half has not come yet.
    """

    ended: bool = False
    owes_end: bool = False
    finish_reason: str | None = None
    fault: str | None = None
    error: object = None
    metadata: Metadata = field(default_factory=Metadata)
    half: str = ""

    @property
    def complete(self) -> bool:
        """Whether the whole answer has arrived: an end mark or a finish_reason has come."""
        return self.ended or self.finish_reason is not None

    def add_object(self, answer: AnswerObject, events: list[Event]) -> None:
        """Add what a JSON object says to the events."""
        if answer.error is not None:
            self.error = answer.error
            self.fault = "the stream carried an error"
            return
        self._add_metadata(answer.metadata, events)
        if answer.text:
            self.add_text(answer.text, events)
        if answer.usage:
            events.append(Usage(answer.usage))
        if answer.finish_reason:
            self.finish_reason = answer.finish_reason
            events.append(End(answer.finish_reason))
        self.owes_end = self.owes_end or answer.completion
        self.ended = self.ended or answer.whole or answer.last

    def _add_metadata(self, metadata: Metadata, events: list[Event]) -> None:
        before = self.metadata
        # A chunk that leaves a field out does not take back what another one said.
        merged = Metadata(
            model=metadata.model or before.model,
            id=metadata.id or before.id,
            created=metadata.created or before.created,
            timestamp=metadata.timestamp or before.timestamp,
        )
        if merged != before:
            self.metadata = merged
            events.append(merged)

    def add_text(self, text: str, events: list[Event]) -> None:
        """Add a text to the events; half a character at its end waits for its other half.

        Some servers cut JSON between the two escapes of one character, which are surrogates.
        """
        if self.half or (not text.isascii() and _SURROGATE.search(text)):
            text = self.half + text
            self.half = ""
            if "\ud800" <= text[-1:] <= "\udbff":
                self.half = text[-1]
                text = text[:-1]
            text = without_surrogates(text)
        if text:
            events.append(Text(text))


class FormatDecoder(Protocol):
    """Turns the bytes of one format into events."""

    def decode(self, data: bytes) -> list[Event]:
        """The events that `data` completes."""

    def close(self) -> list[Event]:
        """The last events, once the body has ended."""


def load(data: bytes) -> object:
    """The JSON value in `data`; ValueError when there is none, or too much of it."""
    if has_too_many_values(data):
        raise ValueError("too many values")
    try:
        return from_json(data)
    except ValueError:
        # Half of a surrogate pair is an error there, but an ordinary cut for some servers.
        try:
            return json.loads(data)
        except RecursionError:
            raise ValueError("nested too deeply") from None


class Lines:
    """Cuts bytes into lines that end at CR, LF or CRLF."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._after_cr = False

    def split(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes."""
        if self._after_cr and data:
            self._after_cr = False
            data = data.removeprefix(b"\n")
        if b"\r" in data:
            self._after_cr = data.endswith(b"\r")
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if not data:
            return []
        self._parts.append(data)
        if b"\n" not in data:
            return []
        *lines, rest = b"".join(self._parts).split(b"\n")
        self._parts.clear()
        if rest:
            self._parts.append(rest)
        return lines

    @property
    def is_between(self) -> bool:
        """Whether no line has begun, and the last one's end is over."""
        return not self._parts and not self._after_cr

    def rest(self) -> bytes:
        """The unfinished line."""
        data = b"".join(self._parts)
        self._parts = []
        return data


class TextDecoder:
    """Raw text: every byte is content."""

    def __init__(self, state: StreamState) -> None:
        self._state = state
        self._utf8 = codecs.getincrementaldecoder("utf-8")()

    def decode(self, data: bytes) -> list[Event]:
        return self._texts(data, final=False)

    def close(self) -> list[Event]:
        return self._texts(b"", final=True)

    def _texts(self, data: bytes, *, final: bool) -> list[Event]:
        try:
            text = self._utf8.decode(data, final)
        except UnicodeDecodeError as error:
            self._state.fault = _BROKEN_UTF8
            # The intact text before the broken byte has arrived and is owed to the caller.
            text = error.object[: error.start].decode("utf-8", "ignore")
        if not text:
            return []
        return [Text(text)]


class SseDecoder:
    """Server-sent events, with JSON chunks or plain text as their data."""

    def __init__(self, state: StreamState) -> None:
        self._state = state
        self._lines = Lines()
        self._data: list[bytes] = []  # the data lines of the event that has begun
        self._name = b""  # and its name
        self._plain = False  # the first piece was text: later ones are too

    def decode(self, data: bytes) -> list[Event]:
        # One whole event a read is how a live stream comes.
        if data.endswith(b"}\n\n") and self._is_next_chunk(data):
            text = read_plain_chunk(data[_BEHIND_NAME:])
            if text:
                return [Text(text)]
            if text is not None:
                return []
        events: list[Event] = []
        for line in self._lines.split(data):
            if line:
                self._add_field(line)
            elif self._data or self._name:
                self._dispatch(events)
                if self._state.ended or self._state.fault:
                    break
        return events

    def _is_next_chunk(self, data: bytes) -> bool:
        """Whether the data is one whole event of a stream of chunks, and no other has begun."""
        if self._data or self._name or not self._lines.is_between:
            return False
        if self._state.half or not self._state.owes_end:
            return False
        if not data.startswith(b"data: {") or b"\r" in data:
            return False
        return data.find(b"\n") == len(data) - 2

    def close(self) -> list[Event]:
        """Reads a last event whose blank line is missing, if it is whole."""
        events: list[Event] = []
        rest = self._lines.rest()
        if rest:
            self._add_field(rest)
        if not self._data:
            return events
        if not self._plain or self._data == [b"[DONE]"]:
            self._dispatch(events)
        if self._plain and not self._state.ended:
            # Nothing tells a whole piece of text from one that was cut.
            self._state.fault = _HALF_EVENT
            return []
        if self._state.fault == _BROKEN_JSON:
            self._state.fault = _HALF_EVENT
        return events

    def _add_field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._name = value

    def _dispatch(self, events: list[Event]) -> None:
        """Reads the event that has come to its end, and begins another."""
        name = self._name
        lines = self._data
        self._name = b""
        self._data = []
        data = b"\n".join(lines)
        if data == b"[DONE]" or (name in _END_EVENTS and not data.startswith(b"{")):
            self._state.ended = True
        elif name == b"error":
            self._state.add_object(AnswerObject(error=_error_in(data)), events)
        elif lines:
            self._read_data(data, events)

    def _read_data(self, data: bytes, events: list[Event]) -> None:
        state = self._state
        if state.owes_end and not state.half:
            text = read_plain_chunk(data)
            if text is not None:
                if text:
                    events.append(Text(text))
                return
        value = _object_in(data)
        answer = None
        if value:
            answer = read_object(value)
        if answer is not None:
            state.add_object(answer, events)
        elif state.owes_end or b'"choices"' in data:
            state.fault = _BROKEN_JSON
        elif value and not self._plain:
            state.fault = _UNKNOWN_SHAPE
        else:
            self._read_text(data, events)

    def _read_text(self, data: bytes, events: list[Event]) -> None:
        self._plain = True
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            self._state.fault = _BROKEN_UTF8
            return
        self._state.add_text(text, events)


class ObjectsDecoder:
    """JSON objects: one a line, or one over the whole body."""

    def __init__(self, state: StreamState) -> None:
        self._state = state
        self._lines = Lines()
        self._unfinished: list[bytes] = []  # lines of an object over several
        self._any = False

    def decode(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        for line in self._lines.split(data):
            if line.strip() and not self._state.ended:
                self._read_line(line, events)
            if self._state.fault:
                break
        return events

    def close(self) -> list[Event]:
        events: list[Event] = []
        rest = self._lines.rest()
        if rest.strip():
            self._unfinished.append(rest)
        if self._unfinished and not self._state.ended:
            is_value = self._read_value(b"\n".join(self._unfinished), events)
            if not is_value:
                self._state.fault = _HALF_EVENT
        return events

    def _read_line(self, line: bytes, events: list[Event]) -> None:
        if self._unfinished or not self._read_value(line, events):
            self._unfinished.append(line)  # it may be the first line of a large object
            if self._any:
                self._state.fault = _BROKEN_JSON

    def _read_value(self, data: bytes, events: list[Event]) -> bool:
        """Reads one JSON value; says whether it is one."""
        if data.strip() == b"[DONE]":
            self._state.ended = True
            return True
        try:
            value = load(data)
        except ValueError:
            return False
        self._any = True
        answer = None
        if isinstance(value, dict):
            answer = read_object(value)
            self._state.owes_end = self._state.owes_end or "done" in value
        if answer is None:
            self._state.fault = _UNKNOWN_SHAPE
        else:
            self._state.add_object(answer, events)
        return True


def is_answer(data: bytes) -> bool | None:
    """Whether JSON is surely part of an answer, and not a text of the model; None if it is none."""
    try:
        value = load(data)
    except ValueError:
        return None
    if not isinstance(value, dict) or _SURE_KEYS.isdisjoint(value):
        return False
    return read_object(value) is not None


def read_plain_chunk(data: bytes) -> str | None:
    """The text of a completion chunk that holds nothing else; None for any other.

    Nearly every event of a stream is such a chunk, and this takes a fifth of the time that
    `read_object` takes, which reads all others.
    """
    try:
        chunk = from_json(data)
        (choice,) = chunk["choices"]
        delta = choice["delta"]
        text = delta["content"]
        if choice["finish_reason"] is not None or choice["index"]:
            return None
        if chunk.get("usage") or (
            len(delta) > 1 and not _TEXT_FIELDS.issuperset(delta)
        ):
            return None
    except (ValueError, KeyError, TypeError):
        return None
    if type(text) is not str:
        return None
    return text


def _object_in(data: bytes) -> dict[str, object] | None:
    """The JSON object in an event's data; None where it holds something else."""
    if data[:1] not in (b"{", b" "):
        return None
    try:
        value = load(data)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    return value


def _error_in(data: bytes) -> object:
    """What an event that reports an error says."""
    value = _object_in(data)
    if value:
        return value.get("error", value)
    return data.decode("utf-8", "replace")


# -- stream ----------------------------------------------------------------------------------------

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
