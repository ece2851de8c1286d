"""The medical interface: consultation, decision support, cancer risk, status (medical document)."""

from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from langchain_svc.sandbox import samples
from langchain_svc.sandbox.endpoint import Ask, Endpoint, image_bytes
from langchain_svc.sandbox.wire import Body, HttpReply, NotEmpty, json_reply

_Strings = Annotated[list[str], Field(default_factory=list)]
_Numbers = Annotated[dict[str, float], Field(default_factory=dict)]


class _MedicalBody(Body):
    model_config = ConfigDict(alias_generator=to_camel)

    @property
    def sent(self) -> dict[str, object]:
        """The fields of the request, under the names of the document."""
        return self.model_dump(by_alias=True, exclude_unset=True)


class Patient(_MedicalBody):
    """Whom a consultation is about."""

    age: float = 0
    sex: str = ""
    medical_history: _Strings
    current_medications: _Strings


class ConsultBody(_MedicalBody):
    """POST /api/medical/chat."""

    message: NotEmpty
    specialty: str = ""
    language: str = ""
    patient_context: Annotated[Patient, Field(default=None)]


class DecisionBody(_MedicalBody):
    """POST /api/medical/clinic-protocols; its "keys in use" are examples, so others are welcome."""

    symptoms: Annotated[list[str], Field(min_length=1)]
    vital_signs: _Numbers
    lab_results: _Numbers
    medical_history: _Strings
    specialty: NotEmpty


class CancerBody(_MedicalBody):
    """POST /api/medical/cancer-diagnosis; which fields are required is not shown: none is."""

    patient_age: float = 0
    patient_sex: str = ""
    symptoms: str = ""
    risk_factors: _Strings
    images: _Strings
    imaging_type: str = ""


def _chat(_ask: Ask, body: ConsultBody) -> HttpReply:
    return json_reply(samples.consult(body.sent))


def _decision_support(_ask: Ask, body: DecisionBody) -> HttpReply:
    return json_reply(samples.decision_support(body.sent))


def _cancer(_ask: Ask, body: CancerBody) -> HttpReply:
    for index, image in enumerate(body.images):
        image_bytes(image, f"images[{index}]")
    return json_reply(samples.cancer_risk(body.sent))


def _status(ask: Ask, _body: None) -> HttpReply:
    capabilities = ("clinicCDSS", "medicalAI", "cancerDiagnosis", "multiLanguage")
    return json_reply(
        {
            "status": "operational",
            "uptime": "99.98%",
            "latency": f"{18 + ask.settings.seed % 30}ms",
            "capabilities": dict.fromkeys(capabilities, True),
        }
    )


ROUTES = {
    "/api/medical/chat": {"POST": Endpoint(_chat, ConsultBody)},
    "/api/medical/clinic-protocols": {
        "POST": Endpoint(_decision_support, DecisionBody),
        "GET": Endpoint(_status),
    },
    "/api/medical/cancer-diagnosis": {"POST": Endpoint(_cancer, CancerBody)},
}
