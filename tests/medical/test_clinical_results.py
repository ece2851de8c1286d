"""What a program gets of a medical answer, and what traces and checkpoints get of it."""

from __future__ import annotations

import base64
import copy
import dataclasses
import io
import json
import logging
import pickle
import re

import pytest
from fhir.resources.R4B import get_fhir_model_class
from langchain.agents import create_agent
from langchain_core.load import dumps
from langchain_core.messages import ToolMessage, messages_to_dict
from langchain_core.tracers.base import BaseTracer
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langsmith._internal._serde import dumps_json
from rich.console import Console
from test_patient import MARKED, MARKS, PNG, clean

import langchain_svc as svc
from langchain_svc._clinical.findings import Findings, read_attachments, read_findings
from langchain_svc._clinical.result import NOTICE
from langchain_svc.sandbox import Fault, Sandbox

PATIENT = svc.PatientContext(**MARKED, images=[PNG])
PDF = b"%PDF-1.7\n" + bytes(range(256))
B64 = base64.b64encode(PDF).decode()

# -- findings -------------------------------------------------------------------------------------

FOUND = [
    ({"riskLevel": "high", "riskScore": 61, "urgency": "urgent", "recommendations": ["a", "b"]}, Findings("high", 61, "urgent", ("a", "b"))),
    ({"success": True, "data": {"risk_level": "Low", "risk_score": 0.2}}, Findings("Low", 0.2)),
    ({"risk": {"level": "high", "score": "61 %"}, "triage": {"level": "red"}}, Findings("high", 61.0, "red")),
    ({"riskAssessment": {"category": "moderate", "value": 3}}, Findings("moderate", 3)),
    ({"risk": "very high", "probability": "0.82"}, Findings("very high", 0.82)), ({"risk": 0.4}, Findings(None, 0.4)),
    ({"assessment": "x", "priority": "routine", "recommendation": "Rest. Drink 1.5 l."}, Findings(None, None, "routine", ("Rest. Drink 1.5 l.",))),
    ({"recommendedActions": "1. Rest\n2. Give 2.5 mg", "nextSteps": [{"action": "x", "when": "now"}]}, Findings(recommendations=("Rest", "Give 2.5 mg", "action: x, when: now"))),
    ({"patient": {"riskLevel": "high"}, "request": {"urgency": "now"}, "response": "x"}, Findings()),
    ("Rest.", Findings()), (None, Findings()), ({"riskScore": True, "riskLevel": ["x"], "urgency": ""}, Findings()), ({"error": "x", "riskLevel": "high"}, Findings()),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "found"), FOUND)
def test_findings_are_read_from_every_plausible_shape(raw, found):
    assert read_findings(raw) == found
    assert Findings(**{**found.as_json(), "recommendations": found.recommendations}) == found


FILES = [
    ({"report": {"contentType": "application/pdf", "data": B64, "filename": "r.pdf"}}, [("application/pdf", "r.pdf")]), ({"pdf": B64}, [("application/pdf", None)]),
    ({"files": [f"data:application/pdf;base64,{B64}", {"base64": B64, "name": "x"}]}, [("application/pdf", None), ("application/pdf", "x")]),
    ({"a": {"mime_type": "text/csv", "content": base64.b64encode(b"a,b,c,d,e,f,g\n").decode()}}, [("text/csv", None)]), ({"plot": base64.b64encode(PNG).decode()}, [("image/png", None)]),
    ({"images": [B64], "request": {"file": B64}}, []), ({"response": "Hypertensiontherapy", "type": "text"}, []), ({"contentType": "text/plain", "content": "Rest and drink some water now"}, []), ("x", []), (None, []),
]  # fmt: skip


@pytest.mark.parametrize(("raw", "files"), FILES)
def test_files_in_an_answer_are_attachments(raw, files):
    made = read_attachments(raw)
    assert [(one.content_type, one.name) for one in made] == files
    assert all(one.data in {PDF, PNG, b"a,b,c,d,e,f,g\n"} for one in made)
    assert "data" not in repr(made)


# -- forms ----------------------------------------------------------------------------------------

