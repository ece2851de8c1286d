"""Private runs, and pseudonyms: what may stand in records, and what may leave."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._base.lazy import lazy
from .callbacks import PrivateCallbacks
from .masks import mask, masked
from .runs import PrivateRun, refuse_cache

if TYPE_CHECKING:
    from .pseudonyms import PseudonymRestorer, Pseudonyms
else:
    __getattr__ = lazy(__name__, {"pseudonyms": "PseudonymRestorer Pseudonyms"})

private_run = PrivateRun  # as the core's protocol names it
