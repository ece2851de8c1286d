"""Many rows through a model, a chain or an agent, with a journal that keeps every answer.

    from langchain_svc import ChatSvc, bulk

    report = bulk.run(ChatSvc(), "prompts.jsonl", journal="prompts.journal", output="results.jsonl")
    print(report.done, report.failed, report.total_tokens)

The same call after a crash, Ctrl-C or a loss of power goes on where that run ended: no row is asked
twice but those that were in flight. See docs/bulk.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazy

if TYPE_CHECKING:
    from .job import BulkReport, Job
    from .progress import duration, money
    from .runs import arun, results, run

__all__ = ["BulkReport", "arun", "results", "run"]

__getattr__ = lazy(
    __name__, {"job": "BulkReport Job", "progress": "duration money", "runs": "arun results run"}
)
