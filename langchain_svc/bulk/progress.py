"""How far a run is, on stderr: rich's bar on a terminal, else a line a minute."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from importlib.util import find_spec
from typing import TypeAlias

from .journal import Totals

_MOMENT = 1.5  # seconds; a shorter wait is not worth a word
_LIVE_EVERY, _LOG_EVERY = 0.5, 60.0  # seconds
_SETTLED = 5.0  # seconds after which a rate tells how long the rest takes

Show: TypeAlias = Callable[[str], None]


@dataclass
class RunState:
    """Where a run stands.

    `expected` rows are in the input, if anything tells, and `exact` says whether that is counted.
    Rows are `open` while they are asked; `waits` has until when some of them wait, and whether for
    a limit. `begun` is of `time.monotonic`. `shown` says whether anybody is told.
    """

    expected: int | None = None
    exact: bool = False
    totals: Totals = field(default_factory=Totals)
    asked: int = 0
    begun: float = field(default_factory=time.monotonic)
    open: int = 0
    waits: dict[int, tuple[float, bool]] = field(default_factory=dict)
    shown: bool = False

    @property
    def finished(self) -> int:
        return self.totals.done + self.totals.failed

    @property
    def left(self) -> int | None:
        return None if self.expected is None else max(0, self.expected - self.finished)

    def wait(self, row: int, seconds: float, limit: bool) -> bool:  # noqa: FBT001  # of a callback
        """A row waits, perhaps for a limit; from any thread. Whether the progress says so."""
        self.waits[row] = time.monotonic() + seconds, limit
        return self.shown

    def waiting(self, now: float) -> tuple[float, bool]:
        """Seconds until the first open row goes on, 0 if one is at work; and if a limit holds."""
        waits = list(self.waits.values())  # other threads may add some meanwhile
        if not waits or len(waits) < self.open:
            return 0.0, False
        until, limit = min(waits)
        return (until - now, limit) if until - now > _MOMENT else (0.0, False)


def told(state: RunState) -> str:
    """One line on where a run stands."""
    now = time.monotonic()
    totals, left, (wait, limit) = state.totals, state.left, state.waiting(now)
    # What a limit lets through comes in bursts: so the wait that has begun counts as over.
    gone = now - state.begun + wait
    rate = (state.asked - state.open) / gone if gone >= _SETTLED else 0.0
    about = "" if state.exact else "about "
    of = "" if state.expected is None else f" of {about}{state.expected:,}"
    parts = [f"{state.finished:,}{of} rows"]
    if wait:
        reason = "the service's limit" if limit else "the service to come back"
        parts.append(f"waiting {wait:,.0f} s for {reason}")
    elif rate:
        parts.append(f"{rate:,.1f} a second")
    if totals.failed:
        parts.append(f"{totals.failed:,} with an error")
    if left and rate:
        parts.append(f"{duration(left / rate)} left")
    if totals.total_tokens:
        parts.append(f"{totals.total_tokens:,} tokens")
    if totals.cost is not None:
        parts.append(f"cost {money(totals.cost)}")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Seconds as h:mm:ss."""
    return str(timedelta(seconds=round(seconds)))


def money(amount: float) -> str:
    """An amount with at least two digits that are not zero."""
    return f"{amount:,.2f}" if amount >= 0.1 else f"{amount:.2g}"


@asynccontextmanager
async def shown(state: RunState, *, wanted: bool | None) -> AsyncIterator[None]:
    """A block during which progress is shown; None shows it where somebody looks."""
    terminal = sys.stderr.isatty()
    live = terminal and find_spec("rich") is not None
    if wanted is False or (wanted is None and not terminal and "ipykernel" not in sys.modules):
        yield
        return

    async def tick() -> None:
        while True:
            await asyncio.sleep(_LIVE_EVERY if live else _LOG_EVERY)
            show(told(state))

    state.shown = True
    with _bar(state) if live else nullcontext(_log) as show:
        task = asyncio.ensure_future(tick())
        try:
            yield
        finally:
            task.cancel()
            show(told(state))


@contextmanager
def _bar(state: RunState) -> Iterator[Show]:
    from rich import console, progress  # noqa: PLC0415  # an extra

    columns = progress.BarColumn(bar_width=20), progress.TextColumn("{task.description}")
    with progress.Progress(*columns, console=console.Console(stderr=True)) as bar:
        task = bar.add_task("", total=None)
        yield lambda line: bar.update(
            task, description=line, total=state.expected, completed=state.finished
        )


def _log(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
