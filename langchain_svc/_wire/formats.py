"""The decoders of the stream formats, each fed with bytes cut anywhere.

Every decoder has `feed(data)` and `finish()`, which return the texts that became complete, and
notes everything else (ids, counts, the end mark, a fault) in one shared `Seen`. None raises: what
arrived before a fault is yielded first.

Theory: server-sent events and newline-delimited JSON are cut into lines, which end at CR, LF or
CRLF only; a line is complete before it is decoded, so a cut inside a character or a number does
no harm. Unfinished lines wait in a list and are joined once, which keeps the cost linear however
small the reads are.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from .chunks import Found, read_object

_BROKEN_UTF8 = "a character of the stream was cut in half or is not UTF-8"
_BROKEN_JSON = "a piece of the stream is malformed JSON"
_UNKNOWN_SHAPE = "the answer is JSON of an unknown shape"
_HALF_EVENT = "the stream ended inside an event"
_SURE_KEYS = frozenset({"choices", "usage", "success", "done", "finish_reason", "error", "tokens"})
_BEGINS_ANSWER = re.compile(
    rb'\A\s*\{\s*"(?:choices|success|usage|object|done)"|'
    rb'"object"\s*:\s*"chat\.completion|"choices"\s*:\s*\[\s*\{'
)
_BEHIND_NAME = len(b"data: ")
_END_EVENTS = frozenset({b"done", b"end", b"complete", b"finish"})


@dataclass
class Seen:
    """What a stream has said so far, apart from its text."""

    model: str | None = None
    id: str | None = None
    created: int | None = None
    finish_reason: str | None = None
    usage: dict[str, int] | None = None
    ended: bool = False  # the format's own end mark has come
    owes_end: bool = False  # the format has an end mark, so ending without it is a break
    fault: str | None = None
    error: Any = None  # an error object that stood in the stream

    def take(self, found: Found) -> str | None:
        """Note everything but the text, which is returned."""
        if found.error is not None:
            self.error = found.error
            self.fault = "the stream carried an error"
            return None
        self.model = found.model or self.model
        self.id = found.id or self.id
        self.created = found.created or self.created
        self.finish_reason = found.finish_reason or self.finish_reason
        self.usage = found.usage or self.usage  # running totals: the last one counts
        self.owes_end = self.owes_end or found.completion
        self.ended = self.ended or found.whole or found.last
        return found.text


def load(data: bytes) -> Any:
    """The JSON value in `data`; ValueError when there is none."""
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

    def feed(self, data: bytes) -> list[bytes]:
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
        self._parts = [rest] if rest else []
        return lines

    @property
    def begun(self) -> bool:
        """Whether a line has begun, or its end may not be over."""
        return bool(self._parts) or self._after_cr

    def rest(self) -> bytes:
        """The unfinished line."""
        data = b"".join(self._parts)
        self._parts = []
        return data


class Text:
    """Raw text: every byte is content."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._decode = codecs.getincrementaldecoder("utf-8")()

    def feed(self, data: bytes) -> list[str]:
        return self._text(data, final=False)

    def finish(self) -> list[str]:
        return self._text(b"", final=True)

    def _text(self, data: bytes, *, final: bool) -> list[str]:
        try:
            text = self._decode.decode(data, final)
        except UnicodeDecodeError as error:
            self._seen.fault = _BROKEN_UTF8
            # The intact text before the broken byte has arrived and is owed to the caller.
            text = error.object[: error.start].decode("utf-8", "ignore")
        return [text] if text else []


