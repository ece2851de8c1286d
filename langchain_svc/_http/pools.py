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
from contextlib import contextmanager, suppress
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import anyio
import httpcore

from .deadline import Timeouts
from .http1 import AnswerReader, BadAnswerError
from .proxies import ProxyRefusedError, ProxyRoute
from .sockets import AsyncConnection, Connection

_IDLE, _IDLE_SECONDS = 256, 15.0


class _Reusable(Protocol):
    idle_since: float
    answer: AnswerReader

    @property
    def reusable(self) -> bool: ...

    @property
    def usable(self) -> bool: ...

    def close(self) -> None: ...


_C = TypeVar("_C", bound=_Reusable)


@contextmanager
def _translated(*, connecting: bool = False) -> Generator[None, None, None]:
    """What went wrong as httpcore calls it, so that httpx knows it."""
    try:
        yield
    except TimeoutError:
        raise (httpcore.ConnectTimeout if connecting else httpcore.ReadTimeout) from None
    except ProxyRefusedError as error:
        raise httpcore.ProxyError(str(error)) from None
    except BadAnswerError as error:  # to CONNECT, where nothing else was asked
        raise (httpcore.ProxyError if connecting else httpcore.RemoteProtocolError)(
            str(error)
        ) from None
    except OSError as error:
        raise (httpcore.ConnectError if connecting else httpcore.ReadError)(str(error)) from None


class _Idle(Generic[_C]):
    """The connections that wait for a request, the latest first."""

    def __init__(self, route: ProxyRoute) -> None:
        self.route = route
        self.closed = False
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

    def _put(self, connection: _C) -> None:
        if not connection.reusable or len(self._idle) >= _IDLE:
            connection.close()
            return
        connection.idle_since = time.monotonic()
        self._idle.append(connection)
        oldest = connection.idle_since - _IDLE_SECONDS
        with suppress(IndexError):  # another thread takes them, too
            while self._idle[0].idle_since < oldest:
                self._idle.popleft().close()
        if self.closed:  # after the append: it may be closed in this moment
            self._close_idle()

    def _close_idle(self) -> None:
        with suppress(IndexError):  # another thread takes them, too
            while True:
                self._idle.pop().close()

    def _head(self, request: httpcore.Request) -> bytes:
        target, headers = request.url.target, list(request.headers)
        if self.route.forwards:
            target = self.route.host.origin + target
            if self.route.credentials is not None:
                headers.append((b"Proxy-Authorization", self.route.credentials))
        lines = [b"%b %b HTTP/1.1" % (request.method, target)]
        lines += [b"%b: %b" % header for header in headers]
        head = b"\r\n".join((*lines, b"", b""))
        # One line each: whatever a header was made of, it may not become a second header.
        if not head.count(b"\r") == head.count(b"\n") == len(lines) + 1 or b"\0" in head:
            raise httpcore.LocalProtocolError("a header of the request has a line break or NUL")
        return head


def _timeouts_of(request: httpcore.Request) -> Timeouts:
    given = _timeout(request, "read")
    return given if isinstance(given, Timeouts) else Timeouts(given)


def _timeout(request: httpcore.Request, name: str) -> Any:
    return request.extensions.get("timeout", {}).get(name)


class _Response(NamedTuple):
    """What httpx's transports read of httpcore's, which checks each header once more."""

    status: int
    headers: list[tuple[bytes, bytes]]
    stream: Any
    extensions: dict[str, Any]

    @classmethod
    def of(cls, answer: AnswerReader, body: Any) -> _Response:
        extensions = {"http_version": b"HTTP/1.1", "reason_phrase": b""}
        return cls(answer.status, answer.headers, body, extensions)


