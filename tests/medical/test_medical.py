"""The medical tools: what they send, what they read, and that no patient's data leaks."""

from __future__ import annotations

import asyncio
import base64
import copy
import json
import logging
import pickle
import re
from datetime import UTC, datetime, timedelta

import fhir_records as fhir
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from peers import RunKeeper, thawed, tool_call
from test_patient import MARKED, MARKS, PNG, clean

import langchain_svc as svc
from langchain_svc.medical.result import NOTICE
from langchain_svc.sandbox import Fault, Sandbox

TOOLS = [svc.SvcMedicalConsult, svc.SvcDecisionSupport, svc.SvcCancerRisk, svc.SvcMedicalStatus]
ASKED = {
    svc.SvcMedicalConsult: {"message": "chest pain", "specialty": "cardiology", "language": "en"},
    svc.SvcDecisionSupport: {"symptoms": ["chest pain"], "specialty": "cardiovascular"},
    svc.SvcCancerRisk: {"symptoms": "a cough for weeks", "imaging_type": "chest CT"},
    svc.SvcMedicalStatus: {},
}
IMAGE = base64.b64encode(PNG).decode()
PATIENT = svc.PatientContext(**MARKED, images=[PNG])
TO_PROGRAM = {"answer_to": "program", "deliver": str}  # so that no answer shows what was sent


def called(tool, arguments, config=None):
    return tool.invoke(tool_call(tool, arguments), config)


# -- what is sent ---------------------------------------------------------------------------------

CONTEXT = svc.PatientContext(
    age=61,
    sex="female",
    medical_history=["asthma"],
    current_medications=["salbutamol"],
    vital_signs={"systolic": 150, "diastolic": 95.5, "heart_rate": 90, "oxygenSaturation": 97},
    lab_results={"troponin": 0.02, "bnp": 80, "creatinine": 1, "glucose": 99},
    risk_factors=["smoking"],
    images=[PNG],
)
SENT = {
    svc.SvcMedicalConsult: (
        "POST",
        "/api/medical/chat",
        {
            "message": "chest pain",
            "specialty": "cardiology",
            "language": "en",
            "patientContext": {
                "age": 61,
                "sex": "female",
                "medicalHistory": ["asthma"],
                "currentMedications": ["salbutamol"],
            },
        },
    ),
    svc.SvcDecisionSupport: (
        "POST",
        "/api/medical/clinic-protocols",
        {
            "symptoms": ["chest pain"],
            "specialty": "cardiovascular",
            "vitalSigns": {
                "systolic": 150,
                "diastolic": 95.5,
                "heartRate": 90,
                "oxygenSaturation": 97,
            },
            "labResults": {"troponin": 0.02, "bnp": 80, "creatinine": 1, "glucose": 99},
            "medicalHistory": ["asthma"],
        },
    ),
    svc.SvcCancerRisk: (
        "POST",
        "/api/medical/cancer-diagnosis",
        {
            "symptoms": "a cough for weeks",
            "imagingType": "chest CT",
            "patientAge": 61,
            "patientSex": "female",
            "riskFactors": ["smoking"],
            "images": [IMAGE],
        },
    ),
    svc.SvcMedicalStatus: ("GET", "/api/medical/clinic-protocols", None),
}


def arrived(box):
    (request,) = box.requests
    assert request.status == 200
    assert request.unknown_fields == ()
    return request.method, request.path, request.json


@pytest.mark.parametrize("how", ["sync", "async", "copied", "pickled"])
@pytest.mark.parametrize("bound", ["tool", "run"])
@pytest.mark.parametrize("kind", TOOLS)
def test_a_bound_patient_is_sent_in_the_documented_fields(box, kind, bound, how):
    tool = kind(**box.medical, patient=CONTEXT if bound == "tool" else "per_run")
    arguments = ASKED[kind]
    config = {"configurable": {"svc_patient": CONTEXT}} if bound == "run" else None
    if how == "copied":
        tool = copy.deepcopy(tool)
    if how == "pickled":
        tool = thawed(tool, *({"patient"} & kind.model_fields.keys()))
    with tool:
        if how == "async":
            content = asyncio.run(tool.ainvoke(arguments, config))
        else:
            content = tool.invoke(arguments, config)
    assert arrived(box) == SENT[kind]
    assert content.endswith(NOTICE)


