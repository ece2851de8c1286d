"""The conversation with the service, its retries and their budget: without a network or a clock."""

from __future__ import annotations

import heapq
import itertools
import json
import random

import pytest

import langchain_svc as svc
from langchain_svc._client.exchange import converse
from langchain_svc._client.steps import (
    READ,
    REFILL,
    STORE,
    TOKENS_A_SECOND,
    EventParser,
    Exchange,
    Head,
    Limits,
    Loss,
    Open,
    PutOnRecord,
    Request,
    RetryBudget,
    Sleep,
    TryEnd,
    WholeParser,
)
from langchain_svc._wire import End, Text, Usage
from langchain_svc.sandbox import Fault, Sandbox

GOOD = b'{"choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}]}'
STREAM = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'
REASON = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
HEADERS = (("Authorization", "Bearer k"),)
URL = "https://svc.example/v1/chat/completions"
SENT = b'{"message": "I am Ann Meyer, born in Ulm"}'
REQUEST = Request("POST", URL, HEADERS, SENT, secrets=("k-secret",))
OK, DOWN, FULL, REFUSED = Head(200, {}), Head(503, {}), Head(429, {}), Loss("connect", "refused")


class World:
    """Many conversations with one service at once, on a clock that only the waits move.

    `answer(number of the call, now)` is the service: a Head, or how the request was lost; or a
    Head with what each read of the body gives.
    """

    def __init__(
        self,
        answer,
        *,
        seed=1,
        jitter=None,
        takes=0.05,
        spread=0.0,
        a_read=0.0,
        reader=None,
        log=None,
        **limits,
    ):
        self.answer = answer
        self.takes, self.a_read = takes, a_read
        self.spread = spread  # how many times as long some answers take
        self.limits = Limits(**limits)
        self.reader = reader or (lambda: WholeParser(json.loads))
        self.log = log
        self.retry_budget = RetryBudget()
        self.jitter = jitter or random.Random(seed).random
        self.now = 0.0
        self.sent, self.timeouts, self.pieces = [], [], []
        self.began, self.ended, self.failed, self.took = {}, {}, {}, {}
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
                self.failed[number] = end
                self.took[number] = self.now - self.began[number]
                following = next(numbers, None)
                if following is not None:
                    self._begin(following)
        return self

    def _begin(self, number):
        self.began[number] = self.now
        call = Exchange(
            REQUEST, self.limits, self.reader, self.retry_budget, try_log=self.log,
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
                self.timeouts.append(step.timeouts)
                reply = self.answer(number, self.now)
                reply, *body = reply if isinstance(reply, list) else [reply, GOOD]
                takes = self.takes * (1 + self.spread * self.jitter())
                return self._later(takes, number, steps, reply, body)
            if isinstance(step, PutOnRecord):
                reply = step.log.record(step.end)
            elif step is READ:
                self.now += self.a_read
                reply = body.pop(0) if body else b""
            elif isinstance(step, (dict, list)):
                self.pieces.append(step)
                self.ended[number] = step

    @property
    def good(self):
        return sum(end == json.loads(GOOD) for end in self.ended.values())


def one(*tries, **words):
    """One call, whose tries end so, with the longest pauses."""
    ends = iter(tries)
    return World(
        lambda *_: next(ends), jitter=lambda: 1.0, takes=words.pop("takes", 0.0), **words
    ).run(1)


def pauses(world):
    return [pytest.approx(b - a) for a, b in itertools.pairwise(world.sent)]


def texts():
    return EventParser()


# -- one call -------------------------------------------------------------------------------------


def test_backoff_doubles_up_to_its_longest():
    world = one(*[DOWN] * 8, max_retries=7, deadline=None)
    assert isinstance(world.ended[0], svc.SvcServerError)
    assert pauses(world) == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]


@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "2"}, 2.2),
        ({"x-ratelimit-reset": "3"}, 3.3),
        ({"retry-after": "x"}, 0.5),
        ({"retry-after": "Mon, 01 Jan 2024 00:00:00 GMT", "x-ratelimit-reset": "3"}, 0.5),
        ({"x-ratelimit-reset": "3", "x-ratelimit-remaining": "0"}, 3.3),
        ({"x-ratelimit-reset": "3", "x-ratelimit-remaining": "299"}, 0.5),
        ({"retry-after": "61"}, 67.1),
    ],
)
def test_the_services_own_word_goes_before_backoff(headers, pause):
    assert pauses(one(Head(429, headers), OK, max_retry_wait=100)) == [pause]


@pytest.mark.parametrize("headers", [{}, {"retry-after": "0"}])
def test_without_retries_and_a_wait_for_outages_a_request_is_sent_once(headers):
    world = one(Head(503, headers), OK, max_retries=0)
    assert isinstance(world.ended[0], svc.SvcServerError)
    assert len(world.sent) == 1


