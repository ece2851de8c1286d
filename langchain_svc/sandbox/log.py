"""What arrived and what was sent for it and when: for tests, the terminal and the inspector.

The requests that the user wants kept are kept whole. The latest ones are kept with their answers in
bounded memory: so many exchanges, so many bytes of each, so many of all.
"""

import itertools
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from langchain_svc.sandbox.answers import ChatAnswer
from langchain_svc.sandbox.faults import Fault
from langchain_svc.sandbox.wire import JSON_TYPE, HttpRequest

_SECRET_HEADERS = frozenset(
    {"authorization", "x-api-key", "cookie", "proxy-authorization"}
)
_SCHEMES = frozenset({"bearer", "basic", "digest"})


@dataclass(frozen=True)
class Received:
    """One request as it arrived, and what became of it when this snapshot was taken.

    Attributes:
        method: HTTP method.
        path: Path without the query.
        query: Query without the question mark.
        headers: Names in lower case; keys and cookies masked.
        at: Arrival, by the sandbox's clock.
        client_port: The client's port: equal ports mean one connection.
        body: Body as received.
        status: Status that was answered; None when there was no answer (yet).
        unknown_fields: Fields that no document lists, as paths such as `messages[0].name`.
        disconnected: The client went away before the answer was complete.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str] = field(repr=False)
    at: float
    client_port: int
    body: bytes = field(default=b"", repr=False)
    status: int | None = None
    unknown_fields: tuple[str, ...] = ()
    disconnected: bool = False

    @cached_property
    def json(self) -> object:
        """The body parsed as JSON, or None when it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


def _masked(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers with the values of keys and cookies replaced, their scheme kept."""
    return {
        name: _mask(value) if name in _SECRET_HEADERS else value
        for name, value in headers.items()
    }


def _mask(value: str) -> str:
    scheme, space, _ = value.partition(" ")
    return f"{scheme} ***" if space and scheme.lower() in _SCHEMES else "***"


_MOST_EXCHANGES = 200
_MOST_SENT = 1_000_000  # bytes of an answer
_MOST_PIECES = 5_000
_MOST_BYTES = 48_000_000  # of all exchanges


@dataclass(eq=False)
class ServedExchange:
    """One request, and its answer as far as it has been sent.

    Attributes:
        number: Counts from 1.
        received: The request, as it stands now.
        fault: What was made to go wrong, if anything.
        tokens: Of the prompt and of the completion, when they are known.
        upstream: The model behind the sandbox that answered, or was asked to.
        note: What the upstream said about its failure.
        pieces: Seconds after the arrival of the request, and the bytes that were sent then.
        size: Bytes sent in all; those beyond the limits are not in `pieces`.
        headers: Of the answer.
        seconds: How long the exchange took; None until it is over.
        answer: To a chat, before faults.
    """

    number: int
    received: Received
    fault: Fault | None = None
    tokens: tuple[int, int] | None = None
    upstream: str = ""
    note: str = ""
    pieces: list[tuple[float, bytes]] = field(default_factory=list)
    headers: Mapping[str, str] = field(default_factory=dict)
    size: int = 0
    kept: int = 0
    seconds: float | None = None
    answer: ChatAnswer | None = None
    _began: float = field(default_factory=time.monotonic)

    @property
    def said(self) -> str:
        """The text of a chat's answer as far as it was sent; none where a fault took its place."""
        if self.answer is None or (
            self.fault is not None and self.fault.body is not None
        ):
            return ""
        if self.headers.get("content-type") == JSON_TYPE:
            return self.answer.text if self.fault is None and self.pieces else ""
        sent = self.answer.pieces
        return (
            "".join(sent[: len(self.pieces)])
            if isinstance(sent, tuple) and sent
            else self.answer.text
        )

    def update(self, **changes: Any) -> None:
        self.received = replace(self.received, **changes)

    def sent(self, data: bytes) -> None:
        """Take note of bytes that are being sent."""
        self.size += len(data)
        data = data[: _MOST_SENT - self.kept]
        if data and len(self.pieces) < _MOST_PIECES:
            self.kept += len(data)
            self.pieces.append((time.monotonic() - self._began, data))

    def end(self) -> None:
        """Take note that it is over, and keep no more of it than is shown."""
        self.seconds = time.monotonic() - self._began
        if self.answer is not None:
            self.answer = ChatAnswer(self.answer.model, self.said[:_MOST_SENT])

    def forget(self) -> None:
        """Keep the request alone: the log may have it longer, as it is the user's."""
        self.pieces, self.headers, self.answer = [], {}, None


class Log:
    """The requests that the user wants kept, and the latest exchanges; safe from any thread.

    `listener` is called in the sandbox's loop with each exchange at its end.
    """

    def __init__(self, keep: int | None) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._wanted: deque[ServedExchange] = deque(maxlen=keep)
        self._latest: deque[ServedExchange] = deque()
        self.listener: Callable[[ServedExchange], object] | None = None

    def begin(self, request: HttpRequest, *, at: float) -> ServedExchange:
        """Take note of a request whose body is yet to come."""
        known = {**vars(request), "headers": _masked(request.headers), "at": at}
        exchange = ServedExchange(next(self._numbers), Received(**known))
        with self._lock:
            self._wanted.append(exchange)
            self._latest.append(exchange)
        return exchange

    def end(self, exchange: ServedExchange) -> None:
        """Take note that an exchange is over."""
        exchange.end()
        if self.listener is not None:
            self.listener(exchange)
        with self._lock:
            size = sum(each.kept + len(each.received.body) for each in self._latest)
            while self._latest and (
                size > _MOST_BYTES or len(self._latest) > _MOST_EXCHANGES
            ):
                oldest = self._latest.popleft()
                size -= oldest.kept + len(oldest.received.body)
                oldest.forget()

    def clear(self) -> None:
        with self._lock:
            self._wanted.clear()
            self._latest.clear()

    def received(self) -> list[Received]:
        with self._lock:
            return [exchange.received for exchange in self._wanted]

    def latest(self) -> list[ServedExchange]:
        with self._lock:
            return list(self._latest)


_LONGEST_PATH = 60
_LONGEST_NOTE = 200


def in_a_line(exchange: ServedExchange) -> str:
    """An exchange that is over, as a terminal shows it."""
    seen = exchange.received
    at = time.strftime("%H:%M:%S", time.localtime(seen.at))
    millis = f"{1000 * (exchange.seconds or 0):,.0f} ms"
    path = f"{_plain(seen.path, _LONGEST_PATH):<24}"
    note = _plain(exchange.note, _LONGEST_NOTE)
    return f"{at}  {seen.method:<4} {path}  {seen.status or '---'}  {millis:>9}  {note}".rstrip()


def _plain(text: str, longest: int) -> str:
    """Text with nothing in it that a terminal would obey."""
    shown = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in shown)
