"""One connection each: blocking on a socket, and on an event loop. Both keep to a `Timeouts`."""

from __future__ import annotations

import asyncio
import os
import select
import selectors
import socket
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from itertools import zip_longest
from typing import Any

import anyio
from aiohappyeyeballs import start_connection

from .._threads import LOOK_UPS
from .base import BaseConnection, Origin
from .deadline import FOREVER, Timeouts

_READ_BYTES = 64 * 1024
_MOST_UNREAD = 256 * 1024  # bytes; then the other side has to wait
_HEAD_START = 0.25  # seconds that an address gets before the next one is tried beside it


class Connection(BaseConnection):
    """A connection for threads, of which one uses it at a time."""

    def __init__(self, origin: Origin, sock: socket.socket) -> None:
        super().__init__(origin)
        self._socket = sock
        self._wait: float | None = -1.0
        self._first = b""

    @classmethod
    def open(cls, origin: Origin, timeouts: Timeouts) -> Connection:
        """A connection that is ready for requests."""
        sock = _connected(origin.host, origin.port, timeouts)
        try:
            self = cls(origin, sock)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while not self.ready:
                self._send(self.outgoing(b""), timeouts)
                self.shake(self._receive(timeouts))
        except BaseException:
            sock.close()
            raise
        return self

    def ask(self, request: bytes, timeouts: Timeouts) -> None:
        """Send a request and read as far as the head of its answer."""
        self.answer.begin()
        with suppress(ConnectionError):  # the answer may say why
            self._send(self.outgoing(request), timeouts)
        if self._tls is not None:  # something may have come behind the handshake
            self._first = self.feed(b"")
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
            self._ended()
            return b""
        body = self.feed(data)
        if self._tls is not None and not self.answer.done:  # else it goes out with the next request
            self._send(self._encrypted(b""), timeouts)
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
        wait = timeouts.left()
        if wait != self._wait:  # a system call saved: mostly it stays the same
            self._socket.settimeout(wait)
            self._wait = wait

    @property
    def usable(self) -> bool:
        """Whether another request may be sent: nothing came, not even the end."""
        return self.reusable and not _readable(self._socket)

    def close(self) -> None:
        """Close it, whatever it is doing."""
        self._socket.close()


