"""The line that the terminal shows for each request."""

import io
import json
import re
import socket
import subprocess
import sys
import threading

import httpx
import pytest
from sandbox_peer import BEARER, SAY

from langchain_svc.sandbox import Fault, Sandbox, serve
from langchain_svc.sandbox.log import Terminal

CHAT = {"model": "svc-pro", "messages": SAY}
COMMAND = [sys.executable, "-c", "import sys; from langchain_svc.cli import main; sys.exit(main())"]


def shown(act, *, colours=False, **arguments):
    """The lines of the requests that `act` makes, with their times and durations made equal."""
    written = io.StringIO()
    with Sandbox(**arguments) as s:
        told = Terminal(written, colours=colours)
        server = threading.Thread(target=serve, args=(s, told))
        server.start()
        act(s)
        for _ in range(100):
            if written.getvalue():
                break
            server.join(0.05)
        s.stop()
        server.join()
    lines = re.sub(r"\d\d:\d\d:\d\d", "TIME", written.getvalue())
    return re.sub(r" +[\d,]+ ms", "  MS", lines).splitlines()


def post(sandbox, **extra):
    return httpx.post(
        sandbox.url + "/v1/chat/completions", headers=BEARER, json={**CHAT, **extra}, timeout=10
    )


def test_a_line_has_time_method_path_status_duration_and_tokens():
    (line,) = shown(post)
    assert re.fullmatch(r"TIME  POST /v1/chat/completions      200  MS  \d+ \+ \d+ tokens", line), (
        line
    )


def test_a_stream_has_its_line_when_it_is_over():
    (line,) = shown(lambda s: post(s, stream=True))
    assert "tokens" in line


def test_what_went_wrong_is_said():
    assert shown(post, faults=[Fault(status=503)]) == [
        "TIME  POST /v1/chat/completions      503  MS  a fault was asked for"
    ]

    def leave(s):
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(s.url + "/v1/models", headers=BEARER, timeout=0.2)

    (line,) = shown(leave, faults=[Fault(hang=True)])
    assert " ---  MS  a fault was asked for  the client left" in line


def test_a_path_cannot_move_the_cursor():
    def attack(s):
        with socket.create_connection(("127.0.0.1", int(s.url.rpartition(":")[2]))) as client:
            target = b"/%1b[2J%0aINJECTED%e2%80%ae/" + b"x" * 500
            client.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            client.recv(100)

    (line,) = shown(attack)
    assert "\x1b" not in line
    assert "\u202e" not in line
    assert len(line) < 120


def test_colours_only_where_they_are_wanted():
    (line,) = shown(post, colours=True)
    assert "\x1b[32m200\x1b[0m" in line


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
    assert "\x1b" not in err
    assert "Jane" not in err
    assert "sandbox-key" not in err
