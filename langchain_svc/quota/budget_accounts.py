"""The use of a budget: reserved before a call is sent, settled or given back afterwards.

Here is the account in the memory of this process; `redis_accounts.py` has the one that processes
share. Both keep the same rules:

- A call reserves the most that it may use. Used and reserved amounts together may never exceed a
  bound, so calls in flight cannot pass it.
- A call that ended counts by what it used. A call that was not sent gives its share back.
- A period is one of the calendar, in UTC. A reservation counts in the period that it was made in.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

from .._base.threads import new_lock
from .._client import Wait
from .estimates import Estimates

Amounts = tuple[int, int, int]  # requests, tokens, cost in billionths
Bounds = tuple["int | None", "int | None", "int | None"]
NOTHING: Amounts = (0, 0, 0)

PERIODS_OF_BUDGETS = ("hour", "day", "month")


@dataclass(eq=False)
class Reservation:
    """The share of a call that is on its way."""

    most: Amounts
    period: int  # in which it counts
    identity: str = ""  # its name in Redis


class Standing(NamedTuple):
    """The state of an account, and the share that a call got, if it got one."""

    used: Amounts  # by calls that have ended
    reserved: Amounts  # by calls that are on their way
    calls: int  # the number of calls that are on their way
    reservation: Reservation | None = None  # None where it was not granted
    wait: Wait | None = None  # set where that cannot be decided yet


class BudgetAccount(Protocol):
    """Where the use of a budget is counted."""

    local: bool  # reserving does no I/O
    estimates: Estimates  # of the calls that reserve

    def reserve(self, most: Amounts, bounds: Bounds, seconds: float) -> Standing:
        """Take a share, if no bound is passed. Waits at most so many seconds for the storage."""
        ...

    async def areserve(self, most: Amounts, bounds: Bounds, seconds: float) -> Standing:
        """The async version of `reserve`."""
        ...

    def settle(self, reservation: Reservation, used: Amounts | None) -> None:
        """Count what the call used; None gives its share back. It waits for nothing."""
        ...

    def look(self) -> Standing:
        """The state of the account now."""
        ...


BILLION = 10**9


def in_billionths(cost: float) -> int:
    """A cost as accounts count it, so that sums are exact in any order, in Lua's numbers too."""
    whole = int(cost)
    return whole * BILLION + round((cost - whole) * BILLION)


def add(first: Amounts, second: Amounts) -> Amounts:
    """The sum, each unit by itself."""
    return first[0] + second[0], first[1] + second[1], first[2] + second[2]


def passes(bounds: Bounds, standing: Standing, most: Amounts) -> bool:
    """Whether a call that may use so much would exceed a bound."""
    counted = add(standing.used, standing.reserved)
    for bound, amount, requested in zip(bounds, counted, most, strict=True):
        if bound is not None and requested > max(0, bound - amount):
            return True
    return False


def period_at(period: str | None, now: float) -> int:
    """The number of the hour, day or month (UTC) at a moment; 0 without a period."""
    moment = datetime.fromtimestamp(now, UTC)
    if period == "hour":
        return int(now // 3600)
    if period == "day":
        return int(now // 86400)
    if period == "month":
        return moment.year * 12 + moment.month
    return 0


class MemoryBudget:
    """An account in this process's memory, for any thread and any event loop."""

    local = True

    def __init__(
        self, period: str | None, clock: Callable[[], float] = time.time
    ) -> None:
        self.estimates: Estimates = Estimates()
        self._period = period
        self._clock = clock
        self._lock = new_lock()
        self._number = 0  # of the period that is counted
        self._used = NOTHING
        self._reservations: set[Reservation] = set()

    def _standing(self) -> Standing:
        number = period_at(self._period, self._clock())
        if number > self._number:  # a clock that is set back starts no period
            self._number = number
            self._used = NOTHING
            self._reservations = set()
        reserved = NOTHING
        for reservation in self._reservations:
            reserved = add(reserved, reservation.most)
        return Standing(self._used, reserved, len(self._reservations))

    def reserve(self, most: Amounts, bounds: Bounds, seconds: float) -> Standing:
        """Take a share, if no bound is passed."""
        with self._lock:
            standing = self._standing()
            if passes(bounds, standing, most):
                return standing
            reservation = Reservation(most, self._number)
            self._reservations.add(reservation)
            return standing._replace(reservation=reservation)

    async def areserve(self, most: Amounts, bounds: Bounds, seconds: float) -> Standing:
        """The async version of `reserve`."""
        return self.reserve(most, bounds, seconds)

    def settle(self, reservation: Reservation, used: Amounts | None) -> None:
        """Count what the call used; None gives its share back."""
        with self._lock:
            if reservation in self._reservations:  # else its period is over
                self._reservations.remove(reservation)
                self._used = add(self._used, used or NOTHING)

    def look(self) -> Standing:
        """The state of the account now."""
        with self._lock:
            return self._standing()
