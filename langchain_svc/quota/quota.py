"""`SvcQuota`: the limits of a key by its plan, kept before the service has to refuse."""

from __future__ import annotations

import asyncio
import difflib
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Literal

from langchain_core.rate_limiters import BaseRateLimiter

from .._base.safe_errors import safe_repr
from .._settings import suggests_fields
from .ledger import (
    BULK,
    INTERACTIVE,
    PERIODS,
    Ledger,
    LedgerUse,
    Limit,
    Ticket,
    WindowUse,
)
from .limiter import BULK_JOB, MEMORY, Shared, key_digest

# -- the plans of both interfaces, and plans of a caller's own -------------------------------------


@suggests_fields
@dataclass(frozen=True)
class Plan:
    """The limits of a key; None is no limit.

        SvcQuota(Plan(requests_per_minute=120, tokens_per_minute=200_000))

    Attributes:
        requests_per_minute: The most requests in any minute.
        requests_per_hour: The most requests in any hour.
        requests_per_day: The most requests in any 24 hours.
        tokens_per_minute: The most tokens, in and out together, in any minute.
        tokens_per_day: The most tokens in any 24 hours.

    Raises:
        ValueError: A limit is not a whole number of 1 or more.
        TypeError: There is no such limit; the error suggests the nearest.
    """

    requests_per_minute: int | None = None
    requests_per_hour: int | None = None
    requests_per_day: int | None = None
    tokens_per_minute: int | None = None
    tokens_per_day: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is None:
                continue
            is_whole = isinstance(value, int) and not isinstance(value, bool)
            if not is_whole or value < 1:
                raise ValueError(
                    f"{field.name} must be a whole number of 1 or more, or None for no limit, "
                    f"not {safe_repr(value)}"
                )

    def limits(self) -> Iterator[Limit]:
        """The limits that are set."""
        for field in fields(self):
            amount = getattr(self, field.name)
            if amount is not None:
                unit, _, period = field.name.partition("_per_")
                yield Limit(unit, amount, PERIODS[period])


def _v1(minute: int, hour: int, tokens: int) -> Plan:
    return Plan(
        requests_per_minute=minute, requests_per_hour=hour, tokens_per_minute=tokens
    )


def _general(minute: int, day: int, tokens: int) -> Plan:
    # The period of the token limit is not shown; a day is the longest that the table has.
    return Plan(requests_per_minute=minute, requests_per_day=day, tokens_per_day=tokens)


# v1 API and general API, section 8. Where it says "custom" or "unlimited", we set no limit.
DOCUMENTED = {
    "v1:free": _v1(3, 100, 50_000),
    "v1:pro": _v1(60, 3_000, 500_000),
    "v1:enterprise": Plan(),
    "general:free": _general(10, 100, 10_000),
    "general:starter": _general(60, 10_000, 100_000),
    "general:pro": _general(300, 100_000, 1_000_000),
    "general:enterprise": Plan(),
}
LEARN = "learn"

_PERIODS_OF_TEXTS = {
    **dict.fromkeys(("m", "min", "minute"), "minute"),
    **dict.fromkeys(("h", "hour"), "hour"),
    **dict.fromkeys(("d", "day"), "day"),
}
_LIMIT = re.compile(
    r"(?P<amount>[0-9]+)(?: ?(?P<unit>requests|tokens))? ?/ ?(?P<period>[a-z]+)"
)


def _own_plan(text: str) -> Plan | None:
    """The plan of limits such as "60/min, 100000 tokens/day"; None for any other text."""
    names = {field.name for field in fields(Plan)}
    limits: dict[str, int] = {}
    for part in text.split(","):
        match = _LIMIT.fullmatch(part.strip())
        if match is None:
            return None
        period = _PERIODS_OF_TEXTS.get(match["period"])
        name = f"{match['unit'] or 'requests'}_per_{period}"
        if name not in names or name in limits or not int(match["amount"]):
            return None
        limits[name] = int(match["amount"])
    return Plan(**limits)


def plans_of(plan: str | Plan) -> dict[str, Plan]:
    """The plan of each interface; under "" one of the caller's, for all interfaces together.

    The two tables share names: "pro" means "v1:pro" on the one and "general:pro" on the other.

    Raises:
        ValueError: There is no such plan.
    """
    if isinstance(plan, Plan):
        return {"": plan}
    if isinstance(plan, str):
        name = plan.strip().lower()
        if name == LEARN:
            return {}
        plans: dict[str, Plan] = {}
        for full_name, documented in DOCUMENTED.items():
            interface, _, short_name = full_name.partition(":")
            if name in {full_name, short_name}:
                plans[interface] = documented
        if plans:
            return plans
        own = _own_plan(name)
        if own is not None:
            return {"": own}
        if "://" in plan:  # it may hold a password, so the error does not repeat it
            raise ValueError(
                "An address is not a plan: give it as storage=..., beside a plan"
            )
    short_names = dict.fromkeys(name.partition(":")[2] for name in DOCUMENTED)
    raise ValueError(
        f"There is no plan {safe_repr(plan)}{_nearest(plan, short_names)}. Give one of "
        f"{', '.join(map(repr, short_names))} (or one interface's, such as 'v1:pro'), {LEARN!r}, "
        "or limits of your own, such as '60/min', '3000/h, 100000/day' or "
        "'60/min, 500000 tokens/min'"
    )


