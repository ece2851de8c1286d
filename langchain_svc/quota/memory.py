"""An account in this process's memory."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

from .._forks import new_lock
from .ledger import Ledger, Outcome, Ticket, Wait
from .plans import Limit


class MemoryAccount:
    """A ledger that any thread and any event loop may use. Its lock is held for microseconds."""

    def __init__(
        self,
        limits: tuple[Limit, ...],
        *,
        learns: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.local = True
        self.counts_tokens = any(limit.unit == "tokens" for limit in limits)
        self._limits = limits
        self._ledger = Ledger(limits, learns=learns)
        self._lock = new_lock()
        self._clock = clock

    def ask(self, ticket: Ticket) -> Wait | None:
        """None where the call may be sent now; else it stands in the queue."""
        with self._lock:
            return self._ledger.ask(ticket, self._clock())

    async def aask(self, ticket: Ticket) -> Wait | None:
        """The async version of `ask`."""
        return self.ask(ticket)

    def settle(self, ticket: Ticket, outcome: Outcome) -> bool:
        """Count what became of a call that was let through; there is nobody to tell."""
        with self._lock:
            self._ledger.settle(ticket, outcome, self._clock())
        return False

    def report(self) -> None:
        """Tell others what became of calls."""

    async def areport(self) -> None:
        """The async version of `report`."""

    def leave(self, ticket: Ticket) -> None:
        """The call does not wait any more."""
        with self._lock:
            self._ledger.leave(ticket)

    def note(self, ticket: Ticket) -> None:
        """Count a call that was let through elsewhere."""
        with self._lock:
            self._ledger.note(ticket, self._clock())

    def counted(self) -> list[tuple[str, float, float, float]]:
        """What is counted: the unit, the seconds of its window, its age and the amount."""
        with self._lock:
            return self._ledger.counted(self._clock())

    def share(self, parties: int, used: list[float]) -> None:
        """Keep to one of so many equal shares of the plan, and of what was used of each limit."""
        with self._lock:
            now = self._clock()
            for (unit, amount, seconds), total in zip(self._limits, used, strict=True):
                window = self._ledger.windows[unit, seconds]
                window.limit = max(1.0, amount / max(1, parties))
                window.roll(now)
                others = math.ceil(total / max(1, parties) - window.used)
                if others > 0:
                    window.add(window.at(now), others)

    def eta(self, requests: int, tokens: int) -> float:
        """Seconds until so much more has fitted."""
        with self._lock:
            return self._ledger.eta(requests, tokens, self._clock())

    def look(self) -> dict[str, Any]:
        """What a snapshot tells."""
        with self._lock:
            return self._ledger.look(self._clock())
