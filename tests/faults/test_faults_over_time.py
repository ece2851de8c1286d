"""What a single cell of the fault matrix cannot show: waits, and several calls on a connection."""

from __future__ import annotations

import asyncio
import time

import pytest
from peers import RawServer, response

import langchain_svc as svc
from langchain_svc.sandbox import Fault, Sandbox

PROMPT = "Count from 1 to 9"
WAYS = ("invoke", "ainvoke", "stream", "astream")


def ask(model, way, chunks):
    """Asks in one of the ways, and puts what comes into `chunks`."""

    async def asynchronously():
        if way == "ainvoke":
            chunks.append(await model.ainvoke(PROMPT))
            return
        async for chunk in model.astream(PROMPT):
            chunks.append(chunk)

    if way.startswith("a"):
        asyncio.run(asynchronously())
    elif way == "invoke":
        chunks.append(model.invoke(PROMPT))
    else:
        chunks.extend(model.stream(PROMPT))


@pytest.fixture(scope="module")
def one_box():
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def box(one_box):
    one_box.clear()
    yield one_box
    one_box.faults = []


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("header", "least"), [("Retry-After: 0.3", 0.3), ("X-RateLimit-Reset: 300ms", 0.3), ("Retry-After: %a, %d %b %Y %H:%M:%S GMT", 1.0)])  # fmt: skip
def test_the_wait_that_the_service_asks_for_is_kept(box, way, header, least):
    moment = time.gmtime(time.time() + 2)  # whole seconds: between one and two from now
    name, value = time.strftime(header, moment).split(": ")
    box.faults = [Fault(status=429, headers={name: value}, times=1)]
    chunks = []
    with svc.ChatSvc(**box.v1, max_retries=1) as model:
        started = time.monotonic()
        ask(model, way, chunks)
        assert time.monotonic() - started >= least
    metadata = [chunk.response_metadata for chunk in chunks]
    assert [one["retries"] for one in metadata if "retries" in one] == [1]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fault", [Fault(hang=True), Fault(stall=True), Fault(status=503)])
def test_the_deadline_bounds_any_number_of_tries(box, way, fault):
    box.faults = [fault]
    started = time.monotonic()
    model = svc.ChatSvc(**box.v1, deadline=0.6, max_retries=50)
    with model, pytest.raises(svc.SvcError):
        ask(model, way, [])
    assert time.monotonic() - started < 10  # fifty pauses alone would take minutes


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_a_broken_stream_hands_on_what_came_first(box, way):
    box.faults = [Fault(cut=True, after=3)]
    chunks = []
    with svc.ChatSvc(**box.v1) as model, pytest.raises(svc.SvcStreamError) as raised:
        ask(model, way, chunks)
    assert raised.value.partial == "".join(chunk.content for chunk in chunks) != ""
    assert raised.value.partial not in str(raised.value)


async def test_connections_are_used_again_after_a_stream(box):
    async with svc.ChatSvc(**box.v1) as model:
        for _ in range(3):
            _ = list(model.stream(PROMPT))
        for _ in range(3):
            _ = [chunk async for chunk in model.astream(PROMPT)]
    assert len({request.client_port for request in box.requests}) == 2


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
