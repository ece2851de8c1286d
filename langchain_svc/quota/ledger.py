"""Who may send when: the windows of one key on one interface, and the queue before them.

`quota.lua` lets calls through and settles them by the same rules in Redis. The rules:

- A call is let through when all limits have room for it and for all calls that wait before it.
- Interactive calls stand before bulk ones. Within a class the parties (a process, or a block of
  `bulk_priority`) take turns, and the calls of one party keep their order.
- Bulk calls are let through at the pace of the shortest limit and not in one burst, so that an
  interactive call finds room soon.
- A 429 holds all calls back until the moment that the service names. A limit or a moment from one
  answer counts for ten minutes at most, and for an hour if it is about a day's quota: a gateway may
  write such headers, too.

The documents do not say where a minute of the service begins. A window that slides keeps every
minute within the limit, wherever it begins. It has 120 buckets. A bucket leaves the window when its
whole time and `LATENESS` more are past: a request may reach the service so much later than it was
counted here. So a full load gets 60 requests of a minute's limit of 60 in 60 + 0.75 + 0.25 seconds
on average, which is 98 %.
"""

from __future__ import annotations

import logging
import math
import time
from bisect import bisect_left, insort
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

from .._base.threads import new_lock
from .._client import Wait

logger: logging.Logger = logging.getLogger("langchain_svc")

MINUTE = 60.0
HOUR = 3_600.0
DAY = 86_400.0
PERIODS = {"minute": MINUTE, "hour": HOUR, "day": DAY}

BUCKETS = 120
LATENESS = 0.75
INTERACTIVE = 0
BULK = 1
TOO_MANY_REQUESTS = 429
_SLACK = 1.0  # seconds that bulk calls may lag behind their pace and still catch up
_DEFAULT_HOLD = 5.0  # seconds that a refusal holds all calls back if it names no time
_BELIEF = 600.0  # seconds that one answer counts for at most
_BELIEF_OF_A_DAY = HOUR  # the same, of an answer about a day's quota
# The headers give the time to the second, and a little later than it was.
_ROUNDING = 2.0
# The share of an hour's and a day's requests that only interactive calls may use.
_RESERVED_SHARE = 0.02
_LEAST_WAIT = 0.005  # seconds
_MOST_STEPS = 10_000  # of a copy that shows how long work takes
_serials = count(1)


class Limit(NamedTuple):
    """At most `amount` of "requests" or "tokens" in any `seconds`."""

    unit: str
    amount: float
    seconds: float


def belief(period: float) -> float:
    """Seconds for which one answer about a limit of such a period counts, at most.

    A gateway, or a service in trouble, may write headers that no later answer takes back. So no
    answer holds a key for long: when its time is over, the next answer may say it again.
    """
    if period > HOUR + 1:  # headers give the time to the second
        return _BELIEF_OF_A_DAY
    return _BELIEF


@dataclass(eq=False)
class Ticket:
    """A call that wants to be let through. The last two fields are for an account in Redis."""

    tokens: int = 0
    priority: int = INTERACTIVE
    party: str = ""
    turn: float = 0.0  # its place in the queue, once it has one
    serial: int = field(default_factory=_serials.__next__)
    counted_at: float | None = None  # when it was let through
    waits: bool = False
    patience: float = math.inf  # seconds that it can wait
    stored_at: float | None = None  # when it was let through, by Redis' clock

    def __lt__(self, other: Ticket) -> bool:
        mine = self.priority, self.turn, self.serial
        return mine < (other.priority, other.turn, other.serial)


class Outcome(NamedTuple):
    """How a call that was let through ended."""

    sent: bool = True  # whether the service may have got it
    tokens: int | None = None  # None where that is not known
    status: int | None = None
    retry_after: float | None = None  # seconds
    # The limit, the remaining requests, and the seconds to the reset.
    limits: tuple[int, int, float] | None = None


class WindowUse(NamedTuple):
    """The use of one limit, as a snapshot shows it."""

    unit: str
    limit: float
    seconds: float
    used: int
    empty_in: float  # seconds


