"""An event loop of the sandbox's own, in a thread that can be stopped at once.

Accepting is done here, because asyncio's own server, when closed, loses the sockets of clients that
it has accepted but not yet met.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from typing import TYPE_CHECKING, Any

from langchain_svc.sandbox.connection import Connection

if TYPE_CHECKING:
    from langchain_svc.sandbox.app import App

_PATIENCE = 10.0  # seconds for the thread to begin and to end


class Server:
    """One listening socket and the thread that serves it."""

    def __init__(self, app: App, host: str, port: int) -> None:
        self._app = app
        self._connections: set[Connection] = set()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), family=family, backlog=1024)
        self.port: int = self._socket.getsockname()[1]
        self._socket.settimeout(0)  # never blocks the loop
        self._loop = asyncio.SelectorEventLoop()  # on every platform: it can watch a socket
        self._arriving: set[asyncio.Task[Any]] = set()
        self._halt = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"langchain-svc-sandbox:{self.port}", daemon=True
        )

    def start(self) -> None:
        """Return when connections are accepted."""
        self._thread.start()
        if not self._ready.wait(_PATIENCE):
            raise RuntimeError("The sandbox's server thread did not start.")

    def halt(self) -> None:
        """Begin to stop: cancel every answer, close every connection."""
        with contextlib.suppress(RuntimeError):  # the loop has ended already
            self._loop.call_soon_threadsafe(self._halt.set)

    def join(self) -> None:
        """Wait for the thread to end."""
        self._thread.join(_PATIENCE)

    @property
    def running(self) -> bool:
        """Whether the thread is alive."""
        return self._thread.is_alive()

    @property
    def open_connections(self) -> int:
        """How many clients are connected now."""
        return len(self._connections)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())  # half-read answers
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
            return  # it left before it was met
        meeting = self._loop.connect_accepted_socket(self._protocol, client)
        task = self._loop.create_task(meeting)
        self._arriving.add(task)
        task.add_done_callback(self._arriving.discard)

    def _protocol(self) -> Connection:
        return Connection(self._app, self._connections)

    async def _drop_all(self) -> None:
        while self._arriving or self._connections:
            for connection in list(self._connections):
                connection.abort()
            await asyncio.sleep(0)
        # The answers that were cancelled just now, and those that end since their client has gone.
        answering = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*answering, return_exceptions=True)
