"""The limits that a call obeys before each try: the key's quota, and the budgets around it."""

from __future__ import annotations

import hmac
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self
from uuid import uuid4
from weakref import WeakValueDictionary

from .._base.safe_errors import safe_repr
from .._base.shown import plain
from .._base.threads import new_lock
from .._client import BLOCK_LIMITS, CallSize, Wait
from .._wire import Price, rate_limit_of, read_prices
from ..errors import SvcBudgetError, SvcConnectionError, SvcError, SvcRateLimitError
from .budget_accounts import (
    BILLION,
    PERIODS_OF_BUDGETS,
    Amounts,
    Bounds,
    BudgetAccount,
    MemoryBudget,
    Reservation,
    Standing,
    add,
    in_billionths,
)
from .estimates import BYTES_A_TOKEN, Estimates, Used, read_usage
from .ledger import BULK, DAY, PERIODS, Ledger, Outcome, Ticket

MEMORY = "memory"  # the storage of a process by itself
BULK_JOB: ContextVar[str | None] = ContextVar("langchain_svc_bulk_job", default=None)

_HEADERS_EVERY = 0.25  # seconds between two answers whose headers are read
_LIVE: WeakValueDictionary[str, Shared] = WeakValueDictionary()


class Shared:
    """A quota or a budget: copies and pickles share it within a process.

    Another process makes its own, once.
    """

    setting: str  # the parameter that takes it
    _arguments: dict[str, Any]  # of the constructor

    def __init__(self) -> None:
        self.estimates: Estimates = Estimates()
        self._lock = new_lock()
        self._id = uuid4().hex
        _LIVE[self._id] = self

    def limiter(
        self, interface: str, key: str, size: CallSize, limits: tuple[Any, ...]
    ) -> CallLimiter:
        """The limiter of a call that runs under all these limits."""
        quota = next((limit for limit in limits if limit.setting == "quota"), None)
        budgets = tuple(
            dict.fromkeys(limit for limit in limits if limit.setting == "budget")
        )
        if quota is None:
            return CallLimiter(None, budgets, size, budgets[0].estimates)
        account = quota.account(interface, key)
        return CallLimiter(account, budgets, size, quota.estimates)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self._id, self._arguments)


def _restored(kind: type[Shared], id_: str, arguments: dict[str, Any]) -> Shared:
    shared = _LIVE.get(id_)
    if shared is None:
        shared = kind(**arguments)
        shared._id = id_  # noqa: SLF001  # our own class
        _LIVE[id_] = shared
    return shared


def key_digest(key: str) -> str:
    """A name of the key, for Redis too, from which nobody can compute the key."""
    return hmac.digest(b"langchain-svc quota", key.encode(), "sha256").hex()[:32]


# -- budgets -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BudgetUse:
    """Requests, tokens and cost. In `SvcBudget.left`, what is not limited is None."""

    requests: int | None = 0
    tokens: int | None = 0
    cost: float | None = 0.0


_UNITS = ("requests", "tokens", "cost")


def _use_of(amounts: Sequence[int | None]) -> BudgetUse:
    """The amounts of an account, as users read them."""
    requests, tokens, billionths = amounts
    cost = None
    if billionths is not None:
        cost = billionths / BILLION
    return BudgetUse(requests, tokens, cost)


class Hold(NamedTuple):
    """The share of a budget that a call on its way may use."""

    budget: SvcBudget
    tokens: int
    prompt: int
    price: Price | None
    reservation: Reservation | None = None  # None until the account has granted it

    def use(self, prompt: int, tokens: int) -> Amounts:
        """The request, the tokens and the cost of a call with these tokens."""
        if self.price is None:
            return 1, tokens, 0
        answer = tokens - prompt
        cost = self.price.input * prompt + self.price.output * answer
        return 1, tokens, in_billionths(cost)