# -- what the model sees --------------------------------------------------------------------------


@pytest.mark.parametrize("patient", [PATIENT, "per_run"])
def test_a_bound_patients_fields_are_no_arguments(box, patient):
    names = {
        tool.name: set(tool.args)
        for tool in svc.SvcMedicalToolkit(**box.medical, patient=patient).get_tools()
    }
    assert names == {
        "svc_medical_consult": {"message", "specialty", "language"},
        "svc_decision_support": {"symptoms", "specialty"},
        "svc_cancer_risk": {"symptoms", "imaging_type"},
        "svc_medical_status": set(),
    }


def test_without_a_patient_they_are_arguments_with_bounds():
    parameters = convert_to_openai_tool(svc.SvcDecisionSupport())["function"]["parameters"]
    assert parameters["required"] == ["symptoms", "specialty"]
    further = {"vital_signs", "lab_results", "medical_history"}
    assert set(parameters["properties"]) == {"symptoms", "specialty"} | further
    shown = json.dumps(parameters["properties"]["vital_signs"])
    for word in ("systolic", "heart_rate", '"maximum": 45', '"additionalProperties"', "Celsius"):
        assert word in shown


def test_a_model_cannot_give_what_a_record_holds(box):
    with svc.SvcDecisionSupport(**box.medical, patient=CONTEXT) as tool:
        said = called(tool, {**ASKED[type(tool)], "vital_signs": {"systolic": 120}})
    assert said.status == "error"
    assert "does not have" in said.content
    with svc.SvcDecisionSupport(**box.medical) as tool:
        run = {"configurable": {"svc_patient": CONTEXT}}
        said = called(tool, {**ASKED[type(tool)], "vital_signs": {"systolic": 120}}, run)
    assert said.status == "error"
    assert "patient='per_run'" in said.content
    assert box.requests == []


def test_a_run_brings_its_patient(box):
    tool = svc.SvcDecisionSupport(**box.medical, patient="per_run")
    arguments = ASKED[type(tool)]
    assert "svc_patient" in called(tool, arguments).content
    wrong = called(tool, arguments, {"configurable": {"svc_patient": dict(MARKED)}})
    assert wrong.status == "error"
    assert "must be a PatientContext, not a dict" in wrong.content
    clean(wrong.content)
    assert box.requests == []
    called(tool, arguments, {"configurable": {"svc_patient": CONTEXT}})
    assert arrived(box) == SENT[type(tool)]
    assert svc.SvcMedicalStatus(**box.medical, patient="per_run").invoke({}).endswith(NOTICE)
    box.clear()
    tool = svc.SvcMedicalConsult(**box.medical, patient=CONTEXT)
    other = svc.PatientContext(age=7)  # goes before the tool's own
    tool.invoke("hi", {"configurable": {"svc_patient": other}})
    assert arrived(box)[2] == {"message": "hi", "patientContext": {"age": 7}}


# -- results --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", TOOLS)
def test_the_artifact_says_where_it_comes_from(box, kind):
    said = called(kind(**box.medical, patient=CONTEXT), ASKED[kind])
    made = said.artifact
    assert isinstance(made, svc.ClinicalResult)
    assert made.endpoint == " ".join(SENT[kind][:2])
    moment = datetime.fromisoformat(made.time)
    assert moment.tzinfo == UTC
    assert abs(datetime.now(UTC) - moment) < timedelta(minutes=1)
    assert made.request_id.startswith("req_")
    assert made.notice == NOTICE
    under = f"{made.of_record}\n{NOTICE}" if made.of_record else NOTICE
    assert said.content == f"{made.text}\n\n{under}"
    assert made.tool == kind.model_fields["name"].default
    assert isinstance(made.raw, dict)
    assert "raw" not in repr(made)


