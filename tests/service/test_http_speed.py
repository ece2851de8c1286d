"""What keeps the way to the network short, and what of other packages it relies on."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import threading
import time
import warnings

import pytest
from peers import LAST_CHUNK, RawServer, chunked_head, http_chunk, response

from langchain_svc import ChatSvc, SvcNotFoundError
from langchain_svc.sandbox import Fault, Sandbox

ONE = b'{"choices": [{"message": {"content": "one"}, "finish_reason": "stop"}]}'
URL = {"api_key": "k", "base_url_v1": "https://svc.example/v1"}
EVENTS = 200


def event(text, reason=None):
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": reason}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


STREAM = [event(f" {at}") for at in range(EVENTS)] + [event("", "stop"), b"data: [DONE]\n\n"]
TEXT = "".join(f" {at}" for at in range(EVENTS))


def send_at_once(connection):
    connection.sendall(chunked_head() + b"".join(map(http_chunk, STREAM)) + LAST_CHUNK)


@pytest.mark.parametrize("way", ["stream", "astream", "apart"])
async def test_http_chunks_of_one_read_are_one_piece_unless_asked_for_apart(way):
    apart = way == "apart"
    with RawServer(send_at_once) as server:
        async with ChatSvc(**server.v1, merge_events=not apart) as model:
            if way == "astream":
                pieces = [chunk.text async for chunk in model.astream("Count")]
            else:
                pieces = [chunk.text for chunk in model.stream("Count")]
    assert "".join(pieces) == TEXT
    told = len([piece for piece in pieces if piece])
    assert told == EVENTS if apart else told < EVENTS / 4


def test_a_piece_is_not_held_back_for_the_next():
    def handle(connection):
        connection.sendall(chunked_head() + http_chunk(STREAM[0]) + http_chunk(STREAM[1])[:1])
        asked.wait(10)
        connection.sendall(http_chunk(STREAM[1])[1:] + b"".join(map(http_chunk, STREAM[-2:])))
        connection.sendall(LAST_CHUNK)

    asked = threading.Event()
    with RawServer(handle) as server, ChatSvc(**server.v1, timeout=5) as model:
        pieces = model.stream("Count")
        assert next(pieces).text == " 0"
        asked.set()
        assert "".join(chunk.text for chunk in pieces) == " 1"


def test_a_request_leaves_in_one_piece():
    arrived = []

    class Peeking(RawServer):
        def _serve(self, connection):
            connection.settimeout(10)
            arrived.append(connection.recv(65536, socket.MSG_PEEK))
            super()._serve(connection)

    answer = response(b"{}", status="404 Not Found")
    with (
        Peeking(lambda connection: connection.sendall(answer)) as server,
        ChatSvc(**server.v1) as model,
        pytest.raises(SvcNotFoundError),
    ):
        model.invoke("Hello")
    assert arrived[0].startswith(b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1")
    assert b"Hello" in arrived[0]


async def test_calls_wait_for_one_of_so_many_connections_and_use_it_again():
    most = 0
    with Sandbox(faults=[Fault(delay=0.05, times=24)]) as box:
        async with ChatSvc(**box.v1, max_connections=3) as model:
            asking = asyncio.ensure_future(model.abatch(["What is 1 + 1?"] * 24))
            while not asking.done():
                await asyncio.sleep(0.005)
                most = max(most, box.open_connections)
            assert [answer.text for answer in await asking] == ["1 + 1 = 2"] * 24
            assert most == box.open_connections == 3


async def test_a_connection_that_was_closed_while_the_loop_was_busy_is_not_used_again():
    def close_unsaid(connection):
        connection.sendall(response(ONE, connection=None, content_type="application/json"))

    with RawServer(close_unsaid) as server:
        async with ChatSvc(**server.v1, max_retries=0) as model:
            for _ in range(3):
                assert (await model.ainvoke("Hello")).text == "one"
                time.sleep(0.1)  # noqa: ASYNC251  # the loop does not see the end come


FEW_FILES = """
import asyncio, resource, sys
from langchain_svc import ChatSvc

resource.setrlimit(resource.RLIMIT_NOFILE, (96, 96))
model = ChatSvc(base_url_v1=sys.argv[1], api_key=sys.argv[2], max_retries=0)
answers = asyncio.run(model.abatch(["What is 1 + 1?"] * 200))
answers += model.batch(["What is 1 + 1?"] * 100, {"max_concurrency": 64})
print({answer.text for answer in answers})
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_process_that_may_open_few_files_waits_for_its_own():
    with Sandbox(plan="enterprise", faults=[Fault(delay=0.05, times=300)]) as box:
        where = [box.v1["base_url_v1"], box.v1["api_key"]]
        told = subprocess.run(
            [sys.executable, "-c", FEW_FILES, *where], capture_output=True, text=True, check=False
        )
    assert told.stdout.strip() == "{'1 + 1 = 2'}", told.stderr


def test_only_profiles_of_the_user_are_checked_and_ours_have_known_keys():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ChatSvc(**URL, model="svc-pro")
        ChatSvc(**URL, profile={"tool_calling": False})
    assert not caught
    with pytest.warns(UserWarning, match="tool_callin"):
        ChatSvc(**URL, profile={"tool_callin": True})
    from langchain_core.language_models import ModelProfile

    for words in ({}, {"image_inputs": "describe", "base_url": "https://svc.example"}):
        profile = ChatSvc(**URL, model="svc-pro", **words).profile
        assert profile
        assert profile.keys() <= ModelProfile.__annotations__.keys()
