"""What a call leaves: its `ClinicalReceipt`, its `ClinicalResult`, and how they reach the program.

A receipt is made before the first bytes go, and every try completes it. A result has the answer,
too. Both are given to functions of the program; a result that is not taken stays in the `Outbox`.
"""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple, TypeAlias
from uuid import uuid4

from .._base.threads import Workers, new_lock
from .._client import ANSWERED, Exchange, TryEnd
from ..errors import SvcError
from ..tools.base import request_id, utc_now
from .sent import SentValue

logger: logging.Logger = logging.getLogger("langchain_svc")

NOTICE = "This supports and does not replace the judgement of a clinician."
AnswerTo = Literal["model", "program"]
Finding: TypeAlias = "str | float | None"

_NO_ANSWER_YET = "no answer yet"


@dataclass(frozen=True, kw_only=True)
class SentTry:
    """One time that a request was sent.

    Attributes:
        time: When its bytes were handed to the connection, in UTC as ISO 8601.
        ended: When it ended; None of one that was interrupted.
        outcome: How it ended, in words: "answered", "status 500", "timed out", "connection lost",
            "the answer cannot be read", "not sent: " and why. Until then "no answer yet", which
            stays where the call was interrupted.
        left: Whether the service may have got the request.
        request_id: The service's id of the request, if it sent one.
    """

    time: str
    ended: str | None = None
    outcome: str = _NO_ANSWER_YET
    left: bool = True
    request_id: str | None = None

    def __str__(self) -> str:
        parts = [self.time, self.outcome]
        if self.request_id:
            parts.append(self.request_id)
        return ", ".join(parts)


@dataclass(frozen=True, kw_only=True)
class ClinicalReceipt:
    """What a call sent, where, how often and how that ended, without a value and an answer.

    It is made before the first bytes go, and every try completes it. It is the artifact of a failed
    call's message and the `receipt` of its error, and the artifact of an answer's message where
    `answer_to` is "program".

    Attributes:
        tool: The tool's name.
        endpoint: Method and path.
        host: The host that it was sent to, with its port.
        tries: Each time that it was sent, in order.
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
    host: str
    field_names: tuple[str, ...]
    tries: tuple[SentTry, ...] = ()
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
        tries = tuple(map(_read_try, self.tries))
        object.__setattr__(self, "tries", tries)

    @property
    def time(self) -> str:
        """When it was first sent, in UTC as ISO 8601."""
        return self.tries[0].time if self.tries else ""

    @property
    def request_id(self) -> str | None:
        """The service's id of the last try, if it sent one."""
        return self.tries[-1].request_id if self.tries else None

    @property
    def outcome(self) -> str:
        """How the last try ended: "answered", or as `SentTry.outcome` says."""
        return self.tries[-1].outcome if self.tries else _NO_ANSWER_YET

    def audit(self) -> dict[str, Any]:
        """What was sent and when, without a value: a plain dict in the form of FHIR R4 AuditEvent.

        Add your own agents, such as the clinician, before you store it.
        """
        tries = {f"try {n}": str(sent) for n, sent in enumerate(self.tries, start=1)}
        details = {
            "tool": self.tool,
            "endpoint": self.endpoint,
            "host": self.host,
            "tries": str(len(self.tries)),
            **tries,
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
        service = {
            "who": {"display": "the medical service"},
            "requestor": False,
            "network": {"address": self.host},
        }
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
            **_outcome_of_event(self.outcome),
            "agent": [{"who": program, "requestor": True}, service],
            "source": {"observer": program},
            "entity": [entity],
        }


def _read_try(sent: SentTry | Mapping[str, Any]) -> SentTry:
    """A try; checkpointers make a dict of it."""
    return SentTry(**sent) if isinstance(sent, Mapping) else sent


def _outcome_of_event(outcome: str) -> dict[str, str]:
    """The outcome of an AuditEvent in words, and by FHIR's code of it where it is known."""
    if outcome == _NO_ANSWER_YET:
        return {"outcomeDesc": outcome}
    code = "8"  # a serious failure
    if outcome == ANSWERED:
        code = "0"
    elif outcome.startswith("status 4"):
        code = "4"  # a minor failure, such as a refused request
    return {"outcome": code, "outcomeDesc": outcome}


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


# -- functions of the program ----------------------------------------------------------------------

Deliver = Callable[[ClinicalResult], object] | None
Audit = Callable[[ClinicalReceipt], object] | None

NEEDS_AWAIT = (
    "{0} is an async function, which a synchronous call cannot wait for. Call the tool or the "
    "agent by ainvoke, or give a function that is not async"
)
_WORKERS = Workers("svc-program", 8)


