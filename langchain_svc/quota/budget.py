"""`SvcBudget`: what a block or an object may use, and not more."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from typing_extensions import Self

from .._forks import new_lock
from .._safe_errors import safe_repr
from .._service import BLOCK_LIMITS, CallSize
from .._wire import LISTED_PRICES, Price, read_prices
from ..errors import SvcBudgetError
from .estimates import Estimates
from .limiter import Hold
from .shared import Shared


@dataclass(frozen=True)
class BudgetUse:
    """Requests, tokens and cost. In `SvcBudget.left`, what is not limited is None."""

    requests: int | None = 0
    tokens: int | None = 0
    cost: float | None = 0.0


class SvcBudget(Shared):
    """A bound on what calls use: the call that would pass it is not sent.

        with SvcBudget(max_requests=100, max_tokens=50_000) as budget:
            agent.invoke(...)
        print(budget.used)

    As a block it counts every call inside, in threads and tasks too; blocks nest. As
    `ChatSvc(budget=...)` it counts the calls of that object, and of others it is given to. Copies
    and pickles of an object share its budget within a process; another process starts its own.

    A request counts when it is sent, so retries do too. Tokens and cost are estimated before a
    call, with all `max_tokens` of its answer where that is set, and counted as the service reports
    them; see docs/quota.md.

    Args:
        max_requests: The most requests.
        max_tokens: The most tokens, in and out together.
        max_cost: The most that chats may cost, in the currency of the prices.
        prices: What tokens cost: the models of `ChatSvc.list_models()`, or by model id
            `{"input": 5.0, "output": 15.0, "per_tokens": 1_000_000}`. Without it, the prices of the
            last listing in this process.

    Raises:
        ValueError: No bound is given, or one is not a number of 0 or more.
        SvcBudgetError: From a call that would pass a bound, or whose cost is not known.
    """

    setting = "budget"

    def __init__(
        self,
        *,
        max_requests: int | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        prices: Mapping[str, Any] | Iterable[Any] | None = None,
    ) -> None:
        bounds = {"max_requests": max_requests, "max_tokens": max_tokens, "max_cost": max_cost}
        for name, value in bounds.items():
            kind = (int, float) if name == "max_cost" else int
            known = isinstance(value, kind) and not isinstance(value, bool)
            if value is not None and not (known and 0 <= value < math.inf):
                wanted = "a number" if name == "max_cost" else "a whole number"
                raise ValueError(f"{name} must be {wanted} of 0 or more, not {safe_repr(value)}")
        if all(value is None for value in bounds.values()):
            raise ValueError("Give at least one of max_requests=, max_tokens= and max_cost=")
        self._bounds = bounds
        self._prices = None if prices is None else read_prices(prices)
        self._lock = new_lock()
        self._requests, self._tokens, self._cost = 0, 0, 0.0
        self._held: list[Hold] = []
        self.estimates = Estimates()
        self._register()

    def _arguments(self) -> dict[str, Any]:
        return {**self._bounds, "prices": self._prices}

    @property
    def counts_tokens(self) -> bool:
        """Whether tokens must be estimated before a call."""
        return self._bounds["max_tokens"] is not None or self._bounds["max_cost"] is not None

    @property
    def used(self) -> BudgetUse:
        """What was used so far by calls that have ended."""
        with self._lock:
            return BudgetUse(self._requests, self._tokens, self._cost)

    @property
    def left(self) -> BudgetUse:
        """What is left; None where it is not limited."""
        with self._lock:
            return BudgetUse(*self._left())

    def _left(self) -> tuple[Any, Any, Any]:
        used = (
            self._requests + len(self._held),
            self._tokens + sum(hold.tokens for hold in self._held),
            self._cost + sum(hold.cost for hold in self._held),
        )
        pairs = zip(self._bounds.values(), used, strict=True)
        left = (None if most is None else max(0, most - taken) for most, taken in pairs)
        return tuple(left)  # type: ignore[return-value]  # three of them

    def hold(self, size: CallSize, prompt: int, estimates: Estimates) -> Hold | SvcBudgetError:
        """Take what a call may use, or say why it may not be sent."""
        tokens, cost, price = 0, 0.0, None
        if size.metered and self.counts_tokens:
            # All that an answer may take, where that is known: then nothing is passed.
            answer = size.max_tokens or estimates.answer(None)
            tokens = prompt + answer
        if self._bounds["max_cost"] is not None and not size.free:
            price = self._price(size)
            if price is None:
                return self._unpriced(size)
            cost = price.input * prompt + price.output * (tokens - prompt)
        hold = Hold(tokens, cost, prompt, price)
        with self._lock:
            left = self._left()
            asked = (1, tokens, cost)
            short = [
                index
                for index, (has, wants) in enumerate(zip(left, asked, strict=True))
                if has is not None and wants > has
            ]
            if not short:
                self._held.append(hold)
                return hold
            return self._passed(short[0], left, asked)

    def _price(self, size: CallSize) -> Price | None:
        if not size.metered:
            return None
        return (LISTED_PRICES if self._prices is None else self._prices).get(size.model or "")

    def _unpriced(self, size: CallSize) -> SvcBudgetError:
        what = f"model {safe_repr(size.model)}" if size.metered else "this endpoint"
        known = ", ".join(sorted(LISTED_PRICES if self._prices is None else self._prices)) or "none"
        return SvcBudgetError(
            f"No price of {what} is known, so max_cost cannot be kept: nothing was sent. Known are "
            f"prices of: {known}. Call ChatSvc.list_models() once, give "
            'SvcBudget(prices={"model": {"input": ..., "output": ..., "per_tokens": 1_000_000}}), '
            "or bound it by max_requests= or max_tokens=",
            used=self.used,
            left=self.left,
        )

    def _passed(
        self, index: int, left: tuple[Any, ...], asked: tuple[int, int, float]
    ) -> SvcBudgetError:
        name = ("max_requests", "max_tokens", "max_cost")[index]
        most, used = self._bounds[name], (self._requests, self._tokens, self._cost)[index]
        form = ",.6g" if name == "max_cost" else ",d"
        sent = len(self._held)
        on_way = f", {sent} call{' is' if sent == 1 else 's are'} on the way" if sent else ""
        return SvcBudgetError(
            f"The budget's {name}={most:{form}} would be passed: {used:{form}} used{on_way}, "
            f"{left[index]:{form}} left, and this call asks for {asked[index]:{form}}. Nothing was "
            f"sent. Make it smaller, or give SvcBudget a larger {name}",
            used=BudgetUse(self._requests, self._tokens, self._cost),
            left=BudgetUse(*left),
        )

    def settle(
        self,
        hold: Hold,
        *,
        sent: bool,
        tokens: int | None,
        usage: tuple[int | None, int | None, int] | None,
    ) -> None:
        """Count what a call used in the end; `tokens` is None where that is not known."""
        used = hold.tokens if tokens is None else tokens
        asked = hold.prompt if usage is None or usage[0] is None else usage[0]
        asked = min(asked, used)
        cost = 0.0
        if hold.price is not None:
            cost = hold.price.input * asked + hold.price.output * (used - asked)
        with self._lock:
            self._held.remove(hold)
            if sent:
                self._requests += 1
                self._tokens += used
                self._cost += cost

    def __enter__(self) -> Self:
        BLOCK_LIMITS.set((*BLOCK_LIMITS.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        budgets = BLOCK_LIMITS.get()
        if self in budgets:
            last = len(budgets) - 1 - budgets[::-1].index(self)
            BLOCK_LIMITS.set(budgets[:last] + budgets[last + 1 :])

    def __repr__(self) -> str:
        bounds = ", ".join(f"{k}={v!r}" for k, v in self._bounds.items() if v is not None)
        return f"SvcBudget({bounds}, used={self.used})"
