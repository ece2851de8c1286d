"""Who may send when: the windows of one key on one interface, and the queue before them.

`quota.lua` asks and settles by the same rules in Redis. The rules:

- A call is let through when all limits have room for it and for all who wait before it.
- Interactive calls stand before bulk ones. Within a class the parties (a process, or a block of
  `bulk_priority`) take turns, and the calls of one party keep their order.
- Bulk calls are let through at the pace of the shortest limit and not in one burst, so that an
  interactive call finds room soon.
- A 429 holds everybody back until the moment that the service names. What one answer says, a limit
  or a moment, counts for ten minutes at most, and for an hour where it is about a day's quota: a
  gateway may write such headers, too.

The documents do not say where a minute of the service begins. A window that slides keeps every
minute within the limit, wherever it begins. It is kept in 120 buckets. A bucket leaves when its
whole time and `LATENESS` more are past: a request may reach the service so much later than it was
counted here. So of a minute's limit a full load gets 60 in 60 + 0.75 + 0.25 seconds on average,
which is 98 %.
"""

from __future__ import annotations

import logging
import math
import time
from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from .._base.threads import new_lock
from .._service import Wait
from .plans import DAY, HOUR, MINUTE, Limit

logger = logging.getLogger("langchain_svc")

BUCKETS, LATENESS = 120, 0.75
INTERACTIVE, BULK = 0, 1
TOO_MANY_REQUESTS = 429
# So much of a bulk call's pace may be caught up.
_SLACK = 1.0
_UNTOLD = 5.0  # seconds that a refusal holds everybody back, where it names no time
_BELIEF = 600.0  # seconds that one answer counts for at most
_BELIEF_OF_A_DAY = HOUR  # the same, of an answer about a day's quota
# The headers tell the time to the second, and a little later than it was.
_ROUNDING = 2.0
# Of an hour's and a day's requests, so much is kept for interactive calls.
_KEPT = 0.02
_serials = count(1)


def belief(period: float) -> float:
    """Seconds for which one answer about a limit of such a period counts, at most.

    A gateway, or a service in trouble, may write headers that nobody will ever take back. So no
    answer holds a key for long: when its time is over, the next answer may say it again.
    """
    if period > HOUR + 1:  # headers tell the time to the second
        return _BELIEF_OF_A_DAY
    return _BELIEF


@dataclass(eq=False)
class Ticket:
    """A call that asks for its place. The last two are for an account in Redis."""

    tokens: int = 0
    priority: int = INTERACTIVE
    party: str = ""
    turn: float = 0.0  # its place in the queue, once it has one
    serial: int = field(default_factory=_serials.__next__)
    at: float | None = None  # when it was let through
    waits: bool = False
    left: float = math.inf  # how long it can wait
    stored_at: float | None = None  # when it was let through, by Redis' clock

    def __lt__(self, other: Ticket) -> bool:
        mine = self.priority, self.turn, self.serial
        return mine < (other.priority, other.turn, other.serial)


class Outcome(NamedTuple):
    """What became of a call that was let through."""

    sent: bool = True  # whether the service may have got it
    tokens: int | None = None  # None where that is not known
    status: int | None = None
    retry_after: float | None = None  # seconds
    limits: tuple[int, int, float] | None = (
        None  # the limit, what remains, seconds to the reset
    )


