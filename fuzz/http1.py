"""What the reader of HTTP/1.1 answers holds to: h11, another reader, says the same of them.

We may refuse more than h11 does, and a connection may be closed that h11 would use again. What we
accept, h11 accepts, except for the reasons of `_STRICTER`.
"""

from __future__ import annotations

import re
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache

import h11
import trustme

from langchain_svc._http.http1 import (
    BadAnswerError,
    BaseConnection,
    Origin,
    ResponseDecoder,
)

from .draw import Draw, cut_bytes

_LONGEST = 100 * 1024
_ANSWER = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"

HTTP1_PIECES = (
    "HTTP/1.1 200 OK\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 103 Early\r\nLink: a\r\n\r\n",
    "HTTP/1.1 199 E\r\nContent-Length: 2\r\n\r\nhi",
    "HTTP/1.1 150 E\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n", "HTTP/1.1 1", "HTTP/1.1 0",
    "HTTP/1.0 200 OK\r\n",
    "HTTP/1.1 204 No\r\n", "HTTP/1.1 304 No\r\n", "HTTP/1.1 101 S\r\n", "HTTP/1.1 ", "200", "99", "099", "1000",
    "500 Oops\r\n", "HTTP/",
    "HTTP/0.9 ", "HTTP/2.0 ", "HTTP/1.2 ", "HTTP/1.10 ", "http/1.1 ", "ICY ", "RTSP/1.0 200 OK\r\n",
    "ICE/1.0 200 OK\r\n", "GET / HTTP/1.1\r\n",
    "\r\n", "\n", "\r", "\r\n\r\n", "\n\n", "\r\r\n", "\0", "\t", " ", "  ", ":", ";", ",", '"', "=", "\x0b", "\x7f",
    "\x85", "\u00ff", "a", "-", "+", "_",
    "Content-Length: ", "content-length:", "CONTENT-LENGTH : ", "Content-Length: 2\r\n", "Content-Length: 5\r\n",
    "Content-Length: 0\r\n",
    "Content-Length: 2, 2\r\n", "Content-Length: -1\r\n", "Content-Length: +2\r\n", "Content-Length: 0x2\r\n",
    "Content-Length: 99999999999999999999\r\n",
    "Content-Length: 18446744073709551616\r\n", "Content-Length\r\n", "Content_Length: 9\r\n",
    "Content-Length: 2;a\r\n", "Content-Length: \r\n",
    "Transfer-Encoding: chunked\r\n", "transfer-encoding:CHUNKED\r\n", "Transfer-Encoding: identity\r\n",
    "Transfer-Encoding: gzip\r\n",
    "Transfer-Encoding: gzip, chunked\r\n", "Transfer-Encoding: chunked, identity\r\n",
    "Transfer-Encoding: xchunked\r\n", "Transfer-Encoding: \x0bchunked\r\n",
    "Transfer-Encoding: chunked;a=b\r\n", "Transfer-Encoding:\tchunked \r\n", "Transfer-Encoding : chunked\r\n",
    "Transfer-Encoding: \r\n chunked\r\n", "TE: x\r\n",
    "Connection: close\r\n", "Connection: keep-alive\r\n", "Connection: close, keep-alive\r\n",
    "connection: x, CLOSE\r\n", "Keep-Alive: timeout=5\r\n", "Proxy-Connection: close\r\n",
    "Connection: upgrade\r\n", "Upgrade: h2c\r\n", "Trailer: X\r\n", "X: y\r\n", "X:\r\n", "X: a\r\n b\r\n",
    " folded\r\n", "\tfolded\r\n", ": none\r\n", "X Y: z\r\n", "X\0: z\r\n",
    "0\r\n", "0\r\n\r\n", "2\r\nhi\r\n", "2\r\nhi", "5\r\nhello\r\n", "A\r\n0123456789\r\n", "a\r\n0123456789\r\n",
    "2;x=y\r\nhi\r\n", '2;x="y;\r\n"\r\nhi\r\n', "2 ;x\r\nhi\r\n", "2\nhi\n",
    "2\r\nhi\n", "0x2\r\nhi\r\n", "+2\r\nhi\r\n", "-2\r\nhi\r\n", " 2\r\nhi\r\n", "02\r\nhi\r\n",
    "00000000000000000000000002\r\nhi\r\n", "FFFFFFFFFFFFFFFF\r\n", "10000000000000002\r\nhi\r\n",
    "0\r\nX: y\r\n\r\n", "0\r\nContent-Length: 9\r\n\r\n", "0;a\r\n\r\n", "000\r\n\r\n", "0\r\nX y\r\n\r\n", "0\n\n",
    "hi", "hello", "<html>", _ANSWER,
)  # fmt: skip

# Heads that are right, so that a search soon comes to bodies, and whole answers before others.
STARTS = (
    "", "", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n",
    "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
    "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n", _ANSWER, "HTTP/1.1 100 Continue\r\n\r\n",
)  # fmt: skip

# Where we accept what h11 refuses: what h11 says, and what was sent. The sections are of RFC 9112.
_ANNOUNCED = r"HTTP/1\.\d 1\d\d (?s:.*?)\r\n\r\n"
_STRICTER = (
    # 4: what stands behind the status is ignored.
    (r"illegal status line", r"HTTP/1\.1 \d{3} [^\r\n]*[^\t -~\x80-\xff]"),
    # 7.1: a size is any number of digits; llhttp bounds its value and h11 their number.
    (r"illegal chunk header: bytearray\(b'0", r"\r\n0{5,}"),
    # 7.1.2: trailers count for nothing here, so that nothing they say of lengths is looked at.
    (r"Transfer-Encoding|Content-Length", r"\r\n0+(;.*?)?\r\n"),
    # 2.2: empty lines before a message are passed over; h11 knows none before an answer.
    (r"no response line received|illegal status line", _ANNOUNCED + r"[\r\n]+HTTP/"),
    # 2.3: llhttp reads these names, too; we look at the first line, and not behind announcements.
    (r"illegal status line", _ANNOUNCED + r"[\r\n]*(RTSP|ICE)/"),
)