class SvcBudget(Shared):
    """A bound on what calls use: a call that would exceed it is not sent.

        with SvcBudget(max_requests=100, max_tokens=50_000) as budget:
            agent.invoke(...)
        print(budget.used)

    As a block it counts every call inside, in threads and tasks too; blocks nest. As
    `ChatSvc(budget=...)` it counts the calls of that object, and of others it is given to. Copies
    and pickles of an object share its budget within a process. Processes and machines share it
    through Redis:

        SvcBudget(max_tokens=1_000_000, storage="redis://host:6379/0", key="user:42", period="day")

    A request counts when it is sent, so retries do too. Tokens and cost are estimated before a
    call, with all `max_tokens` of its answer where that is set, and counted as the service reports
    them; see docs/quota.md.

    Args:
        max_requests: The most requests.
        max_tokens: The most tokens, in and out together.
        max_cost: The most that chats may cost, in the currency of the prices.
        prices: What tokens cost: the models of `ChatSvc.list_models()`, or by model id
            `{"input": 5.0, "output": 15.0, "per_tokens": 1_000_000}`. Without it, those of the
            last `list_models()` in this process with the call's address and key.
        storage: "memory", or "redis://host:port/0" (with `pip install "langchain-svc[redis]"`).
        key: Whose budget it is, in Redis: budgets of the same key and period are one account.
        period: "hour", "day" or "month" (of the calendar, in UTC) after which it begins anew; None
            for a budget that never does.

    Raises:
        ValueError: No bound is given, or an argument is not one of these; the error lists them.
        SvcBudgetError: From a call that would exceed a bound, or whose cost is not known.
        SvcConnectionError: From a call, `used` or `left`, while Redis does not answer.
    """

    setting = "budget"

    def __init__(
        self,
        *,
        max_requests: int | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
        prices: Mapping[str, Any] | Iterable[Any] | None = None,
        storage: str = MEMORY,
        key: str | None = None,
        period: Literal["hour", "day", "month"] | None = None,
    ) -> None:
        bounds = {
            "max_requests": max_requests,
            "max_tokens": max_tokens,
            "max_cost": max_cost,
        }
        _check_bounds(bounds)
        if all(value is None for value in bounds.values()):
            raise ValueError(
                "Give at least one of max_requests=, max_tokens= and max_cost="
            )
        if period is not None and period not in PERIODS_OF_BUDGETS:
            raise ValueError(
                f"period must be one of {', '.join(map(repr, PERIODS_OF_BUDGETS))}, or None for a "
                f"budget that never begins anew, not {safe_repr(period)}"
            )
        super().__init__()
        self._bounds = bounds
        self._prices = None if prices is None else read_prices(prices)
        self._period = period
        self._account, place = _account_of(storage, key, period)
        self._arguments = {
            **bounds,
            "prices": self._prices,
            "storage": place,  # without a password
            "key": key,
            "period": period,
        }
        self.local: bool = self._account.local
        self.estimates: Estimates = self._account.estimates
        # Whether tokens must be estimated before a call.
        self.counts_tokens: bool = max_tokens is not None or max_cost is not None

    @property
    def used(self) -> BudgetUse:
        """What was used so far, in this period, by calls that have ended."""
        return _use_of(self._account.look().used)

    @property
    def left(self) -> BudgetUse:
        """What is left; None where it is not limited."""
        return self._left(self._account.look())

    def _left(self, standing: Standing) -> BudgetUse:
        counted = add(standing.used, standing.reserved)
        left: list[int | None] = [*self._values()]
        for index, amount in enumerate(counted):
            bound = left[index]
            if bound is not None:
                left[index] = max(0, bound - amount)
        return _use_of(left)

    def raise_to(
        self,
        *,
        max_requests: int | None = None,
        max_tokens: int | None = None,
        max_cost: float | None = None,
    ) -> None:
        """Raise bounds of this object, such as when a person has allowed more.

        Other objects and processes that share the account keep their own bounds. A bound that is
        higher already stays, and one that was not set is not set now.

        Raises:
            ValueError: A bound is not a number of 0 or more.
        """
        bounds = {
            "max_requests": max_requests,
            "max_tokens": max_tokens,
            "max_cost": max_cost,
        }
        _check_bounds(bounds)
        with self._lock:
            for name, value in bounds.items():
                before = self._bounds[name]
                if value is not None and before is not None:
                    self._bounds[name] = max(value, before)
            self._arguments = {**self._arguments, **self._bounds}

    def hold(
        self, size: CallSize, prompt: int, estimates: Estimates, patience: float
    ) -> Hold | Wait:
        """Reserve what a call may use, or say how long to wait until that can be decided.

        Raises:
            SvcBudgetError: It would pass a bound, or its price is not known.
            SvcConnectionError: The storage does not answer.
        """
        hold = self._largest_hold(size, prompt, estimates)
        most = hold.use(hold.prompt, hold.tokens)
        standing = self._account.reserve(most, self._values(), patience)
        return self._granted(hold, most, standing, patience)

    async def ahold(
        self, size: CallSize, prompt: int, estimates: Estimates, patience: float
    ) -> Hold | Wait:
        """The async version of `hold`."""
        hold = self._largest_hold(size, prompt, estimates)
        most = hold.use(hold.prompt, hold.tokens)
        standing = await self._account.areserve(most, self._values(), patience)
        return self._granted(hold, most, standing, patience)

    def _values(self) -> Bounds:
        cost = self._bounds["max_cost"]
        if cost is not None:
            cost = in_billionths(cost)
        return (
            self._bounds["max_requests"],  # type: ignore[return-value]  # whole numbers, as checked
            self._bounds["max_tokens"],
            cost,
        )

    def _largest_hold(self, size: CallSize, prompt: int, estimates: Estimates) -> Hold:
        """The most that a call may use; the account has not granted it yet."""
        price = self._price(size)
        if not (size.metered and self.counts_tokens):
            return Hold(self, 0, 0, price)
        # If the request limits its answer, the call cannot use more: no bound is ever exceeded.
        tokens = prompt + (size.max_tokens or estimates.answer(None))
        return Hold(self, tokens, prompt, price)

    def _granted(
        self, hold: Hold, most: Amounts, standing: Standing, patience: float
    ) -> Hold | Wait:
        """The call's share, if the account has granted it."""
        if standing.reservation is not None:
            return hold._replace(reservation=standing.reservation)
        wait = standing.wait
        if wait is None:
            raise self._exceeded(most, standing)
        if wait.turn > patience:
            error = SvcConnectionError(
                f"The budget's storage {self._arguments['storage']} has just started, and waits "
                f"{wait.turn:.1f} s for processes that know what was used; this request was not "
                "sent. Try again then, or allow a larger deadline="
            )
            error.retry_after = wait.turn
            raise error
        return wait

    def _price(self, size: CallSize) -> Price | None:
        if self._bounds["max_cost"] is None or size.free:
            return None
        prices = size.prices
        if self._prices is not None:
            prices = self._prices
        priced = "this endpoint"
        price = None
        if size.metered:
            priced = f"model {safe_repr(size.model)}"
            if size.model is None:
                priced = "a model that the service chooses (name one: model=...)"
            price = prices.get(size.model or "")
        if price is not None:
            return price
        standing: dict[str, BudgetUse] = {}
        if self.local:  # I/O would hold up an event loop here
            standing = {"used": self.used, "left": self.left}
        raise SvcBudgetError(
            f"No price of {priced} is known, so max_cost cannot be kept: nothing was sent. "
            f"Known are prices of: {', '.join(sorted(prices)) or 'none'}. Call "
            "ChatSvc.list_models() once, if it lists prices, give "
            'SvcBudget(prices={"model": {"input": ..., "output": ..., "per_tokens": 1_000_000}}), '
            "or bound it by max_requests= or max_tokens=",
            **standing,
        )

    def _exceeded(self, most: Amounts, standing: Standing) -> SvcBudgetError:
        """The error of a call that is not sent, about the first bound that it would exceed."""
        used = _use_of(standing.used)
        left = self._left(standing)
        requested = _use_of(most)
        limited = [unit for unit in _UNITS if getattr(left, unit) is not None]
        exceeded = [
            unit for unit in limited if getattr(requested, unit) > getattr(left, unit)
        ]
        # Beyond nine millions Redis rounds, and may refuse what exceeds no bound here.
        unit = [*exceeded, *limited][0]
        name = f"max_{unit}"
        shown: Callable[[Any], str] = "{:,}".format
        if unit == "cost":
            shown = plain
        of_period = ""
        advice = f"Make it smaller, retry less (max_retries=), or give SvcBudget a larger {name}"
        if self._period:
            of_period = f" of this {self._period}"
            advice += f"; the next {self._period} (UTC) begins anew"
        on_the_way = ""
        if standing.calls == 1:
            on_the_way = ", 1 call is on the way"
        elif standing.calls:
            on_the_way = f", {standing.calls} calls are on the way"
        error = SvcBudgetError(
            f"The budget's {name}={shown(self._bounds[name])}{of_period} would be exceeded: "
            f"{shown(getattr(used, unit))} used{on_the_way}, {shown(getattr(left, unit))} left, "
            f"and this request asks for {shown(getattr(requested, unit))}. It was not sent. "
            f"{advice}",
            used=used,
            left=left,
        )
        error.budget_id = self._id
        return error

    def raised(self, error: SvcBudgetError) -> bool:
        """Whether a call would have exceeded a bound of this budget."""
        return error.budget_id == self._id

    def settle(
        self, hold: Hold, *, sent: bool, tokens: int | None, prompt: int | None
    ) -> None:
        """Count what a call used; tokens that are not known count as reserved."""
        assert hold.reservation is not None  # noqa: S101  # the caller keeps no others
        if not sent:
            self._account.settle(hold.reservation, None)
            return
        if tokens is None:
            tokens = hold.tokens
        if prompt is None:
            prompt = hold.prompt
        self._account.settle(hold.reservation, hold.use(min(prompt, tokens), tokens))

    def __enter__(self) -> Self:
        BLOCK_LIMITS.set((*BLOCK_LIMITS.get(), self))
        return self

    def __exit__(self, *_: object) -> None:
        budgets = BLOCK_LIMITS.get()
        if self in budgets:
            last = len(budgets) - 1 - budgets[::-1].index(self)
            BLOCK_LIMITS.set(budgets[:last] + budgets[last + 1 :])

    def __repr__(self) -> str:
        bounds = ", ".join(
            f"{name}={value!r}"
            for name, value in self._bounds.items()
            if value is not None
        )
        if not self.local:  # only Redis knows the use
            return f"SvcBudget({bounds}, storage={self._arguments['storage']!r})"
        return f"SvcBudget({bounds}, used={self.used})"