def answered(box, body, kind=svc.SvcMedicalConsult, **words):
    data = json.dumps(body).encode()
    box.faults = [Fault(status=200, body=data, content_type="application/json")]
    with kind(**box.medical, **words) as tool:
        return called(tool, ASKED[kind])


UNREADABLE = [
    b"",
    b"  ",
    b"<html>zebulonic</html>",
    b"{",
    b"null",
    b"5",
    b"true",
    b"{}",
    b"[]",
    b'{"success": true}',
    b'{"response": ""}',
    b'{"response": null, "more": [{}, " "]}',
    b'""',
    b'{"error": "zebulonic is bad"}',
    b'{"success": false, "message": "zebulonic"}',
    b'{"error": {"message": "zebulonic"}}',
    b'{"choices": []}',
    b"[" * 5000,
    b"[" * 5000 + b"1" + b"]" * 5000,
    b"\xff\xfe",
    b'{"errors": ["zebulonic"]}',
    b"zebulonic",
    b'{"status": "error", "message": "zebulonic"}',
    b'{"detail": "zebulonic"}',
    b'{"detail": [{"loc": ["body"], "msg": "zebulonic"}]}',
    b'{"success": "false"}',
    b'{"status": 503, "title": "zebulonic"}',
    b'{"error": {"code": 3}, "requestId": "7", "response": ""}',
    b'{"disclaimer": "zebulonic"}',
]


@pytest.mark.parametrize("body", UNREADABLE, ids=lambda b: str(b[:20]))
def test_what_nothing_can_be_read_from_is_a_tool_error(box, body):
    box.faults = [Fault(status=200, body=body, content_type="application/json")]
    with svc.SvcMedicalConsult(**box.medical, patient=PATIENT, max_retries=0) as tool:
        said = called(tool, {"message": "hi"})
    assert said.status == "error"
    assert "svc_medical_consult gave no answer" in said.content
    clean(said.content)


BESIDE_AN_ERROR = [
    {"error": "image 3 unreadable", "findings": "STEMI: activate the cath lab"},
    {"success": False, "response": "potassium 7.1, treat now"},
    {"errors": [{"severity": "warning"}], "response": "Anaphylaxis"},
    {"status": "error", "message": "one image failed", "riskScore": 61},
    {"success": "false", "recommendations": ["a"]},
    {"status": "failed", "detail": "x", "uptime": 3},
]


@pytest.mark.parametrize("answer_to", ["model", "program"])
@pytest.mark.parametrize("body", BESIDE_AN_ERROR, ids=str)
def test_an_answer_beside_an_error_is_delivered_whole(box, body, answer_to):
    delivered = []
    said = answered(box, body, answer_to=answer_to, deliver=delivered.append)
    assert said.status == "success"
    (result,) = delivered
    first, *lines = result.text.split("\n")
    assert first == "The service reports an error beside this"
    assert [line.partition(":")[0] for line in lines if line[0] not in " -"] == [*body]
    assert result.raw == body


def test_a_detail_among_findings_is_no_error(box):
    said = answered(box, {"summary": "Rest.", "detail": "No exertion for two weeks."})
    assert said.artifact.text == "summary: Rest.\ndetail: No exertion for two weeks."


LONG = "Give 1.5 mg of adrenaline every 5 minutes, " * 8
ANSWER = {
    "response": f"See below. {LONG}",
    "riskLevel": "high",
    "riskScore": 61,
    "urgency": "emergency",
    "recommendations": [LONG, "Call."],
}


# -- findings -------------------------------------------------------------------------------------

