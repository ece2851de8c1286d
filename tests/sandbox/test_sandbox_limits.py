"""Plan limits with an injected clock, and the headers that tell of them."""

import threading

import pytest

from langchain_svc.sandbox import Fault, Sandbox
from langchain_svc.sandbox.limits import RESET_FORMATS, Meter, WindowLimit

CHAT = {"model": "svc-turbo", "messages": [{"role": "user", "content": "hi"}]}


class Clock:
    def __init__(self, now=1_700_000_000.0):
        self.now = now

    def __call__(self):
        return self.now


def statuses(call, sandbox, path, count, method="GET"):
    return [call(path, method=method, sandbox=sandbox).status_code for _ in range(count)]


@pytest.mark.parametrize(
    ("plan", "path", "per_minute"),
    [
        ("free", "/v1/models", 3),
        ("starter", "/v1/models", 3),
        ("pro", "/v1/models", 60),
        ("free", "/api/models", 10),
        ("starter", "/api/models", 60),
        ("pro", "/api/models", 300),
    ],
)
def test_requests_per_minute(call, plan, path, per_minute):
    clock = Clock()
    with Sandbox(plan=plan, clock=clock) as s:
        assert statuses(call, s, path, per_minute + 1) == [200] * per_minute + [429]
        clock.now += 59.5
        refused = call(path, method="GET", sandbox=s)
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == "1"
        clock.now += 0.5
        assert statuses(call, s, path, 1) == [200]


def test_interfaces_count_separately(call):
    with Sandbox(plan="free", clock=Clock()) as s:
        assert statuses(call, s, "/v1/models", 4)[-1] == 429
        assert statuses(call, s, "/api/models", 1) == [200]


def test_requests_per_hour(call):
    clock = Clock()
    with Sandbox(plan="free", clock=clock) as s:
        for _ in range(33):
            assert statuses(call, s, "/v1/models", 3) == [200] * 3
            clock.now += 60
        assert statuses(call, s, "/v1/models", 2) == [200, 429]
        refused = call("/v1/models", method="GET", sandbox=s)
        assert refused.headers["x-ratelimit-limit"] == "100"
        assert refused.headers["retry-after"] == str(3600 - 33 * 60)


def test_requests_per_day(call):
    clock = Clock()
    with Sandbox(plan="free", clock=clock) as s:
        for _ in range(10):
            assert statuses(call, s, "/api/models", 10) == [200] * 10
            clock.now += 60
        refused = call("/api/models", method="GET", sandbox=s)
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == str(86_400 - 600)


def test_tokens(call):
    clock = Clock()
    long = {"message": "word " * 4999, "model": "svc-turbo"}
    with Sandbox(plan="free", clock=clock) as s:
        first = call("/api/chat", long, sandbox=s)
        assert first.status_code == 200
        assert first.json()["tokens"] >= 5000
        while call("/api/chat", long, sandbox=s).status_code == 200:
            pass
        clock.now += 3600
        refused = call("/api/chat", {"message": "hi"}, sandbox=s)
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == str(86_400 - 3600)
        clock.now += 86_400
        assert call("/api/chat", {"message": "hi"}, sandbox=s).status_code == 200


def test_every_v1_answer_carries_the_headers(call):
    clock = Clock()
    with Sandbox(plan="pro", clock=clock, faults=[Fault(status=503, path="/generate")]) as s:
        answers = [
            call("/v1/chat/completions", CHAT, sandbox=s),
            call("/v1/chat/completions", {**CHAT, "stream": True}, sandbox=s),
            call("/v1/chat/completions", {}, sandbox=s),
            call("/v1/nothing", {}, sandbox=s),
            call("/v1/models", {}, sandbox=s),
            call("/v1/models", method="GET", headers={"Authorization": "Bearer x"}, sandbox=s),
            call("/v1/models", method="GET", headers={"X-Sandbox-Fault": "{"}, sandbox=s),
            call("/v1/images/generate", {}, sandbox=s),
        ]
    assert [each.status_code for each in answers] == [200, 200, 400, 404, 405, 401, 400, 503]
    assert {each.headers["x-ratelimit-limit"] for each in answers} == {"60"}
    # What is refused before the limits, or by a fault, is not counted.
    left = [each.headers["x-ratelimit-remaining"] for each in answers]
    assert left == ["59", "58", "57", "57", "57", "57", "57", "57"]
    assert {each.headers["x-ratelimit-reset"] for each in answers} == {"1700000060"}


def test_no_other_interface_has_the_headers(call, shared):
    assert "x-ratelimit-limit" not in call("/api/models", method="GET").headers
    assert "x-ratelimit-limit" not in call("/api/medical/chat", {"message": "x"}).headers


@pytest.mark.parametrize(
    ("wording", "value"),
    [
        ("epoch", "1700000031"),
        ("epoch_ms", "1700000030500"),
        ("delta", "30"),
        ("iso", "2023-11-14T22:13:51Z"),
        ("duration", "30s"),
    ],
)
def test_reset_formats(call, wording, value):
    clock = Clock(1_700_000_000.5 - 30)
    with Sandbox(plan="pro", clock=clock, reset_format=wording) as s:
        call("/v1/models", method="GET", sandbox=s)
        clock.now += 30
        assert call("/v1/models", method="GET", sandbox=s).headers["x-ratelimit-reset"] == value


def test_a_long_duration(call):
    clock = Clock()
    with Sandbox(plan="free", clock=clock, reset_format="duration") as s:
        fresh = call("/v1/models", method="GET", sandbox=s)
        assert fresh.headers["x-ratelimit-reset"] == "1m0s"
        for _ in range(34):
            statuses(call, s, "/v1/models", 3)
            clock.now += 60
        assert call("/v1/models", method="GET", sandbox=s).headers["x-ratelimit-reset"] == "26m0s"


def test_hours_in_a_duration():
    assert RESET_FORMATS["duration"](3690.0, 0.0) == "1h1m30s"


def test_a_meter_admits_exactly_its_limit_from_many_threads():
    meter = Meter((WindowLimit("requests", 500, 60.0),), Clock())
    admitted = []

    def knock():
        admitted.extend(meter.admit() == 0 for _ in range(200))

    threads = [threading.Thread(target=knock) for _ in range(5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sum(admitted) == 500
