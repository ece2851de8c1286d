"""A result that is not delivered stays, and is delivered again without asking the service."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import threading

import pytest
from peers import tool_call

import langchain_svc as svc
from langchain_svc.sandbox import Fault

ADVICE = "Give fosfomycin 3 g once."


class Database:
    """A program's own store, which is down at first."""

    def __init__(self):
        self.is_down = True
        self.results = []

    def write(self, result):
        if self.is_down:
            raise OSError(result.text)
        self.results.append(result)

    async def awrite(self, result):
        self.write(result)


def toolkit_on(box, deliver=None, **words):
    body = json.dumps({"response": ADVICE}).encode()
    box.faults = Fault(status=200, body=body, content_type="application/json")
    return svc.SvcMedicalToolkit(**box.medical, deliver=deliver, **words)


def asked(kit, config=None, call_id="c1"):
    consult = kit.get_tools()[0]
    return consult.invoke(tool_call(consult, {"message": "hi"}) | {"id": call_id}, config)


@pytest.mark.parametrize("answer_to", ["model", "program"])
def test_a_result_that_was_not_delivered_is_delivered_again_and_asked_for_once(box, answer_to):
    database = Database()
    with toolkit_on(box, database.write, answer_to=answer_to) as kit:
        message = asked(kit)
        assert message.status == "error"
        assert "`undelivered`" in message.content
        assert ADVICE not in message.content
        assert [result.text for result in kit.undelivered] == [ADVICE]
        kept = kit.undelivered
        assert kit.deliver_again() == kept
        database.is_down = False
        assert kit.deliver_again() == ()
        assert kit.deliver_again() == ()
    assert tuple(database.results) == kept
    assert len(box.requests) == 1


def test_an_async_function_delivers_again_by_await_alone(box):
    database = Database()

    async def run(kit):
        consult = kit.get_tools()[0]
        message = await consult.ainvoke(tool_call(consult, {"message": "hi"}))
        assert message.status == "error"
        with pytest.raises(svc.SvcRequestError, match="adeliver_again"):
            kit.deliver_again()
        assert len(await kit.adeliver_again()) == 1
        database.is_down = False
        assert await kit.adeliver_again() == ()

    with toolkit_on(box, database.awrite) as kit:
        asyncio.run(run(kit))
    assert [result.text for result in database.results] == [ADVICE]
    assert len(box.requests) == 1


def test_a_delivery_that_is_interrupted_loses_nothing(box):
    def interrupt(result):
        raise KeyboardInterrupt

    async def cancel(kit):
        consult = kit.get_tools()[0]
        task = asyncio.ensure_future(consult.ainvoke(tool_call(consult, {"message": "hi"})))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def wait_for_ever(result):
        begun.set()
        await asyncio.Event().wait()

    with toolkit_on(box, interrupt) as kit:
        with pytest.raises(KeyboardInterrupt):
            asked(kit)
        assert [result.text for result in kit.undelivered] == [ADVICE]
    begun = asyncio.Event()
    with toolkit_on(box, wait_for_ever) as kit:
        asyncio.run(cancel(kit))
        assert [result.text for result in kit.undelivered] == [ADVICE]


def test_a_function_that_is_not_async_never_blocks_the_loop(box):
    loop_runs, begun, delivered = threading.Event(), [], []

    def deliver(result):
        loop, event = begun
        loop.call_soon_threadsafe(event.set)
        delivered.append(loop_runs.wait(20))  # the loop sets it, so it must not wait for us

    async def run(kit):
        begun[:] = asyncio.get_running_loop(), asyncio.Event()
        consult = kit.get_tools()[0]
        task = asyncio.ensure_future(consult.ainvoke(tool_call(consult, {"message": "hi"})))
        await begun[1].wait()
        loop_runs.set()
        return await task

    with toolkit_on(box, deliver) as kit:
        assert asyncio.run(run(kit)).status == "success"
    assert delivered == [True]


def test_a_resumed_run_delivers_under_the_same_name(box):
    results = []
    with toolkit_on(box, results.append, answer_to="program") as kit:
        of_thread = {"configurable": {"thread_id": "t"}}
        receipts = [asked(kit, of_thread).artifact for _ in range(2)]
        others = [
            asked(kit, {"configurable": {"thread_id": "u"}}).artifact,
            asked(kit, of_thread, call_id="c2").artifact,
            asked(kit).artifact,
            asked(kit).artifact,
        ]
    assert receipts[0].id == receipts[1].id == results[0].id
    assert receipts[0].tool_call_id == "c1"
    assert len({receipt.id for receipt in [*receipts, *others]}) == 5


def test_an_answer_that_is_too_long_needs_deliver(box):
    shown = []
    toolkit_on(box)  # for its answers
    with svc.SvcMedicalConsult(**box.medical, max_result_chars=10) as tool:
        message = tool.invoke(tool_call(tool, {"message": "hi"}))
        assert message.status == "error"
        assert "there is no deliver=" in message.content
        with pytest.raises(svc.SvcRequestError, match="There is no deliver"):
            tool.deliver_again()
        assert tool.deliver_again(shown.append) == ()
    assert [result.text for result in shown] == [ADVICE]


def test_what_is_undelivered_is_in_memory_only(box, monkeypatch):
    monkeypatch.setenv("SVC_MEDICAL_API_KEY", box.medical["api_key"])
    with toolkit_on(box, Database().write) as kit:
        asked(kit)
        (consult, *_) = kit.get_tools()
        for holder in (kit, consult):
            assert copy.deepcopy(holder).undelivered == kit.undelivered
            pickled = pickle.dumps(holder)
            assert b"fosfomycin" not in pickled
            assert pickle.loads(pickled).undelivered == ()
            assert "fosfomycin" not in repr(holder) + repr(vars(holder))