FOUND = [
    (
        {"riskLevel": "high", "riskScore": 61, "urgency": "urgent", "recommendations": ["a", "b"]},
        ("high", 61, "urgent", ("a", "b")),
    ),
    (
        {
            "risk_level": "Low",
            "risk_score": 0.2,
            "urgency": 1,
            "recommendations": "Rest. Drink 1.5 l.",
        },
        ("Low", 0.2, 1, ("Rest. Drink 1.5 l.",)),
    ),
    (
        {
            "riskScore": "61 %",
            "riskLevel": 3,
            "urgency": " Notfall ",
            "recommendations": [{"action": "x"}],
        },
        (3, "61 %", " Notfall ", ({"action": "x"},)),
    ),
]
NOT_FOUND = [
    {"data": {"riskLevel": "high", "urgency": "now"}},
    {"success": True, "result": {"riskScore": 4}},
    {"risk": {"level": "high", "score": "61 %"}},
    {"confidence": {"score": 0.92}},
    {"imageAnalysis": {"quality": {"score": 98}}},
    {"wells": {"score": 4}},
    {"differential": {"condition": "ACS", "probability": 0.85}},
    {"bleeding": {"risk": "high"}},
    {"triageLevel": 1, "triage": "red", "priority": "stat", "acuity": 1},
    {"riskCategory": "high", "riskPercentage": 12, "score": 3, "probability": 0.8},
    {"patient": {"riskLevel": "high"}, "response": "x"},
    [{"riskLevel": "high"}],
    {"recommendedActions": ["x"], "nextSteps": "y", "recommendation": "z"},
    {"riskLevel": True, "riskScore": ["x"], "urgency": "", "recommendations": [], "a": 1},
    {"riskLevel": None, "urgency": {"level": "red"}, "a": 1},
]


def findings(made):
    return (made.risk_level, made.risk_score, made.urgency, made.recommendations)


NOTHING = (None, None, None, ())


@pytest.mark.parametrize(("answer", "found"), [*FOUND, *((answer, NOTHING) for answer in NOT_FOUND)])  # fmt: skip
def test_findings_are_the_fields_of_these_names_and_nothing_alike(box, answer, found):
    assert findings(answered(box, answer, svc.SvcCancerRisk).artifact) == found


# -- the object -----------------------------------------------------------------------------------


def test_a_result_is_whole_wherever_it_is_kept_and_shows_nothing(box):
    made = answered(box, ANSWER, svc.SvcDecisionSupport, patient=CONTEXT).artifact
    for again in (
        copy.deepcopy(made),
        pickle.loads(pickle.dumps(made)),
        svc.ClinicalResult(**vars(made)),
    ):
        assert again == made
        assert findings(again) == findings(made)
    assert "adrenaline" not in repr(made)
    with pytest.raises(AttributeError):
        made.text = ""


# -- no leak --------------------------------------------------------------------------------------


ECHO = " ".join(MARKS) + " Zebulonic. 133.71mmHg 88231mg 73bpm 134 <quuxitis> QUUXITIS MAJOR"
LEAKS = re.compile(r"88231mg|73bpm")
ROUNDED = re.compile(r"\b(133|134|9418)\b")
FAULTS = [Fault(status=400, body={"error": ECHO}), Fault(status=200, body={"error": ECHO})]


def no_mark(text):
    clean(text)
    assert not LEAKS.search(text), text[:3000]


@pytest.mark.parametrize("fault", FAULTS)
def test_no_error_tells_of_the_patient_in_another_spelling_either(box, caplog, fault):
    """tests/privacy drives all errors through all tools; here are numbers and cases changed."""
    caplog.set_level(logging.DEBUG)
    box.faults = [fault]
    for kind in TOOLS:
        recorder = RunKeeper()
        config = {"callbacks": [recorder], "configurable": {"svc_patient": PATIENT}}
        with kind(**box.medical, max_retries=0, patient=PATIENT) as tool:
            said = called(tool, ASKED[kind], config)
        assert said.status == "error"
        assert not ROUNDED.search(said.content)
        no_mark(repr(said) + "".join(recorder.told))
    no_mark(caplog.text)


MARKED_ARGUMENTS = {
    svc.SvcMedicalConsult: {
        "patient_context": {
            name: MARKED[name] for name in ("age", "sex", "medical_history", "current_medications")
        }
    },
    svc.SvcDecisionSupport: {
        name: MARKED[name] for name in ("vital_signs", "lab_results", "medical_history")
    },
    svc.SvcCancerRisk: {
        "patient_age": MARKED["age"],
        "patient_sex": MARKED["sex"],
        "risk_factors": MARKED["risk_factors"],
    },
}


