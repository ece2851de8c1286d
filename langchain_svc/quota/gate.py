"""What a call asks before each of its tries: the key's quota, and the budgets it runs under."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from .._wire import rate_limit_of
from ..errors import SvcError, SvcRateLimitError
from .context import BUDGETS, BULK_JOB
from .estimates import Estimates, Size, read_usage
from .ledger import BULK, INTERACTIVE, Outcome, Ticket, Wait
from .plans import DAY, HOUR, MINUTE

if TYPE_CHECKING:
    from .budget import Hold, SvcBudget
    from .quota import SvcQuota

_BYTES_A_TOKEN = 4
_LOOK = 0.25  # seconds between two answers whose headers are read


class Account(Protocol):
    """Where the use of one key on one interface is counted."""

    counts_tokens: bool
    local: bool  # it is in this process, and asking needs no I/O

    def ask(self, ticket: Ticket) -> Wait | None: ...

    async def aask(self, ticket: Ticket) -> Wait | None: ...

    def settle(self, ticket: Ticket, outcome: Outcome) -> bool: ...

    def tell(self) -> None: ...

    async def atell(self) -> None: ...

    def leave(self, ticket: Ticket) -> None: ...

    def eta(self, requests: int, tokens: int) -> float: ...

    def look(self) -> dict[str, Any]: ...


def gate_of(
    quota: SvcQuota | None, budget: SvcBudget | None, interface: str, key: str, size: Size
) -> Gate | None:
    """The gate of one call, or None where nothing limits it."""
    budgets = BUDGETS.get()
    if budgets or budget is not None:
        more = () if budget is None else (budget,)
        budgets = tuple(dict.fromkeys((*budgets, *more)))
    if quota is None and not budgets:
        return None
    account = None if quota is None else quota.account(interface, key)
    return Gate(account, budgets, size, quota.estimates if quota else budgets[0].estimates)


@dataclass(eq=False)
class Gate:
    """One call's place before its quota and its budgets."""

    account: Account | None
    budgets: tuple[SvcBudget, ...]
    size: Size = field(default_factory=Size)
    estimates: Estimates = field(default_factory=Estimates)

    def __post_init__(self) -> None:
        job = BULK_JOB.get()
        self._ticket = Ticket(priority=INTERACTIVE if job is None else BULK, party=job or "")
        self._holds: list[tuple[SvcBudget, Hold]] = []
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

    def admit(self, patience: float) -> float | SvcError:
        """0 where the call may be sent; else seconds to wait before asking again, or why not.

        Args:
            patience: How long the call can wait in all.
        """
        error = self._hold_budgets()
        if error is not None or self.account is None:
            return error or 0.0
        self._ticket.patience = patience
        try:
            return self._answer(self.account.ask(self._ticket), patience)
        except SvcError as failed:
            self._release()
            return failed.with_traceback(None)

    async def aadmit(self, patience: float) -> float | SvcError:
        """The async version of `admit`."""
        error = self._hold_budgets()
        if error is not None or self.account is None:
            return error or 0.0
        self._ticket.patience = patience
        try:
            return self._answer(await self.account.aask(self._ticket), patience)
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

    def _answer(self, wait: Wait | None, patience: float) -> float | SvcError:
        if wait is None:
            return 0.0
        if wait.turn <= patience:
            return wait.again
        self.leave()
        period = {MINUTE: "minute's", HOUR: "hour's", DAY: "day's"}.get(wait.seconds, "plan's")
        error = SvcRateLimitError(
            f"The {period} quota is used up: this call's turn comes in {wait.turn:,.0f} s, and its "
            f"deadline leaves {max(0.0, patience):,.0f} s. Nothing was sent. Come back then, or "
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
    ) -> bool:
        """What became of a try that was let through. It makes no I/O.

        Args:
            sent: Whether the service may have got the request.
            status: The status that it answered with, if it did.
            headers: Those of the answer.
            usage: The tokens that it reported.
            answered: Characters of text that came, where no usage did.
            retry_after: When the service said to come back, in seconds.

        Returns:
            Whether other processes should be told at once, by `account.tell`.
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
            return False
        limits = None
        now = time.time()
        if headers and (refused or not 0 <= now - self.estimates.looked_at < _LOOK):
            # What others use changes slowly, and reading it costs as much as all the rest here.
            limits = rate_limit_of(headers, now)
            if limits is not None:
                self.estimates.looked_at = now
        outcome = Outcome(sent, tokens, status, retry_after, limits)
        return self.account.settle(self._ticket, outcome)

    def tell(self) -> None:
        """Tell other processes what became of the call."""
        if self.account is not None:
            self.account.tell()

    async def atell(self) -> None:
        """The async version of `tell`."""
        if self.account is not None:
            await self.account.atell()

    def leave(self) -> None:
        """The call is given up: it waits no more, and what it held is free again."""
        self._release()
        if self.account is not None:
            self.account.leave(self._ticket)

    def _release(self) -> None:
        for budget, held in self._holds:
            budget.settle(held, sent=False, tokens=0, usage=None)
        self._holds.clear()
