import sys

import pytest

import langchain_svc as svc
from benchmarks.redis_server import COMMAND, RedisServer


@pytest.fixture(scope="session")
def redis_server():
    pytest.importorskip("redis")
    if COMMAND is None:
        pytest.skip("redis-server is not on PATH")
    with RedisServer() as running:
        yield running


def empty(url):
    """Let a Redis hold nothing, and be known to have lost nothing: a new one makes calls wait."""
    import redis

    from langchain_svc.quota import redis_accounts

    with redis.Redis.from_url(url) as client:
        client.flushall()
        client.set(f"{redis_accounts._QUOTA_PREFIX}:began", 0)
        client.set(f"{redis_accounts._BUDGET_PREFIX}:began", 0)


@pytest.fixture
def store(redis_server):
    """The address of a Redis that holds nothing."""
    empty(redis_server.url)
    return redis_server.url


@pytest.fixture
def fresh():
    """A Redis that has just started, and that this test may hurt."""
    with RedisServer() as running:
        yield running


@pytest.fixture
def own(fresh):
    """A Redis that this test may hurt, and that is known to have lost nothing."""
    empty(fresh.url)
    return fresh


@pytest.fixture
def short_rest(monkeypatch):
    """After a failure Redis is asked again sooner, so that a test that waits for it is quick."""
    from langchain_svc.quota import redis_accounts

    monkeypatch.setattr(redis_accounts, "REST", 0.5)


@pytest.fixture
def short_timeout(monkeypatch):
    """A reply of Redis is waited for less long, so that a test with none is quick."""
    from langchain_svc.quota import redis_accounts

    monkeypatch.setattr(redis_accounts, "_TIMEOUT", 0.3)


@pytest.fixture(params=["memory", pytest.param("redis", marks=pytest.mark.slow)])
def storage(request):
    """Where a quota keeps its use."""
    return "memory" if request.param == "memory" else request.getfixturevalue("store")


@pytest.fixture
def pair(storage):
    """Makes two quotas that share their use: one twice in memory, two as of two processes in Redis."""

    def make(plan):
        quota = svc.SvcQuota(plan, storage=storage)
        return quota, quota if storage == "memory" else svc.SvcQuota(plan, storage=storage)

    return make


@pytest.fixture(autouse=True)
def forgotten_budgets():
    """No test begins with what this process knows of another test's budgets in Redis."""
    if redis_accounts := sys.modules.get("langchain_svc.quota.redis_accounts"):
        redis_accounts.account_in.cache_clear()
