"""Private runs: what may stand in traces, logs and errors, and what is masked."""

from __future__ import annotations

from .callbacks import PrivateCallbacks
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
