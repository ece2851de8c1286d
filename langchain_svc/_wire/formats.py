"""The decoders of the stream formats, each fed with bytes cut anywhere.

Every decoder has `feed(data)` and `finish()`, which return the texts that became complete, and
notes everything else in one shared `Seen`. None raises: what arrived before a fault is yielded
first. Unfinished lines wait in a list and are joined once, which keeps the cost linear however
small the reads are.
"""

from __future__ import annotations

import codecs
import json
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from .chunks import About, Found, read_object

_BROKEN_UTF8 = "a character of the stream was cut in half or is not UTF-8"
_BROKEN_JSON = "a piece of the stream is malformed JSON"
_UNKNOWN_SHAPE = "the answer is JSON of an unknown shape"
_HALF_EVENT = "the stream ended inside an event"
_SURE_KEYS = frozenset(
    {"choices", "usage", "success", "done", "finish_reason", "error", "tokens"}
)
_BEHIND_NAME = len(b"data: ")
_END_EVENTS = frozenset({b"done", b"end", b"complete", b"finish"})


@dataclass(kw_only=True)
class Seen(About):
    """What a stream has said so far, apart from its text."""

    ended: bool = False  # the format's own end mark has come
    owes_end: bool = (
        False  # the format has an end mark, so ending without it is a break
    )
    fault: str | None = None
    error: Any = None  # an error object that stood in the stream

    def take(self, found: Found) -> str | None:
        """Note everything but the text, which is returned."""
        if found.error is not None:
            self.error = found.error
            self.fault = "the stream carried an error"
            return None
        vars(self).update(found.said())  # of running totals the last ones stay
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
        if (
            data.endswith(b"}\n\n")
            and data.find(b"\n") == len(data) - 2
            and self._is_next(data)
        ):
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
        return (
            between
            and self._seen.owes_end
            and data.startswith(b"data: {")
            and b"\r" not in data
        )

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
            error = _object(data)
            said = (
                error.get("error", error) if error else data.decode("utf-8", "replace")
            )
            self._seen.take(Found(error=said))
        elif lines:
            self._read(data, lines, texts)

    def _read(self, data: bytes, lines: list[bytes], texts: list[str]) -> None:
        text = quick_text(data) if self._seen.owes_end else None
        if text is None:
            value = _object(data)
            found = read_object(value) if value else None
            if found is not None:
                text = self._seen.take(found)
            elif self._seen.owes_end or b'"choices"' in data:
                self._seen.fault = _BROKEN_JSON
            elif value and not self._plain:
                self._seen.fault = _UNKNOWN_SHAPE
            else:
                text = self._plain_text(data)
        if text:
            texts.append(text)

    def _plain_text(self, data: bytes) -> str | None:
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
        if (
            self._held
            and not self._seen.ended
            and not self._value(b"\n".join(self._held), texts)
        ):
            self._seen.fault = _HALF_EVENT
        return texts

    def _line(self, line: bytes, texts: list[str]) -> None:
        if self._held or not self._value(line, texts):
            self._held.append(line)  # it may be the first line of one large object
            if self._any:
                self._seen.fault = _BROKEN_JSON

    def _value(self, data: bytes, texts: list[str]) -> bool:
        """Reads one JSON value; says whether it is one."""
        if data.strip() == b"[DONE]":
            self._seen.ended = True
            return True
        try:
            value = load(data)
        except ValueError:
            return False
        self._any = True
        found = read_object(value) if isinstance(value, dict) else None
        if found is None:
            self._seen.fault = _UNKNOWN_SHAPE
            return True
        self._seen.owes_end = self._seen.owes_end or "done" in value
        text = self._seen.take(found)
        if text:
            texts.append(text)
        return True


def is_answer(data: bytes) -> bool | None:
    """Whether JSON is surely part of an answer, and not a text of the model; None if it is none."""
    try:
        value = load(data)
    except ValueError:
        return None
    surely = isinstance(value, dict) and bool(_SURE_KEYS & value.keys())
    return surely and read_object(value) is not None


def quick_text(data: bytes) -> str | None:
    """The text of an ordinary completion chunk; None for any other, which the slow way reads.

    Nearly every event of a stream is one of these, and this takes a fifth of the time.
    """
    try:
        chunk = from_json(data)
        (choice,) = chunk["choices"]
        text = choice["delta"]["content"]
        if (
            choice["finish_reason"] is None
            and not choice["index"]
            and not chunk.get("usage")
        ):
            return text if type(text) is str else None
    except (ValueError, KeyError, TypeError):
        pass
    return None


def _object(data: bytes) -> dict[str, Any] | None:
    """The JSON object in an event's data; None where it holds something else."""
    try:
        value = load(data) if data[:1] in (b"{", b" ") else None
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
