"""What the tests of the sandbox say to it, and how they read a raw socket."""

import time

import httpx

BEARER = {"Authorization": "Bearer sandbox-key"}
MEDICAL = {"X-API-Key": "sandbox-medical-key"}
SAY = [{"role": "user", "content": "Say hello to the whole world, please."}]

ENDLESS = "word " * 1_000_000  # far longer than what fits into the buffers of a connection


def until(condition, seconds=5):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def inspect(sandbox, what, content=None):
    """What the inspector's page asks for: it posts what it has to say."""
    headers = {"X-Inspector-Token": sandbox.inspector_url.partition("token=")[2]}
    method = "GET" if content is None else "POST"
    url = f"{sandbox.url}/_inspector/{what}"
    return httpx.request(method, url, content=content, headers=headers, timeout=20)


def detail(sandbox, number=1, piece=0):
    return inspect(sandbox, f"exchange/{number}/{piece}").json()


def read_all(client):
    """Return what comes until the other side closes, and whether it was a reset."""
    received = b""
    while True:
        try:
            data = client.recv(65536)
        except ConnectionResetError:
            return received, True
        if not data:
            return received, False
        received += data
