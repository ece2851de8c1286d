"""Deadlines and cancellation reach every wait of a call, and leave nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import signal
import socket
import threading
import time
import types

import pytest
from peers import RawServer, chunked_head, full_backlog, http_chunk, response, settled
from pydantic import BaseModel
from share import part

import langchain_svc as svc
from langchain_svc.sandbox import Fault, Sandbox

pytestmark = pytest.mark.filterwarnings("error::ResourceWarning")
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'


class City(BaseModel):
    name: str


# -- places where a call can get stuck ------------------------------------------------------------


@contextlib.contextmanager
def endless_handshake():
    """A port that takes connections and says nothing in TLS."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield {"api_key": "k", "base_url_v1": f"https://127.0.0.1:{server.getsockname()[1]}"}


@contextlib.contextmanager
def behaving(fault, **words):
    with Sandbox(faults=[fault]) as box:
        yield {**box.v1, **words}


@contextlib.contextmanager
def stalling_stream():
    def handle(connection):
        connection.sendall(chunked_head() + http_chunk(EVENT))
        connection.recv(1)

    with RawServer(handle) as server:
        yield server.v1


STUCK = {
    "connect": full_backlog,
    "handshake": endless_handshake,
    "head": lambda: behaving(Fault(hang=True)),
    "body": lambda: behaving(Fault(stall=True)),
    "pause": lambda: behaving(Fault(status=503, headers={"Retry-After": "30"})),
    "pool": lambda: behaving(Fault(hang=True), max_connections=1),
    "outage": lambda: behaving(Fault(status=503), max_retries=0, outage_wait=60),
    "stream": stalling_stream,
}


async def consume(model, place):
    if place == "pool":
        first = asyncio.create_task(model.ainvoke("hi"))
        await asyncio.sleep(0.05)
        try:
            return await model.ainvoke("hi")
        finally:
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
    if place == "stream":
        return [chunk async for chunk in model.astream("hi")]
    return await model.ainvoke("hi")


def block(model, place):
    if place == "pool":
        first = threading.Thread(target=_quiet, args=[model])
        first.start()
        time.sleep(0.05)
        try:
            return model.invoke("hi", deadline=0.3)
        finally:
            first.join()
    return list(model.stream("hi")) if place == "stream" else model.invoke("hi")


def _quiet(model):
    with contextlib.suppress(svc.SvcError):
        model.invoke("hi")


def bounds_of(place):
    has_a_timeout = place not in {"pause", "outage", "pool"}
    return ["deadline", "deadline on a loop", *["timeout"] * has_a_timeout]


BOUNDS = [(place, way) for row, place in enumerate(STUCK) for way in part(bounds_of(place), row)]


@pytest.mark.parametrize(("place", "way"), BOUNDS)
async def test_a_bound_reaches(place, way):
    timeout = {"timeout": 0.3, "max_retries": 0}
    bound = timeout if way == "timeout" else {"deadline": 0.6, "max_retries": 50}
    with STUCK[place]() as words:
        async with svc.ChatSvc(**{**words, **bound}) as model:
            started = time.monotonic()
            with pytest.raises(svc.SvcError) as raised:
                if way == "deadline on a loop":
                    await consume(model, place)
                else:
                    block(model, place)
            assert time.monotonic() - started < 10  # what is stuck lasts longer
    waits = place in {"pause", "outage"}
    told = (svc.SvcServerError,) if waits else (svc.SvcTimeoutError, svc.SvcStreamError)
    assert isinstance(raised.value, told)
    said = "0.3 s" if way == "timeout" else "deadline"
    assert waits or place == "pool" or said in str(raised.value)


@pytest.mark.parametrize("place", STUCK)
async def test_a_cancellation_reaches(place):
    with STUCK[place]() as words:
        async with svc.ChatSvc(**words) as model:
            tasks = asyncio.all_tasks()
            task = asyncio.create_task(consume(model, place))
            await asyncio.sleep(0.1)
            assert not task.done()
            started = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert time.monotonic() - started < 10
            assert asyncio.all_tasks() == tasks
        gc.collect()  # an open socket would be told of here


# -- at every single step -------------------------------------------------------------------------


@types.coroutine
def counted(coroutine, at_step):
    """Runs a coroutine, and calls `at_step` at each of its suspensions."""
    advance, sent = coroutine.send, None
    while True:
        try:
            waited_for = advance(sent)
        except StopIteration as end:
            return end.value
        at_step()
        try:
            advance, sent = coroutine.send, (yield waited_for)
        except BaseException as error:
            advance, sent = coroutine.throw, error


async def task_of(coroutine, at_step):
    return await counted(coroutine, at_step)


async def whole(model):
    return (await model.ainvoke("Say exactly: whole")).content


async def pieces(model):
    return "".join([chunk.content async for chunk in model.astream("Say exactly: whole")])


async def long(model):
    return (await model.ainvoke("Say exactly: " + "long " * 12_000)).content


