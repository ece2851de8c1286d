"""Who reads an answer: the model all of it, or the program all of it and the model no three words."""

from __future__ import annotations

import asyncio
import base64
import copy
import dataclasses
import functools
import json
import logging
import pickle
import re

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.load import dumps
from langchain_core.messages import ToolMessage, messages_to_dict
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langsmith._internal._serde import dumps_json
from peers import RunKeeper, listed, thawed, tool_call
from pydantic import ValidationError
from test_patient import MARKED, MARKS, clean

import langchain_svc as svc
from langchain_svc.medical.result import NOTICE
from langchain_svc.sandbox import Fault, Sandbox, ToolCall

# Answers in five languages, each an advice and what rules it out for this patient, in odd JSON.
TEXTS = [
    (
        "Start nitrofurantoin 100 mg twice daily for five days.",
        "Her eGFR of 27 mL/min rules nitrofurantoin out: give fosfomycin 3 g once.",
    ),
    (
        "Offer ibuprofen 400 mg with meals.\nReview after one week.",
        "He is on lithium, and ibuprofen raises its level:\n- stop ibuprofen\n- measure lithium in 5 days",
    ),
    (
        "Bei Schmerzen Metamizol 1 g bis viermal am Tag.",
        "Nach der Agranulozytose von 2019 ist Metamizol für ihn „absolut“ kontraindiziert.",
    ),
    (
        "Réhydrater avec 500 ml de sérum salé.",
        "La fraction d'éjection à 20 % impose un débit réduit, et un arrêt dès l'apparition de crépitants.",
    ),
    (
        "Indique alendronato 70 mg cada semana.",
        "Por su acalasia no debe tragar alendronato; valore zoledronato tras corregir el calcio.",
    ),
    (
        "Iniziare allopurinolo 100 mg al giorno.",
        "Assume azatioprina 150 mg: senza ridurla a un quarto l'allopurinolo causa una grave aplasia.",
    ),
]
FILE = base64.b64encode(bytes(range(256)) * 4).decode()


def _twice(advice, against):
    """One name for two fields, which JSON allows and a dict forgets."""
    return f'{{"advice": {json.dumps(advice)}, "advice": {json.dumps(against, ensure_ascii=False)}}}'.encode()


def _nested(advice, against):
    body = {"finding": against}
    for level in range(60):
        body = {f"level{level}": [body]}
    return {"summary": advice, "detail": body}


SHAPES = {
    "text": lambda a, c: f"{a} {c}",
    "fields": lambda a, c: {"recommendation": a, "contraindication": c},
    "names of the protocol": lambda a, c: {
        "status": a,
        "time": c,
        "success": True,
        "code": 3,
        "id": "x",
    },
    "envelopes": lambda a, c: {"data": {"response": a}, "result": {"response": c}},
    "list": lambda a, c: [a, [[], {}, {"date": c}]],
    "completion": lambda a, c: {
        "choices": [{"index": 0, "message": {"role": "assistant", "content": f"{a} {c}"}}],
        "usage": {"tokens": 5},
    },
    "names that say it": lambda a, c: {a: True, "but": {c: False}},
    "a file between": lambda a, c: {
        "text": a,
        "report": f"data:application/pdf;base64,{FILE}",
        "then": c,
    },
    "empty errors": lambda a, c: {"errors": [], "error": None, "message": a, "notes": ["", c]},
    "one name twice": _twice,
    "nested": _nested,
    "control characters": lambda a, c: {"a\u0007": f"{a}\t\r\n", "\u200bb": f" {c} \ud83d"},
}


def body_of(shape, pair):
    """The bytes of an answer; half of the shapes have escapes for letters beyond ASCII."""
    made = SHAPES[shape](*pair)
    if isinstance(made, bytes):
        return made
    escaped = len(shape) % 2 == 0 or "control" in shape
    return json.dumps(made, ensure_ascii=escaped).encode()


