"""The run: `concurrency` workers ask rows, and save each answer before they ask the next row.

A worker keeps its row until the answer is on the disk, so a killed run loses no more than
`concurrency` rows. Answers that come while the disk is busy wait for the next commit, which takes
all of them: slow disks make large commits, and no timer is needed.

A file is read through before anything is sent. So a damaged file is refused at no cost, the number
of its rows is known, and the output has a line for each row even where the run ends early.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from langchain_core.runnables import Runnable
from langchain_core.runnables.config import merge_configs

from .._base.shown import html_table, money, record_repr
from .._base.threads import Workers
from .._base.tokens import TOKENS_A_TURN, count_tokens
from .._client import ON_WAIT
from .._wire import Price, read_prices
from ..errors import SvcRateLimitError, SvcRequestError
from ..observe.usage import SvcUsageCallbackHandler
from ..quota.limiter import bulk_priority
from .answers import AnswerWatch, RowResult, error_text, to_json
from .journal import Journal, Totals, in_words, output_lines, results, write_output
from .options import BulkOptions
from .outage import Outage, RowTries
from .progress import (
    EVERY,
    RunState,
    duration,
    is_watched,
    log,
    remove_status,
    show_progress,
    write_status,
)
from .rows import BadRow, Problems, Register, Row, Rows, Source

P = ParamSpec("P")
T = TypeVar("T")

# Seconds for the rows in flight when the run is to end. `docker stop` kills after ten, and the
# output is still to be written.
_GRACE = 5.0
_ENDING = (
    f"\nStopping: waiting up to {_GRACE:.0f} s for open rows. "
    "Press Ctrl-C again to stop now.\n"
).encode()


@dataclass(frozen=True, kw_only=True)
class BulkReport(Totals):
    """The outcome of a run.

    Attributes:
        done: Rows with a whole answer, of this and earlier runs.
        failures: How many rows have an error, by its type: "cut" for an answer that was cut off.
        failed: Rows with an error, those with a cut answer among them.
        cut: Rows whose answer was cut off.
        unanswered: Rows that were read and have neither, as the run ended early.
        asked: Rows that this run asked.
        input_tokens: Tokens in, counted or estimated, of all rows.
        output_tokens: Tokens out.
        total_tokens: All tokens.
        cost: What all tokens cost; None if no price is known.
        currency: Of the cost; "" where the prices name none.
        seconds: How long the job took, of all its runs together.
        runs: How many runs that were.
        journal: The file that has the answers.
    """

    asked: int
    unanswered: int
    seconds: float
    runs: int
    journal: str

    def results(self, *, ordered: bool = True) -> Iterator[dict[str, Any]]:
        """Every row of the journal, read as a stream.

        A row is `{"row", "id", "content", "usage", "finish_reason", "error"}`.

        Args:
            ordered: In the order of the input; otherwise as they finished.
        """
        return results(self.journal, ordered=ordered)

    def __repr__(self) -> str:
        return record_repr(self)

    def _repr_html_(self) -> str:
        counts = {
            "answered": self.done,
            "failed": self.failed,
            "of them cut off": self.cut,
            "unanswered": self.unanswered,
            "asked by this run": self.asked,
            "tokens in": self.input_tokens,
            "tokens out": self.output_tokens,
        }
        rows = [(name, f"{count:,}") for name, count in counts.items()]
        if self.cost is not None:
            rows.append(("cost", money(self.cost, self.currency)))
        rows += [("time", duration(self.seconds)), ("journal", self.journal)]
        return html_table((), rows)


def _takes_options(
    _: Callable[P, BulkOptions],
) -> Callable[
    [Callable[..., T]], Callable[Concatenate[Runnable[Any, Any], Rows, P], T]
]:
    """Gives a function of a runnable, rows and `**options` the types of the options."""
    return lambda function: function


@_takes_options(BulkOptions)
def run(runnable: Runnable[Any, Any], rows: Rows, **options: Any) -> BulkReport:
    """Ask every row that the journal has no answer for, and return the totals of all rows.

    A row's failure is that row's error, and so is an answer that was cut. Errors that would hit
    every row (a wrong key, a missing model, a service that stays down) end the run, and lose
    nothing. A file is read through before anything is sent.

    Args:
        runnable: A model, a chain, an agent: anything with `ainvoke`. Parts that only block run on
            `concurrency` threads.
        rows: A path (.jsonl, .ndjson, .csv or .parquet), "-" for JSONL on stdin, or an iterable,
            which is read on a thread of its own. A row is `{"id", "prompt"}`,
            `{"id", "messages"}` or `{"id", "input"}`, or, in an iterable, the input itself. A
            missing id is the row's number, that of an unreadable row None; a second row with the
            same id is an error.
        **options: The fields of `BulkOptions`; only `journal` is required.

    Raises:
        SvcRequestError: The input, the journal or an option is wrong. A damaged file is named with
            the line.
        SvcError: What ended the run early; call again to resume.
        KeyboardInterrupt: After Ctrl-C, when the rows in flight have ended, at most 5 s later;
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


