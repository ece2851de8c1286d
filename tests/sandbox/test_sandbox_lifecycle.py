"""Starting, stopping, and leaving nothing behind."""

import asyncio
import contextlib
import gc
import json
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from sandbox_peer import BEARER, ENDLESS, SAY, until

from langchain_svc.sandbox import Fault, Sandbox

STREAM = json.dumps({"model": "svc-pro", "messages": SAY, "stream": True}).encode()


def threads():
    return [each for each in threading.enumerate() if "sandbox" in each.name]


def descriptors():
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


def timed(action):
    began = time.monotonic()
    action()
    return time.monotonic() - began


def test_twenty_in_a_row_leave_no_thread_and_no_socket():
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("counts open descriptors in /proc")
    with Sandbox():
        pass
    before, running = descriptors(), len(threads())
    for _ in range(20):
        with Sandbox() as s, httpx.Client(headers=BEARER, verify=False) as client:
            assert client.get(s.url + "/v1/models").status_code == 200
            assert s.open_connections == 1
    assert len(threads()) == running
    assert descriptors() == before


@pytest.mark.parametrize(
    "fault",
    [Fault(stall=True), Fault(stall=True, heartbeats=0.01), Fault(hang=True), Fault(delay=30)],
)
def test_stopping_is_quick_with_streams_open(dial, fault):
    running = len(threads())
    s = Sandbox(faults=[fault]).start()
    clients = [dial(s, "/v1/chat/completions", STREAM) for _ in range(5)]
    until(lambda: len(s.requests) == 5)
    assert s.open_connections == 5
    assert timed(s.stop) < 0.5
    assert len(threads()) == running
    assert not any(each.disconnected for each in s.requests)  # it was not the clients who left
    assert len(clients) == 5


def test_stopping_is_quick_when_a_client_does_not_read_or_has_not_sent_all(dial):
    for wanted in ("text", "json"):
        s = Sandbox(stream_format=wanted, answers=[ENDLESS]).start()
        client = dial(s, "/api/chat", b'{"message": "x", "stream": true}')
        assert client.recv(1)
        time.sleep(0.2)
        assert s.open_connections == 1
        assert timed(s.stop) < 0.5
    s = Sandbox().start()
    with socket.create_connection(("127.0.0.1", int(s.url.rpartition(":")[2]))) as client:
        client.sendall(b"POST /api/chat HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12")
        until(lambda: s.requests)
        assert timed(s.stop) < 0.5
    assert s.requests[0].status is None


def test_stopping_while_clients_knock():
    """A client that is accepted while the server stops must neither hang it nor leak."""
    over = threading.Event()
    port = 0

    def knock():
        while not over.is_set():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                pass

    running = len(threads())
    with Sandbox() as first:
        port = int(first.url.rpartition(":")[2])
    knockers = [threading.Thread(target=knock) for _ in range(2)]
    for each in knockers:
        each.start()
    for _ in range(15):
        s = Sandbox(port=port).start()
        time.sleep(0.005)
        assert timed(s.stop) < 1
    over.set()
    for each in knockers:
        each.join()
    assert len(threads()) == running


async def test_async_with():
    running = len(threads())
    faults = [Fault(stall=True, path="completions")]
    async with Sandbox(faults=faults) as s, httpx.AsyncClient(headers=BEARER) as client:
        answer = await client.get(s.url + "/v1/models")
        assert answer.status_code == 200
        with pytest.raises(httpx.ReadTimeout):
            await client.post(s.url + "/v1/chat/completions", json=json.loads(STREAM), timeout=0.1)
    assert len(threads()) == running
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_it_may_be_started_again(call):
    s = Sandbox()
    for _ in range(2):
        with s:
            assert s.running
            assert call("/v1/models", method="GET", sandbox=s).status_code == 200
        assert not s.running
        assert s.open_connections == 0
    assert len(s.requests) == 2


def test_misuse():
    s = Sandbox()
    s.stop()
    with pytest.raises(RuntimeError, match="with block"):
        _ = s.url
    with s, pytest.raises(RuntimeError, match="running already"):
        s.start()


def test_a_port_may_be_chosen_and_may_be_taken():
    with Sandbox() as first:
        port = int(first.url.rpartition(":")[2])
        with pytest.raises(OSError, match=r"."), Sandbox(port=port):
            pass
    with Sandbox(port=port) as second:
        assert second.url == f"http://127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("host", ["0.0.0.0", "192.168.1.5", "example.invalid"]),
        *(("plan", ["gold"]), ("stream_format", ["xml"])),
        *(("pace", [-1, float("nan")]), ("api_key", [""]), ("medical_api_key", ["a\nb"])),
    ],
)
def test_wrong_arguments(name, values):
    for value in values:
        with pytest.raises(ValueError, match=name):
            Sandbox(**{name: value})


def test_other_hosts(call):
    with Sandbox(host="localhost") as s:
        assert s.url.startswith("http://127.0.0.1:")
    with Sandbox(host="0.0.0.0", allow_remote=True) as s:
        assert call("/v1/models", method="GET", sandbox=s).status_code == 200
    if socket.has_ipv6:
        with Sandbox(host="::1") as s:
            assert s.url.startswith("http://[::1]:")
            assert call("/v1/models", method="GET", sandbox=s).status_code == 200


STRICT = """
import urllib.request
from langchain_svc.sandbox import Sandbox
for _ in range(3):
    with Sandbox() as s:
        asked = urllib.request.Request(s.url + "/v1/models", headers={"Authorization": "Bearer sandbox-key"})
        with urllib.request.urlopen(asked) as answer:
            assert answer.status == 200
Sandbox().start()  # never stopped: the process must end nevertheless
"""


def test_it_runs_without_fuss_in_a_strict_interpreter():
    command = [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", STRICT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
