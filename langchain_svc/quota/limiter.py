"""What a call asks before each of its tries: the key's quota, and the budgets it runs under."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import uuid4
from weakref import WeakValueDictionary

from typing_extensions import Self

from .._safe_errors import safe_repr
from .._service import BLOCK_LIMITS, CallSize, Wait
from .._threads import new_lock
from .._wire import Price, rate_limit_of, read_prices
from ..errors import SvcBudgetError, SvcError, SvcRateLimitError
from .estimates import BYTES_A_TOKEN, Estimates, Used, read_usage
from .ledger import BULK, INTERACTIVE, Ledger, Outcome, Ticket
from .plans import DAY, PERIODS

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
        budgets = tuple(dict.fromkeys(limit for limit in limits if limit.setting == "budget"))
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

    def use(self, prompt: int, tokens: int) -> tuple[int, int, float]:
        """The request, the tokens and the cost of a call that took so much."""
        price = self.price
        answer = tokens - prompt
        return 1, tokens, price.input * prompt + price.output * answer if price else 0.0


class SvcBudget(Shared):
    """A bound on what calls use: a call that would exceed it is not sent.

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
            `{"input": 5.0, "output": 15.0, "per_tokens": 1_000_000}`. Without it, those of the
            last `list_models()` in this process with the call's address and key.

    Raises:
        ValueError: No bound is given, or one is not a number of 0 or more.
        SvcBudgetError: From a call that would exceed a bound, or whose cost is not known.
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
        super().__init__()
        self._bounds = bounds
        self._prices = None if prices is None else read_prices(prices)
        self._given = {**bounds, "prices": self._prices}
        self._used: tuple[int, int, float] = (0, 0, 0.0)
        self._held: list[Hold] = []
        # Whether tokens must be estimated before a call.
        self.counts_tokens = max_tokens is not None or max_cost is not None

    @property
    def used(self) -> BudgetUse:
        """What was used so far by calls that have ended."""
        return BudgetUse(*self._used)

    @property
    def left(self) -> BudgetUse:
        """What is left; None where it is not limited."""
        with self._lock:
            return BudgetUse(*self._left())

    def _left(self) -> list[Any]:
        held = [hold.use(hold.prompt, hold.tokens) for hold in self._held]
        taken = (sum(amounts) for amounts in zip(self._used, *held, strict=True))
        pairs = zip(self._bounds.values(), taken, strict=True)
        return [None if most is None else max(0, most - amount) for most, amount in pairs]

    def hold(self, size: CallSize, prompt: int, estimates: Estimates) -> Hold:
        """Take what a call may use.

        Raises:
            SvcBudgetError: It would pass a bound, or its price is not known.
        """
        tokens = 0
        if size.metered and self.counts_tokens:
            # All that an answer may take, where that is known: then nothing is passed.
            tokens = prompt + (size.max_tokens or estimates.answer(None))
        hold = Hold(self, tokens, prompt if tokens else 0, self._price(size))
        asked = hold.use(hold.prompt, tokens)
        with self._lock:
            left = self._left()
            for name, has, wants in zip(self._bounds, left, asked, strict=True):
                if has is not None and wants > has:
                    raise self._passed(name, has, wants, BudgetUse(*left))
            self._held.append(hold)
        return hold

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
                used=self.used,
                left=self.left,
            )
        return price

    def _passed(self, name: str, has: float, wants: float, left: BudgetUse) -> SvcBudgetError:
        form = ",.6g" if name == "max_cost" else ",d"
        used = dict(zip(self._bounds, self._used, strict=True))[name]
        sent = len(self._held)
        way = f", {sent} call{' is' if sent == 1 else 's are'} on the way" if sent else ""
        return SvcBudgetError(
            f"The budget's {name}={self._bounds[name]:{form}} would be exceeded: {used:{form}} used"
            f"{way}, {has:{form}} left, and this call asks for {wants:{form}}. Nothing was sent. "
            f"Make it smaller, or give SvcBudget a larger {name}",
            used=self.used,
            left=left,
        )

    def settle(self, hold: Hold, *, sent: bool, tokens: int | None, prompt: int | None) -> None:
        """Count what a call used in the end, as far as it is known."""
        tokens = hold.tokens if tokens is None else tokens
        took = hold.use(min(hold.prompt if prompt is None else prompt, tokens), tokens)
        with self._lock:
            self._held.remove(hold)
            if sent:
                requests, before, cost = self._used
                self._used = (requests + 1, before + tokens, cost + took[2])

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
        self.account, self.budgets, self.size, self.estimates = account, budgets, size, estimates
        self.local = account is None or account.local  # whether asking needs no I/O
        job = BULK_JOB.get()
        self._ticket = Ticket(priority=INTERACTIVE if job is None else BULK, party=job or "")
        self._holds: list[Hold] = []
        self._prompt = 0
        # Estimates are made only where something counts tokens.
        counted = account is not None and account.counts_tokens
        if size.metered and (counted or any(budget.counts_tokens for budget in budgets)):
            self._prompt = estimates.prompt(size.body)
            self._ticket.tokens = self._prompt + estimates.answer(size.max_tokens)

    def acquire(self, left: float) -> Wait | SvcError | None:
        """None where the call may be sent; else how long to wait, or why not."""
        try:
            self._hold_budgets(left)
            wait = None if self.account is None else self.account.ask(self._ticket)
            return self._answer(wait, left)
        except SvcError as failed:
            self._release()
            return failed.with_traceback(None)

    async def aacquire(self, left: float) -> Wait | SvcError | None:
        """The async version of `acquire`."""
        try:
            self._hold_budgets(left)
            wait = None if self.account is None else await self.account.aask(self._ticket)
            return self._answer(wait, left)
        except SvcError as failed:
            self._release()
            return failed.with_traceback(None)

    def _hold_budgets(self, left: float) -> None:
        self._ticket.left = left
        for budget in () if self._holds else self.budgets:
            self._holds.append(budget.hold(self.size, self._prompt, self.estimates))

    def _answer(self, wait: Wait | None, left: float) -> Wait | None:
        if wait is None or wait.turn <= left:
            return wait
        self.leave()
        period = next((f"{name}'s" for name, n in PERIODS.items() if n == wait.period), "plan's")
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
        self.account.settle(self._ticket, Outcome(sent, tokens, status, retry_after, limits))

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
            hold.budget.settle(hold, sent=sent, tokens=tokens, prompt=used and used.prompt)


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
