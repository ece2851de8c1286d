"""The latest requests with what was sent for them and when: what terminal and inspector show.

Memory is bounded, whatever arrives: so many exchanges, so many bytes of each, so many of all.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from langchain_svc.sandbox.faults import Fault
from langchain_svc.sandbox.log import Entry, Received

_MOST_EXCHANGES = 200
_MOST_BODY = 2_000_000  # bytes of a request
_MOST_SENT = 1_000_000  # bytes of an answer
_MOST_PIECES = 5_000
_MOST_BYTES = 48_000_000  # of all exchanges


@dataclass(eq=False)
class Exchange:
    """One request, and its answer as far as it has been sent.

    Attributes:
        number: Counts from 1.
        entry: The request, in the log.
        fault: What was made to go wrong, if anything.
        tokens: Of the prompt and of the completion, when they are known.
        upstream: The model behind the sandbox that answered, or was asked to.
        note: What the upstream said about its failure.
        pieces: Seconds after the arrival of the request, and the bytes that were sent then.
        size: Bytes sent in all; those beyond the limits are not in `pieces`.
        headers: Of the answer.
        seconds: How long the exchange took; None until it is over.
    """

    number: int
    entry: Entry
    fault: Fault | None = None
    tokens: tuple[int, int] | None = None
    upstream: str = ""
    note: str = ""
    pieces: list[tuple[float, bytes]] = field(default_factory=list)
    headers: Mapping[str, str] = field(default_factory=dict)
    size: int = 0
    kept: int = 0
    seconds: float | None = None
    _began: float = field(default_factory=time.monotonic)

    @property
    def received(self) -> Received:
        """The request as it stands now."""
        return self.entry.received

    @property
    def size_kept(self) -> int:
        """Bytes of memory that its bodies take."""
        return self.kept + len(self.received.body)

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
        received = self.received
        # The log may keep the whole entry: it is the user's.
        self.entry = Entry(replace(received, body=received.body[:_MOST_BODY]))


class Exchanges:
    """The latest exchanges; `listener` is called in the sandbox's loop with each at its end."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._latest: deque[Exchange] = deque(maxlen=_MOST_EXCHANGES)
        self.listener: Callable[[Exchange], object] | None = None

    def begin(self, entry: Entry) -> Exchange:
        """Take note of a request whose body is yet to come."""
        exchange = Exchange(next(self._numbers), entry)
        self._latest.append(exchange)
        return exchange

    def end(self, exchange: Exchange) -> None:
        """Take note that an exchange is over."""
        exchange.end()
        if self.listener is not None:
            self.listener(exchange)
        latest = self.latest()
        size = sum(each.size_kept for each in latest)
        for oldest in latest:
            if size <= _MOST_BYTES:
                break
            size -= oldest.size_kept
            self._latest.remove(oldest)

    def clear(self) -> None:
        """Forget all of them."""
        self._latest.clear()

    def latest(self) -> list[Exchange]:
        """Those that are kept, in order of arrival."""
        return list(self._latest)
