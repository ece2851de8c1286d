"""One raw socket server for a whole matrix: each cell has its own script and its own count.

The first part of a request's path says which cell it belongs to, so that hundreds of cells run at
the same time on one listening socket. A script is a list of steps; bytes are sent as they are.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import struct
import threading
import time
from dataclasses import dataclass, field

LONGEST_HOLD = 20.0  # seconds after which a silent connection is closed whatever happens
_PIECE = 65_536
_TLS_HELLO = b"\x16"


@dataclass(frozen=True)
class Drip:
    """Sends the data one byte at a time (or `step` bytes), and again from its start for ever."""

    data: bytes
    every: float = 0.05
    step: int = 1


@dataclass(frozen=True)
class Flood:
    """Sends so many bytes as fast as they are taken."""

    size: int
    data: bytes = b" " * _PIECE


class _Mark:
    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return self.name


HOLD = _Mark("HOLD")  # say nothing more until the other side leaves
CLOSE = _Mark("CLOSE")  # end the connection in order
RESET = _Mark("RESET")  # end it with a TCP reset


@dataclass
class Cell:
    """What one cell's peer says, and what it saw.

    `scripts` are played in turn, the last of them again and again; when `good` is set, that is
    played instead. Each is called at the moment of the request and gives the steps.
    """

    scripts: list
    good: object
    healthy: bool = False
    requests: list = field(default_factory=list)
    connections: int = 0  # open ones
    busy: int = 0  # those that are not waiting for a request
    sent: int = 0  # bytes

    def script(self):
        if self.healthy:
            return self.good()
        return self.scripts[min(len(self.requests), len(self.scripts)) - 1]()


class Peer:
    """The server, on a thread and an event loop of its own."""

    def __init__(self):
        self.cells = {}
        self.accepted = 0
        self._numbers = itertools.count(1)
        self._tasks = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self._socket.getsockname()[1]

    def __enter__(self):
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(self, *_):
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def add(self, cell):
        """The URL at which this cell is served."""
        name = f"c{next(self._numbers)}"
        self.cells[name] = cell
        return f"http://127.0.0.1:{self.port}/{name}"

    async def _start(self):
        self._server = await asyncio.start_server(self._serve, sock=self._socket, limit=_PIECE)

    async def _stop(self):
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self._tasks.add(task)
        self.accepted += 1
        cell = busy = None
        try:
            while True:
                first = await reader.readexactly(1)
                if first == _TLS_HELLO:
                    writer.write(head("400 Bad Request", "Content-Length: 0"))
                    break
                name, request = await _read_request(first, reader)
                if cell is None:
                    cell = self.cells[name]
                    cell.connections += 1
                cell.requests.append(request)
                busy = cell
                cell.busy += 1
                if await _play(cell, reader, writer) is CLOSE:
                    break
                cell.busy, busy = cell.busy - 1, None
        except (OSError, EOFError, KeyError, asyncio.LimitOverrunError, asyncio.CancelledError):
            pass  # the other side left, or sent what is no request of a cell
        finally:
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()
            self._tasks.discard(task)
            if cell is not None:
                cell.connections -= 1
            if busy is not None:
                cell.busy -= 1


async def _read_request(first, reader):
    head = first + await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    body = await reader.readexactly(length) if length else b""
    return head.split(b" ", 2)[1].split(b"/")[1].decode(), head + body


async def _play(cell, reader, writer):
    """Performs a script; gives CLOSE when the connection must end after it."""
    for step in cell.script():
        if step is HOLD:
            with contextlib.suppress(TimeoutError, asyncio.TimeoutError):
                await asyncio.wait_for(reader.read(1), LONGEST_HOLD)
            return CLOSE
        if step is RESET:
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
            return CLOSE
        if step is CLOSE:
            return CLOSE
        if isinstance(step, float):
            await asyncio.sleep(step)
        elif isinstance(step, Drip):
            await _drip(step, cell, writer)
        elif isinstance(step, Flood):
            for _ in range(step.size // len(step.data)):
                await _send(cell, writer, step.data)
        else:
            await _send(cell, writer, step)
    return None


async def _drip(step, cell, writer):
    end = time.monotonic() + LONGEST_HOLD
    parts = [step.data[i : i + step.step] for i in range(0, len(step.data), step.step)]
    for part in itertools.cycle(parts):
        await _send(cell, writer, part)
        await asyncio.sleep(step.every)
        if time.monotonic() > end:
            raise EOFError


async def _send(cell, writer, data):
    writer.write(data)
    await writer.drain()
    cell.sent += len(data)


def response(body=b"", status="200 OK", *headers, version="1.1", length=None):
    """The bytes of a whole response that leaves its connection open."""
    size = len(body) if length is None else length
    return head(status, *headers, f"Content-Length: {size}", version=version) + body


def head(status="200 OK", *headers, version="1.1"):
    """The bytes of a response's head."""
    lines = [f"HTTP/{version} {status}", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1")


def chunk(data):
    """One piece of a chunked body."""
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


LAST_CHUNK = b"0\r\n\r\n"
CHUNKED = "Transfer-Encoding: chunked"