async def structured(model):
    return await model.with_structured_output(City).ainvoke("Oslo")


RETRIED = Fault(status=503, headers={"Retry-After": "0"}, times=1)
SCENES = {
    "answer": (whole, []),
    "retried": (whole, [RETRIED]),
    "long": (long, []),
    "lost": (whole, [Fault(reset="before", times=1)]),
    "stream": (pieces, []),
    "stream retried": (pieces, [RETRIED]),
    "structured": (structured, []),
}


def run_until_step(box, scene, step, *, warm):
    """Cancels one run at its n-th suspension; returns whether it got that far."""
    work, faults = SCENES[scene]
    box.faults = []
    seen = {"steps": 0}

    async def main():
        async with svc.ChatSvc(**box.v1) as model:
            if warm:
                await model.ainvoke("warm")
            box.faults = faults
            loop = asyncio.get_running_loop()
            before = asyncio.all_tasks()
            outer = None

            def at_step():
                seen["steps"] += 1
                if seen["steps"] == step:
                    outer.cancel()

            def new_task(loop, coroutine, **words):
                task = asyncio.Task(task_of(coroutine, at_step), loop=loop, **words)
                task.add_done_callback(lambda _: coroutine.close())  # it may not have begun
                return task

            loop.set_task_factory(new_task)
            outer = asyncio.create_task(work(model))
            (end,) = await asyncio.gather(outer, return_exceptions=True)
            loop.set_task_factory(None)
            assert asyncio.all_tasks() == before
            box.faults = []
            assert "after" in (await model.ainvoke("Say exactly: after")).content
            one = await asyncio.to_thread(settled, lambda: box.open_connections <= 1, True)
            assert one, f"step {step}: {box.open_connections} connections"
            return end

    end = asyncio.run(main())
    reached = seen["steps"] >= step
    if reached:
        assert isinstance(end, asyncio.CancelledError), f"step {step}: {end!r}"
    else:
        assert not isinstance(end, BaseException), f"step {step}: {end!r}"
    assert settled(lambda: box.open_connections, 0) == 0
    return reached


@pytest.mark.slow
@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("scene", SCENES)
def test_a_cancellation_at_any_step_leaves_nothing(scene, warm):
    with Sandbox() as box:
        step = 1
        while run_until_step(box, scene, step, warm=warm):
            step += 1
            gc.collect(0)
        assert 2 < step < 100


# -- what several requests share, and streams that are left -----------------------------------------


def slow_nonsense(connection):
    time.sleep(1.2)
    answer = {"choices": [{"message": {"content": "no idea"}, "finish_reason": "stop"}]}
    connection.sendall(response(json.dumps(answer).encode()))


@pytest.mark.slow
@pytest.mark.parametrize("stream", [False, True])
def test_the_tries_of_one_structured_answer_share_the_deadline(stream):
    with (
        RawServer(slow_nonsense) as server,
        svc.ChatSvc(**server.v1, deadline=2.0, max_repairs=9) as model,
    ):
        asked = model.with_structured_output(City)
        started = time.monotonic()
        with pytest.raises(svc.SvcTimeoutError):
            list(asked.stream("Oslo")) if stream else asked.invoke("Oslo")
        assert time.monotonic() - started < 10
        assert len(server.requests) == 2


def left_by_break(chunks):
    for _ in chunks:
        break


def left_by_interrupt(chunks):
    next(chunks)
    with ctrl_c_after(0.2):
        list(chunks)


@contextlib.contextmanager
def ctrl_c_after(seconds):
    main = threading.main_thread().ident
    timer = threading.Timer(seconds, signal.pthread_kill, [main, signal.SIGINT])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


@pytest.mark.parametrize("leave", [left_by_break, left_by_interrupt])
def test_a_stream_that_is_left_closes_its_connection_at_once(leave):
    with Sandbox(faults=[Fault(stall=True, after=2)]) as box, svc.ChatSvc(**box.v1) as model:
        with contextlib.suppress(KeyboardInterrupt):
            leave(model.stream("Count from 1 to 20"))
        assert settled(lambda: box.open_connections, 0, 1.0) == 0
        assert settled(lambda: box.requests[-1].disconnected, True, 1.0)
        box.faults = []
        assert "again" in model.invoke("Say exactly: again").content


@pytest.mark.parametrize(
    "fault", [Fault(hang=True), Fault(stall=True), Fault(status=503, headers={"Retry-After": "30"})]
)
def test_ctrl_c_ends_a_blocking_call(fault):
    with Sandbox(faults=[fault]) as box, svc.ChatSvc(**box.v1) as model:
        with pytest.raises(KeyboardInterrupt), ctrl_c_after(0.3):
            model.invoke("hi", timeout=30)
        assert settled(lambda: box.open_connections <= 1, True)
        box.faults = []
        assert "again" in model.invoke("Say exactly: again").content
        assert box.open_connections == 1
