"""Clients that users hand over: httpx's and httpx2's, and those of the SDKs that build on them."""

import asyncio
import pickle
from pathlib import Path

import httpx
import httpx2
import openai
import pytest
import vcr
from peers import listed
from pydantic import ValidationError
from share import pairs

from langchain_svc import (
    ChatSvc,
    SvcError,
    SvcRequestError,
)
from langchain_svc.sandbox import Fault, Sandbox

CLIENTS = {
    "httpx": (httpx.Client, httpx.AsyncClient),
    "httpx2": (httpx2.Client, httpx2.AsyncClient),
    # What OpenAI's SDK gives out as its own, by inheritance.
    "openai": (openai.DefaultHttpxClient, openai.DefaultAsyncHttpxClient),
    "ours": (lambda: None, lambda: None),
}
FAULTS = {
    "none": [],
    "503": [Fault(status=503)],
    "reset": [Fault(reset="before")],
    "cut": [Fault(cut=True, after=1)],
    "hang": [Fault(hang=True)],
}


def outcome(ask):
    """The text of an answer, or the class of its error."""
    try:
        return ask()
    except SvcError as error:
        return type(error)


WAYS = ("invoke", "stream", "ainvoke", "astream")


async def _closed(model, client, ask):
    try:
        async with model:
            return await ask()
    finally:
        if client is not None:
            await client.aclose()


def ask_by(way, library, sandbox, timeout=20):
    """The outcome of one way to ask, with clients of one library."""
    blocking, on_loop = CLIENTS[library]
    settings = {**sandbox.v1, "max_retries": 0, "timeout": timeout}

    async def on_a_loop():
        client = on_loop()
        model = ChatSvc(**settings, http_async_client=client)

        async def ask():
            if way == "ainvoke":
                return (await model.ainvoke("Hi")).text
            return "".join(chunk.text for chunk in await listed(model.astream("Hi")))

        return await _closed(model, client, ask)

    if way.startswith("a"):
        return outcome(lambda: asyncio.run(on_a_loop()))
    client = blocking()
    with ChatSvc(**settings, http_client=client) as model:
        if way == "invoke":
            result = outcome(lambda: model.invoke("Hi").text)
        else:
            result = outcome(lambda: "".join(chunk.text for chunk in model.stream("Hi")))
    if client is not None:
        client.close()
    return result


@pytest.mark.parametrize(("way", "fault"), pairs(WAYS, list(FAULTS)))
def test_every_kind_of_client_ends_a_call_alike(way, fault):
    with Sandbox(faults=FAULTS[fault]) as sandbox:
        timeout = 0.4 if fault == "hang" else 20
        outcomes = {library: ask_by(way, library, sandbox, timeout) for library in CLIENTS}
    assert len(set(outcomes.values())) == 1, outcomes
    assert isinstance(outcomes["ours"], str) == (fault == "none")


@pytest.mark.parametrize(("way", "library"), pairs(WAYS, list(CLIENTS)))
def test_a_cassette_records_and_replays_with_every_kind_of_client(way, library, tmp_path):
    cassette = str(tmp_path / "cassette.yaml")
    with Sandbox() as sandbox:
        with vcr.use_cassette(cassette, filter_headers=["authorization"]):
            answer = ask_by(way, library, sandbox)
        sent = len(sandbox.requests)
        with vcr.use_cassette(cassette, record_mode="none"):
            replayed = ask_by(way, library, sandbox)
        assert len(sandbox.requests) == sent == 1
        key = sandbox.v1["api_key"]
    assert isinstance(answer, str)
    assert replayed == answer
    recorded = Path(cassette).read_text("utf-8")
    assert key not in recorded
    assert "authorization" not in recorded.lower()


@pytest.mark.parametrize(
    ("field", "client", "seen"),
    [
        ("http_client", httpx.AsyncClient(), "not httpx.AsyncClient"),
        ("http_client", httpx2.AsyncClient(), "not httpx2.AsyncClient"),
        ("http_async_client", httpx2.Client(), "not httpx2.Client"),
        ("http_client", 3, "not 3"),
        ("http_client", "http://proxy", "not 'http://proxy'"),
    ],
)
def test_another_kind_is_named_with_its_library(field, client, seen):
    expected = {"http_client": "Client", "http_async_client": "AsyncClient"}[field]
    with pytest.raises(ValidationError) as raised:
        ChatSvc(**{field: client})
    assert f"must be an httpx.{expected} or an httpx2.{expected}, {seen}" in str(raised.value)


def test_a_model_with_a_client_of_httpx2_cannot_be_pickled():
    with httpx2.Client() as client, pytest.raises(SvcRequestError, match="an http_client of yours"):
        pickle.dumps(ChatSvc(http_client=client))
