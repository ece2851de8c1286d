"""Streams through the public door: every format gives the exact text, however it is cut."""

from __future__ import annotations

import httpx
import pytest
from peers import Scripted, answering, listed, summed
from share import part
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
        for piece in self.parts:
            yield piece


def model(parts, label="text/event-stream", **settings):
    """A model whose answer arrives in these reads."""
    headers = {"content-type": label}
    clients = answering(lambda _: httpx.Response(200, stream=Cut(parts), headers=headers))
    return svc.ChatSvc(**URL, **clients, **settings)


@pytest.mark.parametrize("name", BODIES)
async def test_every_format_whole_and_a_byte_at_a_time(name):
    body = BODIES[name]
    for parts in ([body], [body[i : i + 1] for i in range(len(body))]):
        asked = model(parts, OWN_LABEL.get(name[:3], "text/plain"))
        chunks, later = list(asked.stream("hi")), await listed(asked.astream("hi"))
        assert "".join(chunk.content for chunk in chunks) == TEXT
        assert "".join(chunk.content for chunk in later) == TEXT
        assert chunks[-1].chunk_position == "last"


EVENTS = [name for name in BODIES if name.startswith("sse")]


@pytest.mark.parametrize("name", EVENTS)
async def test_a_stream_that_nobody_asked_for_is_read_as_one_that_was(name):
    asked = model([BODIES[name]], max_retries=0)
    streamed = summed(asked.stream("hi"))
    for whole in (asked.invoke("hi"), await asked.ainvoke("hi")):
        assert (whole.content, whole.usage_metadata) == (TEXT, streamed.usage_metadata)
        assert whole.response_metadata["finish_reason"] == streamed.response_metadata.get(
            "finish_reason"
        )
    labelled = model([BODIES["sse"]], "application/json")
    assert labelled.invoke("hi").content == TEXT


@pytest.mark.parametrize("name", [name for name in EVENTS if not name.startswith("sse plain")])
def test_half_a_stream_that_nobody_asked_for_is_no_answer(name):
    body = BODIES[name]
    for at in part(range(len(body))):
        try:
            answer = model([body[:at]], max_retries=0).invoke("hi")
        except svc.SvcResponseError:
            continue
        assert answer.content == TEXT


def test_an_error_in_a_stream_that_nobody_asked_for_is_told():
    body = b'data: {"error": {"message": "out of order", "type": "t", "code": "c"}}\n\n'
    with pytest.raises(svc.SvcResponseError, match="out of order"):
        model([body], max_retries=0).invoke("hi")


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
    with pytest.raises(svc.SvcStreamError):
        list(model([body]).stream("hi"))
    lenient = model([body], require_stream_end=False)
    assert "".join(chunk.content for chunk in lenient.stream("hi")) == "Hi"
    assert lenient.invoke("hi").content == "Hi"


@pytest.mark.parametrize("step", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("stop", [["END", "five"], ["five", "END"], ["xx", "END", "NDx"]])
def test_the_stop_sequence_that_comes_first_ends_the_answer(step, stop):
    service = Scripted(*["one ENDx five"] * 2, step=step)
    model = service.model(stop=stop)
    assert model.invoke("?").content == "one "
    assert summed(model.stream("?")).content == "one "
