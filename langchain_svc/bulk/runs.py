"""`run`, `arun` and `results`: the functions that users call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from ..quota import SvcQuota
from .job import BulkReport, Job, Place, Prices, with_quota
from .journal import read_results
from .rows import Format, Rows

__all__ = ["BulkReport", "arun", "results", "run"]


def run(
    runnable: Runnable[Any, Any],
    rows: Rows,
    *,
    journal: Place,
    output: Place | None = None,
    concurrency: int = 16,
    format: Format = None,  # noqa: A002  # the name of the command's option, too
    ordered: bool = False,
    retry_errors: bool = False,
    settings: Mapping[str, Any] | None = None,
    outage_wait: float = 3600.0,
    quota: SvcQuota | None = None,
    prices: Prices = None,
    config: RunnableConfig | None = None,
    progress: bool | None = None,
) -> BulkReport:
    """Ask every row that the journal has no answer of, and say what all rows came to.

    A row's failure is that row's error. What would meet every row (a wrong key, a model that is not
    there, a service that stays down) ends the run, and loses nothing.

    Args:
        runnable: A model, a chain, an agent: whatever has `ainvoke`. Parts that only block run on
            `concurrency` threads.
        rows: A path (.jsonl, .ndjson, .csv, .tsv or .parquet), "-" for JSONL on stdin, or an
            iterable, which is read on a thread of its own. A row is `{"id", "prompt"}`,
            `{"id", "messages"}` or `{"id", "input"}`, or, of an iterable, the input itself. The
            id is the row's number where it is missing; a second row with an id is an error.
        journal: The file that keeps the answers, readable by its owner only. It belongs to these
            rows and this runnable, and is made where there is none.
        output: A JSONL file that is written whole when the run ends, one
            `{"id", "content", "usage", "error"}` a line.
        concurrency: How many rows are asked at the same time.
        format: A template of other columns ("Summarize: {text}"), or a function from a row to
            what the runnable is asked.
        ordered: Whether the output is in the order of the rows, else as they finished.
        retry_errors: Whether rows that an earlier run had an error for are asked again.
        settings: What the answers depend on besides the rows and the runnable, such as the version
            of a function. A journal that was written with others is refused.
        outage_wait: Seconds that the run waits for a service that is down or whose limit is used
            up, from the last answer on.
        quota: An `SvcQuota` for a model of this package; the models of a chain have their own.
        prices: What tokens cost, as of `SvcUsageCallbackHandler`: `model.list_models()`, for one.
            They must be in one currency.
        config: Goes to every call. Its `max_concurrency` is not read.
        progress: Whether progress is shown on stderr; None shows it on a terminal.

    Raises:
        SvcRequestError: The input, the journal or a setting is wrong.
        SvcError: What ended the run early; call again to go on.
        KeyboardInterrupt: After Ctrl-C, when what was being asked has ended, at most 10 s later;
            at once after a second one.
    """
    runnable, eta = with_quota(runnable, quota)
    job = Job(
        runnable,
        rows,
        journal=journal,
        output=output,
        concurrency=concurrency,
        format=format,
        ordered=ordered,
        retry_errors=retry_errors,
        settings=settings,
        outage_wait=outage_wait,
        eta=eta,
        prices=prices,
        config=config,
        progress=progress,
    )
    return job.run()


async def arun(
    runnable: Runnable[Any, Any],
    rows: Rows,
    *,
    journal: Place,
    output: Place | None = None,
    concurrency: int = 16,
    format: Format = None,  # noqa: A002  # as of run
    ordered: bool = False,
    retry_errors: bool = False,
    settings: Mapping[str, Any] | None = None,
    outage_wait: float = 3600.0,
    quota: SvcQuota | None = None,
    prices: Prices = None,
    config: RunnableConfig | None = None,
    progress: bool | None = None,
) -> BulkReport:
    """The async version of `run`.

    Cancelling it ends the run at once. Parts of a chain that only block run on the event loop's
    executor, which may have fewer threads than `concurrency`.
    """
    runnable, eta = with_quota(runnable, quota)
    job = Job(
        runnable,
        rows,
        journal=journal,
        output=output,
        concurrency=concurrency,
        format=format,
        ordered=ordered,
        retry_errors=retry_errors,
        settings=settings,
        outage_wait=outage_wait,
        eta=eta,
        prices=prices,
        config=config,
        progress=progress,
    )
    await job.go()
    return job.report()


def results(journal: Place, *, ordered: bool = True) -> Iterator[dict[str, Any]]:
    """The rows of a journal that no run is using, read as a stream.

    Args:
        journal: The file.
        ordered: In the order of the input, else as they finished.

    Raises:
        SvcRequestError: It is not there, in use, damaged or no journal.
    """
    return read_results(journal, ordered=ordered)
