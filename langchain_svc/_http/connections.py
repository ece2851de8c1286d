"""Owns connections: a pool for threads, and one for each event loop.

Objects that use one key at one origin by one proxy share their pools, which close when the last
of them is closed or collected. The owner of a pool may end without telling us:

- An event loop. An asynchronous generator that was started on a loop keeps the loop's pools.
  `asyncio.run` closes such generators at its end, and the loop's own hook closes them when their
  owner is collected; either way the generator's `finally` closes the pools on the right loop. A
  loop that was closed by hand, without that courtesy, is noticed at the next use.
- The process. A forked child puts aside what it shares with the parent, unclosed, and begins anew.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Generic, Self, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from pydantic import SecretStr

from .._base.threads import new_lock
from ..config import check_proxy, is_loopback
from ..errors import SvcRequestError
from .deadline import FOREVER, TIMEOUTS, Timeouts
from .http1 import BadAnswerError, Origin
from .library import httpcore, httpx
from .sockets import AsyncConnection, Connection

# -- pools -----------------------------------------------------------------------------------------
# Pools of connections to one host, in the place of httpcore's under httpx's transports.
#
# httpx's transports pass their requests to a pool and wrap what it returns. So everything that
# is put in the place of a transport (recorders of cassettes, tests) sees every request.

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


# -- connections -----------------------------------------------------------------------------------

# The pools that a forked child inherited. Collecting them would close sockets that the parent still
# uses.
_INHERITED: list[object] = []
_T = TypeVar("_T", httpx.HTTPTransport, httpx.AsyncHTTPTransport)


def new_transport(kind: type[_T], pool: type[Pool | AsyncPool], key: PoolKey) -> _T:
    """A transport of httpx's on our connections, or through a proxy on httpx's own."""
    if key.proxy is None:
        transport = kind.__new__(kind)
        transport._pool = pool(_origin(key.url), _connection_limit(key))  # type: ignore[assignment]  # it has all that httpx calls  # noqa: SLF001
        return transport
    context = None
    if key.proxy.startswith("https:"):
        # Without a context httpx checks the proxy against certificates of its own choice.
        context = _tls_context()
    limits = httpx.Limits(max_connections=_connection_limit(key))
    proxy = httpx.Proxy(key.proxy, ssl_context=context)
    return kind(verify=_tls_context(), proxy=proxy, limits=limits)


def _connection_limit(key: PoolKey) -> int:
    """The key's limit, but at most half of the files that the process may open."""
    if sys.platform == "win32":
        return key.most
    import resource  # noqa: PLC0415  # Windows has none

    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files <= 0:  # no limit
        return key.most
    return max(1, min(key.most, files // 2))


def _origin(url: str) -> Origin:
    parts = httpx.URL(url)
    host = parts.raw_host.decode("ascii")
    if parts.scheme == "https":
        return Origin(host, parts.port or 443, _tls_context())
    return Origin(host, parts.port or 80, None)


@lru_cache(maxsize=1)
def _tls_context() -> ssl.SSLContext:
    """One context for the process: loading the certificates takes 40 ms."""
    try:
        context = httpx.create_ssl_context()
    except OSError as error:  # an ssl.SSLError is one
        source = "certifi"
        for variable in ("SSL_CERT_DIR", "SSL_CERT_FILE"):  # the latter wins
            if os.environ.get(variable):
                source = variable
        reason = "none are in it"
        if isinstance(error, FileNotFoundError):
            reason = str(error.strerror)
        raise SvcRequestError(
            f"The certificates that {source} names cannot be read: {reason}. Nothing was sent"
        ) from None
    context.set_alpn_protocols(["http/1.1"])
    context.hostname_checks_common_name = False  # RFC 9110, section 4.3.4
    return context


def proxy_for(url: str, proxy: str | None = None) -> str | None:
    """The proxy to use: the argument, else the environment's, and none for loopback."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if proxy is not None or is_loopback(host):
        return proxy
    if proxy_bypass(parts.netloc):
        return None
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy:
        return None
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    try:
        return check_proxy(proxy)
    except ValueError as error:
        raise SvcRequestError(
            f"The environment's proxy cannot be used: {error}. Fix {parts.scheme.upper()}_PROXY "
            f"or ALL_PROXY, or name the host in NO_PROXY to go without"
        ) from None


@dataclass(frozen=True)
class PoolKey:
    """Where a pool leads, by which proxy, and for whose key."""

    url: str
    proxy: str | None = field(default=None, repr=False)
    api_key: SecretStr | str | None = field(default=None, repr=False)
    most: int = 1024  # requests at one time, for threads and for each event loop


class Connections:
    """One object's share in the pools of its key; for any thread, event loop or process."""

    def __init__(self, key: PoolKey) -> None:
        self.key = key
        self._pools: _Pools | None = None

    def _pools_here(self) -> _Pools:
        """The pools of this process: a forked child makes its own."""
        process = os.getpid()
        pools = self._pools
        if pools is None or pools.process != process:
            key = replace(self.key, proxy=proxy_for(self.key.url, self.key.proxy))
            with _shared_lock:
                pools = _SHARED.get((process, key)) or _Pools(process, key)
                _SHARED[process, key] = pools
                self._pools = pools
        return pools

    @property
    def by_proxy(self) -> bool:
        """Whether the last call went through one."""
        return self._pools is not None and self._pools.key.proxy is not None

    def transport(self) -> httpx.BaseTransport:
        """The pool for blocking calls."""
        return self._pools_here().blocking

    async def async_transport(self) -> httpx.AsyncHTTPTransport:
        """The pool of the running event loop."""
        return await self._pools_here().on_loop()

    def close(self) -> None:
        """Give up this share. The next call takes a new one."""
        self._pools = None

    async def aclose(self) -> None:
        """The same, and wait until the connections of the running event loop are closed."""
        self.close()
        await asyncio.sleep(0)  # in which the event loop begins to close them
        loop = asyncio.get_running_loop()
        closing = [task for task in list(_CLOSING) if task.get_loop() is loop]
        if closing:
            await asyncio.wait(closing)


class _Pools:
    """The pools of a key in one process. They are closed when no object refers to them any more."""

    def __init__(self, process: int, key: PoolKey) -> None:
        self.process = process
        self.key = key
        self.blocking = new_transport(httpx.HTTPTransport, Pool, key)
        self.loops: _Loops = {}
        weakref.finalize(self, _close, process, self.blocking, self.loops)

    async def on_loop(self) -> httpx.AsyncHTTPTransport:
        """The pool of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop in self.loops:
            transport, _ = self.loops[loop]
            return transport
        transport = new_transport(httpx.AsyncHTTPTransport, AsyncPool, self.key)
        keeper = _keep(transport, self.loops)
        self.loops[loop] = (transport, keeper)
        # From here on the loop closes the generator at its end.
        await keeper.__anext__()
        self._close_pools_of_closed_loops()
        return transport

    def _close_pools_of_closed_loops(self) -> None:
        for loop in list(self.loops):
            if loop.is_closed():
                transport, _ = self.loops.pop(loop)
                pool: object = transport._pool  # noqa: SLF001  # `new_transport` put ours there
                if isinstance(pool, AsyncPool):
                    pool.close()


_shared_lock = new_lock()
_SHARED: weakref.WeakValueDictionary[tuple[int, PoolKey], _Pools] = (
    weakref.WeakValueDictionary()
)
_Loops = dict[
    asyncio.AbstractEventLoop,
    tuple[httpx.AsyncHTTPTransport, "AsyncGenerator[None, None]"],
]


def _close(process: int, blocking: httpx.HTTPTransport, loops: _Loops) -> None:
    if process != os.getpid():
        _INHERITED.append((blocking, loops))
        return
    blocking.close()
    while loops:
        loop, (_, keeper) = loops.popitem()
        with suppress(RuntimeError):  # the loop was closed, and closed the keeper
            loop.call_soon_threadsafe(_close_keeper, keeper)


def _close_keeper(keeper: AsyncGenerator[None, None]) -> None:
    task: asyncio.Future[None] = asyncio.ensure_future(keeper.aclose())
    _CLOSING.add(task)  # the loop itself holds tasks only weakly
    task.add_done_callback(_CLOSING.discard)


_CLOSING: set[asyncio.Future[None]] = set()


async def _keep(
    transport: httpx.AsyncHTTPTransport, loops: _Loops
) -> AsyncGenerator[None, None]:
    """Wait on a loop for its end, and close the transport then; see the top."""
    try:
        yield
    finally:
        loops.pop(asyncio.get_running_loop(), None)
        await transport.aclose()
