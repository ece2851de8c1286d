"""Who may send when: the rules of the ledger, on a clock that only these tests move.

Every rule is tested in memory and in Redis, whose script is given the clock.
"""

from __future__ import annotations

import collections
import heapq
import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from share import fewer, part

from langchain_svc.quota.ledger import (
    BULK,
    INTERACTIVE,
    LATENESS,
    Ledger,
    Limit,
    Outcome,
    Ticket,
    Window,
)
from langchain_svc.quota.quota import DOCUMENTED, Plan

V1_PRO = tuple(DOCUMENTED["v1:pro"].limits())


class OnAClock:
    """An account that is told the time with each question."""

    def acquire(self, ticket, now):
        self.set_clock(now)
        return super().acquire(ticket)

    def settle(self, ticket, outcome, now):
        self.set_clock(now)
        super().settle(ticket, outcome)
        self.look()  # Redis is told now, and not with the next question

    def eta(self, requests, tokens, now, priority=INTERACTIVE):
        self.set_clock(now)
        return super().eta(requests, tokens, priority)


class InMemory(OnAClock, Ledger):
    def __init__(self, limits):
        super().__init__(limits, clock=lambda: self.now)
        self.now = 0.0

    def set_clock(self, now):
        self.now = now


def in_redis(url, limits, *, gone="1e9", began=-1e6):
    """An empty account whose script reads the time from a key, in a Redis that began then."""
    import redis

    from langchain_svc.quota import redis_accounts

    class InRedis(OnAClock, redis_accounts.RedisAccount):
        def set_clock(self, now):
            client.set("clock", now + 1e6)

    client = redis.Redis.from_url(url)
    client.flushall()
    client.set(f"{redis_accounts._QUOTA_PREFIX}:began", began + 1e6)
    source = redis_accounts.read_script("quota.lua")
    source = source.replace("redis.call('TIME')", "{redis.call('GET', 'clock'), 0}")
    source = source.replace("GONE = 3.0", f"GONE = {gone}")
    link = redis_accounts.RedisLink(url)
    return InRedis(link, tuple(limits), name="test", goes_on=False, source=source)


@pytest.fixture
def make(storage):
    """Makes an empty account with these limits."""
    return lambda *limits: InMemory(limits) if storage == "memory" else in_redis(storage, limits)


@pytest.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.slow)])
def make_for_a_load(request):
    """The same for thousands of calls, each of which takes two round trips in Redis."""
    if request.param == "memory":
        return lambda *limits: InMemory(limits)
    url = request.getfixturevalue("store")
    return lambda *limits: in_redis(url, limits)


def through(ledger, count, now, **words):
    """How many of so many calls are let through at once."""
    return sum(ledger.acquire(Ticket(**words), now) is None for _ in range(count))


class Callers:
    """Callers that ask until they are let through, take a while, and begin again."""

    def __init__(self, ledger):
        self.ledger = ledger
        self.sent = collections.defaultdict(list)
        self.waits = collections.defaultdict(list)
        self.count = 0
        self._agenda = []
        self._order = itertools.count()

    def add(self, name, at_once, pause=0.1, begin=0.0, **words):
        for _ in range(at_once):
            self._push(begin, name, pause, words, None, begin)

    def _push(self, now, *caller):
        heapq.heappush(self._agenda, (now, next(self._order), caller))

    def run(self, seconds, calls=math.inf):
        """Goes on for so long, or until so many calls were let through."""
        while self._agenda and self._agenda[0][0] < seconds and self.count < calls:
            now, _, (name, pause, words, ticket, began) = heapq.heappop(self._agenda)
            if ticket is None:
                ticket, began = Ticket(tokens=10, **words), now
            wait = self.ledger.acquire(ticket, now)
            if wait is not None:
                self._push(now + wait.again, name, pause, words, ticket, began)
                continue
            self.count += 1
            self.sent[name].append(now)
            self.waits[name].append(now - began)
            self.ledger.settle(ticket, Outcome(tokens=10, status=200), now)
            self._push(now + pause, name, pause, words, None, now)
        return self

    @property
    def moments(self):
        return sorted(itertools.chain(*self.sent.values()))


def busiest(moments, seconds):
    """The most of these in any stretch of so many seconds."""
    ends = (sum(begin <= at < begin + seconds for at in moments) for begin in moments)
    return max(ends, default=0)


# -- windows --------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(1, 4)), max_size=60))
@settings(max_examples=fewer(60), deadline=None)
def test_no_stretch_of_time_holds_more_than_the_limit(steps):
    window, now, counted = Window(Limit("requests", 5, 60.0)), 0.0, []
    for pause, amount in steps:
        now += pause
        window.roll(now)
        wait = window.wait(now, amount)
        if wait:  # what it says is enough, and no more than a bucket too much
            window.roll(now + wait + 1e-6)
            assert not window.wait(now + wait + 1e-6, amount)
            now += wait + 1e-6
        window.add(window.bucket_at(now), amount)
        counted += [now] * amount
    assert busiest(counted, 60.0 + LATENESS) <= 5


