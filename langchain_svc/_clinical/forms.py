"""A medical result in the forms that clinical systems take: FHIR R4 and CDS Hooks.

Nothing that the service says is shortened or sorted into codes by guess: a word that is not a code
goes as a text.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from .._wire import medical as wire
from ..errors import SvcRequestError

if TYPE_CHECKING:
    from .result import ClinicalResult

_TITLES = {
    wire.CHAT_PATH: "Medical consultation",
    wire.PROTOCOLS_PATH: "Clinical decision support",
    wire.CANCER_PATH: "Cancer risk assessment",
}


def _title(result: ClinicalResult) -> str:
    method, _, path = result.endpoint.partition(" ")
    if method != "POST" or path not in _TITLES:
        raise SvcRequestError(
            f"{result.endpoint} is not about a patient: only the results of consultation, decision "
            "support and cancer risk have a clinical form"
        )
    return _TITLES[path]


# -- CDS Hooks -------------------------------------------------------------------------------------

_LONGEST_SUMMARY = 140  # by the specification
_LONGEST_WORD = 50
_CRITICAL = (
    "emergency emergent immediate immediately critical stat resuscitation life-threatening red"
)
_INFO = "routine low non-urgent nonurgent not-urgent none minimal elective standard normal green"
_INDICATORS = dict.fromkeys(_CRITICAL.split(), "critical") | dict.fromkeys(_INFO.split(), "info")


def _indicator(result: ClinicalResult) -> str:
    """How pressing a card is; a word that is not known counts as pressing."""
    said = result.urgency or result.risk_level
    if said is None:
        return "info"
    return _INDICATORS.get(re.sub(r"[\s_-]+", "-", said.strip().lower()), "warning")


def cards(result: ClinicalResult, source: str) -> list[dict[str, Any]]:
    """The result as one card.

    Its summary names risk and urgency, and cuts no recommendation: those are in the detail.
    """
    title = _title(result)
    words = [
        f"{name}: {said}"
        for name, said in (("risk", result.risk_level), ("urgency", result.urgency))
        if said and len(said) <= _LONGEST_WORD and "\n" not in said
    ]
    summary = f"{title} ({', '.join(words)})" if words else title
    return [
        {
            "uuid": str(uuid4()),
            "summary": summary[:_LONGEST_SUMMARY],
            "indicator": _indicator(result),
            "detail": f"{result.full_text}\n\n{result.notice}",
            "source": {"label": source},
        }
    ]


# -- FHIR ------------------------------------------------------------------------------------------

_REFERENCE = re.compile(r"[A-Za-z][\w.:/#?=&%-]*", re.ASCII)
_UNKNOWN = "http://hl7.org/fhir/StructureDefinition/data-absent-reason"
_RISKS = "http://terminology.hl7.org/CodeSystem/risk-probability"
_RISK_CODES = {"negligible", "low", "moderate", "high", "certain"}
_PRIORITIES = {"routine": "routine", "urgent": "urgent", "asap": "asap", "stat": "stat"}
_PRIORITIES |= {"emergency": "stat", "immediate": "stat"}


def fhir_resource(result: ClinicalResult, subject: str | None) -> dict[str, Any]:
    """The resource for a result, checked.

    Raises:
        SvcRequestError: The result has no clinical form, or `subject` is not a reference.
        ImportError: The extra `fhir` is not installed.
    """
    title = _title(result)
    if subject is not None and not _REFERENCE.fullmatch(subject):
        raise SvcRequestError('subject must be a FHIR reference, such as "Patient/123"')
    try:
        from fhir.resources.R4B import get_fhir_model_class  # noqa: PLC0415  # an extra
    except ImportError:
        raise ImportError("FHIR needs fhir.resources: pip install 'langchain-svc[fhir]'") from None
    build = {wire.CHAT_PATH: _report, wire.PROTOCOLS_PATH: _guidance, wire.CANCER_PATH: _risk}
    unknown = {"extension": [{"url": _UNKNOWN, "valueCode": "unknown"}]}
    resource = {
        **build[result.endpoint.partition(" ")[2]](result, title),
        "subject": unknown if subject is None else {"reference": subject},
    }
    kind = get_fhir_model_class(resource["resourceType"])
    checked: dict[str, Any] = json.loads(kind.model_validate(resource).model_dump_json())
    return checked


def _identified(result: ClinicalResult) -> dict[str, Any]:
    return {"identifier": [{"value": result.request_id}]} if result.request_id else {}


def _notes(result: ClinicalResult) -> list[dict[str, str]]:
    return [{"text": text} for text in (result.full_text, result.notice) if text.strip()]


def _risk(result: ClinicalResult, title: str) -> dict[str, Any]:
    prediction: dict[str, Any] = {"outcome": {"text": "cancer"}}
    if result.risk_level:
        code = result.risk_level.strip().lower()
        known = {"coding": [{"system": _RISKS, "code": code}]} if code in _RISK_CODES else {}
        prediction["qualitativeRisk"] = {**known, "text": result.risk_level}
    if result.risk_score is not None:  # of no known scale, so not a probability
        prediction["rationale"] = f"Risk score of the service: {result.risk_score}"
    return {
        "resourceType": "RiskAssessment",
        "status": "preliminary",
        **_identified(result),
        "method": {"text": f"{title} by an AI service"},
        "occurrenceDateTime": result.time,
        "prediction": [prediction],
        **({"mitigation": "\n".join(result.recommendations)} if result.recommendations else {}),
        "note": _notes(result),
    }


def _guidance(result: ClinicalResult, title: str) -> dict[str, Any]:
    actions = [*_actions(result)]
    plan = {
        "resourceType": "RequestGroup",
        "id": "recommendations",
        "status": "draft",
        "intent": "proposal",
        "action": actions,
    }
    planned = {"contained": [plan], "result": {"reference": "#recommendations"}} if actions else {}
    return {
        "resourceType": "GuidanceResponse",
        **planned,
        **_identified(result),
        "moduleCodeableConcept": {"text": f"{title}: {result.endpoint}"},
        "status": "success",
        "occurrenceDateTime": result.time,
        "note": _notes(result),
    }


def _actions(result: ClinicalResult) -> Iterator[dict[str, Any]]:
    urgency = (result.urgency or "").strip().lower()
    priority = {"priority": _PRIORITIES[urgency]} if urgency in _PRIORITIES else {}
    for text in result.recommendations:
        yield {"description": text, **priority}


def _report(result: ClinicalResult, title: str) -> dict[str, Any]:
    whole = base64.b64encode(result.full_text.encode()).decode()
    forms = [{"contentType": "text/plain; charset=utf-8", "data": whole, "title": title}]
    for file in result.attachments:
        name = {"title": file.name} if file.name and file.name.strip() else {}
        data = base64.b64encode(file.data).decode()
        forms.append({"contentType": file.content_type, "data": data, **name})
    return {
        "resourceType": "DiagnosticReport",
        "status": "preliminary",
        **_identified(result),
        "code": {"text": f"{title} by an AI service"},
        "effectiveDateTime": result.time,
        "issued": result.time,
        "conclusion": f"{result.full_text}\n\n{result.notice}",
        "presentedForm": forms,
    }
