"""Threads, event loops, forks, copies, cancellation and ends: nothing stays behind."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import copy
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from pathlib import Path

import httpx
import pytest
from peers import png, settled
from share import pairs, part

import langchain_svc as svc
from langchain_svc._http import connections
from langchain_svc.sandbox import Fault, Sandbox

pytestmark = pytest.mark.filterwarnings("error::ResourceWarning")


@pytest.fixture
def box():
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def model(box):
    with svc.ChatSvc(**box.v1) as model:
        yield model


def descriptors():
    gc.collect()  # what earlier tests left behind is none of this one's
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.slow
def test_a_hundred_event_loops(box, model):
    asyncio.run(model.ainvoke("hi"))
    before, threads = descriptors(), threading.active_count()
    for _ in range(100):
        asyncio.run(model.ainvoke("hi"))
    assert settled(lambda: descriptors() <= before, True)
    assert threading.active_count() <= threads
    assert settled(lambda: box.open_connections, 0) == 0
    assert len(box.requests) == 101


@pytest.mark.slow
def test_a_loop_closed_without_any_courtesy_is_noticed_at_the_next_use(box, model):
    code = f"""
        import asyncio
        from langchain_svc import ChatSvc
        model = ChatSvc(**{box.v1!r})
        for _ in range(5):
            loop = asyncio.new_event_loop()
            loop.run_until_complete(model.ainvoke("hi"))
            loop.close()
        asyncio.run(model.ainvoke("hi"))
        input()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert settled(lambda: len(box.requests), 6, 60) == 6
        assert settled(lambda: box.open_connections, 0) == 0
        _, errors = process.communicate(b"\n")
        assert (process.returncode, errors) == (0, b"")


def test_thirty_two_threads_on_one_model(box, model):
    threads, before = threading.active_count(), descriptors()
    answers = {}

    def work(number):
        for turn in range(5):
            question = f"Say exactly: {number}-{turn}"
            answers[number, turn] = model.invoke(question).content

    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        list(pool.map(work, range(32)))
    assert all(f"{n}-{turn}" in answers[n, turn] for n in range(32) for turn in range(5))
    assert threading.active_count() <= threads
    model.close()
    assert settled(lambda: box.open_connections, 0) == 0
    assert settled(lambda: descriptors() <= before, True)


async def test_an_astream_left_early_closes_its_socket(box, model):
    box.faults = [Fault(stall=True, after=2)]
    stream = model.astream("Count from 1 to 20")
    await anext(stream)
    await stream.aclose()
    assert await asyncio.to_thread(settled, lambda: box.open_connections, 0) == 0
    await model.aclose()


def test_a_stop_sequence_closes_the_connection(box, model):
    whole = "1, 2, 3, 4, 5, 6, 7, 8, 9"
    with Sandbox(pace=0.05, answers=[whole]) as slow, svc.ChatSvc(**slow.v1) as paced:
        text = "".join(c.content for c in paced.stream("Count from 1 to 9", stop=["5"]))
        assert text == whole[: whole.index("5")]
        assert settled(lambda: slow.requests[-1].disconnected, True)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the sandbox is a thread
def test_fork_with_an_open_stream(box, model):
    """The child's calls touch nothing that the parent reads from, and its end closes nothing."""
    with Sandbox(pace=0.02) as slow, svc.ChatSvc(**slow.v1) as paced:
        whole = paced.invoke("Count from 1 to 20").content
        stream = paced.stream("Count from 1 to 20")
        texts = [next(stream).content]
        child = os.fork()
        if not child:
            try:
                stream.close()
                right = paced.invoke("Count from 1 to 20").content == whole
                del paced
                gc.collect()
            except BaseException:
                os._exit(2)
            os._exit(0 if right else 1)
        texts += [chunk.content for chunk in stream]
        assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 0
        assert "".join(texts) == whole
        assert paced.invoke("Count from 1 to 20").content == whole


def on_a_loop_of_its_own(model, text):
    return asyncio.run(model.ainvoke(text))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])
def test_a_model_works_in_other_processes(box, monkeypatch, method):
    for name, value in box.env.items():
        monkeypatch.setenv(name, value)
    with svc.ChatSvc() as model:
        model.invoke("warm")
        context = multiprocessing.get_context(method)
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as processes:
            asked = [processes.submit(model.invoke, f"Say exactly: n{n}") for n in range(3)]
            asked.append(processes.submit(on_a_loop_of_its_own, model, "Say exactly: n3"))
            answers = [each.result(60).content for each in asked]
        assert all(f"n{n}" in answer for n, answer in enumerate(answers))
        assert "here" in model.invoke("Say exactly: here").content


