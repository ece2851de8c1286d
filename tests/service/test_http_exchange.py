"""The conversation, without a network and without waiting: a script plays the service."""

from __future__ import annotations

import json

import pytest

from langchain_svc import errors
from langchain_svc._service.exchange import converse
from langchain_svc._service.parsers import TextParser, WholeParser
from langchain_svc._service.steps import (
    CLOSE,
    READ,
    Exchange,
    Head,
    Limits,
    Lost,
    Open,
    Request,
    Sleep,
)

GOOD = json.dumps(
    {"choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}]}
).encode()
STREAM = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'
REASON = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
DONE = b"data: [DONE]\n\n"
REQUEST = Request(
    "POST",
    "https://svc.example/v1/chat",
    (("Authorization", "Bearer k"),),
    b"{}",
    ("Ann Meyer",),
    ("k-secret",),
)


def ok(*parts, **headers):
    return [Head(200, headers), *parts, b""]


def status(code, body=b"", **headers):
    return [
        Head(code, {name.replace("_", "-"): value for name, value in headers.items()}),
        body,
        b"",
    ]


LOST = [Lost("connect", "refused")]
LATE = [Lost("timeout")]


class Script:
    """Answers the steps of a conversation from a list of tries, and keeps the time."""

    def __init__(self, tries, *, reader=None, seconds_a_step=0.0, **limits):
        self.tries = [list(one) for one in tries]
        self.now = 0.0
        self.slept = []
        self.sent = []
        self.closed = 0
        self.pieces = []
        self.seconds_a_step = seconds_a_step
        self.call = Exchange(
            REQUEST, Limits(**limits), reader or (lambda: WholeParser(json.loads)),
            clock=lambda: self.now, wall=lambda: 1_790_000_000.0 + self.now, jitter=lambda: 1.0,
        )  # fmt: skip

    def answer(self, step):
        self.now += self.seconds_a_step
        if isinstance(step, Open):
            self.sent.append(step.request)
            self.current = self.tries.pop(0)
            return self.current.pop(0)
        if step is READ:
            return self.current.pop(0) if self.current else b""
        if step is CLOSE:
            self.closed += 1
        elif isinstance(step, Sleep):
            self.slept.append(step.seconds)
            self.now += step.seconds
        return None

    def run(self):
        steps = converse(self.call)
        reply = None
        while True:
            try:
                step = steps.send(reply)
            except StopIteration:
                return self
            if isinstance(step, (Open, Sleep)) or step in (READ, CLOSE):
                reply = self.answer(step)
            else:
                self.pieces.append(step)
                reply = None


def texts(**options):
    return lambda: TextParser(**options)


def test_backoff_doubles_up_to_its_longest():
    script = Script([status(503)] * 8, max_retries=7, deadline=None)
    with pytest.raises(errors.SvcServerError):
        script.run()
    assert script.slept == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]


@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({"retry_after": "0"}, 0.0),
        ({"retry_after": "2"}, 2.2),
        ({"x_ratelimit_reset": "3"}, 3.3),
        ({"retry_after": "x"}, 0.5),
    ],
)
def test_the_services_own_word_goes_before_backoff(headers, pause):
    script = Script([status(429, **headers), ok(GOOD)]).run()
    assert script.slept == [pytest.approx(pause)]


def test_a_long_wait_that_is_allowed_is_waited():
    assert Script([status(429, retry_after="61"), ok(GOOD)], max_retry_wait=100).run().slept == [
        pytest.approx(67.1)
    ]


def test_a_wait_past_the_deadline_is_not_begun():
    script = Script([status(503, retry_after="9"), ok(GOOD)], deadline=5)
    with pytest.raises(errors.SvcServerError) as raised:
        script.run()
    assert (script.slept, raised.value.retry_after) == ([], 9.0)


def test_the_deadline_holds_for_all_tries_together():
    script = Script([LATE] * 9, deadline=10, max_retries=9, seconds_a_step=4)
    with pytest.raises(errors.SvcTimeoutError):
        script.run()
    assert script.now <= 14


def test_nothing_is_sent_after_the_deadline():
    script = Script([ok(GOOD)], deadline=1)
    script.now = 2.0
    with pytest.raises(errors.SvcTimeoutError, match="deadline of 1 s"):
        script.run()
    assert script.sent == []


def test_a_filtered_answer_may_be_empty():
    body = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}]}\n\n' + DONE
    assert Script([ok(body)], reader=texts()).run().pieces == []


@pytest.mark.parametrize("end", [Lost("read"), Lost("timeout"), b""])
def test_nothing_is_missing_after_a_finish_reason(end):
    assert Script([[Head(200, {}), STREAM + REASON, end]], reader=texts()).run().pieces == ["Hi"]


@pytest.mark.parametrize(
    "reads", [[STREAM + DONE], [STREAM + REASON, DONE], [STREAM, REASON, DONE]]
)
def test_the_rest_of_a_finished_stream_is_awaited_only_shortly(reads):
    timeouts = []
    script = Script([ok(*reads)], reader=texts(), deadline=100)
    answer = script.answer

    def spy(step):
        if isinstance(step, Open):
            timeouts.append(step.timeouts)
        return answer(step)

    script.answer = spy
    script.run()
    assert timeouts[0].until <= 1.0


def test_heartbeats_keep_a_stream_alive_only_so_long():
    beats = [b": ping\n\n"] * 100
    script = Script(
        [[Head(200, {}), STREAM, *beats]], reader=texts(), timeout=1, seconds_a_step=0.5
    )
    with pytest.raises(errors.SvcStreamError, match="sent no content"):
        script.run()
    assert 2 < script.now < 6


def test_a_slow_whole_answer_may_take_its_time():
    parts = [GOOD[i : i + 1] for i in range(len(GOOD))]
    assert Script([ok(*parts)], timeout=1, seconds_a_step=0.5).run().pieces == [json.loads(GOOD)]


def test_an_error_inside_the_answer_is_told_without_what_was_sent():
    body = STREAM + b'data: {"error": {"message": "Ann Meyer is k-secret", "code": "c9"}}\n\n'
    with pytest.raises(errors.SvcStreamError) as raised:
        Script([ok(body)], reader=texts()).run()
    assert "[...] is [key] (code c9)" in str(raised.value)


def test_a_failed_connection_names_the_place_but_no_key():
    with pytest.raises(errors.SvcConnectionError) as raised:
        Script([[Lost("connect", "proxy k-secret said no")]], max_retries=0).run()
    assert (
        str(raised.value)
        == "The service at https://svc.example could not be reached: proxy [key] said no; "
        "check the base URL, and that the server is running"
    )
