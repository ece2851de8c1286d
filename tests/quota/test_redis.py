"""A quota that processes share through a real Redis, and what happens when that fails."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import json
import math
import pickle
import socketserver
import subprocess
import sys
import textwrap
import threading
import time

import pytest
from share import part
from test_quota import at_once, redis_client

import langchain_svc as svc
from benchmarks.redis_server import COMMAND
from langchain_svc.quota import redis_accounts
from langchain_svc.quota.ledger import Outcome, Ticket
from langchain_svc.sandbox import Sandbox

pytest.importorskip("redis")
pytestmark = pytest.mark.skipif(COMMAND is None, reason="redis-server is not on PATH")


@pytest.mark.slow
def test_processes_share_the_plan(store):
    # No call waits, so no clock decides: each is let through or told that it comes too late.
    code = """
        import json, sys
        import langchain_svc as svc
        order = json.loads(sys.argv[1])
        quota = svc.SvcQuota(svc.Plan(requests_per_day=20), storage=order["store"])
        model = svc.ChatSvc(quota=quota, **order["model"])
        found = model.batch(["Hi"] * 15, return_exceptions=True)
        print(*(type(answer).__name__ for answer in found))
    """
    with Sandbox() as sandbox:
        order = json.dumps({"store": store, "model": sandbox.v1})
        command = [sys.executable, "-c", textwrap.dedent(code), order]
        running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        done = collections.Counter(
            name for process in running for name in process.communicate()[0].split()
        )
        assert done == {"AIMessage": 20, "SvcRateLimitError": 10}
        assert len(sandbox.requests) == 20


def test_a_call_is_one_round_trip(store, sandbox):
    model = svc.ChatSvc(quota=svc.SvcQuota("v1:pro", storage=store), **sandbox.v1)
    model.invoke("Hi")
    with redis_client(store) as client:
        client.config_resetstat()
        for _ in range(10):
            model.invoke("Hi")
        stats = client.info("commandstats")
    assert stats["cmdstat_evalsha"]["calls"] == 10


# -- Redis fails ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("short_rest")
def test_closed_refuses_calls_while_redis_is_away(own, sandbox):
    quota = svc.SvcQuota(svc.Plan(requests_per_minute=50), storage=own.url)
    model = svc.ChatSvc(quota=quota, **sandbox.v1)
    model.invoke("Hi")
    own.stop()
    with pytest.raises(svc.SvcConnectionError, match=rf"{own.url} did not answer.*local") as told:
        model.invoke("Hi", max_retries=0)
    assert told.value.is_retryable
    assert 0 < told.value.retry_after <= 2
    assert len(sandbox.requests) == 1
    own.start()
    assert model.invoke("Hi", max_retries=1).text  # a retry waits until Redis is asked again
    # Redis has started empty, and was told again what this process had used.
    assert [limit.used for limit in quota.snapshot().limits] == [2]


@pytest.mark.usefixtures("short_rest")
def test_local_goes_on_with_a_share(own, sandbox):
    quota = svc.SvcQuota(
        svc.Plan(requests_per_minute=10), storage=own.url, on_storage_failure="local"
    )
    model = svc.ChatSvc(quota=quota, **sandbox.v1)
    model.invoke("Hi")
    account = next(iter(quota._accounts.values()))
    account._processes = 2  # as if another process had used three
    account._use_to_share = [4]
    own.stop()
    found = at_once(lambda: model.invoke("Hi", deadline=2), 8)
    assert sum(not isinstance(answer, Exception) for answer in found) == 3  # of (10 - 4) / 2
    assert len(sandbox.requests) == 4
    own.start()
    time.sleep(redis_accounts.REST)
    model.invoke("Hi")
    assert quota.snapshot().limits[0].used >= 5


@pytest.mark.slow
@pytest.mark.usefixtures("short_timeout", "short_rest")
def test_what_was_sent_while_redis_was_frozen_is_told(own, sandbox):
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
    time.sleep(redis_accounts.REST)
    model.invoke("Hi")
    # A question that Redis answered too late may count as well.
    assert 5 <= quota.snapshot().limits[0].used <= 8


def test_a_frozen_redis_is_waited_for_no_longer_than_the_deadline(own, sandbox):
    quota = svc.SvcQuota(svc.Plan(requests_per_minute=50), storage=own.url)
    model = svc.ChatSvc(quota=quota, **sandbox.v1)
    model.invoke("Hi")

    async def with_a_full_executor():
        jobs = [asyncio.create_task(asyncio.to_thread(time.sleep, 0.1)) for _ in range(200)]
        await asyncio.sleep(0)
        with pytest.raises(svc.SvcConnectionError):
            await model.ainvoke("Hi", deadline=0.3)
        took = time.monotonic() - began
        for job in jobs:
            job.cancel()
        return took

    own.freeze()
    try:
        began = time.monotonic()
        with pytest.raises(svc.SvcConnectionError):
            model.invoke("Hi", deadline=0.3)
        assert time.monotonic() - began < 2  # Redis has two seconds
        began = time.monotonic()
        assert asyncio.run(with_a_full_executor()) < 2
    finally:
        own.thaw()
    # Redis let both through when nobody waited any more: they are given back.
    ends = time.monotonic() + 20
    while time.monotonic() < ends:
        with contextlib.suppress(svc.SvcConnectionError):  # it rests
            quota.snapshot()  # tells it
            if quota.snapshot().limits[0].used == 1:
                break
        time.sleep(0.1)
    assert quota.snapshot().limits[0].used == 1


# -- the plan is kept, whoever knows what was used ---------------------------------------------------

WORKER = """
    import json, sys, time
    import langchain_svc as svc
    from langchain_svc.quota.ledger import Ticket
    order = json.loads(sys.argv[1])
    plan = svc.Plan(requests_per_minute=60)
    quota = svc.SvcQuota(plan, storage=order["store"], on_storage_failure=order["failure"])
    account = quota.account("v1", "any-key-0123")
    for line in sys.stdin:
        most, seconds = json.loads(line)
        sent, ends = 0, time.monotonic() + seconds
        while sent < most and time.monotonic() < ends:
            ticket = Ticket(patience=1e9)
            try:
                if account.acquire(ticket) is None:
                    sent += 1
                    continue
            except svc.SvcConnectionError:
                pass
            account.leave(ticket)
            time.sleep(0.05)
        print(sent, flush=True)
