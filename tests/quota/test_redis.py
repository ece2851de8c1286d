"""A quota that processes share through a real Redis, and what happens when that fails."""

from __future__ import annotations

import asyncio
import json
import pickle
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from test_quota import Quick, at_once

import langchain_svc as svc
from benchmarks.redis_server import COMMAND, RedisServer
from langchain_svc.quota import redis_store
from langchain_svc.quota.plans import Limit
from langchain_svc.sandbox import Fault, Sandbox

redis = pytest.importorskip("redis")
pytestmark = pytest.mark.skipif(COMMAND is None, reason="redis-server is not on PATH")


@pytest.fixture(scope="module")
def server():
    with RedisServer() as running:
        yield running


@pytest.fixture
def store(server):
    """The address of a Redis that is empty."""
    with redis.Redis.from_url(server.url) as client:
        client.flushall()
    return server.url


@pytest.fixture
def own():
    """A Redis that this test may hurt."""
    with RedisServer() as running:
        yield running


def quota_in(url, *limits, **words):
    quota = svc.SvcQuota(svc.Plan(), storage=url, **words)
    quota._plans = {"": Quick(*limits)}
    return quota


def test_processes_share_the_plan(store):
    code = """
        import json, sys, time
        import langchain_svc as svc
        order = json.loads(sys.argv[1])
        quota = svc.SvcQuota(svc.Plan(requests_per_minute=20), storage=order["store"])
        model = svc.ChatSvc(quota=quota, deadline=3, **order["model"])
        found = model.batch(["Hi"] * 15, return_exceptions=True)
        print(sum(not isinstance(answer, Exception) for answer in found))
    """
    with Sandbox() as sandbox:
        order = json.dumps({"store": store, "model": sandbox.v1})
        running = [
            subprocess.Popen(
                [sys.executable, "-c", textwrap.dedent(code), order], stdout=subprocess.PIPE
            )
            for _ in range(2)
        ]
        done = [int(process.communicate()[0]) for process in running]
        assert sum(done) == 20
        assert len(sandbox.requests) == 20


def test_calls_wait_in_threads_and_on_loops(store, sandbox):
    quotas = [quota_in(store, Limit("requests", 5, 0.5)) for _ in range(2)]
    one, other = (svc.ChatSvc(quota=quota, **sandbox.v1) for quota in quotas)

    async def run():
        return await other.abatch(["Hi"] * 6)

    thread = threading.Thread(target=lambda: one.batch(["Hi"] * 6))
    thread.start()
    asyncio.run(run())
    thread.join()
    times = [request.at for request in sandbox.requests]
    assert len(times) == 12
    assert max(sum(at <= other < at + 0.5 for other in times) for at in times) <= 5
    assert all(quota.snapshot().waiting == 0 for quota in quotas)


def test_a_call_is_one_round_trip(store, sandbox):
    model = svc.ChatSvc(quota=svc.SvcQuota("v1:pro", storage=store), **sandbox.v1)
    model.invoke("Hi")
    with redis.Redis.from_url(store) as client:
        client.config_resetstat()
        for _ in range(10):
            model.invoke("Hi")
        stats = client.info("commandstats")
    assert stats["cmdstat_evalsha"]["calls"] == 10


def test_what_calls_took_is_told_to_others(store, sandbox):
    mine, theirs = (svc.SvcQuota("v1:pro", storage=store) for _ in range(2))
    model = svc.ChatSvc(quota=mine, **sandbox.v1)
    total = sum(model.invoke("Hi " * n).usage_metadata["total_tokens"] for n in range(1, 5))
    mine.snapshot()  # tells what is not yet told
    theirs.account("v1", sandbox.v1["api_key"])
    snapshot = theirs.snapshot()
    assert [n.used for n in snapshot.limits if n.unit == "tokens"] == [total]
    assert [n.used for n in snapshot.limits if n.unit == "requests"] == [4, 4]
    assert theirs.eta(requests=56) == 0
    assert theirs.eta(requests=57) > 50


def test_a_refusal_holds_other_processes_back_at_once(store, sandbox):
    sandbox.faults = [Fault(status=429, headers={"retry-after": "30"}, times=1)]
    mine, theirs = (svc.SvcQuota(storage=store) for _ in range(2))
    with pytest.raises(svc.SvcRateLimitError):
        svc.ChatSvc(quota=mine, max_retries=0, **sandbox.v1).invoke("Hi")
    with pytest.raises(svc.SvcRateLimitError, match=r"Nothing was sent") as told:
        svc.ChatSvc(quota=theirs, deadline=5, **sandbox.v1).invoke("Hi")
    assert 25 < told.value.retry_after <= 30