class Returned(NamedTuple):
    """What a function of the program returned, or why it failed, without what its error says.

    Raised here, an error would keep the program's own as its context, and that may hold the answer
    or the record.
    """

    value: object = None
    failure: str = ""


def is_async(function: Callable[..., Any] | None) -> bool:
    """Whether a function, a method or an object can be seen to need an await."""
    call = getattr(function, "__call__", None)  # noqa: B004  # an object's may be async
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def call_program(
    name: str, function: Callable[[Any], object] | None, argument: object
) -> Returned:
    """Call a function of the program, if there is one."""
    if function is None:
        return Returned()
    try:
        value = function(argument)
    except Exception as error:  # noqa: BLE001  # whatever the program's function raises
        return _raised(name, error)
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        return Returned(failure=NEEDS_AWAIT.format(name))
    return Returned(value)


async def acall_program(
    name: str, function: Callable[[Any], object] | None, argument: object
) -> Returned:
    """The same; a function that is not async runs in a thread, and the event loop goes on."""
    if function is None:
        return Returned()
    try:
        value: object
        if is_async(function):
            value = function(argument)
        else:
            value = await asyncio.wrap_future(_WORKERS.submit(function, argument))
        if inspect.isawaitable(value):
            value = await value
    except Exception as error:  # noqa: BLE001  # the same
        return _raised(name, error)
    return Returned(value)


def _raised(name: str, error: Exception) -> Returned:
    return Returned(failure=f"{name} raised {type(error).__name__}")


class Outbox:
    """Results that were not delivered: in memory only, and the same for a tool and its copies."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._results: tuple[ClinicalResult, ...] = ()

    @property
    def results(self) -> tuple[ClinicalResult, ...]:
        return self._results

    def keep(self, result: ClinicalResult) -> None:
        with self._lock:
            self._results = (*self._results, result)

    def remove(self, result: ClinicalResult) -> None:
        with self._lock:
            self._results = tuple(
                other for other in self._results if other is not result
            )

    def __deepcopy__(self, memo: dict[int, Any]) -> Outbox:
        return self

    def __reduce__(self) -> tuple[type[Outbox], tuple[()]]:
        return Outbox, ()  # a pickle may be kept in a file

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Outbox)  # it is no setting of the tool that has it

    __hash__ = None  # type: ignore[assignment]


def id_of_call(thread: str, tool_call: str, case: str) -> str:
    """The id of a call's result: a run that is resumed makes the same."""
    parts = f"{thread}\0{tool_call}\0{case}"
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class CallLog:
    """Keeps the receipt of one call, and shows it to the program before anything is sent.

    It is the `TryLog` of the call's exchange.

    Args:
        receipt: The receipt, without any try.
        audit: The program's function that puts receipts on record.
    """

    def __init__(
        self, exchange: Exchange[Any], receipt: ClinicalReceipt, audit: Audit
    ) -> None:
        self._exchange = exchange
        self._receipt = receipt
        self._audit = audit

    @property
    def receipt(self) -> ClinicalReceipt | None:
        """The receipt as of now; None while nothing was tried."""
        if not self._receipt.tries:
            return None
        return self._receipt

    def record(self, end: TryEnd | None) -> SvcError | None:
        self._note(end)
        audited = call_program("audit", self._audit, self._receipt)
        return self._refusal(end, audited.failure)

    async def arecord(self, end: TryEnd | None) -> SvcError | None:
        self._note(end)
        audited = await acall_program("audit", self._audit, self._receipt)
        return self._refusal(end, audited.failure)

    def _note(self, end: TryEnd | None) -> None:
        now = utc_now(self._exchange)
        tries = self._receipt.tries
        if end is None:
            tries = (*tries, SentTry(time=now))
        else:
            ended = replace(
                tries[-1],
                ended=now,
                outcome=end.outcome,
                left=end.left,
                request_id=request_id(self._exchange),
            )
            tries = (*tries[:-1], ended)
        self._receipt = replace(self._receipt, tries=tries)

    def _refusal(self, end: TryEnd | None, failure: str) -> SvcError | None:
        """Why a try is not to be sent: it could not be put on record."""
        if not failure:
            return None
        if end is not None:
            # That it was sent is on record, and an answer is not lost for this.
            logger.warning("%s, so the end of a try is not on record", failure)
            return None
        self._note(TryEnd("not sent: it could not be put on record", left=False))
        return SvcError(
            f"{self._receipt.tool}: nothing was sent by this try, because it could not be put on "
            f"record ({failure}). Nothing is known from this call."
        )