@pytest.mark.parametrize("priority", [INTERACTIVE, BULK])
def test_full_demand_uses_the_plan_and_never_more(make_for_a_load, priority):
    callers = Callers(make_for_a_load(*V1_PRO))
    callers.add("all", 20, priority=priority)
    moments = callers.run(180).moments
    assert len(moments) >= 0.95 * 180
    assert busiest(moments, 60 + LATENESS) <= 60


def test_a_call_larger_than_the_limit_waits_for_an_empty_window(make):
    ledger = make(Limit("tokens", 100, 60.0))
    assert ledger.acquire(Ticket(tokens=10), 0.0) is None
    large = Ticket(tokens=1000)
    assert ledger.acquire(large, 1.0) is not None
    assert ledger.acquire(large, 62.0) is None


# -- order ----------------------------------------------------------------------------------------


def test_first_in_first_out(make_for_a_load):
    callers = Callers(make_for_a_load(Limit("requests", 1, 60.0)))
    for name in "abcd":
        callers.add(name, 1, pause=1e9)
    assert [*callers.run(300).sent] == [*"abcd"]


def test_an_interactive_call_goes_before_bulk(make_for_a_load):
    callers = Callers(make_for_a_load(*V1_PRO))
    callers.add("one", 20, priority=BULK, party="one")
    callers.add("other", 5, priority=BULK, party="other")
    callers.add("person", 1, pause=9.0)
    callers.run(150)
    assert max(callers.waits["person"]) < 2.0
    one, other = len(callers.sent["one"]), len(callers.sent["other"])
    assert 0.45 <= one / (one + other) <= 0.55
    assert len(callers.moments) >= 0.95 * 150


def test_a_dead_process_does_not_hold_up_the_queue(store):
    ledger = in_redis(store, [Limit("requests", 1, 60.0)], gone="3.0")
    through(ledger, 1, 0.0)
    dead, other = Ticket(), Ticket()
    ledger.acquire(dead, 59.5)  # and never again
    assert ledger.acquire(other, 61.5) is not None
    assert ledger.acquire(other, 64.0) is None


@pytest.mark.parametrize("back", [10.0, 500.0])
def test_a_clock_that_is_set_back_lets_nobody_through_twice(store, back):
    ledger = in_redis(store, [Limit("requests", 3, 60.0)])
    assert through(ledger, 5, 1000.0) == 3
    later = Ticket()
    wait = ledger.acquire(later, 1000.0 - back)
    assert 55 < wait.turn < 63
    assert ledger.acquire(later, 1000.0 - back + 63 + (back if back < 60 else 0)) is None


# -- a Redis that may have lost an account ------------------------------------------------------------


def test_an_account_in_a_redis_that_has_just_begun_goes_at_the_plans_pace(store):
    callers = Callers(in_redis(store, V1_PRO, began=0.0))
    callers.add("all", 60)
    assert 4 <= len(callers.run(4.9).moments) <= 6  # one a second
    assert len(callers.run(15).moments) == 60  # others have had the time to tell


def test_an_account_that_is_new_in_an_old_redis_may_begin_with_a_burst(store):
    ledger = in_redis(store, V1_PRO)
    assert through(ledger, 100, 0.0) == 60


def test_tokens_are_paced_too(store):
    ledger = in_redis(store, [Limit("tokens", 100, 60.0)], began=0.0)
    assert through(ledger, 5, 0.0, tokens=10) == 1
    assert ledger.acquire(Ticket(tokens=10), 5.1) is None


# -- what became of calls ----------------------------------------------------------------------------


SETTLED = {  # the limits, what became of one call of 900 tokens, and how many calls fit then
    "tokens that were not used": (
        [Limit("tokens", 1000, 60.0)],
        Outcome(tokens=100, status=200),
        {1.0: 9},
    ),
    "a call that was not sent": (
        [Limit("requests", 1, 60.0)],
        Outcome(sent=False, tokens=0),
        {1.0: 1},
    ),
    "a refusal": (V1_PRO, Outcome(status=429, retry_after=20.0, tokens=0), {20.9: 0, 21.1: 60}),
    "a refusal that names no time": (V1_PRO, Outcome(status=429, tokens=0), {5.9: 0, 6.1: 60}),
    "a header, without a plan": ([], Outcome(status=200, limits=(10, 9, 60.0)), {2.0: 9}),
    "use by others": (V1_PRO, Outcome(status=200, tokens=0, limits=(60, 19, 50.0)), {2.0: 19}),
    "an hour that ends": (
        V1_PRO,
        Outcome(status=200, tokens=0, limits=(3000, 2990, 30.0)),
        {2.0: 59},
    ),
}