@pytest.mark.parametrize("kind", TOOLS[:3])
def test_nor_does_one_about_a_tools_own_arguments(box, caplog, kind):
    caplog.set_level(logging.DEBUG)
    arguments = {**ASKED[kind], **MARKED_ARGUMENTS[kind]}
    with kind(**box.medical, max_retries=0) as tool:
        called(tool, arguments)
        sent = box.requests[0].body.decode()
        assert any(mark in sent for mark in MARKS)
        box.faults = [Fault(status=400, body={"error": sent})]
        said = called(tool, arguments)
    assert said.status == "error"
    clean(said.content + caplog.text)


# -- what the model is told of the record ---------------------------------------------------------

HISTORY = [
    "asthma",
    "COPD",
    "allergy: penicillin",
    "allergy: latex",
    "intolerance: lactose",
    "procedure: appendectomy",
]
VITAL_SIGNS = "vital signs (systolic pressure, diastolic pressure, heart rate, oxygen saturation)"
LAB_RESULTS = "lab results (troponin, BNP, creatinine, glucose)"
TOLD = {
    svc.SvcMedicalConsult: (
        "Sent of the patient's record: age, sex, 2 conditions, 2 allergies, 1 intolerance, 1 procedure, 1 medication. "
        f"Not taken by this endpoint: {LAB_RESULTS}, {VITAL_SIGNS}, 1 risk factor, 1 image."
    ),
    svc.SvcDecisionSupport: (
        f"Sent of the patient's record: {VITAL_SIGNS}, {LAB_RESULTS}, 2 conditions, 2 "
        "allergies, 1 intolerance, 1 procedure. "
        "Not taken by this endpoint: 1 medication, age, sex, 1 risk factor, 1 image."
    ),
    svc.SvcCancerRisk: (
        "Sent of the patient's record: age, sex, 1 risk factor, 1 image. "
        "Not taken by this endpoint: 2 conditions, 2 allergies, 1 intolerance, 1 "
        f"procedure, 1 medication, {LAB_RESULTS}, {VITAL_SIGNS}."
    ),
    svc.SvcMedicalStatus: "",
}


@pytest.mark.parametrize("kind", TOOLS)
def test_the_model_is_told_what_was_sent_by_names_only(box, kind):
    patient = CONTEXT.model_copy(update={"medical_history": tuple(HISTORY)})
    said = called(kind(**box.medical, patient=patient), ASKED[kind])
    assert said.artifact.of_record == TOLD[kind]
    if kind is svc.SvcDecisionSupport:
        assert said.artifact.field_names == (
            "symptoms",
            "specialty",
            "vitalSigns.systolic",
            "vitalSigns.diastolic",
            "vitalSigns.heartRate",
            "vitalSigns.*",
            "labResults.troponin",
            "labResults.bnp",
            "labResults.creatinine",
            "labResults.*",
            "medicalHistory",
        )
    assert said.content.endswith(f"{TOLD[kind]}\n{NOTICE}" if TOLD[kind] else f"\n\n{NOTICE}")
    assert "Sent of" not in called(kind(**box.medical), ASKED[kind]).content


def test_and_what_was_not_sent(box):
    tool = svc.SvcDecisionSupport(**box.medical, patient=svc.PatientContext(age=5))
    assert called(tool, ASKED[type(tool)]).artifact.of_record == (
        "Sent of the patient's record: nothing. Not taken by this endpoint: age. "
        "Not sent: vital signs, lab results, medical history."
    )
    known = svc.PatientContext(age=61, images=[PNG], imaging_type="breast MRI")
    tool = svc.SvcCancerRisk(**box.medical, patient=known)
    assert called(tool, ASKED[type(tool)]).artifact.of_record == (
        "Sent of the patient's record: age, 1 image, imaging type. Not sent: sex, risk factors."
    )
    assert box.requests[-1].json["imagingType"] == "breast MRI"  # and not the model's guess


