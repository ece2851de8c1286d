"""One connection each: blocking on a socket, and on an event loop. Both keep to a `Timeouts`.

They share everything but the waiting: `Opening` says what goes before the first request, `Tls` what
the bytes are on the network, `AnswerReader` what they mean.
"""

from __future__ import annotations

import asyncio
import math
import os
import select
import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from itertools import zip_longest
from typing import Any

import anyio

from .._threads import LOOK_UPS
from .deadline import Timeouts
from .http1 import AnswerReader
from .proxies import Opening, ProxyRoute, decrypted, encrypted
from .tls import Tls

_READ_BYTES = 64 * 1024
_MOST_UNREAD = 256 * 1024  # bytes; then the other side has to wait
_HEAD_START = 0.25  # seconds that an address gets before the next one is tried beside it


def _left(timeouts: Timeouts) -> float | None:
    wait = timeouts.left()
    if wait is not None and wait <= 0:
        raise TimeoutError
    return wait


class _Line:
    """What both kinds of connections are."""

    def __init__(self) -> None:
        self.answer = AnswerReader()
        self.idle_since = 0.0
        self._layers: list[Tls] = []
        self._unsent = b""

    def _opened(self, opening: Opening) -> None:
        self._layers, self._unsent = opening.layers, opening.unsent

    def _outgoing(self, data: bytes) -> bytes:
        data, self._unsent = self._unsent + encrypted(self._layers, data), b""
        return data

    @property
    def _between(self) -> bool:
        """Whether the answer ended as one after which another may come, and nothing behind it."""
        return self.answer.reusable and all(layer.whole for layer in self._layers)

    @property
    def _closed(self) -> bool:
        """Whether TLS says that nothing follows."""
        return bool(self._layers) and self._layers[-1].closed

    @property
    def _cut(self) -> bool:
        """Whether an end counts for nothing, since TLS announces one (RFC 9112, section 9.8)."""
        return bool(self._layers) and not self._closed


class Connection(_Line):
    """A connection for threads, of which one uses it at a time."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self._socket = sock
        self._wait: float | None = -1.0
        self._first = b""

    @classmethod
    def open(cls, route: ProxyRoute, timeouts: Timeouts) -> Connection:
        """A connection that is ready for requests."""
        sock = _connected(route.first.host, route.first.port, timeouts)
        self = cls(sock)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            opening = Opening(route)
            steps = opening.steps()
            going = next(steps, None)
            while going is not None:
                self._send(going, timeouts)
                going = _next(steps, self._receive(timeouts))
            self._opened(opening)
        except BaseException:
            sock.close()
            raise
        return self

    def ask(self, request: bytes, timeouts: Timeouts) -> None:
        """Send a request and read as far as the head of its answer."""
        self.answer.begin()
        with suppress(ConnectionError):  # the answer may say why
            self._send(self._outgoing(request), timeouts)
        if self._layers:  # something may have come behind the handshake
            self._first = self.answer.feed(decrypted(self._layers, b""))
        while not self.answer.has_head:
            self.answer.check()
            self._first = self._more(timeouts)

    def read(self, timeouts: Timeouts) -> bytes:
        """The next bytes of the body; none at its end."""
        data, self._first = self._first, b""
        while not data and not self.answer.done:
            self.answer.check()
            data = self._more(timeouts)
        return data

    def _more(self, timeouts: Timeouts) -> bytes:
        data = self._receive(timeouts)
        if not data:
            self.answer.end(cut=self._cut)
            return b""
        if not self._layers:
            return self.answer.feed(data)
        body = self.answer.feed(decrypted(self._layers, data))
        if self._closed:
            self.answer.end()
        elif owed := encrypted(self._layers, b""):
            self._send(owed, timeouts)
        return body

    def _receive(self, timeouts: Timeouts) -> bytes:
        self._within(timeouts)
        return self._socket.recv(_READ_BYTES)

    def _send(self, data: bytes, timeouts: Timeouts) -> None:
        view = memoryview(data)
        while view:  # not sendall: each part may take as long as the timeouts says
            self._within(timeouts)
            view = view[self._socket.send(view) :]

    def _within(self, timeouts: Timeouts) -> None:
        wait = _left(timeouts)
        if wait != self._wait:  # a system call saved: mostly it stays the same
            self._socket.settimeout(wait)
            self._wait = wait

    @property
    def reusable(self) -> bool:
        """Whether the answer ended as one after which another may come."""
        return self._between

    @property
    def usable(self) -> bool:
        """Whether another request may be sent: nothing came, not even the end."""
        return self.reusable and not _readable(self._socket)

    def close(self) -> None:
        """Close it, whatever it is doing."""
        self._socket.close()


def _next(steps: Any, data: bytes) -> bytes | None:
    if not data:
        raise ConnectionResetError("the other side closed the connection")
    try:
        going: bytes = steps.send(data)
    except StopIteration:
        return None
    return going


def _readable(sock: Any) -> bool:
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([sock], [], [], 0)[0])
    poll = select.poll()  # a descriptor above 1,023 is more than select takes
    poll.register(sock.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _connected(host: str, port: int, timeouts: Timeouts) -> socket.socket:
    """A socket to the first of a host's addresses that answers, each with a head start."""
    lost: OSError = OSError("the host has no address")
    end = time.monotonic() + (_left(timeouts) or math.inf)
    trying: dict[socket.socket, None] = {}
    addresses = _addresses(host, port, timeouts)
    try:
        while True:
            found = next(addresses, None)
            if found is not None:
                try:
                    trying[_connecting(*found)] = None
                except OSError as error:  # also of a system without IPv6
                    lost = error
                    continue
            elif not trying:
                raise lost
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError
            for sock in _writable(list(trying), left if found is None else min(_HEAD_START, left)):
                code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                del trying[sock]
                if not code:
                    return sock
                lost = OSError(code, os.strerror(code))
                sock.close()
    finally:
        for sock in trying:
            sock.close()