LONG = "Give 1.5 mg of adrenaline every 5 minutes, " * 8
ANSWER = {
    "response": f"For a 47.93417-year-old: see below. {LONG}",
    "riskLevel": "high", "riskScore": 61, "urgency": "emergency",
    "recommendations": [LONG, "History of quuxitis major: call."], "report": B64,
}  # fmt: skip
ASKED = {
    svc.SvcMedicalConsult: {"message": "hi"},
    svc.SvcDecisionSupport: {"symptoms": ["a"], "specialty": "b"},
    svc.SvcCancerRisk: {"symptoms": "a"},
}


def result_of(box, kind, answer=ANSWER, **words):
    box.faults = [Fault(status=200, body=answer)]
    with kind(**box.medical, patient=PATIENT, **words) as tool:
        call = {"name": tool.name, "args": ASKED[kind], "id": "c1", "type": "tool_call"}
        return tool.invoke(call)


@pytest.mark.parametrize(("kind", "resource"), [*zip(ASKED, ["DiagnosticReport", "GuidanceResponse", "RiskAssessment"], strict=True)])  # fmt: skip
def test_a_result_is_a_valid_fhir_resource(box, kind, resource):
    made = result_of(box, kind).artifact
    for subject in ("Patient/123", None):
        form = made.to_fhir(subject)
        assert form["resourceType"] == resource
        get_fhir_model_class(resource).model_validate(json.loads(json.dumps(form)))
        assert form["subject"].get("reference") == subject
        shown = json.dumps(form, ensure_ascii=False)
        assert NOTICE in shown
        assert LONG.strip() in shown.replace("\\n", "\n")
    with pytest.raises(svc.SvcRequestError, match="Patient/123"):
        made.to_fhir("the patient")


def test_what_the_resources_say(box):
    risk = result_of(box, svc.SvcCancerRisk).artifact.to_fhir("Patient/1")
    (prediction,) = risk["prediction"]
    assert prediction["qualitativeRisk"]["coding"][0]["code"] == "high"
    assert prediction["rationale"] == "Risk score of the service: 61"
    assert "probabilityDecimal" not in prediction
    assert risk["mitigation"].splitlines() == [LONG.strip(), ANSWER["recommendations"][1]]
    guidance = result_of(box, svc.SvcDecisionSupport).artifact.to_fhir()
    (plan,) = guidance["contained"]
    assert [one["description"] for one in plan["action"]] == risk["mitigation"].splitlines()
    assert plan["action"][0]["priority"] == "stat"
    report = result_of(box, svc.SvcMedicalConsult).artifact.to_fhir()
    text, pdf = report["presentedForm"]
    assert base64.b64decode(text["data"]).decode().startswith(ANSWER["response"].strip())
    assert base64.b64decode(pdf["data"]) == PDF


def test_an_answer_of_a_text_alone_has_forms_too(box):
    for kind in ASKED:
        made = result_of(box, kind, {"response": "Rest."}).artifact
        assert made.to_fhir()["resourceType"]
        (card,) = made.to_cds_cards()
        assert card["indicator"] == "info"


def test_the_status_has_no_clinical_form(box):
    call = {"name": "svc_medical_status", "args": {}, "id": "c1", "type": "tool_call"}
    made = svc.SvcMedicalStatus(**box.medical).invoke(call).artifact
    for form in (made.to_fhir, made.to_cds_cards):
        with pytest.raises(svc.SvcRequestError, match="not about a patient"):
            form()


INDICATORS = [("Emergency", "critical"), ("urgent", "warning"), ("routine", "info"), ("non urgent", "info"), ("level 3 of 5", "warning"), ("immediate", "critical")]  # fmt: skip


@pytest.mark.parametrize(("urgency", "indicator"), INDICATORS)
def test_cards_of_cds_hooks(box, urgency, indicator):
    answer = {**ANSWER, "urgency": urgency}
    (card,) = result_of(box, svc.SvcCancerRisk, answer).artifact.to_cds_cards("Our AI")
    assert card["summary"] == f"Cancer risk assessment (risk: high, urgency: {urgency})"
    assert card["indicator"] == indicator
    assert card["source"] == {"label": "Our AI"}
    assert card["detail"].startswith(ANSWER["response"].strip())
    assert card["detail"].endswith(NOTICE)


