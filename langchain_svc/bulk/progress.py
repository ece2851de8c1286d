"""How far a run is: a bar with rich on a terminal, plain lines elsewhere, all on stderr."""

from __future__ import annotations

import asyncio
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Protocol

from ..errors import SvcError
from .engine import Standing

_BAR_EVERY, _LINES_EVERY, _LOG_EVERY = 0.2, 10.0, 60.0  # seconds: rich, a terminal, a file
_WINDOW = 60.0  # seconds over which the rate is taken

Eta = Callable[..., float]


class Pace:
    """How fast rows are finished, over the last minute."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def rate(self, finished: int, now: float) -> float:
        """Rows a second."""
        self._seen.append((now, finished))
        while len(self._seen) > 2 and now - self._seen[0][0] > _WINDOW:  # noqa: PLR2004
            self._seen.popleft()
        then, before = self._seen[0]
        return (finished - before) / (now - then) if now > then else 0.0


class ByPlan:
    """The time that the plan takes for the rows that are left, asked for every ten seconds."""

    def __init__(self, standing: Standing, eta: Eta | None) -> None:
        self.seconds = 0.0
        self._standing, self._eta = standing, eta
        self._due = 0.0

    async def look(self) -> None:
        """Ask, if it is time to."""
        left, now = self._standing.left, time.monotonic()
        if self._eta is None or not left or now < self._due:
            return
        self._due = now + _LINES_EVERY
        tokens = self._standing.totals.total_tokens // max(1, self._standing.finished) * left
        with suppress(SvcError):  # Redis may be away, and its answer takes time
            self.seconds = await asyncio.to_thread(self._eta, requests=left, tokens=tokens)


def told(standing: Standing, rate: float, by_plan: float = 0.0) -> str:
    """One line on where a run stands."""
    totals, left = standing.totals, standing.left
    about = "" if standing.exact else "about "
    of = "" if standing.expected is None else f" of {about}{standing.expected:,}"
    parts = [f"{standing.finished:,}{of} rows"]
    if rate:
        parts.append(f"{rate:,.1f} a second")
    if totals.failed:
        parts.append(f"{totals.failed:,} with an error")
    if left:
        seconds = max(left / rate if rate else 0.0, by_plan)
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
    return f"{amount:,.2f}" if amount >= 0.1 else f"{amount:.2g}"  # noqa: PLR2004


class _Screen(Protocol):
    every: float

    def show(self, line: str, standing: Standing) -> None: ...

    def close(self) -> None: ...


class _Lines:
    def __init__(self) -> None:
        self.every = _LINES_EVERY if sys.stderr.isatty() else _LOG_EVERY

    def show(self, line: str, standing: Standing) -> None:
        del standing
        sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def close(self) -> None:
        pass


class _Bar:
    every = _BAR_EVERY

    def __init__(self) -> None:
        from rich.console import Console  # noqa: PLC0415  # an extra
        from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415

        self._progress = Progress(
            BarColumn(bar_width=20), TextColumn("{task.description}"), console=Console(stderr=True)
        )
        self._task = self._progress.add_task("", total=None)
        self._progress.start()

    def show(self, line: str, standing: Standing) -> None:
        self._progress.update(
            self._task, description=line, total=standing.expected, completed=standing.finished
        )

    def close(self) -> None:
        self._progress.stop()


@asynccontextmanager
async def shown(
    standing: Standing, *, wanted: bool | None, eta: Eta | None = None
) -> AsyncIterator[None]:
    """A block during which progress is shown.

    Args:
        standing: Where the run stands.
        wanted: None shows it where stderr is a terminal.
        eta: Seconds that the plan takes for so many requests and tokens.
    """
    if wanted is False or (wanted is None and not sys.stderr.isatty()):
        yield
        return
    screen, pace, plan = _screen(), Pace(), ByPlan(standing, eta)

    def show() -> None:
        rate = pace.rate(standing.finished, time.monotonic())
        screen.show(told(standing, rate, plan.seconds), standing)

    async def tick() -> None:
        while True:
            await asyncio.sleep(screen.every)
            await plan.look()
            show()

    task = asyncio.ensure_future(tick())
    try:
        yield
    finally:
        task.cancel()
        show()
        screen.close()


def _screen() -> _Screen:
    if sys.stderr.isatty():
        with suppress(ImportError):
            return _Bar()
    return _Lines()
