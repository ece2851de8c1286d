"""One raw socket server for a whole matrix: each cell has its own script and its own count.

The first part of a request's path says which cell it belongs to, so that hundreds of cells run at
the same time on one listening socket. A script is a list of steps; bytes are sent as they are.
"""

from __future__ import annotations

import contextlib
import enum
import itertools
import socket
import struct
import time
from dataclasses import dataclass, field

from peers import RawServer, read_request

LONGEST_HOLD = 20.0  # seconds after which a silent connection is closed whatever happens
CHUNKED = "Transfer-Encoding: chunked"
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


class End(enum.Enum):
    HOLD = "say nothing more until the other side leaves"
    CLOSE = "end the connection in order"
    RESET = "end it with a TCP reset"


HOLD, CLOSE, RESET = End


@dataclass
class Cell:
    """What one cell's peer says, and what it saw.

    `scripts` are played in turn, the last of them again and again; when `healthy` is set, `good`
    is played instead. Each is called at the moment of the request and gives the steps.
    """

    scripts: list
    good: object
    healthy: bool = False
    requests: list = field(default_factory=list)
    connections: set = field(default_factory=set)  # open ones
    busy: set = field(default_factory=set)  # those that are not waiting for a request
    sent: int = 0  # bytes

    def script(self):
        if self.healthy:
            return self.good()
        return self.scripts[min(len(self.requests), len(self.scripts)) - 1]()


class Peer(RawServer):
    """The server of all cells."""

    def __init__(self):
        super().__init__(None)
        self.cells = {}
        self._numbers = itertools.count(1)

    def add(self, cell):
        """The URL at which this cell is served."""
        name = f"c{next(self._numbers)}"
        self.cells[name] = cell
        return f"{self.url}/{name}"

    def _serve(self, connection):
        cell = None
        with contextlib.suppress(OSError), connection:
            connection.settimeout(LONGEST_HOLD)
            if connection.recv(1, socket.MSG_PEEK) == _TLS_HELLO:
                connection.sendall(head("400 Bad Request", "Content-Length: 0"))
                return
            while request := read_request(connection):
                cell = self.cells[request.split(b"/")[1].decode()]
                cell.connections.add(connection)
                cell.requests.append(request)
                cell.busy.add(connection)
                if not _play(cell, connection):
                    break
                cell.busy.discard(connection)
        if cell is not None:
            cell.busy.discard(connection)
            cell.connections.discard(connection)


def _play(cell, connection):
    """Performs a script; gives whether the connection goes on after it."""
    for step in cell.script():
        if step is HOLD:
            connection.recv(1)
        if step is RESET:
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        if isinstance(step, End):
            return False
        if isinstance(step, float):
            time.sleep(step)
            continue
        for data in _pieces(step):
            connection.sendall(data)
            cell.sent += len(data)
    return True


def _pieces(step):
    if isinstance(step, Flood):
        yield from itertools.repeat(step.data, step.size // len(step.data))
    elif isinstance(step, Drip):
        end = time.monotonic() + LONGEST_HOLD
        starts = itertools.cycle(range(0, len(step.data), step.step))
        while time.monotonic() < end:
            at = next(starts)
            yield step.data[at : at + step.step]
            time.sleep(step.every)
    else:
        yield step


def response(body=b"", status="200 OK", *headers, version="1.1", length=None):
    """The bytes of a whole response that leaves its connection open."""
    size = len(body) if length is None else length
    return head(status, *headers, f"Content-Length: {size}", version=version) + body


def head(status="200 OK", *headers, version="1.1"):
    """The bytes of a response's head."""
    lines = [f"HTTP/{version} {status}", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1")
