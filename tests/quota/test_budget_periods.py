"""The rules of a budget's account, on a clock that only these tests move: in memory and in Redis."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from share import fewer

from langchain_svc.quota.budget_accounts import MemoryBudget, period_at

OPEN = (None, None, None)


class Clock:
    """A moment that stands still until it is moved."""

    def __init__(self):
        self.now = 0.0

    def at(self, text):
        self.now = datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


class RedisClock(Clock):
    """The same, which the script reads from a key."""

    def __init__(self, client):
        self._client = client
        super().__init__()

    @property
    def now(self):
        return float(self._client.get("clock"))

    @now.setter
    def now(self, value):
        self._client.set("clock", value)


def in_redis(url, period, name="test"):
    import redis

    from langchain_svc.quota import redis_accounts

    class OnAClock(redis_accounts.RedisBudget):
        """Its script reads the time from a key."""

    link = redis_accounts.RedisLink(url)
    script = redis_accounts.read_script
    try:
        redis_accounts.read_script = lambda file: script(file).replace(
            "redis.call('TIME')", "{redis.call('GET', 'clock'), 0}"
        )
        account = OnAClock(link, name=name, period=period)
    finally:
        redis_accounts.read_script = script
    return account, RedisClock(redis.Redis.from_url(url))


@pytest.fixture
def make(storage):
    """Makes an empty account of a period, and its clock."""

    def build(period):
        if storage == "memory":
            clock = Clock()
            return MemoryBudget(period, lambda: clock.now), clock
        return in_redis(storage, period)

    return build


TURNS = [  # a period, its last second, and the first of the next
    ("hour", "2026-11-27T06:59:59", "2026-11-27T07:00:00"),
    ("day", "2026-11-27T23:59:59", "2026-11-28T00:00:00"),
    ("month", "2026-11-30T23:59:59", "2026-12-01T00:00:00"),
    ("month", "2026-12-31T23:59:59", "2027-01-01T00:00:00"),
    ("month", "2028-02-29T23:59:59", "2028-03-01T00:00:00"),
]


@pytest.mark.parametrize(("period", "last", "first"), TURNS)
def test_a_period_begins_anew(make, period, last, first):
    account, clock = make(period)
    clock.at(last)
    used = account.reserve((1, 10, 5), OPEN, 9.0).reservation
    account.settle(used, (1, 7, 3))
    late = account.reserve((1, 10, 5), (2, None, None), 9.0).reservation
    assert account.reserve((1, 10, 5), (2, None, None), 9.0).reservation is None
    assert account.look()[:3] == ((1, 7, 3), (1, 10, 5), 1)
    clock.at(first)
    assert account.look()[:3] == ((0, 0, 0), (0, 0, 0), 0)
    account.settle(late, (1, 9, 5))  # it counts in the period in which it began
    assert account.look().used == (0, 0, 0)
    assert account.reserve((1, 10, 5), (1, None, None), 9.0).reservation is not None
    clock.at(last)  # a clock that is set back begins nothing anew
    assert account.look().calls == 1


def test_without_a_period_nothing_begins_anew(make):
    account, clock = make(None)
    clock.at("2026-11-27T06:59:59")
    account.settle(account.reserve((1, 0, 0), OPEN, 9.0).reservation, (1, 0, 0))
    clock.at("2031-01-01T00:00:00")
    assert account.look().used == (1, 0, 0)


def test_months_are_those_of_the_calendar(store):
    account, clock = in_redis(store, "month")
    for now in range(0, 4 * 10**9, 10**9 // 7):
        clock.now = now
        account.look()
        assert account._period == period_at("month", now)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["reserve", "reserve", "settle", "give back"]),
        st.integers(0, 40),
        st.sampled_from([0, 100_000_000, 300_000_001, 10**15]),
        st.integers(0, 40),
    ),
    max_size=30,
)


@given(
    STEPS,
    st.sampled_from(
        [(6, None, None), (None, 100, None), (None, None, 10**9), (8, 150, 2 * 10**15)]
    ),
)
@settings(max_examples=fewer(30), deadline=None)
def test_the_script_and_the_memory_say_the_same(redis_server, steps, bounds):
    import redis

    from langchain_svc.quota import redis_accounts

    with redis.Redis.from_url(redis_server.url) as client:
        client.flushall()
        client.set(f"{redis_accounts._BUDGET_PREFIX}:began", -100)
        client.set("clock", 0)
    both = (MemoryBudget(None), in_redis(redis_server.url, None)[0])
    open_pairs = []
    for what, tokens, cost, took in steps:
        if what == "reserve":
            standings = [account.reserve((1, tokens, cost), bounds, 9.0) for account in both]
            pair = [standing.reservation for standing in standings]
            assert (pair[0] is None) == (pair[1] is None)
            if pair[0] is not None:
                open_pairs.append(pair)
        elif open_pairs:
            used = (1, took, cost // 3) if what == "settle" else None
            for account, reservation in zip(both, open_pairs.pop(0), strict=True):
                account.settle(reservation, used)
        looks = [account.look()[:3] for account in both]
        assert looks[0] == looks[1]


GOOD = {
    "born": "1",
    "period": 0,
    "lost": False,
    "granted": True,
    "wait": 0,
    "calls": 0,
    "used": ["0", "0", "0"],
    "reserved": ["0", "0", "0"],
}
WRONG = [
    *({name: value for name, value in GOOD.items() if name != missing} for missing in GOOD),
    *(GOOD | {name: value} for name in GOOD for value in ([1, 2], {"a": 1}, "x", None)),
]


@pytest.mark.parametrize("answer", ["", "null", "[]", "1", *map(json.dumps, WRONG)])
def test_an_answer_of_another_form_is_none(store, answer):
    from langchain_svc.quota import redis_accounts

    account, _ = in_redis(store, None)
    assert account.parse_reply(json.dumps(GOOD)).granted
    if answer == json.dumps(GOOD | {"born": "x"}):
        return
    with pytest.raises(redis_accounts.NO_REPLY):
        account.parse_reply(answer)
