"""Many rows through one runnable, with a journal that keeps every answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy
from .command import add_batch

if TYPE_CHECKING:
    from .job import BulkReport, Job, Place, Prices, with_quota
    from .journal import read_results
    from .rows import Format, Rows

# The command line is drawn without them.
__getattr__ = lazy(
    __name__,
    {
        "job": "BulkReport Job Place Prices with_quota",
        "journal": "read_results",
        "rows": "Format Rows",
    },
)
