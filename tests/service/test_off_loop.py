"""Threads: what takes long leaves the event loop, and waits for nobody else's work."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import socket
import struct
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from langchain_core.messages import HumanMessage
from peers import RawServer, response, settled
from pydantic import BaseModel

import langchain_svc as svc
from langchain_svc._base import threads as _threads

ROWS = [{"a": 1, "b": f"row {at}"} for at in range(400)]


class Row(BaseModel):
    a: int
    b: str


class Rows(BaseModel):
    rows: list[Row]


FORM = Rows.model_json_schema()


def save(rows: list[dict]) -> str:
    """Save rows."""
    return str(len(rows))


def completion(text):
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"id": "1", "model": "m", "choices": [choice]}).encode()


def event(delta, reason=None):
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


def events(text, size=7):
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return [*(event({"content": one}) for one in pieces), event({}, "stop") + b"data: [DONE]\n\n"]


class Reads(httpx.AsyncByteStream):
    def __init__(self, reads):
        self.reads = reads

    async def __aiter__(self):
        for data in self.reads:
            yield data
            await asyncio.sleep(0)


def model(reads, **words):
    """A model whose service answers with these reads."""
    transport = httpx.MockTransport(lambda _: httpx.Response(200, stream=Reads(reads)))
    client = httpx.AsyncClient(transport=transport)
    words = {"api_key": "k", "base_url_v1": "http://127.0.0.1:9/v1", **words}
    return svc.ChatSvc(http_async_client=client, **words)


def describing(size):
    """A question about a picture of 150 times as many bytes."""
    header = b"IHDR" + struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    data = b"IDAT" + b"a" * (size * 150)
    chunks = [
        struct.pack(">I", len(one) - 4) + one + struct.pack(">I", zlib.crc32(one))
        for one in (header, data, b"IEND")
    ]
    picture = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks)).decode()
    block = {"type": "image", "base64": picture, "mime_type": "image/png"}
    answer = completion("a cat")[:-1] + b', "analysis": "a cat"}'
    seeing = model([answer], image_inputs="describe", base_url="http://127.0.0.1:9")
    return seeing.ainvoke([HumanMessage([block])])


async def read_all(stream):
    assert [one async for one in stream]


def rows(size):
    return {"rows": ROWS * (size // 10_000)}


def called(size):
    call = json.dumps({"name": "save", "arguments": rows(size)})
    return events(f"<tool_call>{call}</tool_call>", 20)


# What is asked, for a size: a long prompt, answer, end of a stream, call and object.
LONG = {
    "prompt": lambda size: model([completion("ok")]).ainvoke("<b> " * (size // 4)),
    "image": describing,
    "answer": lambda size: model([completion("A word. " * (size // 8))]).ainvoke("hi"),
    "end": lambda size: read_all(
        model([event({"content": "x" * size}) + b"data: [DONE]\n\n"]).astream("hi")
    ),
    "call": lambda size: read_all(model(called(size)).bind_tools([save]).astream("hi")),
    "object": lambda size: (
        model([completion(json.dumps(rows(size)))]).with_structured_output(FORM).ainvoke("hi")
    ),
}


@contextlib.contextmanager
def longest_turn(loop_thread_seconds):
    """The most CPU time that one callback of the event loop took; other threads' count for nothing."""
    run = asyncio.Handle._run

    def timed(handle):
        begun = time.thread_time()
        try:
            run(handle)
        finally:
            loop_thread_seconds.append(time.thread_time() - begun)

    asyncio.Handle._run = timed
    try:
        yield
    finally:
        asyncio.Handle._run = run


@pytest.mark.parametrize("kind", LONG)
async def test_nothing_long_stays_on_the_loop(kind):
    await LONG[kind](20_000)  # what is imported once
    best = float("inf")
    for _ in range(2):
        ask, took = LONG[kind](100_000), []
        with longest_turn(took):
            await asyncio.create_task(ask)
        best = min(best, max(took))
    assert best < 0.06  # 20 ms, on a machine three times as slow


