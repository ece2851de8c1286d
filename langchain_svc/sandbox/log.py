"""The log of requests and answers, for tests, the terminal and the inspector.

The requests that `Sandbox.requests` returns are stored whole. The latest exchanges are stored with
their answers, in bounded memory: their number is limited, and the bytes of each and of all.
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

from .faults import Fault
from .wire import JSON_TYPE, ChatAnswer, HttpRequest

_SECRET_HEADERS = frozenset(
    {"authorization", "x-api-key", "cookie", "proxy-authorization"}
)
_SCHEMES = frozenset({"bearer", "basic", "digest"})


@dataclass(frozen=True)
class Received:
    """One request as it arrived, and how far its answer was when this snapshot was taken.

    Attributes:
        method: HTTP method.
        path: Path without the query.
        query: Query without the question mark.
        headers: Names in lower case; keys and cookies masked.
        at: Arrival, by the sandbox's clock.
        client_port: The client's port: equal ports mean one connection.
        body: Body as received.
        status: Status of the answer; None when there was no answer (yet).
        unknown_fields: Fields that no document lists, as paths such as `messages[0].name`.
        disconnected: The client left before the answer was complete.
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
    masked = dict(headers)
    for name in _SECRET_HEADERS & headers.keys():
        masked[name] = _mask(headers[name])
    return masked


def _mask(value: str) -> str:
    scheme, space, _ = value.partition(" ")
    if space and scheme.lower() in _SCHEMES:
        return f"{scheme} ***"
    return "***"


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
        fault: The fault that was applied, if any.
        tokens: Of the prompt and of the completion, when they are known.
        upstream: The model behind the sandbox that answered, or was asked to.
        note: What the upstream said about its failure.
        pieces: Seconds after the arrival of the request, and the bytes that were sent then.
        headers: Of the answer.
        size: Bytes sent in all; those beyond the limits are not in `pieces`.
        stored: Bytes in `pieces`.
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
    stored: int = 0
    seconds: float | None = None
    answer: ChatAnswer | None = None
    _began: float = field(default_factory=time.monotonic)

    @property
    def delivered_text(self) -> str:
        """The text of a chat's answer as far as it was sent; "" where a fault replaced it."""
        if self.answer is None:
            return ""
        if self.fault is not None and self.fault.body is not None:
            return ""
        if self.headers.get("content-type") == JSON_TYPE:
            # A whole answer is sent at once; with a fault it counts as not delivered.
            if self.fault is None and self.pieces:
                return self.answer.text
            return ""
        tokens = self.answer.pieces
        if isinstance(tokens, tuple) and tokens:
            return "".join(tokens[: len(self.pieces)])
        return self.answer.text

    def update(self, **changes: Any) -> None:
        self.received = replace(self.received, **changes)

    def record_sent(self, data: bytes) -> None:
        """Record bytes that are being sent."""
        self.size += len(data)
        data = data[: _MOST_SENT - self.stored]
        if data and len(self.pieces) < _MOST_PIECES:
            seconds = time.monotonic() - self._began
            self.stored += len(data)
            self.pieces.append((seconds, data))

    def close(self) -> None:
        """Record that it is over, and drop the parts of the answer that nothing shows."""
        self.seconds = time.monotonic() - self._began
        if self.answer is not None:
            text = self.delivered_text[:_MOST_SENT]
            self.answer = ChatAnswer(self.answer.model, text)

    def drop_answer(self) -> None:
        """Keep the request alone, which `Sandbox.requests` may return for longer."""
        self.pieces = []
        self.headers = {}
        self.answer = None


class Log:
    """The requests that the user wants to see, and the latest exchanges; safe from any thread.

    `listener` is called in the sandbox's loop with each exchange at its end.
    """

    def __init__(self, keep: int | None) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._recorded: deque[ServedExchange] = deque(maxlen=keep)
        self._latest: deque[ServedExchange] = deque()
        self.listener: Callable[[ServedExchange], object] | None = None

    def open_exchange(self, request: HttpRequest, *, at: float) -> ServedExchange:
        """Record a request whose body is yet to come."""
        fields = {**vars(request), "headers": _masked(request.headers), "at": at}
        exchange = ServedExchange(next(self._numbers), Received(**fields))
        with self._lock:
            self._recorded.append(exchange)
            self._latest.append(exchange)
        return exchange

    def close_exchange(self, exchange: ServedExchange) -> None:
        """Record that an exchange is over, and drop the oldest ones beyond the limits."""
        exchange.close()
        if self.listener is not None:
            self.listener(exchange)
        with self._lock:
            size = sum(map(_stored_bytes, self._latest))
            while self._latest and (
                size > _MOST_BYTES or len(self._latest) > _MOST_EXCHANGES
            ):
                oldest = self._latest.popleft()
                size -= _stored_bytes(oldest)
                oldest.drop_answer()

    def clear(self) -> None:
        with self._lock:
            self._recorded.clear()
            self._latest.clear()

    def received(self) -> list[Received]:
        with self._lock:
            return [exchange.received for exchange in self._recorded]

    def latest(self) -> list[ServedExchange]:
        with self._lock:
            return list(self._latest)


def _stored_bytes(exchange: ServedExchange) -> int:
    return exchange.stored + len(exchange.received.body)


_LONGEST_PATH = 60
_LONGEST_NOTE = 200


def log_line(exchange: ServedExchange) -> str:
    """An exchange that is over, as a terminal shows it."""
    request = exchange.received
    at = time.strftime("%H:%M:%S", time.localtime(request.at))
    path = f"{_printable(request.path, _LONGEST_PATH):<24}"
    status = request.status or "---"
    millis = f"{1000 * (exchange.seconds or 0):,.0f} ms"
    note = _printable(exchange.note, _LONGEST_NOTE)
    return f"{at}  {request.method:<4} {path}  {status}  {millis:>9}  {note}".rstrip()


def _printable(text: str, longest: int) -> str:
    """The text, cut, with a visible sign for each character that a terminal would obey."""
    if len(text) > longest:
        text = text[: longest - 1] + "…"
    hidden = {character for character in text if not character.isprintable()}
    return text.translate(dict.fromkeys(map(ord, hidden), "\N{REPLACEMENT CHARACTER}"))