def test_what_an_import_left_out_is_counted_and_not_denied(box):
    changed = {"modifierExtension": [{"url": "http://x.example", "valueBoolean": True}]}
    resources = [
        fhir.patient(),
        fhir.observation("2160-0", fhir.quantity(3.9, "mg/dL"), at="2024-01-15T09:00:00Z"),
        *(
            fhir.observation("8867-4", fhir.quantity(80, "/min"), at=f"2025-06-15T0{hour}:00:00Z")
            for hour in (1, 2, 3)
        ),
        *(
            fhir.condition(),
            fhir.condition(display="Essential hypertension (DISORDER)"),
            fhir.condition(verified="refuted"),
            fhir.condition(display="X", clinical="resolved"),
        ),
        *(
            fhir.medication(**changed),
            fhir.medication(status="stopped"),
            fhir.medication(intent="plan"),
            fhir.smoking("266919005"),
        ),
    ]
    record = svc.PatientContext.from_fhir(resources, today=fhir.TODAY)
    with svc.SvcDecisionSupport(**box.medical, patient=record) as tool:
        assert called(tool, ASKED[type(tool)]).artifact.of_record == (
            "Sent of the patient's record: vital signs (heart rate), 1 condition. Left out when the "
            "record was read: 1 condition, 3 medications, 1 result (creatinine). Not taken by this "
            "endpoint: age, sex, 1 risk factor. Not sent: lab results."
        )


# -- toolkit --------------------------------------------------------------------------------------


def test_a_toolkit_shares_its_connections(box):
    with svc.SvcMedicalToolkit(**box.medical) as toolkit:
        for tool in toolkit.get_tools():
            tool.invoke(ASKED[type(tool)])
        assert len({request.client_port for request in box.requests}) == 1
    assert [type(tool) for tool in toolkit.get_tools()] == TOOLS


def test_a_toolkit_from_the_environment(box, monkeypatch):
    monkeypatch.setenv("SVC_API_KEY", "general-key")
    monkeypatch.setenv("SVC_BASE_URL", box.url)
    with pytest.raises(svc.SvcRequestError, match="SVC_MEDICAL_API_KEY"):
        svc.SvcMedicalToolkit.from_env()
    monkeypatch.setenv("SVC_MEDICAL_API_KEY", box.medical["api_key"])
    with pytest.raises(svc.SvcRequestError, match="SVC_MEDICAL_BASE_URL"):
        svc.SvcMedicalToolkit.from_env()
    monkeypatch.setenv("SVC_MEDICAL_BASE_URL", box.url)
    toolkit = svc.SvcMedicalToolkit.from_env(patient=CONTEXT, timeout=5)
    assert toolkit.get_tools()[0].invoke({"message": "hi"}).endswith(NOTICE)
    toolkit.close()


# -- agents ---------------------------------------------------------------------------------------

QUESTION = "Run decision support for chest pain, specialty cardiovascular."


def test_a_person_approves(box):
    toolkit = svc.SvcMedicalToolkit(**box.medical, patient=PATIENT, **TO_PROGRAM)
    asked = toolkit.interrupt_on()
    assert asked["svc_medical_status"] is False
    assert set(asked) == {kind().name for kind in TOOLS}
    with Sandbox() as chat, svc.ChatSvc(**chat.v1, model="svc-pro") as model, toolkit:
        agent = create_agent(
            model,
            toolkit.get_tools()[1:2],
            middleware=[HumanInTheLoopMiddleware(interrupt_on=asked)],
            checkpointer=InMemorySaver(),
        )
        run = {"configurable": {"thread_id": "t"}}
        state = agent.invoke({"messages": [("user", QUESTION)]}, run)
        no_mark(repr(state))
        assert box.requests == []
        (request,) = state["__interrupt__"][0].value["action_requests"]
        assert request["name"] == "svc_decision_support"
        state = agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), run)
    assert box.requests[0].json["vitalSigns"]["heartRate"] == 73.19
    no_mark("".join(message.text for message in state["messages"]))
