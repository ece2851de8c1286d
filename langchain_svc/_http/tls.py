"""TLS of one connection, without I/O: a blocking one and one on an event loop use the same."""

from __future__ import annotations

import ssl

_MOST = 64 * 1024
_HEAD = 5  # bytes before each record (RFC 8446, section 5.1); the last two are its length


class Tls:
    """Encrypts what is sent and decrypts what came: `handshake` first, until it is `ready`."""

    def __init__(self, context: ssl.SSLContext, host: str) -> None:
        self._came, self._going = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._object = context.wrap_bio(self._came, self._going, server_hostname=host)
        self.ready = self.closed = False  # closed: the other side has said that nothing follows
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
        at = 0
        while at < len(data):
            if self._owed:
                step = min(self._owed, len(data) - at)
                self._owed -= step
            else:
                step = _HEAD - len(self._head)
                self._head += data[at : at + step]
                if len(self._head) == _HEAD:
                    self._owed, self._head = int.from_bytes(self._head[3:], "big"), b""
            at += step

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
            while part := self._object.read(_MOST):
                parts.append(part)
            self.closed = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            if not parts:  # else what came before it counts; the next call raises
                raise
        return parts[0] if len(parts) == 1 else b"".join(parts)
