"""`ClinicalResult`: a medical tool's whole answer; `ClinicalReceipt`: all but the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias
from uuid import uuid4

from .values import SentValue

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
        field_names: The names of the fields that were sent; never their values.
        of_record: Which parts of a bound patient's record were sent and which were not, and how
            many entries its import left out.
        answer_to: Who reads the answer: "model" or "program".
        notice: That it supports and does not replace a clinician.
        body_hash: HMAC-SHA256 of the request's body with `audit_key`, in hexadecimal: whoever has
            the key and a body can prove that this body was sent. None without a key or a body.
        case: The run's case, as `svc_case` of its config names it; "" where it names none.
        tool_call_id: The id of the tool call that it answers; "" where no tool call asked.
        id: The result that `deliver` got and its receipt have the same. It is made of the thread,
            the tool call and the case, so a resumed run has it again; without a thread and a tool
            call it is random.
    """

    tool: str
    endpoint: str
    time: str
    request_id: str | None
    field_names: tuple[str, ...]
    of_record: str = ""
    answer_to: AnswerTo = "model"
    notice: str = NOTICE
    body_hash: str | None = None
    case: str = ""
    tool_call_id: str = ""
    id: str = field(default_factory=lambda: uuid4().hex)

    def __post_init__(self) -> None:
        names = tuple(self.field_names)  # checkpointers make a list of it
        object.__setattr__(self, "field_names", names)

    def audit(self) -> dict[str, Any]:
        """Who asked what and when, without a value: a plain dict in the form of FHIR R4 AuditEvent.

        Add your own agents, such as the clinician, before you store it.
        """
        details = {
            "tool": self.tool,
            "endpoint": self.endpoint,
            "request_id": self.request_id,
            "case": self.case,
            "tool_call_id": self.tool_call_id,
            "field_names": ", ".join(self.field_names),
            "of_record": self.of_record,
            "answer_to": self.answer_to,
            "body_hash": self.body_hash,
        }
        entity = {
            "what": {"identifier": {"value": self.id}},
            "detail": [
                {"type": kind, "valueString": value}
                for kind, value in details.items()
                if value
            ],
        }
        program = {"display": "langchain-svc"}
        return {
            "resourceType": "AuditEvent",
            "type": {
                "system": "http://terminology.hl7.org/CodeSystem/audit-event-type",
                "code": "rest",
            },
            "subtype": [
                {
                    "system": "http://hl7.org/fhir/restful-interaction",
                    "code": "operation",
                }
            ],
            "action": "E",
            "recorded": self.time,
            "outcome": "0",
            "agent": [{"who": program, "requestor": True}],
            "source": {"observer": program},
            "entity": [entity],
        }


class _InMemory:
    """Holds what no serializer looks at: it is neither a field nor in `vars`."""

    __slots__ = ("_sent",)

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True, kw_only=True)
class ClinicalResult(ClinicalReceipt, _InMemory):
    """The whole answer of a medical tool, and where it came from.

    `deliver` gets it. It is also the artifact of a tool's message where `answer_to` is "model".

    Attributes:
        text: The whole answer as a text, with every field that the service sent.
        raw: The answer's JSON.
    """

    text: str = field(repr=False)
    raw: Any = field(repr=False)

    @property
    def sent(self) -> tuple[SentValue, ...]:
        """The values that were sent, each with its unit, source and age.

        Only the result that `deliver` gets has them. They are in memory only: a message's artifact,
        a copy and a pickle have none.
        """
        return getattr(self, "_sent", ())

    @property
    def receipt(self) -> ClinicalReceipt:
        """The same without the answer."""
        names = [member.name for member in fields(ClinicalReceipt)]
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
        if isinstance(value, list):
            return tuple(value)
        if value in (None, ""):
            return ()
        return (value,)

    def _field(self, *names: str) -> object:
        """The value of the first of these names that the answer has."""
        if isinstance(self.raw, Mapping):
            for name in names:
                if name in self.raw:
                    return self.raw[name]
        return None

    def _finding(self, *names: str) -> Finding:
        value = self._field(*names)
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            return None
        if value == "":
            return None
        return value


def with_values(
    result: ClinicalResult, values: tuple[SentValue, ...]
) -> ClinicalResult:
    """The same result with the values that were sent; `replace` makes one without them."""
    result = replace(result)
    object.__setattr__(result, "_sent", values)
    return result
