"""The plan limits: fixed windows that begin with a key's first request in them.

v1 API, section 8, and general API, section 8. The medical document gives no limits, so that
interface has no meter. Requests are counted when they are admitted, tokens when the answer is
known; a window whose tokens are used up admits nobody until it ends.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass

MINUTE = 60.0
HOUR = 3_600.0
DAY = 86_400.0

# Each limit: a unit, an amount of it, and the window's seconds.
Limits = tuple[tuple[str, int, float], ...]


def _v1(per_minute: int, per_hour: int, tokens: int) -> Limits:
    return (
        ("requests", per_minute, MINUTE),
        ("requests", per_hour, HOUR),
        ("tokens", tokens, MINUTE),
    )


def _general(per_minute: int, per_day: int, tokens: int) -> Limits:
    return (
        ("requests", per_minute, MINUTE),
        ("requests", per_day, DAY),
        ("tokens", tokens, DAY),  # the document does not show their period
    )


# The v1 document has no Starter row: such a key gets the Free row there. Its Enterprise row is
# "custom", but every response needs numbers for the headers: these are out of reach.
V1_PLANS = {
    "free": _v1(3, 100, 50_000),
    "starter": _v1(3, 100, 50_000),
    "pro": _v1(60, 3_000, 500_000),
    "enterprise": _v1(1_000_000, 60_000_000, 1_000_000_000),
}
GENERAL_PLANS: dict[str, Limits] = {
    "free": _general(10, 100, 10_000),
    "starter": _general(60, 10_000, 100_000),
    "pro": _general(300, 100_000, 1_000_000),
    "enterprise": (),
}


@dataclass
class _Window:
    """At most `amount` of "requests" or "tokens" in `seconds`, and how many were used."""

    unit: str
    amount: int
    seconds: float
    used: int = 0
    began: float | None = None

    def restart_if_over(self, now: float) -> None:
        if self.began is not None and now >= self.began + self.seconds:
            self.began = None
            self.used = 0

    def use(self, now: float, amount: int) -> None:
        if self.began is None:
            self.began = now
        self.used += amount

    @property
    def remaining(self) -> int:
        return max(0, self.amount - self.used)

    def ends(self, now: float) -> float:
        if self.began is None:
            return now + self.seconds
        return self.began + self.seconds


class Meter:
    """Counts one key's requests and tokens on one interface; safe to use from any thread."""

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._windows = [_Window(*limit) for limit in limits]

    def admit(self) -> float:
        """Count one request and return 0, or return the seconds to wait and count nothing."""
        with self._lock:
            now = self._restart_windows()
            waits = [
                window.ends(now) - now
                for window in self._windows
                if window.remaining == 0
            ]
            if waits:
                return max(waits)
            for window in self._of("requests"):
                window.use(now, 1)
            return 0.0

    def charge(self, tokens: int) -> None:
        with self._lock:
            now = self._restart_windows()
            for window in self._of("tokens"):
                window.use(now, tokens)

    def standing(self) -> tuple[int, int, float]:
        """The limit, the remaining requests and the end of the tightest request window.

        The tightest is the one with the least remaining; the later end breaks a tie.
        """
        with self._lock:
            now = self._restart_windows()
            window = min(
                self._of("requests"),
                key=lambda window: (window.remaining, -window.ends(now)),
            )
            return window.amount, window.remaining, window.ends(now)

    def windows(self) -> list[dict[str, object]]:
        """Every limit with its use, and the seconds until its window ends."""
        with self._lock:
            now = self._restart_windows()
            return [
                {**vars(window), "ends_in": window.ends(now) - now}
                for window in self._windows
            ]

    def _of(self, unit: str) -> list[_Window]:
        return [window for window in self._windows if window.unit == unit]

    def _restart_windows(self) -> float:
        """Restart the windows that are over, and return the time now."""
        now = self._clock()
        for window in self._windows:
            window.restart_if_over(now)
        return now
