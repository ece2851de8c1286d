"""One connection each: blocking on a socket, and on an event loop. Both keep to a `Timeouts`."""

from __future__ import annotations

import asyncio
import socket
import time
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from typing import Any

from aiohappyeyeballs import start_connection

from .._base.threads import LOOK_UPS
from .deadline import FOREVER, Timeouts
from .http1 import BaseConnection, Origin

_READ_BYTES = 64 * 1024
_MOST_UNREAD = 256 * 1024  # bytes; then the other side has to wait
# Seconds for an address that is not the host's last: enough to repeat lost packets.
_PATIENCE = 4.0
# Seconds that an address gets before the next one is tried beside it.
_HEAD_START = 0.25
# Addresses that did not answer when they were last tried; their values say nothing. Each use is one
# step of a dict, so threads need no lock, and a forked child keeps what its parent knew.
_SILENT: dict[object, None] = {}
_MOST_SILENT = 1_000


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
                self.continue_handshake(self._receive(timeouts))
        except BaseException:
            sock.close()
            raise
        return self

    def send_request(self, request: bytes, timeouts: Timeouts) -> None:
        """Send a request and read as far as the head of its response."""
        self.response.start_response()
        with suppress(ConnectionError):  # the response may say why
            self._send(self.outgoing(request), timeouts)
        if self._tls is not None:  # data may have come behind the handshake
            self._body_start = self.decode(b"")
        while not self.response.has_head:
            self.response.check()
            self._body_start = self._read_more(timeouts)

    def read_body(self, timeouts: Timeouts) -> bytes:
        """The next bytes of the body; none at its end."""
        data = self._body_start
        self._body_start = b""
        while not data and not self.response.done:
            self.response.check()
            data = self._read_more(timeouts)
        return data

    def _read_more(self, timeouts: Timeouts) -> bytes:
        body = self.decode_received(self._receive(timeouts))
        # What TLS answers at the end of a response goes out with the next request.
        if self._tls is not None and not self.response.done:
            self._send(self.outgoing(b""), timeouts)
        return body

    def _receive(self, timeouts: Timeouts) -> bytes:
        self._set_timeout(timeouts)
        return self._socket.recv(_READ_BYTES)

    def _send(self, data: bytes, timeouts: Timeouts) -> None:
        view = memoryview(data)
        while view:  # not sendall: each part may take as long as the timeouts say
            self._set_timeout(timeouts)
            view = view[self._socket.send(view) :]

    def _set_timeout(self, timeouts: Timeouts) -> None:
        wait = timeouts.remaining()
        if wait != self._wait:  # a system call saved: mostly it stays the same
            self._socket.settimeout(wait)
            self._wait = wait

    def close(self) -> None:
        """Close it, whatever it is doing."""
        self._socket.close()


def _connected(host: str, port: int, timeouts: Timeouts) -> socket.socket:
    """A socket to the first address that answers; each but the last has some seconds.

    Addresses that were silent before come last, so that a dead route costs those seconds once.
    """
    until = time.monotonic() + (timeouts.remaining() or FOREVER)
    addresses = _look_up(host, port).result(timeouts.remaining())
    failure = OSError("the host has no address")
    untried = len(addresses)
    addresses = sorted(addresses, key=_was_silent)
    for family, kind, protocol, _, address in addresses:
        timeout = Timeouts(FOREVER, until).remaining()
        if timeout is not None:
            timeout /= untried
        if untried > 1:
            timeout = min(timeout or FOREVER, _PATIENCE)
        untried -= 1
        try:
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(timeout)
                sock.connect(address)
            except BaseException:
                sock.close()
                raise
        except OSError as error:  # a system without IPv6 raises it, too
            failure = error
            if len(_SILENT) >= _MOST_SILENT:
                _SILENT.clear()
            _SILENT[address] = None
        else:
            _SILENT.pop(address, None)
            return sock
    raise failure


def _was_silent(row: tuple[Any, ...]) -> bool:
    """Whether the address of a row of `socket.getaddrinfo` did not answer when last tried."""
    return row[-1] in _SILENT


