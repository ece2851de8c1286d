"""LangChain's own suites for each tool: played from cassettes, and live on a sandbox."""

import base64
from dataclasses import dataclass, field
from typing import ClassVar

import pytest
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests
from peers import png

import langchain_svc as svc

PNG = png()
B64 = base64.b64encode(PNG).decode()

# A patient that was made up.
HISTORY = ["asthma"]
READINGS = {"systolic": 150, "diastolic": 95, "oxygenSaturation": 97}
RESULTS = {"troponin": 0.02}
PATIENT = svc.PatientContext(
    age=61,
    sex="female",
    medical_history=HISTORY,
    current_medications=["salbutamol"],
    vital_signs=READINGS,
    lab_results=RESULTS,
    risk_factors=["smoking"],
    images=[PNG],
)


@dataclass(frozen=True)
class Case:
    """A tool, what a model may ask of it, and the environment that it needs."""

    kind: type
    asked: dict
    words: dict = field(default_factory=dict)
    env: tuple = ("SVC_API_KEY", "SVC_BASE_URL")


MEDICAL = ("SVC_MEDICAL_API_KEY", "SVC_MEDICAL_BASE_URL")
BOUND = {"patient": PATIENT}
CASES = {
    "Translate": Case(svc.SvcTranslate, {"text": "good day", "target": "es"}),
    "AnalyzeImage": Case(svc.SvcAnalyzeImage, {"image": B64, "task": "describe"}),
    "GenerateImage": Case(
        svc.SvcGenerateImage, {"prompt": "a cat", "n": 1}, env=("SVC_API_KEY", "SVC_BASE_URL_V1")
    ),
    "GenerateImageGeneral": Case(svc.SvcGenerateImage, {"prompt": "a cat"}, {"api": "general"}),
    "MedicalConsult": Case(
        svc.SvcMedicalConsult,
        {"message": "a dry cough", "specialty": "cardiology", "patient_context": {"age": 61}},
        env=MEDICAL,
    ),
    "MedicalConsultBound": Case(svc.SvcMedicalConsult, {"message": "a dry cough"}, BOUND, MEDICAL),
    "DecisionSupport": Case(
        svc.SvcDecisionSupport,
        {
            "symptoms": ["chest pain"],
            "specialty": "cardiovascular",
            "vital_signs": READINGS,
            "lab_results": RESULTS,
            "medical_history": HISTORY,
        },
        env=MEDICAL,
    ),
    "DecisionSupportBound": Case(
        svc.SvcDecisionSupport,
        {"symptoms": ["chest pain"], "specialty": "cardiovascular"},
        BOUND,
        MEDICAL,
    ),
    "CancerRisk": Case(
        svc.SvcCancerRisk,
        {"symptoms": "a dry cough", "imaging_type": "chest CT", "patient_age": 61, "images": [B64]},
        env=MEDICAL,
    ),
    "CancerRiskBound": Case(svc.SvcCancerRisk, {"symptoms": "a dry cough"}, BOUND, MEDICAL),
    "MedicalStatus": Case(svc.SvcMedicalStatus, {}, env=MEDICAL),
}


class Traits:
    """What the suites ask of a tool."""

    case: ClassVar[Case]

    @property
    def tool_constructor(self):
        return self.case.kind

    @property
    def tool_constructor_params(self):
        return self.case.words

    @property
    def tool_invoke_params_example(self):
        return self.case.asked


class Unit(Traits, ToolsUnitTests):
    @property
    def init_from_env_params(self):
        key, url = self.case.env
        word = url.removeprefix("SVC_").lower()
        value = "https://svc.invalid/v1"
        return {key: "k", url: value}, self.case.words, {"api_key": "k", word: value}


@pytest.mark.vcr
@pytest.mark.usefixtures("recorded_service")
class Played(Traits, ToolsIntegrationTests):
    pass


@pytest.fixture
def live_service(sandbox, clean_environment, monkeypatch):
    for name, value in sandbox.env.items():
        monkeypatch.setenv(name, value)
    yield
    assert {(request.status, request.unknown_fields) for request in sandbox.requests} <= {(200, ())}


@pytest.mark.usefixtures("live_service")
class Live(Traits, ToolsIntegrationTests):
    pass


for _name, _case in CASES.items():
    for _suite in (Unit, Played, Live):
        _made = f"Test{_name}{_suite.__name__}"
        globals()[_made] = type(_made, (_suite,), {"case": _case})
