"""Pools of connections to one host, in the place of httpcore's under httpx's transports.

httpx's transports pass their requests to a pool and wrap what it returns. So everything that is
put in the place of a transport (recorders of cassettes, tests) sees every request.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any, Generic, Self, TypeVar

from .deadline import FOREVER, TIMEOUTS, Timeouts
from .http1 import BadAnswerError, Origin
from .library import httpcore
from .sockets import AsyncConnection, Connection

_MOST_IDLE = 256
_IDLE_SECONDS = 15.0

_C = TypeVar("_C", Connection, AsyncConnection)


class _Translation:
    """The block in which errors are raised as httpcore's, which httpx knows."""

    def __init__(self, timeout: type[Exception], failure: type[Exception]) -> None:
        self._timeout = timeout
        self._failure = failure

    def __enter__(self) -> None: ...

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, BadAnswerError):
            raise httpcore.RemoteProtocolError(str(error)) from None
        if isinstance(error, TimeoutError):
            raise self._timeout(str(error)) from None
        if isinstance(error, OSError):
            raise self._failure(str(error)) from None


_CONNECTING = _Translation(httpcore.ConnectTimeout, httpcore.ConnectError)
_TALKING = _Translation(httpcore.ReadTimeout, httpcore.ReadError)


class _IdleConnections(Generic[_C]):
    """The connections that wait for a request, the latest first."""

    # One place for each request at one time.
    _places: threading.BoundedSemaphore | asyncio.Semaphore

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.closed = False
        self._idle: deque[_C] = deque()

    def _reuse(self) -> _C | None:
        """An idle connection that can carry another request, if there is one."""
        try:
            while True:
                connection = self._idle.pop()
                is_fresh = time.monotonic() - connection.idle_since < _IDLE_SECONDS
                if is_fresh and connection.usable:
                    return connection
                connection.close()
        except IndexError:  # none is left, since another thread takes them, too
            return None

    def give_back(self, connection: _C | None, *, broken: bool = False) -> None:
        """A request is over: its place is free, and its connection may be used again."""
        self._places.release()
        if connection is None:
            return
        if broken or not connection.reusable or len(self._idle) >= _MOST_IDLE:
            connection.close()
            return
        now = time.monotonic()
        connection.idle_since = now
        self._idle.append(connection)
        try:
            while self._idle[0].idle_since < now - _IDLE_SECONDS:
                self._idle.popleft().close()
        except IndexError:  # another thread takes them, too
            pass
        if self.closed:  # after the append: it may be closed in this moment
            self.close()

    def close(self) -> None:
        """Close the idle connections; the others are closed when they are given back."""
        self.closed = True
        with suppress(IndexError):  # another thread takes them, too
            while True:
                self._idle.pop().close()


def _head(request: httpcore.Request) -> bytes:
    lines: list[bytes] = [b"%b %b HTTP/1.1" % (request.method, request.url.target)]
    lines += [b"%b: %b" % (name, value) for name, value in request.headers]
    head = b"\r\n".join((*lines, b"", b""))
    # A header that holds a line break would be read as two headers: that may not happen.
    breaks = len(lines) + 1
    is_one_line_each = head.count(b"\r") == head.count(b"\n") == breaks
    if not is_one_line_each or b"\0" in head:
        raise httpcore.LocalProtocolError(
            "a header of the request has a line break or NUL"
        )
    return head


def _timeouts_of(request: httpcore.Request) -> tuple[Timeouts, float | None]:
    """The timeouts of the exchange, and the seconds to wait for a place in the pool."""
    patience = request.extensions.get("timeout", {}).get("pool")
    return request.extensions.get(TIMEOUTS, Timeouts(FOREVER)), patience


class _Response(Generic[_C]):
    """The part of httpcore's responses that httpx's transports use.

    httpcore's own class would check each header once more. httpx iterates over the body in one of
    two ways: a blocking client with `__iter__`, one on an event loop with `__aiter__`.
    """

    def __init__(
        self, pool: _IdleConnections[_C], connection: _C, timeouts: Timeouts
    ) -> None:
        self.status = connection.response.status
        self.headers = connection.response.headers
        self.extensions = {"http_version": b"HTTP/1.1", "reason_phrase": b""}
        self._pool: _IdleConnections[_C] = pool
        self._connection: _C = connection
        self._timeouts = timeouts
        self._open = True

    @property
    def stream(self) -> Self:
        return self

    def __iter__(self: _Response[Connection]) -> Iterator[bytes]:
        read_body = self._connection.read_body
        timeouts = self._timeouts
        with _TALKING:
            while data := read_body(timeouts):
                yield data

    async def __aiter__(self: _Response[AsyncConnection]) -> AsyncIterator[bytes]:
        read_body = self._connection.read_body
        timeouts = self._timeouts
        with _TALKING:
            while data := await read_body(timeouts):
                yield data

    def close(self) -> None:
        if self._open:
            self._open = False
            self._pool.give_back(self._connection)

    async def aclose(self) -> None:
        self.close()


class Pool(_IdleConnections[Connection]):
    """The connections to one host for threads."""

    _places: threading.BoundedSemaphore

    def __init__(self, origin: Origin, most: int) -> None:
        super().__init__(origin)
        self._places = threading.BoundedSemaphore(most)

    def handle_request(self, request: Any) -> _Response[Connection]:
        """Send a request; httpx calls this."""
        timeouts, patience = _timeouts_of(request)
        if not self._places.acquire(timeout=patience):
            raise httpcore.PoolTimeout
        connection = None
        try:
            connection = self._reuse()
            if connection is None:
                with _CONNECTING:
                    connection = Connection.open(self.origin, timeouts)
            data = _head(request) + b"".join(request.stream)
            with _TALKING:
                connection.send_request(data, timeouts)
        except BaseException:
            self.give_back(connection, broken=True)
            raise
        return _Response(self, connection, timeouts)


class AsyncPool(_IdleConnections[AsyncConnection]):
    """The connections to one host for one event loop."""

    _places: asyncio.Semaphore

    def __init__(self, origin: Origin, most: int) -> None:
        super().__init__(origin)
        self._places = asyncio.Semaphore(most)

    async def handle_async_request(self, request: Any) -> _Response[AsyncConnection]:
        """Send a request; httpx calls this."""
        timeouts, patience = _timeouts_of(request)
        await self._enter(patience)
        connection = None
        try:
            connection = self._reuse()
            if connection is None:
                with _CONNECTING:
                    connection = await AsyncConnection.open(self.origin, timeouts)
            data = _head(request) + b"".join([part async for part in request.stream])
            with _TALKING:
                await connection.send_request(data, timeouts)
        except BaseException:
            self.give_back(connection, broken=True)
            raise
        return _Response(self, connection, timeouts)

    async def _enter(self, seconds: float | None) -> None:
        if not self._places.locked():
            await self._places.acquire()
            return
        # Not asyncio.wait_for, which swallows some cancellations on Python 3.11.
        try:
            async with asyncio.timeout(seconds):
                await self._places.acquire()
        except TimeoutError:
            raise httpcore.PoolTimeout from None

    async def aclose(self) -> None:
        """Close the idle connections; httpx calls this."""
        self.close()
        await asyncio.sleep(0)  # the event loop closes the sockets in its next turn
