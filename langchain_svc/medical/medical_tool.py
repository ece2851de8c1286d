"""What the medical tools share: who the patient is, what is sent, and who reads the answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

from langchain_core.runnables import RunnableConfig
from pydantic import Field, model_validator
from typing_extensions import Self

from .._service import (
    ServiceSettings,
    ServiceTool,
    ToolOutput,
    ToolUse,
    WholeParser,
    request_id,
    url_of,
    utc_now,
)
from .._wire import UnreadableError, dump_json
from ..config import MEDICAL
from ..errors import SvcError, SvcRequestError
from .patient import PatientContext, Record, on_wire
from .result import AnswerTo, ClinicalResult
from .sent import in_words, names_sent, of_record, values_sent
from .wire import MedicalAnswer, read_answer, request_body

PATIENT_KEY = "svc_patient"
"""The key of `config["configurable"]` that holds a run's `PatientContext`."""

PER_RUN: Literal["per_run"] = "per_run"
Patient = PatientContext | Literal["per_run"] | None
Deliver = Callable[[ClinicalResult], object] | None


class MedicalSettings(ServiceSettings):
    """The settings that the medical tools and their toolkit share."""

    interfaces = (MEDICAL,)

    medical_base_url: str | None = url_of(MEDICAL)
    """Where the medical interface is, without the /api/medical of its paths."""

    patient: Patient = Field(default=None, exclude=True)
    """A patient whose record every call sends, so that the model neither sees nor gives it;
    "per_run" for one that comes with `config={"configurable": {"svc_patient": patient}}`; None to
    let the model give it."""

    answer_to: AnswerTo = "model"
    """Who reads the answers, each of them whole: "model", and so traces and checkpoints; or
    "program", which gets them by `deliver`, while the model is told only that there is one."""

    deliver: Deliver = Field(default=None, exclude=True, repr=False)
    """A function that is given the `ClinicalResult` of every call before the tool returns. It may
    be async; then the tools take asynchronous calls only."""

    @model_validator(mode="after")
    def _check_deliver(self) -> Self:
        if self._would_be_lost:
            raise ValueError(_NOWHERE)
        return self

    @property
    def _would_be_lost(self) -> bool:
        return self.answer_to != "model" and self.deliver is None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        memo = {} if memo is None else memo
        memo[id(self.deliver)] = self.deliver  # a copy of a queue's `put` would fill no queue
        return super().__deepcopy__(memo)


_NOWHERE = (
    "answer_to='program' needs deliver=, a function that is given each ClinicalResult: without "
    "one nobody would get the answers"
)


