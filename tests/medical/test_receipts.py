"""What left is on record before it leaves, and whatever becomes of it."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import hashlib
import hmac
import itertools
import json
import logging
import pickle
import socket

import pytest
from fhir.resources.R4B.auditevent import AuditEvent
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from peers import RunKeeper, tool_call
from share import pairs, part
from test_patient import MARKED, clean

import langchain_svc as svc
from langchain_svc.sandbox import Fault, Sandbox, ToolCall

KEY = "an auditor's own"
PATIENT = svc.PatientContext(**MARKED)
CONFIG = {"configurable": {"svc_case": "case-7"}}
ASKED = {"message": "what now"}
SOON = {"Retry-After": "0"}
FAILURES = {
    "status 500": Fault(status=500, headers=SOON),
    "status 401": Fault(status=401),
    "timed out": Fault(hang=True),
    "connection lost": Fault(reset="before"),
    "connection lost within the answer": Fault(cut=True),
    "timed out within the answer": Fault(stall=True),
    "the answer cannot be read": Fault(body="zebulonic, no JSON"),
}


def consult(box, **words):
    settings = {"patient": PATIENT, "audit_key": KEY, "max_retries": 0}
    return svc.SvcMedicalConsult(**{**box.medical, **settings, **words})


def raised(tool, config):
    with pytest.raises(svc.SvcError) as failure:
        tool.invoke(ASKED, config)
    return failure.value.receipt


def raised_async(tool, config):
    with pytest.raises(svc.SvcError) as failure:
        asyncio.run(tool.ainvoke(ASKED, config))
    return failure.value.receipt


def node(tool):
    graph = StateGraph(MessagesState).add_node("tools", ToolNode([tool]))
    return graph.set_entry_point("tools").compile()


def asked_by_a_model(tool):
    return {"messages": [AIMessage("", tool_calls=[tool_call(tool, ASKED)])]}


WAYS = {
    "call": lambda tool, config: tool.invoke(tool_call(tool, ASKED), config).artifact,
    "async call": lambda tool, config: (
        asyncio.run(tool.ainvoke(tool_call(tool, ASKED), config)).artifact
    ),
    "raised": raised,
    "raised async": raised_async,
    "node": lambda tool, config: (
        node(tool).invoke(asked_by_a_model(tool), config)["messages"][-1].artifact
    ),
    "async node": lambda tool, config: (
        asyncio.run(node(tool).ainvoke(asked_by_a_model(tool), config))["messages"][-1].artifact
    ),
}


def proves(receipt, box):
    """Whether a receipt tells of the requests that arrived: how many, where and which bytes."""
    hashes = {hmac.new(KEY.encode(), r.body, hashlib.sha256).hexdigest() for r in box.requests}
    assert hashes == {receipt.body_hash}
    assert len(box.requests) == sum(sent.left for sent in receipt.tries)
    assert receipt.host == box.url.removeprefix("http://")
    assert receipt.endpoint == f"POST {box.requests[0].path}"
    assert receipt.field_names[0] == "message"


@pytest.mark.parametrize(
    ("outcome", "asked"), pairs(FAILURES, [*itertools.product(WAYS, ("model", "program"))])
)
def test_a_call_that_failed_has_its_receipt(box, outcome, asked):
    way, answer_to = asked
    box.faults = [FAILURES[outcome]]
    records, keeper = [], RunKeeper()
    words = {"answer_to": answer_to, "deliver": pytest.fail, "audit": records.append}
    if outcome.startswith("timed out"):
        words["timeout"] = 1
    with consult(box, **words) as tool:
        receipt = WAYS[way](tool, {**CONFIG, "callbacks": [keeper]})
    assert type(receipt) is svc.ClinicalReceipt
    assert (receipt.outcome, receipt.answer_to, receipt.case) == (outcome, answer_to, "case-7")
    assert receipt.tries[0].time <= receipt.tries[0].ended
    proves(receipt, box)
    assert records[-1] == receipt
    audit = receipt.audit()
    assert AuditEvent.model_validate_json(json.dumps(audit)).outcome in {"4", "8"}
    clean(f"{receipt!r}{audit}{''.join(keeper.told)}{records}")


@pytest.mark.parametrize("way", part(["call", "async call", "node", "async node"]))
def test_every_retry_is_on_record(box, way):
    faults = [
        Fault(status=503, headers=SOON, times=1),
        Fault(reset="before", times=1),
        Fault(hang=True, times=1),
    ]
    box.faults = faults
    results = []
    with consult(box, timeout=1, max_retries=3, deliver=results.append) as tool:
        made = WAYS[way](tool, CONFIG)
    proves(made, box)
    assert [sent.outcome for sent in made.tries] == [
        "status 503",
        "connection lost",
        "timed out",
        "answered",
    ]
    times = [time for sent in made.tries for time in (sent.time, sent.ended)]
    assert times == sorted(times)
    ids = [sent.request_id for sent in made.tries]
    assert [one is None for one in ids] == [False, True, True, False]
    assert len({*ids}) == 3
    (result,) = results
    assert (result.receipt, result.audit()) == (made.receipt, made.audit())
    details = {d["type"]: d["valueString"] for d in result.audit()["entity"][0]["detail"]}
    assert details["tries"] == "4"
    assert [details[f"try {n}"].split(", ")[1] for n in (1, 2, 3, 4)] == [
        sent.outcome for sent in made.tries
    ]
    assert AuditEvent.model_validate_json(json.dumps(result.audit())).outcome == "0"


def test_of_a_service_that_is_not_reached_the_record_says_that_nothing_left(box):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with consult(box, medical_base_url=url) as tool:
        receipt = WAYS["call"](tool, CONFIG)
    (sent,) = receipt.tries
    assert sent.outcome == "not sent: the service could not be reached"
    assert sent.left is False


@pytest.mark.parametrize("arguments", [{"message": "\ud83d"}, {"message": "hi", "language": "!"}])
def test_what_was_never_tried_has_no_receipt(box, arguments):
    with consult(box, audit=pytest.fail) as tool:
        assert tool.invoke(tool_call(tool, arguments)).artifact is None
        with pytest.raises(svc.SvcRequestError) as failure:
            tool.invoke(arguments)
    assert failure.value.receipt is None
    assert box.requests == []


@pytest.mark.parametrize(
    ("handler", "text"),
    [
        (True, "svc_medical_consult gave no answer"),
        ("ask later", "ask later"),
        (lambda error: type(error).__name__, "ToolException"),
    ],
)
def test_a_receipt_is_there_whatever_the_model_is_told(box, handler, text):
    box.faults = [FAILURES["status 401"]]
    with consult(box, handle_tool_error=handler) as tool:
        message = tool.invoke(tool_call(tool, ASKED))
        assert (message.status, message.name) == ("error", tool.name)
        assert message.tool_call_id == "c1"
        assert message.content.startswith(text)
        assert message.artifact.outcome == "status 401"
        assert tool.invoke(ASKED).startswith(text)
    with consult(box, handle_tool_error=False) as tool, pytest.raises(svc.SvcError) as failure:
        tool.invoke(tool_call(tool, ASKED))
    assert failure.value.receipt.outcome == "status 401"


def test_a_budget_that_ends_between_two_tries_does_not_deny_the_first(box):
    box.faults = [Fault(status=503, headers=SOON)]
    with consult(box, budget=svc.SvcBudget(max_requests=1), max_retries=3) as tool:
        message = tool.invoke(tool_call(tool, ASKED))
        assert message.artifact.outcome == "status 503"
        assert not message.content.startswith("Nothing was sent")
        message = tool.invoke(tool_call(tool, ASKED))
    assert message.artifact is None
    assert message.content.startswith("Nothing was sent: ")
    assert len(box.requests) == 1


def test_an_answer_that_was_not_delivered_has_its_receipt(box):
    def deliver(result):
        raise OSError

    with consult(box, deliver=deliver) as tool:
        message = tool.invoke(tool_call(tool, ASKED), CONFIG)
        (kept,) = tool.undelivered
    assert message.status == "error"
    assert message.artifact == kept.receipt
    assert message.artifact.outcome == "answered"


# -- on record before it leaves --------------------------------------------------------------------


@pytest.mark.parametrize("way", ["call", "async call"])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_try_is_on_record_before_its_bytes_go(box, way, is_async):
    if is_async and way == "call":
        with consult(box, audit=asyncio.sleep) as tool:
            assert "audit is an async function" in tool.invoke(tool_call(tool, ASKED)).content
        assert box.requests == []
        return
    seen = []

    def audit(receipt):
        seen.append((receipt, len(box.requests)))

    async def aaudit(receipt):
        await asyncio.sleep(0)
        audit(receipt)

    box.faults = [Fault(status=503, headers=SOON, times=2)]
    with consult(box, audit=aaudit if is_async else audit, max_retries=2) as tool:
        made = WAYS[way](tool, CONFIG)
    told = [(len(receipt.tries), receipt.outcome, arrived) for receipt, arrived in seen]
    assert told == [
        (1, "no answer yet", 0),
        (1, "status 503", 1),
        (2, "no answer yet", 1),
        (2, "status 503", 2),
        (3, "no answer yet", 2),
        (3, "answered", 3),
    ]
    assert {receipt.id for receipt, _ in seen} == {made.id}
    assert seen[-1][0] == made.receipt


@pytest.mark.parametrize("way", ["call", "async call", "raised", "raised async"])
@pytest.mark.parametrize("tries", [1, 2])
def test_nothing_leaves_that_cannot_be_put_on_record(box, way, tries):
    def audit(receipt):
        if len(receipt.tries) == tries:
            raise OSError("zebulonic")

    box.faults = [Fault(status=503, headers=SOON)]
    with consult(box, audit=audit, max_retries=4) as tool:
        receipt = WAYS[way](tool, CONFIG)
        assert len(box.requests) == tries - 1
        assert [sent.left for sent in receipt.tries] == [True] * (tries - 1) + [False]
        assert receipt.outcome == "not sent: it could not be put on record"
        told = tool.invoke(tool_call(tool, ASKED)).content
    assert "could not be put on record (audit raised OSError)" in told


def test_an_answer_is_not_lost_where_its_end_cannot_be_put_on_record(box, caplog):
    def audit(receipt):
        if receipt.tries[-1].ended:
            raise OSError("zebulonic")

    with consult(box, audit=audit) as tool:
        message = tool.invoke(tool_call(tool, ASKED))
    assert message.status == "success"
    assert "audit raised OSError" in caplog.text
    clean(caplog.text)


def test_a_call_that_was_interrupted_is_on_record(box):
    async def cancelled(tool):
        task = asyncio.ensure_future(tool.ainvoke(tool_call(tool, ASKED), CONFIG))
        while not box.requests:  # noqa: ASYNC110  # the sandbox runs in a thread
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    box.faults = [Fault(hang=True)]
    records = []
    with consult(box, audit=records.append, timeout=60) as tool:
        asyncio.run(cancelled(tool))
    (receipt,) = records
    proves(receipt, box)
    assert receipt.outcome == "no answer yet"
    assert receipt.tries[0].ended is None
    event = AuditEvent.model_validate_json(json.dumps(receipt.audit()))
    assert (event.outcome, event.outcomeDesc) == (None, "no answer yet")


def test_a_resumed_run_does_not_replace_the_record_of_the_first(box):
    config = {"configurable": {"svc_case": "case-7", "thread_id": "t"}}
    records = []
    with consult(box, audit=records.append) as tool:
        made = [tool.invoke(tool_call(tool, ASKED), config).artifact for _ in range(2)]
    assert made[0].id == made[1].id
    keys = [(receipt.id, receipt.time) for receipt in records]
    assert keys[0] == keys[1] != keys[2] == keys[3]


# -- wherever it is kept ---------------------------------------------------------------------------


@pytest.mark.parametrize("asynchronous", [False, True])
def test_an_agents_thread_keeps_the_receipts_of_its_failures(box, asynchronous):
    box.faults = [Fault(status=500, headers=SOON)]
    records, saver = [], InMemorySaver()
    call = ToolCall("svc_medical_consult", ASKED)
    with (
        Sandbox(answers=[call, "It failed."]) as chat,
        svc.ChatSvc(**chat.v1) as model,
        consult(box, audit=records.append, max_retries=1) as tool,
    ):
        agent = create_agent(model, [tool], checkpointer=saver)
        run = {"configurable": {"thread_id": "t", "svc_case": "case-7"}}
        question = {"messages": [("user", "What now?")]}
        if asynchronous:
            asyncio.run(agent.ainvoke(question, run))
        else:
            agent.invoke(question, run)
        told = agent.get_state(run).values["messages"][2]
    assert told.status == "error"
    again = svc.ClinicalReceipt(**told.artifact)
    assert again == records[-1]
    assert again.audit() == records[-1].audit()
    proves(again, box)
    assert len(again.tries) == 2


def test_a_receipt_is_the_same_wherever_it_is_kept_and_in_no_text_of_an_error(box):
    box.faults = [FAILURES["status 500"]]
    with consult(box) as tool:
        with pytest.raises(svc.SvcError) as failure:
            tool.invoke(ASKED, CONFIG)
        message = tool.invoke(tool_call(tool, ASKED), CONFIG)
    error = failure.value
    receipt = error.receipt
    serde = JsonPlusSerializer(pickle_fallback=True)
    thawed = serde.loads_typed(serde.dumps_typed(message)).artifact
    assert svc.ClinicalReceipt(**thawed) == message.artifact
    for again in (
        pickle.loads(pickle.dumps(error)).receipt,
        copy.deepcopy(receipt),
        svc.ClinicalReceipt(**dataclasses.asdict(receipt)),
    ):
        assert again == receipt
    for text in (str(error), repr(error), message.content):
        assert receipt.body_hash not in text
        assert receipt.id not in text


def test_a_private_call_has_its_receipt_and_no_trace_of_it(box):
    box.faults = [FAILURES["status 401"]]
    keeper = RunKeeper()
    config = {**CONFIG, "callbacks": [keeper]}
    with consult(box, privacy="phi") as tool:
        message = tool.invoke(tool_call(tool, ASKED), config)
        assert raised(tool, config).outcome == "status 401"
    assert message.artifact.outcome == "status 401"
    assert message.artifact.body_hash not in "".join(keeper.told)


def test_a_function_of_the_auditor_is_in_copies_and_in_no_pickle(box, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("SVC_MEDICAL_API_KEY", box.medical["api_key"])
    records = []
    with svc.SvcMedicalToolkit(**box.medical, audit=records.append) as kit:
        (tool, *_) = kit.get_tools()
        for one in (tool, copy.deepcopy(tool), copy.deepcopy(kit).get_tools()[0]):
            one.invoke(ASKED)
        assert len(records) == 6
        assert "append" not in repr(kit) + repr(tool)
        lost = pickle.loads(pickle.dumps(tool)).invoke(tool_call(tool, ASKED))
    assert "carries no audit" in lost.content
    assert len(box.requests) == 3
    assert records[-1].id not in caplog.text
