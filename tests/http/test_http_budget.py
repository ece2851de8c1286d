"""The retry budget and the circuit: what many calls owe a failing service together."""

from __future__ import annotations

import copy
import gc
import heapq
import itertools
import logging
import os
import pickle
import random
import threading

import pytest
from langchain_core.exceptions import ModelConnectionError
from peers import RawServer, response

import langchain_svc as svc
from langchain_svc._http import budget
from langchain_svc._http.budget import (
    FAILURES,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    REFILL,
    RUSH,
    STORE,
    TOKENS_A_SECOND,
    Circuit,
    Hold,
    Kept,
    shared_circuit,
)
from langchain_svc._http.call import (
    READ,
    Call,
    Head,
    Limits,
    Lost,
    Open,
    Request,
    Sleep,
)
from langchain_svc._http.exchange import converse
from langchain_svc._http.readers import WholeReader
from langchain_svc._wire.v1 import read_completion
from langchain_svc.sandbox import Fault, Sandbox

GOOD = b'{"choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}]}'
REQUEST = Request("POST", "https://svc.example/v1/chat/completions", (), b"{}")
OK, DOWN, FULL, REFUSED = Head(200, {}), Head(503, {}), Head(429, {}), Lost("connect", "refused")


class World:
    """Many conversations with one service at once, on a clock that only the waits move.

    `answer(number of the request, now)` is the service: a Head or how the request was lost.
    """

    def __init__(self, answer, *, seed=1, takes=0.05, circuit=None, **limits):
        self.answer = answer
        self.takes = takes
        self.limits = Limits(**limits)
        self.circuit = circuit or Circuit(random.Random(seed).random)
        self.jitter = random.Random(seed + 1).random
        self.now = 0.0
        self.sent = []
        self.ended = {}
        self._order = itertools.count()
        self._agenda = []

    def run(self, calls, at_once=1):
        """Makes the calls, so many at once; each begins when one before it has ended."""
        numbers = iter(range(calls))
        for number in itertools.islice(numbers, at_once):
            self._begin(number)
        while self._agenda:
            self.now, _, number, steps, reply, body = heapq.heappop(self._agenda)
            try:
                self._advance(number, steps, reply, body)
            except (StopIteration, svc.SvcError) as end:
                self.ended.setdefault(number, end)
                following = next(numbers, None)
                if following is not None:
                    self._begin(following)
        return self

    def _begin(self, number):
        call = Call(
            REQUEST, self.limits, lambda: WholeReader(read_completion), self.circuit,
            clock=lambda: self.now, wall=lambda: 1_790_000_000.0, jitter=self.jitter,
        )  # fmt: skip
        self._later(0.0, number, converse(call), None, [])

    def _later(self, seconds, number, steps, reply, body):
        entry = (self.now + seconds, next(self._order), number, steps, reply, body)
        heapq.heappush(self._agenda, entry)

    def _advance(self, number, steps, reply, body):
        while True:
            step = steps.send(reply)
            reply = None
            if isinstance(step, Sleep):
                return self._later(step.seconds, number, steps, None, body)
            if isinstance(step, Open):
                self.sent.append(self.now)
                reply = self.answer(len(self.sent), self.now)
                body = [GOOD] if reply is OK else []
                return self._later(self.takes, number, steps, reply, body)
            if step is READ:
                reply = body.pop() if body else b""
            elif hasattr(step, "text"):
                self.ended[number] = step.text

    @property
    def good(self):
        return sum(end == "Hi" for end in self.ended.values())


def failing(rate, kinds=(DOWN, REFUSED), seed=7):
    draw = random.Random(seed)
    return lambda *_: draw.choice(kinds) if draw.random() < rate else OK


@pytest.mark.parametrize("max_retries", [2, 10])
@pytest.mark.parametrize("at_once", [1, 16, 128])
def test_thirty_in_a_hundred_failing_costs_less_than_half_more(max_retries, at_once):
    world = World(failing(0.3), max_retries=max_retries).run(4000, at_once)
    lost = 4000 * 0.3 ** (max_retries + 1)  # whose every try failed: the budget adds none to them
    assert 1.3 * 4000 < len(world.sent) < 1.5 * 4000
    assert 4000 - world.good == pytest.approx(lost, abs=40)


@pytest.mark.parametrize("rate", [0.4, 0.6, 0.8])
def test_beyond_that_retries_are_bound_to_successes(rate):
    world = World(failing(rate), max_retries=10, max_retry_wait=1e9, deadline=None).run(2000, 128)
    retries = len(world.sent) - 2000
    assert retries <= STORE + REFILL * world.good + TOKENS_A_SECOND * world.now
    assert 2000 - world.good <= 2000 * rate**11 + 40


