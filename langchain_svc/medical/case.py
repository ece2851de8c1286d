"""The case of a run: an opaque key that says whose answer an answer is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig

from .._base.safe_errors import safe_repr, type_text
from ..errors import SvcRequestError
from .patient import PatientContext
from .result import ClinicalReceipt, Returned, acall_program, call_program

CASE_KEY = "svc_case"
"""The key of `config["configurable"]` that holds a run's case."""

Loader = Callable[[str], PatientContext | Awaitable[PatientContext]]

_LONGEST = 200
_NO_CASE = (
    "This run has no case, by which patient= loads the record. The application must pass "
    f"config={{'configurable': {{'{CASE_KEY}': '...'}}}}"
)


def configurable(config: RunnableConfig | None) -> Mapping[str, Any]:
    """What the application gives to a run."""
    return (config or {}).get("configurable") or {}


def case_of(config: RunnableConfig | None) -> str:
    """The case of a run; "" where it names none.

    Raises:
        SvcRequestError: It is not a short text, or the thread is of another case.
    """
    case = configurable(config).get(CASE_KEY)
    if case is None:
        return ""
    if not isinstance(case, str) or not case.strip() or len(case) > _LONGEST:
        raise SvcRequestError(
            f"config['configurable']['{CASE_KEY}'] must be a text of 1 to {_LONGEST} characters, "
            f"not {safe_repr(type(case).__name__)}"
        )
    if any(other != case for other in _cases_of_thread(config)):
        raise SvcRequestError(
            "Earlier calls of this thread are of another case. Begin a new thread for this case"
        )
    return case


def _cases_of_thread(config: RunnableConfig | None) -> Iterator[str]:
    """The cases of the calls whose receipts a thread of LangGraph holds."""
    # By this function LangGraph lets a node read the state.
    read_state = configurable(config).get("__pregel_read")
    if read_state is None:
        return
    try:
        messages = read_state("messages")
    except KeyError:  # a graph whose state has no messages
        return
    for message in messages or ():
        if isinstance(message, ToolMessage):
            yield from _cases_of_artifact(message.artifact)


def _cases_of_artifact(artifact: object) -> Iterator[str]:
    if isinstance(artifact, ClinicalReceipt):
        artifact = vars(artifact)
    # A checkpoint may hold a receipt as a dict, which other tools' artifacts do not look like.
    if isinstance(artifact, Mapping) and "of_record" in artifact:
        case = artifact.get("case")
        if case:
            yield case


def load(
    loader: Loader | None, config: RunnableConfig | None
) -> PatientContext | str | None:
    """The record of a run's case, or why there is none; None without a loader."""
    if loader is None:
        return None
    case = case_of(config)
    if not case:
        return _NO_CASE
    return _record_or_reason(call_program("patient=", loader, case))


async def aload(
    loader: Loader | None, config: RunnableConfig | None
) -> PatientContext | str | None:
    """The same; a function that is not async runs in a thread, and the event loop goes on."""
    if loader is None:
        return None
    case = case_of(config)
    if not case:
        return _NO_CASE
    return _record_or_reason(await acall_program("patient=", loader, case))


def _record_or_reason(loaded: Returned) -> PatientContext | str:
    if loaded.failure:
        return f"The record of this case cannot be loaded: {loaded.failure}"
    if isinstance(loaded.value, PatientContext):
        return loaded.value
    return f"patient= must return a PatientContext for a case, not {type_text(loaded.value)}"
