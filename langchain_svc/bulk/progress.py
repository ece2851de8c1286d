"""How far a run is: a bar in a notebook or, by rich, on a terminal; else lines on stderr."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass, field
from datetime import timedelta
from html import escape
from importlib.util import find_spec
from typing import TypeAlias

from .._base.shown import money
from .journal import Runs, Totals

# -- notebook --------------------------------------------------------------------------------------
# A bar below the cell of a notebook, redrawn in its place.


def is_notebook() -> bool:
    """Whether the program is the kernel of a notebook."""
    if "ipykernel" not in sys.modules or "IPython" not in sys.modules:
        return False
    from IPython import get_ipython  # noqa: PLC0415  # it is here in a kernel

    return hasattr(get_ipython(), "kernel")


@dataclass(frozen=True)
class _Bar:
    line: str
    completed: int
    total: int | None

    def __repr__(self) -> str:
        return self.line

    def _repr_html_(self) -> str:
        bounds = ""  # a bar without a value tells that something goes on
        if self.total is not None:
            bounds = f' value="{self.completed}" max="{self.total}"'
        return f"<progress{bounds}></progress> {escape(self.line)}"


@contextmanager
def notebook_bar() -> Iterator[Callable[[str, int, int | None], None]]:
    """A block that shows a line, and how many rows of how many it tells of."""
    from IPython.display import display  # noqa: PLC0415  # it is here in a kernel

    handle = display(_Bar("", 0, None), display_id=True)
    yield lambda line, completed, total: handle.update(_Bar(line, completed, total))


# -- progress --------------------------------------------------------------------------------------

_MOMENT = 1.5  # seconds; a shorter wait is not shown
_LIVE_EVERY = 0.5  # seconds
_LOG_EVERY = 60.0  # seconds
_SETTLED = 5.0  # seconds after which a rate tells how long the rest takes

Show: TypeAlias = Callable[[str], None]


@dataclass
class RunState:
    """Where a run stands.

    Attributes:
        expected: The number of rows in the input; None while it is unknown.
        read: Rows that were read.
        before: The runs that the journal had seen.
        totals: Of the journal.
        rows_asked: Rows that this run has asked.
        started: By `time.monotonic`.
        took: How many seconds the run took; None until its end is noted.
        open: Rows that are being asked.
        waits: Of open rows that wait: until when, and whether for a limit.
        shown: Whether somebody sees the progress, or wants none: then no wait is logged.
    """

    expected: int | None = None
    read: int = 0
    before: Runs = field(default_factory=Runs)
    totals: Totals = field(default_factory=Totals)
    rows_asked: int = 0
    started: float = field(default_factory=time.monotonic)
    took: float | None = None
    open: int = 0
    waits: dict[int, tuple[float, bool]] = field(default_factory=dict)
    shown: bool = False

    @property
    def finished(self) -> int:
        return self.totals.done + self.totals.failed

    @property
    def remaining(self) -> int | None:
        if self.expected is None:
            return None
        return max(0, self.expected - self.finished)

    @property
    def unanswered(self) -> int:
        """Rows that were read, or counted, and have neither an answer nor an error."""
        rows = max(self.read, self.expected or 0)
        return max(0, rows - self.finished)

    def seconds(self, now: float) -> float:
        """How long the run takes so far, or took."""
        return now - self.started if self.took is None else self.took

    def seconds_of_job(self, now: float) -> float:
        """How long this run and those before it took together."""
        return self.before.seconds + self.seconds(now)

    @property
    def runs(self) -> int:
        """How many runs there were, with this one."""
        return self.before.number + 1

    def rate(self, now: float) -> float:
        """Rows a second; 0 before that says anything."""
        wait, _ = self.waiting(now)
        # A limit lets rows through in bursts: so the wait that has begun counts as over.
        elapsed = now - self.started + wait
        if elapsed < _SETTLED:
            return 0.0
        return (self.rows_asked - self.open) / elapsed

    def wait(self, row: int, seconds: float, limit: bool) -> bool:  # noqa: FBT001  # of a callback
        """A row waits, perhaps for a limit; from any thread. Returns whether the wait is shown."""
        self.waits[row] = time.monotonic() + seconds, limit
        return self.shown

    def waiting(self, now: float) -> tuple[float, bool]:
        """How long all open rows wait, and whether for a limit; 0 seconds while one is at work."""
        waits = list(self.waits.values())  # other threads may add some meanwhile
        if not waits or len(waits) < self.open:
            return 0.0, False
        until, limit = min(waits)
        seconds = until - now
        if seconds <= _MOMENT:
            return 0.0, False
        return seconds, limit


def progress_line(state: RunState) -> str:
    """One line on where a run stands."""
    now = time.monotonic()
    totals = state.totals
    wait, limit = state.waiting(now)
    rate = state.rate(now)
    of = "" if state.expected is None else f" of {state.expected:,}"
    parts = [f"{state.finished:,}{of} rows"]
    if wait:
        parts.append(f"waiting {wait_in_words(wait, limit)}")
    elif rate:
        parts.append(f"{rate:,.1f} a second")
    parts += failures(totals)
    if state.remaining and rate:
        parts.append(f"{duration(state.remaining / rate)} left")
    if totals.total_tokens:
        parts.append(f"{totals.total_tokens:,} tokens")
    if totals.cost is not None:
        parts.append(f"cost {money(totals.cost, totals.currency)}")
    return ", ".join(parts)


def wait_in_words(seconds: float, limit: bool) -> str:  # noqa: FBT001  # what a wait is for
    """How long a run waits, and for what."""
    reason = "the service's limit" if limit else "the service to come back"
    return f"{seconds:,.0f} s for {reason}"


def failures(totals: Totals) -> list[str]:
    """How many rows were cut, and how many have another error, where there are any."""
    counts = {"cut off": totals.cut, "with an error": totals.failed - totals.cut}
    return [f"{count:,} {kind}" for kind, count in counts.items() if count]


def duration(seconds: float) -> str:
    """Seconds as h:mm:ss."""
    return str(timedelta(seconds=round(seconds)))


def is_watched(option: bool | None) -> bool:  # noqa: FBT001  # an option as it is
    """Whether progress is shown; None shows it on a terminal and in a notebook."""
    if option is None:
        return is_terminal() or "ipykernel" in sys.modules
    return option


def is_terminal() -> bool:
    """Whether somebody may look at stderr."""
    return sys.stderr is not None and sys.stderr.isatty()


@asynccontextmanager
async def show_progress(state: RunState, *, option: bool | None) -> AsyncIterator[None]:
    """A block during which progress is shown."""
    if not is_watched(option):
        state.shown = option is False
        yield
        return

    async def tick() -> None:
        await asyncio.sleep(_LIVE_EVERY)
        while True:
            show(progress_line(state))
            await asyncio.sleep(every)

    state.shown = True
    shown, every = _shown(state)
    with shown as show:
        task = asyncio.ensure_future(tick())
        try:
            yield
        finally:
            task.cancel()
            show(progress_line(state))


def _shown(state: RunState) -> tuple[AbstractContextManager[Show], float]:
    """Where lines are shown, and how often."""
    if is_notebook():
        return _cell(state), _LIVE_EVERY
    if is_terminal() and find_spec("rich") is not None:
        return _bar(state), _LIVE_EVERY
    return nullcontext(log), _LOG_EVERY


@contextmanager
def _cell(state: RunState) -> Iterator[Show]:
    with notebook_bar() as bar:
        yield lambda line: bar(line, state.finished, state.expected)


@contextmanager
def _bar(state: RunState) -> Iterator[Show]:
    from rich import console, progress  # noqa: PLC0415  # an extra

    columns = (
        progress.BarColumn(bar_width=20),
        progress.TextColumn("{task.description}"),
    )
    bar = progress.Progress(*columns, console=console.Console(stderr=True))
    task = bar.add_task("", total=None)

    def show(line: str) -> None:
        with _on_a_terminal():
            bar.update(
                task, description=line, total=state.expected, completed=state.finished
            )

    with _on_a_terminal():
        bar.start()
    try:
        yield show
    finally:
        with _on_a_terminal():
            bar.stop()


def _on_a_terminal() -> AbstractContextManager[None]:
    """A block that writes to a terminal, which may have been closed: the run goes on."""
    return suppress(OSError)


def log(line: str) -> None:
    """Write a line to stderr at once, where there is one."""
    if sys.stderr is None:
        return
    with _on_a_terminal():
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
