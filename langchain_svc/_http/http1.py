"""One HTTP/1.1 connection without its I/O: TLS, the request, and the responses inside it.

llhttp reads them, in its strict form. This module adds what a client must know beside the grammar:
which response belongs to the request, and whether the connection may carry another one. The text
of an error repeats nothing of a response.
"""

from __future__ import annotations

import select
import socket
import ssl
from typing import NamedTuple

import httptools

# -- TLS, and what a connection may do -------------------------------------------------------------

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


# -- the responses --------------------------------------------------------------------------------

# Bytes in a row that hold nothing of a body: heads, trailers, sizes.
_LONGEST_HEAD = 100 * 1024
_MOST_ANNOUNCED = 100  # responses of status 1xx before the one that counts
_START = b"HTTP/"
_NO_HTTP = "the server spoke no valid HTTP"


class BadAnswerError(Exception):
    """What came is no response of HTTP/1.1, or only a part of one."""


class ResponseDecoder:
    """Decodes one response after another: `start_response`, then `decode` until `done`.

    Attributes:
        status: The status of the response.
        headers: Its headers, names and values as they were sent.
        has_head: Whether both are here.
        done: Whether the whole response is here.
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.has_head = False
        self.done = True
        self._keep = True
        self._fault: str | None = None
        self._until_closed = False

    def start_response(self) -> None:
        """A request was sent: its response is to come."""
        # A parser for each response: surplus bytes can then never be read as the next one.
        self._parser = httptools.HttpResponseParser(self)
        # A length beside chunks is passed over, as RFC 9112 says; the connection is not reused.
        self._parser.set_dangerous_leniencies(lenient_chunked_length=True)
        self._start = b""
        self._body: list[bytes] = []
        self._bytes_without_body = 0
        self._announced = 0
        self.headers = []
        self.has_head = False
        self.done = False

    def decode(self, data: bytes) -> bytes:
        """The part of the body in the data; `check` raises a fault that stands behind it."""
        if self.done or self._fault:
            # The data belongs to no response, and ends the use of the connection. Empty lines do
            # not: llhttp passes over them, too.
            self._keep = self._keep and not data.strip(b"\r\n")
            return b""
        if len(self._start) < len(_START):
            self._start += data[: len(_START) - len(self._start)]
            if not _START.startswith(self._start):  # llhttp reads RTSP, too
                self._refuse(_NO_HTTP)
                return b""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fault = "the server changed to another protocol"
        except httptools.HttpParserError:
            self._refuse(_NO_HTTP)
        if self._body:
            self._bytes_without_body = 0
            body = b"".join(self._body)
            self._body = []
            return body
        self._bytes_without_body += len(data)
        if self._bytes_without_body > _LONGEST_HEAD:
            self._refuse("the server sent a head or trailer without an end")
        return b""

    def _refuse(self, fault: str) -> None:
        """Note a fault of the response, or of the connection alone if the response was over."""
        self._keep = False
        if not self.done:
            self._fault = self._fault or fault

    def close(self, *, cut: bool = False) -> None:
        """The other side has closed; or the connection was cut, perhaps by a third party."""
        if self._until_closed and not (cut or self._fault):
            self.done = True
        self._refuse("the server broke off")

    def check(self) -> None:
        """Raise the fault that was noted.

        Raises:
            BadAnswerError: The response cannot go on.
        """
        if self._fault is not None:
            raise BadAnswerError(self._fault)

    @property
    def reusable(self) -> bool:
        """Whether the connection may carry another request."""
        return self.done and self._keep and self._fault is None

    # -- what httptools calls ---------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self.done:
            self._keep = False  # no request asked for this response

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.has_head:  # trailers count for nothing
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self.done or self._fault:
            return
        self.status = self._parser.get_status_code()
        length = b""
        coding = b""
        for name, value in self.headers:
            lowered = name.lower()
            if lowered == b"content-length":
                length += b"," + value
            elif lowered == b"transfer-encoding":
                coding += b"," + value
        if self.status < 200:
            self._check_announcement(length + coding)
            return
        self.has_head = True
        # A length beside chunks may be an attempt to smuggle, and HTTP/1.0 knew neither well.
        is_sound = self._parser.get_http_version() == "1.1" and not (coding and length)
        self._keep = self._keep and is_sound and self._parser.should_keep_alive()
        self._until_closed = not coding and not length
        if coding and coding[1:].strip().lower() != b"chunked":
            self._fault = "the server used an unknown transfer coding"

    def _check_announcement(self, framing: bytes) -> None:
        """Refuse a head that announces a response and frames a body, which it cannot have."""
        if framing or self.status < 100:
            self._refuse(_NO_HTTP)

    def on_body(self, data: bytes) -> None:
        if self.has_head and not self.done and self._fault is None:
            self._body.append(data)

    def on_message_complete(self) -> None:
        if self.has_head:
            self.done = self._fault is None
            return
        self._announced += 1
        self.headers = []
        if self._announced > _MOST_ANNOUNCED:
            self._fault = "the server only announces answers"