@dataclass
class Estimate:
    """What is in the input, and what of it is still to be asked.

    `tokens_out` is the average of the answers in the journal; None where it has none.
    """

    answered: int = 0
    requests: int = 0
    tokens_in: int = 0
    tokens_out: float | None = None
    problems: Problems = field(default_factory=Problems)

    def add_row(self, row: Row) -> None:
        """Count a row of the input."""
        self.problems.add_row(row)
        if not row.to_ask:
            self.answered += 1
        elif not row.problem:
            self.requests += 1
            text = row.input if isinstance(row.input, str) else to_json(row.input)
            self.tokens_in += count_tokens(text) + TOKENS_A_TURN


class Job:
    """A run with everything around it."""

    def __init__(
        self, runnable: Runnable[Any, Any], rows: Rows, options: BulkOptions
    ) -> None:
        options.check_places(rows)
        self._runnable = runnable
        self.prices: Mapping[str, Price] | None = None
        if options.prices is not None:
            self.prices = read_prices(options.prices)
            _check_currency(self.prices)
        self._options = options
        self._path = os.fspath(options.journal)
        self._settings = options.fingerprint(self._runnable)
        self._register = Register()
        # The last to fail: it opens a file.
        self._source = Source(rows, options.format, self._register, options.part())
        self._state = RunState()
        self._outage = Outage(options.outage_wait)
        self._interrupted = False
        self._error: BaseException | None = None
        self._rows: deque[Row] = deque()
        self._exhausted = False
        self._busy: set[asyncio.Task[Any] | None] = set()
        self._batch: list[tuple[Row, RowResult]] = []
        self._ended = asyncio.Event()
        self._reading = asyncio.Lock()
        self._committing = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None
        # One thread each: calls keep their order, and a silent pipe holds up nothing else.
        self._disk = Workers("bulk journal", 1)
        self._reader = Workers("bulk input", 1)

    def run(self) -> BulkReport:
        """Run on an event loop and a thread of its own, so that Ctrl-C meets only the wait.

        Raises:
            KeyboardInterrupt: After an interruption, when everything is written.
        """
        thread = ThreadPoolExecutor(1)
        job = thread.submit(copy_context().run, asyncio.run, self._go_alone())
        thread.shutdown(wait=False)
        # The first Ctrl-C ends the run when its open rows have answers, a second one at once.
        for on_interrupt in (self._interrupt, self._stop):
            try:
                job.result()
                break
            except KeyboardInterrupt:
                on_interrupt()
        job.result()
        if self._interrupted:
            raise KeyboardInterrupt
        return self.report()

    async def _go_alone(self) -> None:
        # So many parts of a chain may block at the same time.
        executor = ThreadPoolExecutor(self._options.concurrency)
        asyncio.get_running_loop().set_default_executor(executor)
        with suppress(asyncio.CancelledError):  # a second Ctrl-C
            await self.go()

    def _interrupt(self) -> None:
        """Begin no more rows, and end when the open ones have answers."""
        self._interrupted = True
        self._call_soon(self._ended.set)
        with suppress(OSError):
            # Not sys.stderr, which may be in the middle of a line of progress.
            os.write(2, _ENDING)

    def _stop(self) -> None:
        self._call_soon(lambda: self._task and self._task.cancel())

    def _call_soon(self, call: Callable[[], Any]) -> None:
        with suppress(RuntimeError):  # the loop has come to its end
            if self._loop is not None:
                self._loop.call_soon_threadsafe(call)

    def report(self) -> BulkReport:
        state = self._state
        return BulkReport(
            **vars(state.totals),
            asked=state.rows_asked,
            unanswered=state.unanswered,
            seconds=state.seconds_of_job(time.monotonic()),
            runs=state.runs,
            journal=self._path,
        )

    def estimate(self) -> Estimate:
        """What the run would take. It reads all rows, asks nothing, and makes no journal.

        Raises:
            SvcRequestError: The input is damaged, or the journal belongs to another one.
        """
        estimate = Estimate()
        journal: Journal | None = None
        with (
            closing(self._register),
            closing(self._source),
            in_words(Path(self._path)),
            ExitStack() as stack,
        ):
            if os.path.exists(self._path):  # noqa: PTH110  # a journal may be a plain name
                journal = stack.enter_context(closing(self._open()))
                totals = journal.totals()
                if totals.done:
                    estimate.tokens_out = totals.output_tokens / totals.done
            while rows := self._source.chunk():
                if journal is not None:
                    journal.mark(rows, retry_errors=self._options.retry_errors)
                for row in rows:
                    estimate.add_row(row)
        return estimate

    def _open(self) -> Journal:
        return Journal(self._path, self._settings)

    async def go(self) -> None:
        """Run on the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        if self._interrupted:
            self._ended.set()
        with closing(self._register), closing(self._source):
            await self._check_input()
            if self._ended.is_set():
                return
            async with show_progress(self._state, option=self._options.progress):
                await self._run_with_journal()

    async def _check_input(self) -> None:
        """Read a file through before anything is sent, and report rows that cannot be asked.

        Raises:
            SvcRequestError: It is damaged, or no row of it can be asked.
        """
        preview = self._source.preview()
        if preview is None:
            return
        problems = Problems()
        with closing(preview):
            while not self._ended.is_set():
                rows = await _run_on(self._reader, preview.chunk)
                if not rows:
                    break
                for row in rows:
                    problems.add_row(row)
        if self._ended.is_set():
            return
        self._source.total = preview.total
        self._state.expected = problems.rows
        if problems.bad and problems.bad == problems.rows:
            raise SvcRequestError(f"No row of the input can be asked. {problems}")
        if not is_watched(self._options.progress):
            return
        if problems.bad:
            log(
                f"{problems.bad:,} of {problems.rows:,} rows cannot be asked. {problems}"
            )
        if problems.models:
            named = ", ".join(sorted(problems.models))
            log(f"The rows name {named}; the model of this run answers them all")

    async def _run_with_journal(self) -> None:
        with in_words(Path(self._path)):
            await self._run_and_write()

    async def _run_and_write(self) -> None:
        self._journal = await _run_on(self._disk, self._open)
        try:
            self._journal.expected = self._state.expected
            self._state.before = await _run_on(
                self._disk, self._journal.begin_run, self._state.started
            )
            self._state.totals = await _run_on(self._disk, self._journal.totals)
            telling = asyncio.ensure_future(self._tell_status())
            try:
                with bulk_priority():  # interactive calls go before ours
                    await self._ask_all()
            finally:
                telling.cancel()
            self._state.totals = await _run_on(self._disk, self._journal.totals)
        finally:
            await _run_on(self._disk, self._write_results)
        if self._error is not None:
            raise self._error

    async def _tell_status(self) -> None:
        """Let others see where the run stands."""
        place = self._journal.path
        while True:
            await _run_on(self._disk, write_status, place, self._state.status())
            await asyncio.sleep(EVERY)

    def _write_results(self) -> None:
        output = self._options.output
        with closing(self._journal) as journal:
            remove_status(journal.path)
            try:
                # Of workers that were cancelled while they waited.
                journal.save(self._batch)
                self._state.took = journal.end_run()
            except sqlite3.Error as error:
                # The output has a line for each row all the same.
                self._error = self._error or error
            if output is None:
                return
            lines = output_lines(
                journal,
                self._register,
                ordered=self._options.ordered,
                reason=self._reason(),
            )
            if output == "-":
                for line in lines:
                    sys.stdout.write(line + "\n")
            else:
                write_output(os.fspath(output), lines, journal.path)

    def _reason(self) -> str:
        """Why rows are unanswered, if there are any."""
        if self._error is not None:
            return error_text(self._error).rstrip(".")
        if self._interrupted:
            return "it was interrupted"
        return "it was cancelled"

    async def _ask_all(self) -> None:
        workers = [
            asyncio.ensure_future(self._ask_rows())
            for _ in range(self._options.concurrency)
        ]
        done = asyncio.ensure_future(asyncio.wait(workers))
        ended = asyncio.ensure_future(self._ended.wait())
        grace = 0.0
        try:
            await asyncio.wait({done, ended}, return_when=asyncio.FIRST_COMPLETED)
            grace = _GRACE
        finally:
            ended.cancel()
            done.cancel()
            for worker in workers:
                if worker not in self._busy:
                    worker.cancel()
            try:
                await asyncio.wait(workers, timeout=grace)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.wait(workers)

    async def _ask_rows(self) -> None:
        """A worker: ask one row after another."""
        try:
            while not self._ended.is_set():
                row = await self._next_row()
                if row is None:
                    return
                await self._ask_row(row)
        except Exception as error:  # noqa: BLE001  # raised by go()
            self._error = self._error or error
            self._ended.set()

    # -- rows -------------------------------------------------------------------------------------

    async def _next_row(self) -> Row | None:
        async with self._reading:
            while not self._rows and not self._exhausted:
                await self._read_rows()
            return self._rows.popleft() if self._rows else None

    async def _read_rows(self) -> None:
        rows = await _run_on(self._reader, self._source.chunk)
        self._state.expected = self._journal.expected = self._source.expected
        self._state.read += len(rows)
        if not rows:
            self._exhausted = True
            await self._check_end()
            return
        mark = partial(
            self._journal.mark, rows, retry_errors=self._options.retry_errors
        )
        await _run_on(self._disk, mark)
        for row in rows:
            if row.to_ask and row.problem:
                where = f"{row.place}: " if row.line else ""
                error = BadRow(f"The row is not asked: {where}{row.problem}")
                await self._save_result(row, RowResult.of_error(error))
            elif row.to_ask:
                self._rows.append(row)

    async def _check_end(self) -> None:
        if self._source.total is not None:
            await _run_on(self._disk, self._journal.end_input, self._source.total)

    # -- one row ----------------------------------------------------------------------------------

    async def _ask_row(self, row: Row) -> None:
        tries = self._outage.start_row()
        state = self._state
        usage = SvcUsageCallbackHandler(self.prices)  # of all tries
        task = asyncio.current_task()
        ON_WAIT.set(partial(state.wait, row.number))
        state.rows_asked += 1
        state.open += 1
        try:
            while True:
                self._busy.add(task)
                try:
                    pause = await self._ask_once(row, tries, usage)
                finally:
                    self._busy.discard(task)
                if pause is None:
                    return
                await asyncio.sleep(pause)
        finally:
            state.open -= 1
            state.waits.pop(row.number, None)

    async def _ask_once(
        self, row: Row, tries: RowTries, usage: SvcUsageCallbackHandler
    ) -> float | None:
        """Ask and save the result; or return the seconds after which to ask again."""
        watch = AnswerWatch()
        config = merge_configs(self._options.config, {"callbacks": [usage, watch]})
        try:
            answer = await self._runnable.ainvoke(row.input, config, **row.arguments)
            result = RowResult.of_answer(answer, watch)
        except Exception as error:  # noqa: BLE001  # a row's error, or the run's
            pause = self._outage.pause(error, tries)
            if pause is not None:
                is_limit = isinstance(error, SvcRateLimitError)
                self._state.wait(row.number, pause, is_limit)
                return pause
            result = RowResult.of_error(error)
        else:
            self._outage.record_answer()
        await self._save_result(row, result.add_usage(usage))
        return None

    async def _save_result(self, row: Row, result: RowResult) -> None:
        """Save a result; return when it is on the disk."""
        batch = self._batch
        batch.append((row, result))
        async with self._committing:
            if batch is self._batch:  # no other worker has written it meanwhile
                self._batch = []
                # Others wait for this commit too: so a cancelled worker does not stop it.
                await asyncio.shield(_run_on(self._disk, self._journal.save, batch))
        self._state.totals = self._state.totals.plus(result, row)


def _check_currency(prices: Mapping[str, Price]) -> None:
    currencies = sorted({price.currency for price in prices.values()})
    if len(currencies) > 1:
        raise SvcRequestError(
            f"The prices are in several currencies ({', '.join(currencies)}), which do not add up: "
            "give those of one"
        )


async def _run_on(thread: Workers, call: Callable[..., T], *args: Any) -> T:
    """The result of a call on another thread. Cancelling does not end a call that has begun."""
    return await asyncio.wrap_future(thread.submit(call, *args))
