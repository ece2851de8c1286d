"""Every stream format on both interfaces, and that each piece is really sent on its own."""

import asyncio
import itertools
import json
import time

import httpx
import pytest
from sandbox_peer import BEARER, SAY, read_all, slam

from langchain_svc.sandbox import Sandbox

V1, GENERAL = "/v1/chat/completions", "/api/chat"
V1_BODY = {"model": "svc-pro", "messages": SAY, "stream": True}
GENERAL_BODY = {"message": SAY[0]["content"], "model": "svc-pro", "stream": True}
BODIES = {V1: V1_BODY, GENERAL: GENERAL_BODY}


def whole(call, path):
    body = call(path, {**BODIES[path], "stream": False}).json()
    return body["response"] if path == GENERAL else body["choices"][0]["message"]["content"]


def streamed(call, path, wanted, **kwargs):
    return call(path, BODIES[path], headers={"X-Sandbox-Stream": wanted}, **kwargs)


def events(text):
    """Read SSE as its specification says: data lines of an event are joined by newlines."""
    for block in text.split("\n\n")[:-1]:
        lines = block.split("\n")
        assert all(line.startswith("data: ") for line in lines)
        yield "\n".join(line[len("data: ") :] for line in lines)


def check_chunks(chunks, expected):
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks}) == 1
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[0]["role"] == "assistant"
    assert not any("role" in delta for delta in deltas[1:])
    assert "".join(delta.get("content", "") for delta in deltas) == expected
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons == [None] * (len(chunks) - 1) + ["stop"]
    assert [("usage" in chunk) for chunk in chunks] == [False] * (len(chunks) - 1) + [True]


@pytest.mark.parametrize("path", [V1, GENERAL])
def test_sse(call, path):
    answer = streamed(call, path, "sse")
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    *data, end = events(answer.text)
    assert end == "[DONE]"
    check_chunks([json.loads(each) for each in data], whole(call, path))


@pytest.mark.parametrize("path", [V1, GENERAL])
def test_sse_text(call, path):
    answer = streamed(call, path, "sse-text")
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    *pieces, end = events(answer.text)
    assert end == "[DONE]"
    assert "".join(pieces) == whole(call, path)


def test_sse_text_spreads_newlines_over_data_lines(call):
    body = {**GENERAL_BODY, "message": "one\n\ntwo\r\nthree"}
    expected = call(GENERAL, {**body, "stream": False}).json()["response"]
    answer = call(GENERAL, body, headers={"X-Sandbox-Stream": "sse-text"})
    *pieces, _ = events(answer.text)
    assert "".join(pieces) == expected.replace("\r\n", "\n")
    assert "\n" in "".join(pieces)


def test_ndjson_on_v1(call):
    answer = streamed(call, V1, "ndjson")
    assert answer.headers["content-type"] == "application/x-ndjson"
    check_chunks([json.loads(line) for line in answer.text.splitlines()], whole(call, V1))


def test_ndjson_on_general(call):
    *lines, last = map(json.loads, streamed(call, GENERAL, "ndjson").text.splitlines())
    assert all(line.keys() == {"response", "done"} and line["done"] is False for line in lines)
    assert "".join(line["response"] for line in lines) == whole(call, GENERAL)
    assert last.keys() == {"done", "model", "tokens"}
    assert last["done"] is True


@pytest.mark.parametrize("path", [V1, GENERAL])
def test_text(call, path):
    answer = streamed(call, path, "text")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["transfer-encoding"] == "chunked"
    assert answer.text == whole(call, path)


@pytest.mark.parametrize("path", [V1, GENERAL])
def test_json_is_one_complete_answer(call, path):
    answer = streamed(call, path, "json")
    assert answer.headers["content-type"] == "application/json"
    assert answer.json().keys() == call(path, {**BODIES[path], "stream": False}).json().keys()


def test_defaults(call):
    assert call(V1, V1_BODY).headers["content-type"].startswith("text/event-stream")
    assert call(GENERAL, GENERAL_BODY).headers["content-type"].startswith("text/plain")


