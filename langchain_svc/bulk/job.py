"""A job: what a caller of `bulk.run` gave, and what came of it."""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, closing, suppress
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from langchain_core.runnables import Runnable

from .._chat import TOKENS_A_TURN, count_tokens
from .._service import ServiceSettings
from .._usage import read_prices
from ..errors import SvcRequestError
from ..quota import SvcQuota
from .answers import to_json
from .engine import Engine
from .journal import Journal, read_results
from .options import BulkOptions, Place
from .progress import Eta, shown
from .rows import Row, Rows, Source

P = ParamSpec("P")
T = TypeVar("T")

_PROBLEMS = 3  # of rows that cannot be asked, in an estimate


@dataclass(frozen=True)
class BulkReport:
    """The outcome of a run.

    Attributes:
        done: Rows with an answer, of this and earlier runs.
        failed: Rows with an error.
        asked: Rows that this run asked.
        input_tokens: Tokens in, counted or estimated, of all rows.
        output_tokens: Tokens out.
        total_tokens: All tokens.
        cost: In the currency of the prices; None if no price is known.
        seconds: How long this run took.
        journal: The file that has the answers.
    """

    done: int
    failed: int
    asked: int
    input_tokens: int
    output_tokens: int
    total_tokens: int
    cost: float | None
    seconds: float
    journal: str

    def results(self, *, ordered: bool = True) -> Iterator[dict[str, Any]]:
        """Every row as `{"id", "content", "usage", "error"}`, read from the journal as a stream.

        Args:
            ordered: In the order of the input; otherwise as they finished.
        """
        return read_results(self.journal, ordered=ordered)


def _takes_options(
    options: Callable[P, BulkOptions],
) -> Callable[[Callable[..., T]], Callable[Concatenate[Runnable[Any, Any], Rows, P], T]]:
    """Gives a function of a runnable, rows and `**options` the options' own signature."""

    def dressed(function: Callable[..., T]) -> Callable[..., T]:
        own = inspect.signature(function)
        positional = [own.parameters["runnable"], own.parameters["rows"]]
        named = inspect.signature(options).parameters.values()
        function.__signature__ = own.replace(parameters=[*positional, *named])  # type: ignore[attr-defined]
        return function

    return dressed


@_takes_options(BulkOptions)
def run(runnable: Runnable[Any, Any], rows: Rows, **options: Any) -> BulkReport:
    """Ask every row that the journal has no answer to, and return the totals of all rows.

    A row's failure is that row's error. Errors that would hit every row (a wrong key, a missing
    model, a service that stays down) end the run, and lose nothing.

    Args:
        runnable: A model, a chain, an agent: anything with `ainvoke`. Parts that only block run on
            `concurrency` threads.
        rows: A path (.jsonl, .ndjson, .csv or .parquet), "-" for JSONL on stdin, or an iterable,
            which is read on a thread of its own. A row is `{"id", "prompt"}`,
            `{"id", "messages"}` or `{"id", "input"}`, or, in an iterable, the input itself. A
            missing id is the row's number; a second row with the same id is an error.
        **options: The fields of `BulkOptions`; only `journal` is required.

    Raises:
        SvcRequestError: The input, the journal or an option is wrong.
        SvcError: What ended the run early; call again to resume.
        KeyboardInterrupt: After Ctrl-C, when the rows in flight have ended, at most 10 s later;
            at once after a second one.
    """
    return Job(runnable, rows, BulkOptions(**options)).run()


@_takes_options(BulkOptions)
async def arun(runnable: Runnable[Any, Any], rows: Rows, **options: Any) -> BulkReport:
    """The async version of `run`.

    Cancelling it ends the run at once. Parts of a chain that only block run on the event loop's
    executor, which may have fewer threads than `concurrency`.
    """
    job = Job(runnable, rows, BulkOptions(**options))
    await job.go()
    return job.report()


def results(journal: Place, *, ordered: bool = True) -> Iterator[dict[str, Any]]:
    """The rows of a journal that no run is using, read as a stream.

    Args:
        journal: The file.
        ordered: In the order of the input; otherwise as they finished.

    Raises:
        SvcRequestError: It is missing, in use, damaged or no journal.
    """
    return read_results(journal, ordered=ordered)


