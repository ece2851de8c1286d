"""One connection without its I/O: the way to a host, TLS, and the answers inside it."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Generator
from dataclasses import dataclass, field

import httpx

from .http1 import AnswerReader, BadAnswerError
from .tls import Tls

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class ProxyRoute:
    """The way to a host, perhaps through a proxy; `tls` is how both prove who they are."""

    host: httpx.URL
    proxy: httpx.URL | None = field(repr=False)
    tls: ssl.SSLContext | None = field(repr=False)

    @property
    def first(self) -> tuple[str, int]:
        """The host and port that are connected to."""
        return _address(self.proxy or self.host)

    @property
    def forwards(self) -> bool:
        """Whether the proxy reads the requests and sends them on itself."""
        return self.proxy is not None and self.host.scheme == "http"

    @property
    def credentials(self) -> list[tuple[bytes, bytes]]:
        """The header with the name and password for the proxy, if it has one."""
        if self.proxy is None or not self.proxy.userinfo:
            return []
        both = f"{self.proxy.username}:{self.proxy.password}"
        return [(b"Proxy-Authorization", b"Basic " + base64.b64encode(both.encode()))]


def _address(url: httpx.URL) -> tuple[str, int]:
    return url.raw_host.decode("ascii"), url.port or _PORTS[url.scheme]


class BaseConnection:
    """What both kinds of connections are."""

    def __init__(self) -> None:
        self.answer = AnswerReader()
        self.idle_since = 0.0
        self._layers: list[Tls] = []  # that requests pass through, the outermost first
        self._unsent = b""  # what stands before the first request; a packet is saved

    def opening(self, route: ProxyRoute) -> Generator[bytes, bytes, None]:
        """Yields what to send before the first request, and takes what came after it.

        Raises:
            BadAnswerError: The proxy let nothing through: its status, or that it spoke no HTTP.
            ssl.SSLError: A handshake failed.
            ConnectionResetError: The other side closed the connection.
        """
        if route.proxy is not None and route.proxy.scheme == "https":
            yield from self._secure(route, route.proxy)
        if route.proxy is not None and not route.forwards:
            yield from self._connect(route)
        if route.host.scheme == "https":
            yield from self._secure(route, route.host)

    def _secure(self, route: ProxyRoute, url: httpx.URL) -> Generator[bytes, bytes, None]:
        assert route.tls is not None  # noqa: S101  # a route over TLS has it
        inner = Tls(route.tls, _address(url)[0])
        going = inner.handshake(b"")
        while not inner.ready:
            going = inner.handshake((yield from self._ask(going)))
        self._unsent += self._encrypted(going)
        self._layers.append(inner)

    def _connect(self, route: ProxyRoute) -> Generator[bytes, bytes, None]:
        host, port = _address(route.host)
        place = b"%b:%d" % (f"[{host}]".encode() if ":" in host else host.encode(), port)
        lines = [b"CONNECT %b HTTP/1.1" % place]
        lines += [b"%b: %b" % header for header in ((b"Host", place), *route.credentials)]
        data = b"\r\n".join((*lines, b"", b""))
        answer = AnswerReader()
        answer.begin()
        while not answer.has_head:
            surplus = answer.feed((yield from self._ask(data)))
            answer.check()
            data = b""
        if not 200 <= answer.status < 300:
            raise BadAnswerError(f"{answer.status} ")
        if surplus:
            raise BadAnswerError("the proxy spoke before it was asked")

    def _ask(self, data: bytes) -> Generator[bytes, bytes, bytes]:
        came = yield self.outgoing(data)
        if not came:
            raise ConnectionResetError("the other side closed the connection")
        return self._decrypted(came)

    def outgoing(self, data: bytes) -> bytes:
        """What is sent for some data."""
        data, self._unsent = self._unsent + self._encrypted(data), b""
        return data

    def _encrypted(self, data: bytes) -> bytes:
        for layer in reversed(self._layers):
            data = layer.encrypt(data)
        return data

    def _decrypted(self, data: bytes) -> bytes:
        for layer in self._layers:
            data = layer.decrypt(data)
        return data

    def feed(self, data: bytes) -> bytes:
        """What the data adds to the body of the answer."""
        if not self._layers:
            return self.answer.feed(data)
        body = self.answer.feed(self._decrypted(data))
        if self._layers[-1].closed:
            self.answer.end()
        return body

    def _ended(self) -> None:
        """The other side has closed, which counts for nothing where TLS did not announce it."""
        cut = bool(self._layers) and not self._layers[-1].closed  # RFC 9112, section 9.8
        self.answer.end(cut=cut)

    @property
    def reusable(self) -> bool:
        """Whether the answer ended as one after which another may come, and nothing behind it."""
        return self.answer.reusable and all(layer.whole for layer in self._layers)

    def rest(self, now: float) -> None:
        """It waits for the next request."""
        self.idle_since = now