@dataclass(frozen=True)
class MedicalEndpoint:
    """One row of the document's endpoint table, as a tool uses it.

    `arguments` are those where a patient is bound, and `unbound` have the patient's fields too.
    `record_fields` says where the record's fields go in the request; None for a GET.
    """

    path: str
    arguments: type[Record]
    unbound: type[Record]
    record_fields: Mapping[str, str] | None = None

    @property
    def method(self) -> str:
        return "GET" if self.record_fields is None else "POST"

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class MedicalTool(MedicalSettings, ServiceTool):
    """A tool over one endpoint of the medical interface."""

    endpoint: ClassVar[MedicalEndpoint]

    name: str = ""
    description: str = ""

    def _arguments(self) -> type[Record]:
        return self.endpoint.unbound if self.patient is None else self.endpoint.arguments

    def _use(self, config: RunnableConfig | None, **given: Any) -> ToolUse:
        if self._would_be_lost:  # after model_copy, which checks no setting
            raise SvcRequestError(_NOWHERE)
        end = self.endpoint
        patient = self._patient_of(config)
        asked = on_wire(end.unbound.model_construct(**given))
        record = {} if patient is None else on_wire(patient)
        body = request_body(asked, record, end.record_fields or {})
        exchange = self._new_exchange(
            MEDICAL,
            end.method,
            end.path,
            partial(WholeParser, read_answer if self.answer_to == "model" else _read_unquoted),
            self._limits(),
            body=dump_json(body) if end.record_fields else None,
            private=(*values_sent(body), *values_sent(record)),
        )
        told = ""
        if patient is not None and end.record_fields:
            told = of_record(record, end.record_fields, patient.fhir_report)

        def process(answer: MedicalAnswer) -> ToolOutput:
            return _RECEIPT.format(self.name, in_words(asked)), ClinicalResult(
                tool=self.name,
                endpoint=str(end),
                time=utc_now(exchange),
                request_id=request_id(exchange),
                sent=names_sent(body),
                of_record=told,
                answer_to=self.answer_to,
                text=answer.text,
                raw=answer.raw,
            )

        return ToolUse(exchange, process)

    def _patient_of(self, config: RunnableConfig | None) -> PatientContext | None:
        """The patient of this run; the run's own goes before the tool's."""
        given = ((config or {}).get("configurable") or {}).get(PATIENT_KEY)
        if given is not None and not isinstance(given, PatientContext):
            raise SvcRequestError(
                f"config['configurable']['{PATIENT_KEY}'] must be a PatientContext, "
                f"not a {type(given).__name__}"
            )
        if given is not None and self.patient is None and self.endpoint.record_fields:
            raise SvcRequestError(
                "This run brings a patient, and the tool was made without one. "
                "The application must make the tool or toolkit with patient='per_run'"
            )
        patient = self.patient if given is None else given
        if not isinstance(patient, str):
            return patient
        if self.endpoint.record_fields:
            raise SvcRequestError(
                "No patient was given for this run: the application must pass "
                f"config={{'configurable': {{'{PATIENT_KEY}': PatientContext(...)}}}}"
            )
        return None

    # -- the answer, which nothing may hold before it was delivered --------------------------------

    def _call(self, config: RunnableConfig, run: Any, arguments: dict[str, Any]) -> ToolOutput:
        if _is_async(self.deliver):
            raise SvcRequestError(_NEEDS_AWAIT)
        receipt, result = super()._call(config, run, arguments)
        return self._told_of(receipt, result, _deliver(self.deliver, result))

    async def _acall(
        self, config: RunnableConfig, run: Any, arguments: dict[str, Any]
    ) -> ToolOutput:
        receipt, result = await super()._acall(config, run, arguments)
        return self._told_of(receipt, result, await _adeliver(self.deliver, result))

    def _within_bound(self, told: ToolOutput) -> ToolOutput:
        return told  # `_told_of` cuts nothing

    def _told_of(self, receipt: str, result: ClinicalResult, failure: str) -> ToolOutput:
        """What the model is told and what the artifact is, once the answer was delivered."""
        if failure:
            raise SvcError(
                f"{self.name}: the service answered, but the answer was not delivered to the "
                f"program ({failure}). None of it is told here: neither guess nor sum up what it "
                "says."
            )
        under = "\n".join(line for line in (result.of_record, result.notice) if line)
        if self.answer_to != "model":
            return f"{receipt}\n\n{under}", result.receipt
        text = result.text
        if len(text) > self.max_result_chars:
            text = (
                f"[The answer has {len(text):,} characters and max_result_chars is "
                f"{self.max_result_chars:,}, so none of it is told here. The program has all of "
                "it: neither guess nor sum up what it says.]"
            )
        return f"{text}\n\n{under}", result


_RECEIPT = (
    "{0} asked the service with: {1}. The service has answered. The whole answer was given to the "
    "program and none of it to you: say that it is ready to be read there. Neither guess nor sum "
    "up what it says."
)
_NEEDS_AWAIT = (
    "deliver is an async function, which a synchronous call cannot wait for. Call the tool or the "
    "agent by ainvoke, or give a deliver that is not async"
)


def _read_unquoted(body: bytes) -> MedicalAnswer:
    """The answer; an error that a good answer carries is not quoted."""
    try:
        return read_answer(body)
    except UnreadableError as error:
        raise UnreadableError(str(error)) from None


def _is_async(deliver: Deliver) -> bool:
    call = getattr(deliver, "__call__", None)  # noqa: B004  # an object's may be async
    return inspect.iscoroutinefunction(deliver) or inspect.iscoroutinefunction(call)


# These return the reason: raised here, an error would keep the program's own as its context, and
# that may hold the answer.


def _deliver(deliver: Deliver, result: ClinicalResult) -> str:
    """Why a result was not delivered, without what an error says; "" if it was."""
    try:
        done = deliver(result) if deliver is not None else None
    except Exception as error:  # noqa: BLE001  # whatever the program's function raises
        return f"deliver raised {type(error).__name__}"
    if inspect.isawaitable(done):
        if inspect.iscoroutine(done):
            done.close()
        return _NEEDS_AWAIT
    return ""


async def _adeliver(deliver: Deliver, result: ClinicalResult) -> str:
    try:
        done = deliver(result) if deliver is not None else None
        if inspect.isawaitable(done):
            await done
    except Exception as error:  # noqa: BLE001  # the same
        return f"deliver raised {type(error).__name__}"
    return ""
