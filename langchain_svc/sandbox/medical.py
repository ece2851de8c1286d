"""The medical interface: consultation, decision support, cancer risk, status (medical document)."""

from langchain_svc.sandbox import answers
from langchain_svc.sandbox.endpoint import Ask, Endpoint, image_bytes
from langchain_svc.sandbox.schema import Field, ListOf, MapOf, Record, number, text
from langchain_svc.sandbox.wire import Reply, json_reply

_STRINGS = ListOf(text())

_PATIENT = Record(
    (
        Field("age", number()),
        Field("sex", text()),
        Field("medicalHistory", _STRINGS),
        Field("currentMedications", _STRINGS),
    )
)

CHAT_FIELDS = (
    Field("message", text(least=1), required=True),
    Field("specialty", text()),
    Field("language", text()),
    Field("patientContext", _PATIENT),
)

# "Keys in use" are examples: other readings and results are welcome while they are numbers.
DECISION_FIELDS = (
    Field("symptoms", ListOf(text(), least=1), required=True),
    Field("vitalSigns", MapOf(number())),
    Field("labResults", MapOf(number())),
    Field("medicalHistory", _STRINGS),
    Field("specialty", text(least=1), required=True),
)

# Which of these are required is not shown: none is.
CANCER_FIELDS = (
    Field("patientAge", number()),
    Field("patientSex", text()),
    Field("symptoms", text()),
    Field("riskFactors", _STRINGS),
    Field("images", _STRINGS),
    Field("imagingType", text()),
)


def _chat(ask: Ask) -> Reply:
    return json_reply(answers.consult(ask.body))


def _decision_support(ask: Ask) -> Reply:
    return json_reply(answers.decision_support(ask.body))


def _cancer(ask: Ask) -> Reply:
    images = ask.body.get("images", [])
    if isinstance(images, list):
        for index, image in enumerate(images):
            image_bytes(image, f"images[{index}]")
    return json_reply(answers.cancer_risk(ask.body))


def _status(ask: Ask) -> Reply:
    capabilities = ("clinicCDSS", "medicalAI", "cancerDiagnosis", "multiLanguage")
    return json_reply(
        {
            "status": "operational",
            "uptime": "99.98%",
            "latency": f"{18 + ask.seed % 30}ms",
            "capabilities": dict.fromkeys(capabilities, True),
        }
    )


ROUTES = {
    "/api/medical/chat": {"POST": Endpoint(_chat, CHAT_FIELDS)},
    "/api/medical/clinic-protocols": {
        "POST": Endpoint(_decision_support, DECISION_FIELDS),
        "GET": Endpoint(_status),
    },
    "/api/medical/cancer-diagnosis": {"POST": Endpoint(_cancer, CANCER_FIELDS)},
}