class Pool(_Idle[Connection]):
    """For threads."""

    def __init__(self, route: ProxyRoute, most: int) -> None:
        super().__init__(route)
        self._places = threading.BoundedSemaphore(most)

    def handle_request(self, request: httpcore.Request) -> _Response:
        """What httpx asks of a pool."""
        timeouts = _timeouts_of(request)
        if not self._places.acquire(timeout=_timeout(request, "pool")):
            raise httpcore.PoolTimeout
        connection = None
        try:
            connection = self._taken()
            if connection is None:
                with _translated(connecting=True):
                    connection = Connection.open(self.route, timeouts)
            assert not isinstance(request.stream, AsyncIterator)  # noqa: S101
            data = self._head(request) + b"".join(request.stream)  # type: ignore[arg-type]
            with _translated():
                connection.ask(data, timeouts)
        except BaseException:
            self.leave(connection, broken=True)
            raise
        return _Response.of(connection.answer, _Body(self, connection, timeouts))

    def leave(self, connection: Connection | None, *, broken: bool = False) -> None:
        """A request is over."""
        self._places.release()
        if connection is not None:
            connection.close() if broken else self._put(connection)

    def close(self) -> None:
        """Close what is idle; what is in use is closed when it is left."""
        self.closed = True
        self._close_idle()


class _Body:
    """The body of one answer."""

    def __init__(self, pool: Pool, connection: Connection, timeouts: Timeouts) -> None:
        self._pool, self._connection, self._timeouts = pool, connection, timeouts
        self._open = True

    def __iter__(self) -> Iterator[bytes]:
        read, timeouts = self._connection.read, self._timeouts
        with _translated():
            while data := read(timeouts):
                yield data

    def close(self) -> None:
        if self._open:
            self._open = False
            self._pool.leave(self._connection)


class AsyncPool(_Idle[AsyncConnection]):
    """For one event loop."""

    def __init__(self, route: ProxyRoute, most: int) -> None:
        super().__init__(route)
        self._places = asyncio.Semaphore(most)
        self._used: set[AsyncConnection] = set()

    async def handle_async_request(self, request: httpcore.Request) -> _Response:
        """What httpx asks of a pool."""
        timeouts = _timeouts_of(request)
        await self._enter(_timeout(request, "pool"))
        connection = None
        try:
            connection = self._taken()
            if connection is None:
                with _translated(connecting=True):
                    connection = await AsyncConnection.open(self.route, timeouts)
            self._used.add(connection)
            data = self._head(request) + b"".join([part async for part in request.stream])  # type: ignore[union-attr]
            with _translated():
                await connection.ask(data, timeouts)
        except BaseException:
            self.leave(connection, broken=True)
            raise
        return _Response.of(connection.answer, _AsyncBody(self, connection, timeouts))

    async def _enter(self, seconds: float | None) -> None:
        if not self._places.locked():
            await self._places.acquire()
            return
        try:
            # Not asyncio.wait_for, which swallows some cancellations before Python 3.12.
            with anyio.fail_after(seconds):
                await self._places.acquire()
        except TimeoutError:
            raise httpcore.PoolTimeout from None

    def leave(self, connection: AsyncConnection | None, *, broken: bool = False) -> None:
        """A request is over."""
        self._places.release()
        if connection is not None:
            self._used.discard(connection)
            connection.rest()
            connection.close() if broken else self._put(connection)

    async def aclose(self) -> None:
        """Close what is idle; what is in use is closed when it is left."""
        self.closed = True
        self._close_idle()
        await asyncio.sleep(0)  # the event loop closes the sockets in its next turn

    def close_sockets(self) -> None:
        """Where the event loop is gone, and can run nothing any more."""
        self.closed = True
        self._close_idle()
        while self._used:
            self._used.pop().close()


class _AsyncBody:
    """The body of one answer on an event loop."""

    def __init__(self, pool: AsyncPool, connection: AsyncConnection, timeouts: Timeouts) -> None:
        self._pool, self._connection, self._timeouts = pool, connection, timeouts
        self._open = True

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read, timeouts = self._connection.read, self._timeouts
        with _translated():
            while data := await read(timeouts):
                yield data

    async def aclose(self) -> None:
        if self._open:
            self._open = False
            self._pool.leave(self._connection)