def _look_up(host: str, port: int) -> Future[list[Any]]:
    """The addresses of a host.

    The resolver has no timeout, so calls of one host that overlap wait for one look-up.
    """
    look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    with suppress(ValueError):
        ip_address(host)  # which needs no resolver, and so no thread
        addresses: Future[list[Any]] = Future()
        addresses.set_result(look_up())
        return addresses
    return LOOK_UPS.share((host, port), look_up)


async def _connected_on_loop(host: str, port: int) -> socket.socket:
    """The async version of `_connected`. asyncio's own loses sockets when it is cancelled."""
    addresses = await asyncio.wrap_future(_look_up(host, port))
    try:
        return await start_connection(addresses, happy_eyeballs_delay=_HEAD_START)
    except RuntimeError as error:  # uvloop raises some failures so
        raise OSError(str(error)) from None


class AsyncConnection(BaseConnection, asyncio.Protocol):
    """A connection on an event loop."""

    _socket: socket.socket

    def __init__(self, origin: Origin) -> None:
        super().__init__(origin)
        self._loop = asyncio.get_running_loop()
        self._unread = bytearray()
        self._paused = False  # reading
        self._full = False  # the transport cannot take more to send
        self._closed = False  # by the other side, or by a failure
        self._error = ""
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._due = FOREVER
        self._transport: Any = None  # an asyncio.Transport, from `connection_made` on

    @classmethod
    async def open(cls, origin: Origin, timeouts: Timeouts) -> AsyncConnection:
        """A connection that is ready for requests."""
        self = cls(origin)
        async with asyncio.timeout(timeouts.remaining()):
            self._socket = await _connected_on_loop(origin.host, origin.port)
            try:
                await self._loop.create_connection(lambda: self, sock=self._socket)
            except BaseException:  # a cancellation may come when the connection is made
                self.close()
                self._socket.close()
                raise
        try:
            while not self.ready:
                self._transport.write(self.outgoing(b""))
                self.continue_handshake(await self._receive(timeouts))
        except BaseException:
            self.close()
            raise
        return self

    async def send_request(self, request: bytes, timeouts: Timeouts) -> None:
        """Send a request and read as far as the head of its response."""
        self.response.start_response()
        self._transport.write(self.outgoing(request))
        if self._tls is not None:  # data may have come behind the handshake
            self._body_start = self.decode(b"")
        while self._full and not (self._unread or self._closed):
            await self._wait_for_event(timeouts)
        while not self.response.has_head:
            self.response.check()
            self._body_start = await self._read_more(timeouts)

    async def read_body(self, timeouts: Timeouts) -> bytes:
        """The next bytes of the body; none at its end."""
        data = self._body_start
        self._body_start = b""
        while not data and not self.response.done:
            self.response.check()
            data = await self._read_more(timeouts)
        return data

    async def _read_more(self, timeouts: Timeouts) -> bytes:
        body = self.decode_received(await self._receive(timeouts))
        # What TLS answers at the end of a response goes out with the next request.
        if self._tls is not None and not self.response.done:
            self._transport.write(self.outgoing(b""))
        return body

    async def _receive(self, timeouts: Timeouts) -> bytes:
        while not (self._unread or self._closed):
            await self._wait_for_event(timeouts)
        data = bytes(self._unread)
        self._unread = bytearray()
        if self._error and not data:
            raise ConnectionError(self._error)
        if self._paused and not self._closed:
            self._paused = False
            self._transport.resume_reading()
        return data

    async def _wait_for_event(self, timeouts: Timeouts) -> None:
        """Wait until data, room to send, or the end of the connection comes."""
        wait = timeouts.remaining()
        self._due = FOREVER
        if wait is not None:
            self._due = self._loop.time() + wait
            # One timer serves many waits. It is set anew when it rings too early; one that would
            # ring too late is replaced here.
            if self._timer is None or self._timer.when() > self._due:
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
        self._closed = True
        self._stop_timer()
        if error is not None:
            self._error = type(error).__name__
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
        # The other side may have closed since the event loop last looked at the socket.
        return not (self._closed or self._unread) and super().usable

    def close(self) -> None:
        """Close it, whatever it is doing."""
        if self._loop.is_closed():  # it can run nothing any more
            self._socket.close()
            return
        self._stop_timer()
        if self._transport is not None:
            self._transport.abort()
