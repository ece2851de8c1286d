"""One connection without its I/O: TLS, and the responses inside it.

A blocking connection and one on an event loop use the same.
"""

from __future__ import annotations

import select
import socket
import ssl
from typing import NamedTuple

from .http1 import ResponseDecoder

_DECRYPTED = 64 * 1024
# Bytes before each TLS record (RFC 8446, section 5.1); the last two are the record's length.
_HEADER = 5


class Tls:
    """Encrypts what is sent and decrypts what arrives: `handshake` first, until it is `ready`."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._object = context.wrap_bio(
            self._incoming, self._outgoing, server_hostname=host
        )
        self.ready = False
        self.closed = False  # the other side has announced that nothing follows
        # Of the record that is under way: its header, if only a part of that is here, or the
        # number of bytes that are still to come.
        self._partial_header = b""
        self._missing_bytes = 0

    def handshake(self, data: bytes) -> bytes:
        """The bytes to send next, in answer to the data.

        Raises:
            ssl.SSLError: The other side cannot prove who it is, or speaks no TLS that we accept.
        """
        self._receive(data)
        try:
            self._object.do_handshake()
            self.ready = True
        except ssl.SSLWantReadError:
            pass
        return self._outgoing.read()

    def _receive(self, data: bytes) -> None:
        self._incoming.write(data)
        # OpenSSL does not tell whether a part of a record is here, so we follow their lengths.
        data = self._partial_header + data
        end = self._missing_bytes
        while end + _HEADER <= len(data):
            end += _HEADER + int.from_bytes(data[end + 3 : end + _HEADER], "big")
        self._partial_header = data[end:]
        self._missing_bytes = max(0, end - len(data))

    @property
    def whole(self) -> bool:
        """Whether no part of a further record is here, which would begin another response."""
        return not self._missing_bytes and not self._partial_header

    def encrypt(self, data: bytes) -> bytes:
        """The bytes to send for the data, and for TLS itself, as after a change of keys."""
        view = memoryview(data)
        while view:
            view = view[self._object.write(view) :]
        return self._outgoing.read()

    def decrypt(self, data: bytes) -> bytes:
        """The text of the data.

        Raises:
            ssl.SSLError: The other side gave up, or the data is not what it sent.
        """
        self._receive(data)
        parts: list[bytes] = []
        try:
            while part := self._object.read(_DECRYPTED):
                parts.append(part)
            self.closed = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            # The parts before the error count; the next call raises it again.
            if not parts:
                raise
        return b"".join(parts)


class Origin(NamedTuple):
    """The host and port to connect to; with a context over TLS."""

    host: str
    port: int
    tls: ssl.SSLContext | None


class BaseConnection:
    """What both kinds of connections share: a handshake until `ready`, then the responses."""

    _socket: socket.socket

    def __init__(self, origin: Origin) -> None:
        self.response = ResponseDecoder()
        self.idle_since = 0.0
        self._body_start = b""  # the part of the body that came with the head
        self._tls: Tls | None = None
        self._unsent = b""
        if origin.tls is not None:
            self._tls = Tls(origin.tls, origin.host)
            # The handshake's last part is sent with the first request, which saves a packet.
            self._unsent = self._tls.handshake(b"")

    @property
    def ready(self) -> bool:
        """Whether requests may be sent."""
        return self._tls is None or self._tls.ready

    def continue_handshake(self, data: bytes) -> None:
        """Go on with the handshake by what the other side has sent.

        Raises:
            ssl.SSLError: It failed.
            ConnectionResetError: The other side closed the connection.
        """
        if not data:
            raise ConnectionResetError("the other side closed the connection")
        assert self._tls is not None  # noqa: S101  # else there is no handshake
        self._unsent = self._tls.handshake(data)

    def outgoing(self, data: bytes) -> bytes:
        """The bytes to send for some data, and for what TLS has to send before it."""
        if self._tls is not None:
            data = self._unsent + self._tls.encrypt(data)
            self._unsent = b""
        return data

    def decode(self, data: bytes) -> bytes:
        """The part of the response's body in the data."""
        if self._tls is None:
            return self.response.decode(data)
        body = self.response.decode(self._tls.decrypt(data))
        if self._tls.closed:
            self.response.close()
        return body

    def decode_received(self, data: bytes) -> bytes:
        """The same for data from the socket, where no data is the end of the connection."""
        if data:
            return self.decode(data)
        # An end that TLS has not announced may be an attacker's (RFC 9112, section 9.8).
        cut = self._tls is not None and not self._tls.closed
        self.response.close(cut=cut)
        return b""

    @property
    def reusable(self) -> bool:
        """Whether the response ended so that another may follow, and no byte came behind it."""
        return self.response.reusable and (self._tls is None or self._tls.whole)

    @property
    def usable(self) -> bool:
        """Whether another request may be sent: the socket has no data, and no end either."""
        if not self.reusable:
            return False
        if not hasattr(select, "poll"):  # Windows
            return not select.select([self._socket], [], [], 0)[0]
        poll = select.poll()  # select refuses descriptors above 1,023
        poll.register(self._socket.fileno(), select.POLLIN)
        return not poll.poll(0)