def _readable(sock: socket.socket) -> bool:
    if not hasattr(select, "poll"):  # Windows
        return bool(select.select([sock], [], [], 0)[0])
    poll = select.poll()  # a descriptor above 1,023 is more than select takes
    poll.register(sock.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _connected(host: str, port: int, timeouts: Timeouts) -> socket.socket:
    """A socket to the first of a host's addresses that answers, each with a head start."""
    until = time.monotonic() + (timeouts.left() or FOREVER)
    try:
        addresses = iter(_addresses(host, port).result(timeouts.left()))
    except FutureTimeoutError:  # before Python 3.11 it is another than the built-in one
        raise TimeoutError from None
    lost: OSError = OSError("the host has no address")
    with selectors.DefaultSelector() as trying:
        try:
            while True:
                found = next(addresses, None)
                if found is not None:
                    try:
                        trying.register(_connecting(*found), selectors.EVENT_WRITE)
                    except OSError as error:  # also of a system without IPv6
                        lost = error
                        continue
                elif not trying.get_map():
                    raise lost
                wait = Timeouts(FOREVER if found is None else _HEAD_START, until).left()
                for key, _ in trying.select(wait):
                    sock: Any = key.fileobj
                    trying.unregister(sock)
                    code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    if not code:
                        return sock  # type: ignore[no-any-return]  # what was registered
                    lost = OSError(code, os.strerror(code))
                    sock.close()
        finally:
            for key in trying.get_map().values():
                key.fileobj.close()  # type: ignore[union-attr]


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


def _addresses(host: str, port: int) -> Future[list[tuple[int, Any]]]:
    """Those of a host. The resolver knows no timeout: who asks meanwhile waits for the same."""
    try:
        version = ip_address(host.partition("%")[0]).version
    except ValueError:
        return LOOK_UPS.share((host, port), partial(_looked_up, host, port))
    family = socket.AF_INET6 if version == 6 else socket.AF_INET
    found: Future[list[tuple[int, Any]]] = Future()
    found.set_result([(family, (host, port))])
    return found


def _looked_up(host: str, port: int) -> list[tuple[int, Any]]:
    """Addresses of both families by turns, in the resolver's order."""
    families: dict[int, list[Any]] = {}
    for family, _, _, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        families.setdefault(family, []).append((family, address))
    return [one for turn in zip_longest(*families.values()) for one in turn if one is not None]


async def _connected_on_loop(host: str, port: int) -> socket.socket:
    """The async version of `_connected`. asyncio's own loses sockets when it is cancelled."""
    found = await asyncio.wrap_future(_addresses(host, port))
    infos = [(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", at) for family, at in found]
    try:
        return await start_connection(infos, happy_eyeballs_delay=_HEAD_START)
    except RuntimeError as error:  # so uvloop calls some
        raise OSError(str(error)) from None


class AsyncConnection(BaseConnection, asyncio.Protocol):
    """A connection on an event loop."""

    _socket: socket.socket

    def __init__(self, origin: Origin) -> None:
        super().__init__(origin)
        self._loop = asyncio.get_running_loop()
        self._raw: list[bytes] | None = []  # what came before the first request
        self._body: list[bytes] = []
        self._unread = 0
        self._paused = self._full = self._lost = False
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = FOREVER
        self._error: tuple[type[Exception], str] | None = None
        self._transport: Any = None  # an asyncio.Transport, from `connection_made` on

    @classmethod
    async def open(cls, origin: Origin, timeouts: Timeouts) -> AsyncConnection:
        """A connection that is ready for requests."""
        self = cls(origin)
        with anyio.fail_after(timeouts.left()):
            self._socket = await _connected_on_loop(origin.host, origin.port)
            try:
                await self._loop.create_connection(lambda: self, sock=self._socket)
            except BaseException:  # it may have been made in this moment
                self.close()
                self._socket.close()
                raise
        try:
            while not self.ready:
                self._write(self.outgoing(b""))
                while not (self._raw or self._lost):
                    self._complain()
                    await self._event(timeouts)
                data, self._raw = b"".join(self._raw or ()), []
                self.shake(data)
        except BaseException:
            self.close()
            raise
        return self

    async def ask(self, request: bytes, timeouts: Timeouts) -> None:
        """Send a request and read as far as the head of its answer."""
        self.answer.begin()
        self._write(self.outgoing(request))
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
        if self._paused and not self._lost:
            self._paused = False
            self._transport.resume_reading()
        return body[0] if len(body) == 1 else b"".join(body)

    def _write(self, data: bytes) -> None:
        if data:
            self._transport.write(data)

    def _complain(self) -> None:
        if not self.answer.done:
            self.answer.check()
        if self._error is not None:
            kind, said = self._error  # made anew: one with a traceback would hold this frame
            raise kind(said)

    async def _event(self, timeouts: Timeouts) -> None:
        """Wait until anything happens."""
        wait = timeouts.left()
        self._due = self._loop.time() + (FOREVER if wait is None else wait)
        # One timer, which is moved when it rings and not at every wait.
        if wait is not None and (self._timer is None or self._timer.when() > self._due):
            self._stop_timer()
            self._timer = self._loop.call_at(self._due, self._ring)
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _ring(self) -> None:
        self._timer = None
        if self._waiter is None or self._waiter.done() or self._due == FOREVER:
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
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._raw is not None:
            self._raw.append(data)
            self._wake()
            return
        try:
            body = self.feed(data)
        except OSError as error:  # an SSLError is one
            self._error = self._error or (ConnectionError, type(error).__name__)
            self.close()
            return
        if self._tls is not None:
            self._write(self._encrypted(b""))
        if body:
            self._body.append(body)
            self._unread += len(body)
            if self._unread > _MOST_UNREAD and not self._paused:
                self._paused = True
                self._transport.pause_reading()
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = True
        self._stop_timer()
        if error is not None:
            self._error = self._error or (ConnectionError, type(error).__name__)
        else:
            self._ended()
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
        return not (self._lost or self._body or self._error) and super().reusable

    @property
    def usable(self) -> bool:
        """Whether another request may be sent: nothing came, not even the end."""
        # The event loop may not have looked since the other side has closed.
        return self.reusable and not _readable(self._socket)

    def rest(self, now: float) -> None:
        """It waits for the next request."""
        super().rest(now)
        self._stop_timer()

    def close(self) -> None:
        """Close it, whatever it is doing."""
        if self._loop.is_closed():  # it can run nothing any more
            self._socket.close()
            return
        self._stop_timer()
        if self._transport is not None:
            self._transport.abort()
