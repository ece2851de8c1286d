"""One connection without its I/O: TLS, and the answers inside it."""

from __future__ import annotations

import ssl
from typing import NamedTuple

from .http1 import AnswerReader
from .tls import Tls


class Origin(NamedTuple):
    """What is connected to; with a context over TLS."""

    host: str
    port: int
    tls: ssl.SSLContext | None


class BaseConnection:
    """What both kinds of connections are: `shake` until `ready`, then one answer after another."""

    def __init__(self, origin: Origin) -> None:
        self.answer = AnswerReader()
        self.idle_since = 0.0
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
        data, self._unsent = self._unsent + self._encrypted(data), b""
        return data

    def _encrypted(self, data: bytes) -> bytes:
        return data if self._tls is None else self._tls.encrypt(data)

    def feed(self, data: bytes) -> bytes:
        """What the data adds to the body of the answer."""
        if self._tls is None:
            return self.answer.feed(data)
        body = self.answer.feed(self._tls.decrypt(data))
        if self._tls.closed:
            self.answer.end()
        return body

    def _ended(self) -> None:
        """The other side has closed, which counts for nothing where TLS did not announce it."""
        cut = self._tls is not None and not self._tls.closed  # RFC 9112, section 9.8
        self.answer.end(cut=cut)

    @property
    def reusable(self) -> bool:
        """Whether the answer ended as one after which another may come, and nothing behind it."""
        return self.answer.reusable and (self._tls is None or self._tls.whole)

    def rest(self, now: float) -> None:
        """It waits for the next request."""
        self.idle_since = now
