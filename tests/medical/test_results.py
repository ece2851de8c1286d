"""What a program gets of a medical answer: four fields of exactly their names, cards and FHIR."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from fhir.resources.R4B import get_fhir_model_class
from peers import tool_call
from test_patient import PNG

import langchain_svc as svc
from langchain_svc.medical.result import NOTICE
from langchain_svc.sandbox import Fault

ASKED = {
    svc.SvcMedicalConsult: {"message": "hi"},
    svc.SvcDecisionSupport: {"symptoms": ["a"], "specialty": "b"},
    svc.SvcCancerRisk: {"symptoms": "a"},
}
LONG = "Give 1.5 mg of adrenaline every 5 minutes, " * 8
ANSWER = {"response": f"See below. {LONG}", "riskLevel": "high", "riskScore": 61, "urgency": "emergency", "recommendations": [LONG, "Call."]}  # fmt: skip


def result_of(box, kind, answer=ANSWER, **words):
    box.faults = [Fault(status=200, body=answer)]
    with kind(**box.medical, **words) as tool:
        return tool.invoke(tool_call(tool, ASKED[kind])).artifact


# -- findings -------------------------------------------------------------------------------------

FOUND = [
    ({"riskLevel": "high", "riskScore": 61, "urgency": "urgent", "recommendations": ["a", "b"]}, ("high", 61, "urgent", ("a", "b"))),
    ({"risk_level": "Low", "risk_score": 0.2, "urgency": 1, "recommendations": "Rest. Drink 1.5 l."}, ("Low", 0.2, 1, ("Rest. Drink 1.5 l.",))),
    ({"riskScore": "61 %", "riskLevel": 3, "urgency": " Notfall ", "recommendations": [{"action": "x"}]}, (3, "61 %", " Notfall ", ({"action": "x"},))),
]  # fmt: skip
NOT_FOUND = [
    {"data": {"riskLevel": "high", "urgency": "now"}}, {"success": True, "result": {"riskScore": 4}}, {"risk": {"level": "high", "score": "61 %"}},
    {"confidence": {"score": 0.92}}, {"imageAnalysis": {"quality": {"score": 98}}}, {"wells": {"score": 4}}, {"differential": {"condition": "ACS", "probability": 0.85}},
    {"bleeding": {"risk": "high"}}, {"triageLevel": 1, "triage": "red", "priority": "stat", "acuity": 1}, {"riskCategory": "high", "riskPercentage": 12, "score": 3, "probability": 0.8},
    {"patient": {"riskLevel": "high"}, "response": "x"}, [{"riskLevel": "high"}], {"recommendedActions": ["x"], "nextSteps": "y", "recommendation": "z"},
    {"riskLevel": True, "riskScore": ["x"], "urgency": "", "recommendations": [], "a": 1}, {"riskLevel": None, "urgency": {"level": "red"}, "a": 1},
]  # fmt: skip


def findings(made):
    return (made.risk_level, made.risk_score, made.urgency, made.recommendations)


@pytest.mark.parametrize(("answer", "found"), FOUND)
def test_findings_are_the_fields_of_these_names(box, answer, found):
    assert findings(result_of(box, svc.SvcCancerRisk, answer)) == found


@pytest.mark.parametrize("answer", NOT_FOUND, ids=str)
def test_nothing_that_looks_alike_is_a_finding(box, answer):
    made = result_of(box, svc.SvcCancerRisk, answer)
    assert findings(made) == (None, None, None, ())
    (prediction,) = made.to_fhir()["prediction"]
    assert prediction == {"outcome": {"text": "cancer"}}


# -- cards ----------------------------------------------------------------------------------------

INDICATORS = [
    ("emergency", None, "critical"), ("Immediate ", None, "critical"), ("routine", None, "info"), ("Routine", "low", "info"), (None, "minimal", "info"),
    ("routine", "high", "warning"), ("routine", "critical", "critical"), ("emergency", "low", "critical"), ("low", "emergency", "critical"), ("non-urgent", 3, "warning"),
    ("urgent", None, "warning"), ("level 3 of 5", None, "warning"), (1, None, "warning"), ("10/10", "low", "warning"), ("Notfall", None, "warning"), ("inmediata", "low", "warning"), (None, None, "warning"),
]  # fmt: skip


@pytest.mark.parametrize(("urgency", "risk", "indicator"), INDICATORS)
def test_the_more_pressing_of_urgency_and_risk_marks_a_card(box, urgency, risk, indicator):
    answer = {"urgency": urgency, "riskLevel": risk, "assessment": "x"}
    (card,) = result_of(box, svc.SvcCancerRisk, answer).to_cds_cards()
    assert card["indicator"] == indicator


def test_a_card_has_the_whole_answer_and_its_lines(box):
    made = result_of(box, svc.SvcCancerRisk)
    (card,) = made.to_cds_cards("Our AI")
    assert card["summary"] == "Cancer risk assessment (risk: high, urgency: emergency)"
    assert card["source"] == {"label": "Our AI"}
    lines = [line.removesuffix("  ") for line in card["detail"].split("\n")]
    assert lines == [*made.text.split("\n"), "", NOTICE]
    assert made.text.count("\n") == card["detail"].count("  \n") - 2  # a hard break in Markdown


@pytest.mark.parametrize("word", [LONG, "two\nlines"])
def test_a_summary_cuts_no_clinical_text(box, word):
    (card,) = result_of(box, svc.SvcCancerRisk, {**ANSWER, "urgency": word}).to_cds_cards()
    assert card["summary"] == "Cancer risk assessment"


# -- FHIR -----------------------------------------------------------------------------------------

RESOURCES = ["DiagnosticReport", "GuidanceResponse", "RiskAssessment"]


@pytest.mark.parametrize(("kind", "resource"), [*zip(ASKED, RESOURCES, strict=True)])
@pytest.mark.parametrize("answer", [ANSWER, {"response": "Rest."}])
def test_a_result_is_a_valid_fhir_resource_that_software_made(box, kind, resource, answer):
    made = result_of(box, kind, answer)
    for subject in ("Patient/123", None):
        form = made.to_fhir(subject)
        assert form["resourceType"] == resource
        get_fhir_model_class(resource).model_validate(json.loads(json.dumps(form)))
        assert form["subject"].get("reference") == subject
        assert [label["code"] for label in form["meta"]["security"]] == ["AIAST"]
        texts = [note["text"] for note in form.get("note", [])]
        assert (texts or form["conclusion"].split("\n\n")) == [made.text, NOTICE]
        assert form["identifier"] == [{"value": made.request_id}]
        assert "priority" not in json.dumps(form)
    with pytest.raises(svc.SvcRequestError, match="Patient/123"):
        made.to_fhir("the patient")


def test_a_risk_is_told_as_the_service_told_it(box):
    (prediction,) = result_of(box, svc.SvcCancerRisk).to_fhir()["prediction"]
    assert prediction["qualitativeRisk"] == {"text": "high"}
    assert prediction["rationale"] == "Risk score of the service: 61"
    assert "probabilityDecimal" not in prediction


def test_the_status_has_no_clinical_form(box):
    call = {"name": "svc_medical_status", "args": {}, "id": "c1", "type": "tool_call"}
    made = svc.SvcMedicalStatus(**box.medical).invoke(call).artifact
    for form in (made.to_fhir, made.to_cds_cards):
        with pytest.raises(svc.SvcRequestError, match="not about a patient"):
            form()


# -- the object -----------------------------------------------------------------------------------


def test_a_result_is_whole_wherever_it_is_kept_and_shows_nothing(box):
    made = result_of(box, svc.SvcDecisionSupport, patient=svc.PatientContext(age=61, images=[PNG]))
    for again in (
        copy.deepcopy(made),
        pickle.loads(pickle.dumps(made)),
        svc.ClinicalResult(**vars(made)),
    ):
        assert again == made
        assert findings(again) == findings(made)
        assert again.to_fhir() == made.to_fhir()
    assert "adrenaline" not in repr(made)
    with pytest.raises(AttributeError):
        made.text = ""