def _connecting(family: int, address: Any) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)  # noqa: FBT003
        with suppress(BlockingIOError):
            sock.connect(address)
    except BaseException:
        sock.close()
        raise
    return sock


def _writable(socks: list[socket.socket], wait: float) -> list[socket.socket]:
    if not hasattr(select, "poll"):
        _, ready, failed = select.select([], socks, socks, None if wait == math.inf else wait)
        return [*dict.fromkeys([*ready, *failed])]
    poll = select.poll()
    by_number = {sock.fileno(): sock for sock in socks}
    for number in by_number:
        poll.register(number, select.POLLOUT)
    return [by_number[number] for number, _ in poll.poll(None if wait == math.inf else 1000 * wait)]


def _addresses(host: str, port: int, timeouts: Timeouts) -> Iterator[tuple[int, Any]]:
    """The addresses of a host, by turns of both families."""
    literal = _literal(host, port)
    if literal is not None:
        return iter([literal])
    try:
        return _by_turns(_looked_up(host, port).result(_left(timeouts)))
    except FutureTimeoutError:  # before Python 3.11 it is another than the built-in one
        raise TimeoutError from None


def _looked_up(host: str, port: int) -> Future[list[Any]]:
    """What the resolver says, which knows no timeout: whoever asks meanwhile waits for the same."""
    look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    return LOOK_UPS.share((host, port), look_up)


def _literal(host: str, port: int) -> tuple[int, Any] | None:
    """The address that a host is, unless it is a name."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    return family, (host, port)


def _by_turns(infos: list[Any]) -> Iterator[tuple[int, Any]]:
    """Addresses of both families by turns, in the resolver's order."""
    families: dict[int, list[Any]] = {}
    for family, _, _, _, address in infos:
        families.setdefault(family, []).append((family, address))
    for turn in zip_longest(*families.values()):
        yield from (one for one in turn if one is not None)