def test_a_dead_service_is_not_hammered():
    world = World(lambda *_: REFUSED).run(3000, 128)
    assert world.good == 0
    assert len(world.sent) < 128 + FAILURES + world.now / FIRST_PAUSE
    probes = [at for at in world.sent if at > 30]
    gaps = [later - at for at, later in zip(probes, probes[1:], strict=False)]
    assert len(gaps) > 10
    assert min(gaps) >= LONGEST_PAUSE


def test_a_service_that_comes_back_loses_nobody():
    world = World(lambda _, now: REFUSED if 5 < now < 50 else OK, takes=0.5).run(5000, 128)
    assert world.good == 5000
    during = [at for at in world.sent if 10 < at < 50]
    assert len(during) < 10


def test_patience_ends_and_says_when_to_come_back():
    world = World(lambda *_: REFUSED, max_retry_wait=10).run(300, 8)
    errors = [end for end in world.ended.values() if isinstance(end, svc.SvcUnavailableError)]
    assert len(errors) > 200
    assert isinstance(errors[-1], (svc.SvcConnectionError, ModelConnectionError))
    assert 0 < errors[-1].retry_after <= LONGEST_PAUSE * 1.1
    assert errors[-1].is_retryable
    assert all(error.waited <= 10 for error in errors)
    said = str(errors[-1])
    assert "https://svc.example failed" in said
    assert "circuit_breaker=False" in said
    assert f"come back in {errors[-1].retry_after:.3g} s" in said


@pytest.mark.parametrize("limits", [{"max_retries": 0}, {"max_retry_wait": 0}, {"deadline": 0.5}])
def test_who_cannot_wait_is_told_at_once(limits):
    world = World(lambda *_: OK, circuit=opened(), **limits).run(1)
    assert isinstance(world.ended[0], svc.SvcUnavailableError)
    assert (world.sent, world.now) == ([], 0.0)


@pytest.mark.parametrize(
    "answer", [FULL, Head(401, {}), Head(404, {}), Head(400, {}), Head(501, {}), OK]
)
def test_any_other_answer_shows_a_service_that_lives(answer):
    world = World(lambda *_: DOWN, max_retries=0).run(FAILURES - 1)
    world.answer = lambda *_: answer
    world.run(1)
    world.answer = lambda *_: DOWN
    world.ended.clear()
    world.run(FAILURES)
    assert not any(isinstance(end, svc.SvcUnavailableError) for end in world.ended.values())
    world.ended.clear()
    assert isinstance(world.run(1).ended[0], svc.SvcUnavailableError)


def test_a_full_plan_takes_nothing_from_the_budget():
    world = World(lambda *_: FULL, max_retries=500, deadline=None).run(1)
    assert len(world.sent) == 501
    assert f"{STORE} retries left" in repr(world.circuit)


def test_a_callers_own_deadline_is_no_failure_of_the_service():
    late = World(lambda *_: Lost("timeout"), takes=2.0, deadline=1.0).run(3 * FAILURES)
    assert all(isinstance(end, svc.SvcTimeoutError) for end in late.ended.values())
    assert len(late.sent) == 3 * FAILURES


def opened(jitter=lambda: 0.0):
    circuit = Circuit(jitter)
    for _ in range(FAILURES):
        with circuit.ask(0.0, retry=False) as permit:
            permit.failed(0.0)
    return circuit


def test_the_pauses_double_up_to_the_longest():
    circuit, now, pauses = opened(), 0.0, []
    for _ in range(8):
        hold = circuit.ask(now, retry=False)
        pauses.append(hold.seconds)
        now += hold.seconds
        with circuit.ask(now, retry=False) as probe:
            assert not probe.failed(now)
    assert pauses == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0, 10.0]


def test_one_probe_at_a_time():
    circuit = opened()
    probe = circuit.ask(1.0, retry=False)
    assert [isinstance(circuit.ask(1.0, retry=False), Hold) for _ in range(50)] == [True] * 50
    with probe:
        pass  # it was cancelled, and says nothing
    with circuit.ask(1.0, retry=False) as second:
        assert isinstance(circuit.ask(1.0, retry=False), Hold)
        second.answered()
        assert not isinstance(circuit.ask(1.0, retry=False), Hold)


def test_tries_from_before_it_opened_do_not_lengthen_the_pause():
    circuit = Circuit(lambda: 0.0)
    permits = [circuit.ask(0.0, retry=False) for _ in range(128)]
    assert [permit.failed(0.0) for permit in permits].count(True) == 1
    assert circuit.ask(0.5, retry=False).seconds == 0.5
    permits[0].answered()
    assert not isinstance(circuit.ask(0.5, retry=False), Hold)


