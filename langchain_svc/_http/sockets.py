"""One connection each: blocking on a socket, and on an event loop. Both keep to a `Timeouts`."""

from __future__ import annotations

import asyncio
import socket
import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from typing import Any

import anyio
from aiohappyeyeballs import start_connection

from .._base.threads import LOOK_UPS
from .base import BaseConnection, Origin
from .deadline import FOREVER, Timeouts

_READ_BYTES = 64 * 1024
_MOST_UNREAD = 256 * 1024  # bytes; then the other side has to wait
_PATIENCE = (
    4.0  # seconds for an address that is not the host's last; lost packets are repeated
)
_HEAD_START = (
    0.25  # seconds that an address gets before the next one is tried beside it
)


class Connection(BaseConnection):
    """A connection for threads, of which one uses it at a time."""

    def __init__(self, origin: Origin, sock: socket.socket) -> None:
        super().__init__(origin)
        self._socket = sock
        self._wait: float | None = -1.0

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
        body = self.hear(self._receive(timeouts))
        if (
            self._tls is not None and not self.answer.done
        ):  # else it goes out with the next request
            self._send(self.outgoing(b""), timeouts)
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

    def close(self) -> None:
        """Close it, whatever it is doing."""
        self._socket.close()


def _connected(host: str, port: int, timeouts: Timeouts) -> socket.socket:
    """A socket to the first address that answers; each but the last has some seconds."""
    until = time.monotonic() + (timeouts.left() or FOREVER)
    try:
        addresses = _look_up(host, port).result(timeouts.left())
    except FutureTimeoutError:  # before Python 3.11 it is another than the built-in one
        raise TimeoutError from None
    lost = OSError("the host has no address")
    for at, (family, kind, protocol, _, address) in enumerate(addresses):
        left = Timeouts(FOREVER, until).left()
        try:
            sock = socket.socket(family, kind, protocol)
            try:
                most = FOREVER if at == len(addresses) - 1 else _PATIENCE
                share = min((left or FOREVER) / (len(addresses) - at), most)
                sock.settimeout(None if share == FOREVER else share)
                sock.connect(address)
            except BaseException:
                sock.close()
                raise
        except OSError as error:  # also of a system without IPv6
            lost = error
        else:
            return sock
    raise lost


def _look_up(host: str, port: int) -> Future[list[Any]]:
    """The resolver knows no timeout: who asks meanwhile waits for the same."""
    work = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    with suppress(ValueError):
        ip_address(host)  # which needs no resolver, and so no thread
        found: Future[list[Any]] = Future()
        found.set_result(work())
        return found
    return LOOK_UPS.share((host, port), work)


async def _connected_on_loop(host: str, port: int) -> socket.socket:
    """The async version of `_connected`. asyncio's own loses sockets when it is cancelled."""
    addresses = await asyncio.wrap_future(_look_up(host, port))
    try:
        return await start_connection(addresses, happy_eyeballs_delay=_HEAD_START)
    except RuntimeError as error:  # so uvloop calls some
        raise OSError(str(error)) from None


class AsyncConnection(BaseConnection, asyncio.Protocol):
    """A connection on an event loop."""

    _socket: socket.socket

    def __init__(self, origin: Origin) -> None:
        super().__init__(origin)
        self._loop = asyncio.get_running_loop()
        self._unread = bytearray()
        self._paused = self._full = self._lost = False
        self._error = ""
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = FOREVER
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
                self._transport.write(self.outgoing(b""))
                self.shake(await self._receive(timeouts))
        except BaseException:
            self.close()
            raise
        return self

    async def ask(self, request: bytes, timeouts: Timeouts) -> None:
        """Send a request and read as far as the head of its answer."""
        self.answer.begin()
        self._transport.write(self.outgoing(request))
        if self._tls is not None:  # something may have come behind the handshake
            self._first = self.feed(b"")
        while self._full and not (self._unread or self._lost):
            await self._event(timeouts)
        while not self.answer.has_head:
            self.answer.check()
            self._first = await self._more(timeouts)

    async def read(self, timeouts: Timeouts) -> bytes:
        """The next bytes of the body; none at its end."""
        data, self._first = self._first, b""
        while not data and not self.answer.done:
            self.answer.check()
            data = await self._more(timeouts)
        return data

    async def _more(self, timeouts: Timeouts) -> bytes:
        body = self.hear(await self._receive(timeouts))
        if (
            self._tls is not None and not self.answer.done
        ):  # else it goes out with the next request
            self._transport.write(self.outgoing(b""))
        return body

    async def _receive(self, timeouts: Timeouts) -> bytes:
        while not (self._unread or self._lost):
            await self._event(timeouts)
        data, self._unread = bytes(self._unread), bytearray()
        if self._error and not data:
            raise ConnectionError(self._error)
        if self._paused and not self._lost:
            self._paused = False
            self._transport.resume_reading()
        return data

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
            self._waiter.set_exception(TimeoutError())

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
        self._unread += data
        if len(self._unread) > _MOST_UNREAD and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._lost = True
        self._stop_timer()
        self._error = "" if error is None else type(error).__name__
        self._wake()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._wake()

    # -- between requests -------------------------------------------------------------------------

    @property
    def usable(self) -> bool:
        """Whether another request may be sent: nothing came, not even the end."""
        # The event loop may not have looked since the other side has closed.
        return not (self._lost or self._unread) and super().usable

    def close(self) -> None:
        """Close it, whatever it is doing."""
        if self._loop.is_closed():  # it can run nothing any more
            self._socket.close()
            return
        self._stop_timer()
        if self._transport is not None:
            self._transport.abort()
