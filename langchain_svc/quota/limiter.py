"""What a call asks before each of its tries: the key's quota, and the budgets it runs under."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from uuid import uuid4
from weakref import WeakValueDictionary

from typing_extensions import Self

from .._base.safe_errors import safe_repr
from .._base.threads import new_lock
from .._service import BLOCK_LIMITS, CallSize, Wait
from .._wire import Price, rate_limit_of, read_prices
from ..errors import SvcBudgetError, SvcConnectionError, SvcError, SvcRateLimitError
from .budget_accounts import (
    PERIODS_OF_BUDGETS,
    Amounts,
    Bounds,
    BudgetAccount,
    MemoryBudget,
    Reservation,
    Standing,
    add,
)
from .estimates import BYTES_A_TOKEN, Estimates, Used, read_usage
from .ledger import BULK, INTERACTIVE, Ledger, Outcome, Ticket
from .plans import DAY, MEMORY, PERIODS, key_digest

BULK_JOB: ContextVar[str | None] = ContextVar("langchain_svc_bulk_job", default=None)

_LOOK = 0.25  # seconds between two answers whose headers are read
_LIVE: WeakValueDictionary[str, Any] = WeakValueDictionary()


class Shared:
    """A quota or a budget: copies and pickles share it within a process.

    Another process makes its own, once.
    """

    setting: str  # the parameter that takes it
    _given: dict[str, Any]  # the arguments of the constructor

    def __init__(self) -> None:
        self.estimates = Estimates()
        self._lock = new_lock()
        self._id = uuid4().hex
        _LIVE[self._id] = self

    def limiter(
        self, interface: str, key: str, size: CallSize, limits: tuple[Any, ...]
    ) -> CallLimiter:
        """What a call under all these limits asks before each try."""
        quota = next((limit for limit in limits if limit.setting == "quota"), None)
        budgets = tuple(
            dict.fromkeys(limit for limit in limits if limit.setting == "budget")
        )
        account = None if quota is None else quota.account(interface, key)
        return CallLimiter(account, budgets, size, (quota or budgets[0]).estimates)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: Any) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self._id, self._given)


def _restored(kind: type[Any], id_: str, arguments: dict[str, Any]) -> Any:
    found = _LIVE.get(id_)
    if found is None:
        found = _LIVE[id_] = kind(**arguments)
        found._id = id_  # noqa: SLF001  # our own class
    return found


# -- budgets -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BudgetUse:
    """Requests, tokens and cost. In `SvcBudget.left`, what is not limited is None."""

    requests: int | None = 0
    tokens: int | None = 0
    cost: float | None = 0.0


class Hold(NamedTuple):
    """What a call that is on its way may use of a budget."""

    budget: SvcBudget
    tokens: int
    prompt: int
    price: Price | None
    reservation: Reservation | None = None  # None until the account has granted it

    def use(self, prompt: int, tokens: int) -> Amounts:
        """The request, the tokens and the cost of a call that took so much."""
        if self.price is None:
            return 1, tokens, 0.0
        answer = tokens - prompt
        return 1, tokens, self.price.input * prompt + self.price.output * answer


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
        self._given = {
            **bounds,
            "prices": self._prices,
            "storage": place,  # without a password
            "key": key,
            "period": period,
        }
        self.local = self._account.local
        self.estimates = self._account.estimates
        # Whether tokens must be estimated before a call.
        self.counts_tokens = max_tokens is not None or max_cost is not None

    @property
    def used(self) -> BudgetUse:
        """What was used so far, in this period, by calls that have ended."""
        return BudgetUse(*self._account.look().used)

    @property
    def left(self) -> BudgetUse:
        """What is left; None where it is not limited."""
        return self._left(self._account.look())

    def _left(self, standing: Standing) -> BudgetUse:
        left: list[Any] = []
        taken = add(standing.used, standing.reserved)
        for bound, amount in zip(self._bounds.values(), taken, strict=True):
            left.append(None if bound is None else max(0, bound - amount))
        return BudgetUse(*left)

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
            self._given = {**self._given, **self._bounds}

    def hold(
        self, size: CallSize, prompt: int, estimates: Estimates, left: float
    ) -> Hold | Wait:
        """Take what a call may use, or how long to wait until that can be decided.

        Raises:
            SvcBudgetError: It would pass a bound, or its price is not known.
            SvcConnectionError: The storage does not answer.
        """
        hold = self._request(size, prompt, estimates)
        most = hold.use(hold.prompt, hold.tokens)
        standing = self._account.reserve(most, self._values(), left)
        return self._granted(hold, most, standing, left)

    async def ahold(
        self, size: CallSize, prompt: int, estimates: Estimates, left: float
    ) -> Hold | Wait:
        """The async version of `hold`."""
        hold = self._request(size, prompt, estimates)
        most = hold.use(hold.prompt, hold.tokens)
        standing = await self._account.areserve(most, self._values(), left)
        return self._granted(hold, most, standing, left)

    def _values(self) -> Bounds:
        return (
            self._bounds["max_requests"],  # type: ignore[return-value]  # whole numbers, as checked
            self._bounds["max_tokens"],
            self._bounds["max_cost"],
        )

    def _request(self, size: CallSize, prompt: int, estimates: Estimates) -> Hold:
        """What a call may use at most."""
        tokens = 0
        if size.metered and self.counts_tokens:
            # All that an answer may take, where that is known: then nothing is passed.
            tokens = prompt + (size.max_tokens or estimates.answer(None))
        return Hold(self, tokens, prompt if tokens else 0, self._price(size))

    def _granted(
        self, hold: Hold, most: Amounts, standing: Standing, left: float
    ) -> Hold | Wait:
        """The call's share, if the account has granted it."""
        if standing.reservation is not None:
            return hold._replace(reservation=standing.reservation)
        wait = standing.wait
        if wait is None:
            raise self._passed(most, standing)
        if wait.turn > left:
            error = SvcConnectionError(
                f"The budget's storage {self._given['storage']} has just started, and waits "
                f"{wait.turn:.1f} s for processes that know what was used; nothing was sent. Try "
                "again then, or allow a larger deadline="
            )
            error.retry_after = wait.turn
            raise error
        return wait

    def _price(self, size: CallSize) -> Price | None:
        if self._bounds["max_cost"] is None or size.free:
            return None
        prices = size.prices if self._prices is None else self._prices
        price = prices.get(size.model or "") if size.metered else None
        if price is None:
            what = f"model {safe_repr(size.model)}" if size.metered else "this endpoint"
            raise SvcBudgetError(
                f"No price of {what} is known, so max_cost cannot be kept: nothing was sent. "
                f"Known are prices of: {', '.join(sorted(prices)) or 'none'}. Call "
                'ChatSvc.list_models() once, give SvcBudget(prices={"model": {"input": ..., '
                '"output": ..., "per_tokens": 1_000_000}}), or bound it by max_requests= or '
                "max_tokens=",
                **self._standing_at_hand(),
            )
        return price

    def _standing_at_hand(self) -> dict[str, BudgetUse]:
        """What can be said without I/O, which may not hold up an event loop."""
        if not self.local:
            return {}
        return {"used": self.used, "left": self.left}

    def _passed(self, most: Amounts, standing: Standing) -> SvcBudgetError:
        """Why a call is not sent: the first bound that it would pass."""
        left = self._left(standing)
        free_of_each = (left.requests, left.tokens, left.cost)
        bounded: list[tuple[str, float, float, float]] = []
        for name, used, free, wanted in zip(
            self._bounds, standing.used, free_of_each, most, strict=True
        ):
            if free is not None:
                bounded.append((name, used, free, wanted))
        # An error of rounding may let none seem passed, which Redis has refused.
        passed = [row for row in bounded if row[3] > row[2]] or bounded
        name, used, free, wanted = passed[0]
        form = ",.6g" if name == "max_cost" else ",d"
        of_period = f" of this {self._period}" if self._period else ""
        calls = standing.calls
        on_the_way = ""
        if calls:
            on_the_way = f", {calls} call{' is' if calls == 1 else 's are'} on the way"
        advice = f"Make it smaller, or give SvcBudget a larger {name}"
        if self._period:
            advice += f"; the next {self._period} (UTC) begins anew"
        error = SvcBudgetError(
            f"The budget's {name}={self._bounds[name]:{form}}{of_period} would be exceeded: "
            f"{used:{form}} used{on_the_way}, {free:{form}} left, and this call asks for "
            f"{wanted:{form}}. Nothing was sent. {advice}",
            used=BudgetUse(*standing.used),
            left=left,
        )
        error.budget_id = self._id
        return error

    def raised(self, error: SvcBudgetError) -> bool:
        """Whether it is a bound of this budget that a call would have exceeded."""
        return error.budget_id == self._id

    def settle(
        self, hold: Hold, *, sent: bool, tokens: int | None, prompt: int | None
    ) -> None:
        """Count what a call used in the end, as far as it is known."""
        assert hold.reservation is not None  # noqa: S101  # only such holds are kept
        if not sent:
            self._account.settle(hold.reservation, None)
            return
        tokens = hold.tokens if tokens is None else tokens
        prompt = hold.prompt if prompt is None else prompt
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
            f"{k}={v!r}" for k, v in self._bounds.items() if v is not None
        )
        if not self.local:  # whose use only Redis knows
            return f"SvcBudget({bounds}, storage={self._given['storage']!r})"
        return f"SvcBudget({bounds}, used={self.used})"