def _check_bounds(bounds: Mapping[str, float | None]) -> None:
    """Raise a ValueError where a bound is not a number of 0 or more."""
    for name, value in bounds.items():
        if value is None:
            continue
        types: tuple[type, ...] = (int,)
        expected = "a whole number"
        if name == "max_cost":
            types = (int, float)
            expected = "a number"
        is_number = isinstance(value, types) and not isinstance(value, bool)
        if not (is_number and 0 <= value < math.inf):
            raise ValueError(
                f"{name} must be {expected} of 0 or more, not {safe_repr(value)}"
            )


def _account_of(
    storage: str, key: str | None, period: str | None
) -> tuple[BudgetAccount, str]:
    """The account of a budget, and the place of its storage as errors name it."""
    is_key = isinstance(key, str) and bool(key)
    if key is not None and not is_key:
        raise ValueError(f"key must be a text such as 'user:42', not {safe_repr(key)}")
    if storage == MEMORY:
        if key is not None:
            raise ValueError(
                "key= names a budget that processes share, so it needs "
                'storage="redis://host:port/0". In memory an object has its own'
            )
        return MemoryBudget(period), MEMORY
    from .redis_accounts import account_in, link_to, place_of  # noqa: PLC0415  # an extra

    place = place_of(storage)
    if key is None:
        raise ValueError(
            "A budget in Redis needs key=, whose budget it is, such as key='user:42': all that "
            "name it share one account"
        )
    name = f"{key_digest(key)}:{period or 'ever'}"
    return account_in(link_to(storage), name, period), place


