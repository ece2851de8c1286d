"""`ClinicalResult`: what a medical tool leaves for the program.

The whole answer may repeat the patient's record. It is kept beside the fields, where nothing that
serializes a result finds it: not LangSmith, not a checkpointer of LangGraph, not pickle or JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .._wire import Answer
from .findings import Attachment, Findings, read_attachments, read_findings
from .forms import cards, fhir_resource

NOTICE = "This supports and does not replace the judgement of a clinician."


class _InProcess:
    """Holds a value for this process: it shows nothing, and is empty once it was pickled."""

    __slots__ = ("value",)

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "<kept in this process>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _InProcess, ()

    def __copy__(self) -> _InProcess:
        return self

    def __deepcopy__(self, memo: Any) -> _InProcess:
        return self


@dataclass(frozen=True)
class ClinicalResult:
    """What a medical tool leaves as its artifact, for the program and its records.

    The fields are what traces, checkpoints and pickles hold: nothing of a bound patient's record
    that was recognised (docs/medical.md says by what). The properties give the whole answer while
    the result is in the process that asked; of a stored one, what the fields hold.

    Attributes:
        endpoint: Method and path.
        time: When the answer came, in UTC as ISO 8601.
        request_id: The service's id of the request, if it sent one.
        sent: The names of the fields that were sent; never their values.
        text: The answer as the model reads it.
        findings: `risk_level`, `risk_score`, `urgency` and `recommendations`, in the same way.
        of_record: Which parts of a bound patient's record were sent, and which it does not have.
        notice: That it supports and does not replace a clinician.
    """

    endpoint: str
    time: str
    request_id: str | None
    sent: tuple[str, ...]
    text: str = field(repr=False)
    findings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    of_record: str = ""
    notice: str = NOTICE

    @classmethod
    def of(cls, answer: Answer, text: str, findings: Findings, **words: Any) -> ClinicalResult:
        """The result of an answer, of which `text` and `findings` may be stored."""
        made = cls(text=text, findings=findings.as_json(), **words)
        object.__setattr__(made, "_answer", _InProcess(answer))
        return made

    def __post_init__(self) -> None:
        object.__setattr__(self, "sent", tuple(self.sent))  # checkpointers make a list of it
        object.__setattr__(self, "_answer", _InProcess())

    @property
    def _whole(self) -> Answer | None:
        held: Answer | None = vars(self)["_answer"].value
        return held

    @property
    def _found(self) -> Findings:
        if self._whole is not None:
            return read_findings(self._whole.raw)
        words = {**self.findings}
        return Findings(**{**words, "recommendations": tuple(words.get("recommendations", ()))})

    @property
    def raw(self) -> Any:
        """The whole answer, unchanged, which may repeat patient data; None of a stored result."""
        return None if self._whole is None else self._whole.raw

    @property
    def full_text(self) -> str:
        """The answer as a text with nothing withheld; of a stored result, `text`."""
        return self.text if self._whole is None else self._whole.text

    @property
    def risk_level(self) -> str | None:
        """The risk in the service's word, such as "high"; None where the answer has none."""
        return self._found.risk_level

    @property
    def risk_score(self) -> float | None:
        """The risk as the service's number. Its scale is not documented."""
        return self._found.risk_score

    @property
    def urgency(self) -> str | None:
        """The urgency in the service's word, such as "routine"; None where there is none."""
        return self._found.urgency

    @property
    def recommendations(self) -> tuple[str, ...]:
        """What the service recommends, each in its own words."""
        return self._found.recommendations

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The files in the answer, such as a PDF; none of a stored result."""
        return read_attachments(self.raw)

    def to_fhir(self, subject: str | None = None) -> dict[str, Any]:
        """The result as a FHIR R4 resource: a RiskAssessment for the risk of cancer, a
        GuidanceResponse for decision support, a DiagnosticReport for a consultation.

        Its status is preliminary (a GuidanceResponse's success): no clinician has confirmed it.

        Args:
            subject: The patient's reference, such as "Patient/123".

        Returns:
            A JSON object, checked by `fhir.resources`.

        Raises:
            SvcRequestError: It is the result of the status check, or `subject` is not a reference.
            ImportError: The extra `fhir` is not installed.
        """  # noqa: D205  # one sentence over two lines
        return fhir_resource(self, subject)

    def to_cds_cards(self, source: str = "AI decision support") -> list[dict[str, Any]]:
        """The result as cards of CDS Hooks, for `{"cards": ...}`.

        Args:
            source: The label of the source, which a user sees.
        """
        return cards(self, source)
