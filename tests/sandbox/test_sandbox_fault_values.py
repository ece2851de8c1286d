"""Faults as values: what they refuse to be, and which request gets which."""

import pytest

from langchain_svc.sandbox import Fault
from langchain_svc.sandbox.faults import FaultBook


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"status": 100}, "status"),
        ({"status": 600}, "status"),
        ({"status": True}, "status"),
        ({"status": "500"}, "status"),
        ({"statu": 500}, "statu"),
        ({"body": object()}, "body"),
        ({"headers": {"Bad Name": "x"}}, "headers"),
        ({"headers": {"X": "a\r\nb"}}, "headers"),
        ({"headers": {"X": "\u20ac"}}, "headers"),
        ({"headers": {"X": None}}, "headers"),
        ({"headers": ["X"]}, "headers"),
        ({"content_type": "a\nb"}, "content_type"),
        ({"delay": -1}, "delay"),
        ({"delay": float("inf")}, "delay"),
        ({"delay": True}, "delay"),
        ({"hang": 1}, "hang"),
        ({"reset": "after"}, "reset"),
        ({"mangle": "xml"}, "mangle"),
        ({"after": -1}, "after"),
        ({"after": 1.5}, "after"),
        ({"rate": 1.5}, "rate"),
        ({"times": 0}, "times"),
        ({"path": 3}, "path"),
        ({"raw": "text"}, "raw"),
        ({"heartbeats": 1.0}, "heartbeats"),
        ({"heartbeats": 0, "stall": True}, "heartbeats"),
        ({"cut": True, "hang": True}, "hang and cut"),
        ({"reset": "inside", "stall": True}, "reset and stall"),
    ],
)
def test_refusals_name_the_field(fields, named):
    with pytest.raises(ValueError, match=named):
        Fault(**fields)


def struck(book, count, path="/v1/models"):
    return [book.pick(path) for _ in range(count)]


def test_the_first_that_matches_is_applied():
    first, second = Fault(status=500, times=2), Fault(status=503)
    assert struck(FaultBook([first, second], 0), 3) == [first, first, second]


def test_path():
    fault = Fault(status=500, path="/chat", times=1)
    book = FaultBook([fault], 0)
    assert struck(book, 3, "/v1/models") == [None] * 3
    assert struck(book, 2, "/api/medical/chat") == [fault, None]


def test_rate_is_seeded():
    fault = Fault(status=500, rate=0.3)
    one = struck(FaultBook([fault], 1), 500)
    assert one == struck(FaultBook([fault], 1), 500)
    assert one != struck(FaultBook([fault], 2), 500)
    assert 100 < sum(each is fault for each in one) < 200


def test_rate_zero_and_one():
    assert struck(FaultBook([Fault(status=500, rate=0)], 0), 50) == [None] * 50
    assert None not in struck(FaultBook([Fault(status=500)], 0), 50)


def test_times_counts_matching_requests_struck_or_not():
    fault = Fault(status=500, rate=0.5, times=10)
    picks = struck(FaultBook([fault], 0), 40)
    assert any(picks[:10])
    assert not any(picks[10:])


def test_only_faults_are_faults():
    with pytest.raises(TypeError, match="Fault"):
        FaultBook([{"status": 500}], 0)
