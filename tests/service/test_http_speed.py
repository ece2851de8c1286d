"""What keeps the way to the network short, and what of other packages it relies on."""

from __future__ import annotations

import asyncio
import inspect
import json
import socket
import threading
import warnings

import httpx
import pytest
from peers import LAST_CHUNK, RawServer, chunked_head, http_chunk, response

from langchain_svc import ChatSvc, SvcNotFoundError
from langchain_svc._service.connections import Shards
from langchain_svc._service.parser_buffer import Received, _warn_once

URL = {"api_key": "k", "base_url_v1": "https://svc.example/v1"}
EVENTS = 200


def event(text, reason=None):
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": reason}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


STREAM = [event(f" {at}") for at in range(EVENTS)] + [event("", "stop"), b"data: [DONE]\n\n"]
TEXT = "".join(f" {at}" for at in range(EVENTS))


def send_at_once(connection):
    connection.sendall(chunked_head() + b"".join(map(http_chunk, STREAM)) + LAST_CHUNK)


def test_http_chunks_of_one_read_are_one_piece():
    with RawServer(send_at_once) as server, ChatSvc(**server.v1) as model:
        pieces = [chunk.text for chunk in model.stream("Count")]
    assert "".join(pieces) == TEXT
    assert len(pieces) < EVENTS / 4


async def test_http_chunks_of_one_read_are_one_piece_on_a_loop():
    with RawServer(send_at_once) as server:
        async with ChatSvc(**server.v1) as model:
            pieces = [chunk.text async for chunk in model.astream("Count")]
    assert "".join(pieces) == TEXT
    assert len(pieces) < EVENTS / 4


def test_events_of_one_read_stay_apart_where_that_is_asked_for():
    with (
        RawServer(send_at_once) as server,
        ChatSvc(**server.v1, merge_events=False) as model,
    ):
        pieces = [chunk.text for chunk in model.stream("Count")]
    assert len([piece for piece in pieces if piece]) == EVENTS


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


class Holding:
    """A response as httpcore makes it, as far as `Received` looks into it."""

    def __init__(self, data):
        self.stream = self._httpcore_stream = self._stream = self
        self._connection = self._h11_state = self
        self.trailing_data = (data, False)


@pytest.mark.parametrize(
    ("held", "more"),
    [
        (b"", False),
        (b"\r", False),
        (b"\r\n", False),
        (b"\r\n5", False),
        (b"\r\n5\r\n", False),
        (b"\r\n5\r\nh", True),
        (b"\r\n005\r\nhello\r\n0\r\n\r\n", True),
        (b"\r\nA;name=value\r\nh", True),
        (b"\r\nff \r\n\r", True),
        (b"\r\n0\r\n", False),  # the end may wait for the network, and pieces must not
        (b"\r\n0\r\n\r\n", False),
        (b"\r\n00000\r\n\r\n", False),
        (b"\r\nxyz\r\nh", False),
        (b"hello", False),
        (b"5\r\nh", False),
    ],
)
def test_what_can_be_had_without_waiting(held, more):
    assert Received(Holding(held)).has_chunk() is more


def test_a_response_of_another_transport_holds_nothing():
    received = Received(httpx.Response(200, content=b"\r\n5\r\nhello"))
    assert not received.has_chunk()
    assert not received.has_surplus()


def test_a_parser_that_is_not_found_is_told_once(caplog):
    _warn_once.cache_clear()
    for own in (False, True, True):
        assert not Received(httpx.Response(200), on_own_connection=own).has_surplus()
    (record,) = caplog.records
    assert record.name == "langchain_svc"
    assert "bytes left over" in record.getMessage()


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


async def test_many_calls_share_small_pools_and_few_calls_one():
    shards = Shards("http://127.0.0.1:9", None)
    entered = [await shards.enter(None) for _ in range(64)]
    assert sorted(shard.calls for shard in shards.all) == [4] * 16
    for shard in entered:
        shards.leave(shard)
    again = [await shards.enter(None) for _ in range(4)]
    assert {id(shard) for shard in again} == {id(shards.all[0])}
    await shards.aclose()


async def test_no_more_calls_enter_than_there_may_be_connections():
    shards = Shards("http://127.0.0.1:9", None)
    entered = [await shards.enter(None) for _ in range(1000)]
    with pytest.raises(httpx.PoolTimeout):
        await shards.enter(0.01)
    waiting = asyncio.ensure_future(shards.enter(None))
    await asyncio.sleep(0)
    shards.leave(entered[17])
    assert await waiting is entered[17]
    cancelled = asyncio.ensure_future(shards.enter(None))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    shards.leave(entered[18])
    assert await shards.enter(1) is entered[18]
    await shards.aclose()


def test_langchain_finds_the_signatures_that_were_fixed():
    for name in ("_generate", "_agenerate"):
        method = vars(ChatSvc)[name]
        assert inspect.signature(method) is method.__signature__
        assert "run_manager" in inspect.signature(getattr(ChatSvc(**URL), name)).parameters


def test_only_profiles_of_the_user_are_checked_for_unknown_keys():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ChatSvc(**URL, model="svc-pro")
        ChatSvc(**URL, profile={"tool_calling": False})
    assert not caught
    with pytest.warns(UserWarning, match="tool_callin"):
        ChatSvc(**URL, profile={"tool_callin": True})


def test_our_own_profiles_have_the_keys_that_langchain_knows():
    from langchain_core.language_models import ModelProfile

    for words in ({}, {"image_inputs": "describe", "base_url": "https://svc.example"}):
        profile = ChatSvc(**URL, model="svc-pro", **words).profile
        assert profile
        assert profile.keys() <= ModelProfile.__annotations__.keys()
