"""What the sandbox remembers and prints of its requests, and what it must not."""

import dataclasses
import json
import re
import socket
import subprocess
import sys
import threading

import httpx
import pytest
from sandbox_peer import BEARER, SAY

from langchain_svc.sandbox import Fault, Sandbox, Upstream, serve
from langchain_svc.sandbox.log import log_line

CHAT = {"model": "svc-pro", "messages": SAY}
COMMAND = [sys.executable, "-c", "import sys; from langchain_svc.cli import main; sys.exit(main())"]
SECRET = "very-secret-1"


def test_a_request_as_it_came(call):
    with Sandbox(clock=lambda: 12.5) as s:
        call("/api/chat?trace=1", {"message": "x"}, headers={"X-Thing": "Y"}, sandbox=s)
        call("/api/chat", content=b"\xff{", sandbox=s)
        call("/api/models", method="GET", sandbox=s)
    seen, *others = s.requests  # the log survives the sandbox
    assert (seen.method, seen.path, seen.query) == ("POST", "/api/chat", "trace=1")
    assert seen.headers["x-thing"] == "Y"
    assert (seen.body, seen.json) == (b'{"message":"x"}', {"message": "x"})
    assert (seen.at, seen.status, seen.disconnected) == (12.5, 200, False)
    assert seen.client_port > 0
    assert [(each.json, each.status) for each in others] == [(None, 400), (None, 200)]
    with pytest.raises(dataclasses.FrozenInstanceError):
        seen.status = 500


def test_secrets_are_masked_and_nothing_is_logged(call, caplog, capfd):
    sent = {
        "Authorization": "Bearer sandbox-key",
        "X-API-Key": SECRET,
        "Cookie": f"session={SECRET}",
        "Proxy-Authorization": f"Basic {SECRET}",
    }
    with caplog.at_level("DEBUG"), Sandbox(api_key="sandbox-key") as s:
        call("/api/chat", {"message": "Jane Roe"}, headers=sent, sandbox=s)
        call("/api/chat", {"message": "x"}, headers={"Authorization": f"{SECRET} x"}, sandbox=s)
    one, two = (each.headers for each in s.requests)
    assert one["authorization"] == "Bearer ***"
    assert one["x-api-key"] == one["cookie"] == two["authorization"] == "***"
    assert one["proxy-authorization"] == "Basic ***"
    shown = repr(s) + repr(s.requests)
    assert not re.search(f"Jane|sandbox-key|{SECRET}", shown)
    ours = [each for each in caplog.records if not each.name.startswith(("httpx", "httpcore"))]
    assert [each.name for each in ours if each.name != "asyncio"] == []
    assert "Jane" not in "".join(each.getMessage() for each in ours)
    assert capfd.readouterr() == ("", "")


def test_clear_and_keep(call):
    with Sandbox(keep=2, plan="free") as s:
        assert repr(s) == f"<Sandbox: {s.url}, plan free>"
        for index in range(4):
            call(f"/nothing/{index}", {}, sandbox=s)
        assert [each.path for each in s.requests] == ["/nothing/2", "/nothing/3"]
        s.clear()
        assert s.requests == []
    assert repr(s) == "<Sandbox: not running, plan free>"


# -- the terminal --------------------------------------------------------------------------------------


def shown(act, **arguments):
    """The line of the request that `act` makes, with its time and duration made equal."""
    written = []
    with Sandbox(**arguments) as s:
        server = threading.Thread(
            target=serve, args=(s, lambda each: written.append(log_line(each)))
        )
        server.start()
        act(s)
        for _ in range(100):
            if written:
                break
            server.join(0.05)
        s.stop()
        server.join()
    (line,) = written
    line = re.sub(r"\d\d:\d\d:\d\d", "TIME", line)
    return re.sub(r" +[\d,]+ ms", "  MS", line)


def post(sandbox, **extra):
    url = sandbox.url + "/v1/chat/completions"
    return httpx.post(url, headers=BEARER, json={**CHAT, **extra}, timeout=10)


def leave(sandbox):
    with pytest.raises(httpx.ReadTimeout):
        httpx.get(sandbox.url + "/v1/models", headers=BEARER, timeout=0.2)


def attack(sandbox):
    with socket.create_connection(("127.0.0.1", int(sandbox.url.rpartition(":")[2]))) as client:
        target = b"/%1b[2J%0aINJECTED%e2%80%ae/" + b"x" * 500
        client.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        client.recv(100)


def test_a_line_says_what_was_asked_and_answered():
    assert shown(post) == "TIME  POST /v1/chat/completions      200  MS"
    line = shown(post, faults=[Fault(status=503)])
    assert line == "TIME  POST /v1/chat/completions      503  MS"
    assert shown(leave, faults=[Fault(hang=True)]).endswith("  ---  MS")
    line = shown(post, upstream=Upstream("http://127.0.0.1:9/v1", "m"))
    assert line.endswith("  503  MS  upstream: ConnectError")


def test_a_path_cannot_move_the_cursor():
    line = shown(attack)
    assert not re.search("[\x1b\u202e]", line)
    assert len(line) < 120


@pytest.mark.parametrize(("words", "count"), [((), 1), (("--quiet",), 0)])
def test_the_command_prints_them_unless_it_is_to_be_quiet(words, count):
    process = subprocess.Popen(
        [*COMMAND, "sandbox", "--port", "0", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _key, base = (process.stdout.readline().strip().partition("=")[2] for _ in range(2))
    body = json.dumps({**CHAT, "messages": [{"role": "user", "content": "Jane Roe"}]})
    headers = {**BEARER, "Content-Type": "application/json"}
    httpx.post(base + "/chat/completions", headers=headers, content=body)
    try:
        process.wait(0.4)
    except subprocess.TimeoutExpired:
        process.send_signal(2)
    _, err = process.communicate(timeout=10)
    assert err.count("POST /v1/chat/completions") == count
    assert not re.search("\x1b|Jane|sandbox-key", err)
