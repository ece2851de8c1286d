"""Long answers and errors are read off the event loop, and for no longer than their deadline."""

from __future__ import annotations

import json
import threading

import pytest
from peers import RawServer, Scripted, response
from pydantic import BaseModel, field_validator

import langchain_svc as svc
from langchain_svc._base import threads as _threads

LONG = "x" * 60_000
OVER = threading.Event()


class Slow(BaseModel):
    """What is checked for as long as the test wants."""

    text: str

    @field_validator("text")
    @classmethod
    def _wait(cls, text):
        OVER.wait(20)
        return text


async def test_the_deadline_bounds_the_reading():
    asked = Scripted(json.dumps({"text": LONG})).model(deadline=2).with_structured_output(Slow)
    try:
        with pytest.raises(svc.SvcTimeoutError, match="deadline"):
            await asked.ainvoke("hi")
    finally:
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
