"""Private runs: what may stand in traces, logs and errors, and what is masked."""

from __future__ import annotations

from .callbacks import PrivateCallbacks
from .masks import mask, masked
from .pseudonyms import PseudonymRestorer, Pseudonyms
from .runs import PrivateRun, refuse_cache

private_run = PrivateRun  # as the core's protocol names it