class LedgerUse(NamedTuple):
    """The state of an account, as a snapshot shows it."""

    windows: list[WindowUse]
    waiting: int  # interactive calls
    waiting_bulk: int
    hold: float  # seconds


class Window:
    """The use of one limit. Times are seconds of any clock that does not go back."""

    def __init__(self, limit: Limit) -> None:
        self.unit: str = limit.unit
        self.seconds: float = limit.seconds
        self.planned: float = float(limit.amount)
        self.limit: float = self.planned
        self.lapses: float = math.inf  # when a limit that headers gave counts no more
        self.width: float = limit.seconds / BUCKETS
        # How long a bucket counts.
        self.turnover: float = limit.seconds + LATENESS + self.width
        self.used: float = 0.0
        self.buckets: dict[int, float] = {}  # in the order of time
        self._rolls_at = 0.0  # no bucket leaves before

    def roll(self, now: float) -> None:
        """Drop the buckets that have left the window."""
        if now >= self.lapses:
            self.limit = self.planned
            self.lapses = math.inf
        if now < self._rolls_at:
            return
        edge = math.floor((now - self.seconds - LATENESS) / self.width)
        while self.buckets:
            oldest = next(iter(self.buckets))
            if oldest >= edge:
                break
            self.used -= self.buckets.pop(oldest)
        # A bucket that is added later is no older than these: add() sees to the exceptions.
        oldest = next(iter(self.buckets), edge)
        self._rolls_at = self._leaves_at(oldest)

    def bucket_at(self, now: float) -> int:
        """The bucket of a moment."""
        return math.floor(now / self.width)

    def add(self, bucket: int, amount: float) -> None:
        """Count an amount; one below 0 takes back as much as the bucket still holds."""
        counted = self.buckets.get(bucket)
        if counted is not None:
            amount = max(amount, -counted)
            self.buckets[bucket] = counted + amount
            self.used += amount
            return
        if amount < 0:
            return
        is_late = bool(self.buckets) and bucket < next(reversed(self.buckets))
        self.buckets[bucket] = amount
        self.used += amount
        if is_late:
            self.buckets = dict(sorted(self.buckets.items()))
            self._rolls_at = 0.0

    def kept(self, priority: int) -> float:
        """What of the limit calls of a class may not use."""
        is_long = self.unit == "requests" and self.seconds > MINUTE
        if priority != BULK or not is_long or self.limit == math.inf:
            return 0.0
        return min(_RESERVED_SHARE * self.limit, self.limit - 1)

    def wait(self, now: float, amount: float) -> float:
        """Seconds until `amount` more fits, which may be that of a whole queue."""
        excess = self.used + amount - self.limit
        if excess <= 0:
            return 0.0
        # Each whole window that a queue fills takes its time; the rest waits for buckets to leave.
        full_windows = math.ceil(excess / self.limit) - 1
        excess -= full_windows * self.limit
        for bucket, counted in self.buckets.items():
            excess -= counted
            if excess <= 0:
                return self._leaves_at(bucket) - now + full_windows * self.seconds
        return (full_windows + 1) * self.seconds

    def _leaves_at(self, bucket: int) -> float:
        return (bucket + 1) * self.width + self.seconds + LATENESS

    def observe(self, limit: int, remaining: int, reset: float, now: float) -> None:
        """Count what others used of a limit, by an answer's headers."""
        window_start = now + reset - self.seconds
        # The use of others counts from the start of the service's window, but leaves ours when
        # the answer is believed no more.
        believed_until = now + belief(self.seconds)
        bucket = min(
            self.bucket_at(window_start),
            self.bucket_at(now),
            self.bucket_at(believed_until - self.seconds),
        )
        first = min(bucket, self.bucket_at(window_start - _ROUNDING))
        own = 0.0
        for at, counted in self.buckets.items():
            if at >= first:
                own += counted
        others = limit - remaining - own
        if others > 0:
            self.add(bucket, others)

    def amount(self, ticket: Ticket) -> float:
        """What a call takes of the limit; one that is larger takes all of it."""
        if self.unit == "requests":
            return 1.0
        return min(ticket.tokens, self.limit)

    def capacity(self, ticket: Ticket) -> float:
        """How many calls like this one fit into an empty window."""
        amount = self.amount(ticket)
        if not amount:
            return math.inf
        return (self.limit - self.kept(ticket.priority)) // amount

    def copy(self, size: int) -> Window:
        """The same use of the same limit, in units of `size`; the limit does not lapse."""
        window = Window(Limit(self.unit, self.limit / size, self.seconds))
        for bucket, amount in self.buckets.items():
            window.add(bucket, amount / size)
        return window

    def use(self, now: float) -> WindowUse:
        """The use now, for a snapshot."""
        empty_in = 0.0
        if self.buckets:
            empty_in = self._leaves_at(next(reversed(self.buckets))) - now
        used = max(0, round(self.used))
        return WindowUse(self.unit, self.limit, self.seconds, used, empty_in)


