"""How a host is reached: directly, or through a proxy; over TLS or not. Without I/O."""

from __future__ import annotations

import base64
import ssl
from collections.abc import Generator
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from .http1 import AnswerReader, BadAnswerError
from .tls import Tls

_PORTS = {"http": 80, "https": 443}


class ProxyRefusedError(Exception):
    """The proxy let nothing through; its text has the status and nothing that it said."""


@dataclass(frozen=True)
class Place:
    """A scheme, a host and a port."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> Place:
        """That of a URL."""
        parts = urlsplit(url)
        return cls(parts.scheme, parts.hostname or "", parts.port or _PORTS[parts.scheme])

    @property
    def netloc(self) -> bytes:
        """The host and the port, as CONNECT names them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}".encode("ascii")

    @property
    def origin(self) -> bytes:
        """The scheme, the host and the port, unless it is the usual one."""
        bare = self.netloc.removesuffix(b":%d" % _PORTS[self.scheme])
        return b"%b://%b" % (self.scheme.encode("ascii"), bare)


@dataclass(frozen=True)
class ProxyRoute:
    """The way to a host.

    Attributes:
        host: Where it leads.
        proxy: The proxy that it leads through.
        credentials: What the proxy wants to see, as the header's value.
        tls: How the host and the proxy prove who they are.
    """

    host: Place
    proxy: Place | None
    credentials: bytes | None = field(repr=False)
    tls: ssl.SSLContext | None = field(repr=False)

    @property
    def first(self) -> Place:
        """What is connected to."""
        return self.proxy or self.host

    @property
    def forwards(self) -> bool:
        """Whether the proxy reads the requests and sends them on itself."""
        return self.proxy is not None and self.host.scheme == "http"


class Opening:
    """The conversation before the first request: over it, `layers` and `unsent` go on.

    Attributes:
        layers: The layers of TLS that requests pass through, the outermost first.
        unsent: What stands before the first request; a packet is saved.
    """

    def __init__(self, route: ProxyRoute) -> None:
        self._route = route
        self.layers: list[Tls] = []
        self.unsent = b""

    def steps(self) -> Generator[bytes, bytes, None]:
        """Yields what to send, and takes what came after it.

        Raises:
            ProxyRefusedError: The proxy answered with anything but a 2xx.
            BadAnswerError: It answered with something else than HTTP.
            ssl.SSLError: A handshake failed.
        """
        route = self._route
        if route.proxy is not None and route.proxy.scheme == "https":
            yield from self._secure(route.proxy)
        if route.proxy is not None and not route.forwards:
            yield from self._connect()
        if route.host.scheme == "https":
            yield from self._secure(route.host)

    def _ask(self, data: bytes) -> Generator[bytes, bytes, bytes]:
        going, self.unsent = self.unsent + encrypted(self.layers, data), b""
        return decrypted(self.layers, (yield going))

    def _secure(self, place: Place) -> Generator[bytes, bytes, None]:
        assert self._route.tls is not None  # noqa: S101  # a route over TLS has it
        inner = Tls(self._route.tls, place.host)
        going = inner.handshake(b"")
        while not inner.ready:
            going = inner.handshake((yield from self._ask(going)))
        self.unsent += encrypted(self.layers, going)
        self.layers.append(inner)

    def _connect(self) -> Generator[bytes, bytes, None]:
        host, credentials = self._route.host.netloc, self._route.credentials
        lines = [b"CONNECT %b HTTP/1.1" % host, b"Host: %b" % host]
        if credentials is not None:
            lines.append(b"Proxy-Authorization: " + credentials)
        data = b"\r\n".join((*lines, b"", b""))
        answer = AnswerReader()
        answer.begin()
        while not answer.has_head:
            surplus = answer.feed((yield from self._ask(data)))
            answer.check()
            data = b""
        if not 200 <= answer.status < 300:
            raise ProxyRefusedError(f"{answer.status} ")
        if surplus:
            raise BadAnswerError("the proxy spoke before it was asked")


def encrypted(layers: list[Tls], data: bytes) -> bytes:
    """What is sent for some data through all layers."""
    for layer in reversed(layers):
        data = layer.encrypt(data)
    return data


def decrypted(layers: list[Tls], data: bytes) -> bytes:
    """What came, without its layers."""
    for layer in layers:
        data = layer.decrypt(data)
    return data


def credentials_of(proxy: str) -> bytes | None:
    """The value of Proxy-Authorization for the name and password in a proxy's URL."""
    parts = urlsplit(proxy)
    if parts.username is None:
        return None
    both = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return b"Basic " + base64.b64encode(both.encode())