def test_nothing_is_sent_after_the_deadline():
    world = one(OK, deadline=1, begun=-2.0)
    assert "deadline of 1 s" in str(world.ended[0])
    assert world.sent == []


def test_a_filtered_answer_may_be_empty():
    body = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}\n\n' + DONE
    world = one([OK, body], reader=texts)
    assert isinstance(world.failed[0], StopIteration)
    assert world.pieces == [[End("content_filter")]]


ENDS = {
    "answered": OK,
    "status 503": DOWN,
    "status 429": FULL,
    "status 401": Head(401, {}),
    "not sent: the service could not be reached": Loss("connect", "refused", sent=False),
    "not sent: timed out before that": Loss("timeout", sent=False),
    "timed out": Loss("timeout"),
    "connection lost": Loss("read"),
    "timed out within the answer": [OK, Loss("timeout")],
    "connection lost within the answer": [OK, b"{", Loss("read")],
    "the answer cannot be read": [Head(200, {"content-encoding": "gzip"}), b"{", b""],
}


class TryLog:
    """What happens, in order; it refuses one of the tries."""

    def __init__(self, refused):
        self.events, self.refused = [], refused

    def record(self, end):
        self.events.append(end)
        if end is None and self.events.count(None) == self.refused:
            return svc.SvcError("not on record")
        return None


@pytest.mark.parametrize("refused", [0, 1, 2, 3])
def test_each_try_is_on_record_before_it_is_opened_and_when_it_has_ended(refused):
    for outcomes in itertools.product(ENDS, repeat=2):
        log = TryLog(refused)

        def answer(number, now, log=log, outcomes=(*outcomes, "answered")):
            assert log.events[-1] is None
            return ENDS[outcomes[log.events.count(None) - 1]]

        world = World(answer, log=log, max_retries=2, deadline=None).run(1)
        ends = [
            TryEnd(outcome, not outcome.startswith("not sent"))
            for outcome in (*outcomes, "answered")
        ][: len(world.sent)]
        told = [event for end in ends for event in (None, end)]
        was_refused = log.events.count(None) == refused
        assert log.events == told + [None] * was_refused
        assert was_refused == ("not on record" in str(world.ended[0]))


@pytest.mark.parametrize("end", [Loss("read"), Loss("timeout"), b""])
def test_nothing_is_missing_after_a_finish_reason(end):
    assert one([OK, STREAM + REASON, end], reader=texts).pieces == [[Text("Hi"), End("stop")]]


def test_what_a_lost_try_said_of_its_answer_is_not_handed_on():
    usage = b'data: {"id":"c1","choices":[],"usage":{"total_tokens":7}}\n\n'
    world = one([OK, usage, Loss("read")], [OK, STREAM, REASON + DONE], reader=texts)
    assert world.pieces == [[Text("Hi")], [End("stop")]]


def test_texts_of_one_read_are_merged_where_the_first_of_them_stands():
    usage = b'data: {"choices":[],"usage":{"total_tokens":7}}\n\n'
    world = one([OK, STREAM + usage + STREAM, REASON + DONE], reader=texts)
    assert world.pieces == [[Text("HiHi"), Usage({"total_tokens": 7})], [End("stop")]]


@pytest.mark.parametrize(
    "reads", [[STREAM + DONE], [STREAM + REASON, DONE], [STREAM, REASON, DONE]]
)
def test_the_rest_of_a_finished_stream_is_awaited_only_shortly(reads):
    (timeouts,) = one([OK, *reads], reader=texts, deadline=100).timeouts
    assert timeouts.until <= 1.0


def test_a_slow_whole_answer_may_take_its_time():
    parts = [GOOD[i : i + 1] for i in range(len(GOOD))]
    assert one([OK, *parts], timeout=1, a_read=0.5).pieces == [json.loads(GOOD)]


def test_an_error_inside_the_answer_is_told_without_what_was_sent():
    body = (
        STREAM
        + b'data: {"error": {"message": "Ann Meyer, born in Ulm, is k-secret", "code": "c9"}}\n\n'
    )
    world = one([OK, body], reader=texts)
    assert "[...], is [key] (code c9)" in str(world.failed[0])


def test_a_failed_connection_names_the_place_but_no_key():
    world = one(Loss("connect", "proxy k-secret said no"), max_retries=0)
    assert str(world.ended[0]) == (
        "The service at https://svc.example could not be reached: proxy [key] said no; "
        "check the base URL, and that the server is running"
    )


# -- many calls ------------------------------------------------------------------------------------


def failing(rate, kinds=(DOWN, REFUSED), seed=7):
    draw = random.Random(seed)
    return lambda *_: draw.choice(kinds) if draw.random() < rate else OK


