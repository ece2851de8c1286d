"""What a failed row means for the run: an error of the row, another try, or the run's end.

- An error that would meet every row (a wrong key, no such model, no budget left) ends the run.
- So do twenty rows that fail alike before any other was answered.
- A failure that may pass is tried again: after `retry_after` where the service says so, else after
  a pause that doubles to a minute. A plan's limit never makes a row an error.
- It is the row's error when it has failed three times and others were answered meanwhile.
- When nothing was answered for `outage_wait` seconds the run ends. Its rows stay unanswered, not
  failed, so that the next run asks them.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

from langchain_core.exceptions import (
    ModelAuthenticationError,
    ModelError,
    ModelNotFoundError,
    ModelPermissionDeniedError,
    ModelRateLimitError,
)
from langchain_core.tools import ToolException

from ..errors import SvcBudgetError

_MEETS_ALL = (
    ModelAuthenticationError,
    ModelPermissionDeniedError,
    ModelNotFoundError,
    SvcBudgetError,
)
_ALIKE = 20
_TRIES = 3
_FIRST_PAUSE = 2.0  # seconds
_LONGEST_PAUSE = 60.0  # seconds


@dataclass
class RowTries:
    """The tries of one row so far."""

    answers_before: int
    failures: int = 0


class Outage:
    """Judges failures by whether other rows were answered."""

    def __init__(self, outage_wait: float) -> None:
        self._outage_wait = outage_wait
        self._answers = 0
        self._alike = 0
        self._failing_since: float | None = None
        self._first: tuple[type[Exception], str] | None = None

    def start_row(self) -> RowTries:
        return RowTries(self._answers)

    def record_answer(self) -> None:
        self._answers += 1
        self._failing_since = None

    def pause(self, error: Exception, tries: RowTries) -> float | None:
        """Seconds until a failed row is tried again; None where it is an error.

        Raises:
            Exception: The failure itself, where the run is to end.
        """
        error = _cause(error)
        if isinstance(error, _MEETS_ALL):
            raise error
        is_limit = isinstance(error, ModelRateLimitError)
        if not is_limit and not _may_pass(error):
            self._count_alike(error)
            return None
        tries.failures += 1
        others_answered = self._answers > tries.answers_before
        if not is_limit and others_answered and tries.failures >= _TRIES:
            return None
        now = time.monotonic()
        self._failing_since = self._failing_since or now
        retry_after = getattr(error, "retry_after", None)
        if now + (retry_after or 0.0) - self._failing_since > self._outage_wait:
            raise error
        jitter = random.random()  # noqa: S311  # no secret
        if retry_after is not None:
            return float(retry_after) * (1 + jitter / 10)
        doublings = min(tries.failures - 1, 9)
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0**doublings)
        # Half of it at least, so that a service that is down is not asked on and on.
        return pause * (0.5 + jitter / 2)

    def _count_alike(self, error: Exception) -> None:
        """A failure for good, which ends the run if all rows have it.

        Raises:
            Exception: The failure itself.
        """
        self._failing_since = None  # the service is there
        kind = (type(error), str(error))
        self._first = self._first or kind
        if kind == self._first:
            self._alike += 1
        if self._alike >= _ALIKE and not self._answers:
            raise error


def _may_pass(error: Exception) -> bool:
    return isinstance(error, ModelError) and error.is_retryable


def _cause(error: Exception) -> Exception:
    """The service's failure, where a tool raises an error of its own for it."""
    if isinstance(error, ToolException) and isinstance(error.__cause__, ModelError):
        return error.__cause__
    return error