def test_event_loops_inside_threads_of_an_event_loop(box, model):
    async def inner(name):
        return (await model.ainvoke(f"Say exactly: {name}")).content

    async def main():
        stream = model.astream("Count from 1 to 9")
        first = await anext(stream)
        said = await asyncio.gather(
            inner("loop"),
            asyncio.to_thread(lambda: asyncio.run(inner("inner"))),
            asyncio.to_thread(lambda: model.invoke("Say exactly: thread").content),
        )
        blocking = model.invoke("Say exactly: blocking").content  # on the loop's own thread
        rest = [chunk.content async for chunk in stream]
        return [*said, blocking], first.content + "".join(rest)

    said, counted = asyncio.run(main())
    names = ("loop", "inner", "thread", "blocking")
    assert all(name in text for name, text in zip(names, said, strict=True))
    assert "9" in counted
    model.close()
    assert settled(lambda: box.open_connections, 0) == 0


@pytest.mark.slow
@pytest.mark.parametrize("call", ["invoke", "stream", "ainvoke", "astream"])
def test_close_while_another_thread_is_in_a_call(call):
    """The other thread gets its whole answer or an error of ours, and no hang."""

    async def on_a_loop(model):
        if call == "ainvoke":
            return (await model.ainvoke("Count from 1 to 20")).content
        return "".join([chunk.content async for chunk in model.astream("Count from 1 to 20")])

    def work(model):
        if call.startswith("a"):
            return asyncio.run(on_a_loop(model))
        if call == "stream":
            return "".join(chunk.content for chunk in model.stream("Count from 1 to 20"))
        return model.invoke("Count from 1 to 20").content

    with (
        Sandbox(pace=0.01, faults=[Fault(delay=0.2, path="completions")]) as slow,
        svc.ChatSvc(**slow.v1, timeout=5) as model,
        concurrent.futures.ThreadPoolExecutor(1) as pool,
    ):
        for seconds in (0.0, 0.1, 0.3, 0.4):
            end = pool.submit(work, model)
            time.sleep(seconds)
            model.close()
            with contextlib.suppress(svc.SvcError):
                assert "20" in end.result(15)
        model.close()
        assert settled(lambda: slow.open_connections, 0) == 0


async def test_a_model_with_clients_of_yours(box):
    mine = {"X-Mine": "1"}
    async with httpx.AsyncClient(headers=mine) as later:
        with httpx.Client(headers=mine) as client:
            model = svc.ChatSvc(**box.v1, http_client=client, http_async_client=later)
            assert "hi" in model.invoke("Say exactly: hi").content
            assert "".join(c.content for c in model.stream("Say exactly: hi"))
            assert "hi" in (await model.ainvoke("Say exactly: hi")).content
            assert [chunk async for chunk in model.astream("hi")]
            assert copy.deepcopy(model).http_client is client
            with pytest.raises(svc.SvcRequestError, match="cannot be pickled"):
                pickle.dumps(model)
            model.close()
            assert not client.is_closed
    assert [request.headers["x-mine"] for request in box.requests] == ["1"] * 4


def test_a_client_of_yours_follows_no_redirect_for_us(box):
    with Sandbox() as elsewhere, httpx.Client(follow_redirects=True) as client:
        box.faults = [
            Fault(status=307, headers={"Location": elsewhere.url + "/v1/chat/completions"})
        ]
        with pytest.raises(svc.SvcAPIError):
            svc.ChatSvc(**box.v1, http_client=client).invoke("hi")
        assert elsewhere.requests == []


@pytest.mark.parametrize("call", part(["invoke", "ainvoke"]))
async def test_collected_without_close(box, call):
    before = descriptors()
    model = svc.ChatSvc(**box.v1)
    model.invoke("hi") if call == "invoke" else await model.ainvoke("hi")
    assert descriptors() > before
    del model
    gc.collect()
    assert await asyncio.to_thread(settled, lambda: box.open_connections, 0) == 0
    assert await asyncio.to_thread(settled, lambda: descriptors() <= before, True)


def test_close_is_no_end(box, model):
    model.close()
    assert model.invoke("hi").content
    model.close()
    model.close()
    assert model.invoke("hi").content


@pytest.mark.parametrize("end", ["close", "aclose"])
async def test_an_end_on_a_loop_closes_both_pools(box, model, end):
    await model.ainvoke("hi")
    await asyncio.to_thread(model.invoke, "hi")
    assert box.open_connections == 2
    model.close() if end == "close" else await model.aclose()
    assert await asyncio.to_thread(settled, lambda: box.open_connections, 0) == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "ending", ["open stream", "open astream", "unclosed model", "daemon thread"]
)
def test_the_interpreter_ends_quietly(box, ending):
    box.faults = [Fault(stall=True, after=2)] if "stream" in ending or "thread" in ending else []
    code = f"""
        import asyncio, logging, threading, time
        from langchain_svc import ChatSvc
        logging.getLogger("asyncio").setLevel(logging.ERROR)  # -X dev tells of slow imports
        model = ChatSvc(**{box.v1!r})
        def read():
            for chunk in model.stream("Count from 1 to 20"):
                pass
        if {ending!r} == "open stream":
            stream = model.stream("Count from 1 to 20")
            next(stream)
        elif {ending!r} == "open astream":
            async def main():
                stream = model.astream("Count from 1 to 20")
                await anext(stream)
            asyncio.run(main())
        elif {ending!r} == "daemon thread":
            threading.Thread(target=read, daemon=True).start()
            time.sleep(0.5)
        else:
            model.invoke("hi")
            asyncio.run(model.ainvoke("hi"))
    """
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr.decode()) == (0, "")


