"""The medical document, row by row and type by type."""

import pytest

from langchain_svc.sandbox import Sandbox

CHAT, CDSS, CANCER = (
    "/api/medical/chat",
    "/api/medical/clinic-protocols",
    "/api/medical/cancer-diagnosis",
)
SUPPORT = {"symptoms": ["chest pain"], "specialty": "cardiovascular"}
PATIENT = {"age": 61.5, "sex": "female", "medicalHistory": ["asthma"], "currentMedications": []}


def test_status(call):
    body = call(CDSS, method="GET").json()
    assert body["status"] == "operational"
    assert body["uptime"] == "99.98%"
    assert body["latency"].endswith("ms")
    assert body["capabilities"] == {
        "clinicCDSS": True,
        "medicalAI": True,
        "cancerDiagnosis": True,
        "multiLanguage": True,
    }


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"message": "headache"}),
        (CHAT, {"message": "x", "specialty": "oncology", "language": "de"}),
        (CHAT, {"message": "x", "patientContext": PATIENT}),
        (CDSS, SUPPORT),
        (CDSS, {**SUPPORT, "vitalSigns": {"systolic": 180, "spO2": 93.5}}),
        (CDSS, {**SUPPORT, "labResults": {"troponin": 0.9, "ferritin": 12}, "medicalHistory": []}),
        (CANCER, {}),
        (CANCER, {"patientAge": 50, "images": ["aGVsbG8="], "imagingType": "CT"}),
    ],
)
def test_answers(call, path, body):
    answer = call(path, body)
    assert answer.status_code == 200
    assert isinstance(answer.json(), dict)


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (CHAT, {}, "message"),
        (CHAT, {"message": 1}, "message"),
        (CHAT, {"message": "x", "patientContext": []}, "patientContext"),
        (CHAT, {"message": "x", "patientContext": {"age": "61"}}, "patientContext.age"),
        (CHAT, {"message": "x", "patientContext": {"age": True}}, "patientContext.age"),
        (
            CHAT,
            {"message": "x", "patientContext": {"medicalHistory": "asthma"}},
            "patientContext.medicalHistory",
        ),
        (CDSS, {"specialty": "x"}, "symptoms"),
        (CDSS, {"symptoms": ["x"]}, "specialty"),
        (CDSS, {**SUPPORT, "symptoms": []}, "symptoms"),
        (CDSS, {**SUPPORT, "symptoms": "pain"}, "symptoms"),
        (CDSS, {**SUPPORT, "symptoms": ["x", 2]}, "symptoms[1]"),
        (CDSS, {**SUPPORT, "vitalSigns": {"systolic": "180"}}, "vitalSigns.systolic"),
        (CDSS, {**SUPPORT, "labResults": {"bnp": False}}, "labResults.bnp"),
        (CDSS, {**SUPPORT, "labResults": 3}, "labResults"),
        (CDSS, {**SUPPORT, "labResults": {"bnp": 10**400}}, "labResults.bnp"),
        (CANCER, {"patientAge": "50"}, "patientAge"),
        (CANCER, {"images": ["%%%"]}, "images[0]"),
        (CANCER, {"riskFactors": [1]}, "riskFactors[0]"),
    ],
)
def test_refuses_naming_the_field(call, path, body, field):
    answer = call(path, body)
    assert answer.status_code == 400
    assert answer.json().keys() == {"error"}
    assert answer.json()["error"].startswith(field + ":")


def test_no_refusal_echoes_a_value(call):
    secret = "Jane-Roe-1961"
    for path, body in [
        (CHAT, {"message": "x", "patientContext": {"age": secret}}),
        (CDSS, {**SUPPORT, "vitalSigns": {"systolic": secret}}),
        (CANCER, {"patientAge": [secret]}),
    ]:
        answer = call(path, body)
        assert answer.status_code == 400
        assert secret not in answer.text


def test_nested_unknown_fields_are_recorded(call):
    with Sandbox() as s:
        call(CHAT, {"message": "x", "patientContext": {"weight": 70}, "mood": 1}, sandbox=s)
        assert s.requests[0].unknown_fields == ("mood", "patientContext.weight")


def test_no_limits(call):
    with Sandbox(plan="free") as s:
        codes = {call(CDSS, method="GET", sandbox=s).status_code for _ in range(20)}
    assert codes == {200}
