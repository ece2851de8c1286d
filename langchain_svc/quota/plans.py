"""The documented plans of both interfaces, as data, and plans of a caller's own."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import NamedTuple

from .._base.safe_errors import safe_repr

MEMORY = "memory"  # the storage of a process by itself
MINUTE = 60.0
HOUR = 3_600.0
DAY = 86_400.0
PERIODS = {"minute": MINUTE, "hour": HOUR, "day": DAY}


class Limit(NamedTuple):
    """At most `amount` of "requests" or "tokens" in any `seconds`."""

    unit: str
    amount: float
    seconds: float


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


def plans_of(plan: str | Plan) -> dict[str, Plan]:
    """The plan of each interface; under "" one for all interfaces together.

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
        if "://" in plan:  # it may hold a password, so the error does not repeat it
            raise ValueError(
                "An address is not a plan: give it as storage=..., beside a plan"
            )
    short_names = dict.fromkeys(name.partition(":")[2] for name in DOCUMENTED)
    raise ValueError(
        f"There is no plan {safe_repr(plan)}. Give one of {', '.join(map(repr, short_names))} (on "
        "each interface the plan of that name), one interface's "
        f"({', '.join(map(repr, DOCUMENTED))}), "
        f"{LEARN!r}, or Plan(requests_per_minute=...)"
    )


def key_digest(key: str) -> str:
    """A name of the key, for Redis too, from which nobody can compute the key."""
    return hmac.digest(b"langchain-svc quota", key.encode(), "sha256").hex()[:32]
