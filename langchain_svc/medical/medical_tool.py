"""What the medical tools share: whose record they send, and who reads the answer."""

from __future__ import annotations

import hmac
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from langchain_core.runnables import RunnableConfig
from pydantic import Discriminator, Field, PrivateAttr, Tag, model_validator

from .._base.safe_errors import type_text
from .._client import WholeParser
from .._settings import Secret, ServiceSettings, limits_of, new_exchange, url_of
from .._wire import dump_json
from ..config import MEDICAL, Endpoint, Interface, reveal_secret
from ..errors import SvcError, SvcRequestError
from ..tools.base import ServiceTool, ToolOutput, ToolUse
from .case import CASE_KEY, Loader, aload, case_of, configurable, load
from .patient import PatientContext, Record, on_wire
from .result import (
    NEEDS_AWAIT,
    AnswerTo,
    Audit,
    CallLog,
    ClinicalReceipt,
    ClinicalResult,
    Deliver,
    Outbox,
    acall_program,
    call_program,
    id_of_call,
    is_async,
    with_values,
)
from .sent import in_words, names_sent, of_record, sent_values
from .wire import MedicalAnswer, read_answer, request_body

PATIENT_KEY = "svc_patient"
"""The key of `config["configurable"]` that holds a run's `PatientContext`."""


def _kind_of(patient: object) -> str | None:
    """The tag of what is given as a patient; None if it can be none."""
    if patient is None:
        return "none"
    if isinstance(patient, (PatientContext, dict)):
        return "record"
    if callable(patient):
        return "function"
    return "per run" if patient == "per_run" else None


if TYPE_CHECKING:
    Patient: TypeAlias = (
        PatientContext | dict[str, Any] | Literal["per_run"] | Loader | None
    )
else:
    Patient = Annotated[
        Annotated[PatientContext, Tag("record")]
        | Annotated[Literal["per_run"], Tag("per run")]
        | Annotated[Loader, Tag("function")]
        | Annotated[None, Tag("none")],
        Discriminator(
            _kind_of,
            custom_error_type="patient",
            custom_error_message=(
                "must be a PatientContext, a dict of its fields, 'per_run' for one that each run "
                "brings, or a function that loads it by its case; a case's key goes into a run, as "
                f"config={{'configurable': {{'{CASE_KEY}': ...}}}}"
            ),
        ),
    ]