"""


class Worker:
    """Another process, which asks for as many calls as it is told to."""

    def __init__(self, store, failure):
        order = json.dumps({"store": store, "failure": failure})
        command = [sys.executable, "-c", textwrap.dedent(WORKER), order]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def begin(self, most, seconds):
        self._process.stdin.write(json.dumps([most, seconds]) + "\n")
        self._process.stdin.flush()

    def sent(self):
        return int(self._process.stdout.readline())

    def ask(self, most, seconds=1.0):
        self.begin(most, seconds)
        return self.sent()

    def kill(self):
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def workers():
    """Starts workers, and ends them."""
    running = []

    def start(count, store, failure="closed"):
        fresh = [Worker(store, failure) for _ in range(count)]
        running.extend(fresh)
        return fresh

    yield start
    for worker in running:
        worker.kill()


def all_at_once(workers, most, seconds):
    """How many calls of all these workers were let through."""
    for worker in workers:
        worker.begin(most, seconds)
    return sum(worker.sent() for worker in workers)


def refuse_memory(store, *, refuses):
    with redis_client(store) as client:
        client.config_set("maxmemory", 1 if refuses else 0)


@pytest.mark.slow
def test_processes_that_never_met_redis_keep_the_plan_together(own, workers):
    refuse_memory(own.url, refuses=True)
    assert all_at_once(workers(3, own.url, "local"), 100, 4.0) == 3  # one each


def test_a_forked_child_has_not_met_redis(own, monkeypatch):
    plan = svc.Plan(requests_per_minute=60)
    quota = svc.SvcQuota(plan, storage=own.url, on_storage_failure="local")
    account = quota.account("v1", "any-key-0123")
    assert account.acquire(Ticket()) is None
    own.stop()
    monkeypatch.setattr(redis_accounts, "_STARTED", "of a child")
    assert [account.acquire(Ticket()) is None for _ in range(5)].count(True) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("failure", ["closed", "local"])
def test_the_plan_is_kept_when_redis_loses_it_and_some_cannot_tell_at_once(own, workers, failure):
    three = workers(3, own.url, failure)
    # In two rounds, so that each has heard of the others.
    sent = sum(worker.ask(10, 30.0) for worker in 2 * three)
    assert sent == 60
    refuse_memory(own.url, refuses=True)
    failed = three[1:]
    sent += all_at_once(failed, 100, 0.5)
    with redis_client(own.url) as client:
        client.flushall()
    refuse_memory(own.url, refuses=False)
    sent += three[0].ask(100)  # knows of its own calls only, and may not take the rest of the plan
    sent += all_at_once(three, 100, 3.0)
    assert 60 <= sent <= 60 + 6


@pytest.mark.slow
def test_a_new_process_may_not_take_the_plan_of_a_redis_that_was_flushed(own, workers):
    (old,) = workers(1, own.url)
    sent = old.ask(50, 30.0)
    assert sent == 50
    with redis_client(own.url) as client:
        client.flushall()
    (new,) = workers(1, own.url)
    sent += new.ask(100)
    sent += old.ask(100)
    sent += new.ask(100)
    assert 60 <= sent <= 60 + 3


# -- something else answers ----------------------------------------------------------------------


class NoRedis(socketserver.StreamRequestHandler):
    """Says yes to all commands of a client but to the script's, which it answers otherwise."""

    def handle(self):
        while line := self.rfile.readline():
            words = [self.word() for _ in range(int(line[1:]))]  # "*3": three words follow
            answers = {b"HELLO": b"%1\r\n+proto\r\n:3\r\n", b"EVALSHA": self.server.reply}
            self.wfile.write(answers.get(words[0], b"+OK\r\n"))

    def word(self):
        length = int(self.rfile.readline()[1:])  # "$7": its length
        return self.rfile.read(length + len(b"\r\n"))[:-2]