# -- one call ------------------------------------------------------------------------------------


class CallLimiter:
    """Asks the quota and the budgets of one call before each of its tries."""

    def __init__(
        self,
        account: Ledger | None,
        budgets: tuple[SvcBudget, ...],
        size: CallSize,
        estimates: Estimates,
    ) -> None:
        self.account = account
        self.budgets = budgets
        self.size = size
        self.estimates = estimates
        # Whether acquire() does no I/O.
        self.local: bool = all(budget.local for budget in budgets)
        if account is not None and not account.local:
            self.local = False
        self._ticket = Ticket()
        job = BULK_JOB.get()
        if job is not None:
            self._ticket.priority = BULK
            self._ticket.party = job
        self._holds: list[Hold] = []
        self._prompt = 0
        if size.metered and self._counts_tokens():
            self._prompt = estimates.prompt(size.body)
            self._ticket.tokens = self._prompt + estimates.answer(size.max_tokens)

    def _counts_tokens(self) -> bool:
        if self.account is not None and self.account.counts_tokens:
            return True
        return any(budget.counts_tokens for budget in self.budgets)

    def acquire(self, patience: float) -> Wait | SvcError | None:
        """None where the call may be sent; else how long to wait, or why it may not be."""
        self._ticket.patience = patience
        try:
            for budget in self._budgets_without_hold():
                hold = budget.hold(self.size, self._prompt, self.estimates, patience)
                if isinstance(hold, Wait):
                    return hold
                self._holds.append(hold)
            if self.account is None:
                return None
            wait = self.account.acquire(self._ticket)
            return self._within_patience(wait, patience)
        except SvcError as error:
            self._release()
            return error.with_traceback(None)

    async def aacquire(self, patience: float) -> Wait | SvcError | None:
        """The async version of `acquire`."""
        self._ticket.patience = patience
        try:
            for budget in self._budgets_without_hold():
                hold = await budget.ahold(
                    self.size, self._prompt, self.estimates, patience
                )
                if isinstance(hold, Wait):
                    return hold
                self._holds.append(hold)
            if self.account is None:
                return None
            wait = await self.account.aacquire(self._ticket)
            return self._within_patience(wait, patience)
        except SvcError as error:
            self._release()
            return error.with_traceback(None)

    def _budgets_without_hold(self) -> tuple[SvcBudget, ...]:
        return self.budgets[len(self._holds) :]

    def _within_patience(self, wait: Wait | None, patience: float) -> Wait | None:
        """The wait; a call whose turn comes after its deadline fails at once."""
        if wait is None or wait.turn <= patience:
            return wait
        self.leave()
        owner = "plan's"
        for name, seconds in PERIODS.items():
            if seconds == wait.period:
                owner = f"{name}'s"
        error = SvcRateLimitError(
            f"The {owner} quota is used up: this call's turn comes in {wait.turn:,.0f} s, and its "
            f"deadline leaves {max(0.0, patience):,.0f} s. This request was not sent. Come "
            "back then, or allow a larger deadline=",
            retry_after=wait.turn,
        )
        if wait.period >= DAY:
            error.is_retryable = False
        raise error

    def settle(
        self,
        *,
        sent: bool,
        status: int | None,
        headers: Mapping[str, str] | None,
        usage: Mapping[str, int] | None,
        answered: int | None,
        retry_after: float | None,
    ) -> None:
        """Count the end of a try that was let through; see `RateLimiter`. It waits for nothing."""
        used = read_usage(usage)
        refused = status is not None and not 200 <= status < 300
        tokens: int | None = None
        if used is not None:
            tokens = used.total
            if self._ticket.tokens:
                self.estimates.learn(self.size.body, self._ticket.tokens, used)
        elif not sent or refused or not self.size.metered:
            tokens = 0
        elif answered is not None:
            tokens = self._prompt + answered // BYTES_A_TOKEN
        if self._holds:
            self._release(sent=sent, tokens=tokens, used=used)
        if self.account is None:
            return
        limits = None
        if headers:
            limits = self._limits_of(headers, refused=refused)
        self.account.settle(
            self._ticket, Outcome(sent, tokens, status, retry_after, limits)
        )

    def _limits_of(
        self, headers: Mapping[str, str], *, refused: bool
    ) -> tuple[int, int, float] | None:
        """The limit that an answer's headers report.

        What others use changes slowly, and reading the headers costs as much as all the rest here.
        So most answers are not read; a refusal always is.
        """
        now = time.time()
        is_recent = 0 <= now - self.estimates.headers_read_at < _HEADERS_EVERY
        if is_recent and not refused:
            return None
        limits = rate_limit_of(headers, now)
        if limits is not None:
            self.estimates.headers_read_at = now
        return limits

    def leave(self) -> None:
        """The call is given up: it waits no more, and its holds are free again."""
        self._release()
        if self.account is not None:
            self.account.leave(self._ticket)

    def _release(
        self, *, sent: bool = False, tokens: int | None = 0, used: Used | None = None
    ) -> None:
        holds = self._holds
        self._holds = []
        prompt = None
        if used is not None:
            prompt = used.prompt
        for hold in holds:
            hold.budget.settle(hold, sent=sent, tokens=tokens, prompt=prompt)


@contextmanager
def bulk_priority() -> Iterator[None]:
    """Calls inside the block wait behind interactive ones, where they have a quota.

    Each block is a job of its own: jobs on one key get equal shares, however many calls each has
    waiting.

        with bulk_priority():
            model.batch(prompts)
    """
    before = BULK_JOB.get()
    BULK_JOB.set(uuid4().hex)
    try:
        yield
    finally:
        BULK_JOB.set(before)
