"""What a single cell of the fault matrix cannot show: waits, and several calls on a connection."""

from __future__ import annotations

import asyncio
import time

import pytest
from peers import RawServer, response

import langchain_svc as svc
from langchain_svc.sandbox import Fault, Sandbox


def invoke(model):
    return [model.invoke("Count from 1 to 9")]


async def ainvoke(model):
    return [await model.ainvoke("Count from 1 to 9")]


def stream(model, chunks=None):
    return [chunk for chunk in model.stream("Count from 1 to 9") if note(chunks, chunk)]


async def astream(model, chunks=None):
    return [chunk async for chunk in model.astream("Count from 1 to 9") if note(chunks, chunk)]


def note(chunks, chunk):
    if chunks is not None:
        chunks.append(chunk)
    return True


def done(asked):
    """What came of a call, blocking or not."""
    return asyncio.run(asked) if asyncio.iscoroutine(asked) else asked


EVERY_WAY = pytest.mark.parametrize("call", [invoke, ainvoke, stream, astream])
STREAMED = pytest.mark.parametrize("call", [stream, astream])


@pytest.fixture(scope="module")
def one_box():
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def box(one_box):
    one_box.clear()
    yield one_box
    one_box.faults = []


@EVERY_WAY
@pytest.mark.parametrize(
    ("headers", "least"),
    [({"Retry-After": "0.3"}, 0.3), ({"X-RateLimit-Reset": "300ms"}, 0.3), ({"Retry-After": "date"}, 1.0)],
)  # fmt: skip
def test_the_wait_that_the_service_asks_for_is_kept(box, call, headers, least):
    if "date" in headers.values():
        moment = time.gmtime(time.time() + 2)  # whole seconds: between one and two from now
        headers = {"Retry-After": time.strftime("%a, %d %b %Y %H:%M:%S GMT", moment)}
    box.faults = [Fault(status=429, headers=headers, times=1)]
    with svc.ChatSvc(**box.v1, max_retries=1) as model:
        started = time.monotonic()
        answer = done(call(model))
        assert time.monotonic() - started >= least
    retries = [c.response_metadata["retries"] for c in answer if "retries" in c.response_metadata]
    assert retries == [1]


@EVERY_WAY
@pytest.mark.parametrize("fault", [Fault(hang=True), Fault(stall=True), Fault(status=503)])
def test_the_deadline_bounds_any_number_of_tries(box, call, fault):
    box.faults = [fault]
    with (
        svc.ChatSvc(**box.v1, deadline=0.6, max_retries=50) as model,
        pytest.raises(svc.SvcError),
    ):
        started = time.monotonic()
        done(call(model))
    assert time.monotonic() - started < 10  # fifty pauses alone would take minutes


@STREAMED
def test_a_broken_stream_hands_on_what_came_first(box, call):
    box.faults = [Fault(cut=True, after=3)]
    chunks = []
    with svc.ChatSvc(**box.v1) as model, pytest.raises(svc.SvcStreamError) as raised:
        done(call(model, chunks))
    assert raised.value.partial == "".join(chunk.content for chunk in chunks) != ""
    assert raised.value.partial not in str(raised.value)


@STREAMED
def test_connections_are_used_again_after_a_stream(box, call):
    async def several(model):
        async with model:
            for _ in range(5):
                await astream(model)

    with svc.ChatSvc(**box.v1) as model:
        if call is astream:
            asyncio.run(several(model))
        else:
            for _ in range(5):
                stream(model)
    assert len({request.client_port for request in box.requests}) == 1


def test_an_answer_that_comes_before_the_request_was_taken():
    """A gateway refuses a large request by its head alone, and reads no further."""

    def refuse(connection):
        connection.sendall(response(b"{}", status="413 Content Too Large"))
        while connection.recv(65_536):
            pass

    with RawServer(refuse, reads_bodies=False) as server:
        model = svc.SvcLLM(api_key="k", base_url=server.url, timeout=10, max_retries=1)
        with model, pytest.raises(svc.SvcBadRequestError) as raised:
            model.invoke("word " * 2_000_000)
        assert (raised.value.status_code, server.accepted) == (413, 1)
