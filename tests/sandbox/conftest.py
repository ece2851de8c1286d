"""Ways to speak to a sandbox as plain HTTP."""

import contextlib
import socket

import httpx
import pytest
from sandbox_peer import BEARER, MEDICAL


@pytest.fixture(scope="session")
def plain_http():
    with httpx.Client(verify=False, timeout=10) as client:
        yield client


@pytest.fixture
def call(sandbox, plain_http):
    """call(path, json) posts to the sandbox with the right key for the path."""

    def post(path, json=None, *, headers=None, method="POST", sandbox=sandbox, **kwargs):
        key = MEDICAL if path.startswith("/api/medical") else BEARER
        return plain_http.request(
            method,
            sandbox.url + path,
            json=json,
            headers={**key, **(headers or {})},
            **kwargs,
        )

    return post


@pytest.fixture
def dial():
    """dial(sandbox, path, json_bytes) sends one POST over a raw socket and returns the socket."""
    with contextlib.ExitStack() as stack:

        def connect(sandbox, path, body, headers=()):
            port = int(sandbox.url.rpartition(":")[2])
            client = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=20))
            lines = [
                f"POST {path} HTTP/1.1",
                "Host: sandbox",
                "Authorization: Bearer sandbox-key",
                "Content-Type: application/json",
                f"Content-Length: {len(body)}",
                *headers,
            ]
            client.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
            return client

        yield connect