def _check_bounds(bounds: Mapping[str, float | None]) -> None:
    """Raise a ValueError where a bound is not a number of 0 or more."""
    for name, value in bounds.items():
        if value is None:
            continue
        kind = (int, float) if name == "max_cost" else int
        is_number = isinstance(value, kind) and not isinstance(value, bool)
        if not (is_number and 0 <= value < math.inf):
            wanted = "a number" if name == "max_cost" else "a whole number"
            raise ValueError(
                f"{name} must be {wanted} of 0 or more, not {safe_repr(value)}"
            )


def _account_of(
    storage: str, key: str | None, period: str | None
) -> tuple[BudgetAccount, str]:
    """Where the use of a budget is counted, and how errors name that place."""
    if key is not None and not (isinstance(key, str) and key):
        raise ValueError(f"key must be a text such as 'user:42', not {safe_repr(key)}")
    if storage == MEMORY:
        if key is not None:
            raise ValueError(
                "key= names a budget that processes share, so it needs "
                'storage="redis://host:port/0". In memory an object has its own'
            )
        return MemoryBudget(period), MEMORY
    from .redis_budget import account_in  # noqa: PLC0415  # an extra
    from .redis_store import link_to, place_of  # noqa: PLC0415  # the same

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
    """One call's place before its quota and its budgets."""

    def __init__(
        self,
        account: Ledger | None,
        budgets: tuple[SvcBudget, ...],
        size: CallSize,
        estimates: Estimates,
    ) -> None:
        self.account, self.budgets, self.size, self.estimates = (
            account,
            budgets,
            size,
            estimates,
        )
        # Whether asking needs no I/O.
        self.local = (account is None or account.local) and all(
            b.local for b in budgets
        )
        job = BULK_JOB.get()
        self._ticket = Ticket(
            priority=INTERACTIVE if job is None else BULK, party=job or ""
        )
        self._holds: list[Hold] = []
        self._prompt = 0
        # Estimates are made only where something counts tokens.
        counted = account is not None and account.counts_tokens
        if size.metered and (
            counted or any(budget.counts_tokens for budget in budgets)
        ):
            self._prompt = estimates.prompt(size.body)
            self._ticket.tokens = self._prompt + estimates.answer(size.max_tokens)

    def acquire(self, left: float) -> Wait | SvcError | None:
        """None where the call may be sent; else how long to wait, or why not."""
        self._ticket.left = left
        try:
            for budget in self._open_budgets():
                hold = budget.hold(self.size, self._prompt, self.estimates, left)
                if isinstance(hold, Wait):
                    return hold
                self._holds.append(hold)
            wait = None if self.account is None else self.account.ask(self._ticket)
            return self._answer(wait, left)
        except SvcError as failed:
            self._release()
            return failed.with_traceback(None)

    async def aacquire(self, left: float) -> Wait | SvcError | None:
        """The async version of `acquire`."""
        self._ticket.left = left
        try:
            for budget in self._open_budgets():
                hold = await budget.ahold(self.size, self._prompt, self.estimates, left)
                if isinstance(hold, Wait):
                    return hold
                self._holds.append(hold)
            wait = (
                None if self.account is None else await self.account.aask(self._ticket)
            )
            return self._answer(wait, left)
        except SvcError as failed:
            self._release()
            return failed.with_traceback(None)

    def _open_budgets(self) -> tuple[SvcBudget, ...]:
        """Those that hold nothing for the call yet."""
        return self.budgets[len(self._holds) :]

    def _answer(self, wait: Wait | None, left: float) -> Wait | None:
        if wait is None or wait.turn <= left:
            return wait
        self.leave()
        period = next(
            (f"{name}'s" for name, n in PERIODS.items() if n == wait.period), "plan's"
        )
        error = SvcRateLimitError(
            f"The {period} quota is used up: this call's turn comes in {wait.turn:,.0f} s, and its "
            f"deadline leaves {max(0.0, left):,.0f} s. Nothing was sent. Come back then, or "
            "allow a larger deadline=",
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
        """What became of a try that was let through; see `RateLimiter`. It waits for nothing."""
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
        now = time.time()
        if headers and (refused or not 0 <= now - self.estimates.looked_at < _LOOK):
            # What others use changes slowly, and reading it costs as much as all the rest here.
            limits = rate_limit_of(headers, now)
            if limits is not None:
                self.estimates.looked_at = now
        self.account.settle(
            self._ticket, Outcome(sent, tokens, status, retry_after, limits)
        )

    def leave(self) -> None:
        """The call is given up: it waits no more, and what it held is free again."""
        self._release()
        if self.account is not None:
            self.account.leave(self._ticket)

    def _release(
        self, *, sent: bool = False, tokens: int | None = 0, used: Used | None = None
    ) -> None:
        holds, self._holds = self._holds, []
        for hold in holds:
            hold.budget.settle(
                hold, sent=sent, tokens=tokens, prompt=used and used.prompt
            )


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
