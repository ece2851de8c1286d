"""A quota as users have it: over real sockets, with windows of a second where one must pass."""

from __future__ import annotations

import asyncio
import copy
import os
import pickle
import re
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import langchain_svc as svc
from langchain_svc.quota.ledger import DAY, Limit
from langchain_svc.sandbox import Fault, Sandbox


class Quick:
    """A plan with windows of its own."""

    def __init__(self, *limits):
        self._limits = limits

    def limits(self):
        return iter(self._limits)


def quota_of(*limits, **words):
    """A quota whose windows may be short."""
    quota = svc.SvcQuota(svc.Plan(), **words)
    quota._plans = {"": Quick(*limits)}
    return quota


def at_once(call, count):
    """What so many calls in threads gave or raised."""
    found = [None] * count

    def run(at):
        try:
            found[at] = call()
        except Exception as error:
            found[at] = error

    threads = [threading.Thread(target=run, args=(at,)) for at in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def redis_client(url):
    import redis

    return redis.Redis.from_url(url)


def connections(storage):
    if storage == "memory":
        return 0
    with redis_client(storage) as client:
        return len(client.client_list())


def arrivals(sandbox):
    return [request.at for request in sandbox.requests]


# -- plans ----------------------------------------------------------------------------------------


def test_one_name_is_a_plan_on_each_interface():
    limits = svc.SvcQuota("Pro").snapshot().limits
    requests = {(n.interface, n.seconds): n.limit for n in limits if n.unit == "requests"}
    assert requests == {
        ("v1", 60): 60,
        ("v1", 3600): 3000,
        ("general", 60): 300,
        ("general", 86400): 100_000,
    }


WRONG = [
    (svc.SvcQuota, {"plan": "gold"}, "'free'.*'starter'.*'v1:pro'.*'learn'.*'60/min'"),
    (svc.SvcQuota, {"plan": None}, "no plan None"),
    (svc.SvcQuota, {"storage": "postgres://x"}, "redis://host:port/0"),
    (svc.SvcQuota, {"on_storage_failure": "open"}, "'closed'.*'local'.*'open'"),
    *(
        (svc.Plan, {"requests_per_minute": value}, "a whole number of 1 or more")
        for value in (0, 1.5, True)
    ),
    (svc.ChatSvc, {"quota": "pro"}, r"such as SvcQuota\('pro'\), not 'pro'"),
    (svc.SvcBudget, {}, "at least one of max_requests=, max_tokens= and max_cost="),
    (
        svc.SvcBudget,
        {"max_requests": -1},
        "max_requests must be a whole number of 0 or more, not -1",
    ),
    *(
        (svc.SvcBudget, {"max_cost": value}, "max_cost must be a number")
        for value in (float("nan"), "5")
    ),
    (
        svc.SvcBudget,
        {"max_requests": 1, "period": "week"},
        "'hour', 'day', 'month', or None .*not 'week'",
    ),
    (svc.SvcBudget, {"max_requests": 1, "period": 60}, "'hour', 'day', 'month', or None .*not 60"),
    (svc.SvcBudget, {"max_requests": 1, "key": "user:42"}, "key= .*needs storage="),
    (svc.SvcBudget, {"max_requests": 1, "storage": "redis://h:1/0"}, "needs key=.*'user:42'"),
    *(
        (
            svc.SvcBudget,
            {"max_requests": 1, "storage": "redis://h:1/0", "key": key},
            "key must be a text",
        )
        for key in ("", 42)
    ),
    (
        svc.SvcBudget,
        {"max_requests": 1, "storage": "postgres://x", "key": "k"},
        "redis://host:port/0",
    ),
    (svc.ChatSvc, {"budget": 5}, r"such as SvcBudget\(max_tokens=100_000\), not 5"),
]


@pytest.mark.parametrize(("kind", "words", "said"), WRONG)
def test_a_wrong_argument_is_told_with_the_right_ones(kind, words, said):
    with pytest.raises(ValueError, match=said):  # pydantic's is one, too
        kind(**words)


# -- waiting --------------------------------------------------------------------------------------


def test_calls_wait_for_their_turn(sandbox):
    model = svc.ChatSvc(quota=quota_of(Limit("requests", 4, 0.5)), **sandbox.v1)
    with model:
        model.batch(["Hi"] * 6, config={"max_concurrency": 6})
    times = arrivals(sandbox)
    assert len(times) == 6
    # Arrivals differ from admissions by what a connection takes, which LATENESS allows for.
    assert max(sum(at <= other < at + 0.5 for other in times) for at in times) <= 4


def test_a_wait_past_the_deadline_is_not_begun(sandbox):
    model = svc.ChatSvc(quota=svc.SvcQuota(svc.Plan(requests_per_minute=1)), **sandbox.v1)
    model.invoke("Hi")
    began = time.monotonic()
    with pytest.raises(svc.SvcRateLimitError, match=r"minute's quota is used up") as told:
        model.invoke("Hi", deadline=5)
    assert time.monotonic() - began < 10  # and not a minute
    assert 55 < told.value.retry_after < 62
    assert len(sandbox.requests) == 1


def test_a_used_up_day_is_not_worth_a_retry_and_keys_and_interfaces_count_apart(sandbox):
    day = svc.ChatSvc(quota=svc.SvcQuota(svc.Plan(requests_per_day=1)), **sandbox.v1)
    svc.SvcMedicalStatus(quota=day.quota, **sandbox.medical).invoke({})  # another key
    day.invoke("Hi")
    with pytest.raises(svc.SvcRateLimitError, match=r"day's quota") as told:
        day.invoke("Hi")
    assert told.value.is_retryable is False
    assert told.value.retry_after == pytest.approx(DAY, rel=0.02)
    free = svc.SvcQuota("free")
    svc.ChatSvc(quota=free, **sandbox.v1).batch(["Hi"] * 3)
    svc.ChatSvc(interface="general", quota=free, **sandbox.general).invoke("Hi")


def test_every_class_shares_it(sandbox):
    quota = svc.SvcQuota(svc.Plan(requests_per_minute=3))
    svc.ChatSvc(quota=quota, **sandbox.v1).invoke("Hi")
    svc.ChatSvc(interface="general", quota=quota, **sandbox.general).invoke("Hi")
    tools = svc.SvcToolkit(quota=quota, base_url_v1=sandbox.v1["base_url_v1"], **sandbox.general)
    translate = tools.get_tools()[0]
    translate.invoke({"text": "Hi", "target": "es"})
    translate.deadline = 0.5
    with pytest.raises(svc.SvcRateLimitError, match="quota is used up"):
        translate.invoke({"text": "Hi", "target": "es"})
    assert [limit.left for limit in quota.snapshot().limits] == [0]


async def test_a_cancelled_call_leaves_the_queue(sandbox, storage):
    quota = quota_of(Limit("requests", 1, 0.5), storage=storage)
    async with svc.ChatSvc(quota=quota, **sandbox.v1) as model:
        await model.ainvoke("Hi")
        waiting = [asyncio.create_task(model.ainvoke("Hi")) for _ in range(3)]
        await asyncio.sleep(0.15)
        assert quota.snapshot().waiting == 3
        waiting[0].cancel()
        waiting[1].cancel()
        await asyncio.wait(waiting[:2])
        assert quota.snapshot().waiting == 1
        await asyncio.wait_for(waiting[2], 10)
    assert len(sandbox.requests) == 2


def test_many_threads_and_loops_at_once(sandbox, pair, storage):
    before = connections(storage)
    models = [svc.ChatSvc(quota=quota, **sandbox.v1) for quota in pair("v1:enterprise")]

    def run():
        async def both():
            return await asyncio.gather(*(model.ainvoke("Hi") for model in models))

        return [model.invoke("Hi") for model in models] + asyncio.run(both())

    assert all(isinstance(found, list) for found in at_once(run, 16))
    assert len(sandbox.requests) == 64
    for model in models:
        model.close()
    assert connections(storage) <= before + 1


# -- what becomes of calls ---------------------------------------------------------------------------


def used(quota, unit):
    return [limit.used for limit in quota.snapshot().limits if limit.unit == unit]


def test_what_calls_really_took_is_counted(sandbox, pair):
    mine, theirs = pair("v1:pro")
    model = svc.ChatSvc(quota=mine, **sandbox.v1)
    total = sum(model.invoke("Hi " * n).usage_metadata["total_tokens"] for n in range(1, 20))
    snapshot = mine.snapshot()  # tells Redis what is not yet told
    theirs.account("v1", sandbox.v1["api_key"])
    assert used(theirs, "tokens") == [total]
    assert used(theirs, "requests") == [19, 19]
    assert theirs.eta(requests=41) == 0
    assert theirs.eta(requests=42) > 40
    assert snapshot.estimates == 19
    for _ in range(30):
        model.invoke("Hi " * 10)
    assert mine.snapshot().estimate_error < min(0.25, snapshot.estimate_error)


def test_a_stream_left_midway_is_settled_with_what_came():
    with Sandbox(answers=["word " * 400], pace=0.01) as sandbox:
        quota = svc.SvcQuota("v1:pro")
        model = svc.ChatSvc(quota=quota, **sandbox.v1)
        chunks = model.stream("Tell me a story", max_tokens=9000)
        size = sum(len(next(chunks).text) for _ in range(5))
        chunks.close()
    (tokens,) = used(quota, "tokens")
    assert size / 4 <= tokens < 200


def test_a_refusal_holds_back_every_call_of_the_key(sandbox, pair):
    sandbox.faults = [Fault(status=429, headers={"retry-after": "1"}, times=1)]
    mine, theirs = pair("learn")
    with pytest.raises(svc.SvcRateLimitError):
        svc.ChatSvc(quota=mine, max_retries=0, **sandbox.v1).invoke("Hi")
    other = svc.ChatSvc(quota=theirs, **sandbox.v1)
    with pytest.raises(svc.SvcRateLimitError, match=r"This request was not sent") as told:
        other.invoke("Hi", deadline=0.2)
    assert 0 < told.value.retry_after <= 1
    assert 0 < theirs.snapshot().hold <= 1
    assert other.invoke("Hi").response_metadata["waited"] > 0
    assert len(sandbox.requests) == 2


def test_a_storm_of_refusals_while_learning():
    with Sandbox(plan="free") as sandbox:
        quota = svc.SvcQuota("learn")
        model = svc.ChatSvc(quota=quota, max_retries=0, **sandbox.v1)
        found = at_once(lambda: model.invoke("Hi", deadline=10), 12)
        good = sum(not isinstance(answer, Exception) for answer in found)
        assert good == 3
        assert all(
            isinstance(answer, svc.SvcRateLimitError)
            for answer in found
            if isinstance(answer, Exception)
        )
        sent = len(sandbox.requests)
        with pytest.raises(svc.SvcRateLimitError, match=r"This request was not sent") as told:
            model.invoke("Hi", deadline=10)
        assert 50 < told.value.retry_after < 70
        assert len(sandbox.requests) == sent
        limits = {limit.seconds: limit.limit for limit in quota.snapshot().limits}
        assert limits[60.0] == 3


# -- one quota, whatever happens to objects ------------------------------------------------------------


def test_copies_and_pickles_share_it(sandbox):
    quota = svc.SvcQuota(svc.Plan(requests_per_minute=50))
    model = svc.ChatSvc(quota=quota, **sandbox.v1)
    copies = [copy.copy(model), copy.deepcopy(model), model.model_copy(update={"temperature": 0})]
    os.environ["SVC_API_KEY"] = sandbox.v1["api_key"]
    try:
        copies.append(pickle.loads(pickle.dumps(model)))
    finally:
        del os.environ["SVC_API_KEY"]
    for each in copies:
        assert each.quota is quota
        each.invoke("Hi")
    assert used(quota, "requests") == [4]


@pytest.mark.slow
def test_another_process_begins_its_own(tmp_path):
    quota = svc.SvcQuota(svc.Plan(requests_per_minute=50))
    budget = svc.SvcBudget(max_requests=7)
    file = tmp_path / "pickled"
    file.write_bytes(pickle.dumps([quota, quota, budget]))
    code = f"""
        import pickle
        one, other, budget = pickle.loads(open({str(file)!r}, "rb").read())
        assert one is other
        print(one, budget.left.requests)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, check=True, text=True
    )
    assert done.stdout.split()[-1] == "7"
    assert "requests_per_minute=50" in done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_child_goes_on_by_itself(sandbox):
    quota = quota_of(Limit("requests", 2, 0.5))
    model = svc.ChatSvc(quota=quota, **sandbox.v1)
    model.invoke("Hi")
    held = quota._accounts[next(iter(quota._accounts))]._lock
    with held:  # another thread may be inside when the process forks
        child = os.fork()
        if not child:
            try:
                model.batch(["Hi"] * 3)
                os._exit(0)
            finally:
                os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert len(sandbox.requests) == 4


def test_no_word_of_the_key_is_kept(box, storage):
    quota = svc.SvcQuota("pro", storage=storage)
    svc.ChatSvc(quota=quota, **box.v1).invoke("A prompt about diabetes")
    seen = [repr(quota), repr(quota.snapshot()), repr(vars(quota)), str(pickle.dumps(quota))]
    if storage != "memory":
        with redis_client(storage) as client:
            seen += [str(key + (client.dump(key) or b"")) for key in client.scan_iter()]
    assert not any(word in text for text in seen for word in (box.v1["api_key"], "diabetes"))
    assert "quota" not in repr(svc.ChatSvc(quota=quota, **box.v1))


# -- beside calls -----------------------------------------------------------------------------------


def test_eta():
    quota = svc.SvcQuota("pro")
    assert quota.eta(requests=60) == 0
    assert 55 <= quota.eta(requests=61) <= 62
    assert quota.eta(requests=100_000) == pytest.approx(120_000, rel=0.02)  # 3,000 an hour
    assert quota.eta(requests=100_000, interface="general") == pytest.approx(20_000, rel=0.02)
    assert quota.eta(tokens=5_000_000) == pytest.approx(540, rel=0.05)
    assert svc.SvcQuota("learn").eta(requests=10**6) == 0
    for wrong in ({"requests": -1}, {"tokens": 1.5}, {"interface": "v2"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            quota.eta(**wrong)


def test_the_rate_limiter_of_langchain(sandbox):
    quota = svc.SvcQuota(svc.Plan(requests_per_minute=2))
    key = sandbox.v1["api_key"]
    limiter = quota.rate_limiter(api_key=key)
    svc.ChatSvc(rate_limiter=limiter, **sandbox.v1).invoke("Hi")
    assert limiter.acquire(blocking=False)
    assert not limiter.acquire(blocking=False)
    assert quota.snapshot().waiting == 0
    with pytest.raises(svc.SvcRateLimitError):
        svc.ChatSvc(quota=quota, **sandbox.v1).invoke("Hi", deadline=1)


async def test_the_rate_limiter_waits_on_an_event_loop():
    limiter = quota_of(Limit("requests", 1, 0.2)).rate_limiter(api_key="any")
    assert await limiter.aacquire()
    assert not await limiter.aacquire(blocking=False)
    began = time.monotonic()
    assert await limiter.aacquire()
    assert 0.5 < time.monotonic() - began < 10


@pytest.mark.slow
def test_interactive_calls_pass_bulk_ones(sandbox):
    quota, order = quota_of(Limit("requests", 2, 0.5)), []
    model = svc.ChatSvc(quota=quota, **sandbox.v1)

    def bulk():
        with svc.bulk_priority():
            model.invoke("bulk")
        order.append("bulk")

    jobs = threading.Thread(target=at_once, args=(bulk, 6))
    jobs.start()
    time.sleep(0.2)
    assert quota.snapshot().waiting_bulk >= 3
    model.invoke("now")
    order.append("interactive")
    jobs.join()
    assert order.index("interactive") <= 3


def test_a_long_wait_for_the_quota_is_told_once(caplog):
    class ReachedError(Exception):
        pass

    def slept(_):
        slept.times += 1
        if slept.times > 3:
            raise ReachedError

    slept.times = 0
    quota = svc.SvcQuota(svc.Plan(requests_per_minute=1))
    with Sandbox() as sandbox, svc.ChatSvc(**sandbox.v1, quota=quota) as model:
        model.invoke("hi")
        with pytest.MonkeyPatch.context() as patch, pytest.raises(ReachedError):
            patch.setattr(time, "sleep", slept)
            model.invoke("hi")
    (told,) = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert re.match(r"waiting 6\d s, until \d\d:\d\d:\d\d: the quota's limit$", told)


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("60/min", svc.Plan(requests_per_minute=60)),
        ("3000/h", svc.Plan(requests_per_hour=3_000)),
        ("100000/day", svc.Plan(requests_per_day=100_000)),
        (
            "60 / minute, 500000 tokens/min",
            svc.Plan(requests_per_minute=60, tokens_per_minute=500_000),
        ),
    ],
)
def test_limits_can_be_written_as_a_text(text, plan):
    typed, given = svc.SvcQuota(text), svc.SvcQuota(plan)
    assert typed.snapshot().limits == given.snapshot().limits != ()


@pytest.mark.parametrize(
    "text", ["60", "60/week", "0/min", "60/min, 70/min", "5 tokens/h", "1,5/h"]
)
def test_limits_that_say_nothing_clear_are_refused(text):
    with pytest.raises(ValueError, match=r"There is no plan .*'60/min'.*'3000/h, 100000/day'"):
        svc.SvcQuota(text)


def test_what_is_nearly_a_name_is_suggested():
    with pytest.raises(ValueError, match="did you mean 'pro'"):
        svc.SvcQuota("prp")
    with pytest.raises(TypeError, match="did you mean 'requests_per_minute'"):
        svc.Plan(requests_per_min=60)
