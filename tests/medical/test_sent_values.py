"""The values that were sent, for the one who reads the answer; a proof and a record for the auditor."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import hmac
import json
import pickle
from datetime import date

import pytest
from fhir.resources.R4B.auditevent import AuditEvent
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langsmith._internal._serde import dumps_json
from peers import RunKeeper, tool_call

import langchain_svc as svc

PATIENT = {"resourceType": "Patient", "id": "p", "gender": "female", "birthDate": "1965-03-01"}
OF_PATIENT = {"reference": "Patient/p"}


def observation(code, value, unit, at):
    return {
        "resourceType": "Observation",
        "status": "final",
        "subject": OF_PATIENT,
        "code": {"coding": [{"system": "http://loinc.org", "code": code}]},
        "effectiveDateTime": at,
        "valueQuantity": {"value": value, "code": unit, "system": "http://unitsofmeasure.org"},
    }


ASTHMA = {
    "resourceType": "Condition",
    "subject": OF_PATIENT,
    "clinicalStatus": {
        "coding": [
            {"code": "active", "system": "http://terminology.hl7.org/CodeSystem/condition-clinical"}
        ]
    },
    "code": {"text": "zebulonic asthma"},
}
RECORD = [
    PATIENT,
    observation("8867-4", 73, "/min", "2026-11-24T08:00:00Z"),
    observation("2823-3", 4.25, "mmol/L", "2026-11-22T08:00:00Z"),
    ASTHMA,
]


def decided(box, patient, **words):
    results, keeper = [], RunKeeper()
    settings = {"patient": patient, "deliver": results.append, **words}
    with svc.SvcDecisionSupport(**box.medical, **settings) as tool:
        call = tool_call(tool, {"symptoms": ["cough"], "specialty": "pneumology"})
        message = tool.invoke(call, {"callbacks": [keeper]})
    return results[0], message, "".join(keeper.told)


def by_name(result):
    return {value.name: value for value in result.sent}


def test_of_a_fhir_record_each_value_has_its_unit_element_and_age(box):
    patient = svc.PatientContext.from_fhir(RECORD, today=date(2026, 11, 24))
    values = by_name(decided(box, patient)[0])
    assert [(name, value.value) for name, value in values.items()] == [
        ("symptoms", "cough"), ("specialty", "pneumology"),
        ("vitalSigns.heartRate", 73), ("labResults.potassium", 4.25), ("medicalHistory", "zebulonic asthma"),
    ]  # fmt: skip
    potassium = values["labResults.potassium"]
    assert (potassium.unit, potassium.days) == ("mmol/L", 2)
    assert (potassium.source, potassium.code) == ("result, entry 2 (2 days old)", "2823-3")
    assert values["medicalHistory"].source == "condition, entry 3"
    assert values["symptoms"].source == "the tool call"
    assert str(potassium) == "potassium: 4.25 mmol/L (result, entry 2 (2 days old))"
    assert str(values["medicalHistory"]) == "medical history: zebulonic asthma (condition, entry 3)"
    assert "4.25" not in repr(potassium)


def test_every_value_of_the_body_is_there(box):
    patient = svc.PatientContext(
        vital_signs={"systolic": 130, "SpO2": 97},
        medical_history=["asthma", "COPD"],
    )
    result = decided(box, patient)[0]
    body = json.loads(box.requests[0].body)
    leaves = []
    for name, value in body.items():
        inner = value.items() if isinstance(value, dict) else [(None, value)]
        for reading, item in inner:
            path = f"{name}.{reading}" if reading else name
            leaves += [(path, one) for one in (item if isinstance(item, list) else [item])]
    assert sorted((v.name, str(v.value)) for v in result.sent) == sorted(
        (name, str(value)) for name, value in leaves
    )
    assert by_name(result)["vitalSigns.systolic"].unit == "mm[Hg]"
    assert by_name(result)["medicalHistory"].source == "the record"


@pytest.mark.parametrize("answer_to", ["model", "program"])
def test_the_values_are_in_memory_only(box, answer_to):
    patient = svc.PatientContext(lab_results={"potassium": 4.0625}, medical_history=["zebulonic"])
    result, message, traced = decided(box, patient, answer_to=answer_to)
    assert result.sent
    assert getattr(message.artifact, "sent", ()) == ()
    copies = [copy.deepcopy(result), pickle.loads(pickle.dumps(result)), dataclasses.replace(result)]  # fmt: skip
    assert [one.sent for one in copies] == [()] * 3
    views = [
        repr(result),
        repr(vars(result)),
        repr(dataclasses.asdict(result)),
        dumps_json(result).decode(),
        pickle.dumps(result).decode("latin1"),
        JsonPlusSerializer(pickle_fallback=True).dumps_typed(message)[1].decode("latin1"),
        repr(result.receipt),
        json.dumps(result.audit()),
        message.content,
        traced,
    ]
    answer = json.dumps(result.raw)
    assert "4.0625" not in answer
    for view in views:
        assert "4.0625" not in view


def test_a_keyed_hash_proves_which_body_was_sent(box):
    key = "an auditor's own"
    patient = svc.PatientContext(medical_history=["asthma"])
    result, message, _ = decided(box, patient, answer_to="program", audit_key=key)
    body = box.requests[0].body
    assert result.body_hash == hmac.new(key.encode(), body, hashlib.sha256).hexdigest()
    assert message.artifact.body_hash == result.body_hash
    assert decided(box, patient)[0].body_hash is None
    with svc.SvcMedicalStatus(**box.medical, audit_key=key) as status:
        assert status.invoke(tool_call(status, {})).artifact.body_hash is None
        assert key not in repr(status) + status.model_copy().__repr__()


def test_an_audit_key_is_in_no_pickle(box, monkeypatch):
    monkeypatch.setenv("SVC_MEDICAL_API_KEY", box.medical["api_key"])
    with svc.SvcMedicalConsult(**box.medical, audit_key="an auditor's own") as tool:
        pickled = pickle.dumps(tool)
        assert b"auditor" not in pickled
        lost = pickle.loads(pickled).invoke(tool_call(tool, {"message": "hi"}))
    assert lost.status == "error"
    assert "carries no audit_key" in lost.content


def test_the_audit_record_is_an_audit_event(box):
    patient = svc.PatientContext(medical_history=["zebulonic"])
    result, message, _ = decided(box, patient, answer_to="program", audit_key="k")
    audit = result.audit()
    event = AuditEvent.model_validate_json(json.dumps(audit))
    assert event.entity[0].what.identifier.value == result.id
    details = {detail.type: detail.valueString for detail in event.entity[0].detail}
    assert details["body_hash"] == result.body_hash
    assert details["field_names"] == "symptoms, specialty, medicalHistory"
    assert "zebulonic" not in json.dumps(audit)
    assert message.artifact.audit() == audit