def test_a_format_for_the_whole_sandbox(call):
    with Sandbox(stream_format="ndjson", stream_usage=False) as s:
        lines = call(V1, V1_BODY, sandbox=s).text.splitlines()
        assert not any("usage" in json.loads(line) for line in lines)
        assert streamed(call, V1, "text", sandbox=s).headers["content-type"].startswith("text/")


@pytest.mark.parametrize(
    "headers",
    [{"X-Sandbox-Stream": "xml"}, {"X-Sandbox-Pace": "slow"}, {"X-Sandbox-Pace": "-1"}],
)
def test_wrong_overrides_are_refused(call, headers):
    answer = call(GENERAL, GENERAL_BODY, headers=headers)
    assert answer.status_code == 400
    assert next(iter(headers)) in answer.json()["error"]


@pytest.mark.parametrize("wanted", ["sse", "sse-text", "ndjson", "text"])
def test_each_piece_is_flushed_on_its_own(shared, dial, wanted):
    """Read raw chunks of the chunked body: their number and their times are those of the pieces."""
    body = json.dumps({**GENERAL_BODY, "message": "hi"}).encode()
    headers = (f"X-Sandbox-Stream: {wanted}", "X-Sandbox-Pace: 0.02", "Connection: close")
    client = dial(shared, GENERAL, body, headers)
    arrivals, received = [], b""
    while data := client.recv(65536):
        arrivals.append(time.monotonic())
        received += data
    sizes = received.partition(b"\r\n\r\n")[2].count(b"\r\n") // 2
    gaps = [later - sooner for sooner, later in itertools.pairwise(arrivals)]
    assert sum(gap > 0.015 for gap in gaps) >= 10
    assert sizes >= 10


def test_pace_of_the_sandbox_and_of_a_request(call):
    with Sandbox(pace=0.02) as s:
        began = time.monotonic()
        call(GENERAL, GENERAL_BODY, sandbox=s)
        assert time.monotonic() - began > 0.2
        began = time.monotonic()
        call(GENERAL, GENERAL_BODY, headers={"X-Sandbox-Pace": "0"}, sandbox=s)
        assert time.monotonic() - began < 0.2


def until(condition):
    deadline = time.monotonic() + 3
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.parametrize("leave", [lambda c: c.close(), slam])
def test_generating_stops_when_the_client_leaves(dial, leave):
    with Sandbox(pace=0.05) as s:
        client = dial(s, V1, json.dumps(V1_BODY).encode())
        assert client.recv(4096)
        assert not s.requests[0].disconnected
        leave(client)
        until(lambda: s.requests[0].disconnected)
        until(lambda: s.open_connections == 0)
        assert s.requests[0].status == 200


def test_a_client_that_leaves_at_full_speed_is_noticed_too(dial, endless):
    with Sandbox() as s:
        client = dial(s, GENERAL, json.dumps(GENERAL_BODY).encode())
        assert client.recv(100)
        slam(client)
        until(lambda: s.requests[0].disconnected)


def test_a_finished_stream_is_no_disconnection(dial):
    with Sandbox() as s:
        client = dial(s, V1, json.dumps(V1_BODY).encode(), ("Connection: close",))
        received, was_reset = read_all(client)
        assert received.endswith(b"0\r\n\r\n")
        assert not was_reset
        assert not s.requests[0].disconnected


async def test_many_streams_at_once():
    async with Sandbox(pace=0.001) as s:
        limits = httpx.Limits(max_connections=50)
        async with httpx.AsyncClient(headers=BEARER, verify=False, limits=limits) as client:

            async def one(index):
                body = {**GENERAL_BODY, "message": f"number {index}"}
                async with client.stream("POST", s.url + GENERAL, json=body) as answer:
                    return "".join([text async for text in answer.aiter_text()])

            texts = await asyncio.gather(*(one(index) for index in range(50)))
        assert all(text.endswith(f"number {index}") for index, text in enumerate(texts))
        assert len({request.client_port for request in s.requests}) == 50