def _nearest(plan: object, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(str(plan).lower(), [*names, LEARN, *DOCUMENTED], 1)
    return f" (did you mean {near[0]!r}?)" if near else ""


# -- the quota -------------------------------------------------------------------------------------

_INTERFACES = ("v1", "general", "medical")


@dataclass(frozen=True)
class QuotaLimit:
    """One limit and how much of it is used.

    Attributes:
        interface: "v1", "general" or "medical"; "all" for a plan of the caller's own.
        unit: "requests" or "tokens".
        seconds: The window, which slides: 60, 3600 or 86400.
        limit: The most in a window; None while it is not known.
        used: What is counted in the window that ends now, estimates included.
        left: What is left; None while the limit is not known.
        empty_in: Seconds until nothing of it is counted any more.
    """

    interface: str
    unit: str
    seconds: float
    limit: int | None
    used: int
    left: int | None
    empty_in: float


@dataclass(frozen=True)
class QuotaSnapshot:
    """The state of a quota at one moment.

    Attributes:
        plan: The plan's name, or "custom".
        storage: "memory", or the address of Redis without its password.
        limits: Every limit of every interface that was called.
        waiting: Interactive calls that wait.
        waiting_bulk: Bulk calls that wait.
        hold: Seconds until the service said to come back; 0 where it has not.
        estimates: Calls whose tokens were estimated and then reported.
        estimate_error: How far those estimates were off on average, as a share of the report.
    """

    plan: str
    storage: str
    limits: tuple[QuotaLimit, ...]
    waiting: int
    waiting_bulk: int
    hold: float
    estimates: int
    estimate_error: float


class SvcQuota(Shared):
    """The limits of a key: calls wait for their turn instead of being refused.

        quota = SvcQuota("pro")
        model = ChatSvc(quota=quota)
        tools = SvcToolkit(quota=quota).get_tools()

    The limits belong to the key, so give one quota to all objects that use it. First in, first out;
    no wait beyond a call's deadline is begun. Copies and pickles of an object share its
    quota within a process; between processes and machines it is shared through Redis.

    Args:
        plan: A documented plan ("free", "starter", "pro", "enterprise", or one interface's, such as
            "v1:pro"), limits for all interfaces together, as a text ("60/min, 3000/h") or a `Plan`,
            or "learn": what the headers of the service say.
        storage: "memory", or "redis://host:port/0" (with `pip install "langchain-svc[redis]"`).
        on_storage_failure: What happens to calls while Redis does not answer: "closed" refuses
            them, "local" lets each process use an equal share of the plan, or the least share if
            Redis never answered it.

    Raises:
        ValueError: An argument is not one of these; the error lists them.
        SvcRateLimitError: From a call whose turn would come after its deadline.

    Rests on the general API and the v1 API, section 8; see docs/quota.md.
    """

    setting = "quota"

    def __init__(
        self,
        plan: str | Plan = LEARN,
        *,
        storage: str = MEMORY,
        on_storage_failure: Literal["closed", "local"] = "closed",
    ) -> None:
        super().__init__()
        self._plans = plans_of(plan)
        if on_storage_failure not in {"closed", "local"}:
            raise ValueError(
                "on_storage_failure must be 'closed' (refuse calls) or 'local' (a share of the "
                f"plan for each process), not {safe_repr(on_storage_failure)}"
            )
        self._place = MEMORY
        self._account_in_redis: Callable[..., Ledger] | None = None
        if storage != MEMORY:
            from .redis_accounts import RedisAccount, link_to, place_of  # noqa: PLC0415  # an extra

            self._place = place_of(storage)
            self._account_in_redis = partial(
                RedisAccount,
                link_to(storage),
                goes_on=on_storage_failure == "local",
            )
        self._arguments = {
            "plan": plan,
            "storage": self._place,  # without a password
            "on_storage_failure": on_storage_failure,
        }
        # By the scope of the plan and the key's digest.
        self._accounts: dict[tuple[str, str], Ledger] = {}
        # The same by interface and hash of the key: a digest for each call would cost as much as
        # all the rest, and no key is kept.
        self._accounts_by_hash: dict[tuple[str, int], Ledger] = {}

    def account(self, interface: str, key: str) -> Ledger:
        """The account that counts the use of a key on an interface."""
        account = self._accounts_by_hash.get((interface, hash(key)))
        if account is not None:
            return account
        # A plan of the caller's has one account for all interfaces; the documented plans have one
        # for each.
        scope = interface
        if "" in self._plans:
            scope = "all"
        digest = key_digest(key)
        with self._lock:
            account = self._accounts.get((scope, digest))
            if account is None:
                account = self._new_account(scope, digest)
                self._accounts[scope, digest] = account
        self._accounts_by_hash[interface, hash(key)] = account
        return account

    def _new_account(self, scope: str, digest: str = "") -> Ledger:
        interface = scope
        if scope == "all":
            interface = ""
        limits = tuple(self._plans.get(interface, Plan()).limits())
        if self._account_in_redis is None or not digest:
            return Ledger(limits)
        return self._account_in_redis(limits, name=f"{scope}:{digest}")

    def snapshot(self) -> QuotaSnapshot:
        """The state of the quota now, on every interface that was called."""
        uses: list[tuple[str, LedgerUse]] = []
        for (scope, _), account in list(self._accounts.items()):
            uses.append((scope, account.look()))
        if not uses:  # before any call: the limits of the plan
            for interface in self._plans:
                scope = interface or "all"
                uses.append((scope, self._new_account(scope).look()))
        plan = self._arguments["plan"]
        limits: list[QuotaLimit] = []
        for scope, use in uses:
            limits += [_limit(scope, window) for window in use.windows]
        return QuotaSnapshot(
            plan=plan if isinstance(plan, str) else "custom",
            storage=self._place,
            limits=tuple(limits),
            waiting=sum(use.waiting for _, use in uses),
            waiting_bulk=sum(use.waiting_bulk for _, use in uses),
            hold=max((use.hold for _, use in uses), default=0.0),
            estimates=self.estimates.samples,
            estimate_error=self.estimates.error,
        )

    def eta(
        self,
        requests: int = 0,
        tokens: int = 0,
        *,
        interface: Literal["v1", "general", "medical"] | None = None,
    ) -> float:
        """Seconds until this much more work is admitted, behind the calls that wait before it.

        Inside `bulk_priority()` it is work that goes as bulk calls do: at the plan's pace, behind
        all interactive calls, and with the share kept that is kept from them. How long answers take
        is in neither figure.

        Args:
            requests: How many more requests.
            tokens: How many tokens they take, in and out together.
            interface: Where; by default the interface that the plan is of, "v1" where it is of
                several.

        Returns:
            0.0 where nothing limits it, or no limit is known yet ("learn" before the first call).

        Raises:
            ValueError: An argument is out of its bounds.
        """
        for name, value in {"requests": requests, "tokens": tokens}.items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise ValueError(
                    f"{name} must be a whole number of 0 or more, not {safe_repr(value)}"
                )
        if interface is not None and interface not in _INTERFACES:
            raise ValueError(
                f"interface must be one of {', '.join(map(repr, _INTERFACES))}, "
                f"not {safe_repr(interface)}"
            )
        scope: str = interface or self._default_interface()
        if "" in self._plans:
            scope = "all"
        accounts: list[Ledger] = []
        for (account_scope, _), account in list(self._accounts.items()):
            if account_scope == scope:
                accounts.append(account)
        if not accounts:
            accounts.append(self._new_account(scope))
        priority = INTERACTIVE if BULK_JOB.get() is None else BULK
        return max(account.eta(requests, tokens, priority) for account in accounts)

    def _default_interface(self) -> str:
        if list(self._plans) == ["general"]:
            return "general"
        return "v1"

    def rate_limiter(
        self,
        *,
        api_key: str | None = None,
        interface: Literal["v1", "general", "medical"] = "v1",
    ) -> BaseRateLimiter:
        """A rate limiter for LangChain code that calls the service through other classes.

            ChatOpenAI(base_url=..., rate_limiter=quota.rate_limiter())

        It counts requests only: such code reports no tokens. Our own classes take `quota=`;
        with both, a request would count twice.

        Args:
            api_key: The key that the other code uses; by default that of the environment.
            interface: The interface that it calls.
        """
        if api_key is None:
            api_key = os.environ.get("SVC_API_KEY", "")
        return _AccountRateLimiter(self.account(interface, api_key))

    def __repr__(self) -> str:
        return f"SvcQuota({self._arguments['plan']!r}, storage={self._place!r})"


def _limit(scope: str, window: WindowUse) -> QuotaLimit:
    limit: int | None = None
    remaining: int | None = None
    if window.limit != math.inf:
        limit = int(window.limit)
        remaining = max(0, limit - window.used)
    return QuotaLimit(
        scope,
        window.unit,
        window.seconds,
        limit,
        window.used,
        remaining,
        window.empty_in,
    )


class _AccountRateLimiter(BaseRateLimiter):
    """LangChain's rate limiter: each `acquire` is a request of the account."""

    def __init__(self, account: Ledger) -> None:
        self._account = account

    def acquire(self, *, blocking: bool = True) -> bool:
        ticket = Ticket()
        try:
            wait = self._account.acquire(ticket)
            while wait is not None and blocking:
                time.sleep(wait.again)
                wait = self._account.acquire(ticket)
        finally:
            self._account.leave(ticket)
        return wait is None

    async def aacquire(self, *, blocking: bool = True) -> bool:
        ticket = Ticket()
        try:
            wait = await self._account.aacquire(ticket)
            while wait is not None and blocking:
                await asyncio.sleep(wait.again)
                wait = await self._account.aacquire(ticket)
        finally:
            self._account.leave(ticket)
        return wait is None