class Events:
    """Server-sent events, with JSON chunks or plain text as their data."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._lines = Lines()
        self._data: list[bytes] = []
        self._event = b""
        self._plain = False  # the first piece was text: later ones are too

    def feed(self, data: bytes) -> list[str]:
        # One whole event a read is how a live stream comes.
        if data.endswith(b"}\n\n") and data.find(b"\n") == len(data) - 2 and self._is_next(data):
            text = quick_text(data[_BEHIND_NAME:])
            if text is not None:
                return [text] if text else []
        texts: list[str] = []
        for line in self._lines.feed(data):
            if line:
                self._field(line)
            elif self._data or self._event:
                self._dispatch(texts)
                if self._seen.ended or self._seen.fault:
                    break
        return texts

    def _is_next(self, data: bytes) -> bool:
        """Whether the data is the next event of a stream of chunks."""
        between = not (self._data or self._event or self._lines.begun)
        return between and self._seen.owes_end and data.startswith(b"data: {") and b"\r" not in data

    def finish(self) -> list[str]:
        """Takes a last event whose blank line is missing, if it is whole."""
        texts: list[str] = []
        rest = self._lines.rest()
        if rest:
            self._field(rest)
        if not self._data:
            return texts
        if not self._plain or self._data == [b"[DONE]"]:
            self._dispatch(texts)
        if self._plain and not self._seen.ended:
            self._seen.fault = _HALF_EVENT  # nothing tells a whole piece from a cut one
            return []
        if self._seen.fault == _BROKEN_JSON:
            self._seen.fault = _HALF_EVENT
        return texts

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value

    def _dispatch(self, texts: list[str]) -> None:
        lines, event = self._data, self._event
        self._data, self._event = [], b""
        data = lines[0] if len(lines) == 1 else b"\n".join(lines)
        if data == b"[DONE]" or (event in _END_EVENTS and not data.startswith(b"{")):
            self._seen.ended = True
        elif event == b"error":
            self._seen.fault = "the stream carried an error"
            self._seen.error = _error_value(data)
        elif lines:
            self._read(data, lines, texts)

    def _read(self, data: bytes, lines: list[bytes], texts: list[str]) -> None:
        text = quick_text(data) if self._seen.owes_end else None
        if text is None:
            found = _find(data)
            if found is not None:
                text = self._seen.take(found)
            elif len(lines) > 1 and self._seen.owes_end:
                for line in lines:  # a server that sets no blank line between its events
                    self._data = [line]
                    self._dispatch(texts)
                return
            else:
                text = self._unplaced(data)
        if text:
            texts.append(text)

    def _unplaced(self, data: bytes) -> str | None:
        """Data that is not a chunk: text of a plain stream, or damage in a stream of chunks."""
        if self._seen.owes_end or b'"choices"' in data:
            self._seen.fault = _BROKEN_JSON
            return None
        if not self._plain and _is_filled_object(data):
            self._seen.fault = _UNKNOWN_SHAPE
            return None
        self._plain = True
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            self._seen.fault = _BROKEN_UTF8
            return None


class Objects:
    """JSON objects: one a line, or one over the whole body."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._lines = Lines()
        self._held: list[bytes] = []  # lines of an object that is written over several
        self._any = False

    def feed(self, data: bytes) -> list[str]:
        texts: list[str] = []
        for line in self._lines.feed(data):
            if line.strip() and not self._seen.ended:
                self._line(line, texts)
            if self._seen.fault:
                break
        return texts

    def finish(self) -> list[str]:
        texts: list[str] = []
        rest = self._lines.rest()
        if rest.strip():
            self._held.append(rest)
        if self._held and not self._seen.ended:
            self._value(b"\n".join(self._held), texts, broken=_BROKEN_JSON)
            if self._seen.fault == _BROKEN_JSON:
                self._seen.fault = _HALF_EVENT
        return texts

    def _line(self, line: bytes, texts: list[str]) -> None:
        if self._held:
            self._held.append(line)
        elif self._any:
            self._value(line, texts, broken=_BROKEN_JSON)
        else:
            try:
                load(line)
            except ValueError:
                self._held.append(line)  # it may be the first line of one large object
            else:
                self._value(line, texts, broken=_BROKEN_JSON)

    def _value(self, data: bytes, texts: list[str], *, broken: str) -> None:
        if data.strip() == b"[DONE]":
            self._seen.ended = True
            return
        try:
            value = load(data)
        except ValueError:
            self._seen.fault = broken
            return
        self._any = True
        for item in value if isinstance(value, list) else [value]:
            self._item(item, texts)

    def _item(self, item: Any, texts: list[str]) -> None:
        found = read_object(item) if isinstance(item, dict) else None
        if isinstance(item, str):
            found = Found(text=item, whole=True)
        if found is None:
            self._seen.fault = _UNKNOWN_SHAPE
            return
        if isinstance(item, dict) and "done" in item:
            self._seen.owes_end = True
        text = self._seen.take(found)
        if text:
            texts.append(text)


class Either:
    """A body that may be one large answer object or text: only its end can tell."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._parts: list[bytes] = []

    def feed(self, data: bytes) -> list[str]:
        self._parts.append(data)
        return []

    def finish(self) -> list[str]:
        body = b"".join(self._parts)
        try:
            whole = is_answer(load(body), sure=True)
        except ValueError:
            whole = begins_answer(body)
        decoder = Objects(self._seen) if whole else Text(self._seen)
        return decoder.feed(body) + decoder.finish()


def is_answer(value: Any, *, sure: bool) -> bool:
    """Whether a JSON value is part of an answer; `sure` asks for keys that only those have."""
    if not isinstance(value, dict) or read_object(value) is None:
        return False
    return not sure or bool(_SURE_KEYS & value.keys())


def begins_answer(data: bytes) -> bool:
    """Whether broken JSON is surely the beginning of an answer, and not a text of the model."""
    return bool(_BEGINS_ANSWER.search(data))


def quick_text(data: bytes) -> str | None:
    """The text of an ordinary completion chunk; None for any other, which the slow way reads.

    Nearly every event of a stream is one of these, and this takes a fifth of the time.
    """
    try:
        chunk = from_json(data)
        (choice,) = chunk["choices"]
        text = choice["delta"]["content"]
        if choice["finish_reason"] is None and not choice["index"] and not chunk.get("usage"):
            return text if type(text) is str else None
    except (ValueError, KeyError, TypeError):
        pass
    return None


def _find(data: bytes) -> Found | None:
    if data[:1] not in (b"{", b" "):
        return None
    try:
        value = load(data)
    except ValueError:
        return None
    return read_object(value) if isinstance(value, dict) else None


def _is_filled_object(data: bytes) -> bool:
    """Whether data is a JSON object with something in it, which does not begin a plain stream."""
    try:
        value = load(data)
    except ValueError:
        return False
    return isinstance(value, dict) and bool(value)


def _error_value(data: bytes) -> Any:
    try:
        value = load(data)
    except ValueError:
        value = data.decode("utf-8", "replace")
    return value.get("error", value) if isinstance(value, Mapping) else value


def join_surrogates(texts: Iterable[str], held: str) -> tuple[list[str], str]:
    """Joins surrogate halves that were cut apart; a high half at the end is held back."""
    text = held + "".join(texts)
    held = ""
    if text and "\ud800" <= text[-1] <= "\udbff":
        text, held = text[:-1], text[-1]
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return ([text] if text else []), held
