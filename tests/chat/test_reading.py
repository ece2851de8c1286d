"""Long answers are read in a thread: the event loop goes on, and the caller notices nothing of it."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading

import pytest
from peers import Scripted, listed
from pydantic import BaseModel, field_validator

import langchain_svc as svc

LONG = json.dumps({"text": "x" * 60_000})
CALLER = contextvars.ContextVar("CALLER")


class Check:
    """The user's own check of an answer, which lasts until it is told to end."""

    def __init__(self):
        self.begun, self.over = threading.Event(), threading.Event()
        self.told, self.callers = [], set()

    def __call__(self, text):
        self.begun.set()
        self.told.append(self.over.wait(20))
        self.callers.add(CALLER.get())
        return text


@pytest.fixture
def check():
    checking = Check()
    yield checking
    checking.over.set()


def checked_by(call):
    """The form of an answer whose text the call checks."""

    class Checked(BaseModel):
        text: str
        _check = field_validator("text")(lambda cls, text: call(text))

    return Checked


def save(rows: list[dict]) -> str:
    """Save rows."""
    return str(len(rows))


def forms(model, form):
    return model.with_structured_output(form)


def forms_beside_tools(model, form):
    return model.bind_tools([save], response_format=form)


WAYS = {
    "ainvoke": lambda asked: asked.ainvoke("hi"),
    "astream": lambda asked: listed(asked.astream("hi")),
}


@pytest.fixture(params=[forms, forms_beside_tools])
def asking(request, check):
    """Asks for a long answer that takes long to check."""
    asked = request.param(Scripted(LONG, step=1000).model(), checked_by(check))
    CALLER.set("me")

    async def begin(way):
        task = asyncio.create_task(WAYS[way](asked))
        while not (check.begun.is_set() or task.done()):  # noqa: ASYNC110  # a thread sets it
            await asyncio.sleep(0.001)
        return task

    return begin


@pytest.mark.parametrize("way", WAYS)
async def test_the_event_loop_goes_on_while_a_long_answer_is_read(way, asking, check):
    task = await asking(way)
    check.over.set()
    assert await task
    assert all(check.told), "nothing else could run meanwhile"
    assert check.callers == {"me"}


@pytest.mark.parametrize("way", WAYS)
async def test_a_cancelled_caller_does_not_wait_for_the_reading(way, asking, check):
    task = await asking(way)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not check.told
    assert asyncio.all_tasks() == {asyncio.current_task()}
    check.over.set()  # the thread would keep the loop from closing


@pytest.mark.parametrize("way", WAYS)
async def test_what_a_reading_raises_is_raised(way):
    def refuse(_):
        raise ValueError("too long")

    def fail(_):
        raise ZeroDivisionError

    model = Scripted(LONG, LONG, step=1000).model(max_repairs=0)
    with pytest.raises(svc.SvcOutputError) as caught:
        await WAYS[way](forms(model, checked_by(refuse)))
    assert "too long" in caught.value.problems[0]
    assert caught.value.raw == LONG
    with pytest.raises(ZeroDivisionError):
        await WAYS[way](forms(model, checked_by(fail)))
