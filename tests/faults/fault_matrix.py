"""Runs cells of the fault matrix: a row, a column, and a way of calling (blocking or not).

A cell passes when the outcome is the declared one, the peer saw the declared number of requests,
nothing outlasted the bound, the error tells no key, the same object then gets a right answer, and
no connection is left open when it is closed.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from dataclasses import dataclass
from functools import partial

import fault_rows_body
import fault_rows_exchange
from fault_columns import COLUMNS, TEXT
from fault_peer import Cell, Peer, response
from fault_words import Answer
from langchain_core import exceptions as core
from peers import settled
from share import SHARES, Run, part

import langchain_svc as svc

ROWS = [*fault_rows_exchange.ROWS, *fault_rows_body.ROWS]
WAYS = ("sync", "async")
# Peers hold a connection for 20 s, so what ends earlier was ended by us.
LONGEST_CELL = 15.0
NEW_KEYS = itertools.count(1)  # a key for each cell: those of one key spare a service together


@dataclass(frozen=True)
class Places:
    """Where things are: the peer, a second one that nothing may reach, and a closed port."""

    peer: Peer
    elsewhere: Peer
    closed_port: int

    def fill(self, steps):
        """A script in which the port of the second server is set."""
        port = str(self.elsewhere.port).encode()
        return [s.replace(b"{port}", port) if isinstance(s, bytes) else s for s in steps]


class _Trial:
    """One cell: its peer, its object and what is found wrong."""

    def __init__(self, places, row, column):
        self.row, self.column = row, column
        self.expected = row.expected(column)
        scripts = [partial(self._script, places, script) for script in row.scripts]
        good = response(column.good, "200 OK", f"Content-Type: {column.label}")
        self.cell = Cell(scripts, lambda: [good])
        self.key = f"secret-key-{next(NEW_KEYS)}"
        url = row.route(places.peer.add(self.cell)).format(closed=places.closed_port)
        self.made = column.make(url, api_key=self.key, **row.settings)
        self.problems = []
        self.started = time.monotonic()

    def _script(self, places, script):
        return places.fill(script(self.column))

    def check(self, is_right, problem):
        if not is_right:
            self.problems.append(problem)

    def answered(self, text):
        self.ended()
        if not isinstance(self.expected, Answer):
            self.problems.append(f"answered {text[:60]!r} and not {self.expected.error.__name__}")
        elif not self._is_right(text):
            self.problems.append(f"answered {text[:60]!r} and not {self.column.answer!r}")

    def _is_right(self, text):
        return text == self.column.answer + (self.row.more if self.column.reads_all else "")

    def failed(self, error):
        self.ended()
        if isinstance(self.expected, Answer):
            self.problems.append(f"raised {error!r:.200} and did not answer")
            return
        want = self.expected
        if type(error) is not want.error:
            self.problems.append(f"raised {error!r:.300} and not {want.error.__name__}")
            return
        self.check(isinstance(error, core.ModelError), "the error is no ModelError")
        self.check(error.__cause__ is None, f"the error was caused by {error.__cause__!r}")
        self.check(error.__context__ is None, f"the error came during {error.__context__!r}")
        self.check(len(str(error)) < 2_000, f"the error has {len(str(error))} letters")
        self.check(self.key not in repr(error), "the error tells the key")
        self.check(error.is_retryable is want.is_retryable, f"is_retryable is {error.is_retryable}")
        self._check_details(error, want)

    def _check_details(self, error, want):
        self.check(want.says in str(error), f"the error says {str(error)!r:.200}")
        status = getattr(error, "status_code", None)
        self.check(status == want.status, f"status_code is {status!r}")
        wait = getattr(error, "retry_after", None)
        near = wait is not None and want.wait is not None and abs(wait - want.wait) <= 5
        exact = wait == want.wait
        self.check(near if want.wait == 40 else exact, f"retry_after is {wait!r}")
        if type(error) is svc.SvcStreamError:
            self.check(
                not error.partial or error.partial not in str(error), "partial is in its text"
            )
            any_start = want.partial == "*" and TEXT.startswith(error.partial)
            self.check(
                any_start or error.partial == want.partial,
                f"partial is {error.partial[:60]!r} and not {want.partial!r}",
            )

    def ended(self):
        took = time.monotonic() - self.started
        self.check(took < LONGEST_CELL, f"it took {took:.1f} s")

    def settle(self):
        """The service is well again, and the next call has time but no second try."""
        # A request that was given up may still lie unread at the peer.
        settled(lambda: len(self.cell.requests) >= self.expected.requests, True, 5)
        self.seen = len(self.cell.requests)
        self.cell.healthy = True
        settings = getattr(self.made, "service", self.made)
        settings.timeout, settings.deadline, settings.max_retries = 20.0, 30.0, 0
        settings.max_response_bytes = 10_000_000

    def next_answered(self, text):
        self.check(text == self.column.answer, f"the next call answered {text[:60]!r}")

    def finish(self):
        want = self.expected.requests
        self.check(self.seen == want, f"{self.seen} requests and not {want}")
        if self.row.limit is not None:
            self.check(self.cell.sent < self.row.limit, f"{self.cell.sent:,} bytes were sent")
        self.check(
            not settled(lambda: len(self.cell.connections), 0, 5), "a connection stayed open"
        )

    def await_peer(self):
        """Until it has done what it does; a call in that very moment is lost by nobody's fault."""
        settled(lambda: len(self.cell.busy), 0, 5)


async def _run(trial, way, pool):
    def in_thread(work, *given):
        return asyncio.get_running_loop().run_in_executor(pool, work, *given)

    def call():
        if way == "async":
            return trial.column.acall(trial.made)
        return in_thread(trial.column.call, trial.made)

    try:
        trial.answered(await call())
    except Exception as error:
        trial.failed(error)
    await in_thread(trial.settle)
    if trial.row.waits:
        await in_thread(trial.await_peer)
    if trial.expected.requests:
        try:
            trial.next_answered(await call())
        except Exception as error:
            trial.problems.append(f"the next call raised {error!r:.200}")
    await (trial.made.aclose() if way == "async" else in_thread(trial.made.close))


def cells_of(row):
    """The columns in which a row has a cell."""
    return [column for column in COLUMNS if row.expected(column) is not None]


def batches():
    """The rows that run at the same time: in a share of the suite several, of each some cells."""
    size = 1 if Run.whole else SHARES
    return [ROWS[at : at + size] for at in range(0, len(ROWS), size)]


def run_rows(places, rows, pool):
    """Runs the cells of rows at the same time; gives each problem with the cells that have it."""
    before = places.elsewhere.accepted
    trials = [
        (_Trial(places, row, column), way)
        for row in rows
        for column, way in part(itertools.product(cells_of(row), WAYS), ROWS.index(row))
    ]

    async def all_of_them():
        await asyncio.gather(*(_run(trial, way, pool) for trial, way in trials))

    asyncio.run(all_of_them())
    wrong = {}
    for trial, way in trials:
        trial.finish()
        trial.check(places.elsewhere.accepted == before, "the other host was reached")
        for problem in trial.problems:
            name = f"{trial.row.name}: {problem}"
            wrong.setdefault(name, []).append(f"{trial.column.name} {way}")
    return wrong
