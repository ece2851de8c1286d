"""Reaching the service: settings, retries, connections. The network is touched only here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy
from .parsers import TextParser, WholeParser
from .runs import MAKERS, RUNS, Privacy, keeps_runs, set_uncached
from .settings import (
    ALIASES,
    Retries,
    Seconds,
    Secret,
    ServiceSettings,
    bounded_number,
    did_you_mean,
    resolve_aliases,
    reveal_secret,
    suggest_name,
    url_of,
)
from .steps import BLOCK_LIMITS, ON_WAIT, CallSize, Exchange, Limits, Request, Wait

if TYPE_CHECKING:
    from .client import arun, run
    from .tool import (
        ServiceTool,
        ServiceToolkit,
        ToolOutput,
        ToolUse,
        request_id,
        tool_selection,
        utc_now,
        vision_exchange,
    )

__getattr__ = lazy(
    __name__,
    {
        "client": "run arun",
        "tool": "ToolUse ServiceTool ServiceToolkit ToolOutput utc_now request_id tool_selection"
        " vision_exchange",
    },
)