@contextlib.contextmanager
def no_redis(reply):
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), NoRedis) as server:
        server.reply, server.daemon_threads, server.block_on_close = reply, True, False
        threading.Thread(target=server.serve_forever, args=(0.002,), daemon=True).start()
        try:
            yield f"redis://127.0.0.1:{server.server_address[1]}/0"
        finally:
            server.shutdown()


GOOD = {"now": 1.0, "born": "1", "processes": 1, "used": [0], "turn": 1, "wait": False}
TEXTS = [
    "",
    "{}",
    "[]",
    "null",
    "1",
    "no JSON",
    "[" * 100_000,
    "\ud800",
    '{"turn": 0, "again": 1e9}',
    *(json.dumps({name: value for name, value in GOOD.items() if name != left}) for left in GOOD),
    *(json.dumps(GOOD | {name: value}) for name in GOOD for value in ("1", [1, 2], math.inf)),
    *(json.dumps(GOOD | {"wait": wait}) for wait in ([1], [1, 2, "3"], [math.nan] * 3, {"a": 1})),
]
RAW = [
    b"+OK\r\n",
    b":1\r\n",
    b"$-1\r\n",
    b"*-1\r\n",
    b"*1\r\n:1\r\n",
    b"-ERR no\r\n",
    b"-MOVED 1 h:1\r\n",
    b"$x\r\n",
    b"HTTP/1.1 400 Bad Request\r\n\r\n",
    b"\0" * 99 + b"\r\n",
    b"%1\r\n+a\r\n+b\r\n",
    b"_\r\n",
]
RAW += [
    b"$%d\r\n%b\r\n" % (len(body), body)
    for body in (text.encode("utf-8", "surrogatepass") for text in TEXTS)
    if body != json.dumps(GOOD).encode()
]


