"""How much of a limit is used, in a window that slides.

The documents do not say where a minute of the service begins. A window that slides keeps every
minute within the limit, wherever it begins. It is kept in 120 buckets. A bucket leaves when its
whole time and `LATENESS` more are past: a request may reach the service so much later than it was
counted here. So of a minute's limit a full load gets 60 in 60 + 0.75 + 0.25 seconds on average,
which is 98 %.
"""

from __future__ import annotations

import math

from .plans import Limit

BUCKETS = 120
LATENESS = 0.75


class Window:
    """The use of one limit. Times are seconds of any clock that does not go back."""

    def __init__(self, limit: Limit) -> None:
        self.unit, self.limit, self.seconds = limit.unit, float(limit.amount), limit.seconds
        self.width = limit.seconds / BUCKETS
        self.turnover = limit.seconds + LATENESS + self.width  # how long a bucket counts
        self.used = 0.0
        self._rolls_at = 0.0  # nothing leaves before
        self._buckets: dict[int, float] = {}  # in the order of time

    def roll(self, now: float) -> None:
        """Forget what has left the window."""
        if now < self._rolls_at:
            return
        edge = math.floor((now - self.seconds - LATENESS) / self.width)
        while self._buckets and (first := next(iter(self._buckets))) < edge:
            self.used -= self._buckets.pop(first)
        # Amounts are added later than that, or before the first bucket, which add() sees to.
        self._rolls_at = self._leaves(next(iter(self._buckets), edge))

    def at(self, now: float) -> int:
        """The bucket of a moment."""
        return math.floor(now / self.width)

    def add(self, bucket: int, amount: float) -> None:
        """Count an amount; one below 0 takes back, as far as the bucket still holds it."""
        held = self._buckets.get(bucket)
        if held is None:
            if amount < 0:
                return
            late = bool(self._buckets) and bucket < next(reversed(self._buckets))
            self._buckets[bucket] = amount
            if late:
                self._buckets = dict(sorted(self._buckets.items()))
                self._rolls_at = 0.0
        else:
            amount = max(amount, -held)
            self._buckets[bucket] = held + amount
        self.used += amount

    def wait(self, now: float, amount: float) -> float:
        """Seconds until `amount` more fits, which may be that of a whole queue."""
        over = self.used + amount - self.limit
        if over <= 0:
            return 0.0
        # Each whole window that a queue fills takes its time; the rest waits for buckets to leave.
        full = math.ceil(over / self.limit) - 1
        over -= full * self.limit
        for bucket, held in self._buckets.items():
            over -= held
            if over <= 0:
                return self._leaves(bucket) - now + full * self.seconds
        return (full + 1) * self.seconds

    def _leaves(self, bucket: int) -> float:
        return (bucket + 1) * self.width + self.seconds + LATENESS

    def since(self, moment: float) -> float:
        """What was counted since a moment, with the bucket that holds it."""
        first = self.at(moment)
        return sum(amount for bucket, amount in self._buckets.items() if bucket >= first)

    def ages(self, now: float) -> list[tuple[float, float]]:
        """How old each amount is, at least, and how much it is."""
        ends = (((bucket + 1) * self.width, amount) for bucket, amount in self._buckets.items())
        return [(max(0.0, now - end), amount) for end, amount in ends]

    def empties(self, now: float) -> float:
        """Seconds until nothing is counted any more."""
        return self._leaves(next(reversed(self._buckets))) - now if self._buckets else 0.0
