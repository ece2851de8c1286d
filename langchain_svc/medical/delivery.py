"""How a result or a receipt reaches the program, and where a result stays if that fails."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
from collections.abc import Callable
from typing import Any

from .._base.threads import Workers, new_lock
from .result import ClinicalReceipt, ClinicalResult

Deliver = Callable[[ClinicalResult], object] | None
Audit = Callable[[ClinicalReceipt], object] | None

NEEDS_AWAIT = (
    "{0} is an async function, which a synchronous call cannot wait for. Call the tool or the "
    "agent by ainvoke, or give a function that is not async"
)
_WORKERS = Workers("svc-program", 8)


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


async def off_event_loop(function: Callable[..., Any], *arguments: Any) -> object:
    """The result of a function of the program, which may block, called in a thread."""
    return await asyncio.wrap_future(_WORKERS.submit(function, *arguments))


def is_async(function: Callable[..., Any] | None) -> bool:
    """Whether a function, a method or an object can be seen to need an await."""
    call = getattr(function, "__call__", None)  # noqa: B004  # an object's may be async
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


# These return the reason: raised here, an error would keep the program's own as its context, and
# that may hold the answer.


def call_program(
    name: str, function: Callable[[Any], object] | None, value: ClinicalReceipt
) -> str:
    """Give the program a value; why it did not take it, without what its error says, else ""."""
    if function is None:
        return ""
    try:
        returned = function(value)
    except Exception as error:  # noqa: BLE001  # whatever the program's function raises
        return f"{name} raised {type(error).__name__}"
    if inspect.isawaitable(returned):
        if inspect.iscoroutine(returned):
            returned.close()
        return NEEDS_AWAIT.format(name)
    return ""


async def acall_program(
    name: str, function: Callable[[Any], object] | None, value: ClinicalReceipt
) -> str:
    """The same; a function that is not async runs in a thread, and the event loop goes on."""
    if function is None:
        return ""
    try:
        if is_async(function):
            returned = function(value)
        else:
            returned = await off_event_loop(function, value)
        if inspect.isawaitable(returned):
            await returned
    except Exception as error:  # noqa: BLE001  # the same
        return f"{name} raised {type(error).__name__}"
    return ""


def id_of_call(thread: str, tool_call: str, case: str) -> str:
    """The id of a call's result: a run that is resumed makes the same."""
    parts = f"{thread}\0{tool_call}\0{case}"
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:32]
