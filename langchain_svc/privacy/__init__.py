"""Private runs: what may stand in traces, logs and errors, and what is masked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy
from .runs import (
    MODEL_RUNS,
    RUNS,
    WRAPS,
    Privacy,
    Run,
    make_private,
    private_run,
    private_runs,
    refuse_trio,
    set_uncached,
)
from .safe_errors import safe_constructor, safe_repr

if TYPE_CHECKING:
    from .callbacks import PrivateCallbacks

__getattr__ = lazy(__name__, {"callbacks": "PrivateCallbacks"})
