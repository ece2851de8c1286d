"""A budget that processes share through a real Redis, and what happens when that fails."""

from __future__ import annotations

import asyncio
import collections
import faulthandler
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from share import part
from test_quota import at_once, redis_client
from test_redis import RAW, no_redis

import langchain_svc as svc
from benchmarks.redis_server import COMMAND
from langchain_svc.quota import redis_accounts
from langchain_svc.sandbox import Fault, Sandbox

pytest.importorskip("redis")
pytestmark = pytest.mark.skipif(COMMAND is None, reason="redis-server is not on PATH")

PRICES = {"svc-turbo": {"input": 1.0, "output": 2.0, "per_tokens": 1_000}}
EVER = 5.0  # seconds that a Redis which has just started waits for those that know more


def budget_of(url, **words):
    return svc.SvcBudget(storage=url, key="user:42", **words)


def as_another_process(url, **words):
    """A budget that shares nothing with others of this process but what Redis holds."""
    redis_accounts.account_in.cache_clear()
    return budget_of(url, **words)


def settled(budget, calls=0):
    """What the budget shows, once all but so many calls are settled."""
    ends = time.monotonic() + 30
    while budget._account.look().calls > calls and time.monotonic() < ends:
        time.sleep(0.05)
    return budget.used


@pytest.mark.parametrize("make", [budget_of, as_another_process])
def test_objects_of_one_key_and_period_share_it(store, sandbox, make):
    model = svc.ChatSvc(**sandbox.v1)
    mine = budget_of(store, max_requests=2, period="day")
    theirs = make(store, max_requests=2, period="day")
    with mine:
        model.invoke("Hi")
    with theirs:
        model.invoke("Hi")
        with pytest.raises(
            svc.SvcBudgetError,
            match=r"max_requests=2 of this day would be exceeded: 2 used, 0 left, .*; the next day \(UTC\) begins anew",
        ) as failure:
            model.invoke("Hi")
    assert failure.value.used.requests == 2
    assert mine.left == theirs.left == svc.BudgetUse(0, None, None)
    others = [
        svc.SvcBudget(max_requests=1, storage=store, key="user:43", period="day"),
        budget_of(store, max_requests=1, period="month"),
        budget_of(store, max_requests=1),
    ]
    for budget in others:
        with budget:
            model.invoke("Hi")
    with budget_of(store, max_requests=3, period="day"):  # another bound on the same account
        model.invoke("Hi")
    assert len(sandbox.requests) == 6


async def test_what_it_shows_is_the_sum_of_the_usage_handler(store, sandbox):
    budget = budget_of(store, max_tokens=10**6, max_cost=10**6, prices=PRICES, period="month")
    sandbox.faults = [Fault(status=503, times=2)]
    with svc.SvcUsageCallbackHandler(prices=PRICES) as usage, budget:
        model = svc.ChatSvc(**sandbox.v1, max_tokens=200)
        model.batch(["Hi " * n for n in range(1, 9)])
        list(model.stream("Tell me a story"))
        await asyncio.gather(*(model.ainvoke("Hello") for _ in range(4)))
        schema = {"title": "Mood", "type": "object", "properties": {"mood": {"type": "string"}}}
        model.with_structured_output(schema).invoke("How are you?")
        shown = settled(budget)
    (counts,) = usage.models.values()
    assert shown.requests == len(sandbox.requests) == counts.calls + counts.retries
    assert shown.tokens == counts.total_tokens > 0
    assert shown.cost == pytest.approx(sum(counts.cost.values()), abs=1e-9)
    assert budget.left.tokens == 10**6 - shown.tokens


def test_what_was_not_sent_is_given_back(store):
    nowhere = svc.ChatSvc(api_key="k" * 20, base_url_v1="http://127.0.0.1:9/v1", max_retries=0)
    budget = budget_of(store, max_requests=1, max_tokens=9_000)
    with budget, pytest.raises(svc.SvcConnectionError):
        nowhere.invoke("Hi")
    settled(budget)
    assert budget.left == svc.BudgetUse(1, 9_000, None)


async def test_a_cancelled_call_leaves_nothing_reserved(store):
    with Sandbox(answers=["word " * 400], pace=0.05) as sandbox:
        budget = budget_of(store, max_requests=5)
        model = svc.ChatSvc(budget=budget, **sandbox.v1)
        calls = [asyncio.create_task(model.ainvoke("Hi")) for _ in range(3)]
        while len(sandbox.requests) < 3:  # noqa: ASYNC110  # the sandbox has no event for it
            await asyncio.sleep(0.02)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        assert (await asyncio.to_thread(settled, budget)).requests == 3
        assert budget.left.requests == 2


def test_calls_in_flight_cannot_pass_it(store, sandbox):
    budgets = [as_another_process(store, max_requests=10) for _ in range(2)]
    models = [svc.ChatSvc(budget=budget, **sandbox.v1) for budget in budgets]
    found = at_once(lambda: models[random.randrange(2)].invoke("Hi"), 16)
    failed = [answer for answer in found if isinstance(answer, Exception)]
    assert len(failed) == 6
    assert all(isinstance(error, svc.SvcBudgetError) for error in failed)
    assert len(sandbox.requests) == 10


