"""Pools of connections to one host, in the place of httpcore's under httpx's transports.

httpx gives them its requests and makes its responses of what they return, so that whatever stands
at httpx's transports (recorders of cassettes, tests) sees every request.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, Generic, TypeVar

import anyio
import httpcore

from .base import Origin
from .deadline import FOREVER, TIMEOUTS, Timeouts
from .http1 import BadAnswerError
from .sockets import AsyncConnection, Connection

_IDLE, _IDLE_SECONDS = 256, 15.0

_C = TypeVar("_C", Connection, AsyncConnection)


@contextmanager
def _translated(*, connecting: bool = False) -> Generator[None, None, None]:
    """What went wrong, as httpcore calls it, so that httpx knows it."""
    try:
        yield
    except BadAnswerError as error:
        raise httpcore.RemoteProtocolError(str(error)) from None
    except TimeoutError as error:
        kind = httpcore.ConnectTimeout if connecting else httpcore.ReadTimeout
        raise kind(str(error)) from None
    except OSError as error:
        raise (httpcore.ConnectError if connecting else httpcore.ReadError)(
            str(error)
        ) from None


class _Idle(Generic[_C]):
    """The connections that wait for a request, the latest first."""

    def __init__(self, origin: Origin, places: Any) -> None:
        self.origin = origin
        self.closed = False
        self._places = places  # how many requests there may be at one time
        self._idle: deque[_C] = deque()

    def _taken(self) -> _C | None:
        """One that can be used again."""
        with suppress(IndexError):  # another thread takes them, too
            while True:
                connection = self._idle.pop()
                fresh = time.monotonic() - connection.idle_since < _IDLE_SECONDS
                if fresh and connection.usable:
                    return connection
                connection.close()
        return None

    def leave(self, connection: _C | None, *, broken: bool = False) -> None:
        """A request is over."""
        self._places.release()
        if connection is None:
            return
        if broken or not connection.reusable or len(self._idle) >= _IDLE:
            connection.close()
            return
        now = connection.idle_since = time.monotonic()
        self._idle.append(connection)
        with suppress(IndexError):  # another thread takes them, too
            while self._idle[0].idle_since < now - _IDLE_SECONDS:
                self._idle.popleft().close()
        if self.closed:  # after the append: it may be closed in this moment
            self.close()

    def close(self) -> None:
        """Close the connections that are not in use; the others are closed when they are left."""
        self.closed = True
        with suppress(IndexError):  # another thread takes them, too
            while True:
                self._idle.pop().close()


def _head(request: httpcore.Request) -> bytes:
    lines: list[bytes] = [b"%b %b HTTP/1.1" % (request.method, request.url.target)]
    lines += [b"%b: %b" % (name, value) for name, value in request.headers]
    head = b"\r\n".join((*lines, b"", b""))
    # One line each: whatever a header was made of, it may not become a second header.
    if not head.count(b"\r") == head.count(b"\n") == len(lines) + 1 or b"\0" in head:
        raise httpcore.LocalProtocolError(
            "a header of the request has a line break or NUL"
        )
    return head


def _timeouts_of(request: httpcore.Request) -> tuple[Timeouts, float | None]:
    """Those of the exchange, and the seconds to wait for a place."""
    pool = request.extensions.get("timeout", {}).get("pool")
    return request.extensions.get(TIMEOUTS, Timeouts(FOREVER)), pool


class _Answer:
    """What httpx's transports read of httpcore's answers, which check each header once more.

    Its body has two halves, of which httpx uses the one that fits.
    """

    def __init__(
        self, pool: Pool | AsyncPool, connection: Any, timeouts: Timeouts
    ) -> None:
        self.status, self.headers = connection.answer.status, connection.answer.headers
        self.extensions = {"http_version": b"HTTP/1.1", "reason_phrase": b""}
        self._pool, self._connection, self._timeouts = pool, connection, timeouts
        self._open = True

    @property
    def stream(self) -> _Answer:
        return self

    def __iter__(self) -> Iterator[bytes]:
        read, timeouts = self._connection.read, self._timeouts
        with _translated():
            while data := read(timeouts):
                yield data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read, timeouts = self._connection.read, self._timeouts
        with _translated():
            while data := await read(timeouts):
                yield data

    def close(self) -> None:
        if self._open:
            self._open = False
            self._pool.leave(self._connection)

    async def aclose(self) -> None:
        self.close()


class Pool(_Idle[Connection]):
    """For threads."""

    def __init__(self, origin: Origin, most: int) -> None:
        super().__init__(origin, threading.BoundedSemaphore(most))

    def handle_request(self, request: Any) -> _Answer:
        """What httpx asks of a pool."""
        timeouts, patience = _timeouts_of(request)
        if not self._places.acquire(timeout=patience):
            raise httpcore.PoolTimeout
        connection = None
        try:
            connection = self._taken()
            if connection is None:
                with _translated(connecting=True):
                    connection = Connection.open(self.origin, timeouts)
            data = _head(request) + b"".join(request.stream)
            with _translated():
                connection.ask(data, timeouts)
        except BaseException:
            self.leave(connection, broken=True)
            raise
        return _Answer(self, connection, timeouts)


class AsyncPool(_Idle[AsyncConnection]):
    """For one event loop."""

    def __init__(self, origin: Origin, most: int) -> None:
        super().__init__(origin, asyncio.Semaphore(most))

    async def handle_async_request(self, request: Any) -> _Answer:
        """What httpx asks of a pool."""
        timeouts, patience = _timeouts_of(request)
        await self._enter(patience)
        connection = None
        try:
            connection = self._taken()
            if connection is None:
                with _translated(connecting=True):
                    connection = await AsyncConnection.open(self.origin, timeouts)
            data = _head(request) + b"".join([part async for part in request.stream])
            with _translated():
                await connection.ask(data, timeouts)
        except BaseException:
            self.leave(connection, broken=True)
            raise
        return _Answer(self, connection, timeouts)

    async def _enter(self, seconds: float | None) -> None:
        # Not asyncio.wait_for, which swallows some cancellations before Python 3.12.
        try:
            with anyio.fail_after(seconds) if self._places.locked() else nullcontext():
                await self._places.acquire()
        except TimeoutError:
            raise httpcore.PoolTimeout from None

    async def aclose(self) -> None:
        """What httpx asks of a pool."""
        self.close()
        await asyncio.sleep(0)  # the event loop closes the sockets in its next turn
