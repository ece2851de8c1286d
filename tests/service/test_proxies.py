"""Through proxies: forwarded, tunnelled, over TLS on either side or on both."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
from contextlib import suppress
from urllib.parse import urlsplit

import pytest
import trustme
from peers import RawServer, response

import langchain_svc as svc
from langchain_svc._service import connections

ANSWER = json.dumps(
    {"choices": [{"message": {"content": "through"}, "finish_reason": "stop"}]}
).encode()
HOST = "service.example"  # which only the proxy knows


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(autouse=True)
def trusted(authority, monkeypatch):
    context = ssl.create_default_context()
    authority.configure_trust(context)
    monkeypatch.setattr(connections, "_verifying", lambda: context)


class Secure(RawServer):
    """A server whose certificate is for one name; without a name it speaks no TLS."""

    def __init__(self, handle, authority, name, **how):
        super().__init__(handle, **how)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if name else None
        if name:
            authority.issue_cert(name).configure_cert(self._context)

    @property
    def port(self):
        return urlsplit(self.url).port

    def _serve(self, connection):
        if self._context is None:
            return super()._serve(connection)
        with suppress(OSError):
            connection.settimeout(10)
            secure = self._context.wrap_socket(connection, server_side=True)
            self._open.append(secure)
            super()._serve(secure)
        self._open.remove(connection)
        return None


class Proxy(Secure):
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
            back = threading.Thread(target=pump, args=[far, connection])
            back.start()
            pump(connection, far)
            back.join()


def pump(source, sink):
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    for sock in (source, sink):
        with suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)


async def asked(model, way):
    if way == "invoke":
        return model.invoke("Hello").text
    return (await model.ainvoke("Hello")).text


def good(connection):
    connection.sendall(response(ANSWER))


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("secure", [False, True])
@pytest.mark.parametrize("password", [None, "ann:s@crét"])
async def test_a_request_goes_through(authority, secure, scheme, way, password):
    user = "ann:s%40cr%C3%A9t@" if password else ""
    with (
        Secure(good, authority, HOST if secure else None) as server,
        Proxy(authority, server.port, secure=scheme == "https", password=password) as proxy,
        svc.ChatSvc(
            api_key="k",
            base_url_v1=f"http{'s' * secure}://{HOST}/v1",
            insecure_hosts=[HOST],
            max_retries=0,
            proxy=f"{scheme}://{user}127.0.0.1:{proxy.port}",
        ) as model,
    ):
        assert [await asked(model, way), await asked(model, way)] == ["through"] * 2
    line = proxy.requests[0].partition(b"\r\n")[0]
    if secure:
        assert line == f"CONNECT {HOST}:443 HTTP/1.1".encode()
        assert all(b"bearer" not in head.lower() for head in proxy.requests)
    else:
        assert line == f"POST http://{HOST}/v1/chat/completions HTTP/1.1".encode()
    assert all((b"Basic " in head) is bool(password) for head in proxy.requests)
    assert all(b"Basic " not in head for head in server.requests) or not secure


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
async def test_a_proxy_that_refuses_is_named_by_its_status_alone(authority, way):
    with (
        Proxy(authority, 9, secure=False, password="ann:right") as proxy,
        svc.ChatSvc(
            api_key="k",
            base_url_v1=f"https://{HOST}/v1",
            max_retries=0,
            proxy=f"http://ann:wrong@127.0.0.1:{proxy.port}",
        ) as model,
        pytest.raises(svc.SvcConnectionError, match="the proxy answered 407") as caught,
    ):
        await asked(model, way)
    assert "secret" not in str(caught.value)
    assert "wrong" not in str(caught.value)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
async def test_a_certificate_for_another_name_is_refused(authority, way):
    with (
        Secure(good, authority, "other.example") as server,
        Proxy(authority, server.port, secure=False) as proxy,
        svc.ChatSvc(
            api_key="k",
            base_url_v1=f"https://{HOST}/v1",
            max_retries=0,
            proxy=f"http://127.0.0.1:{proxy.port}",
        ) as model,
        pytest.raises(svc.SvcConnectionError, match="certificate"),
    ):
        await asked(model, way)
    assert server.requests in ([], [b""])
