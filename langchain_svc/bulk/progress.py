"""Where a run stands: shown to whoever watches it, and written for whoever looks from outside.

A bar in a notebook or, by rich, on a terminal; else lines on stderr.

A run holds its journal alone, so nobody else can read that meanwhile. So it writes what it knows
into a small file beside the journal, every two seconds. When the run has ended the file is gone,
and the journal tells the rest; after `kill -9` it is old, and not believed.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractContextManager,
    asynccontextmanager,
    closing,
    contextmanager,
    nullcontext,
    suppress,
)
from dataclasses import dataclass, field
from datetime import timedelta
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from pydantic import TypeAdapter, ValidationError

from .._base.shown import money
from ..errors import SvcRequestError
from .journal import Journal, Runs, Totals, in_words, temporary
from .options import Place

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

    def status(self) -> Status:
        """The same for whoever looks from outside."""
        now = time.monotonic()
        wait, for_limit = self.waiting(now)
        return Status(
            **vars(self.totals),
            expected=self.expected,
            seconds=self.seconds_of_job(now),
            runs=self.runs,
            rate=self.rate(now),
            wait=wait,
            for_limit=for_limit,
            process=os.getpid(),
            machine=platform.node(),
            written=time.time(),
        )


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


# -- shown to whoever watches ----------------------------------------------------------------------


def is_watched(option: bool | None) -> bool:  # noqa: FBT001  # an option as it is
    """Whether progress is shown; None shows it on a terminal and in a notebook."""
    if option is None:
        return is_terminal() or is_notebook()
    return option


def is_terminal() -> bool:
    """Whether somebody may look at stderr."""
    return sys.stderr is not None and sys.stderr.isatty()


def is_notebook() -> bool:
    """Whether the program is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")  # a kernel has imported it
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


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
def _cell(state: RunState) -> Iterator[Show]:
    """A block that shows a bar below the cell of a notebook, redrawn in its place."""
    from IPython.display import display  # noqa: PLC0415  # it is here in a kernel

    handle = display(_Bar("", 0, None), display_id=True)
    yield lambda line: handle.update(_Bar(line, state.finished, state.expected))


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


# -- written for whoever looks from outside --------------------------------------------------------

EVERY = 2.0  # seconds
_BELIEVED = 15.0  # seconds


@dataclass(frozen=True, kw_only=True)
class Status(Totals):
    """A job's numbers at one moment.

    Attributes:
        expected: Rows of the input; None while that is unknown.
        seconds: How long all runs took together.
        runs: How many runs that were.
        rate: Rows a second, of the run that goes on; 0 where none does.
        wait: Seconds that all its open rows wait.
        for_limit: Whether they wait for a limit, and not for the service to come back.
        process: The number of the process that runs it; 0 where none does.
        machine: The name of that one's machine.
        written: When, as a Unix timestamp.
    """

    expected: int | None
    seconds: float
    runs: int
    rate: float = 0.0
    wait: float = 0.0
    for_limit: bool = False
    process: int = 0
    machine: str = ""
    written: float = 0.0

    @property
    def finished(self) -> int:
        """Rows with an answer or an error."""
        return self.done + self.failed

    def goes_on(self) -> bool:
        """Whether the run that wrote this shows a sign of life."""
        if abs(time.time() - self.written) > _BELIEVED:
            return False
        if self.machine != platform.node() or os.name != "posix":
            return True
        try:
            os.kill(self.process, 0)  # asks, and sends nothing
        except ProcessLookupError:
            return False
        except OSError:  # it is another user's
            return True
        return True


_FORM = TypeAdapter(Status)


def _place(journal: Path) -> Path:
    return journal.with_name(journal.name + ".status")


def write_status(journal: Path, status: Status) -> None:
    """Write where the run stands; a disk that is full does not end it."""
    with suppress(SvcRequestError), temporary(_place(journal), "") as draft:
        draft.write_bytes(_FORM.dump_json(status))
        draft.replace(_place(journal))


def remove_status(journal: Path) -> None:
    """The run has ended: its journal can be read."""
    with suppress(OSError):
        _place(journal).unlink()


def read_status(place: Place) -> Status:
    """Where the job of a journal stands, whether a run goes on or not.

    Raises:
        SvcRequestError: There is no such journal, or it is damaged.
    """
    journal = Path(place)
    written: Status | None = None
    with suppress(OSError, ValidationError):
        written = _FORM.validate_json(_place(journal).read_bytes())
    if written is not None and written.goes_on():
        return written
    try:
        with in_words(journal), closing(Journal(journal, None)) as opened:
            totals = opened.totals()
            runs = opened.runs()
    except SvcRequestError:
        if written is None:
            raise
        return written  # a run that shows no sign of life holds the journal
    return Status(
        **vars(totals), expected=runs.expected, seconds=runs.seconds, runs=runs.number
    )
