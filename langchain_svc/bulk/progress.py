"""How far a run is: a bar on a terminal, a line in a notebook, else a line a minute, on stderr."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TypeAlias

from ..errors import SvcError
from .engine import RunState

_LIVE_EVERY, _LOG_EVERY = 0.5, 60.0  # seconds
_WINDOW = 60.0  # seconds over which the rate is taken
_SETTLED = 5.0  # seconds after which a rate tells how long the rest takes
_PLAN_EVERY = 10.0  # seconds

Eta: TypeAlias = Callable[..., float]
Show: TypeAlias = Callable[[str], None]


class Pace:
    """How fast rows are finished: over the last minute, but since the beginning once a limit held.

    What a limit lets through comes in bursts, with a long wait after each. So a wait that has begun
    counts as over: else each burst would promise an early end.
    """

    def __init__(self, state: RunState) -> None:
        self._state, self._limited = state, False
        self._first = state.begun, state.finished
        self._seen = deque([self._first])

    def rate(self, now: float) -> float:
        """Rows a second; 0 while nothing can be said."""
        finished, (wait, limit) = self._state.finished, self._state.waiting(now)
        self._limited = self._limited or limit
        self._seen.append((now, finished))
        while now - self._seen[0][0] > _WINDOW:
            self._seen.popleft()
        then, before = self._first if self._limited else self._seen[0]
        gone = now - then + wait
        return (finished - before) / gone if gone >= _SETTLED else 0.0


def told(state: RunState, now: float, rate: float, by_plan: float = 0.0) -> str:
    """One line on where a run stands.

    Args:
        state: Of the run.
        now: Of `time.monotonic`.
        rate: Rows a second.
        by_plan: Seconds that the plan takes for the rows that are left.
    """
    totals, left, (wait, limit) = state.totals, state.left, state.waiting(now)
    about = "" if state.exact else "about "
    of = "" if state.expected is None else f" of {about}{state.expected:,}"
    parts = [f"{state.finished:,}{of} rows"]
    if wait:
        reason = "the service's limit" if limit else "the service to come back"
        parts.append(f"waiting {duration(wait)} for {reason}")
    elif rate:
        parts.append(f"{rate:,.1f} a second")
    if totals.failed:
        parts.append(f"{totals.failed:,} with an error")
    seconds = max(left / rate if rate else 0.0, by_plan) if left else 0.0
    if seconds:
        parts.append(f"{duration(seconds)} left")
    if totals.total_tokens:
        parts.append(f"{totals.total_tokens:,} tokens")
    if totals.cost is not None:
        parts.append(f"cost {money(totals.cost)}")
    return ", ".join(parts)


def duration(seconds: float) -> str:
    """Seconds as people say them."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes:02} min"
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"


def money(amount: float) -> str:
    """An amount with at least two digits that are not zero."""
    return f"{amount:,.2f}" if amount >= 0.1 else f"{amount:.2g}"


@asynccontextmanager
async def shown(
    state: RunState, *, wanted: bool | None, eta: Eta | None = None
) -> AsyncIterator[None]:
    """A block during which progress is shown.

    Args:
        state: Of the run.
        wanted: None shows it where somebody looks: on a terminal and in a notebook.
        eta: Seconds that the plan takes for so many requests and tokens.
    """
    live = sys.stderr.isatty() or "ipykernel" in sys.modules
    if wanted is False or (wanted is None and not live):
        yield
        return
    pace, by_plan = Pace(state), 0.0

    async def tick() -> None:
        nonlocal by_plan
        plan_due = 0.0
        while True:
            await asyncio.sleep(_LIVE_EVERY if live else _LOG_EVERY)
            now = time.monotonic()
            if eta is not None and state.left and now >= plan_due:
                plan_due = now + _PLAN_EVERY
                tokens = state.totals.total_tokens // max(1, state.finished) * state.left
                with suppress(SvcError):  # Redis may be away, and its answer takes time
                    by_plan = await asyncio.to_thread(eta, requests=state.left, tokens=tokens)
            show(told(state, now, pace.rate(now), by_plan))

    with _bar(state) if sys.stderr.isatty() else _line(live=live) as show:
        task = asyncio.ensure_future(tick())
        try:
            yield
        finally:
            task.cancel()
            now = time.monotonic()
            show(told(state, now, pace.rate(now)))


@contextmanager
def _bar(state: RunState) -> Iterator[Show]:
    try:
        from rich import console, progress  # noqa: PLC0415  # an extra
    except ImportError:
        with _line(live=True) as show:
            yield show
        return
    columns = progress.BarColumn(bar_width=20), progress.TextColumn("{task.description}")
    with progress.Progress(*columns, console=console.Console(stderr=True)) as bar:
        task = bar.add_task("", total=None)
        yield lambda line: bar.update(
            task, description=line, total=state.expected, completed=state.finished
        )


@contextmanager
def _line(*, live: bool) -> Iterator[Show]:
    """One line that is written again and again where somebody looks, else one after another."""
    width = 0

    def show(line: str) -> None:
        nonlocal width
        sys.stderr.write(f"\r{line:{width}}" if live else line + "\n")
        sys.stderr.flush()
        width = len(line)

    try:
        yield show
    finally:
        if live:
            sys.stderr.write("\n")