# -- Redis fails -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("short_rest")
def test_nothing_is_sent_while_redis_is_away(own, sandbox):
    budget = budget_of(own.url, max_requests=5)
    model = svc.ChatSvc(budget=budget, **sandbox.v1)
    model.invoke("Hi")
    own.stop()
    text = (
        rf"The budget's storage {own.url} did not answer .*; this request was not sent\. Start it"
    )
    with pytest.raises(svc.SvcConnectionError, match=text) as failure:
        model.invoke("Hi", max_retries=0)
    assert failure.value.is_retryable
    assert "local" not in str(failure.value)
    with pytest.raises(svc.SvcConnectionError, match=r"The budget's storage"):
        _ = budget.left
    assert "used" not in repr(budget)
    assert len(sandbox.requests) == 1
    own.start()
    model.invoke("Hi", max_retries=1)  # a retry waits until Redis is asked again
    assert budget.used.requests == 2  # Redis has started empty, and was told again


@pytest.mark.slow
@pytest.mark.usefixtures("short_rest")
def test_what_others_used_is_known_when_redis_starts_empty(own, sandbox):
    """The one that used most says nothing more: the other knows it from Redis' last answer."""
    model = svc.ChatSvc(**sandbox.v1)
    one, other = (as_another_process(own.url, max_requests=6) for _ in range(2))
    with one:
        model.batch(["Hi"] * 4)
    with other:
        model.invoke("Hi")
        settled(other)
        own.stop()
        own.start()
        time.sleep(redis_accounts.REST)
        model.invoke("Hi")
        with pytest.raises(svc.SvcBudgetError, match="6 used, 0 left"):
            model.invoke("Hi")
    with one, pytest.raises(svc.SvcBudgetError, match="6 used, 0 left"):
        model.invoke("Hi")  # which tells its own again: it counts once
    assert len(sandbox.requests) == 6


@pytest.mark.slow
def test_a_new_process_waits_for_those_that_know(fresh, sandbox):
    budget = budget_of(fresh.url, max_requests=5)
    model = svc.ChatSvc(budget=budget, **sandbox.v1)
    with pytest.raises(
        svc.SvcConnectionError, match=r"has just started, and waits .* s for processes that know"
    ) as failure:
        model.invoke("Hi", deadline=0.5, max_retries=0)
    assert 0 < failure.value.retry_after <= EVER
    assert not sandbox.requests
    model.invoke("Hi")
    assert budget.used.requests == 1


