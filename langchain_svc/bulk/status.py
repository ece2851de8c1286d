"""Where a job stands, for whoever looks from outside.

A run holds its journal alone, so nobody else can read that meanwhile. So it writes what it knows
into a small file beside the journal, every two seconds. When the run has ended the file is gone,
and the journal tells the rest; after `kill -9` it is old, and not believed.
"""

from __future__ import annotations

import os
import platform
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from ..errors import SvcRequestError
from .journal import Journal, Totals, in_words, temporary
from .options import Place

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
