"""The retry budget: what the calls of one object owe a failing service together.

A retry takes a token of a store, a good answer puts half a one back, and time a few: beyond a first
store, retries stay below half of the good answers, whatever `max_retries` says. A first try takes
none, so that nobody's failures keep another's call from being sent; nor does a retry after a 429,
where the wait it was told is its brake. When the service last answered tells an outage from a
prompt that always fails.

There is no lock: a count that two threads change at once may lose a token, which harms nobody.
"""

from __future__ import annotations

STORE = 100.0
REFILL = 0.5
TOKENS_A_SECOND = 10.0


class RetryBudget:
    """The tokens of one object. Copies and pickles begin with a full store."""

    def __init__(self) -> None:
        self._tokens = STORE
        self._counted = 0.0  # when time last gave tokens
        self.answered_at = float(
            "-inf"
        )  # when the last request was sent that was answered

    def __reduce__(self) -> tuple[type[RetryBudget], tuple[()]]:
        return RetryBudget, ()

    def take(self, now: float) -> bool:
        """Whether there is a token for a retry, which is then gone."""
        earned = TOKENS_A_SECOND * max(0.0, now - self._counted)
        self._tokens, self._counted = min(STORE, self._tokens + earned), now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def succeeded(self) -> None:
        """A whole good answer came."""
        self._tokens = min(STORE, self._tokens + REFILL)