def test_no_word_of_the_key_is_in_redis(store, box):
    quota = svc.SvcQuota("pro", storage=store)
    svc.ChatSvc(quota=quota, **box.v1).invoke("A prompt about diabetes")
    with redis.Redis.from_url(store) as client:
        kept = b"".join(key + (client.dump(key) or b"") for key in client.scan_iter())
    assert box.v1["api_key"].encode() not in kept
    assert b"diabetes" not in kept


def test_a_password_is_shown_nowhere(store):
    url = store.replace("redis://", "redis://:s3cret-word@")
    quota = svc.SvcQuota(storage=url)
    model = svc.ChatSvc(quota=quota, api_key="k" * 20, base_url_v1="http://127.0.0.1:9/v1")
    with pytest.raises(svc.SvcConnectionError) as told:
        model.invoke("Hi", max_retries=0)
    seen = [str(told.value), repr(quota), repr(model), str(pickle.dumps(quota))]
    assert not any("s3cret" in text for text in seen)


async def test_a_cancelled_call_leaves_the_queue_of_others(store, sandbox):
    quota = quota_in(store, Limit("requests", 1, 0.5))
    async with svc.ChatSvc(quota=quota, **sandbox.v1) as model:
        await model.ainvoke("Hi")
        waiting = asyncio.create_task(model.ainvoke("Hi"))
        await asyncio.sleep(0.15)
        waiting.cancel()
        await asyncio.wait([waiting])
        began = time.monotonic()
        await model.ainvoke("Hi")
        assert time.monotonic() - began < 2.5
    assert len(sandbox.requests) == 2


# -- Redis fails ---------------------------------------------------------------------------------------


def test_closed_refuses_calls_while_redis_is_away(own, sandbox):
    quota = svc.SvcQuota(svc.Plan(requests_per_minute=50), storage=own.url)
    model = svc.ChatSvc(quota=quota, **sandbox.v1)
    model.invoke("Hi")
    own.stop()
    with pytest.raises(svc.SvcConnectionError, match=rf"{own.url} did not answer.*local") as told:
        model.invoke("Hi", max_retries=0)
    assert told.value.is_retryable
    assert len(sandbox.requests) == 1
    own.start()
    assert model.invoke("Hi", max_retries=5).text  # a retry waits until Redis is asked again
    # Redis has started empty, and was told again what this process had used.
    assert [limit.used for limit in quota.snapshot().limits] == [2]


def test_local_goes_on_with_a_share(own, sandbox):
    quota = svc.SvcQuota(
        svc.Plan(requests_per_minute=10), storage=own.url, on_storage_failure="local"
    )
    model = svc.ChatSvc(quota=quota, **sandbox.v1)
    model.invoke("Hi")
    account = next(iter(quota._accounts.values()))
    account._seen = 2, [4]  # as if another process had used three
    own.stop()
    found = at_once(lambda: model.invoke("Hi", deadline=2), 8)
    assert sum(not isinstance(answer, Exception) for answer in found) == 3  # of (10 - 4) / 2
    assert len(sandbox.requests) == 4
    own.start()
    time.sleep(redis_store._REST)
    model.invoke("Hi")
    assert quota.snapshot().limits[0].used >= 5


def test_what_was_sent_while_redis_was_frozen_is_told(own, sandbox, monkeypatch):
    monkeypatch.setattr(redis_store, "_TIMEOUT", 0.3)
    quota = svc.SvcQuota(
        svc.Plan(requests_per_minute=10), storage=own.url, on_storage_failure="local"
    )
    model = svc.ChatSvc(quota=quota, **sandbox.v1)
    model.invoke("Hi")
    own.freeze()
    try:
        model.batch(["Hi"] * 3)
    finally:
        own.thaw()
    time.sleep(redis_store._REST)
    model.invoke("Hi")
    # A question that Redis answered too late may count as well.
    assert 5 <= quota.snapshot().limits[0].used <= 8


def test_a_frozen_redis_is_waited_for_briefly(own, sandbox, monkeypatch):
    monkeypatch.setattr(redis_store, "_TIMEOUT", 0.3)
    quota = svc.SvcQuota(svc.Plan(requests_per_minute=50), storage=own.url)
    model = svc.ChatSvc(quota=quota, **sandbox.v1)
    model.invoke("Hi")
    own.freeze()
    try:
        found, took = [], time.monotonic()
        found = at_once(lambda: model.invoke("Hi", max_retries=0), 6)
        took = time.monotonic() - took
    finally:
        own.thaw()
    assert all(isinstance(error, svc.SvcConnectionError) for error in found)
    assert took < 2
    assert model.invoke("Hi", max_retries=5).text
