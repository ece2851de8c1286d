"""Network streams that keep to a deadline, whoever is reading from them.

httpcore hands the timeout of a request to each read and write of its network stream. These thin
wrappers turn a `Patience` into the seconds that are left at that moment; a plain number passes.

They also keep a connection from being used again on which more came than the answer to a request:
the surplus, be it a wrong Content-Length or a smuggled answer, would be read as the answer to the
next request.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from ipaddress import ip_address
from typing import Any
from weakref import WeakSet

import httpcore
import httpx

from .deadline import Patience, seconds
from .parser_buffer import Received

# Below this a socket would be asked not to block at all, which httpcore reads as a broken one.
_SHORTEST = 0.001


def _timeout(timeout: float | None, late: type[Exception]) -> float | None:
    wait = seconds(timeout)
    if wait is not None and isinstance(timeout, Patience):
        if wait <= 0:
            raise late("the deadline has passed")
        return max(wait, _SHORTEST)
    return wait


def retire_if_surplus(response: httpx.Response, received: Received) -> None:
    """Called before an answer is closed: its connection is not used again if more had come."""
    stream = response.extensions.get("network_stream")
    if isinstance(stream, (Stream, AsyncStream)) and received.has_surplus():
        stream.retired = True


def outlives_its_pool(response: httpx.Response) -> bool:
    """Whether nobody else will close the connection of an answer.

    httpcore forgets its connections when it is closed, also one that is still being made.
    """
    stream = response.extensions.get("network_stream")
    return isinstance(stream, (Stream, AsyncStream)) and stream.home.closed


class Outgoing:
    """Keeps a request's head until its body comes: one packet, and one system call for both."""

    def __init__(self) -> None:
        self._head = b""

    def take(self, data: bytes) -> bytes:
        """What is to be sent now."""
        if not self._head and data.endswith(_END_OF_HEAD):
            self._head = data
            return b""
        return self.rest() + data

    def rest(self) -> bytes:
        """What was kept."""
        head, self._head = self._head, b""
        return head


_END_OF_HEAD = b"\r\n\r\n"


class Stream(httpcore.NetworkStream):
    """A network stream under a deadline."""

    def __init__(self, stream: httpcore.NetworkStream, home: Backend) -> None:
        self._stream = stream
        self.home = home
        self._outgoing = Outgoing()
        self.retired = False

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        self._send(self._outgoing.rest(), timeout)
        return self._stream.read(max_bytes, _timeout(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._send(self._outgoing.take(buffer), timeout)

    def _send(self, data: bytes, timeout: float | None) -> None:
        if data:
            self._stream.write(data, _timeout(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        wait = _timeout(timeout, httpcore.ConnectTimeout)
        try:
            return Stream(self._stream.start_tls(ssl_context, server_hostname, wait), self.home)
        except BaseException:  # httpcore leaves the socket open where it is interrupted
            self._stream.close()
            raise

    def get_extra_info(self, info: str) -> Any:
        # Of an idle connection httpcore asks this, and drops one that has something to say.
        return (self.retired and info == "is_readable") or self._stream.get_extra_info(info)


def _addresses(host: str, port: int, seconds: float | None) -> list[str]:
    """The addresses of a host. A resolver knows no timeout, so a thread asks it, and may be left.

    On an event loop anyio asks it in a thread of the loop's own.
    """
    with suppress(ValueError):
        return [str(ip_address(host))]
    found: Future[list[Any]] = Future()

    def look_up() -> None:
        try:
            found.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except Exception as error:  # noqa: BLE001  # it is raised below
            found.set_exception(error)

    threading.Thread(target=look_up, name="svc-look-up", daemon=True).start()
    try:
        return [str(info[4][0]) for info in found.result(seconds)]
    except FutureTimeoutError:
        raise httpcore.ConnectTimeout("the look-up of the host took too long") from None
    except (OSError, UnicodeError) as error:
        raise httpcore.ConnectError(str(error)) from None


class Backend(httpcore.NetworkBackend):
    """Opens network streams under a deadline."""

    closed = False  # with its pool

    def __init__(self, backend: httpcore.NetworkBackend) -> None:
        self._backend = backend

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        lost: Exception = httpcore.ConnectError("the host has no address")
        for address in _addresses(host, port, _timeout(timeout, httpcore.ConnectTimeout)):
            wait = _timeout(timeout, httpcore.ConnectTimeout)
            try:
                stream = self._backend.connect_tcp(
                    address, port, wait, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                lost = error
            else:
                return Stream(stream, self)
        raise lost

    def sleep(self, seconds: float) -> None:
        self._backend.sleep(seconds)


class AsyncStream(httpcore.AsyncNetworkStream):
    """The async version of `Stream`."""

    def __init__(self, stream: httpcore.AsyncNetworkStream, home: AsyncBackend) -> None:
        self._stream = stream
        self.home = home
        home.streams.add(self)
        self._outgoing = Outgoing()
        self.retired = False

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        await self._send(self._outgoing.rest(), timeout)
        return await self._stream.read(max_bytes, _timeout(timeout, httpcore.ReadTimeout))

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._send(self._outgoing.take(buffer), timeout)

    async def _send(self, data: bytes, timeout: float | None) -> None:
        if data:
            await self._stream.write(data, _timeout(timeout, httpcore.WriteTimeout))

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        wait = _timeout(timeout, httpcore.ConnectTimeout)
        try:
            stream = await self._stream.start_tls(ssl_context, server_hostname, wait)
        except BaseException:  # httpcore leaves the socket open where it is cancelled
            await self._stream.aclose()
            raise
        return AsyncStream(stream, self.home)

    def get_extra_info(self, info: str) -> Any:
        # Of an idle connection httpcore asks this, and drops one that has something to say.
        return (self.retired and info == "is_readable") or self._stream.get_extra_info(info)


class AsyncBackend(httpcore.AsyncNetworkBackend):
    """The async version of `Backend`."""

    closed = False

    def __init__(self, backend: httpcore.AsyncNetworkBackend) -> None:
        self._backend = backend
        self.streams: WeakSet[AsyncStream] = WeakSet()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        wait = _timeout(timeout, httpcore.ConnectTimeout)
        stream = await self._backend.connect_tcp(host, port, wait, local_address, socket_options)
        return AsyncStream(stream, self)

    async def sleep(self, seconds: float) -> None:
        await self._backend.sleep(seconds)
