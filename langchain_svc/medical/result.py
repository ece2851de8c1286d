"""`ClinicalResult`: a medical tool's whole answer, and its forms for CDS Hooks and FHIR R4.

`ClinicalReceipt` is the same without the answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias
from uuid import uuid4

from ..errors import SvcRequestError
from . import wire

NOTICE = "This supports and does not replace the judgement of a clinician."
AnswerTo = Literal["model", "program"]
Finding: TypeAlias = "str | float | None"


@dataclass(frozen=True, kw_only=True)
class ClinicalReceipt:
    """Where an answer came from, and nothing of what it says.

    It is the artifact of a tool's message where `answer_to` is "program".

    Attributes:
        tool: The tool's name.
        endpoint: Method and path.
        time: When the answer came, in UTC as ISO 8601.
        request_id: The service's id of the request, if it sent one.
        sent: The names of the fields that were sent; never their values.
        of_record: Which parts of a bound patient's record were sent and which were not, and how
            many entries its import left out.
        answer_to: Who reads the answer: "model" or "program".
        notice: That it supports and does not replace a clinician.
        id: Made for this answer: the result that `deliver` got and its receipt have the same.
    """

    tool: str
    endpoint: str
    time: str
    request_id: str | None
    sent: tuple[str, ...]
    of_record: str = ""
    answer_to: AnswerTo = "model"
    notice: str = NOTICE
    id: str = field(default_factory=lambda: uuid4().hex)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sent", tuple(self.sent))  # checkpointers make a list of it


@dataclass(frozen=True, kw_only=True)
class ClinicalResult(ClinicalReceipt):
    """The whole answer of a medical tool, and where it came from.

    `deliver` gets one. It is also the artifact of a tool's message where `answer_to` is "model".

    Attributes:
        text: The whole answer as a text, with every field that the service sent.
        raw: The answer's JSON.
    """

    text: str = field(repr=False)
    raw: Any = field(repr=False)

    @property
    def receipt(self) -> ClinicalReceipt:
        """The same without the answer."""
        names = (one.name for one in fields(ClinicalReceipt))
        return ClinicalReceipt(**{name: getattr(self, name) for name in names})

    @property
    def risk_level(self) -> Finding:
        """The answer's field `riskLevel` (or `risk_level`), such as "high"."""
        return self._finding("riskLevel", "risk_level")

    @property
    def risk_score(self) -> Finding:
        """The answer's field `riskScore` (or `risk_score`). Its scale is not documented."""
        return self._finding("riskScore", "risk_score")

    @property
    def urgency(self) -> Finding:
        """The answer's field `urgency`, such as "routine"."""
        return self._finding("urgency")

    @property
    def recommendations(self) -> tuple[Any, ...]:
        """The entries of the answer's field `recommendations`, as the service sent them."""
        value = self._field("recommendations")
        return tuple(value) if isinstance(value, list) else () if value in (None, "") else (value,)

    def _field(self, *names: str) -> Any:
        held = self.raw if isinstance(self.raw, Mapping) else {}
        return next((held[name] for name in names if name in held), None)

    def _finding(self, *names: str) -> Finding:
        value = self._field(*names)
        known = isinstance(value, (str, int, float)) and not isinstance(value, bool)
        return value if known and value != "" else None

    def to_cds_cards(self, source: str = "AI decision support") -> list[dict[str, Any]]:
        """The result as one card of CDS Hooks, for `{"cards": ...}`.

        The more pressing of urgency and risk decides the indicator, and a word that is not known
        is a warning. The detail is the whole answer, as Markdown with its line breaks.

        Args:
            source: The label of the source, which a user sees.

        Raises:
            SvcRequestError: It is the result of the status check.
        """
        title, _ = self._form()
        said = {"risk": self.risk_level, "urgency": self.urgency}
        said = {name: value for name, value in said.items() if value is not None}
        levels = [_INDICATORS.get(str(value).strip().lower(), "warning") for value in said.values()]
        summary = f"{title} ({', '.join(f'{name}: {value}' for name, value in said.items())})"
        fits = said and len(summary) <= _LONGEST_SUMMARY and "\n" not in summary
        return [
            {
                "uuid": str(uuid4()),
                "summary": summary if fits else title,
                "indicator": max(levels, key=_PRESSING.index, default="warning"),
                "detail": f"{self.text}\n\n{self.notice}".replace("\n", "  \n"),
                "source": {"label": source},
            }
        ]

    def to_fhir(self, subject: str | None = None) -> dict[str, Any]:
        """The result as a FHIR R4 resource, with the whole answer in its `note` or `conclusion`.

        It is a RiskAssessment for the risk of cancer, a GuidanceResponse for decision support and
        a DiagnosticReport for a consultation. Its status is preliminary (a GuidanceResponse's
        success), since no clinician has confirmed it; a security label says that software made it.

        Args:
            subject: The patient's reference, such as "Patient/123".

        Returns:
            A JSON object, checked by `fhir.resources`.

        Raises:
            SvcRequestError: It is the result of the status check, or `subject` is not a reference.
            ImportError: The extra `fhir` is not installed.
        """
        title, kind = self._form()
        if subject is not None and not _REFERENCE.fullmatch(subject):
            raise SvcRequestError('subject must be a FHIR reference, such as "Patient/123"')
        try:
            from fhir.resources.R4B import get_fhir_model_class  # noqa: PLC0415  # an extra
        except ImportError:
            raise ImportError(
                "FHIR needs fhir.resources: pip install 'langchain-svc[fhir]'"
            ) from None
        resource = {
            "resourceType": kind,
            "meta": {"security": [_MADE_BY_SOFTWARE]},
            "status": "success" if kind == "GuidanceResponse" else "preliminary",
            "subject": _UNKNOWN if subject is None else {"reference": subject},
            **({"identifier": [{"value": self.request_id}]} if self.request_id else {}),
            **self._content(kind, {"text": f"{title} by an AI service"}),
        }
        checked = get_fhir_model_class(kind).model_validate(resource)
        made: dict[str, Any] = json.loads(checked.model_dump_json())
        return made

    def _form(self) -> tuple[str, str]:
        """A title, and the type of the FHIR resource."""
        form = _FORMS.get(self.endpoint)
        if form is None:
            raise SvcRequestError(
                f"{self.endpoint} is not about a patient: only the results of consultation, "
                "decision support and cancer risk have a clinical form"
            )
        return form

    def _content(self, kind: str, name: Mapping[str, str]) -> dict[str, Any]:
        if kind == "DiagnosticReport":
            whole = f"{self.text}\n\n{self.notice}"
            return {"code": name, "effectiveDateTime": self.time, "conclusion": whole}
        notes = [{"text": text} for text in (self.text, self.notice)]
        made = {"occurrenceDateTime": self.time, "note": notes}
        if kind == "GuidanceResponse":
            return {**made, "moduleCodeableConcept": name}
        prediction: dict[str, Any] = {"outcome": {"text": "cancer"}}
        if self.risk_level is not None:
            prediction["qualitativeRisk"] = {"text": str(self.risk_level)}
        if self.risk_score is not None:  # of no known scale, so not a probability
            prediction["rationale"] = f"Risk score of the service: {self.risk_score}"
        return {**made, "method": name, "prediction": [prediction]}


_FORMS = {
    f"POST {wire.CHAT_PATH}": ("Medical consultation", "DiagnosticReport"),
    f"POST {wire.PROTOCOLS_PATH}": ("Clinical decision support", "GuidanceResponse"),
    f"POST {wire.CANCER_PATH}": ("Cancer risk assessment", "RiskAssessment"),
}
_LONGEST_SUMMARY = 140  # by the specification of CDS Hooks
_PRESSING = ("info", "warning", "critical")
_INDICATORS = dict.fromkeys(("routine", "low", "minimal", "non-urgent"), "info")
_INDICATORS |= dict.fromkeys(("emergency", "immediate", "critical", "stat"), "critical")
_REFERENCE = re.compile(r"[A-Za-z][\w.:/#?=&%-]*", re.ASCII)
_UNKNOWN = {
    "extension": [
        {
            "url": "http://hl7.org/fhir/StructureDefinition/data-absent-reason",
            "valueCode": "unknown",
        }
    ]
}
_MADE_BY_SOFTWARE = {
    "system": "http://terminology.hl7.org/CodeSystem/v3-ObservationValue",
    "code": "AIAST",
    "display": "Artificial Intelligence asserted",
}
