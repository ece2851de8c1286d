"""What the medical tools share: settings, result, and the patient of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import ToolException
from pydantic import Field
from pydantic.alias_generators import to_camel

from .._service import (
    Exchange,
    ServiceTool,
    Told,
    ToolUse,
    WholeParser,
    request_id,
    url_of,
    utc_now,
)
from .._wire import Answer, dump_json, names_sent, sent_notice, values_sent
from ..config import MEDICAL
from ..patient import Demographics, PatientContext, Record, on_wire
from .echo import ALL_WITHHELD, Echo, without_echo
from .findings import Findings, read_findings
from .result import ClinicalResult
from .sentences import within

if TYPE_CHECKING:
    from langchain_core.tools.base import ArgsSchema

PATIENT_KEY = "svc_patient"
"""The key of `config["configurable"]` that holds a run's `PatientContext`."""

PER_RUN: Literal["per_run"] = "per_run"
Patient = PatientContext | Literal["per_run"] | None

EchoMode = Literal["withhold_sentence", "withhold", "show"]


@dataclass(frozen=True)
class Endpoint:
    """One row of the document's endpoint table, as a tool uses it.

    Attributes:
        path: Its path.
        read: Reads its answer.
        build: Makes the body of what was asked and of the patient's record; None for a GET.
        arguments: The arguments when a patient is bound.
        unbound: The arguments when none is, with the patient's fields.
        patient_fields: The arguments that hold the patient's fields, and `PatientContext`'s name
            for each; "" for one that holds several.
        known_better: Further fields of a record, which go before what the model writes.
    """

    path: str
    read: Callable[[bytes], Answer]
    arguments: type[Record]
    unbound: type[Record]
    build: Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]] | None = None
    patient_fields: Mapping[str, str] = field(default_factory=dict)
    known_better: tuple[str, ...] = ()

    @property
    def record_fields(self) -> tuple[str, ...]:
        """The documented names of the parts of a record that it takes."""
        names = [
            name
            for part in self.patient_fields.values()
            for name in ([part] if part else Demographics.model_fields)
        ]
        return tuple(map(to_camel, (*names, *self.known_better)))

    def __str__(self) -> str:
        return f"{'GET' if self.build is None else 'POST'} {self.path}"


@dataclass(frozen=True)
class _Turn:
    """One request on its way, and what becomes of its answer."""

    exchange: Exchange[Answer]
    endpoint: str
    sent: tuple[str, ...]
    told: str
    echo: Echo | None = field(repr=False)
    mode: EchoMode

    def result(self, answer: Answer) -> tuple[str, ClinicalResult]:
        """Content and artifact."""
        made = ClinicalResult.of(
            answer,
            self._shown(answer.text),
            self._shown_findings(read_findings(answer.raw)),
            endpoint=self.endpoint,
            time=utc_now(self.exchange),
            request_id=request_id(self.exchange),
            sent=self.sent,
            of_record=self.told,
        )
        return made.text, made

    def _shown(self, text: str) -> str:
        if self.echo is None or self.mode == "show":
            return text
        shown = without_echo(text, self.echo)
        return ALL_WITHHELD if self.mode == "withhold" and shown != text else shown

    def _shown_findings(self, found: Findings) -> Findings:
        """The findings as traces and checkpoints may hold them."""
        return replace(
            found,
            risk_level=found.risk_level and self._shown(found.risk_level),
            urgency=found.urgency and self._shown(found.urgency),
            recommendations=tuple(map(self._shown, found.recommendations)),
        )