def runs_of_three(text):
    """All three words in a row, whatever stands between them or how it is escaped."""
    text = re.sub(r"\\u([0-9a-f]{4})", lambda found: chr(int(found[1], 16)), text)
    text = re.sub(r"\\x([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), text)
    words = re.findall(r"\w+", re.sub(r"\\+[nrt]", " ", text).casefold())
    return set(zip(words, words[1:], words[2:], strict=False))


PATIENT = svc.PatientContext(**MARKED)
ASKED = {
    svc.SvcMedicalConsult: {"message": "what now"},
    svc.SvcDecisionSupport: {"symptoms": ["a cough", "a rash"], "specialty": "pneumology"},
    svc.SvcCancerRisk: {"symptoms": "a lump"},
    svc.SvcMedicalStatus: {},
}
ADVICE = TEXTS[0]


def answering(box, body):
    box.faults = [Fault(status=200, body=body, content_type="application/json")]


def call_of(tool):
    return tool_call(tool, ASKED[type(tool)])


def readable(value):
    """What a value shows to whoever looks into it."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, dict):
        return " ".join(readable(one) for pair in value.items() for one in pair)
    if isinstance(value, (list, tuple, set)):
        return " ".join(map(readable, value))
    return value if isinstance(value, str) else repr(value)


def views(message):
    """Every way in which somebody writes a tool's message or its artifact down."""
    serde = JsonPlusSerializer(pickle_fallback=True)
    made = message.artifact
    yield repr(made) + str(message) + message.model_dump_json() + repr(messages_to_dict([message]))
    yield dumps(message) + repr(dataclasses.asdict(made)) + json.dumps(vars(made), default=repr)
    for value in (made, message, {"messages": [message]}):
        yield dumps_json(value).decode()
        yield readable(serde.dumps_typed(value))
        yield readable(pickle.dumps(value))


# -- to the model ---------------------------------------------------------------------------------


def pieces(value):
    """The names and texts of an answer in its order."""
    if isinstance(value, tuple):
        return [one for name, held in value for one in (name, *pieces(held))]
    if isinstance(value, list):
        return [one for held in value for one in pieces(held)]
    return [value] if isinstance(value, str) else []


def is_whole(content, body):
    """Whether a content has all names and texts of a body, one after the other."""
    names_and_texts = pieces(json.loads(body, object_pairs_hook=tuple))
    end = 0
    for piece in names_and_texts[1:] if names_and_texts[:1] == ["response"] else names_and_texts:
        shown = piece.replace(FILE, "").replace("\ud83d", "\ufffd")
        end = content.find(shown, end) + len(shown)
        if end < len(shown):
            return False
    return True


def leaves(value):
    held = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return [value] if held is None else [leaf for one in held for leaf in leaves(one)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda held: st.lists(held) | st.dictionaries(st.text(), held),
).filter(lambda made: isinstance(made, (str, list, dict)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(JSON)
def test_whatever_the_json_is_all_of_it_is_told(box, answer):
    assume(
        not (
            isinstance(answer, dict)
            and {"success", "error", "errors", "status", "detail"} & answer.keys()
        )
    )
    body = json.dumps(answer)
    answering(box, body.encode())
    with svc.SvcMedicalConsult(**box.medical, max_retries=0) as tool:
        said = tool.invoke(call_of(tool))
    assert (said.status == "error") is all(
        one is None or not str(one).strip() for one in leaves(answer)
    )
    assert said.status == "error" or is_whole(said.content, body)


def test_an_answer_is_told_under_the_services_own_names(box):
    body = b"""{"success": true, "treatment": "amoxicillin 500 mg three times daily",
        "duration": "7 days", "dose_mg": 1.50, "doses": [0.10, 5], "protocols": [
        {"id": 1, "steps": ["rest", {"when": null}]}, {}], "note": "", "none": []}"""
    answering(box, body)
    with svc.SvcMedicalConsult(**box.medical) as tool:
        text = tool.invoke(call_of(tool)).artifact.text
    assert text.split("\n") == [
        "success: true",
        "treatment: amoxicillin 500 mg three times daily",
        "duration: 7 days",
        "dose_mg: 1.50",
        "doses:",
        "  - 0.10",
        "  - 5",
        "protocols:",
        "  - id: 1",
        "    steps:",
        "      - rest",
        "      - when: null",
        "  - {}",
        'note: ""',
        "none: []",
    ]


FILES = [
    ("A1b" * 334, True),
    ("data:application/pdf;base64," + FILE, True),
    ("see " + FILE + " and rest", True),
    (FILE[:76] + "\n" + FILE, True),
    ("A1b" * 333, False),
    ("A" * 5_000, False),
    ("ACGT" * 500, False),
    ("word " * 500, False),
    ("E11.9\n" * 300, False),
]


@pytest.mark.parametrize(("text", "is_file"), FILES, ids=lambda value: str(value)[:12])
def test_only_a_file_in_base64_is_not_told(box, text, is_file):
    answering(box, json.dumps({"a": text, "then": "Do not give it."}).encode())
    with svc.SvcMedicalConsult(**box.medical) as tool:
        made = tool.invoke(call_of(tool)).artifact
    assert made.raw["a"] == text
    assert (text in made.text) is not is_file
    assert ("characters of base64]" in made.text) is is_file
    assert made.text.endswith("then: Do not give it.")


def test_an_answer_beyond_the_bound_is_not_told_in_part(box):
    answering(box, json.dumps({"advice": "Give it. " * 200, "but": "Not to her."}).encode())
    with svc.SvcMedicalConsult(**box.medical, max_result_chars=1_000, deliver=str) as tool:
        said = tool.invoke(call_of(tool))
    assert f"was given to the program as result {said.artifact.id}" in said.content
    assert said.content.startswith("[The answer has 1,825 characters and max_result_chars is 1,000")
    assert "Give it" not in said.content
    assert said.content.endswith(NOTICE)
    assert said.artifact.text.endswith("but: Not to her.")


# -- to the program -------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_of_an_answer_to_the_program_nothing_is_written_down(box, caplog, shape):
    caplog.set_level(logging.DEBUG)
    got, contents, keeper = [], set(), RunKeeper()
    words = {"patient": PATIENT, "answer_to": "program", "deliver": got.append}
    with svc.SvcMedicalConsult(**box.medical, **words) as tool:
        for pair in TEXTS:
            body = body_of(shape, pair)
            answering(box, body)
            said = tool.invoke(call_of(tool), {"callbacks": [keeper]})
            contents.add(said.content)
            secret = runs_of_three(body.decode()) | runs_of_three(" ".join(pair))
            assert secret
            for view in (*views(said), "".join(keeper.told), caplog.text, repr(got)):
                assert not secret & runs_of_three(view)
            keeper.runs.clear()
            if shape != "control characters":
                assert got[-1].raw == json.loads(body)
            assert is_whole(got[-1].text, body)
    assert len(contents) == 1
    assert len(got) == len(TEXTS)


RECEIPTS = {
    svc.SvcMedicalConsult: "svc_medical_consult asked the service with: message.",
    svc.SvcDecisionSupport: "svc_decision_support asked the service with: 2 symptoms, specialty.",
    svc.SvcCancerRisk: "svc_cancer_risk asked the service with: symptoms.",
    svc.SvcMedicalStatus: "svc_medical_status asked the service with: nothing.",
}


@pytest.mark.parametrize("kind", RECEIPTS)
def test_the_receipt_says_what_was_asked_and_sent_and_nothing_of_the_patient(box, caplog, kind):
    caplog.set_level(logging.DEBUG)
    got, keeper = [], RunKeeper()
    with kind(**box.medical, patient=PATIENT, answer_to="program", deliver=got.append) as tool:
        said = tool.invoke(call_of(tool), {"callbacks": [keeper]})
        shown = repr(tool)
    made = said.artifact
    assert said.content.startswith(RECEIPTS[kind])
    assert "Neither guess nor sum up what it says." in said.content
    assert said.content.endswith(f"{made.of_record}\n{NOTICE}".lstrip())
    assert type(made) is svc.ClinicalReceipt
    assert made == got[0].receipt
    assert made.answer_to == "program"
    assert (made.endpoint, made.field_names) == (got[0].endpoint, got[0].field_names)
    if kind is not svc.SvcMedicalStatus:
        assert any(mark in got[0].text or mark in box.requests[0].body.decode() for mark in MARKS)
    for view in (*views(said), "".join(keeper.told), caplog.text, shown):
        clean(view)


def test_without_a_patient_too_and_the_models_own_arguments_are_counted(box):
    got = []
    with svc.SvcDecisionSupport(**box.medical, answer_to="program", deliver=got.append) as tool:
        further = {"vital_signs": {"systolic": 120, "spo2": 97}, "medical_history": ["asthma"]}
        said = tool.invoke(tool_call(tool, ASKED[type(tool)] | further))
    told = "2 symptoms, specialty, vital signs (systolic pressure, oxygen saturation), 1 condition."
    assert told in said.content
    assert "considered under" in got[0].text
    assert "considered under" not in said.content


# -- deliver --------------------------------------------------------------------------------------


class Receiver:
    """An async callable object, as a program may have."""

    def __init__(self):
        self.got = []

    async def __call__(self, result):
        await asyncio.sleep(0)
        self.got.append(result)

    def hidden(self, result):
        """Nobody can see that it is async."""
        return self(result)


def invoked(tool, how):
    """A call without a running event loop, inside one, or awaited."""
    call = call_of(tool)

    async def inside():
        return tool.invoke(call) if how == "inside a loop" else await tool.ainvoke(call)

    return tool.invoke(call) if how == "plainly" else asyncio.run(inside())


FORMS = {
    "plain": lambda receiver: receiver.got.append,
    "object": lambda receiver: receiver,
    "method": lambda receiver: receiver.__call__,
    "partial": lambda receiver: functools.partial(receiver.__call__),
    "hidden": lambda receiver: receiver.hidden,
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("how", ["plainly", "inside a loop", "awaited"])
@pytest.mark.filterwarnings("error")
def test_a_result_is_delivered_or_refused_and_never_lost(box, how, form):
    receiver = Receiver()
    answering(box, body_of("fields", ADVICE))
    deliver = FORMS[form](receiver)
    with svc.SvcMedicalConsult(**box.medical, answer_to="program", deliver=deliver) as tool:
        said = invoked(tool, how)
    if how == "awaited" or form == "plain":
        assert said.status == "success"
        (result,) = receiver.got
        assert result.text == f"recommendation: {ADVICE[0]}\ncontraindication: {ADVICE[1]}"
        return
    assert said.status == "error"
    assert "Call the tool or the agent by ainvoke" in said.content
    assert receiver.got == []
    hidden = form == "hidden"
    assert len(box.requests) == hidden
    assert ("was not delivered" if hidden else "Nothing was sent") in said.content


@pytest.mark.parametrize("answer_to", ["model", "program"])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_if_it_raises_the_error_is_without_the_answer(box, caplog, answer_to, asynchronous):
    def refuse(result):
        raise OSError(f"No room for {result.text}")

    async def arefuse(result):
        refuse(result)

    keeper = RunKeeper()
    answering(box, body_of("fields", ADVICE))
    words = {"answer_to": answer_to, "deliver": arefuse if asynchronous else refuse}
    with svc.SvcMedicalConsult(**box.medical, **words, handle_tool_error=False) as tool:
        call, config = call_of(tool), {"callbacks": [keeper]}
        with pytest.raises(svc.SvcError) as raised:
            asyncio.run(tool.ainvoke(call, config)) if asynchronous else tool.invoke(call, config)
    error = raised.value
    assert error.__cause__ is error.__context__ is None
    assert "was not delivered to the program (deliver raised OSError)" in str(error)
    secret = runs_of_three(" ".join(ADVICE))
    assert not secret & runs_of_three(f"{error}{keeper.told}{caplog.text}")


# -- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [svc.SvcMedicalConsult, svc.SvcMedicalToolkit])
def test_what_would_lose_an_answer_is_refused(kind):
    with pytest.raises(ValidationError, match="answer_to='program' needs deliver="):
        kind(answer_to="program")
    with pytest.raises(ValidationError, match="'model' or 'program'"):
        kind(answer_to="nobody", deliver=str)
    with pytest.raises(ValidationError, match="callable"):
        kind(deliver="show")


def test_a_copy_that_would_lose_answers_sends_nothing(box):
    with svc.SvcMedicalConsult(**box.medical, patient=PATIENT, deliver=str) as tool:
        for answer_to in ("program", "?"):
            update = {"answer_to": answer_to, "deliver": None}
            said = tool.model_copy(update=update).invoke(call_of(tool))
            assert said.status == "error"
            assert "needs deliver=" in said.content
        told = tool.model_copy(update={"answer_to": "progam"}).invoke(call_of(tool))
    assert "none of it to you" in told.content  # a slip tells the model nothing
    assert len(box.requests) == 1


def test_copies_deliver_to_the_same_place_and_pickles_say_what_is_missing(box, monkeypatch):
    monkeypatch.setenv("SVC_MEDICAL_API_KEY", box.medical["api_key"])
    got = []
    with svc.SvcMedicalToolkit(**box.medical, answer_to="program", deliver=got.append) as kit:
        consult = kit.get_tools()[0]
        copies = (copy.copy(consult), copy.deepcopy(consult), copy.deepcopy(kit).get_tools()[0])
        for tool in (consult, *copies):
            assert tool.invoke(call_of(tool)).status == "success"
        assert len(got) == 4
        with pytest.raises(svc.SvcRequestError, match="carries no deliver"):
            pickle.loads(pickle.dumps(kit)).get_tools()
        lost = pickle.loads(pickle.dumps(consult)).invoke(call_of(consult))
        assert lost.status == "error"
        assert "deliver" in lost.content
        with thawed(consult, "deliver") as again:
            assert again.invoke(call_of(again)).status == "success"
    assert len(got) == 5
    assert "append" not in repr(kit)


# -- agents ---------------------------------------------------------------------------------------


def run_agent(agent, run, asynchronous):
    """The messages of a thread, and what every stream told of it."""
    question = {"messages": [("user", "What now?")]}
    if asynchronous:
        streamed = asyncio.run(listed(agent.astream_events(question, run, version="v2")))
    else:
        modes = ["values", "updates", "messages", "custom"]
        streamed = list(agent.stream(question, run, stream_mode=modes))
    return agent.get_state(run).values["messages"], streamed


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("answer_to", ["model", "program"])
@pytest.mark.parametrize("bound", [PATIENT, "per_run"], ids=["tool", "run"])
def test_what_an_agent_keeps(box, caplog, answer_to, asynchronous, bound):
    caplog.set_level(logging.DEBUG)
    saver, keeper, got = InMemorySaver(), RunKeeper(), []

    def deliver(result):
        assert "recommendation" not in readable(dict(saver.blobs)) + readable(dict(saver.writes))
        got.append(result)

    async def adeliver(result):
        deliver(result)

    words = {"answer_to": answer_to, "deliver": adeliver if asynchronous else deliver}
    asked = ToolCall("svc_medical_consult", {"message": "what now"})
    answering(box, body_of("fields", ADVICE))
    with (
        Sandbox(answers=[asked, "It is ready."]) as chat,
        svc.ChatSvc(**chat.v1) as model,
        svc.SvcMedicalToolkit(**box.medical, patient=bound, **words) as kit,
    ):
        agent = create_agent(model, kit.get_tools(), checkpointer=saver)
        patient = {} if bound is PATIENT else {"svc_patient": PATIENT}
        run = {"configurable": {"thread_id": "t", **patient}, "callbacks": [keeper]}
        messages, streamed = run_agent(agent, run, asynchronous)
        prompts = readable([request.body for request in chat.requests])
        keys = (chat.v1["api_key"], box.medical["api_key"])
    (told,) = [one for one in messages if isinstance(one, ToolMessage)]
    (result,) = got
    assert "quuxitis major" in box.requests[0].body.decode()
    assert "patient_context" not in prompts
    assert result.raw == {"recommendation": ADVICE[0], "contraindication": ADVICE[1]}
    stored = "".join(readable(dict(kept)) for kept in (saver.storage, saver.blobs, saver.writes))
    assert "svc_medical_consult" in stored
    everywhere = [stored, prompts, *map(readable, (messages, streamed, pickle.dumps(messages)))]
    everywhere += keeper.told if answer_to == "program" else ["".join(keeper.told)]
    secret = runs_of_three(ADVICE[0]) | runs_of_three(ADVICE[1])
    for place in everywhere:
        assert secret & runs_of_three(place) == (secret if answer_to == "model" else set())
    clean(prompts + stored + caplog.text)
    assert not any(key in stored for key in keys)
    if answer_to == "model":
        again = svc.ClinicalResult(**told.artifact)
        assert (again, again.sent) == (result, ())
        assert result.sent
    else:
        assert svc.ClinicalReceipt(**told.artifact) == result.receipt
