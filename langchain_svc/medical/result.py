"""`ClinicalResult`: a medical tool's whole answer; `ClinicalReceipt`: all but the answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias
from uuid import uuid4

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
        tool_call_id: The id of the tool call that it answers; "" where no tool call asked.
        id: The result that `deliver` got and its receipt have the same. It is made of the thread,
            the tool call and the case, so a resumed run has it again; without a thread and a tool
            call it is random.
    """

    tool: str
    endpoint: str
    time: str
    request_id: str | None
    sent: tuple[str, ...]
    of_record: str = ""
    answer_to: AnswerTo = "model"
    notice: str = NOTICE
    tool_call_id: str = ""
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