@pytest.mark.slow
def test_a_process_that_ends_tells_what_its_last_call_used(store, sandbox):
    code = """
        import json, sys
        import langchain_svc as svc
        order = json.loads(sys.argv[1])
        with svc.SvcBudget(max_requests=9, storage=order["store"], key="user:42"):
            svc.ChatSvc(**order["model"]).invoke("Hi")
    """
    order = json.dumps({"store": store, "model": sandbox.v1})
    subprocess.run([sys.executable, "-c", textwrap.dedent(code), order], check=True)
    standing = budget_of(store, max_requests=9)._account.look()
    assert (standing.used[0], standing.calls) == (1, 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_forked_child_counts_what_it_uses_itself(store, sandbox, tmp_path):
    budget = budget_of(store, max_requests=9)
    model = svc.ChatSvc(budget=budget, **sandbox.v1)
    model.batch(["Hi"] * 2)
    stacks = tmp_path / "stacks.txt"
    child = os.fork()
    if not child:
        try:
            faulthandler.dump_traceback_later(120, exit=True, file=stacks.open("w"))
            model.batch(["Hi"] * 3)
            settled(budget)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0, f"the child stood still:\n{stacks.read_text()}"
    model.invoke("Hi")
    assert settled(budget).requests == len(sandbox.requests) == 6


def test_neither_the_key_nor_the_password_is_shown_or_kept(store, sandbox):
    budget = svc.SvcBudget(max_requests=1, storage=store, key="jane.doe@example.com")
    svc.ChatSvc(budget=budget, **sandbox.v1).invoke("A prompt about diabetes")
    with redis_client(store) as client:
        shown = [str(key + (client.dump(key) or b"")) for key in client.scan_iter()]
    assert not any(word in text for text in [*shown, repr(budget)] for word in ("jane", "diabetes"))
    secret = svc.SvcBudget(max_requests=1, storage="redis://:s3cret@127.0.0.1:1/0", key="k")
    texts = [repr(secret), repr(vars(secret)), str(pickle.dumps(secret))]
    with pytest.raises(svc.SvcConnectionError) as failure:
        _ = secret.used
    assert not any("s3cret" in text for text in [*texts, str(failure.value)])


# -- something else answers ------------------------------------------------------------------------


@pytest.mark.usefixtures("short_timeout")
def test_what_answers_in_the_place_of_redis_is_a_connection_error(sandbox):
    for reply in part(RAW):
        with no_redis(reply) as url:
            model = svc.ChatSvc(budget=budget_of(url, max_requests=5), **sandbox.v1)
            with pytest.raises(svc.SvcConnectionError, match="The budget's storage"):
                model.invoke("Hi", max_retries=0)
    assert not sandbox.requests


LIES = [
    ({"granted": False}, svc.SvcBudgetError),  # though there is room
    ({"granted": False, "wait": 1e12}, svc.SvcConnectionError),
    ({"granted": False, "lost": True}, svc.SvcError),  # each time
    ({"granted": True, "lost": True}, svc.SvcError),
]


@pytest.mark.parametrize(("lie", "error"), part(LIES))
def test_an_answer_that_makes_no_sense_sends_nothing(lie, error, sandbox):
    reply = {"born": "1", "period": 0, "lost": False, "wait": 0, "calls": 0}
    reply |= {"used": ["0"] * 3, "reserved": ["0"] * 3} | lie
    body = json.dumps(reply).encode()
    with no_redis(b"$%d\r\n%b\r\n" % (len(body), body)) as url:
        budget = budget_of(url, max_requests=5)
        with pytest.raises(error):
            svc.ChatSvc(budget=budget, **sandbox.v1).invoke("Hi", deadline=1, max_retries=0)
    assert not sandbox.requests


# -- all at once -----------------------------------------------------------------------------------

WORKER = """
    import asyncio, json, random, sys
    import langchain_svc as svc
    order = json.loads(sys.argv[1])
    budget = svc.SvcBudget(storage=order["store"], key="user:42", period="month", **order["bounds"])
    model = svc.ChatSvc(budget=budget, max_tokens=60, **order["model"])

    async def caller():
        while True:
            try:
                await model.ainvoke("Hi " * random.randrange(1, 30), max_retries=0)
            except svc.SvcBudgetError:
                return
            except svc.SvcConnectionError:
                await asyncio.sleep(0.3)

    async def run():
        await asyncio.gather(*(caller() for _ in range(order["at_once"])))

    with svc.SvcUsageCallbackHandler() as usage:
        asyncio.run(run())
    print(sum(counts.total_tokens for counts in usage.models.values()))
"""


def chaos(redis, calls, processes, at_once, kills, restarts, seed=0):
    """Processes use up a budget while some are killed, and Redis is restarted empty."""
    rng = random.Random(seed)
    with Sandbox(pace=0.0) as sandbox:
        order = {
            "store": redis.url,
            "model": sandbox.v1,
            "at_once": at_once,
            "bounds": {"max_requests": calls, "max_tokens": 10**9},
        }
        command = [sys.executable, "-c", textwrap.dedent(WORKER), json.dumps(order)]

        def start():
            return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

        running = [start() for _ in range(processes)]
        trouble = ["kill"] * kills + ["restart"] * restarts
        rng.shuffle(trouble)
        marks = [calls * (at + 1) // (len(trouble) + 1) for at in range(len(trouble))]
        ends = time.monotonic() + 900
        while any(process.poll() is None for process in running) and time.monotonic() < ends:
            if marks and len(sandbox.requests) >= marks[0]:
                marks.pop(0)
                if trouble.pop() == "kill":
                    victim = running.pop(rng.randrange(processes))
                    victim.send_signal(signal.SIGKILL)
                    victim.communicate()
                    running.append(start())
                else:
                    redis.stop()
                    redis.start()
            time.sleep(0.01)
        tokens = sum(int(process.communicate(timeout=5)[0]) for process in running)
        standing = budget_of(redis.url, max_requests=calls, period="month")._account.look()
        spent = collections.Counter()
        for request in sandbox.requests:
            spent[request.status] += 1
        return {
            "sent": len(sandbox.requests),
            "answered": spent[200],
            "shown": standing.used[0],
            "reserved": standing.calls,
            "tokens": tokens,  # as the handlers of those that were not killed saw them
            "tokens shown": standing.used[1],
        }


@pytest.mark.slow
@pytest.mark.parametrize(("kills", "restarts"), [(0, 2), (2, 0), (2, 2)])
def test_the_account_is_what_was_used_whatever_happens(own, kills, restarts):
    calls, at_once = 400, 3
    result = chaos(own, calls, 4, at_once, kills, restarts)
    on_the_way = kills * at_once  # of processes that were killed
    if not kills:
        assert result["shown"] == result["sent"] == calls
        assert result["reserved"] == 0
        assert result["tokens shown"] == result["tokens"]
    # Nothing is lost but what killed processes had on the way, and that stays reserved.
    assert 0 <= result["sent"] - result["shown"] <= on_the_way
    assert result["reserved"] <= on_the_way
    assert calls - on_the_way <= result["sent"] <= calls + on_the_way
