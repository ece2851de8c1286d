"""Who may send when: the windows of one key on one interface, and the queue before them.

Pure: no lock, no I/O, and a clock that is given. `memory.py` puts a lock around it, and the script
of `redis_store.py` is the same in Lua.

Rules:
- A call is let through when all limits have room for it and for all who wait before it.
- Interactive calls stand before bulk ones. Within a class the parties (a process, or a block of
  `bulk_priority`) take turns, and the calls of one party keep their order.
- Bulk calls are let through at the pace of the shortest limit and not in one burst, so that an
  interactive call finds room soon.
- A 429 holds everybody back until the moment that the service names.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, insort
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

from .plans import DAY, HOUR, MINUTE, Limit
from .windows import Window

logger = logging.getLogger("langchain_svc")

INTERACTIVE, BULK = 0, 1
# So much of a bulk call's pace may be caught up.
_SLACK = 1.0
_FIRST_HOLD, _LONGEST_HOLD = 1.0, 60.0
# The headers tell the time to the second, and a little later than it was.
_ROUNDING = 2.0
_GROWTH = 0.05
# Of an hour's and a day's requests, so much is kept for interactive calls.
_KEPT = 0.02
_serials = count(1)


@dataclass(eq=False)
class Ticket:
    """A call that asks for its place. `key` is its place in the queue, once it has one.

    The last five are for an account in Redis.
    """

    tokens: int = 0
    priority: int = INTERACTIVE
    party: str = ""
    key: tuple[int, float, int] | None = None
    at: float | None = None  # when it was let through
    waits: bool = False
    id: str = ""
    turn: float = 0.0
    patience: float = 0.0  # how long it can wait
    stored_at: float | None = None  # when it was let through, by Redis' clock
    gone: bool = False

    def __lt__(self, other: Ticket) -> bool:
        return (self.key or ()) < (other.key or ())


class Wait(NamedTuple):
    """Not yet: `turn` is when it can be this call's turn, `again` when to ask again, in seconds.

    `seconds` is the period of the limit that it waits for.
    """

    turn: float
    again: float
    seconds: float


class Outcome(NamedTuple):
    """What became of a call that was let through.

    Attributes:
        sent: Whether the service may have got it.
        tokens: What it took; None where that is not known.
        status: The status of the answer, if one came.
        retry_after: When the service said to come back, in seconds.
        limits: What the headers say: the limit, what remains, and the seconds until it resets.
    """

    sent: bool = True
    tokens: int | None = None
    status: int | None = None
    retry_after: float | None = None
    limits: tuple[int, int, float] | None = None


class Ledger:
    """The state of one account.

    Args:
        limits: The plan's limits.
        learns: Whether the service's refusals set a limit where the plan has none.
    """

    def __init__(self, limits: tuple[Limit, ...], *, learns: bool) -> None:
        self.windows = {(limit.unit, limit.seconds): Window(limit) for limit in limits}
        self.learns = learns
        self.waiting: list[Ticket] = []
        self.hold_until = 0.0
        self._refusals = 0
        self._grows_at = 0.0
        self._turns = [0.0, 0.0]  # of the last one that was let through, of each class
        self._finished: dict[tuple[int, str], float] = {}
        self._bulk_at = 0.0
        if learns and ("requests", MINUTE) not in self.windows:
            self._learn(MINUTE, None)

    # -- asking ---------------------------------------------------------------------------------

    def ask(self, ticket: Ticket, now: float) -> Wait | None:
        """None, and the call is let through; or how long to wait. It stands in the queue then."""
        if self._grows_at and now >= self._grows_at:
            self._grow(now)
        if not self.waiting and self._wait(ticket, [], now) is None:
            self._count(ticket, now)
            return None
        if ticket.key is None:
            self._place(ticket)
        rank = bisect_left(self.waiting, ticket)
        wait = self._wait(ticket, self.waiting[:rank], now)
        if wait is not None:
            if not ticket.waits:
                insort(self.waiting, ticket)
                ticket.waits = True
            # Those in front ask often, so that a place that comes free is taken at once; those
            # whose turn is at the same moment ask one after the other.
            again = max(0.005, min(wait.turn, 0.2 + 0.05 * rank)) + 0.002 * min(rank, 100)
            return Wait(wait.turn, again, wait.seconds)
        self.leave(ticket)
        self._let_through(ticket, now)
        return None

    def _grow(self, now: float) -> None:
        """A limit that was guessed from refusals may have been too low."""
        window = self.windows["requests", MINUTE]
        window.limit += max(1.0, _GROWTH * window.limit)
        self._grows_at = now + MINUTE

    def note(self, ticket: Ticket, now: float) -> None:
        """Count a call that was let through elsewhere."""
        for window in self.windows.values():
            window.roll(now)
        self.leave(ticket)
        self._count(ticket, now)

    def _place(self, ticket: Ticket) -> None:
        last = self._turns[ticket.priority]
        party = (ticket.priority, ticket.party)
        turn = max(last, self._finished.get(party, 0.0)) + 1.0
        self._finished[party] = turn
        ticket.key = (ticket.priority, turn, next(_serials))

    def _wait(self, ticket: Ticket, ahead: list[Ticket], now: float) -> Wait | None:
        longest, seconds = self.hold_until - now, MINUTE
        for window in self.windows.values():
            window.roll(now)
            if window.unit == "requests":
                amount = len(ahead) + 1.0
                if ticket.priority == BULK and window.seconds > MINUTE:
                    amount += _KEPT * window.limit
            else:
                amount = min(ticket.tokens, window.limit)
                if ahead:
                    amount += sum(min(other.tokens, window.limit) for other in ahead)
            wait = window.wait(now, amount)
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

    def _let_through(self, ticket: Ticket, now: float) -> None:
        assert ticket.key is not None  # noqa: S101  # `ask` gave it
        priority, turn, _ = ticket.key
        self._turns[priority] = max(self._turns[priority], turn)
        if len(self._finished) > 64 + len(self.waiting):  # rarely
            self._finished = {
                party: last
                for party, last in self._finished.items()
                if last > self._turns[party[0]]
            }
        self._count(ticket, now)

    def _count(self, ticket: Ticket, now: float) -> None:
        ticket.at = now
        for window in self.windows.values():
            window.add(window.at(now), 1 if window.unit == "requests" else ticket.tokens)
        if self._bulk_at or ticket.priority == BULK:  # interactive calls take from bulk ones
            self._bulk_at = max(self._bulk_at, now - _SLACK) + self._pace()

    def leave(self, ticket: Ticket) -> None:
        """The call does not wait any more."""
        if ticket.waits:
            ticket.waits = False
            del self.waiting[bisect_left(self.waiting, ticket)]

    # -- what became of it ----------------------------------------------------------------------

    def settle(self, ticket: Ticket, outcome: Outcome, now: float) -> None:
        """Count what a call really took. Tokens count from the moment of the answer."""
        if ticket.at is None:
            return
        refused = outcome.status == 429  # noqa: PLR2004  # Too Many Requests
        for window in self.windows.values():
            window.roll(now)
            if window.unit == "requests":
                if not outcome.sent or refused:
                    window.add(window.at(ticket.at), -1)
            elif outcome.tokens is not None:
                window.add(window.at(ticket.at), -ticket.tokens)
                window.add(window.at(now), outcome.tokens)
        ticket.at = None
        if outcome.limits is not None:
            self._observe(*outcome.limits, now)
        if refused:
            self._refused(outcome, now)
        elif outcome.status is not None:
            self._refusals = 0

    def _refused(self, outcome: Outcome, now: float) -> None:
        """Others may use the key too: the whole account waits, and not only this call."""
        wait = outcome.retry_after
        if wait is None:
            wait = min(_LONGEST_HOLD, _FIRST_HOLD * 2 ** min(self._refusals, 9))
        self._refusals += 1
        self.hold_until = max(self.hold_until, now + wait)
        window = self.windows.get(("requests", MINUTE))
        if self.learns and outcome.limits is None and window is not None and wait <= MINUTE + 1:
            used = max(1.0, window.used)
            if used < window.limit:
                logger.info("the service refuses more than about %d requests a minute", used)
                window.limit = used
            self._grows_at = now + 2 * MINUTE

    def _observe(self, limit: int, remaining: int, reset: float, now: float) -> None:
        """Learn from the headers: limits that the plan has not, and what others used."""
        period = next((p for p in (MINUTE, HOUR, DAY) if reset <= p + 1), None)
        if limit < 1 or period is None:
            return
        known = [w for w in self.windows.values() if w.unit == "requests"]
        window = next((w for w in known if w.limit == limit and reset <= w.seconds + 1), None)
        if window is None:
            window = self.windows.get(("requests", period))
            guessed = bool(self._grows_at) and period == MINUTE
            if window is not None and limit > window.limit and not guessed:
                return  # near its end, a longer window looks like a short one
            logger.info("the service allows %d requests in %d s", limit, period)
            window = self._learn(period, limit)
        began = now + reset - window.seconds
        others = limit - remaining - window.since(began - _ROUNDING)
        if others > 0:
            window.add(min(window.at(began), window.at(now)), others)

    def _learn(self, seconds: float, limit: int | None) -> Window:
        window = self.windows.get(("requests", seconds))
        if window is None:
            window = self.windows["requests", seconds] = Window(Limit("requests", 1, seconds))
        window.limit = float("inf") if limit is None else float(limit)
        if seconds == MINUTE:
            self._grows_at = 0.0
        return window

    # -- looking --------------------------------------------------------------------------------

    def counted(self, now: float) -> list[tuple[str, float, float, float]]:
        """What is counted: the unit, the seconds of its window, its age and the amount."""
        return [
            (window.unit, window.seconds, age, amount)
            for window in self.windows.values()
            for age, amount in window.ages(now)
        ]

    def eta(self, requests: int, tokens: int, now: float) -> float:
        """Seconds until so many more requests and tokens, after those that wait, have fitted."""
        longest = max(0.0, self.hold_until - now)
        for window in self.windows.values():
            window.roll(now)
            on_requests = window.unit == "requests"
            queued = len(self.waiting) if on_requests else sum(t.tokens for t in self.waiting)
            amount = (requests if on_requests else tokens) + queued
            wait = window.wait(now, amount)
            if on_requests and window.seconds > MINUTE and amount > window.limit:
                # What its last window has to take goes at the pace of the shortest one.
                wait += (amount + window.used) % window.limit * self._pace()
            longest = max(longest, wait)
        return longest

    def look(self, now: float) -> dict[str, Any]:
        """What a snapshot tells."""
        for window in self.windows.values():
            window.roll(now)
        return {
            "windows": [
                (w.unit, w.limit, w.seconds, max(0, round(w.used)), w.empties(now))
                for w in self.windows.values()
            ],
            "waiting": tuple(
                sum(t.priority == priority for t in self.waiting) for priority in (0, 1)
            ),
            "hold": max(0.0, self.hold_until - now),
        }
