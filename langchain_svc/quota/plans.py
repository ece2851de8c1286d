"""The documented plans of both interfaces, as data, and plans of a caller's own."""

from __future__ import annotations

import difflib
import hmac
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import NamedTuple

from .._base.safe_errors import safe_repr
from .._settings import suggests_fields

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


def key_digest(key: str) -> str:
    """A name of the key, for Redis too, from which nobody can compute the key."""
    return hmac.digest(b"langchain-svc quota", key.encode(), "sha256").hex()[:32]
