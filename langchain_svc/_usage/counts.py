"""What calls came to, in memory that does not grow with their number."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any

_STEP = math.log(1.05)  # each size is 5% more than the one before
_SHORTEST, _LONGEST = 1e-6, 1e6  # seconds: 567 sizes


@dataclass
class Durations:
    """How long calls took: their sum in seconds, and quantiles that are right within 2.5%.

    Durations are counted by size, so that two add up and memory is bounded. (ddsketch does the
    same; it would be a dependency of everybody for these few lines.)
    """

    count: int = 0
    total: float = 0.0
    sizes: Counter[int] = field(default_factory=Counter)

    def add(self, seconds: float) -> None:
        """Count one."""
        self.count += 1
        self.total += seconds
        self.sizes[round(math.log(min(max(seconds, _SHORTEST), _LONGEST)) / _STEP)] += 1

    def quantile(self, share: float) -> float | None:
        """The seconds within which this share of the calls ended; None where there were none.

        Args:
            share: 0 to 1: 0.5 is the median.
        """
        left = math.ceil(share * self.count)
        for size, count in sorted(self.sizes.items()):
            left -= count
            if left <= 0:
                return math.exp(size * _STEP)
        return None

    def __add__(self, other: Durations) -> Durations:
        total = self.total + other.total
        return Durations(self.count + other.count, total, self.sizes + other.sizes)

    def to_dict(self) -> dict[str, Any]:
        """Count, sum and quantiles, in seconds."""
        quantiles = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
        found = {name: self.quantile(share) for name, share in quantiles.items()}
        return {"count": self.count, "total": self.total, **found}


@dataclass
class ModelUsage:
    """What the calls of one model or tool came to.

    Attributes:
        calls: Calls that reached the service, however they ended.
        cache_hits: Calls that LangChain's cache answered; they count neither as spend nor as calls.
        stopped: Calls that the caller left early.
        input_tokens: Tokens in, as the service counted them.
        output_tokens: Tokens out, as the service counted them.
        estimated_input_tokens: Tokens in of the calls for which the service sent no counts.
        estimated_output_tokens: Tokens out of those calls.
        unsplit_tokens: Tokens of which only the sum is known, as of `SvcLLM`.
        retries: How often a request was sent again.
        waited: Seconds spent waiting between tries.
        errors: How many calls failed, by the error's name.
        cost: What the tokens cost, by currency, where the handler has prices.
        unpriced_calls: Calls with tokens whose price is not known, where the handler has prices.
        duration: How long the calls took, from start to end.
        first_token: How long those that streamed took to their first token.
    """

    calls: int = 0
    cache_hits: int = 0
    stopped: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    estimated_input_tokens: int = 0
    estimated_output_tokens: int = 0
    unsplit_tokens: int = 0
    retries: int = 0
    waited: float = 0.0
    errors: Counter[str] = field(default_factory=Counter)
    cost: dict[str, float] = field(default_factory=dict)
    unpriced_calls: int = 0
    duration: Durations = field(default_factory=Durations)
    first_token: Durations = field(default_factory=Durations)

    @property
    def total_tokens(self) -> int:
        """All tokens, counted and estimated."""
        estimated = self.estimated_input_tokens + self.estimated_output_tokens
        return self.input_tokens + self.output_tokens + estimated + self.unsplit_tokens

    def add_tokens(self, tokens_in: int, tokens_out: int, *, estimated: bool) -> None:
        """Count the tokens of one call."""
        if estimated:
            self.estimated_input_tokens += tokens_in
            self.estimated_output_tokens += tokens_out
        else:
            self.input_tokens += tokens_in
            self.output_tokens += tokens_out

    def add_cost(self, amount: float, currency: str) -> None:
        """Count what a call cost."""
        self.cost[currency] = self.cost.get(currency, 0.0) + amount

    def __add__(self, other: ModelUsage) -> ModelUsage:
        names = [each.name for each in fields(self) if each.name != "cost"]
        made = ModelUsage(**{name: getattr(self, name) + getattr(other, name) for name in names})
        for currency, amount in (*self.cost.items(), *other.cost.items()):
            made.add_cost(amount, currency)
        return made

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts and numbers."""
        made = {each.name: getattr(self, each.name) for each in fields(self)}
        return made | {
            "errors": dict(self.errors),
            "cost": dict(self.cost),
            "duration": self.duration.to_dict(),
            "first_token": self.first_token.to_dict(),
        }