class Window:
    """The use of one limit. Times are seconds of any clock that does not go back."""

    def __init__(self, limit: Limit) -> None:
        self.unit, self.planned, self.seconds = (
            limit.unit,
            float(limit.amount),
            limit.seconds,
        )
        self.limit = self.planned
        self.lapses = (
            math.inf
        )  # when a limit that the headers told is not believed any more
        self.width = limit.seconds / BUCKETS
        self.turnover = (
            limit.seconds + LATENESS + self.width
        )  # how long a bucket counts
        self.used = 0.0
        self._rolls_at = 0.0  # nothing leaves before
        self.buckets: dict[int, float] = {}  # in the order of time

    def roll(self, now: float) -> None:
        """Forget what has left the window."""
        if now >= self.lapses:
            self.limit, self.lapses = self.planned, math.inf
        if now < self._rolls_at:
            return
        edge = math.floor((now - self.seconds - LATENESS) / self.width)
        while self.buckets and (first := next(iter(self.buckets))) < edge:
            self.used -= self.buckets.pop(first)
        # Amounts are added later than that, or before the first bucket, which add() sees to.
        self._rolls_at = self._leaves(next(iter(self.buckets), edge))

    def at(self, now: float) -> int:
        """The bucket of a moment."""
        return math.floor(now / self.width)

    def add(self, bucket: int, amount: float) -> None:
        """Count an amount; one below 0 takes back, as far as the bucket still holds it."""
        held = self.buckets.get(bucket)
        if held is None:
            if amount < 0:
                return
            late = bool(self.buckets) and bucket < next(reversed(self.buckets))
            self.buckets[bucket] = amount
            if late:
                self.buckets = dict(sorted(self.buckets.items()))
                self._rolls_at = 0.0
        else:
            amount = max(amount, -held)
            self.buckets[bucket] = held + amount
        self.used += amount

    def wait(self, now: float, amount: float) -> float:
        """Seconds until `amount` more fits, which may be that of a whole queue."""
        over = self.used + amount - self.limit
        if over <= 0:
            return 0.0
        # Each whole window that a queue fills takes its time; the rest waits for buckets to leave.
        full = math.ceil(over / self.limit) - 1
        over -= full * self.limit
        for bucket, held in self.buckets.items():
            over -= held
            if over <= 0:
                return self._leaves(bucket) - now + full * self.seconds
        return (full + 1) * self.seconds

    def _leaves(self, bucket: int) -> float:
        return (bucket + 1) * self.width + self.seconds + LATENESS

    def observe(self, limit: int, remaining: int, reset: float, now: float) -> None:
        """Count what others used of a limit, by an answer's headers."""
        began = now + reset - self.seconds
        forgotten = now + belief(self.seconds)
        bucket = min(self.at(began), self.at(now), self.at(forgotten - self.seconds))
        first = min(bucket, self.at(began - _ROUNDING))
        others = (
            limit - remaining - sum(n for at, n in self.buckets.items() if at >= first)
        )
        if others > 0:
            self.add(bucket, others)

    def empties(self, now: float) -> float:
        """Seconds until nothing is counted any more."""
        return self._leaves(next(reversed(self.buckets))) - now if self.buckets else 0.0