@dataclass
class Estimate:
    """What is in the input, and what of it is still to be asked.

    Attributes:
        rows: Rows of the input.
        answered: Those that the journal has.
        requests: Those to ask: requests to the service, if each takes one.
        tokens_in: About how many tokens they have.
        tokens_out: Of the answers of a row, as the journal's answers had them; None without such.
        bad: How many rows cannot be asked.
        problems: Why, of the first few.
    """

    rows: int = 0
    answered: int = 0
    requests: int = 0
    tokens_in: int = 0
    tokens_out: float | None = None
    bad: int = 0
    problems: tuple[str, ...] = ()

    def add(self, row: Row) -> None:
        """Count one row more."""
        self.rows += 1
        if not row.to_ask:
            self.answered += 1
        elif row.problem:
            self.bad += 1
            if len(self.problems) < _PROBLEMS:
                self.problems += (f"row {row.number}: {row.problem}",)
        else:
            self.requests += 1
            text = row.input if isinstance(row.input, str) else to_json(row.input)
            self.tokens_in += count_tokens(text) + TOKENS_A_TURN


class Job:
    """A run with everything around it.

    Args:
        runnable: What is asked.
        rows: The input.
        options: Of the run.
        eta: Seconds that the plan takes for so many `requests` and `tokens`, if the quota of the
            options or of the runnable does not tell.
    """

    def __init__(
        self,
        runnable: Runnable[Any, Any],
        rows: Rows,
        options: BulkOptions,
        eta: Eta | None = None,
    ) -> None:
        options.check_places(rows)
        runnable = _with_quota(runnable, options.quota)
        quota = getattr(runnable, "quota", None)
        self.eta = quota.eta if isinstance(quota, SvcQuota) else eta
        self.prices = None if options.prices is None else read_prices(options.prices)
        self._options = options
        self._path = os.fspath(options.journal)
        self._settings = options.fingerprint(runnable)
        self._source = Source(rows, options.format)  # the last to fail: it opens a file
        self._engine = Engine(
            runnable,
            self._source,
            lambda: Journal(self._path, self._settings),
            options,
            self.prices,
        )

    def run(self) -> BulkReport:
        """Do it on an event loop of its own, and wait for its end.

        The loop has a thread of its own, so that this works in a notebook, too, and Ctrl-C meets
        only the wait.

        Raises:
            KeyboardInterrupt: After an interruption, when everything is written.
        """
        thread = ThreadPoolExecutor(1)
        done = thread.submit(copy_context().run, asyncio.run, self._go_alone())
        thread.shutdown(wait=False)
        for end in (self._engine.interrupt, self._engine.stop):
            try:
                while not done.done():
                    wait([done], 0.5)  # on Windows Ctrl-C does not end a wait without an end
                break
            except KeyboardInterrupt:
                end()
        done.result()
        if self._engine.interrupted:
            raise KeyboardInterrupt
        return self.report()

    async def _go_alone(self) -> None:
        # So many parts of a chain may block at the same time.
        executor = ThreadPoolExecutor(self._options.concurrency)
        asyncio.get_running_loop().set_default_executor(executor)
        with suppress(asyncio.CancelledError):  # a second Ctrl-C
            await self.go()

    async def go(self) -> None:
        """Do it on the running event loop."""
        try:
            async with shown(self._engine.state, wanted=self._options.progress, eta=self.eta):
                await self._engine.go(self._finish)
        finally:
            self._source.close()

    def report(self) -> BulkReport:
        """What has come of it so far."""
        state = self._engine.state
        return BulkReport(
            **vars(state.totals),
            asked=state.asked,
            seconds=time.monotonic() - state.begun,
            journal=self._path,
        )

    def estimate(self) -> Estimate:
        """What it would take. All rows are read, nothing is asked, and no journal made."""
        there = os.path.exists(self._path)  # noqa: PTH110  # a journal may be a plain name
        found = Estimate()
        with closing(self._source), ExitStack() as stack:
            journal = Journal(self._path, self._settings) if there else None
            if journal is not None:
                stack.callback(journal.close)
                totals = journal.totals()
                found.tokens_out = totals.output_tokens / totals.done if totals.done else None
            while rows := self._source.chunk():
                if journal is not None:
                    journal.mark(rows, retry_errors=self._options.retry_errors)
                for row in rows:
                    found.add(row)
        return found

    def _finish(self, journal: Journal) -> None:
        output, ordered = self._options.output, self._options.ordered
        if output == "-":
            for line in journal.lines(ordered=ordered):
                sys.stdout.write(line + "\n")
        elif output is not None:
            journal.write(os.fspath(output), ordered=ordered)


def _with_quota(runnable: Runnable[Any, Any], quota: SvcQuota | None) -> Runnable[Any, Any]:
    if quota is None:
        return runnable
    if not isinstance(runnable, ServiceSettings):
        raise SvcRequestError(
            "quota= is for a model or a tool of this package. In a chain or an agent the model "
            "has it: ChatSvc(quota=...)"
        )
    return cast("Runnable[Any, Any]", runnable.model_copy(update={"quota": quota}))
