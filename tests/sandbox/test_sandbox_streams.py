"""Every stream format on both interfaces, and that each piece is really sent on its own."""

import itertools
import json
import time

import pytest
from sandbox_peer import SAY

from langchain_svc import ChatSvc
from langchain_svc.sandbox import Sandbox

TEXT = "one two\n\nthree\u00a0\U0001f600 four"
V1, GENERAL = "/v1/chat/completions", "/api/chat"
BODIES = {
    V1: {"model": "svc-pro", "messages": SAY, "stream": True},
    GENERAL: {"message": "x", "stream": True},
}
LABELS = {
    "sse": "text/event-stream; charset=utf-8",
    "sse-text": "text/event-stream; charset=utf-8",
    "ndjson": "application/x-ndjson",
    "text": "text/plain; charset=utf-8",
    "json": "application/json",
}


@pytest.mark.parametrize("path", [V1, GENERAL])
@pytest.mark.parametrize("wanted", LABELS)
def test_each_format_holds_the_answer(call, path, wanted):
    with Sandbox(answers=lambda _: TEXT, stream_format=wanted) as s:
        answer = call(path, BODIES[path], sandbox=s)
        interface = {V1: s.v1, GENERAL: {"interface": "general", **s.general}}[path]
        with ChatSvc(**interface) as model:
            pieces = [piece.text for piece in model.stream("x")]
    assert answer.headers["content-type"] == LABELS[wanted]
    assert "".join(pieces) == TEXT


def test_defaults(call):
    assert call(V1, BODIES[V1]).headers["content-type"] == LABELS["sse"]
    assert call(GENERAL, BODIES[GENERAL]).headers["content-type"] == LABELS["text"]
    with Sandbox(stream_usage=False) as s:
        assert "usage" not in call(V1, BODIES[V1], sandbox=s).text


@pytest.mark.parametrize("wanted", ["sse", "sse-text", "ndjson", "text"])
def test_each_piece_is_flushed_on_its_own(dial, wanted):
    """Read raw chunks of the chunked body: their number and their times are those of the pieces."""
    with Sandbox(answers=["word " * 12], stream_format=wanted, pace=0.02) as s:
        body = json.dumps(BODIES[GENERAL]).encode()
        client = dial(s, GENERAL, body, ("Connection: close",))
        arrivals, received = [], b""
        while data := client.recv(65536):
            arrivals.append(time.monotonic())
            received += data
    gaps = [later - sooner for sooner, later in itertools.pairwise(arrivals)]
    assert sum(gap > 0.015 for gap in gaps) >= 10
    assert received.partition(b"\r\n\r\n")[2].count(b"\r\n") // 2 >= 10
    assert received.endswith(b"0\r\n\r\n")
    assert not s.requests[0].disconnected
