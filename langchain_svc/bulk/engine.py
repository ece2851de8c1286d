"""The run: so many rows at a time are asked, and each answer is in the journal before the next row.

A row takes its place among the `concurrency` ones until its answer is on the disk, so that a killed
run has lost no more than those. Whoever has an answer while the disk is busy waits for the next
commit, which takes all of them: slow disks make large commits, and no timer is needed.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import merge_configs

from .._usage import Price
from ..callbacks import SvcUsageCallbackHandler
from ..errors import SvcRequestError
from ..quota import bulk_priority
from .answers import answered, failed, unreadable
from .journal import Answer, Journal, Totals, same_id
from .outage import Outage, RunEnd
from .rows import Row, Source
from .worker import Worker

GRACE = 10.0  # seconds for what is being asked when the run is to end


@dataclass
class Standing:
    """Where a run stands.

    Attributes:
        expected: How many rows there are in all, None where nothing tells.
        exact: Whether that is known, and not an estimate.
        totals: What the journal holds.
        asked: Rows that this run has asked.
        begun: When it began, of `time.monotonic`.
    """

    expected: int | None = None
    exact: bool = False
    totals: Totals = field(default_factory=Totals)
    asked: int = 0
    begun: float = field(default_factory=time.monotonic)

    @property
    def finished(self) -> int:
        """Rows that have an answer or an error."""
        return self.totals.done + self.totals.failed

    @property
    def left(self) -> int | None:
        """About how many rows there are still to ask."""
        return None if self.expected is None else max(0, self.expected - self.finished)


class Run:
    """One run over the rows of a source.

    Args:
        runnable: What is asked.
        source: The rows.
        journal: Makes the journal; called on the thread that has it.
        concurrency: How many rows are asked at the same time.
        retry_errors: Whether rows that an earlier run had an error for are asked again.
        outage_wait: Seconds without an answer after which the run ends.
        prices: Of models, by which the cost of rows is counted.
        config: Goes to every call.
    """

    def __init__(
        self,
        runnable: Runnable[Any, Any],
        source: Source,
        journal: Callable[[], Journal],
        *,
        concurrency: int,
        retry_errors: bool,
        outage_wait: float,
        prices: Mapping[str, Price] | None,
        config: RunnableConfig | None,
    ) -> None:
        self.standing = Standing()
        self.interrupted = False
        self._runnable, self._source, self._new_journal = runnable, source, journal
        self._concurrency, self._retry_errors = concurrency, retry_errors
        self._config, self._prices = config, prices
        self._outage = Outage(outage_wait)
        self._error: Exception | None = None
        self._rows: deque[Row] = deque()
        self._unsaved: dict[str, int] = {}  # ids of rows that were read, and their numbers
        self._exhausted = False
        self._busy: set[asyncio.Task[Any] | None] = set()
        self._batch: list[tuple[Row, Answer]] = []
        self._loop: asyncio.AbstractEventLoop | None = None

    def interrupt(self) -> None:
        """Begin no more rows, and end when those that are asked have answers; from any thread."""
        self.interrupted = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._ended.set)

    async def go(self, finish: Callable[[Journal], None]) -> None:
        """Ask all rows.

        Args:
            finish: What to do with the journal when the run ends, however it does.

        Raises:
            Exception: What ended the run early; nothing that was answered is lost.
        """
        self._loop = asyncio.get_running_loop()
        self._ended = asyncio.Event()
        self._reading, self._committing = asyncio.Lock(), asyncio.Lock()
        if self.interrupted:
            self._ended.set()
        self._disk, self._reader = Worker("bulk journal"), Worker("bulk input")
        try:
            self._journal = await self._disk.do(self._new_journal)
            try:
                self.standing.totals = await self._disk.do(self._journal.totals)
                with bulk_priority():  # interactive calls go before ours
                    await self._ask_all()
                self.standing.totals = await self._disk.do(self._journal.totals)
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
        workers = [asyncio.ensure_future(self._work()) for _ in range(self._concurrency)]
        done = asyncio.ensure_future(asyncio.wait(workers))
        ended = asyncio.ensure_future(self._ended.wait())
        grace = 0.0
        try:
            await asyncio.wait({done, ended}, return_when=asyncio.FIRST_COMPLETED)
            grace = GRACE
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
            self._end(cast("Exception", end.__cause__))
        except Exception as error:  # noqa: BLE001  # raised by go()
            self._end(error)

    def _end(self, error: Exception) -> None:
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
        self.standing.expected, self.standing.exact = self._source.expected()
        if not rows:
            self._exhausted = True
            await self._check_end()
            return
        # Before the journal is asked: an id leaves this dict when it is in the journal.
        for row in rows:
            if not row.problem:
                owner = self._unsaved.setdefault(row.key, row.number)
                row.problem = "" if owner == row.number else same_id(owner)
        await self._disk.do(self._mark, rows)
        for row in rows:
            if not row.to_ask and self._unsaved.get(row.key) == row.number:
                del self._unsaved[row.key]
        for row in rows:
            if not row.to_ask:
                continue
            if row.problem:
                await self._save(row, unreadable(row.problem))
            else:
                self._rows.append(row)

    def _mark(self, rows: list[Row]) -> None:
        self._journal.mark(rows, retry_errors=self._retry_errors)

    async def _check_end(self) -> None:
        last = await self._disk.do(self._journal.last_number)
        if self.standing.expected is not None and last > self.standing.expected:
            raise SvcRequestError(
                f"The journal {self._journal.path} holds answers up to row {last}, and the input "
                f"ends at row {self.standing.expected}: give the input that it belongs to, or "
                "another journal"
            )

    # -- one row ----------------------------------------------------------------------------------

    async def _answer(self, row: Row) -> None:
        tries = self._outage.begin()
        self.standing.asked += 1
        while True:
            task = asyncio.current_task()
            self._busy.add(task)
            try:
                pause = await self._try(row, tries)
            finally:
                self._busy.discard(task)
            if pause is None:
                return
            await asyncio.sleep(pause)

    async def _try(self, row: Row, tries: Any) -> float | None:
        """Asks once and saves what came; or the seconds after which to try again."""
        usage = SvcUsageCallbackHandler(self._prices)
        config = merge_configs(self._config, {"callbacks": [usage]})
        try:
            answer = answered(await self._runnable.ainvoke(row.input, config), usage)
        except Exception as error:  # noqa: BLE001  # a row's error, or the run's
            pause = self._outage.pause(error, tries)
            if pause is not None:
                return pause
            answer = failed(error, usage)
        else:
            self._outage.answered()
        await self._save(row, answer)
        return None

    async def _save(self, row: Row, answer: Answer) -> None:
        """Returns when the answer is on the disk."""
        batch = self._batch
        batch.append((row, answer))
        async with self._committing:
            if batch is self._batch:  # nobody has written it meanwhile
                self._batch = []
                # Others wait for this commit too: it is made even if we are cancelled.
                await asyncio.shield(self._disk.do(self._journal.save, batch))
        if self._unsaved.get(row.key) == row.number:
            del self._unsaved[row.key]
        self.standing.totals.add(answer)
        self.standing.totals.failed -= row.failed_before
