"""One connection without its I/O: TLS, and the answers inside it.

A blocking connection and one on an event loop use the same.
"""

from __future__ import annotations

import select
import socket
import ssl
from typing import NamedTuple

from .http1 import AnswerReader

_DECRYPTED = 64 * 1024
_HEAD = (
    5  # bytes before each record (RFC 8446, section 5.1); the last two are its length
)


class Tls:
    """Encrypts what is sent and decrypts what came: `handshake` first, until it is `ready`."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._came, self._going = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._came, self._going, server_hostname=host)
        self.ready = self.closed = (
            False  # closed: the other side has said that nothing follows
        )
        self._head, self._owed = b"", 0  # of the record that is under way

    def handshake(self, data: bytes) -> bytes:
        """What is to be sent next, in answer to what came.

        Raises:
            ssl.SSLError: The other side cannot prove who it is, or speaks no TLS that we accept.
        """
        self._take(data)
        try:
            self._object.do_handshake()
            self.ready = True
        except ssl.SSLWantReadError:
            pass
        return self._going.read()

    def _take(self, data: bytes) -> None:
        self._came.write(data)
        # OpenSSL does not tell of a record that has come in part.
        data, end = self._head + data, self._owed
        while end + _HEAD <= len(data):
            end += _HEAD + int.from_bytes(data[end + 3 : end + _HEAD], "big")
        self._head, self._owed = data[end:], max(0, end - len(data))

    @property
    def whole(self) -> bool:
        """Whether nothing came of a further record, which would be the beginning of an answer."""
        return not self._owed and not self._head

    def encrypt(self, data: bytes) -> bytes:
        """What is to be sent instead of the data, and for TLS itself, as after a change of keys."""
        view = memoryview(data)
        while view:
            view = view[self._object.write(view) :]
        return self._going.read()

    def decrypt(self, data: bytes) -> bytes:
        """What the data says.

        Raises:
            ssl.SSLError: The other side gave up, or what came is not what it sent.
        """
        self._take(data)
        parts: list[bytes] = []
        try:
            while part := self._object.read(_DECRYPTED):
                parts.append(part)
            self.closed = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            if not parts:  # else what came before it counts; the next call raises
                raise
        return parts[0] if len(parts) == 1 else b"".join(parts)


class Origin(NamedTuple):
    """What is connected to; with a context over TLS."""

    host: str
    port: int
    tls: ssl.SSLContext | None


class BaseConnection:
    """What both kinds of connections are: `shake` until `ready`, then one answer after another."""

    _socket: socket.socket

    def __init__(self, origin: Origin) -> None:
        self.answer = AnswerReader()
        self.idle_since = 0.0
        self._first = b""  # of the body, which came with the head
        self._tls = None if origin.tls is None else Tls(origin.tls, origin.host)
        # The handshake's last part is sent with the first request; a packet is saved.
        self._unsent = b"" if self._tls is None else self._tls.handshake(b"")

    @property
    def ready(self) -> bool:
        """Whether requests may be sent."""
        return self._tls is None or self._tls.ready

    def shake(self, data: bytes) -> None:
        """Go on with the handshake, with what came.

        Raises:
            ssl.SSLError: It failed.
            ConnectionResetError: The other side closed the connection.
        """
        if not data:
            raise ConnectionResetError("the other side closed the connection")
        assert self._tls is not None  # noqa: S101  # else there is no handshake
        self._unsent = self._tls.handshake(data)

    def outgoing(self, data: bytes) -> bytes:
        """What is sent for some data, and for what TLS has to say before it."""
        if self._tls is not None:
            data, self._unsent = self._unsent + self._tls.encrypt(data), b""
        return data

    def feed(self, data: bytes) -> bytes:
        """What the data adds to the body of the answer."""
        if self._tls is None:
            return self.answer.feed(data)
        body = self.answer.feed(self._tls.decrypt(data))
        if self._tls.closed:
            self.answer.end()
        return body

    def hear(self, data: bytes) -> bytes:
        """The same of what was read; nothing is the end, unless TLS did not announce it."""
        if data:
            return self.feed(data)
        cut = self._tls is not None and not self._tls.closed  # RFC 9112, section 9.8
        self.answer.end(cut=cut)
        return b""

    @property
    def reusable(self) -> bool:
        """Whether the answer ended as one after which another may come, and nothing behind it."""
        return self.answer.reusable and (self._tls is None or self._tls.whole)

    @property
    def usable(self) -> bool:
        """Whether another request may be sent: nothing came, not even the end."""
        if not self.reusable:
            return False
        if not hasattr(select, "poll"):  # Windows
            return not select.select([self._socket], [], [], 0)[0]
        poll = select.poll()  # a descriptor above 1,023 is more than select takes
        poll.register(self._socket.fileno(), select.POLLIN)
        return not poll.poll(0)
