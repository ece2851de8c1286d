"""The run: so many rows at a time are asked, and each answer is in the journal before the next row.

A row takes its place among the `concurrency` ones until its answer is on the disk, so that a killed
run has lost no more than those. Whoever has an answer while the disk is busy waits for the next
commit, which takes all of them: slow disks make large commits, and no timer is needed.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import Any, TypeVar

from langchain_core.exceptions import ModelRateLimitError
from langchain_core.runnables import Runnable
from langchain_core.runnables.config import merge_configs

from .._service import ON_WAIT
from .._usage import Price
from ..callbacks import SvcUsageCallbackHandler
from ..errors import SvcRequestError
from ..quota import bulk_priority
from .answers import RowResult
from .journal import Journal, Totals
from .options import BulkOptions
from .outage import Outage, RowTries, RunEnd
from .rows import Row, Source

_MOMENT = 1.5  # seconds
_GRACE = 10.0  # seconds for the rows in flight when the run is to end
_ENDING = f"\nEnding: {_GRACE:.0f} s at most for open rows. Ctrl-C again ends at once.\n".encode()

T = TypeVar("T")


@dataclass
class RunState:
    """Where a run stands.

    Attributes:
        expected: How many rows there are in all, None if nothing tells.
        exact: Whether that is known, and not an estimate.
        totals: What the journal holds.
        asked: Rows that this run has asked.
        begun: When it began, of `time.monotonic`.
        open: Rows that are being asked.
        waits: Until when each of those waits that do, and whether for a limit.
    """

    expected: int | None = None
    exact: bool = False
    totals: Totals = field(default_factory=Totals)
    asked: int = 0
    begun: float = field(default_factory=time.monotonic)
    open: int = 0
    waits: dict[int, tuple[float, bool]] = field(default_factory=dict)

    @property
    def finished(self) -> int:
        """Rows that have an answer or an error."""
        return self.totals.done + self.totals.failed

    @property
    def left(self) -> int | None:
        """About how many rows there are still to ask."""
        return None if self.expected is None else max(0, self.expected - self.finished)

    def wait(self, row: int, seconds: float, error: Exception) -> None:
        """A row waits for its next try; from any thread."""
        self.waits[row] = time.monotonic() + seconds, isinstance(error, ModelRateLimitError)

    def waiting(self, now: float) -> tuple[float, bool]:
        """Seconds until the first open row goes on, 0 if one is at work; and if a limit holds."""
        waits = list(self.waits.values())  # other threads may add some meanwhile
        if not waits or len(waits) < self.open:
            return 0.0, False
        until, limit = min(waits)
        return (until - now, limit) if until - now > _MOMENT else (0.0, False)


class Engine:
    """One run over the rows of a source.

    Args:
        runnable: What is asked.
        source: The rows.
        journal: Makes the journal; called on the thread that has it.
        options: Of the run.
        prices: Of models, by which the cost of rows is counted.
    """

    def __init__(
        self,
        runnable: Runnable[Any, Any],
        source: Source,
        journal: Callable[[], Journal],
        options: BulkOptions,
        prices: Mapping[str, Price] | None,
    ) -> None:
        self.state = RunState()
        self.interrupted = False
        self._runnable, self._source, self._new_journal = runnable, source, journal
        self._options, self._prices = options, prices
        self._outage = Outage(options.outage_wait)
        self._error: BaseException | None = None
        self._rows: deque[Row] = deque()
        self._exhausted = False
        self._busy: set[asyncio.Task[Any] | None] = set()
        self._batch: list[tuple[Row, RowResult]] = []
        self._ended = asyncio.Event()
        self._reading, self._committing = asyncio.Lock(), asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[Any] | None = None

    def interrupt(self) -> None:
        """Begin no more rows, and end when the open ones have answers; from any thread."""
        self.interrupted = True
        self._call_soon(self._ended.set)
        with suppress(OSError):  # not sys.stderr, which may be in the middle of a line of progress
            os.write(2, _ENDING)

    def stop(self) -> None:
        """End at once; from any thread."""
        self._call_soon(lambda: self._task and self._task.cancel())

    def _call_soon(self, call: Callable[[], Any]) -> None:
        with suppress(RuntimeError):  # the loop has come to its end
            if self._loop is not None:
                self._loop.call_soon_threadsafe(call)

    async def go(self, finish: Callable[[Journal], None]) -> None:
        """Ask all rows.

        Args:
            finish: What to do with the journal when the run ends, however it does.

        Raises:
            Exception: What ended the run early; nothing that was answered is lost.
        """
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        if self.interrupted:
            self._ended.set()
        self._disk, self._reader = DaemonThread("bulk journal"), DaemonThread("bulk input")
        try:
            self._journal = await self._disk.do(self._new_journal)
            try:
                self.state.totals = await self._disk.do(self._journal.totals)
                with bulk_priority():  # interactive calls go before ours
                    await self._ask_all()
                self.state.totals = await self._disk.do(self._journal.totals)
            finally:
                await self._disk.do(self._finished, finish)
        finally:
            self._disk.end()
            self._reader.end()
        if self._error is not None:
            raise self._error

    def _finished(self, finish: Callable[[Journal], None]) -> None:
        try:
            self._journal.save(self._batch)  # of those that were cancelled while they waited
            finish(self._journal)
        finally:
            self._journal.close()

    async def _ask_all(self) -> None:
        workers = [asyncio.ensure_future(self._work()) for _ in range(self._options.concurrency)]
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

    async def _work(self) -> None:
        """Asks one row after another."""
        try:
            while not self._ended.is_set() and (row := await self._next()) is not None:
                await self._answer(row)
        except RunEnd as end:
            self._end(end.__cause__ or end)
        except Exception as error:  # noqa: BLE001  # raised by go()
            self._end(error)

    def _end(self, error: BaseException) -> None:
        self._error = self._error or error
        self._ended.set()

    # -- rows -------------------------------------------------------------------------------------

    async def _next(self) -> Row | None:
        async with self._reading:
            while not self._rows and not self._exhausted:
                await self._read()
            return self._rows.popleft() if self._rows else None

    async def _read(self) -> None:
        rows = await self._reader.do(self._source.chunk)
        self.state.expected, self.state.exact = self._source.expected()
        if not rows:
            self._exhausted = True
            await self._check_end()
            return
        mark = partial(self._journal.mark, rows, retry_errors=self._options.retry_errors)
        await self._disk.do(mark)
        for row in rows:
            if row.to_ask and row.problem:
                await self._save(row, RowResult.unreadable(row.problem))
            elif row.to_ask:
                self._rows.append(row)

    async def _check_end(self) -> None:
        last = await self._disk.do(self._journal.last_number)
        if self.state.expected is not None and last > self.state.expected:
            raise SvcRequestError(
                f"The journal {self._journal.path} holds answers up to row {last}, and the input "
                f"ends at row {self.state.expected}: give the input that it belongs to, or "
                "another journal"
            )

    # -- one row ----------------------------------------------------------------------------------

    async def _answer(self, row: Row) -> None:
        tries, state = self._outage.begin(), self.state
        task = asyncio.current_task()
        ON_WAIT.set(partial(state.wait, row.number))
        state.asked += 1
        state.open += 1
        try:
            while True:
                self._busy.add(task)
                try:
                    pause = await self._try(row, tries)
                finally:
                    self._busy.discard(task)
                if pause is None:
                    return
                await asyncio.sleep(pause)
        finally:
            state.open -= 1
            state.waits.pop(row.number, None)

    async def _try(self, row: Row, tries: RowTries) -> float | None:
        """Asks once and saves what came; or the seconds after which to try again."""
        usage = SvcUsageCallbackHandler(self._prices)
        config = merge_configs(self._options.config, {"callbacks": [usage]})
        try:
            result = RowResult.of_answer(await self._runnable.ainvoke(row.input, config))
        except Exception as error:  # noqa: BLE001  # a row's error, or the run's
            pause = self._outage.pause(error, tries)
            if pause is not None:
                self.state.wait(row.number, pause, error)
                return pause
            result = RowResult.of_error(error)
        else:
            self._outage.answered()
        await self._save(row, result.count(usage))
        return None

    async def _save(self, row: Row, result: RowResult) -> None:
        """Returns when the result is on the disk."""
        batch = self._batch
        batch.append((row, result))
        async with self._committing:
            if batch is self._batch:  # nobody has written it meanwhile
                self._batch = []
                # Others wait for this commit too: it is made even if we are cancelled.
                await asyncio.shield(self._disk.do(self._journal.save, batch))
        self.state.totals.add(result)
        self.state.totals.failed -= row.failed_before


class DaemonThread:
    """Makes calls in the order in which they are given, for an event loop to wait on.

    SQLite's connection lives on one thread, and a pipe or an iterable may keep its reader waiting.
    It is a daemon, which an executor's thread is not: a silent pipe does not keep the program from
    ending.
    """

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        threading.Thread(target=self._work, name=name, daemon=True).start()

    async def do(self, call: Callable[..., T], *args: Any) -> T:
        """The result of a call. Cancelling does not end a call that has begun."""
        future: Future[T] = Future()
        self._calls.put((future, partial(call, *args)))
        return await asyncio.wrap_future(future)

    def end(self) -> None:
        """Let the thread end when its calls are made."""
        self._calls.put(None)

    def _work(self) -> None:
        while (item := self._calls.get()) is not None:
            future, call = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001  # raised where it is waited for
                future.set_exception(error)
