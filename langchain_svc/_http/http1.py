"""The answers that come over one HTTP/1.1 connection, without I/O.

llhttp reads them, in its strict form. This module adds what a client must know beside the grammar:
which answer belongs to the request, and whether the connection may carry another one. Nothing of
an answer stands in the text of an error.
"""

from __future__ import annotations

import httptools

_LONGEST_HEAD = (
    100 * 1024
)  # bytes in a row that hold nothing of a body: heads, trailers, sizes
_MOST_ANNOUNCED = 100  # answers of status 1xx before the one that counts
_START = b"HTTP/"
_FRAMING = (b"content-length", b"transfer-encoding")
_NO_HTTP = "the server spoke no valid HTTP"


class BadAnswerError(Exception):
    """What came is not an answer of HTTP/1.1, or only a part of one."""


class AnswerReader:
    """Reads one answer after another: `begin`, then `feed` until `done`.

    Attributes:
        status: The status of the answer.
        headers: Its headers, names and values as they were sent.
        has_head: Whether both are here.
        done: Whether the whole answer is here.
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.has_head = False
        self.done = True
        self._keep = True
        self._fault: str | None = None
        self._until_closed = False

    def begin(self) -> None:
        """A request was sent: an answer is to come."""
        # One for each answer: what came too much can then never be read as the next one.
        self._parser = httptools.HttpResponseParser(self)
        # A length beside chunks is passed over, as RFC 9112 says; the connection is not reused.
        self._parser.set_dangerous_leniencies(lenient_chunked_length=True)
        self._start = b""
        self._body: list[bytes] = []
        self._barren = self._announced = 0
        self.headers = []
        self.has_head = self.done = False

    def feed(self, data: bytes) -> bytes:
        """What the data adds to the body; what is wrong behind that is for `check` to raise."""
        if self.done or self._fault:
            # It belongs to no answer. Empty lines are none, and llhttp passes over them, too.
            self._keep = self._keep and not data.strip(b"\r\n")
            return b""
        if len(self._start) < len(_START):
            self._start += data[: len(_START) - len(self._start)]
            if not _START.startswith(self._start):  # llhttp takes RTSP, too
                self._refuse(_NO_HTTP)
                return b""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fault = "the server changed to another protocol"
        except httptools.HttpParserError:
            self._refuse(_NO_HTTP)
        self._barren = 0 if self._body else self._barren + len(data)
        if self._barren > _LONGEST_HEAD:
            self._refuse("the server sent a head or trailer without an end")
        if not self._body:
            return b""
        parts, self._body = self._body, []
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _refuse(self, fault: str) -> None:
        """What came is wrong, unless the answer was over: then the connection is."""
        self._keep = False
        if not self.done:
            self._fault = self._fault or fault

    def end(self, *, cut: bool = False) -> None:
        """The other side has closed; or the way to it was cut, perhaps by somebody else."""
        if self._until_closed and not (cut or self._fault):
            self.done = True
        self._refuse("the server broke off")

    def check(self) -> None:
        """Raise what was found wrong.

        Raises:
            BadAnswerError: The answer cannot go on.
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
            self._keep = False  # an answer that nobody asked for

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.has_head:  # trailers count for nothing
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        if self.done or self._fault:
            return
        self.status = self._parser.get_status_code()
        framing = dict.fromkeys(_FRAMING, b"")
        for name, value in self.headers:
            if (known := name.lower()) in framing:
                framing[known] += b"," + value
        sized, coding = framing.values()
        if self.status < 200:
            self._check_announcement(sized + coding)
            return
        self.has_head = True
        # A length beside chunks may be an attempt to smuggle, and HTTP/1.0 knew neither well.
        sound = self._parser.get_http_version() == "1.1" and not (coding and sized)
        self._keep = self._keep and sound and self._parser.should_keep_alive()
        self._until_closed = not coding and not sized
        if coding and coding[1:].strip().lower() != b"chunked":
            self._fault = "the server used an unknown transfer coding"

    def _check_announcement(self, framing: bytes) -> None:
        """Refuse a head that announces an answer and frames a body, which it cannot have."""
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