def test_a_summary_cuts_no_clinical_text(box):
    answer = {**ANSWER, "urgency": LONG, "riskLevel": LONG}
    (card,) = result_of(box, svc.SvcCancerRisk, answer).artifact.to_cds_cards()
    assert card["summary"] == "Cancer risk assessment"


# -- what is stored -------------------------------------------------------------------------------


def views(message):
    """Every way in which somebody writes a tool's message or its artifact down."""
    serde = JsonPlusSerializer(pickle_fallback=True)
    made = message.artifact
    screen = io.StringIO()
    Console(file=screen, width=200).print(made, message)
    yield from (
        repr(made),
        str(message),
        repr(vars(made)),
        screen.getvalue(),
        message.model_dump_json(),
    )
    yield from (
        dumps(message),
        dumps(made),
        repr(messages_to_dict([message])),
        repr(dataclasses.asdict(made)),
    )
    yield from (
        dumps_json(made).decode(),
        dumps_json(message).decode(),
        json.dumps(vars(made), default=repr),
    )
    for value in (made, message, {"messages": [message]}):
        yield repr(serde.dumps_typed(value))
        yield repr(pickle.dumps(value))


@pytest.mark.parametrize("kind", ASKED)
@pytest.mark.parametrize("privacy", [None, "phi"])
def test_what_serializes_holds_no_record(box, kind, privacy):
    said = result_of(box, kind, privacy=privacy)
    assert said.artifact.raw == ANSWER
    for view in views(said):
        assert "quuxitis major" not in view.lower()
        assert "47.93417" not in view
        assert "133.71" not in view
        assert B64[:60] not in view


def test_copies_in_the_process_have_all_and_stored_ones_have_what_was_shown(box):
    said = result_of(box, svc.SvcDecisionSupport)
    made = said.artifact
    for again in (
        copy.copy(made),
        copy.deepcopy(made),
        copy.deepcopy(said).artifact,
        said.model_copy(deep=True).artifact,
    ):
        assert again == made
        assert again.raw == ANSWER
    serde = JsonPlusSerializer(allowed_msgpack_modules=[type(made)])
    for again in (pickle.loads(pickle.dumps(made)), serde.loads_typed(serde.dumps_typed(made))):
        assert again == made
        assert again.raw is None
        assert again.attachments == ()
        assert again.full_text == made.text
        assert (again.risk_level, again.risk_score, again.urgency) == ("high", 61, "emergency")
        assert again.recommendations[0] == LONG.strip()
        clean(repr(again.recommendations))
        clean(json.dumps(again.to_fhir()) + json.dumps(again.to_cds_cards()))


IDS = re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16,}")  # they hold any five digits at times


class Recorder(BaseTracer):
    def __init__(self):
        super().__init__()
        self.told = []

    def _persist_run(self, run):
        self.told += [run.model_dump_json(), dumps_json(run.model_dump()).decode(), repr(run)]


@pytest.mark.parametrize("name", ["svc_medical_consult", "svc_decision_support"])
def test_an_agents_checkpoints_and_traces_hold_no_record(caplog, name):
    caplog.set_level(logging.WARNING)
    saver, recorder = InMemorySaver(), Recorder()
    questions = {"svc_medical_consult": 'Ask a consultation about "chest pain".', "svc_decision_support": 'What do protocols of the specialty "cardiovascular" say about "chest pain"?'}  # fmt: skip
    with (
        Sandbox() as box,
        svc.ChatSvc(**box.v1, model="svc-pro") as model,
        svc.SvcMedicalToolkit(**box.medical, patient=PATIENT, selected=[name]) as toolkit,
    ):
        agent = create_agent(model, toolkit.get_tools(), checkpointer=saver)
        run = {"configurable": {"thread_id": "t"}, "callbacks": [recorder]}
        state = agent.invoke({"messages": [("user", questions[name])]}, run)
    (told,) = [one for one in state["messages"] if isinstance(one, ToolMessage)]
    assert any(mark in json.dumps(told.artifact.raw) for mark in MARKS)
    stored = repr(dict(saver.storage)) + repr(dict(saver.blobs)) + repr(dict(saver.writes))
    assert "svc" in stored
    clean(IDS.sub("", stored))
    assert recorder.told
    clean(IDS.sub("", "".join(recorder.told)))
