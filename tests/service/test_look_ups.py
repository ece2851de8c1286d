"""Names of hosts are looked up in a few threads of the package's own, which end with their work."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from peers import RawServer, response, settled

import langchain_svc as svc
from langchain_svc._base import threads as _threads


def answering(text):
    """A server on `localhost`, by its name, and the words for a model that asks it."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "stop",
    }
    answer = response(json.dumps({"choices": [choice]}).encode())
    return RawServer(lambda connection: connection.sendall(answer))


def named(server):
    return {**server.v1, "base_url_v1": server.v1["base_url_v1"].replace("127.0.0.1", "localhost")}


async def test_an_application_that_fills_its_executor_stops_no_look_up():
    over = threading.Event()
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1) as full:
        loop.set_default_executor(full)
        loop.run_in_executor(None, over.wait, 60)
        try:
            with answering('{"a": 1}') as server:
                async with svc.ChatSvc(**named(server), deadline=30) as model:
                    forms = model.with_structured_output(None, method="json_mode")
                    assert await forms.ainvoke("hi") == {"a": 1}
        finally:
            over.set()


@pytest.fixture
def silence(monkeypatch):
    """A resolver that answers for nothing but this machine."""
    over, look_up, asked = threading.Event(), socket.getaddrinfo, []

    def resolve(host, *rest, **words):
        if host in ("localhost", "127.0.0.1"):
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
        with answering("yes") as server:
            assert (await svc.ChatSvc(**server.v1).ainvoke("hi")).text == "yes"


# -- the threads themselves --------------------------------------------------------------------------


def test_threads_end_when_nothing_is_to_be_done(monkeypatch):
    monkeypatch.setattr(_threads, "_IDLE_SECONDS", 0.05)
    workers = _threads.Workers("svc-short", 3)
    assert sorted(workers.submit(int, at).result(10) for at in range(30)) == list(range(30))
    assert settled(lambda: len(threads("svc-short")), 0) == 0
    with pytest.raises(ZeroDivisionError):
        workers.submit(lambda: 1 // 0).result(10)
    assert len(threads("svc-short")) <= 1
