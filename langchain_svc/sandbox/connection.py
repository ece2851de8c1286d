"""One TCP connection under HTTP: what a fault may do to it, and whether the client has left."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from uvicorn.config import Config
    from uvicorn.server import ServerState

# The server's remarks about broken peers are noise in a test; a host application's own uvicorn
# loggers must not be reconfigured for it, so the protocol gets a logger that says nothing.
_SILENT = logging.getLogger("langchain_svc.sandbox.http")
_SILENT.setLevel(logging.CRITICAL + 1)

# l_onoff, l_linger: closing sends RST and drops what was not sent.
_LINGER_ZERO = struct.pack("ii", 1, 0)


class Connection:
    """The transport of one client, reachable from the ASGI scope."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._gone = asyncio.Event()

    @property
    def gone(self) -> bool:
        """Whether the connection is closed, by whichever side."""
        return self._gone.is_set()

    def mark_gone(self) -> None:
        """Take note that the connection is closed."""
        self._gone.set()

    async def wait(self, seconds: float | None) -> bool:
        """Let this much time pass (None: any); return at once, with True, when it is closed."""
        if seconds == 0:
            await asyncio.sleep(0)  # gives the loop a chance to see a client leave
        else:
            try:
                await asyncio.wait_for(self._gone.wait(), seconds)
            except asyncio.TimeoutError:
                return False
        return self.gone

    def write(self, data: bytes) -> None:
        """Send bytes past HTTP."""
        self._transport.write(data)

    def close(self) -> None:
        """Close in order, after what was written."""
        self._transport.close()

    def reset(self) -> None:
        """Send a TCP RST."""
        raw = self._transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
        self._transport.abort()


class Protocol(H11Protocol):
    """HTTP/1.1 that hands its connection to the application and keeps quiet."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, dict(app_state), _loop)
        self.logger = _SILENT
        self.access_log = False

    def connection_made(  # type: ignore[override]  # as in the class above: always TCP
        self, transport: asyncio.Transport
    ) -> None:
        """Make the connection part of every scope that comes from it."""
        super().connection_made(transport)
        # Pieces must leave when they are written, not when the last one is acknowledged. asyncio
        # does this only for sockets whose protocol number was spelled out.
        raw = transport.get_extra_info("socket")
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.app_state["connection"] = Connection(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell whoever is answering that nobody listens."""
        super().connection_lost(exc)
        self.app_state["connection"].mark_gone()
