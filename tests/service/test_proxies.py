"""Through proxies: forwarded, tunnelled, over TLS on either side or on both."""

from __future__ import annotations

import base64
import json
import select
import socket
import ssl
from contextlib import suppress

import pytest
from peers import RawServer, SecureServer, asked, response

import langchain_svc as svc

ANSWER = json.dumps(
    {"choices": [{"message": {"content": "through"}, "finish_reason": "stop"}]}
).encode()
HOST = "service.example"  # which only the proxy knows


pytestmark = pytest.mark.usefixtures("trusted")
WAYS = pytest.mark.parametrize("way", ["invoke", "ainvoke"])


class Proxy(SecureServer):
    """Takes CONNECT and absolute requests, and leads every one to the same port."""

    def __init__(self, authority, target, *, secure, password=None):
        super().__init__(self._lead, authority, "127.0.0.1" if secure else None)
        self._target, self._password = target, password

    def _lead(self, connection):
        head = self.requests[-1]
        wanted = base64.b64encode((self._password or "").encode())
        if self._password and b"Basic " + wanted not in head:
            connection.sendall(b"HTTP/1.1 407 Proxy Authentication Required secret\r\n\r\n")
            return
        with socket.create_connection(("127.0.0.1", self._target)) as far:
            if head.startswith(b"CONNECT"):
                connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                far.sendall(head)
            relay(connection, far)


def relay(one, other):
    """In one thread: before Python 3.13 two may not use one TLS connection at the same time."""
    with suppress(OSError):
        while True:
            held = isinstance(one, ssl.SSLSocket) and one.pending()
            for source in [one] if held else select.select([one, other], [], [], 10)[0]:
                data = source.recv(65536)
                if not data:
                    return
                (other if source is one else one).sendall(data)


def good(connection):
    connection.sendall(response(ANSWER))


def through(proxy, url=f"https://{HOST}/v1", *, user="", scheme="http"):
    """A model of a service that only the proxy reaches."""
    return svc.ChatSvc(
        api_key="k",
        base_url_v1=url,
        insecure_hosts=[HOST],
        max_retries=0,
        proxy=f"{scheme}://{user}127.0.0.1:{proxy.port}",
    )


@WAYS
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("password", [None, "ann:s@crét"])
def test_a_request_goes_through(authority, secure, scheme, way, password):
    user = "ann:s%40cr%C3%A9t@" if password else ""
    with (
        SecureServer(good, authority, HOST if secure else None) as server,
        Proxy(authority, server.port, secure=scheme == "https", password=password) as proxy,
        through(proxy, f"http{'s' * secure}://{HOST}/v1", user=user, scheme=scheme) as model,
    ):
        assert [asked(model, way), asked(model, way)] == ["through"] * 2
    line = proxy.requests[0].partition(b"\r\n")[0]
    if secure:
        assert line == f"CONNECT {HOST}:443 HTTP/1.1".encode()
        assert all(b"bearer" not in head.lower() for head in proxy.requests)
    else:
        assert line == f"POST http://{HOST}/v1/chat/completions HTTP/1.1".encode()
    assert all((b"Basic " in head) is bool(password) for head in proxy.requests)
    assert all(b"Basic " not in head for head in server.requests) or not secure


@WAYS
def test_a_certificate_for_another_name_is_refused(authority, way):
    with (
        SecureServer(good, authority, "other.example") as server,
        Proxy(authority, server.port, secure=False) as proxy,
        through(proxy) as model,
        pytest.raises(svc.SvcConnectionError, match="certificate"),
    ):
        asked(model, way)
    assert server.requests in ([], [b""])


@WAYS
@pytest.mark.parametrize(
    ("says", "reason"),
    [
        (b"", "closed the connection"),
        (b"HTTP/1.1 200 Co", "closed the connection"),
        (b"SSH-2.0-secret\r\n", "the proxy did not let it through"),
        (b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "the proxy did not let it through"),
        (b"HTTP/1.1 502 secret\r\nContent-Length: 6\r\n\r\nsecret", "the proxy answered 502"),
        (b"HTTP/1.1 407 Authentication Required secret\r\n\r\n", "the proxy answered 407"),
    ],
)
def test_a_proxy_that_does_not_connect(says, reason, way):
    with (
        RawServer(lambda connection: connection.sendall(says)) as proxy,
        through(proxy, user="ann:secret@") as model,
        pytest.raises(svc.SvcConnectionError, match=reason) as caught,
    ):
        asked(model, way)
    assert "secret" not in f"{caught.value!r} {vars(caught.value)}"


@WAYS
def test_a_host_that_is_an_address_of_ipv6(authority, way):
    with (
        SecureServer(good, authority, "2001:db8::1") as server,
        Proxy(authority, server.port, secure=False) as proxy,
        through(proxy, "https://[2001:db8::1]:8443/v1") as model,
    ):
        assert asked(model, way) == "through"
    assert proxy.requests[0].startswith(b"CONNECT [2001:db8::1]:8443 HTTP/1.1\r\n")
