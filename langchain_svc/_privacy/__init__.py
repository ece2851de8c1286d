"""Private runs: what may stand in traces, logs and errors, and what is masked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy
from .callbacks import PrivateCallbacks
from .runs import Privacy, PrivateChatModel, PrivateTool, Run, private, private_runs, refuse_trio
from .safe_errors import Constructed, shown

if TYPE_CHECKING:
    from .llm import PrivateLLM

__getattr__ = lazy(
    __name__,
    {
        "llm": "PrivateLLM",
    },
)
