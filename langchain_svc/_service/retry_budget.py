"""The retry budget: what the calls of one object owe a failing service together.

A retry takes a token of a store, a good answer puts half a one back, and time a few: beyond a first
store, retries stay below half of the good answers, whatever `max_retries` says. A first try takes
none, so that nobody's failures keep another's call from being sent; nor does a retry after a 429,
where the wait that the service asked for is its brake. When the service last answered tells an
outage from a prompt that always fails.

There is no lock: a count that two threads change at once may lose a token, which harms nobody.
"""

from __future__ import annotations

STORE = 100.0
REFILL = 0.5
TOKENS_A_SECOND = 10.0


class RetryBudget:
    """The tokens of one object. Copies and pickles begin with a full store.

    Attributes:
        answered_at: When the newest request was sent that the service has answered.
    """

    def __init__(self) -> None:
        self._tokens = STORE
        self._refilled_at = 0.0
        self.answered_at: float = float("-inf")

    def __reduce__(self) -> tuple[type[RetryBudget], tuple[()]]:
        return RetryBudget, ()

    def take_token(self, now: float) -> bool:
        """Takes a token for a retry; False where there is none."""
        earned = TOKENS_A_SECOND * max(0.0, now - self._refilled_at)
        self._tokens = min(STORE, self._tokens + earned)
        self._refilled_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def record_success(self) -> None:
        """Refills the store a little: a whole good answer came."""
        self._tokens = min(STORE, self._tokens + REFILL)