class Ledger:
    """An account in this process's memory, for any thread and any event loop.

    Its lock is held for microseconds. The seconds of its clock do not go back.
    """

    local = True  # asking needs no I/O

    def __init__(
        self, limits: tuple[Limit, ...], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.counts_tokens = any(limit.unit == "tokens" for limit in limits)
        self._limits, self._clock, self._lock = limits, clock, new_lock()
        self.windows = {(limit.unit, limit.seconds): Window(limit) for limit in limits}
        self._periods = {n.seconds for n in limits if n.unit == "requests"}
        self.waiting: list[Ticket] = []
        self.hold_until = 0.0
        self._turns = [0.0, 0.0]  # of the last one that was let through, of each class
        self._finished: dict[tuple[int, str], float] = {}
        self._bulk_at = 0.0
        if not limits:  # what is sent before the first answer counts, too
            self._window_of(MINUTE)

    def _window_of(self, seconds: float) -> Window:
        found = self.windows.get(("requests", seconds))
        if found is None:
            found = self.windows["requests", seconds] = Window(
                Limit("requests", math.inf, seconds)
            )
        return found

    def _rolled(self) -> float:
        now = self._clock()
        for window in self.windows.values():
            window.roll(now)
        return now

    # -- asking ---------------------------------------------------------------------------------

    def ask(self, ticket: Ticket) -> Wait | None:
        """None, and the call is let through; or how long to wait. It stands in the queue then."""
        with self._lock:
            now = self._rolled()
            priority = ticket.priority
            if self.waiting:
                self._place(ticket)
            rank = bisect_left(self.waiting, ticket)
            wait = self._wait(ticket, self.waiting[:rank], now)
            if wait is None:
                self._count(ticket, now)
                if not ticket.turn:
                    return None
                self._leave(ticket)
                self._turns[priority] = max(self._turns[priority], ticket.turn)
                if len(self._finished) > 64 + len(self.waiting):  # rarely
                    turns = self._finished.items()
                    self._finished = {
                        p: last for p, last in turns if last > self._turns[p[0]]
                    }
                return None
            if not ticket.waits:
                self._place(ticket)
                self._finished[priority, ticket.party] = ticket.turn
                insort(self.waiting, ticket)
                ticket.waits = True
            # Those in front ask often, so that a place that comes free is taken at once; those
            # whose turn is at the same moment ask one after the other.
            again = max(0.005, min(wait.turn, 0.2 + 0.05 * rank)) + 0.002 * min(
                rank, 100
            )
            return wait._replace(again=again)

    def _place(self, ticket: Ticket) -> None:
        if not ticket.turn:
            last = self._finished.get((ticket.priority, ticket.party), 0.0)
            ticket.turn = max(self._turns[ticket.priority], last) + 1.0

    async def aask(self, ticket: Ticket) -> Wait | None:
        """The async version of `ask`."""
        return self.ask(ticket)

    def _wait(self, ticket: Ticket, ahead: list[Ticket], now: float) -> Wait | None:
        longest, seconds = self.hold_until - now, MINUTE
        for window in self.windows.values():
            if window.unit == "requests":
                amount = len(ahead) + 1.0
                if ticket.priority == BULK and window.seconds > MINUTE:
                    amount += _KEPT * window.limit
            else:
                amount = min(ticket.tokens, window.limit)
                if ahead:
                    amount += sum(min(other.tokens, window.limit) for other in ahead)
            wait = min(window.wait(now, amount), window.lapses - now)
            if wait > longest:
                longest, seconds = wait, window.seconds
        if ticket.priority == BULK:
            before = sum(other.priority == BULK for other in ahead)
            longest = max(longest, self._bulk_at - now + before * self._pace())
        return Wait(longest, longest, seconds) if longest > 0 else None

    def _pace(self) -> float:
        """Seconds between two bulk calls."""
        requests = [w for w in self.windows.values() if w.unit == "requests"]
        window = min(requests, key=lambda each: each.seconds, default=None)
        return window.turnover / window.limit if window is not None else 0.0

    def _count(self, ticket: Ticket, now: float) -> None:
        ticket.at = now
        for window in self.windows.values():
            window.add(
                window.at(now), 1 if window.unit == "requests" else ticket.tokens
            )
        if (
            self._bulk_at or ticket.priority == BULK
        ):  # interactive calls take from bulk ones
            self._bulk_at = max(self._bulk_at, now - _SLACK) + self._pace()

    def leave(self, ticket: Ticket) -> None:
        """The call does not wait any more."""
        with self._lock:
            self._leave(ticket)

    def _leave(self, ticket: Ticket) -> None:
        if ticket.waits:
            ticket.waits = False
            del self.waiting[bisect_left(self.waiting, ticket)]

    # -- what became of it ----------------------------------------------------------------------

    def settle(self, ticket: Ticket, outcome: Outcome) -> None:
        """Count what a call really took. Tokens count from the moment of the answer."""
        if ticket.at is None:
            return
        with self._lock:
            now = self._rolled()
            refused = outcome.status == TOO_MANY_REQUESTS
            for window in self.windows.values():
                if window.unit == "requests":
                    if not outcome.sent or refused:
                        window.add(window.at(ticket.at), -1)
                elif outcome.tokens is not None:
                    window.add(window.at(ticket.at), -ticket.tokens)
                    window.add(window.at(now), outcome.tokens)
            ticket.at = None
            if outcome.limits is not None:
                self._observe(*outcome.limits, now)
            if refused:  # others may use the key, too: the whole account waits
                wait = outcome.retry_after
                if wait is None:
                    wait = _UNTOLD
                self.hold_until = max(self.hold_until, now + min(wait, belief(wait)))

    def _observe(self, limit: int, remaining: int, reset: float, now: float) -> None:
        """Learn from the headers: limits that the plan has not, and what others used."""
        period = next((p for p in (MINUTE, HOUR, DAY) if reset <= p + 1), None)
        if limit < 1 or period is None:
            return
        known = [w for w in self.windows.values() if w.unit == "requests"]
        window = next(
            (w for w in known if w.limit == limit and reset <= w.seconds + 1), None
        )
        if window is None:
            if self._periods and period not in self._periods:
                return  # the plan has no such limit: somebody else's header
            window = self._window_of(period)
            if window.limit < limit:
                return  # near its end, a longer window looks like a short one
            logger.info("the service allows %d requests in %d s", limit, period)
            window.limit = float(limit)
        if window.limit < window.planned:
            window.lapses = now + belief(window.seconds)
        window.observe(limit, remaining, reset, now)

    # -- looking --------------------------------------------------------------------------------

    def eta(self, requests: int, tokens: int) -> float:
        """Seconds until so many more requests and tokens, after those that wait, have fitted."""
        with self._lock:
            now = self._rolled()
            longest = max(0.0, self.hold_until - now)
            for window in self.windows.values():
                on_requests = window.unit == "requests"
                queued = (
                    len(self.waiting)
                    if on_requests
                    else sum(t.tokens for t in self.waiting)
                )
                amount = (requests if on_requests else tokens) + queued
                wait = window.wait(now, amount)
                if on_requests and window.seconds > MINUTE and amount > window.limit:
                    # What its last window has to take goes at the pace of the shortest one.
                    wait += (amount + window.used) % window.limit * self._pace()
                longest = max(longest, wait)
            return longest

    def look(self) -> dict[str, Any]:
        """What a snapshot tells."""
        with self._lock:
            now = self._rolled()
            waiting = [
                sum(t.priority == priority for t in self.waiting) for priority in (0, 1)
            ]
            return {
                "windows": [
                    (w.unit, w.limit, w.seconds, max(0, round(w.used)), w.empties(now))
                    for w in self.windows.values()
                ],
                "waiting": waiting,
                "hold": max(0.0, self.hold_until - now),
            }
