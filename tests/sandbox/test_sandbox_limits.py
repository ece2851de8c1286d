"""Plan limits with an injected clock, and the headers that tell of them."""

import pytest

from langchain_svc.sandbox import Fault, Sandbox

CHAT = {"model": "svc-turbo", "messages": [{"role": "user", "content": "hi"}]}
MINUTE, HOUR, DAY = 60, 3600, 86_400


class Clock:
    def __init__(self, now=1_700_000_000.0):
        self.now = now

    def __call__(self):
        return self.now


@pytest.fixture
def get(call):
    def answers(sandbox, path="/v1/models", count=1):
        return [call(path, method="GET", sandbox=sandbox) for _ in range(count)]

    return answers


def statuses(answers):
    return [answer.status_code for answer in answers]


@pytest.mark.parametrize(
    ("plan", "path", "per_minute"),
    [
        *((plan, "/v1/models", amount) for plan, amount in [("free", 3), ("starter", 3)]),
        *((plan, "/api/models", amount) for plan, amount in [("free", 10), ("starter", 60)]),
        *(("pro", "/v1/models", 60), ("pro", "/api/models", 300)),
    ],
)
def test_requests_a_minute_of_each_interface(get, plan, path, per_minute):
    clock = Clock()
    other = "/api/models" if path == "/v1/models" else "/v1/models"
    with Sandbox(plan=plan, clock=clock) as s:
        assert statuses(get(s, path, per_minute + 1)) == [200] * per_minute + [429]
        assert statuses(get(s, other)) == [200]
        clock.now += 59.5
        (refused,) = get(s, path)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        clock.now += 0.5
        assert statuses(get(s, path)) == [200]


@pytest.mark.parametrize(
    ("path", "per_minute", "limit", "period"),
    [("/v1/models", 3, 99, HOUR), ("/api/models", 10, 100, DAY)],
)
def test_longer_windows(get, path, per_minute, limit, period):
    clock = Clock()
    with Sandbox(plan="free", clock=clock) as s:
        for _ in range(limit // per_minute):
            assert statuses(get(s, path, per_minute)) == [200] * per_minute
            clock.now += MINUTE
        *_, refused = get(s, path, 2)
        assert refused.status_code == 429
        passed = limit // per_minute * MINUTE
        assert refused.headers["retry-after"] == str(period - passed)


def test_tokens(call):
    clock = Clock()
    long = {"message": "word " * 4999, "model": "svc-turbo"}
    with Sandbox(plan="free", clock=clock) as s:
        assert call("/api/chat", long, sandbox=s).json()["tokens"] >= 5000
        while call("/api/chat", long, sandbox=s).status_code == 200:
            pass
        clock.now += HOUR
        refused = call("/api/chat", {"message": "hi"}, sandbox=s)
        assert refused.status_code == 429
        assert refused.headers["retry-after"] == str(DAY - HOUR)
        clock.now += DAY
        assert call("/api/chat", {"message": "hi"}, sandbox=s).status_code == 200


def test_every_v1_answer_carries_the_headers_and_no_other(call):
    faults = [Fault(status=503, path="/generate")]
    with Sandbox(plan="pro", clock=Clock(), faults=faults) as s:
        answers = [
            call("/v1/chat/completions", CHAT, sandbox=s),
            call("/v1/chat/completions", {**CHAT, "stream": True}, sandbox=s),
            call("/v1/chat/completions", {}, sandbox=s),
            call("/v1/nothing", {}, sandbox=s),
            call("/v1/models", {}, sandbox=s),
            call("/v1/models", method="GET", headers={"Authorization": "Bearer x"}, sandbox=s),
            call("/v1/images/generate", {}, sandbox=s),
        ]
    assert statuses(answers) == [200, 200, 400, 404, 405, 401, 503]
    assert {each.headers["x-ratelimit-limit"] for each in answers} == {"60"}
    # What is refused before the limits, or by a fault, is not counted.
    left = [each.headers["x-ratelimit-remaining"] for each in answers]
    assert left == ["59", "58", "57", "57", "57", "57", "57"]
    assert {each.headers["x-ratelimit-reset"] for each in answers} == {"1700000060"}
    assert "x-ratelimit-limit" not in call("/api/models", method="GET").headers
    assert "x-ratelimit-limit" not in call("/api/medical/chat", {"message": "x"}).headers


def test_the_reset_is_rounded_up(get):
    clock = Clock(1_700_000_000.5)
    with Sandbox(plan="pro", clock=clock) as s:
        get(s)
        clock.now += 30
        assert get(s)[0].headers["x-ratelimit-reset"] == "1700000061"