def test_a_whole_answer_counts_when_it_ends_too():
    circuit = Circuit(lambda: 0.0)
    permits = [circuit.ask(0.0, retry=False) for _ in range(2 * FAILURES)]
    good, *bad = permits  # as when a busy event loop reads all heads before any body
    good.answered()
    opened = []
    for number, permit in enumerate(bad):
        if number == FAILURES - 1:
            good.succeeded()
        opened.append(permit.failed(0.0))
    assert opened.index(True) == len(opened) - 1 == 2 * FAILURES - 2


def test_a_left_conversation_makes_room_for_another_probe():
    world = World(lambda *_: REFUSED, circuit=opened())
    world.now = 2.0
    call = Call(
        REQUEST,
        Limits(),
        lambda: WholeReader(read_completion),
        world.circuit,
        clock=lambda: world.now,
    )
    steps = converse(call)
    assert isinstance(next(steps), Open)
    assert isinstance(world.circuit.ask(2.0, retry=False), Hold)
    steps.close()
    assert not isinstance(world.circuit.ask(2.0, retry=False), Hold)


def test_threads_share_the_budget_exactly():
    circuit, granted = Circuit(), []

    def work():
        granted.extend(not isinstance(circuit.ask(0.0, retry=True), Hold) for _ in range(100))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert granted.count(True) == STORE


def test_a_circuit_is_shared_by_key_and_origin_and_lives_as_long_as_its_users():
    known = len(budget._SHARED)
    one, other = Kept(), Kept()
    shared = shared_circuit("https://a", "key-1", one)
    assert shared_circuit("https://a", "key-1", other) is shared
    assert shared_circuit("https://a", "key-2", other) is not shared
    assert shared_circuit("https://b", "key-1", other) is not shared
    assert "key-1" not in repr((one, other, list(budget._SHARED)))
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == {}
    del shared, one, other
    gc.collect()
    assert len(budget._SHARED) == known


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_forked_child_is_not_held_by_its_parents_lock_or_probe():
    kept = Kept()
    circuit = shared_circuit("https://forked", "key", kept)
    for _ in range(FAILURES):
        circuit.ask(0.0, retry=False).failed(0.0)
    probe = circuit.ask(2.0, retry=False)
    with circuit._lock, budget._finding:
        child = os.fork()
        if not child:
            again = shared_circuit("https://forked", "key", Kept())
            os._exit(
                0 if again is circuit and not isinstance(again.ask(2.0, retry=False), Hold) else 1
            )
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert isinstance(circuit.ask(2.0, retry=False), Hold)
    del probe


# -- through the public door ---------------------------------------------------------------------


def broken(connection):
    connection.sendall(response(status="503 Service Unavailable", retry_after="0"))


def test_failures_that_take_their_time_hammer_nobody():
    world = World(lambda *_: DOWN, max_retries=0, takes=RUSH / (FAILURES - 2)).run(5 * FAILURES)
    assert len(world.sent) == 5 * FAILURES


def test_models_and_tools_with_one_key_spare_the_service_together(caplog, monkeypatch):
    monkeypatch.setattr(budget, "FIRST_PAUSE", 600.0)  # a busy machine is slow
    monkeypatch.setattr(budget, "RUSH", 600.0)
    caplog.set_level(logging.INFO, logger="langchain_svc")
    with RawServer(broken) as server:
        words = {"api_key": "marked-key", "max_retries": 0}
        chat = svc.ChatSvc(base_url_v1=server.url + "/v1", **words)
        llm = svc.SvcLLM(base_url=server.url, **words)
        for _ in range(FAILURES // 2):
            for model in (chat, llm):
                with pytest.raises(svc.SvcServerError):
                    model.invoke("hi")
        for model in (
            chat,
            llm,
            copy.deepcopy(chat),
            svc.ChatSvc(base_url_v1=server.url + "/v1", **words),
        ):
            with pytest.raises(svc.SvcUnavailableError):
                model.invoke("hi")
        assert len(server.requests) == FAILURES
        for free in ({"api_key": "another-key"}, {"circuit_breaker": False}):
            with pytest.raises(svc.SvcServerError):
                svc.ChatSvc(base_url_v1=server.url + "/v1", **(words | free)).invoke("hi")
        assert len(server.requests) == FAILURES + 2
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [record.getMessage() for record in warned] == [
        f"{server.url} keeps failing: calls wait until it answers again"
    ]
    assert "marked-key" not in caplog.text


async def test_a_call_waits_for_the_service_to_come_back(monkeypatch):
    monkeypatch.setattr(budget, "RUSH", 600.0)
    with Sandbox() as box:
        box.faults = [Fault(status=503, times=FAILURES)]
        async with svc.ChatSvc(**box.v1) as model:
            answers = await model.abatch([f"Say exactly: n{n}" for n in range(FAILURES)])
        assert all(f"n{n}" in answer.content for n, answer in enumerate(answers))
        assert sum(request.status == 503 for request in box.requests) == FAILURES
        assert max(answer.response_metadata.get("waited", 0) for answer in answers) >= FIRST_PAUSE