@pytest.mark.parametrize("max_retries", [2, 10])
@pytest.mark.parametrize(
    "at_once", [1, *(pytest.param(many, marks=pytest.mark.slow) for many in (16, 128))]
)
def test_thirty_in_a_hundred_failing_costs_less_than_half_more(max_retries, at_once):
    world = World(failing(0.3), max_retries=max_retries).run(4000, at_once)
    lost = 4000 * 0.3 ** (max_retries + 1)  # whose every try failed: the budget adds none to them
    assert 1.3 * 4000 < len(world.sent) < 1.5 * 4000
    assert 4000 - world.good == pytest.approx(lost, abs=40)


@pytest.mark.parametrize(
    "rate", [0.4, *(pytest.param(rate, marks=pytest.mark.slow) for rate in (0.6, 0.8, 1.0))]
)
def test_beyond_that_retries_are_bound_to_good_answers(rate):
    world = World(failing(rate), max_retries=10).run(2000, 128)
    retries = len(world.sent) - 2000
    assert retries <= STORE + REFILL * world.good + TOKENS_A_SECOND * world.now
    assert world.good >= 2000 * (1 - rate) - 100  # no first try was left out


def test_calls_of_a_dead_service_fail_when_their_own_retries_would_have():
    world = World(lambda *_: REFUSED).run(3000, 200)
    assert world.good == 0
    assert max(world.took.values()) <= 0.5 + 1.0 + 3 * world.takes
    assert {type(end) for end in world.ended.values()} == {svc.SvcConnectionError}


def test_poison_never_fails_a_first_try_of_another():
    poisoned = World(lambda number, _: DOWN if number % 41 else OK).run(4100, 41)
    assert all(isinstance(poisoned.ended[number], dict) for number in range(0, 4100, 41))
    assert max(poisoned.took[number] for number in range(0, 4100, 41)) < 2 * poisoned.takes


def test_an_outage_that_is_waited_for_loses_nobody():
    def answer(_, now):
        return REFUSED if 5 < now < 50 else OK

    world = World(answer, takes=0.5, outage_wait=60).run(5000, 128)
    assert world.good == 5000
    during = [at for at in world.sent if 10 < at < 50]
    assert len(during) < STORE + TOKENS_A_SECOND * 40
    assert World(answer, takes=0.5).run(5000, 128).good < 5000


def test_a_service_that_comes_back_unwell_gets_the_retries_of_each_call():
    unwell = failing(0.3)
    world = World(lambda *at: REFUSED if 1 < at[1] < 20 else unwell(*at), outage_wait=30)
    world.run(1000, 128)
    assert 1000 - world.good < 1000 * 0.3**3 + 30


def test_patience_with_an_outage_ends():
    world = World(lambda *_: REFUSED, outage_wait=10).run(300, 64)
    assert world.good == 0
    assert 1.5 < max(world.took.values()) <= 10 + 2 * world.takes + 1e-9  # rounding
    late = World(lambda *_: REFUSED, outage_wait=100, deadline=5).run(1)
    assert late.took[0] <= 5


def test_a_prompt_that_always_fails_is_no_outage_where_others_are_answered():
    def answer(number, _):
        return DOWN if number == 3 else OK

    world = World(answer, outage_wait=600).run(2000, 8)
    assert isinstance(world.ended[3], svc.SvcServerError)
    assert world.took[3] < 2


def test_a_full_plan_takes_nothing_from_the_budget():
    world = World(lambda *_: FULL, max_retries=500, deadline=None).run(1)
    assert len(world.sent) == 501
    assert [world.retry_budget.take_token(world.now) for _ in range(int(STORE) + 1)].count(
        True
    ) == STORE


def test_a_callers_own_deadline_takes_nothing_either():
    late = World(lambda *_: Loss("timeout"), takes=2.0, deadline=1.0).run(60)
    assert all(isinstance(end, svc.SvcTimeoutError) for end in late.ended.values())
    assert len(late.sent) == 60


# -- through the public door ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("limits", [{}, {"max_retries": 0, "spread": 9}])
def test_whoever_waits_for_an_outage_to_end_tries_again_before_giving_up(seed, limits):
    """Also whose failure of before the end arrives after the first good answer of another."""
    world = World(
        lambda _, now: DOWN if 0.1 < now < 2.1 else OK, seed=seed, outage_wait=8, **limits
    )
    world.run(300, at_once=32)
    assert not [end for end in world.ended.values() if isinstance(end, svc.SvcError)]


@pytest.mark.slow
async def test_a_call_sits_out_an_outage():
    with Sandbox() as box:
        box.faults = [Fault(status=503, times=30)]
        async with svc.ChatSvc(**box.v1, max_retries=0, outage_wait=120) as model:
            answers = await model.abatch([f"Say exactly: n{n}" for n in range(20)])
        assert [f"n{n}" in answer.content for n, answer in enumerate(answers)] == [True] * 20
