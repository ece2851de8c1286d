"""Long answers are read off the event loop, and for no longer than their deadline."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest
from peers import RawServer, response
from pydantic import BaseModel, field_validator

import langchain_svc as svc
from langchain_svc import _threads

SHORT, LONG = "x", "x" * 60_000
BEGUN, OVER = threading.Event(), threading.Event()


class Seen(BaseModel):
    """Where it is checked, and when that may end."""

    text: str

    @field_validator("text")
    @classmethod
    def _note(cls, text):
        THREADS.append(threading.get_ident())
        BEGUN.set()
        OVER.wait(20)
        return text


THREADS: list[int] = []


@pytest.fixture
def ask():
    """A model whose answer is an object with this text."""
    THREADS.clear()
    BEGUN.clear()
    OVER.set()
    with RawServer(lambda connection: connection.sendall(response(answers[0]))) as server:
        answers = [b""]

        def asked(text, **words):
            content = json.dumps({"text": text})
            choice = {"message": {"content": content}, "finish_reason": "stop"}
            answers[0] = json.dumps({"choices": [choice]}).encode()
            return svc.ChatSvc(**server.v1, **words).with_structured_output(Seen)

        yield asked
    OVER.set()


@pytest.mark.parametrize(("text", "apart"), [(SHORT, False), (LONG, True)])
async def test_a_long_answer_is_read_off_the_event_loop(ask, text, apart):
    assert (await ask(text).ainvoke("hi")).text == text
    first, *_ = THREADS  # LangChain's own parser checks once more, in a thread of its own
    assert (first != threading.get_ident()) is apart


async def test_the_deadline_bounds_the_reading(ask):
    asked = ask(LONG, deadline=2)
    OVER.clear()
    with pytest.raises(svc.SvcTimeoutError, match="deadline"):
        await asked.ainvoke("hi")
    OVER.set()


async def test_a_cancellation_does_not_wait_for_the_reading(ask):
    asked = ask(LONG)
    OVER.clear()
    task = asyncio.create_task(asked.ainvoke("hi"))
    assert await asyncio.to_thread(BEGUN.wait, 20)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()}
    OVER.set()


async def test_what_an_error_says_of_a_long_prompt_is_redacted_off_the_event_loop(monkeypatch):
    monkeypatch.setattr(_threads, "READERS", _threads.Workers("profiled", 1))
    seen = set()
    threading.setprofile(lambda frame, *_: seen.add(frame.f_code.co_name))
    try:
        error = response(b'{"error": {"message": "No."}}', status="400 Bad Request")
        with RawServer(lambda connection: connection.sendall(error)) as server:
            async with svc.ChatSvc(**server.v1) as model:
                with pytest.raises(svc.SvcBadRequestError):
                    await model.ainvoke(LONG)
    finally:
        threading.setprofile(None)
    assert "read_failure" in seen