@pytest.mark.usefixtures("short_timeout")
def test_what_answers_in_the_place_of_redis_is_a_connection_error(sandbox):
    plan = svc.Plan(requests_per_day=1)
    replies = part(RAW)
    for reply in replies:
        with no_redis(reply) as url:
            closed, local = (
                svc.ChatSvc(
                    quota=svc.SvcQuota(plan, storage=url, on_storage_failure=how), **sandbox.v1
                )
                for how in ("closed", "local")
            )
            with pytest.raises(svc.SvcConnectionError, match="did not answer"):
                closed.invoke("Hi", max_retries=0)
            local.invoke("Hi", max_retries=0)
            with pytest.raises(svc.SvcRateLimitError):
                local.invoke("Hi", max_retries=0)
    assert len(sandbox.requests) == len(replies)


@pytest.mark.parametrize("wait", part([[0.1, 1e9, 60], [0, 1e9, 60], [-5, -5, -5], [0.2, 0, 60]]))
def test_no_answer_makes_a_call_wait_past_its_deadline(wait, sandbox):
    body = json.dumps(GOOD | {"wait": wait}).encode()
    with no_redis(b"$%d\r\n%b\r\n" % (len(body), body)) as url:
        quota = svc.SvcQuota(svc.Plan(requests_per_day=1), storage=url)
        began = time.monotonic()
        with pytest.raises(svc.SvcError):
            svc.ChatSvc(quota=quota, **sandbox.v1).invoke("Hi", deadline=0.5)
        assert time.monotonic() - began < 10
    assert not sandbox.requests


# -- many ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_question_costs_the_same_whatever_the_number_of_processes(store, monkeypatch):
    account = svc.SvcQuota("v1:pro", storage=store).account("v1", "any-key-0123")
    with redis_client(store) as client:
        client.flushall()
        sizes = []
        for process in range(2_000):
            monkeypatch.setattr(redis_accounts, "_STARTED", f"{process:032x}")
            account.leave(ticket := Ticket())
            account.acquire(ticket)
            account.settle(ticket, Outcome(sent=False))
            sizes.append(client.strlen(client.keys("*:state")[0]))
        assert max(sizes) < 2 * sizes[0]
    assert account._processes == 2_000


# -- secrets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "redis://:p@s3cret#word-X@h",
        "redis://:s3cret/y@h",
        "redis://:a?s3cret@h",
        "redis://h:s3cret",
        "redis://:a#s3cret@h:6379/0",
        "redis://user:s3cret@h:x/0",
        "redis://h/0#s3cret",
        "s3cret://h",
        "redis://:p@s3cret@h/0",
        "redis://u:p%2F%23s3cret@h/0",
        "rediss://:s3cret@h:6380/1",
        "unix:///tmp/s?password=s3cret",
        "unix://u:s3cret@/tmp/s",
        "redis://h/0?password=s3cret",
        "redis://:s3cret\u2100@h/0",
    ],
)
def test_a_password_is_told_nowhere_however_it_is_written(url):
    try:
        quota = svc.SvcQuota(storage=url)
    except ValueError as error:
        seen, clear = [str(error), repr(error.__cause__)], "%23" in str(error)
    else:
        seen, clear = [repr(quota), repr(vars(quota)), str(pickle.dumps(quota))], True
        password = quota._account_in_redis.args[0]._connection.password
        assert password in {"s3cret", "p@s3cret", "p/#s3cret"}
    assert clear
    with pytest.raises(ValueError, match="storage=") as raised:
        svc.SvcQuota(url)
    seen.append(str(raised.value))
    assert not any("s3cret" in text for text in seen)


def test_a_storage_that_does_not_answer_is_named_without_its_password():
    quota = svc.SvcQuota("pro", storage="redis://ann:s3cret@127.0.0.1:1/0")
    words = {"api_key": "k", "base_url_v1": "http://127.0.0.1:1/v1", "max_retries": 0}
    with pytest.raises(svc.SvcConnectionError) as raised:
        svc.ChatSvc(**words, quota=quota).invoke("hi")
    assert "redis://127.0.0.1:1/0" in str(raised.value)
    error = raised.value
    assert "s3cret" not in f"{error!r}{error.__cause__!r}{vars(error)}"