def _whole_turnovers(
    windows: list[Window], ticket: Ticket, calls: int
) -> tuple[float, int, bool]:
    """The seconds of whole turnovers; the calls left then, and whether a limit holds these up.

    Whatever goes before, a window lets as many calls through in each further turnover as fit into
    it. A shorter one does so only where no longer one holds the calls up.
    """
    seconds = 0.0
    for window in sorted(windows, key=lambda w: (-w.seconds, w.capacity(ticket))):
        capacity = window.capacity(ticket)
        if calls > capacity:
            turnovers = (calls - 1) // int(capacity)
            seconds += turnovers * window.turnover
            calls -= turnovers * int(capacity)
        needed = window.used + calls * window.amount(ticket)
        if needed > window.limit - window.kept(ticket.priority):
            return seconds, calls, True
    return seconds, calls, False


class Ledger:
    """An account in this process's memory, for any thread and any event loop.

    Its lock is held for microseconds. The seconds of its clock do not go back.
    """

    local = True  # acquire() does no I/O

    def __init__(
        self, limits: tuple[Limit, ...], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.counts_tokens: bool = any(limit.unit == "tokens" for limit in limits)
        self._limits = limits
        self._clock = clock
        self._lock = new_lock()
        self.windows: dict[tuple[str, float], Window] = {}
        self._request_periods: set[float] = set()
        for limit in limits:
            self.windows[limit.unit, limit.seconds] = Window(limit)
            if limit.unit == "requests":
                self._request_periods.add(limit.seconds)
        self.waiting: list[Ticket] = []
        self.hold_until: float = 0.0
        # Of each class: the turn of the last call that was let through.
        self._turns = [0.0, 0.0]
        # Of each class and party: the turn of its last call that came into the queue.
        self._last_turns: dict[tuple[int, str], float] = {}
        self.bulk_at: float = 0.0
        if not limits:  # requests before the first answer count, too
            self._window_of(MINUTE)

    def _window_of(self, seconds: float) -> Window:
        window = self.windows.get(("requests", seconds))
        if window is None:
            window = Window(Limit("requests", math.inf, seconds))
            self.windows["requests", seconds] = window
        return window

    def _roll_windows(self) -> float:
        """The time now, to which all windows are brought."""
        now = self._clock()
        for window in self.windows.values():
            window.roll(now)
        return now

    # -- letting calls through ------------------------------------------------------------------

    def acquire(self, ticket: Ticket) -> Wait | None:
        """Let the call through, or say how long to wait; it stands in the queue then."""
        with self._lock:
            now = self._roll_windows()
            if self.waiting:
                self._set_turn(ticket)
            rank = bisect_left(self.waiting, ticket)
            wait = self._wait_of(ticket, self.waiting[:rank], now)
            if wait is None:
                self._count(ticket, now)
                if ticket.turn:
                    self._leave(ticket)
                    self._note_turn(ticket)
                return None
            if not ticket.waits:
                self._set_turn(ticket)
                self._last_turns[ticket.priority, ticket.party] = ticket.turn
                insort(self.waiting, ticket)
                ticket.waits = True
            # The front of the queue comes back often, so that it takes a free place at once. Calls
            # whose turns fall on one moment come back one after the other.
            again = max(_LEAST_WAIT, min(wait.turn, 0.2 + 0.05 * rank))
            again += 0.002 * min(rank, 100)
            return wait._replace(again=again)

    async def aacquire(self, ticket: Ticket) -> Wait | None:
        """The async version of `acquire`."""
        return self.acquire(ticket)

    def _set_turn(self, ticket: Ticket) -> None:
        if not ticket.turn:
            last = self._last_turns.get((ticket.priority, ticket.party), 0.0)
            ticket.turn = max(self._turns[ticket.priority], last) + 1.0

    def _note_turn(self, ticket: Ticket) -> None:
        """Remember that a call of this turn was let through."""
        priority = ticket.priority
        self._turns[priority] = max(self._turns[priority], ticket.turn)
        if len(self._last_turns) <= 64 + len(self.waiting):
            return
        # Rarely: forget the parties whose calls are all through.
        for party, last in list(self._last_turns.items()):
            if last <= self._turns[party[0]]:
                del self._last_turns[party]

    def _wait_of(self, ticket: Ticket, ahead: list[Ticket], now: float) -> Wait | None:
        """The longest wait of any limit, with the seconds of that limit."""
        longest = self.hold_until - now
        period = MINUTE
        for window in self.windows.values():
            if window.unit == "requests":
                amount = len(ahead) + 1.0 + window.kept(ticket.priority)
            else:
                amount = min(ticket.tokens, window.limit)
                if ahead:
                    amount += sum(min(other.tokens, window.limit) for other in ahead)
            wait = min(window.wait(now, amount), window.lapses - now)
            if wait > longest:
                longest = wait
                period = window.seconds
        if ticket.priority == BULK:
            bulk_ahead = len([other for other in ahead if other.priority == BULK])
            longest = max(longest, self.bulk_at - now + bulk_ahead * self._pace())
        if longest <= 0:
            return None
        return Wait(longest, longest, period)

    def _pace(self) -> float:
        """Seconds between two bulk calls."""
        requests = [w for w in self.windows.values() if w.unit == "requests"]
        if not requests:
            return 0.0
        shortest = min(requests, key=lambda window: window.seconds)
        return shortest.turnover / shortest.limit

    def _count(self, ticket: Ticket, now: float) -> None:
        ticket.counted_at = now
        for window in self.windows.values():
            amount = 1
            if window.unit == "tokens":
                amount = ticket.tokens
            window.add(window.bucket_at(now), amount)
        if self.bulk_at or ticket.priority == BULK:
            # Interactive calls count, too: they slow the bulk calls down.
            self.bulk_at = max(self.bulk_at, now - _SLACK) + self._pace()

    def leave(self, ticket: Ticket) -> None:
        """The call does not wait any more."""
        with self._lock:
            self._leave(ticket)

    def _leave(self, ticket: Ticket) -> None:
        if ticket.waits:
            ticket.waits = False
            del self.waiting[bisect_left(self.waiting, ticket)]

    # -- ends of calls --------------------------------------------------------------------------

    def settle(self, ticket: Ticket, outcome: Outcome) -> None:
        """Count what a call really took. Tokens count from the moment of the answer."""
        if ticket.counted_at is None:
            return
        with self._lock:
            now = self._roll_windows()
            refused = outcome.status == TOO_MANY_REQUESTS
            for window in self.windows.values():
                sent_in = window.bucket_at(ticket.counted_at)
                if window.unit == "requests":
                    if not outcome.sent or refused:
                        window.add(sent_in, -1)
                elif outcome.tokens is not None:
                    window.add(sent_in, -ticket.tokens)
                    window.add(window.bucket_at(now), outcome.tokens)
            ticket.counted_at = None
            if outcome.limits is not None:
                self._observe(*outcome.limits, now)
            if refused:
                # Others may use the key, too: the whole account waits.
                hold = outcome.retry_after
                if hold is None:
                    hold = _DEFAULT_HOLD
                self.hold_until = max(self.hold_until, now + min(hold, belief(hold)))

    def _observe(self, limit: int, remaining: int, reset: float, now: float) -> None:
        """Learn from headers: limits that the plan lacks, and what others used."""
        period = next((p for p in (MINUTE, HOUR, DAY) if reset <= p + 1), None)
        if limit < 1 or period is None:
            return
        window = self._window_with(limit, reset)
        if window is None:
            if self._request_periods and period not in self._request_periods:
                return  # the plan has no such limit: the header is not the service's
            window = self._window_of(period)
            if window.limit < limit:
                return  # near its end, a longer window looks like a short one
            logger.info("the service allows %d requests in %d s", limit, period)
            window.limit = float(limit)
        if window.limit < window.planned:
            window.lapses = now + belief(window.seconds)
        window.observe(limit, remaining, reset, now)

    def _window_with(self, limit: int, reset: float) -> Window | None:
        """The window of requests that a header with this limit may be about."""
        for window in self.windows.values():
            if window.unit != "requests" or window.limit != limit:
                continue
            if reset <= window.seconds + 1:
                return window
        return None

    # -- looking --------------------------------------------------------------------------------

    def eta(self, requests: int, tokens: int, priority: int = INTERACTIVE) -> float:
        """Seconds until so much more is let through, behind the calls that wait before it.

        A copy of the account lets it through, call after call, on a clock that jumps to each turn.
        So no second rule says how long the rules take.
        """
        with self._lock:
            now = self._roll_windows()
            copy = Ledger((), clock=self._clock)
            copy.windows = {key: w.copy(1) for key, w in self.windows.items()}
            copy.waiting = [t for t in self.waiting if t.priority <= priority]
            copy.hold_until = self.hold_until
            # Without the head start of an account at rest, which a run may not get.
            copy.bulk_at = max(self.bulk_at, now)
        return copy._let_all_through(requests, tokens, priority, now)

    def _let_all_through(
        self, requests: int, tokens: int, priority: int, now: float
    ) -> float:
        """Seconds until so much more is let through. It uses this account up."""
        calls = requests + len(self.waiting)
        tokens += sum(ticket.tokens for ticket in self.waiting)
        for key, window in list(self.windows.items()):
            is_part = bool(calls) or window.unit == "tokens"
            if not is_part or window.limit == math.inf:
                del self.windows[key]
        windows = [*self.windows.values()]
        most = min((w.limit for w in windows if w.unit == "tokens"), default=0)
        if not calls and most:  # the fewest that have so many tokens
            calls = math.ceil(tokens / most)
        if not (calls and windows):
            return max(0.0, self.hold_until - now)
        ticket = Ticket(math.ceil(min(tokens / calls, most)), priority)
        seconds, calls, are_held = _whole_turnovers(windows, ticket, calls)
        pace = self._pace() if priority == BULK else 0.0
        if not are_held:
            return seconds + self._time_of(ticket, 1, now) + (calls - 1) * pace
        capacity = min(window.capacity(ticket) for window in windows)
        at_once = math.ceil(min(calls / _MOST_STEPS, max(1, capacity // 100)))
        for key, window in self.windows.items():
            self.windows[key] = window.copy(at_once)
        steps = math.ceil(calls / at_once)
        return seconds + self._time_of(ticket, steps, now) + (at_once - 1) * pace

    def _time_of(self, ticket: Ticket, calls: int, start: float) -> float:
        """Seconds until so many calls like this one are let through."""
        now = start
        for _ in range(calls):
            while wait := self._wait_of(ticket, [], now):
                now += max(wait.turn, _LEAST_WAIT)
                for window in self.windows.values():
                    window.roll(now)
            self._count(ticket, now)
        return now - start

    def look(self) -> LedgerUse:
        """The state now, for a snapshot."""
        with self._lock:
            now = self._roll_windows()
            windows = [window.use(now) for window in self.windows.values()]
            bulk = len([ticket for ticket in self.waiting if ticket.priority == BULK])
            hold = max(0.0, self.hold_until - now)
            return LedgerUse(windows, len(self.waiting) - bulk, bulk, hold)