async def _connected_on_loop(host: str, port: int) -> socket.socket:
    """The async version of `_connected`. asyncio's own loses sockets when it is cancelled."""
    loop = asyncio.get_running_loop()
    literal = _literal(host, port)
    if literal is not None:
        addresses = iter([literal])
    else:
        addresses = _by_turns(await asyncio.wrap_future(_looked_up(host, port)))
    trying: dict[asyncio.Future[None], socket.socket] = {}
    lost: OSError = OSError("the host has no address")
    try:
        while True:
            found = next(addresses, None)
            if found is not None:
                try:
                    sock = socket.socket(found[0], socket.SOCK_STREAM)
                except OSError as error:  # of a system without IPv6
                    lost = error
                    continue
                sock.setblocking(False)  # noqa: FBT003
                trying[asyncio.ensure_future(loop.sock_connect(sock, found[1]))] = sock
            elif not trying:
                raise lost
            delay = _HEAD_START if found is not None else None
            done, _ = await asyncio.wait(trying, timeout=delay, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                sock = trying.pop(task)
                failure = task.exception()
                if failure is None:
                    return sock
                sock.close()
                lost = failure if isinstance(failure, OSError) else OSError(type(failure).__name__)
    finally:
        for task, sock in trying.items():
            task.cancel()
            # Not before the event loop lets go of its number, which is another socket's then.
            task.add_done_callback(partial(_close, sock))


def _close(sock: socket.socket, _: object) -> None:
    sock.close()


class AsyncConnection(_Line, asyncio.Protocol):
    """A connection on an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self._raw: list[bytes] | None = []  # what came before the first request
        self._body: list[bytes] = []
        self._unread = 0
        self._paused = self._full = self._lost = False
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._error: tuple[type[Exception], str] | None = None
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def open(cls, route: ProxyRoute, timeouts: Timeouts) -> AsyncConnection:
        """A connection that is ready for requests."""
        loop = asyncio.get_running_loop()
        self = cls(loop)
        try:
            with anyio.fail_after(_left(timeouts)):
                sock = await _connected_on_loop(route.first.host, route.first.port)
                try:
                    await loop.create_connection(lambda: self, sock=sock)
                except BaseException:
                    sock.close()
                    raise
            opening = Opening(route)
            steps = opening.steps()
            going = next(steps, None)
            while going is not None:
                self._write(going)
                while not (self._raw or self._lost):
                    self._complain()
                    await self._event(timeouts)
                data, self._raw = b"".join(self._raw or ()), []
                going = _next(steps, data)
            self._opened(opening)
        except BaseException:  # it may have been made in this moment
            self.close()
            raise
        return self

    async def ask(self, request: bytes, timeouts: Timeouts) -> None:
        """Send a request and read as far as the head of its answer."""
        self.answer.begin()
        self._write(self._outgoing(request))
        if self._raw is not None:
            early, self._raw = self._raw, None
            self.data_received(b"".join(early))
        if self._lost:  # in the moment of its opening
            self.connection_lost(None)
        while self._full and self._error is None and not self.answer.has_head:
            await self._event(timeouts)
        while not self.answer.has_head:
            self._complain()
            await self._event(timeouts)

    async def read(self, timeouts: Timeouts) -> bytes:
        """The next bytes of the body; none at its end."""
        while not self._body:
            self._complain()
            if self.answer.done:
                return b""
            await self._event(timeouts)
        body, self._body, self._unread = self._body, [], 0
        if self._paused and not self._lost and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return body[0] if len(body) == 1 else b"".join(body)

    def _write(self, data: bytes) -> None:
        if data and self._transport is not None:
            self._transport.write(data)

    def _complain(self) -> None:
        if not self.answer.done:
            self.answer.check()
        if self._error is not None:
            kind, said = self._error  # made anew: one with a traceback would hold this frame
            raise kind(said)

    async def _event(self, timeouts: Timeouts) -> None:
        """Wait until anything happens."""
        wait = _left(timeouts)
        if wait is not None:
            self._due = self._loop.time() + wait
            # One timer, which is moved when it rings and not at every wait.
            if self._timer is None or self._timer.when() > self._due:
                self._stop_timer()
                self._timer = self._loop.call_at(self._due, self._ring)
        else:
            self._due = float("inf")
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _ring(self) -> None:
        self._timer = None
        if self._waiter is None or self._waiter.done() or self._due == float("inf"):
            return
        if self._loop.time() + 0.001 < self._due:
            self._timer = self._loop.call_at(self._due, self._ring)
        else:
            self._error = self._error or (TimeoutError, "")
            self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- what the event loop calls ----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]  # a protocol of streams gets those

    def data_received(self, data: bytes) -> None:
        if self._raw is not None:
            self._raw.append(data)
            self._wake()
            return
        if self._layers:
            try:
                data = decrypted(self._layers, data)
            except OSError as error:  # an SSLError is one
                self._error = self._error or (ConnectionError, type(error).__name__)
                self.close()
                return
            self._write(encrypted(self._layers, b""))
        body = self.answer.feed(data)
        if self._closed:
            self.answer.end()
        if body:
            self._body.append(body)
            self._unread += len(body)
            if self._unread > _MOST_UNREAD and not self._paused and self._transport is not None:
                self._paused = True
                self._transport.pause_reading()
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = True
        self._stop_timer()
        if error is not None:
            self._error = self._error or (ConnectionError, type(error).__name__)
        else:
            self.answer.end(cut=self._cut)
        self._wake()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._wake()

    # -- between requests -------------------------------------------------------------------------

    @property
    def reusable(self) -> bool:
        """Whether the answer ended as one after which another may come."""
        return not (self._lost or self._body or self._error) and self._between

    @property
    def usable(self) -> bool:
        """Whether another request may be sent: nothing came, not even the end."""
        if not self.reusable:
            return False
        # The event loop may not have looked since the other side has closed.
        sock = self._transport.get_extra_info("socket") if self._transport is not None else None
        return sock is not None and not _readable(sock)

    def rest(self) -> None:
        """It waits for the next request."""
        self._stop_timer()

    def close(self) -> None:
        """Close it, whatever it is doing."""
        if self._loop.is_closed():  # it can run nothing any more
            wrapper = self._transport.get_extra_info("socket") if self._transport else None
            if wrapper is not None:
                wrapper._sock.close()  # noqa: SLF001  # asyncio's wrapper refuses
            return
        self._stop_timer()
        if self._transport is not None:
            self._transport.abort()
