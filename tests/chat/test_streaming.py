"""Streams through the public door: every format gives the exact text, however it is cut."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from peers import summed
from wire.test_wire_stream import BODIES, OWN_LABEL, TEXT

import langchain_svc as svc
from langchain_svc.sandbox import Sandbox

URL = {"api_key": "k", "base_url_v1": "https://svc.example/v1"}


class Cut(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that arrives in exactly these reads."""

    def __init__(self, parts):
        self.parts = parts

    def __iter__(self):
        yield from self.parts

    async def __aiter__(self):
        for part in self.parts:
            yield part


@pytest.mark.parametrize("name", BODIES)
async def test_every_format_whole_and_a_byte_at_a_time(name):
    body, parts = BODIES[name], []
    label = {"content-type": OWN_LABEL.get(name[:3], "text/plain")}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=Cut(parts), headers=label))
    clients = {"http_client": httpx.Client(transport=transport)}
    clients["http_async_client"] = httpx.AsyncClient(transport=transport)
    model = svc.ChatSvc(**URL, **clients)
    for parts in ([body], [body[i : i + 1] for i in range(len(body))]):  # noqa: B007
        chunks, later = list(model.stream("hi")), [chunk async for chunk in model.astream("hi")]
        assert "".join(chunk.content for chunk in chunks) == TEXT
        assert "".join(chunk.content for chunk in later) == TEXT
        assert chunks[-1].chunk_position == "last"


@pytest.mark.parametrize("form", ["sse", "sse-text", "ndjson", "text", "json"])
def test_every_format_of_the_sandbox(form):
    question = "Say exactly: Grüße 🇧🇷, line one"
    with Sandbox(stream_format=form) as box, svc.ChatSvc(**box.v1) as model:
        whole = model.invoke(question).content
        assert "".join(chunk.content for chunk in model.stream(question)) == whole

        async def read():
            async with svc.ChatSvc(**box.v1) as other:
                return "".join([chunk.content async for chunk in other.astream(question)])

        assert asyncio.run(read()) == whole


def test_pieces_arrive_as_they_are_sent():
    with Sandbox(pace=0.02) as box, svc.ChatSvc(**box.v1) as model:
        chunks = [chunk for chunk in model.stream("Count from 1 to 9") if chunk.content]
    assert len(chunks) > 8


def test_events_of_one_read_become_one_chunk_unless_told_otherwise():
    body = BODIES["sse"]
    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=Cut([body])))
    client = httpx.Client(transport=transport)
    merged = [c for c in svc.ChatSvc(**URL, http_client=client).stream("hi") if c.content]
    apart = [
        c
        for c in svc.ChatSvc(**URL, http_client=client, merge_events=False).stream("hi")
        if c.content
    ]
    assert (len(merged), len(apart)) == (1, 4)


def test_metadata_stands_once_on_a_stream():
    with Sandbox() as box, svc.ChatSvc(**box.v1, model="svc-pro") as model:
        chunks = list(model.stream("Count from 1 to 9"))
        counted = [chunk for chunk in chunks if chunk.usage_metadata]
        whole = summed(chunks)
    assert len(counted) == 1
    metadata = whole.response_metadata
    assert (metadata["model_name"], metadata["model_provider"]) == ("svc-pro", "svc")
    assert (metadata["finish_reason"], metadata["usage_source"]) == ("stop", "service")
    assert metadata["rate_limit"]["remaining"] >= 0
    assert chunks[0].response_metadata == {"model_name": "svc-pro", "model_provider": "svc"}


@pytest.mark.parametrize("form", ["sse", "text"])
def test_usage_is_estimated_and_marked_where_none_comes(form):
    with Sandbox(stream_format=form, stream_usage=False) as box, svc.ChatSvc(**box.v1) as model:
        *_, last = model.stream("Count from 1 to 9")
    assert last.response_metadata["usage_source"] == "estimated"
    usage = last.usage_metadata
    assert usage["input_tokens"] > 0
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]


@pytest.mark.parametrize("stop", [["5"], ["7", "5"], [" 5"], ["4, 5", "nowhere"], ["nowhere"]])
def test_stop_gives_the_same_text_whole_and_streamed(stop):
    with Sandbox() as box, svc.ChatSvc(**box.v1, merge_events=False) as model:
        whole = model.invoke("Count from 1 to 9").content
        at = min((i for s in stop if (i := whole.find(s)) >= 0), default=len(whole))
        assert model.invoke("Count from 1 to 9", stop=stop).content == whole[:at]
        chunks = list(model.stream("Count from 1 to 9", stop=stop))
        assert "".join(chunk.content for chunk in chunks) == whole[:at]
        assert chunks[-1].response_metadata["finish_reason"] == "stop"
        assert all("stop" not in (request.json or {}) for request in box.requests)


def test_a_stream_that_ends_without_its_mark_can_be_accepted():
    body = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'
    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=Cut([body])))
    client = httpx.Client(transport=transport)
    with pytest.raises(svc.SvcStreamError):
        list(svc.ChatSvc(**URL, http_client=client).stream("hi"))
    lenient = svc.ChatSvc(**URL, http_client=client, require_stream_end=False)
    assert "".join(chunk.content for chunk in lenient.stream("hi")) == "Hi"
