"""Through proxies: forwarded, tunnelled, over TLS on either side or on both."""

from __future__ import annotations

import asyncio
import base64
import json
import select
import socket
import ssl
import time
from contextlib import suppress

import pytest
from peers import RawServer, SecureServer, asked, read_request, response, settled
from share import pairs, part

import langchain_svc as svc

ANSWER = json.dumps(
    {"choices": [{"message": {"content": "through"}, "finish_reason": "stop"}]}
).encode()
HOST = "service.example"  # which only the proxy knows


pytestmark = pytest.mark.usefixtures("trusted")
WAYS = pytest.mark.parametrize("way", ["invoke", "ainvoke"])


class Proxy(SecureServer):
    """Takes CONNECT and absolute requests, and leads every one to the same port."""

    def __init__(self, authority, target, name=None, *, password=None):
        super().__init__(self._lead, authority, name)
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


def through(proxy, url=f"https://{HOST}/v1", *, user="", scheme="http", **given):
    """A model of a service that only the proxy reaches."""
    return svc.ChatSvc(
        api_key="k",
        base_url_v1=url,
        insecure_hosts=[HOST],
        max_retries=0,
        proxy=f"{scheme}://{user}127.0.0.1:{proxy.port}",
        **given,
    )


BOTH = [False, True]


@WAYS
@pytest.mark.parametrize(("scheme", "secure"), pairs(["http", "https"], BOTH))
@pytest.mark.parametrize("password", part([None, "ann:s@crét"]))
def test_a_request_goes_through(authority, secure, scheme, way, password):
    user = "ann:s%40cr%C3%A9t@" if password else ""
    name = "127.0.0.1" if scheme == "https" else None
    with (
        SecureServer(good, authority, HOST if secure else None) as server,
        Proxy(authority, server.port, name, password=password) as proxy,
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
@pytest.mark.parametrize("whose", ["server", "proxy"])
def test_a_certificate_for_another_name_is_refused(authority, whose, way):
    other, proxied = "other.example", whose == "proxy"
    with (
        SecureServer(good, authority, HOST if proxied else other) as server,
        Proxy(authority, server.port, other if proxied else None) as proxy,
        through(proxy, scheme="https" if proxied else "http") as model,
        pytest.raises(svc.SvcConnectionError, match=r"certificate.*; check the host"),
    ):
        asked(model, way)
    assert server.requests in ([], [b""])
    assert not proxied or proxy.requests in ([], [b""])


@WAYS
def test_a_connection_is_used_again_and_closed_with_its_model(authority, way):
    def answer(connection):
        connection.sendall(response(ANSWER, connection=None))
        read_request(connection)
        connection.sendall(response(ANSWER, connection=None))
        ends.append(connection.recv(1))

    async def twice():
        try:
            return [(await model.ainvoke("hi")).text for _ in range(2)]
        finally:
            await model.aclose()

    ends = []
    with (
        SecureServer(answer, authority, HOST) as server,
        Proxy(authority, server.port) as proxy,
        through(proxy) as model,
    ):
        by_thread = way == "invoke"
        texts = [asked(model, way) for _ in range(2)] if by_thread else asyncio.run(twice())
        assert texts == ["through"] * 2
        assert proxy.accepted == 1
        assert ends == [] or not by_thread
        model.close()
        assert settled(lambda: ends, [b""]) == [b""]


@WAYS
@pytest.mark.parametrize("scheme", part(["http", "https"]))
def test_the_deadline_holds_for_a_proxy_that_says_nothing(scheme, way):
    begun = time.monotonic()
    with (
        RawServer(lambda connection: connection.recv(1)) as proxy,
        through(proxy, f"{scheme}://{HOST}/v1", deadline=0.5) as model,
        pytest.raises(svc.SvcTimeoutError, match=r"deadline of 0\.5 s"),
    ):
        asked(model, way)
    assert time.monotonic() - begun < 10


@WAYS
@pytest.mark.parametrize(
    ("says", "reason"),
    [
        (b"", "the proxy or the server behind it broke off"),
        (b"HTTP/1.1 200 Co", "the proxy or the server behind it broke off"),
        (b"SSH-2.0-secret\r\n", "the proxy or the server behind it broke off or spoke no valid"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "the proxy or the server behind it: .*; check the proxy"),
        (b"HTTP/1.1 502 secret\r\nContent-Length: 6\r\n\r\nsecret", "the proxy answered 502"),
        (b"HTTP/1.1 407 Authentication Required secret\r\n\r\n", "the proxy answered 407"),
    ],
)
def test_a_proxy_that_does_not_connect(says, reason, way):
    with (
        RawServer(lambda connection: connection.sendall(says)) as proxy,
        through(proxy, user="ann:wrong@") as model,
        pytest.raises(svc.SvcConnectionError, match=reason) as caught,
    ):
        asked(model, way)
    told = f"{caught.value!r} {vars(caught.value)}"
    assert "secret" not in told and "wrong" not in told


@WAYS
def test_a_proxy_that_is_not_there_is_told_of(way):
    gone = RawServer(good)
    gone._socket.close()
    with (
        through(gone, user="ann:secret@") as model,
        pytest.raises(
            svc.SvcConnectionError, match=r"the proxy or the .*; check the proxy"
        ) as told,
    ):
        asked(model, way)
    assert "secret" not in f"{told.value!r} {vars(told.value)}"
