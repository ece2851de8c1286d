"""The words in which the rows of the fault matrix are written.

A row says what the peer does, and what a caller is owed for it: once for the answers that are read
whole and once for streams. Nothing asks the library what it does; every expectation is written
down. docs/reliability.md says the same in sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from fault_columns import FIRST
from fault_peer import response

import langchain_svc as svc

MB = 1_000_000
# The errors after which trying later can help.
_LATER = {
    svc.SvcConnectionError,
    svc.SvcRateLimitError,
    svc.SvcServerError,
    svc.SvcStreamError,
    svc.SvcTimeoutError,
}


@dataclass(frozen=True)
class Answer:
    """The right answer, after so many requests."""

    requests: int = 1


@dataclass(frozen=True)
class Fails:
    """An error of exactly this class, after so many requests."""

    error: type
    requests: int = 1
    status: int | None = None
    wait: float | None = None  # its `retry_after`, within a few seconds
    later: bool | None = None  # its `is_retryable`; None for what its class is
    partial: str = ""  # what a stream had yielded; "*" for any beginning of the answer
    says: str = ""  # what its text names

    @property
    def is_retryable(self):
        return self.error in _LATER if self.later is None else self.later


@dataclass(frozen=True)
class Row:
    """One fault: what the peer does, and what becomes of whole answers and of streams."""

    group: str
    name: str
    scripts: tuple[Callable, ...]  # for each request, given the column; the last one repeats
    whole: Answer | Fails | None
    stream: Answer | Fails | None
    settings: Mapping = field(default_factory=dict)
    limit: int | None = None  # the most bytes that the peer may have got rid of
    route: Callable = str  # what is done with the peer's URL
    waits: bool = False  # whether the next call waits until the peer has done all that it does
    more: str = ""  # what the good answer ends with in this row

    def expected(self, column):
        return self.whole if column.kind == "whole" else self.stream


NOT = object()  # the fault has no form for streams


class Rows(list):
    """Rows as they are declared."""

    def add(self, group, name, *scripts, whole, stream=None, settings=None, **more):
        """Declare a row; without a `stream` of its own, streams are owed the same."""
        given = {"max_retries": 1, "timeout": 10.0, "deadline": 20.0, **(settings or {})}
        owed = whole if stream is None else None if stream is NOT else stream
        self.append(Row(group, name, scripts, whole, owed, given, **more))


SHORT = {"timeout": 0.75, "max_retries": 0}
HURRIED = {"deadline": 0.8, "max_retries": 0}
SMALL = {"max_response_bytes": MB}
NO_RETRY = {"max_retries": 0}


def typed(column):
    return f"Content-Type: {column.label}"


def body(name):
    """A good status with one of the column's bodies."""

    def script(column):
        return [response(column.bodies[name], "200 OK", typed(column))]

    return script


def says(*steps):
    """The same steps for every column."""
    return lambda _: list(steps)


def raw(data, label=None, *headers):
    """A good status with a body that is the same for every column."""
    return lambda column: [
        response(
            data() if callable(data) else data,
            "200 OK",
            f"Content-Type: {label}" if label else typed(column),
            *headers,
        )
    ]


def status(text, *headers, data=b'{"error": {"message": "no", "type": "t", "code": "c"}}'):
    return says(response(data, text, "Content-Type: application/json", *headers))


good = body("good")
AGAIN = "Retry-After: 0"
LOST = Fails(svc.SvcConnectionError)
LOST_TWICE = Fails(svc.SvcConnectionError, 2)
BROKEN = Fails(svc.SvcStreamError, partial=FIRST)
BROKEN_TWICE = Fails(svc.SvcStreamError, 2)


def first_event(column):
    data = column.good
    return data[: data.index(b"\n") + 1] + (b"\n" if column.label.endswith("stream") else b"")
