"""Whose answer it is: a case's record is loaded at each call, and the case stands on its answer."""

from __future__ import annotations

import asyncio
import json
import pickle

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from peers import tool_call

import langchain_svc as svc
from langchain_svc.sandbox import Sandbox, ToolCall

AGES = {f"case-{number}": 30 + number for number in range(5)}


def load(case):
    return svc.PatientContext(age=AGES[case])


async def aload(case):
    await asyncio.sleep(0)
    return load(case)


def of_case(case, **more):
    return {"configurable": {"svc_case": case, **more}}


def asked(tool, config):
    return tool.invoke(tool_call(tool, {"message": "hi"}), config)


def ages_sent(box):
    return [json.loads(request.body)["patientContext"]["age"] for request in box.requests]


@pytest.mark.parametrize("loader", [load, aload])
@pytest.mark.parametrize("answer_to", ["model", "program"])
def test_of_answers_in_parallel_each_names_its_case(box, loader, answer_to):
    results = []

    async def ask_all(tool):
        call = tool_call(tool, {"message": "hi"})
        return await asyncio.gather(*(tool.ainvoke(call, of_case(case)) for case in AGES))

    words = {"patient": loader, "deliver": results.append, "answer_to": answer_to}
    with svc.SvcMedicalConsult(**box.medical, **words) as tool:
        messages = asyncio.run(ask_all(tool))
    assert [message.artifact.case for message in messages] == [*AGES]
    assert sorted(ages_sent(box)) == [*AGES.values()]
    for result in results:
        values = {value.name: value.value for value in result.sent}
        assert values["patientContext.age"] == AGES[result.case]
        assert result.tool_call_id == "c1"


def test_a_record_is_loaded_at_each_call_and_is_not_the_models(box):
    ages = iter((40, 41))
    patient = lambda case: svc.PatientContext(age=next(ages))  # noqa: E731
    with svc.SvcMedicalToolkit(**box.medical, patient=patient) as kit:
        consult, *_, status = kit.get_tools()
        assert "patient_context" not in consult.args
        for _ in range(2):
            assert asked(consult, of_case("a")).status == "success"
        assert status.invoke(tool_call(status, {})).status == "success"
    assert [json.loads(r.body)["patientContext"]["age"] for r in box.requests if r.body] == [40, 41]


def raising(case):
    raise OSError(f"zebulonic {case}")


def hidden(case):
    """Nobody can see that it is async."""
    return aload(case)


class Database:
    """A store whose `repr` tells of patients."""

    def load(self, case):
        return load(case)

    def __repr__(self):
        return "Database(zebulonic)"


def test_a_tool_shows_nothing_of_where_its_records_are(box):
    with svc.SvcMedicalConsult(**box.medical, patient=Database().load) as tool:
        assert "zebulonic" not in repr(tool) + str(tool)
        assert asked(tool, of_case("case-1")).status == "success"


REFUSED = [
    (load, {}, "This run has no case"),
    (load, {"svc_case": 7}, "must be a text"),
    (load, {"svc_case": " "}, "must be a text"),
    (load, {"svc_case": "case-1", "svc_patient": svc.PatientContext(age=4)}, "Give one of the two"),
    (aload, {"svc_case": "case-1"}, "by ainvoke"),
    (hidden, {"svc_case": "case-1"}, "by ainvoke"),
    (raising, {"svc_case": "zebulonic"}, "patient= raised OSError"),
    (lambda case: {"age": 4}, {"svc_case": "a"}, "not a dict"),
]


@pytest.mark.parametrize(("loader", "given", "reason"), REFUSED)
def test_without_the_record_of_a_case_nothing_is_sent(box, loader, given, reason):
    with svc.SvcMedicalConsult(**box.medical, patient=loader) as tool:
        message = asked(tool, {"configurable": given})
        assert message.status == "error"
        assert message.content.startswith("Nothing was sent: ")
        assert reason in message.content
        assert "zebulonic" not in message.content
        with pytest.raises(svc.SvcRequestError) as raised:
            tool.invoke({"message": "hi"}, {"configurable": given})
    assert raised.value.__context__ is None
    assert box.requests == []


def test_a_function_is_in_no_pickle(box, monkeypatch):
    monkeypatch.setenv("SVC_MEDICAL_API_KEY", box.medical["api_key"])
    with svc.SvcMedicalConsult(**box.medical, patient=Database().load) as tool:
        lost = pickle.loads(pickle.dumps(tool))
        assert "carries no patient" in asked(lost, of_case("case-1")).content


@pytest.mark.parametrize("answer_to", ["model", "program"])
def test_a_thread_of_another_case_is_refused(box, answer_to):
    call = ToolCall("svc_medical_consult", {"message": "what now"})
    words = {"patient": load, "answer_to": answer_to, "deliver": str}
    with (
        Sandbox(answers=[call, "Ready."] * 3) as chat,
        svc.ChatSvc(**chat.v1) as model,
        svc.SvcMedicalToolkit(**box.medical, **words) as kit,
    ):
        agent = create_agent(model, kit.get_tools(), checkpointer=InMemorySaver())
        statuses = []
        for case in ("case-1", "case-1", "case-2"):
            question = {"messages": [("user", "What now?")]}
            messages = agent.invoke(question, of_case(case, thread_id="t"))["messages"]
            statuses.append([m for m in messages if isinstance(m, ToolMessage)][-1])
    assert [message.status for message in statuses] == ["success", "success", "error"]
    assert "of another case" in statuses[-1].content
    assert ages_sent(box) == [31, 31]


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("named", "text"),
    [({"svc_case": "case-3"}, "of case case-3"), ({}, "of a case that the run does not name")],
)
def test_who_approves_a_call_reads_its_case_and_where_it_goes(box, named, text, asynchronous):
    call = ToolCall("svc_medical_consult", {"message": "what now"})
    with (
        Sandbox(answers=[call]) as chat,
        svc.ChatSvc(**chat.v1) as model,
        svc.SvcMedicalToolkit(
            **box.medical, patient=load, answer_to="program", deliver=pytest.fail
        ) as kit,
    ):
        asks = HumanInTheLoopMiddleware(interrupt_on=kit.interrupt_on())
        agent = create_agent(model, kit.get_tools(), middleware=[asks], checkpointer=InMemorySaver())  # fmt: skip
        run = {"configurable": {"thread_id": "t", **named}}
        question = {"messages": [("user", "What?")]}
        if asynchronous:
            state = asyncio.run(agent.ainvoke(question, run))
        else:
            state = agent.invoke(question, run)
    (request,) = state["__interrupt__"][0].value["action_requests"]
    host = box.url.removeprefix("http://")
    assert request["description"].startswith(
        f"svc_medical_consult sends clinical data {text} to the service at {host}; the program "
        "reads its answer."
    )
    assert box.requests == []
