"""Many rows through a model, a chain or an agent, with a journal that keeps every answer.

    from langchain_svc import ChatSvc, bulk

    report = bulk.run(ChatSvc(), "prompts.jsonl", journal="prompts.journal", output="results.jsonl")
    print(report.done, report.failed, report.total_tokens)

After a crash, Ctrl-C or a power failure, the same call resumes where that run ended. Only the rows
that were in flight are asked again. See docs/bulk.md.
"""

from .answers import CUT
from .job import BulkReport, Job, arun, run
from .journal import results
from .options import BulkOptions
from .progress import Status, duration, failures, read_status, wait_in_words
from .rows import BadRow

__all__ = ["BulkOptions", "BulkReport", "arun", "results", "run"]
