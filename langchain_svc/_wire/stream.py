"""Bytes of a streamed answer -> texts, whatever format the service chose.

The format of a stream's pieces and of its end is "not shown" (v1 API, section 4 rule 2;
general API, section 4 rule 2). `StreamDecoder` recognises server-sent events with JSON chunks
or with plain text, newline-delimited JSON, raw text, and one complete JSON answer. It looks at the
body first; the Content-Type label breaks ties.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from . import formats
from .formats import Seen

_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
_EVENT_BLOCK = re.compile(rb"(?:(?:data|event|id|retry)?:[^\n]*\n)+\n+")
_CUT_EVENT = re.compile(rb"^data: ?\{", re.MULTILINE)
_FIRST_KEY = re.compile(rb'\{\s*"([^"\\]*)"')
# Keys that an answer of the service may begin with, and those that only such an answer has.
_KEYS = frozenset(
    b"id object created model choices usage success response tokens timestamp done error type "
    b"delta content text token answer output message finish_reason".split()
)
_OPEN_KEY = re.compile(rb'\{\s*("[^"\\]*)?')
_SHORT_HEAD = 256
_LONG_HEAD = 1024
_BLANK_LINE = re.compile(rb"\n\r?\n|\r\r")
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)


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
        self.format: str | None = None  # once it is recognised
        self._label = _label(content_type)
        self._strict_end = strict_end
        self._decoder: _Decoder | None = None
        self._head: list[bytes] = []
        self._size = 0
        self._look_at = 0  # the head's size from which another look may tell more
        self._half = ""
        self._halves = False

    @property
    def complete(self) -> bool:
        """Whether the whole answer has arrived: an end mark or a finish_reason was seen."""
        return self.seen.ended or self.seen.finish_reason is not None

    def feed(self, data: bytes) -> list[str]:
        """The texts that `data` completes, in order."""
        if self.seen.ended or self.seen.fault:
            return []
        if self._decoder is None:
            self._head.append(data)
            if not self._size and (not data or data.isspace()):
                return []  # nothing to look at yet, however much of it comes
            self._size += len(data)
            news = _BLANK_LINE.search(data) if self._size > _LONG_HEAD else b"\n" in data
            if not news and self._size < self._look_at:
                return []
            return self._join(self._begin(final=False))
        return self._join(self._decoder.feed(data))

    def finish(self) -> list[str]:
        """The last texts, once the body has ended; then `seen.fault` tells a broken end."""
        if self.seen.fault:
            return []
        texts: list[str] = []
        if self._decoder is None:
            texts += self._begin(final=True)
        if self._decoder is not None and not self.seen.ended and not self.seen.fault:
            texts += self._decoder.finish()
        texts = self._join(texts, final=True)
        if self.seen.owes_end and self._strict_end and not (self.complete or self.seen.fault):
            self.seen.fault = "the stream ended with neither an end mark nor a finish_reason"
        return texts

    def _join(self, texts: list[str], *, final: bool = False) -> list[str]:
        if not self._halves:
            self._halves = any(not t.isascii() and _has_half(t) for t in texts)
        if self._halves:
            texts, self._half = formats.join_surrogates(texts, self._half)
            if final and self._half:
                texts.append("\ufffd")
        return texts

    def _begin(self, *, final: bool) -> list[str]:
        """Chooses the decoder and feeds it the head; nothing while the head leaves it open."""
        head = b"".join(self._head)
        self._head = [head]
        if not final and _BOM.startswith(head):
            return []
        body = head.removeprefix(_BOM)
        if final and not body.strip():
            return []  # white space keeps a connection alive, and is not text
        kind = _recognise(body, self._label, final=final)
        if kind is None:
            # Looking again at every byte of a long first line, or at every line of a long event,
            # would cost its square.
            self._look_at = 2 * self._size if self._size > _SHORT_HEAD else 0
            return []
        if kind == "html":
            self.seen.fault = "the answer is a page of HTML"
            return []
        self._head = []
        self.format = kind
        self._decoder = _DECODERS[kind](self.seen)
        return self._decoder.feed(body)


_DECODERS: dict[str, Callable[[Seen], _Decoder]] = {
    "text": formats.Text,
    "events": formats.Events,
    "objects": formats.Objects,
    "either": formats.Either,
}


def _has_half(text: str) -> bool:
    return any("\ud800" <= c <= "\udfff" for c in text)


def _label(content_type: str) -> str:
    """What the label claims: events, objects, html, text or nothing."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "text/event-stream":
        return "events"
    if "json" in kind:
        return "objects"
    if kind in {"text/html", "application/xhtml+xml"}:
        return "html"
    return "text" if kind.startswith("text/") else ""


def _recognise(head: bytes, label: str, *, final: bool) -> str | None:
    """The format's name, or None while more bytes could change it."""
    body = head.lstrip(b" \t\r\n")
    if not body:
        return "text" if final else None
    if body[:1] in (b"{", b"["):
        return _recognise_json(body, label, final=final)
    if body.startswith(_FIELDS):
        return _recognise_events(body, label, final=final)
    if any(field.startswith(body) for field in _FIELDS):
        # Where events were announced, a part of a field's name is a cut event and not text.
        return ("events" if label == "events" else "text") if final else None
    if label == "objects" and body[:1] == b'"':
        return "objects"
    if label in {"html", "objects", "events"} and body[:1] == b"<":
        return "html"
    return "text"


def _recognise_json(body: bytes, label: str, *, final: bool) -> str | None:
    if label in {"events", "objects"}:
        return "objects"
    if body[:1] == b"[":
        return "text"
    key = _FIRST_KEY.match(body)
    if key is None:
        still_open = not final and _OPEN_KEY.fullmatch(body) and len(body) <= _SHORT_HEAD
        return None if still_open else "text"
    if key[1] not in _KEYS:
        return "text"
    line, newline, _ = body.partition(b"\n")
    if not newline and not final:
        return None
    try:
        value = formats.load(line)
    except ValueError:
        if final and formats.begins_answer(body):
            return "objects"
        return "either" if newline else "text"
    # Model text can be JSON too; under a label that says text, only sure signs overrule it.
    return "objects" if formats.is_answer(value, sure=bool(label)) else "text"


def _recognise_events(body: bytes, label: str, *, final: bool) -> str | None:
    """Whether lines that look like fields are events; text can begin with "data:" too."""
    if label == "events":
        return "events"
    lines = body.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    block = _EVENT_BLOCK.match(lines)
    if block is None:
        whole = lines.split(b"\n")[:-1]
        if any(line and not line.startswith(_FIELDS) for line in whole):
            return "text"  # however the rest of it looks: an earlier look would have said so too
        if final:
            return "events" if _CUT_EVENT.search(lines) else "text"
        return None
    if _holds_answer(block[0]):
        return "events"
    rest = lines[block.end() :]
    if not rest:
        return "events" if final else None
    if rest.startswith(_FIELDS):
        return "events"
    return None if not final and any(f.startswith(rest) for f in _FIELDS) else "text"


def _holds_answer(block: bytes) -> bool:
    """Whether an event's data is surely a chunk, so that nothing more need be awaited."""
    for line in block.split(b"\n"):
        if line.startswith(b"data:"):
            try:
                return formats.is_answer(formats.load(line[5:]), sure=True)
            except ValueError:
                return False
    return False
