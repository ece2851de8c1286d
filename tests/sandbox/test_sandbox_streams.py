"""Every stream format on both interfaces, and that each piece is really sent on its own."""

import asyncio
import itertools
import json
import time

import httpx
import pytest
from sandbox_peer import BEARER, ENDLESS, SAY, read_all, slam, until

from langchain_svc.sandbox import Sandbox

V1, GENERAL = "/v1/chat/completions", "/api/chat"
TEXT = "one two\n\nthree\u00a0\U0001f600 four"
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


def events(text):
    """Read SSE as its specification says: data lines of an event are joined by newlines."""
    *blocks, end = text.split("\n\n")
    assert end == ""
    read = []
    for block in blocks:
        lines = block.split("\n")
        assert all(line.startswith("data: ") for line in lines)
        read.append("\n".join(line[len("data: ") :] for line in lines))
    assert read.pop() == "[DONE]"
    return read


def chunks_text(chunks):
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks}) == 1
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert ["role" in delta for delta in deltas] == [True] + [False] * (len(chunks) - 1)
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons == [None] * (len(chunks) - 1) + ["stop"]
    assert [("usage" in chunk) for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    return "".join(delta.get("content", "") for delta in deltas)


def lines_text(lines):
    *pieces, last = lines
    assert all(line.keys() == {"response", "done"} and not line["done"] for line in pieces)
    assert last.keys() == {"done", "model", "tokens"}
    assert last["done"] is True
    return "".join(line["response"] for line in pieces)


def whole_text(body):
    return body["response"] if "response" in body else body["choices"][0]["message"]["content"]


READERS = {
    "sse": lambda answer, _: chunks_text([json.loads(each) for each in events(answer.text)]),
    "sse-text": lambda answer, _: "".join(events(answer.text)),
    "ndjson": lambda answer, path: (chunks_text if path == V1 else lines_text)(
        [json.loads(line) for line in answer.text.splitlines()]
    ),
    "text": lambda answer, _: answer.text,
    "json": lambda answer, _: whole_text(answer.json()),
}


@pytest.mark.parametrize("path", [V1, GENERAL])
@pytest.mark.parametrize("wanted", LABELS)
def test_each_format_holds_the_answer(call, path, wanted):
    with Sandbox(answers=lambda _: TEXT, stream_format=wanted) as s:
        answer = call(path, BODIES[path], sandbox=s)
        same = call(path, BODIES[path], headers={"X-Sandbox-Stream": wanted})
    assert answer.headers["content-type"] == same.headers["content-type"] == LABELS[wanted]
    assert READERS[wanted](answer, path) == TEXT


def test_defaults(call):
    assert call(V1, BODIES[V1]).headers["content-type"] == LABELS["sse"]
    assert call(GENERAL, BODIES[GENERAL]).headers["content-type"] == LABELS["text"]
    with Sandbox(stream_usage=False) as s:
        assert "usage" not in call(V1, BODIES[V1], sandbox=s).text


@pytest.mark.parametrize(
    "headers", [{"X-Sandbox-Stream": "xml"}, {"X-Sandbox-Pace": "slow"}, {"X-Sandbox-Pace": "-1"}]
)
def test_wrong_overrides_are_refused(call, headers):
    answer = call(GENERAL, BODIES[GENERAL], headers=headers)
    assert answer.status_code == 400
    assert next(iter(headers)) in answer.json()["error"]


@pytest.mark.parametrize("wanted", ["sse", "sse-text", "ndjson", "text"])
def test_each_piece_is_flushed_on_its_own(dial, wanted):
    """Read raw chunks of the chunked body: their number and their times are those of the pieces."""
    with Sandbox(answers=["word " * 12], stream_format=wanted) as s:
        body = json.dumps(BODIES[GENERAL]).encode()
        client = dial(s, GENERAL, body, ("X-Sandbox-Pace: 0.02", "Connection: close"))
        arrivals, received = [], b""
        while data := client.recv(65536):
            arrivals.append(time.monotonic())
            received += data
    gaps = [later - sooner for sooner, later in itertools.pairwise(arrivals)]
    assert sum(gap > 0.015 for gap in gaps) >= 10
    assert received.partition(b"\r\n\r\n")[2].count(b"\r\n") // 2 >= 10


def test_the_pace_of_the_sandbox_and_of_a_request(call):
    with Sandbox(answers=lambda _: "word " * 12, pace=0.02) as s:
        taken = []
        for headers in ({}, {"X-Sandbox-Pace": "0"}):
            began = time.monotonic()
            call(GENERAL, BODIES[GENERAL], headers=headers, sandbox=s)
            taken.append(time.monotonic() - began)
    assert taken[0] > 0.2 > taken[1]


@pytest.mark.parametrize("leave", [lambda client: client.close(), slam])
@pytest.mark.parametrize(
    ("pace", "text"), [(0.05, "word " * 500), (0, ENDLESS)], ids=["slow", "fast"]
)
def test_generating_stops_when_the_client_leaves(dial, leave, pace, text):
    with Sandbox(pace=pace, answers=[text]) as s:
        client = dial(s, GENERAL, json.dumps(BODIES[GENERAL]).encode())
        assert client.recv(100)
        assert not s.requests[0].disconnected
        leave(client)
        until(lambda: s.requests[0].disconnected)
        until(lambda: s.open_connections == 0)
        assert s.requests[0].status == 200


def test_a_finished_stream_is_no_disconnection(dial):
    with Sandbox() as s:
        client = dial(s, V1, json.dumps(BODIES[V1]).encode(), ("Connection: close",))
        received, was_reset = read_all(client)
        assert received.endswith(b"0\r\n\r\n")
        assert not was_reset
        assert not s.requests[0].disconnected


async def test_many_streams_at_once():
    async with (
        Sandbox(answers=lambda request: f"this is {request.json['message']}", pace=0.001) as s,
        httpx.AsyncClient(headers=BEARER, limits=httpx.Limits(max_connections=50)) as client,
    ):

        async def one(index):
            body = {**BODIES[GENERAL], "message": f"number {index}"}
            async with client.stream("POST", s.url + GENERAL, json=body) as answer:
                return "".join([text async for text in answer.aiter_text()])

        texts = await asyncio.gather(*(one(index) for index in range(50)))
        assert texts == [f"this is number {index}" for index in range(50)]
        assert len({request.client_port for request in s.requests}) == 50