@dataclass
class _Said:
    """What one reader makes of an answer."""

    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""
    done: bool = False
    reusable: bool = False
    fault: str = ""


def http1(data: bytes) -> None:
    """An answer is what h11 says it is, however its bytes are cut."""
    draw = Draw(data)
    how, closed = draw.byte(), draw.byte() % 2 == 1
    sent = draw.one_of(STARTS).encode() + draw.body(HTTP1_PIECES, 2_000)
    text = sent.decode("latin-1")
    ours = _ours([sent], closed=closed)
    for parts in (cut_bytes(sent, 1), [b"", *cut_bytes(sent, how + 2)]):
        assert _ours(parts, closed=closed) == ours, "another answer by other cuts"
    theirs, surplus = _theirs(sent, closed=closed)
    if ours.fault or not ours.status:
        assert not ours.done
        assert not ours.reusable
        return
    if theirs.fault:
        known = any(
            re.search(f, theirs.fault) and re.search(w, text) for f, w in _STRICTER
        )
        assert known, f"h11 refuses it: {theirs.fault}"
        return
    assert ours.status == theirs.status, "another status"
    assert _plain(ours.headers) == _plain(theirs.headers), "other headers"
    assert ours.body == theirs.body, "another body"
    assert ours.done == theirs.done, "another end"
    if ours.reusable:
        assert theirs.reusable, "h11 would close it"
        assert not surplus.strip(b"\r\n"), "reusable, though more came"


def records(data: bytes) -> None:
    """An answer inside TLS is what it is outside, and half a record behind it belongs to none."""
    draw = Draw(data)
    how, behind, cut = draw.byte(), draw.byte() % 2 == 1, draw.byte()
    sound = draw.byte() % 2 == 0  # else a connection is hardly ever reusable
    sent = (_ANSWER if sound else draw.one_of(STARTS)).encode()
    sent += b"" if sound else draw.body(HTTP1_PIECES, 500)
    line, server, going = _secured()
    line.response.start_response()
    for part in cut_bytes(sent, how):
        server.write(part)
    wire = going.read()
    if behind:
        server.write(_ANSWER.encode())
        forged = going.read()
        wire += forged[: 1 + cut % (len(forged) - 1)]
    outside = _ours([sent], closed=False)
    body = b"".join(line.decode(part) for part in cut_bytes(wire, cut + 2))
    reader = line.response
    assert body == outside.body, "another body inside TLS"
    assert reader.done == outside.done, "another end inside TLS"
    assert line.reusable == (outside.reusable and not behind), (
        "reusable, though half a record came"
    )


@lru_cache(maxsize=1)
def _contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    authority = trustme.CA(key_type=trustme.KeyType.ECDSA)
    server, client = (
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER),
        ssl.create_default_context(),
    )
    authority.issue_cert("h", key_type=trustme.KeyType.ECDSA).configure_cert(server)
    authority.configure_trust(client)
    return server, client


def _secured() -> tuple[BaseConnection, ssl.SSLObject, ssl.MemoryBIO]:
    """A connection behind its handshake, and the other side of it."""
    for_server, for_client = _contexts()
    came, going = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = for_server.wrap_bio(came, going, server_side=True)
    line = BaseConnection(Origin("h", 443, for_client))
    while not line.ready:
        came.write(line.outgoing(b""))
        with suppress(ssl.SSLWantReadError):
            server.do_handshake()
        line.continue_handshake(going.read())
    came.write(line.outgoing(b""))
    server.do_handshake()
    return line, server, going


def _plain(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    # h11 writes the one coding that it knows small.
    plain = [(name.lower(), value.strip(b" \t")) for name, value in headers]
    return [(n, v.lower() if n == b"transfer-encoding" else v) for n, v in plain]


def _ours(parts: list[bytes], *, closed: bool) -> _Said:
    reader, said = ResponseDecoder(), _Said()
    reader.start_response()
    for part in parts:
        said.body += reader.decode(part)
    if closed:
        reader.close()
    try:
        reader.check()
    except BadAnswerError as error:
        said.fault = str(error)
    said.done, said.reusable = reader.done, reader.reusable
    if reader.has_head:
        said.status, said.headers = reader.status, reader.headers
    return said


def _theirs(sent: bytes, *, closed: bool) -> tuple[_Said, bytes]:
    reader, said = h11.Connection(h11.CLIENT, _LONGEST), _Said()
    reader.send(h11.Request(method="GET", target="/", headers=[("Host", "h")]))
    reader.send(h11.EndOfMessage())
    reader.receive_data(sent)
    try:
        _listen(reader, said)
        if closed and not said.done:
            reader.receive_data(b"")
            _listen(reader, said)
    except h11.RemoteProtocolError as error:
        said.fault = str(error)
    said.reusable = reader.their_state is reader.our_state is h11.DONE and not closed
    return said, reader.trailing_data[0]


def _listen(reader: h11.Connection, said: _Said) -> None:
    while not said.done:
        event = reader.next_event()
        if event is h11.NEED_DATA:
            return
        if event is h11.PAUSED or isinstance(event, h11.ConnectionClosed):
            said.fault = "it ended or changed the protocol"
            return
        if isinstance(event, h11.Response):
            said.status, said.headers = event.status_code, list(event.headers)
        elif isinstance(event, h11.Data):
            said.body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage):
            said.done = True
