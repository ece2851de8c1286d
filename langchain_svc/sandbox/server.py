"""HTTP/1.1 over TCP, by h11, on an event loop of the sandbox's own that can be stopped at once.

An `HttpConnection` can be reset or written to directly, for faults, and knows whether its client is
gone. The server accepts the clients itself, because asyncio's own server, when closed, loses the
sockets that it has accepted but not yet handed to a protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import unquote

import h11

from .wire import HttpRequest, is_loopback

Serve = Callable[[HttpRequest, "HttpConnection"], Awaitable[None]]
_GRACE = 10.0  # seconds for the thread to begin and to end


class Server:
    """One listening socket and the thread that serves it."""

    def __init__(
        self,
        serve: Serve,
        host: str,
        port: int,
    ) -> None:
        self._serve_request = serve
        self._connections: set[HttpConnection] = set()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family, backlog=1024)
        self.port: int = self._socket.getsockname()[1]
        self._socket.settimeout(0)  # never blocks the loop
        # On every platform: it can watch a socket.
        self._loop = asyncio.SelectorEventLoop()
        self._arriving: set[asyncio.Task[Any]] = set()
        self._halt = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"langchain-svc-sandbox:{self.port}", daemon=True
        )

    def start(self) -> None:
        self._thread.start()
        if not self._ready.wait(_GRACE):
            raise RuntimeError("The sandbox's server thread did not start.")

    def stop(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended already
            self._loop.call_soon_threadsafe(self._halt.set)
        self._thread.join(_GRACE)

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    @property
    def open_connections(self) -> int:
        return len(self._connections)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
            # Answers that were read in part are generators.
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        self._loop.add_reader(self._socket, self._accept)
        self._ready.set()
        await self._halt.wait()
        self._loop.remove_reader(self._socket)
        self._socket.close()
        await self._drop_all()

    def _accept(self) -> None:
        try:
            client, _ = self._socket.accept()
        except OSError:
            return  # the client left already
        connecting = self._loop.connect_accepted_socket(
            lambda: HttpConnection(self._serve_request, self._connections), client
        )
        task = self._loop.create_task(connecting)
        self._arriving.add(task)
        task.add_done_callback(self._arriving.discard)

    async def _drop_all(self) -> None:
        while self._arriving or self._connections:
            for connection in list(self._connections):
                connection.abort()
            await asyncio.sleep(0)
        # The answers that abort() has cancelled, and those that end because their client is gone.
        answering = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*answering, return_exceptions=True)


_MOST_BYTES = 32 * 1024 * 1024  # of a body that is kept
_KEEP_ALIVE = 75  # seconds; common for hosted services
_REASONS = {status.value: status.phrase for status in HTTPStatus}
# l_onoff, l_linger: closing sends RST and drops what was not sent.
_LINGER_ZERO = struct.pack("ii", 1, 0)

Result = TypeVar("Result")


class HttpConnection(asyncio.Protocol):
    """The connection of one client; its requests are served one after the other."""

    def __init__(self, serve: Serve, connections: set[HttpConnection]) -> None:
        self._serve = serve
        self._connections = connections
        self._http = h11.Connection(h11.SERVER)
        self._loop = asyncio.get_running_loop()
        self._gone = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._idle: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self.tap: Callable[[bytes], None] | None = None

    # -- what asyncio calls -----------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - it is a TCP connection's
        self._transport = transport
        # Pieces must leave when they are written, not when the last one is acknowledged. asyncio
        # does this only for sockets whose protocol number was spelled out.
        client = transport.get_extra_info("socket")
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections.add(self)
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        self._gone.set()
        self._writable.set()
        self._set_body(None)
        if self._idle is not None:
            self._idle.cancel()

    def data_received(self, data: bytes) -> None:
        self._http.receive_data(data)
        self._read_events()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    # -- requests ---------------------------------------------------------------------------------

    def _expect_request(self) -> None:
        self._chunks: list[bytes] = []
        self._size = 0
        self._body: asyncio.Future[bytes | None] = self._loop.create_future()
        self._idle = self._loop.call_later(_KEEP_ALIVE, self._transport.close)

    def _read_events(self) -> None:
        while True:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError:
                self._refuse()
                return
            if isinstance(event, h11.Request):
                self._start_request(event)
            elif isinstance(event, h11.Data):
                self._add_to_body(bytes(event.data))
            elif isinstance(event, h11.EndOfMessage):
                self._set_body(b"".join(self._chunks))
            else:  # no event before more data arrives, or before this request is answered
                if self._http.they_are_waiting_for_100_continue:
                    self._write(h11.InformationalResponse(status_code=100, headers=[]))
                return

    def _start_request(self, event: h11.Request) -> None:
        if self._idle is not None:
            self._idle.cancel()
        path, _, query = event.target.decode("latin-1").partition("?")
        headers: dict[str, str] = {}
        for raw_name, raw_value in event.headers:
            name = raw_name.decode("latin-1")
            value = raw_value.decode("latin-1")
            if name in headers:
                value = f"{headers[name]}, {value}"
            headers[name] = value
        peer = self._transport.get_extra_info("peername")
        method = event.method.decode("latin-1")
        request = HttpRequest(
            method=method,
            path=unquote(path),
            query=query,
            headers=headers,
            client_port=peer[1] if peer else 0,
        )
        self._bodiless = method == "HEAD"
        self._task = self._loop.create_task(self._serve_request(request))

    def _add_to_body(self, data: bytes) -> None:
        self._size += len(data)
        if self.too_large:
            self._chunks.clear()
        else:
            self._chunks.append(data)

    def _set_body(self, body: bytes | None) -> None:
        if not self._body.done():
            self._body.set_result(body)

    async def _serve_request(self, request: HttpRequest) -> None:
        await self._serve(request, self)
        if self._gone.is_set():
            return
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
            self._expect_request()
            self._read_events()
        else:
            self._transport.close()

    def _refuse(self) -> None:
        if self._http.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            text = b"This is not an HTTP request."
            headers = [("content-length", str(len(text))), ("connection", "close")]
            self._write(
                h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
            )
            self._write(h11.Data(data=text))
        self._transport.close()

    def _write(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            self._transport.write(data)

    # -- for the application ----------------------------------------------------------------------

    async def read_body(self) -> bytes | None:
        return await self._body

    @property
    def is_local(self) -> bool:
        peer = self._transport.get_extra_info("peername")
        return peer is not None and is_loopback(peer[0])

    @property
    def too_large(self) -> bool:
        """Whether the body was too large, and was read to its end and dropped.

        It is read to its end because a client that is still sending may not see an answer.
        """
        return self._size > _MOST_BYTES

    def send_head(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        """Send the head of an answer; without a content-length its body is chunked."""
        reason = _REASONS.get(status, "").encode()
        self._write(
            h11.Response(status_code=status, headers=list(headers), reason=reason)
        )

    async def send(self, data: bytes) -> None:
        """Send a piece of the body, and wait until the client has read enough to send more."""
        if data and not self._bodiless and not self._gone.is_set():
            if self.tap is not None:
                self.tap(data)
            self._write(h11.Data(data=data))
            await self._writable.wait()

    def end_body(self) -> None:
        self._write(h11.EndOfMessage())

    async def wait(self, seconds: float | None) -> bool:
        """Let this much time pass (None: any); return at once, with True, when it is closed."""
        if seconds == 0:
            await asyncio.sleep(0)  # the loop may notice that the client has left
        else:
            try:
                await asyncio.wait_for(self._gone.wait(), seconds)
            except TimeoutError:
                return False
        return self._gone.is_set()

    async def until_gone(self, work: Awaitable[Result]) -> Result | None:
        """The result of some work; None, and the work is cancelled, when the client leaves."""
        task = asyncio.ensure_future(work)
        gone = self._loop.create_task(self._gone.wait())
        try:
            await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
            return None if self._gone.is_set() else task.result()
        finally:
            gone.cancel()
            task.cancel()
            await asyncio.wait({task})
            if not task.cancelled():
                task.exception()  # asyncio would log an exception that nobody has read

    def write(self, data: bytes) -> None:
        if self.tap is not None:
            self.tap(data)
        self._transport.write(data)

    def close(self) -> None:
        self._transport.close()

    def reset(self) -> None:
        client = self._transport.get_extra_info("socket")
        if client is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        self._transport.abort()

    def abort(self) -> None:
        """Close at once, and stop answering."""
        self._transport.abort()
        if self._task is not None:
            self._task.cancel()
            self._task = None  # a second cancel() would interrupt its cleanup