@pytest.mark.parametrize("what", SETTLED)
def test_what_became_of_a_call_decides_about_the_next(make, what):
    limits, outcome, fit = SETTLED[what]
    for now, count in fit.items():
        ledger, ticket = make(*limits), Ticket(tokens=900)
        assert ledger.acquire(ticket, 0.0) is None
        ledger.settle(ticket, outcome, 1.0)
        assert through(ledger, 100, now, tokens=100) == count


# -- learning -----------------------------------------------------------------------------------------


def test_own_calls_are_not_taken_for_those_of_others(make):
    ledger = make(*V1_PRO)
    tickets = [Ticket() for _ in range(30)]
    for at, ticket in enumerate(tickets):
        assert ledger.acquire(ticket, 0.1 * at) is None
    for at, ticket in enumerate(tickets):  # the service writes whole seconds, and late
        limits = (60, 59 - at, 58.0 - 0.1 * at)
        ledger.settle(ticket, Outcome(status=200, tokens=0, limits=limits), 3.0 + 0.1 * at)
    assert through(ledger, 60, 6.0) == 30


ANSWERS = {  # what one answer says, and for how many seconds it counts at most
    "a minute's header": (Outcome(status=200, tokens=0, limits=(60, 0, 60.0)), 600),
    "an hour's header": (Outcome(status=200, tokens=0, limits=(3000, 0, 3_600.0)), 600),
    "a gateway's, for an hour": (Outcome(status=200, tokens=0, limits=(1, 0, 3_600.0)), 600),
    "a day's header": (Outcome(status=200, tokens=0, limits=(100_000, 0, 86_400.0)), 3_600),
    "a gateway's, for a day": (Outcome(status=200, tokens=0, limits=(1, 0, 86_400.0)), 3_600),
    "a refusal for an hour": (Outcome(status=429, tokens=0, retry_after=3_600.0), 600),
    "a refusal for a day": (Outcome(status=429, tokens=0, retry_after=86_400.0), 3_600),
}


@pytest.mark.parametrize("plan", ["v1:pro", "general:pro", "learn"])
@pytest.mark.parametrize("answer", ANSWERS)
def test_a_single_answer_holds_a_key_for_ten_minutes_or_of_a_day_for_an_hour(make, plan, answer):
    limits = () if plan == "learn" else DOCUMENTED[plan].limits()
    outcome, most = ANSWERS[answer]
    ledger, ticket = make(*limits), Ticket()
    assert ledger.acquire(ticket, 0.0) is None
    ledger.settle(ticket, outcome, 1.0)
    wait = ledger.acquire(Ticket(), 2.0)
    a_bucket = {600: 30, 3_600: 720}[most]  # of an hour's and of a day's window
    assert wait is None or wait.turn < most + a_bucket
    assert ledger.acquire(Ticket(), most + a_bucket + 10) is None


def test_a_days_use_by_others_is_counted_for_an_hour(make):
    ledger = make(*DOCUMENTED["general:pro"].limits())
    tickets = [Ticket(), Ticket()]
    for ticket in tickets:
        ledger.acquire(ticket, 0.0)
    for ticket in tickets:  # it is told twice, and counted once
        outcome = Outcome(status=200, tokens=0, limits=(100_000, 5, 80_000.0))
        ledger.settle(ticket, outcome, 1.0)
    assert through(ledger, 10, 3.0) == 5
    assert through(ledger, 10, 4_400.0) == 10


# -- how long ----------------------------------------------------------------------------------------


def test_eta_is_when_the_work_has_been_let_through():
    limits = (Limit("requests", 10, 60.0), Limit("requests", 100, 3600.0))
    for requests in (1, 8, 9, 25, 98, 99, 150):
        ledger = InMemory(limits)
        through(ledger, 2, 0.0)
        foretold = ledger.eta(requests, 0, 0.0)
        callers = Callers(ledger)
        callers.add("all", 3, pause=0.0)
        took = callers.run(8_000, requests).moments[requests - 1]
        assert took == pytest.approx(foretold, rel=0.05, abs=2.0), requests


PLANS = {
    **{name: plan for name, plan in DOCUMENTED.items() if list(plan.limits())},
    "6,000 a minute": Plan(requests_per_minute=6_000),
    "3,000 an hour": Plan(requests_per_hour=3_000),
    "100,000 a day": Plan(requests_per_day=100_000),
    "tokens alone": Plan(tokens_per_minute=20_000),
    "few tokens": Plan(requests_per_minute=60, tokens_per_minute=10_000, tokens_per_day=10**6),
}
SIZES = (10, 60, 61, 150, 600, 3_000, 36_000, 200_000)
TOKENS = 500  # of a call