class MedicalSettings(ServiceSettings):
    """The settings that the medical tools and their toolkit share."""

    interfaces: ClassVar[tuple[Interface, ...]] = (MEDICAL,)

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
    be async; then the tools take asynchronous calls only. One that is not async runs in a thread
    under an asynchronous call. A result that it does not take stays in `undelivered`."""

    audit: Audit = Field(default=None, exclude=True, repr=False)
    """A function that puts calls on record: it is given a call's `ClinicalReceipt` before the bytes
    of each try go to the connection, and when the try has ended. Of those with the same `id` and
    `time` the last one counts. If it raises before a try, nothing is sent. Like `deliver` it may be
    async."""

    audit_key: Secret = Field(default=None, exclude=True, repr=False)
    """A secret of yours that makes the `body_hash` of receipts, by which an auditor can prove which
    body was sent. It is sent nowhere."""

    _outbox: Outbox = PrivateAttr(default_factory=Outbox)

    @model_validator(mode="after")
    def _check_deliver(self) -> Self:
        if self._would_be_lost:
            raise ValueError(_NOWHERE)
        return self

    @property
    def _would_be_lost(self) -> bool:
        return self.answer_to != "model" and self.deliver is None

    @property
    def undelivered(self) -> tuple[ClinicalResult, ...]:
        """The results that `deliver` did not take, oldest first; in this process's memory only.

        A toolkit has those of all its tools.
        """
        return self._outbox.results

    def deliver_again(self, deliver: Deliver = None) -> tuple[ClinicalResult, ...]:
        """Deliver what is in `undelivered`, without asking the service again.

        Args:
            deliver: The function to give each result to, in place of the setting.

        Returns:
            The results that are still undelivered.

        Raises:
            SvcRequestError: There is no function, or it is async.
        """
        deliver = self._deliver_or_raise(deliver)
        if is_async(deliver):
            raise SvcRequestError(
                "deliver is an async function: await adeliver_again()"
            )
        for result in self.undelivered:
            if not call_program("deliver", deliver, result).failure:
                self._outbox.remove(result)
        return self.undelivered

    async def adeliver_again(
        self, deliver: Deliver = None
    ) -> tuple[ClinicalResult, ...]:
        """The same for a function that is async or not."""
        deliver = self._deliver_or_raise(deliver)
        for result in self.undelivered:
            delivered = await acall_program("deliver", deliver, result)
            if not delivered.failure:
                self._outbox.remove(result)
        return self.undelivered

    def _deliver_or_raise(self, deliver: Deliver) -> Deliver:
        deliver = deliver or self.deliver
        if deliver is None:
            raise SvcRequestError(
                "There is no deliver: give a function, deliver_again(show)"
            )
        return deliver

    def __repr_args__(self) -> Iterator[tuple[str | None, Any]]:
        for name, value in super().__repr_args__():
            # A method's own repr shows the object that holds the records.
            yield name, type(value).__name__ if callable(value) else value

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        memo = {} if memo is None else memo
        # Functions stay the same: a copy of a method is a method of a copied database, and a copy
        # of a queue's `put` would fill no queue.
        for function in (self.patient, self.deliver, self.audit):
            if callable(function):
                memo[id(function)] = function
        return super().__deepcopy__(memo)


_NOWHERE = (
    "answer_to='program' needs deliver=, a function that is given each ClinicalResult: without "
    "one nobody would get the answers"
)


@dataclass(frozen=True)
class MedicalEndpoint:
    """One row of the document's endpoint table, as a tool uses it.

    Attributes:
        at: Where it is.
        arguments: The tool's arguments where a patient is bound to it.
        unbound: The arguments without a bound patient, which have the patient's fields too.
        record_fields: Where the record's fields go in the request; None for a GET.
    """

    at: Endpoint
    arguments: type[Record]
    unbound: type[Record]
    record_fields: Mapping[str, str] | None = None

    def __str__(self) -> str:
        return f"{self.at.method} {self.at.path}"


class MedicalTool(MedicalSettings, ServiceTool):
    """A tool over one endpoint of the medical interface."""

    endpoint: ClassVar[MedicalEndpoint]

    name: str = ""
    description: str = ""

    def _arguments(self) -> type[Record]:
        if self.patient is None:
            return self.endpoint.unbound
        return self.endpoint.arguments

    def _to_args_and_kwargs(
        self, tool_input: str | dict[str, Any], tool_call_id: str | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        args, arguments = super()._to_args_and_kwargs(tool_input, tool_call_id)
        return args, {**arguments, "tool_call_id": tool_call_id or ""}

    def _use(
        self,
        config: RunnableConfig | None,
        *,
        tool_call_id: str = "",
        loaded: PatientContext | str | None = None,
        **arguments: Any,
    ) -> ToolUse:
        if self._would_be_lost:  # after model_copy, which checks no setting
            raise SvcRequestError(_NOWHERE)
        endpoint = self.endpoint
        record_fields = endpoint.record_fields or {}
        case = case_of(config)
        patient = self._patient_of(config, loaded)
        wire_arguments = on_wire(endpoint.unbound.model_construct(**arguments))
        record: dict[str, Any] = {}
        report = None
        summary = ""
        if patient is not None:
            record = on_wire(patient)
            report = patient.fhir_report
            if record_fields:
                summary = of_record(record, record_fields, report)
        body = request_body(wire_arguments, record, record_fields)
        exchange = new_exchange(
            self,
            endpoint.at,
            partial(WholeParser, read_answer),
            limits_of(self),
            body=dump_json(body) if record_fields else None,
        )
        values = sent_values(wire_arguments, record, record_fields, report)
        thread = configurable(config).get("thread_id")
        ids: dict[str, Any] = {}
        if thread and tool_call_id:  # else nothing says that two calls are the same
            ids["id"] = id_of_call(str(thread), tool_call_id, case)

        receipt = ClinicalReceipt(
            tool=self.name,
            endpoint=str(endpoint),
            host=urlsplit(exchange.request.url).netloc,
            field_names=names_sent(body),
            body_hash=self._hash_of(exchange.request.body),
            of_record=summary,
            answer_to=self.answer_to,
            case=case,
            tool_call_id=tool_call_id,
            **ids,
        )
        log = CallLog(exchange, receipt, self.audit)
        exchange.try_log = log

        def process(answer: MedicalAnswer) -> ToolOutput:
            result = ClinicalResult(
                **vars(log.receipt), text=answer.text, raw=answer.raw
            )
            told = _RECEIPT.format(self.name, in_words(wire_arguments))
            return told, with_values(result, values)

        return ToolUse(exchange, process, lambda: log.receipt)

    def _loader(self) -> Loader | None:
        """The function that loads the record of a call; None where no record is loaded."""
        if callable(self.patient) and self.endpoint.record_fields:
            return self.patient
        return None

    def _hash_of(self, body: bytes | None) -> str | None:
        key = reveal_secret(self.audit_key)
        if key is None or body is None:
            return None
        return hmac.new(key.encode(), body, "sha256").hexdigest()

    def _patient_of(
        self, config: RunnableConfig | None, loaded: PatientContext | str | None
    ) -> PatientContext | None:
        """The patient of this run: the one that the run brings goes before the tool's.

        Raises:
            SvcRequestError: It is not clear whose record is to be sent.
        """
        of_run = configurable(config).get(PATIENT_KEY)
        if of_run is not None and not isinstance(of_run, PatientContext):
            raise SvcRequestError(
                f"config['configurable']['{PATIENT_KEY}'] must be a PatientContext, "
                f"not {type_text(of_run)}"
            )
        if of_run is not None and self.patient is None and self.endpoint.record_fields:
            raise SvcRequestError(
                "This run brings a patient, and the tool was made without one. "
                "The application must make the tool or toolkit with patient='per_run'"
            )
        if callable(self.patient):
            if of_run is not None:
                raise SvcRequestError(
                    f"This run brings a patient ('{PATIENT_KEY}'), and the tool loads it by its "
                    "case. Give one of the two"
                )
            if isinstance(loaded, str):
                raise SvcRequestError(loaded)
            return loaded
        patient = self.patient if of_run is None else of_run
        if patient is None or isinstance(patient, PatientContext):
            return patient
        if self.endpoint.record_fields:
            raise SvcRequestError(
                "No patient was given for this run: the application must pass "
                f"config={{'configurable': {{'{PATIENT_KEY}': PatientContext(...)}}}}"
            )
        return None

    # -- the answer, which nothing may hold before it was delivered --------------------------------

    def _call(
        self, config: RunnableConfig, run: Any, arguments: dict[str, Any]
    ) -> ToolOutput:
        for name in ("deliver", "audit"):
            if is_async(getattr(self, name)):
                raise SvcRequestError(NEEDS_AWAIT.format(name))
        loaded = load(self._loader(), config)
        receipt, result = super()._call(config, run, {**arguments, "loaded": loaded})
        failure = "the call was interrupted"
        try:
            failure = (
                self._too_long(result)
                or call_program("deliver", self.deliver, result).failure
            )
        finally:
            if failure:
                self._outbox.keep(result)
        return self._output(receipt, result, failure)

    async def _acall(
        self, config: RunnableConfig, run: Any, arguments: dict[str, Any]
    ) -> ToolOutput:
        loaded = await aload(self._loader(), config)
        receipt, result = await super()._acall(
            config, run, {**arguments, "loaded": loaded}
        )
        failure = "the call was interrupted"
        try:
            failure = (
                self._too_long(result)
                or (await acall_program("deliver", self.deliver, result)).failure
            )
        finally:
            if failure:
                self._outbox.keep(result)
        return self._output(receipt, result, failure)

    def _too_long(self, result: ClinicalResult) -> str:
        """Why nobody would read a result; "" if the model or the program reads it."""
        length = len(result.text)
        if length <= self.max_result_chars or self.deliver is not None:
            return ""
        return (
            f"it has {length:,} characters, max_result_chars is {self.max_result_chars:,}, and "
            "there is no deliver= to give it to"
        )

    def _shortened(self, output: ToolOutput) -> ToolOutput:
        return output  # `_output` shows an answer whole or not at all

    def _output(self, receipt: str, result: ClinicalResult, failure: str) -> ToolOutput:
        """The model's text and the artifact, once the answer was delivered.

        Raises:
            SvcError: It was not, so the model is told nothing of it.
        """
        if failure:
            error = SvcError(
                f"{self.name}: the service answered, but the answer was not delivered to the "
                f"program ({failure}). The program keeps it in `undelivered` and can deliver it "
                "again without asking the service. None of it is told here: neither guess nor sum "
                "up what it says."
            )
            error.receipt = result.receipt
            raise error
        footer = "\n".join(line for line in (result.of_record, result.notice) if line)
        if self.answer_to != "model":
            return f"{receipt}\n\n{footer}", result.receipt
        text = result.text
        if len(text) > self.max_result_chars:
            text = (
                f"[The answer has {len(text):,} characters and max_result_chars is "
                f"{self.max_result_chars:,}, so none of it is told here. All of it was given to "
                f"the program as result {result.id}: neither guess nor sum up what it says.]"
            )
        # A message is stored: `replace` makes a result without the values that were sent.
        return f"{text}\n\n{footer}", replace(result)


_RECEIPT = (
    "{0} asked the service with: {1}. The service has answered. The whole answer was given to the "
    "program and none of it to you: say that it is ready to be read there. Neither guess nor sum "
    "up what it says."
)