ENDS = [None, Fault(status=500), Fault(cut=True), Fault(reset="before")]


# LangChain's ainvoke makes a cycle.
@pytest.mark.parametrize(("call", "fault"), pairs(["invoke", "stream", "astream"], ENDS))
def test_a_call_leaves_no_cycle_that_holds_its_model(box, call, fault):
    box.faults = [fault] if fault else []
    alive = weakref.WeakSet()

    async def on_a_loop(model):
        with contextlib.suppress(svc.SvcError):
            [chunk async for chunk in model.astream("hi")]

    def use():
        model = svc.ChatSvc(**box.v1, max_retries=0)
        with contextlib.suppress(svc.SvcError):
            if call == "astream":
                asyncio.run(on_a_loop(model))
            else:
                list(getattr(model, call)("hi"))
        alive.update(model._client.connections.values())

    gc.collect()
    gc.disable()
    try:
        use()
        assert list(alive) == []
    finally:
        gc.enable()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_fork_amid_the_very_first_call(box):
    """The child would find half an import, which no thread of it ends."""
    code = f"""
        import os, signal, sys, threading, time, warnings
        from langchain_svc import ChatSvc
        warnings.simplefilter("ignore", DeprecationWarning)
        model, begun = ChatSvc(**{box.v1!r}), threading.Event()
        class Slow:
            def find_spec(self, name, *_):
                if name == "httptools":
                    begun.set()
                    time.sleep(1)
        sys.meta_path.insert(0, Slow())
        first = threading.Thread(target=model.invoke, args=["hi"])
        first.start()
        begun.wait()
        child = os.fork()
        if not child:
            signal.alarm(30)
            model.invoke("hi")
            os._exit(0)
        first.join()
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """
    command = [sys.executable, "-c", textwrap.dedent(code)]
    assert subprocess.run(command, timeout=60, check=False).returncode == 0
    assert len(box.requests) == 2


# -- objects that share ----------------------------------------------------------------------------


def test_a_model_for_each_user_is_no_socket_for_each_user(box):
    models = [svc.ChatSvc(**box.v1) for _ in range(50)]
    for one in models:
        assert one.invoke("hi").content
    assert box.open_connections == 1
    for one in models[1:]:
        one.close()
    assert models[0].invoke("hi").content
    assert len({request.client_port for request in box.requests}) == 1
    models[0].close()
    assert settled(lambda: box.open_connections, 0) == 0


async def test_the_last_one_of_a_loop_closes_what_all_share(box):
    one, other = (svc.ChatSvc(**box.v1) for _ in range(2))
    await asyncio.gather(one.ainvoke("hi"), other.ainvoke("hi"))
    await one.aclose()
    assert (await other.ainvoke("hi")).content
    await other.aclose()
    assert await asyncio.to_thread(settled, lambda: box.open_connections, 0) == 0


async def test_connections_are_used_again_after_a_stream(box):
    async with svc.ChatSvc(**box.v1) as model:
        for _ in range(3):
            _ = list(model.stream("hi"))
        for _ in range(3):
            _ = [chunk async for chunk in model.astream("hi")]
    assert len({request.client_port for request in box.requests}) == 2


def test_no_connection_is_shared_between_keys(box):
    models = [svc.ChatSvc(**{**box.v1, "api_key": key}) for key in ("one-key", "another-key")]
    for one in models:
        with contextlib.suppress(svc.SvcAuthenticationError):
            one.invoke("hi")
    assert len({request.client_port for request in box.requests}) == 2


# -- locks that another thread holds at a fork -----------------------------------------------------

PIXEL = png((1, 1))


def child_of(work):
    """The exit status of a child that does this work; None where it hangs."""
    child = os.fork()
    if not child:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    until = time.monotonic() + 10
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("name", ["images", "usage", "connections"])
def test_a_forked_child_is_not_held_by_a_lock_of_its_parents_threads(name, box, model):
    store, usage = svc.ImageStore(), svc.SvcUsageCallbackHandler()
    model.invoke("hi")
    lock, work = {
        "images": (store._lock, lambda: store.add(PIXEL)),
        "usage": (usage._lock, usage.to_dict),
        "connections": (connections._shared_lock, lambda: model.invoke("hi")),
    }[name]
    taken, over = threading.Event(), threading.Event()

    def hold():
        with lock:
            taken.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    try:
        assert child_of(work) == 0
    finally:
        over.set()
        thread.join()