def moments_in_bulk(ledger, sizes, start):
    """When so many bulk calls have been let through, each asked for at its turn."""
    now, found = start, {}
    for count in range(1, max(sizes) + 1):
        ticket = Ticket(tokens=TOKENS, priority=BULK)
        while wait := ledger.acquire(ticket, now):
            now += wait.turn
        if count in sizes:
            found[count] = now
    return found


@pytest.mark.parametrize("plan", PLANS)
def test_what_is_foretold_of_a_bulk_run_is_a_bound(plan):
    limits = tuple(PLANS[plan].limits())
    # The largest take seconds each, so a run takes those of one plan.
    sizes = SIZES if plan in part(PLANS) else SIZES[:-2]
    start = 1_000.0  # an account at rest
    for calls, moment in moments_in_bulk(InMemory(limits), sizes, start).items():
        took = moment - start
        foretold = InMemory(limits).eta(calls, calls * TOKENS, start, BULK)
        assert took <= foretold <= 1.1 * took + 1, calls


@pytest.mark.parametrize("plan", ["v1:pro", "general:starter", "3,000 an hour"])
def test_a_bulk_run_of_many_callers_keeps_to_what_is_foretold(plan):
    limits = tuple(PLANS[plan].limits())
    callers = Callers(InMemory(limits))
    callers.add("all", 16, pause=5.0, begin=1_000.0, priority=BULK)
    took = callers.run(1e9, 200).moments[199] - 1_000.0
    assert took <= InMemory(limits).eta(200, 2_000, 1_000.0, BULK)


@pytest.mark.parametrize("size", [1, 7, 1_000_000])
def test_what_is_foretold_counts_what_was_used_and_who_waits(make, size):
    ledger = make(Limit("requests", 10 * size, 60.0))
    through(ledger, 6, 0.0)
    assert ledger.eta(10 * size - 6, 0, 30.0) == 0
    assert ledger.eta(10 * size - 5, 0, 30.0) == pytest.approx(31.25, rel=0.02)
    if size == 1:
        through(ledger, 5, 30.0)  # one has to wait
        assert ledger.eta(5, 0, 30.0) == pytest.approx(31.25, rel=0.02)
        assert ledger.eta(6, 0, 30.0) == pytest.approx(61.25, rel=0.02)


def test_a_limit_of_one_lets_a_bulk_call_through(make):
    ledger = make(Limit("requests", 1, 86_400.0))
    assert ledger.acquire(Ticket(priority=BULK), 1.0) is None


def test_an_hours_limit_that_counts_no_more_holds_no_bulk_call(make):
    ledger, ticket = make(), Ticket()
    ledger.acquire(ticket, 0.0)
    ledger.settle(ticket, Outcome(status=200, tokens=0, limits=(5, 0, 3_600.0)), 1.0)
    assert ledger.acquire(Ticket(priority=BULK), 2.0) is not None
    assert ledger.acquire(Ticket(priority=BULK), 700.0) is None


BECAME = {
    "settle": Outcome(status=200, tokens=0, limits=(4, 1, 20.0)),
    "refused": Outcome(status=429, tokens=0, retry_after=3.0),
    "unsent": Outcome(sent=False, tokens=0),
}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["ask", "ask", "ask", "again", "leave", *BECAME]),
            st.floats(0.01, 9.0),
            st.sampled_from([INTERACTIVE, BULK]),
        ),
        max_size=40,
    )
)
@settings(max_examples=fewer(40), deadline=None)
def test_the_script_and_the_ledger_say_the_same(redis_server, steps):
    limits = (Limit("requests", 4, 60.0), Limit("requests", 20, 3600.0))
    both = (InMemory(limits), in_redis(redis_server.url, limits))
    waiting, sent, now = [], [], 100.0
    for what, pause, priority in steps:
        now += pause
        pair = None
        if what == "ask":
            pair = tuple(Ticket(priority=priority) for _ in both)
        elif what == "again" and waiting:
            pair = waiting.pop(0)
        if pair is not None:
            waits = [ledger.acquire(ticket, now) for ledger, ticket in zip(both, pair, strict=True)]
            turns = [0.0 if wait is None else wait.turn for wait in waits]
            assert turns[0] == pytest.approx(turns[1], abs=0.01)
            (sent if waits[0] is None else waiting).append(pair)
        elif what == "leave" and waiting:
            for ledger, ticket in zip(both, waiting.pop(), strict=True):
                ledger.leave(ticket)
        elif what in BECAME and sent:
            for ledger, ticket in zip(both, sent.pop(), strict=True):
                ledger.settle(ticket, BECAME[what], now)
    for priority in (INTERACTIVE, BULK):
        etas = [ledger.eta(7, 0, now, priority) for ledger in both]
        assert etas[0] == pytest.approx(etas[1], abs=0.01)
