"""What a call asks before each of its tries: the key's quota, and the budgets it runs under."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol
from uuid import uuid4

from .._service import CallSize
from .._wire import Price, rate_limit_of
from ..errors import SvcBudgetError, SvcError, SvcRateLimitError
from .estimates import Estimates, read_usage
from .ledger import BULK, INTERACTIVE, Ledger, Outcome, Ticket, Wait
from .plans import DAY, HOUR, MINUTE

BULK_JOB: ContextVar[str | None] = ContextVar("langchain_svc_bulk_job", default=None)

_BYTES_A_TOKEN = 4
_LOOK = 0.25  # seconds between two answers whose headers are read


@dataclass(frozen=True)
class Hold:
    """What a call that is on its way may use."""

    tokens: int
    cost: float
    prompt: int
    price: Price | None


class Spending(Protocol):
    """What bounds the use of calls: a budget."""

    @property
    def counts_tokens(self) -> bool: ...

    def hold(self, size: CallSize, prompt: int, estimates: Estimates) -> Hold | SvcBudgetError: ...

    def settle(
        self,
        hold: Hold,
        *,
        sent: bool,
        tokens: int | None,
        usage: tuple[int | None, int | None, int] | None,
    ) -> None: ...


class CallLimiter:
    """One call's place before its quota and its budgets."""

    def __init__(
        self,
        account: Ledger | None,
        budgets: tuple[Spending, ...],
        size: CallSize,
        estimates: Estimates,
    ) -> None:
        self.account, self.budgets, self.size, self.estimates = account, budgets, size, estimates
        job = BULK_JOB.get()
        self._ticket = Ticket(priority=INTERACTIVE if job is None else BULK, party=job or "")
        self._holds: list[tuple[Spending, Hold]] = []
        self._prompt = 0
        # Estimates are made only where something counts tokens.
        counted = self.account is not None and self.account.counts_tokens
        if self.size.metered and (counted or any(b.counts_tokens for b in self.budgets)):
            self._prompt = self.estimates.prompt(self.size.body)
            self._ticket.tokens = self._prompt + self.estimates.answer(self.size.max_tokens)

    @property
    def local(self) -> bool:
        """Whether asking needs no I/O."""
        return self.account is None or self.account.local

    def acquire(self, left: float) -> float | SvcError:
        """0 where the call may be sent; else seconds to wait before asking again, or why not.

        Args:
            left: The seconds that the call has.
        """
        error = self._hold_budgets()
        if error is not None or self.account is None:
            return error or 0.0
        self._ticket.left = left
        try:
            return self._answer(self.account.ask(self._ticket), left)
        except SvcError as failed:
            self._release()
            return failed.with_traceback(None)

    async def aacquire(self, left: float) -> float | SvcError:
        """The async version of `acquire`."""
        error = self._hold_budgets()
        if error is not None or self.account is None:
            return error or 0.0
        self._ticket.left = left
        try:
            return self._answer(await self.account.aask(self._ticket), left)
        except SvcError as failed:
            self._release()
            return failed.with_traceback(None)

    def _hold_budgets(self) -> SvcError | None:
        if self.budgets and not self._holds:
            for budget in self.budgets:
                held = budget.hold(self.size, self._prompt, self.estimates)
                if isinstance(held, SvcError):
                    self._release()
                    return held
                self._holds.append((budget, held))
        return None

    def _answer(self, wait: Wait | None, left: float) -> float | SvcError:
        if wait is None:
            return 0.0
        if wait.turn <= left:
            return min(wait.again, left)
        self.leave()
        period = {MINUTE: "minute's", HOUR: "hour's", DAY: "day's"}.get(wait.seconds, "plan's")
        error = SvcRateLimitError(
            f"The {period} quota is used up: this call's turn comes in {wait.turn:,.0f} s, and its "
            f"deadline leaves {max(0.0, left):,.0f} s. Nothing was sent. Come back then, or "
            "allow a larger deadline=",
            retry_after=wait.turn,
        )
        if wait.seconds >= DAY:
            error.is_retryable = False
        return error

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
        """What became of a try that was let through. It waits for nothing.

        Args:
            sent: Whether the service may have got the request.
            status: The status that it answered with, if it did.
            headers: Those of the answer.
            usage: The tokens that it reported.
            answered: Characters of text that came, where no usage did.
            retry_after: When the service said to come back, in seconds.
        """
        used = read_usage(usage)
        refused = status is not None and not 200 <= status < 300  # noqa: PLR2004
        tokens: int | None
        if used is not None:
            tokens = used[2]
            if self._ticket.tokens:
                self.estimates.learn(self.size.body, self._ticket.tokens, used)
        elif not sent or refused or not self.size.metered:
            tokens = 0
        elif answered is not None:
            tokens = self._prompt + answered // _BYTES_A_TOKEN
        else:
            tokens = None
        for budget, held in self._holds:
            budget.settle(held, sent=sent, tokens=tokens, usage=used)
        self._holds.clear()
        if self.account is None:
            return
        limits = None
        now = time.time()
        if headers and (refused or not 0 <= now - self.estimates.looked_at < _LOOK):
            # What others use changes slowly, and reading it costs as much as all the rest here.
            limits = rate_limit_of(headers, now)
            if limits is not None:
                self.estimates.looked_at = now
        outcome = Outcome(sent, tokens, status, retry_after, limits)
        self.account.settle(self._ticket, outcome)

    def leave(self) -> None:
        """The call is given up: it waits no more, and what it held is free again."""
        self._release()
        if self.account is not None:
            self.account.leave(self._ticket)

    def _release(self) -> None:
        for budget, held in self._holds:
            budget.settle(held, sent=False, tokens=0, usage=None)
        self._holds.clear()


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