async def test_an_application_that_fills_its_executor_stops_nothing():
    """A long prompt, a host's name, a long stream and its end, a long answer and a tool's answer."""
    over = threading.Event()
    loop, answer = asyncio.get_running_loop(), response(completion("word " * 50_000))
    with ThreadPoolExecutor(1) as full:
        loop.set_default_executor(full)
        loop.run_in_executor(None, over.wait, 60)
        try:
            with RawServer(lambda c: c.sendall(answer)) as server:
                url = server.v1["base_url_v1"].replace("127.0.0.1", "localhost")
                words = {"api_key": "k", "base_url_v1": url, "deadline": 30}
                async with svc.ChatSvc(**words) as asked:
                    assert len((await asked.ainvoke("<b> " * 50_000)).text) == 250_000
            streamed = model(events("word " * 20_000, 50), deadline=30)
            assert [chunk async for chunk in streamed.astream("hi")]
            for rows in (ROWS, ROWS[:1]):  # a long object and a short one
                forms = model([completion(json.dumps({"rows": rows}))]).with_structured_output(FORM)
                assert await forms.ainvoke("hi") == {"rows": rows}
                assert [one async for one in forms.astream("hi")]
        finally:
            over.set()


async def test_reading_is_under_the_deadline(monkeypatch):
    over, readers = threading.Event(), _threads.Workers("busy", 1)
    monkeypatch.setattr(_threads, "READERS", readers)
    readers.submit(over.wait, 60)
    try:
        for text, question in ((completion("word " * 50_000), "hi"), (b"", "<b> " * 50_000)):
            begun = time.monotonic()
            with pytest.raises(svc.SvcTimeoutError, match="deadline"):
                await model([text], deadline=0.3).ainvoke(question)
            assert time.monotonic() - begun < 10
    finally:
        over.set()


# -- names of hosts ----------------------------------------------------------------------------------


@pytest.fixture
def silence(monkeypatch):
    """A resolver that answers for nothing but localhost."""
    over, look_up, asked = threading.Event(), socket.getaddrinfo, []

    def resolve(host, *rest, **words):
        if host == "localhost":
            return look_up(host, *rest, **words)
        asked.append(host)
        over.wait(60)
        raise socket.gaierror(socket.EAI_AGAIN, "no answer")

    own = _threads.Workers(f"look-up-{time.monotonic()}", _threads.LOOK_UPS.most)
    monkeypatch.setattr("langchain_svc._http.sockets.LOOK_UPS", own)
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    yield asked, own.name
    over.set()


def threads(name):
    return [one for one in threading.enumerate() if one.name == name]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_callers_of_one_host_wait_for_one_look_up(way, silence):
    words = {"api_key": "k", "base_url_v1": "https://svc.invalid/v1", "deadline": 0.2}
    with svc.ChatSvc(**words, max_retries=0) as chat:

        def wait(_):
            with pytest.raises(svc.SvcTimeoutError):
                chat.invoke("hi")

        async def wait_all():
            results = await asyncio.gather(
                *(chat.ainvoke("hi") for _ in range(100)), return_exceptions=True
            )
            assert {type(one) for one in results} == {svc.SvcTimeoutError}

        if way == "invoke":
            with ThreadPoolExecutor(50) as pool:
                list(pool.map(wait, range(100)))
        else:
            asyncio.run(wait_all())
    asked, name = silence
    assert asked == ["svc.invalid"]
    assert len(threads(name)) == 1


async def test_hosts_without_an_answer_hold_a_handful_of_threads(silence):
    with contextlib.ExitStack() as stack:

        def lost(at):
            url = f"https://svc{at}.invalid/v1"
            asked = svc.ChatSvc(api_key="k", base_url_v1=url, deadline=0.2, max_retries=0)
            return stack.enter_context(asked).ainvoke("hi")

        results = await asyncio.gather(*(lost(at) for at in range(40)), return_exceptions=True)
        assert {type(one) for one in results} == {svc.SvcTimeoutError}
        assert len(threads(silence[1])) == 8
        begun = time.monotonic()
        assert (await model([completion("word " * 20_000)]).ainvoke("hi")).text
        assert time.monotonic() - begun < 10


# -- the threads themselves --------------------------------------------------------------------------


def test_threads_end_when_nothing_is_to_be_done(monkeypatch):
    monkeypatch.setattr(_threads, "_IDLE_SECONDS", 0.05)
    workers = _threads.Workers("svc-short", 3)
    assert sorted(workers.submit(int, at).result(10) for at in range(30)) == list(range(30))
    assert settled(lambda: len(threads("svc-short")), 0) == 0
    with pytest.raises(ZeroDivisionError):
        workers.submit(lambda: 1 // 0).result(10)
    assert len(threads("svc-short")) <= 1