class MedicalTool(ServiceTool):
    """A tool over one endpoint of the medical interface.

    Args:
        patient: A `PatientContext` that every call sends, or "per_run" for one that comes with
            `config={"configurable": {"svc_patient": patient}}`. Its fields are then no arguments:
            the model neither sees nor invents them. With None they are arguments.
        **words: `medical_base_url`, `api_key`, `timeout`, `deadline`, `max_retries` and the other
            settings of a connection, and what every LangChain tool takes.
    """

    interfaces = (MEDICAL,)
    endpoint: ClassVar[Endpoint]

    name: str = ""
    description: str = ""
    patient: Patient = Field(default=None, exclude=True)

    medical_base_url: str | None = url_of(MEDICAL)
    """Where the medical interface is, without the /api/medical of its paths."""

    echo: EchoMode = "withhold_sentence"
    """What becomes of a sentence that repeats a bound patient's record: a note stands in its place
    ("withhold_sentence"), or in place of the whole answer ("withhold"), or the model reads it
    ("show"). Nothing else of an answer is ever changed; `ClinicalResult.raw` holds all of it."""

    def _arguments(self) -> type[Record]:
        return self.endpoint.unbound if self.patient is None else self.endpoint.arguments

    @property
    def tool_call_schema(self) -> ArgsSchema:
        """What a model sees; without the patient's fields inside a run that brings a patient."""
        run = ensure_config().get("configurable") or {}
        if self.patient is None and run.get(PATIENT_KEY) is not None:
            return self.endpoint.arguments
        return super().tool_call_schema

    def _use(self, config: RunnableConfig | None, **given: Any) -> ToolUse:
        end = self.endpoint
        patient = self._patient_of(config)
        about = {n: v for n, v in given.items() if n in end.patient_fields and v not in (None, ())}
        if patient is not None and about:
            raise ToolException(
                f"Nothing was sent: leave out {', '.join(about)}, since the patient's record is "
                "added to every call"
            )
        record = on_wire(patient) if patient is not None else self._record(about)
        asked = on_wire(
            end.arguments.model_construct(
                **{name: value for name, value in given.items() if name not in end.patient_fields}
            )
        )
        body = None if end.build is None else end.build(asked, record)
        known = values_sent(record)
        bound = patient is not None and bool(end.patient_fields)
        exchange = self._new_exchange(
            MEDICAL,
            "GET" if body is None else "POST",
            end.path,
            partial(WholeParser, end.read),
            self._limits({}),
            body=None if body is None else dump_json(body),
            private=(*values_sent(body or {}), *known),
        )
        turn = _Turn(
            exchange,
            str(end),
            names_sent(body or {}),
            sent_notice(record, end.record_fields) if bound else "",
            Echo(record, values_sent(asked)) if bound else None,
            self.echo,
        )
        return ToolUse(exchange, turn.result)

    def _within_bound(self, told: Told) -> Told:
        """What stands under a result is told whole, whatever is left out of it."""
        text, made = told
        under = "\n".join(line for line in (made.of_record, made.notice) if line)
        return f"{within(text, self.max_result_chars)}\n\n{under}", made

    def _patient_of(self, config: RunnableConfig | None) -> PatientContext | None:
        """The patient of this run; the run's own goes before the tool's."""
        run = (config or {}).get("configurable") or {}
        given = run.get(PATIENT_KEY)
        if given is not None and not isinstance(given, PatientContext):
            raise ToolException(
                f"config['configurable']['{PATIENT_KEY}'] must be a PatientContext, "
                f"not a {type(given).__name__}"
            )
        if given is not None:
            return given
        if isinstance(self.patient, PatientContext):
            return self.patient
        if self.patient == PER_RUN and self.endpoint.patient_fields:
            raise ToolException(
                "No patient was given for this run: the application must pass "
                f"config={{'configurable': {{'{PATIENT_KEY}': PatientContext(...)}}}}"
            )
        return None

    def _record(self, about: Mapping[str, Any]) -> dict[str, Any]:
        """The patient's record out of the tool's own arguments."""
        names = self.endpoint.patient_fields
        record: dict[str, Any] = {}
        for argument, value in about.items():
            part = PatientContext.model_construct(**{names[argument]: value})
            record |= on_wire(part if names[argument] else value)
        return record
