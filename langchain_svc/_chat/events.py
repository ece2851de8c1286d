"""Tells callbacks what happens inside a run, as LangChain's custom events.

They reach `astream_events` and handlers with `on_custom_event`. Outside any run that could carry
an event there is nobody to tell, and nothing happens.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForLLMRun,
    CallbackManager,
    CallbackManagerForLLMRun,
    adispatch_custom_event,
    dispatch_custom_event,
)
from langchain_core.runnables import RunnableConfig

REASK = "svc_reask"
"""The model is asked once more; data: `reason`, what it is told."""


def dispatch_event(
    run: CallbackManagerForLLMRun | None, name: str, data: Mapping[str, Any]
) -> None:
    """Tell the run's callbacks, or those of the run around it."""
    config = None
    if run is not None:
        config = RunnableConfig(callbacks=CallbackManager(run.handlers, parent_run_id=run.run_id))
    with suppress(RuntimeError):  # no run could carry it
        dispatch_custom_event(name, dict(data), config=config)


async def adispatch_event(
    run: AsyncCallbackManagerForLLMRun | None, name: str, data: Mapping[str, Any]
) -> None:
    """The async version of `dispatch_event`."""
    config = None
    if run is not None:
        manager = AsyncCallbackManager(run.handlers, parent_run_id=run.run_id)
        config = RunnableConfig(callbacks=manager)
    with suppress(RuntimeError):  # no run could carry it
        await adispatch_custom_event(name, dict(data), config=config)
