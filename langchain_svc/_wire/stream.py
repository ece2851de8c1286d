"""Bytes of a streamed answer -> texts, whatever format the service chose.

The format of a stream's pieces and of its end is "not shown" (v1 API, section 4 rule 2;
general API, section 4 rule 2). The Content-Type label says which it is: server-sent events with
JSON chunks or plain text, JSON objects by line, or one JSON answer. Where no label does, the first
bytes tell events with JSON chunks and JSON from raw text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from . import formats
from .formats import Seen
from .v1 import without_surrogates

_HALF = re.compile("[\ud800-\udfff]")
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


class _Decoder(Protocol):
    def feed(self, data: bytes) -> list[str]: ...

    def finish(self) -> list[str]: ...


class StreamDecoder:
    """Turns the bytes of one streamed answer into texts: `feed(data)`, then `finish()`.

    The texts are the same for every way of cutting the bytes. Nothing is raised: `seen.fault`
    says why the stream cannot go on, after the texts before the fault have been returned.

    Args:
        content_type: The answer's Content-Type header, or "".
        strict_end: Whether a stream in completion shape must have an end mark or a finish_reason.
    """

    def __init__(self, content_type: str = "", *, strict_end: bool = True) -> None:
        self.seen = Seen()
        self._label = _label(content_type)
        self._strict_end = strict_end
        self._decoder: _Decoder | None = None
        self._head: list[bytes] = []
        self._need: bytes | None = b""  # what must come to tell more; None: the end
        self._half = ""

    @property
    def complete(self) -> bool:
        """Whether the whole answer has arrived: an end mark or a finish_reason was seen."""
        return self.seen.ended or self.seen.finish_reason is not None

    def feed(self, data: bytes) -> list[str]:
        """The texts that `data` completes, in order."""
        if self.seen.ended or self.seen.fault:
            return []
        if self._decoder is None:
            return self._join(self._begin(data))
        return self._join(self._decoder.feed(data))

    def finish(self) -> list[str]:
        """The last texts, once the body has ended; then `seen.fault` tells a broken end."""
        if self.seen.fault:
            return []
        texts: list[str] = []
        if self._decoder is None:
            texts += self._begin(b"", final=True)
        if self._decoder is not None and not self.seen.ended and not self.seen.fault:
            texts += self._decoder.finish()
        texts = self._join(texts, final=True)
        if (
            self.seen.owes_end
            and self._strict_end
            and not (self.complete or self.seen.fault)
        ):
            self.seen.fault = (
                "the stream ended with neither an end mark nor a finish_reason"
            )
        return texts

    def _join(self, texts: list[str], *, final: bool = False) -> list[str]:
        """Joins halves of characters that were cut apart; a first half at the end is held back."""
        if self._half or any(
            not text.isascii() and _HALF.search(text) for text in texts
        ):
            text = self._half + "".join(texts)
            end = len(text) - ("\ud800" <= text[-1:] <= "\udbff")
            text, self._half = without_surrogates(text[:end]), text[end:]
            texts = [text] if text else []
        return [*texts, "\ufffd"] if final and self._half else texts

    def _begin(self, data: bytes, *, final: bool = False) -> list[str]:
        """Chooses the decoder and feeds it the head; nothing while the head leaves it open."""
        self._head.append(data)
        need = self._need
        if not final and (
            need is None or need not in data or not (need or data.strip())
        ):
            return []  # white space tells nothing, and keeps a connection alive
        head = b"".join(self._head)
        self._head = [head]
        if not final and _BOM.startswith(head):
            return []
        body = head.removeprefix(_BOM)
        start = body.lstrip()
        if not start:
            return []
        if len(body) - len(start) > _LONGEST_HEAD:
            self._head = [body := start]
        kind = _recognise(start[:_LONGEST_HEAD], self._label, final=final)
        if kind == "either":
            kind = self._answer_or_text(start, final=final)
        if kind == "html":
            self.seen.fault = "the answer is a page of HTML"
        elif kind is not None:
            self._head = []
            self._decoder = _DECODERS[kind](self.seen)
            return self._decoder.feed(start if kind == "events" else body)
        return []

    def _answer_or_text(self, start: bytes, *, final: bool) -> str | None:
        """What JSON without a label is: its first line tells, or its end."""
        line, newline, _ = start.partition(b"\n")
        self._need = None if newline else b"\n"
        is_answer = (
            formats.is_answer(start if final else line) if newline or final else None
        )
        if is_answer is None:  # an object over several lines, or text
            return (
                ("objects" if _BEGINS_ANSWER.search(start) else "text")
                if final
                else None
            )
        return "objects" if is_answer else "text"


_DECODERS: dict[str, Callable[[Seen], _Decoder]] = {
    "text": formats.Text,
    "events": formats.Events,
    "objects": formats.Objects,
}


def _label(content_type: str) -> str:
    """What the label claims: events, objects, html or nothing."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "text/event-stream":
        return "events"
    if "json" in kind:
        return "objects"
    return "html" if kind in {"text/html", "application/xhtml+xml"} else ""


def _recognise(start: bytes, label: str, *, final: bool) -> str | None:
    """The format's name, or None while more bytes could change it."""
    first = start[:1]
    if first == b"<" and label:
        return "html"
    if first == b"{":
        return "objects" if label in {"events", "objects"} else "either"
    if label == "events":
        return "events"
    rest = _without_preamble(start)
    if rest.startswith(_JSON_EVENTS):
        return "events"
    if any(field.startswith(rest[: len(field)]) for field in _JSON_EVENTS + _FIELDS):
        if not final and len(start) < _LONGEST_HEAD:
            return None
        if not rest or (rest != start and not final):
            return "events"
    return "objects" if label == "objects" else "text"


def _without_preamble(start: bytes) -> bytes:
    """The bytes behind the lines that may come before the first event's data."""
    at = 0
    while line := _LINE_BEFORE.match(start, at):
        at = line.end()
    return start[at:]
