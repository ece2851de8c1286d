"""Rows about statuses, waits, redirects, connections and time."""

from __future__ import annotations

import time
from dataclasses import replace
from email.utils import formatdate

from fault_columns import FIRST
from fault_peer import CHUNKED, CLOSE, HOLD, RESET, Drip, Flood, head, response
from fault_words import (
    AGAIN,
    BROKEN,
    BROKEN_TWICE,
    HURRIED,
    LOST,
    LOST_TWICE,
    MB,
    NO_RETRY,
    NOT,
    SHORT,
    Answer,
    Fails,
    Rows,
    first_event,
    good,
    says,
    status,
    typed,
)
from peers import http_chunk

import langchain_svc as svc

ROWS = Rows()
row = ROWS.add


# -- error statuses -------------------------------------------------------------------------------

GROUP = "Error statuses"
for line, error in {
    "400 Bad Request": svc.SvcBadRequestError,
    "401 Unauthorized": svc.SvcAuthenticationError,
    "403 Forbidden": svc.SvcPermissionDeniedError,
    "404 Not Found": svc.SvcNotFoundError,
    "413 Content Too Large": svc.SvcBadRequestError,
    "422 Unprocessable Content": svc.SvcBadRequestError,
    "418 I'm a teapot": svc.SvcAPIError,
    "304 Not Modified": svc.SvcAPIError,
    "501 Not Implemented": svc.SvcServerError,
}.items():
    code = int(line[:3])
    row(
        GROUP,
        line,
        says(head(line)) if code == 304 else status(line),
        whole=Fails(error, status=code, later=False),
    )
for line, error in {
    "408 Request Timeout": svc.SvcAPIError,
    "429 Too Many Requests": svc.SvcRateLimitError,
    "500 Internal Server Error": svc.SvcServerError,
    "502 Bad Gateway": svc.SvcServerError,
    "503 Service Unavailable": svc.SvcServerError,
    "504 Gateway Timeout": svc.SvcServerError,
}.items():
    code = int(line[:3])
    twice = Fails(error, 2, status=code, wait=0, later=True)
    row(GROUP, line, status(line, AGAIN), whole=twice)
    row(GROUP, f"{line}, once", status(line, AGAIN), good, whole=Answer(2))

SERVER = Fails(svc.SvcServerError, 2, status=502, wait=0, says="The service answered 502")
for name, data, label in (
    ("a page of HTML", b"<html><h1>Bad Gateway</h1></html>", "text/html"),
    ("an empty body", b"", "text/plain"),
    ("malformed JSON", b'{"error": {"message":', "application/json"),
    ("JSON of another shape", b'{"error": {"message": [5], "code": {}}}', "application/json"),
    ("deeply nested JSON", b'{"error":' + b"[" * 100_000, "application/json"),
    ("bytes that are not UTF-8", b"\xff\xfe\x00", "text/plain"),
):
    script = says(response(data, "502 Bad Gateway", f"Content-Type: {label}", AGAIN))
    row(GROUP, f"502 with {name}", script, whole=SERVER)
DENIED = Fails(svc.SvcAuthenticationError, status=401, says="check the API key")
row(
    GROUP,
    "401 with a body of 100 MB",
    says(head("401 Unauthorized", f"Content-Length: {100 * MB}"), Flood(100 * MB)),
    whole=DENIED,
    limit=20 * MB,
)
row(
    GROUP,
    "401 with a body that stops",
    says(head("401 Unauthorized", "Content-Length: 99"), b"{", HOLD),
    whole=DENIED,
    settings=SHORT,
)
row(
    GROUP,
    "401 with a body that trickles",
    says(head("401 Unauthorized", "Content-Length: 9999"), Drip(b"{")),
    whole=DENIED,
    settings=HURRIED,
)
row(
    GROUP,
    "401 with a body that is reset",
    says(head("401 Unauthorized", "Content-Length: 99"), b"{", RESET),
    whole=DENIED,
)
row(
    GROUP,
    "401 with broken gzip",
    says(response(b"\x1f\x8b" + b"?" * 99, "401 Unauthorized", "Content-Encoding: gzip")),
    whole=DENIED,
)

# -- when to come back ----------------------------------------------------------------------------

GROUP = "When to come back"


def limited(*headers, line="429 Too Many Requests"):
    """An error status with headers that are made at the moment of the answer."""

    def script(_):
        now = time.time()
        moments = {
            "http_date": formatdate(now + 40, usegmt=True),
            "past_date": formatdate(now - 40, usegmt=True),
            "epoch_ms": int((now + 40) * 1000),
        }
        named = [text.format(**moments) for text in headers]
        return [response(b"{}", line, "Content-Type: application/json", *named)]

    return script


def told(wait, **more):
    return Fails(svc.SvcRateLimitError, status=429, wait=wait, **more)


for header, wait in {
    "Retry-After: 7": 7,
    "Retry-After: {http_date}": 40,
    "Retry-After: {past_date}": None,
    "Retry-After: soon": None,
    "Retry-After: nan": None,
    "X-RateLimit-Reset: 12.5": 12.5,
    "X-RateLimit-Reset: {epoch_ms}": 40,
    "X-RateLimit-Reset: 1800ms": 1.8,
    "X-RateLimit-Reset: later": None,
}.items():
    row(GROUP, f"429, {header}", limited(header), whole=told(wait), settings=NO_RETRY)
for header, wait in {
    "Retry-After: 3600": 3600,
    "X-RateLimit-Reset: 61": 61,
    "Retry-After: 999999999": 1e9 - 1,
}.items():
    row(
        GROUP, f"429, {header}, longer than allowed", limited(header), whole=told(wait, later=False)
    )
row(
    GROUP,
    "429, Retry-After before X-RateLimit-Reset",
    limited("X-RateLimit-Reset: 50", "Retry-After: 7"),
    whole=told(7),
    settings=NO_RETRY,
)
row(
    GROUP,
    "429, Retry-After: soon, beside X-RateLimit-Reset: 50",
    limited("Retry-After: soon", "X-RateLimit-Reset: 50"),
    whole=told(50),
    settings=NO_RETRY,
)
row(
    GROUP,
    "429, Retry-After: {past_date}, beside X-RateLimit-Reset: 50",
    limited("Retry-After: {past_date}", "X-RateLimit-Reset: 50"),
    whole=told(None),
    settings=NO_RETRY,
)
for remaining, wait in {"0": 50, "299": None, "?": 50}.items():
    row(
        GROUP,
        f"429, X-RateLimit-Reset: 50, X-RateLimit-Remaining: {remaining}",
        limited("X-RateLimit-Reset: 50", f"X-RateLimit-Remaining: {remaining}"),
        whole=told(wait),
        settings=NO_RETRY,
    )
row(
    GROUP,
    "429, Retry-After twice",
    limited("Retry-After: 7", "Retry-After: 9"),
    whole=told(None),
    settings=NO_RETRY,
)
row(
    GROUP, "429, X-RateLimit-Reset: 0, once", limited("X-RateLimit-Reset: 0"), good, whole=Answer(2)
)
row(
    GROUP,
    "503, Retry-After: 7",
    limited("Retry-After: 7", line="503 Service Unavailable"),
    whole=Fails(svc.SvcServerError, status=503, wait=7),
    settings=NO_RETRY,
)
row(
    GROUP,
    "503, X-RateLimit-Reset: 7",
    limited("X-RateLimit-Reset: 7", line="503 Service Unavailable"),
    whole=Fails(svc.SvcServerError, status=503),
    settings=NO_RETRY,
)
row(GROUP, "429, a wait beyond the deadline", limited("Retry-After: 30"), whole=told(30))

# -- redirects ------------------------------------------------------------------------------------

GROUP = "Redirects to another host, which sees nothing"
ELSEWHERE = "http://localhost:{port}/elsewhere"  # the port of a second server
for line in ("301 Moved Permanently", "303 See Other", "308 Permanent Redirect"):
    row(
        GROUP,
        line,
        status(line, f"Location: {ELSEWHERE}", data=b""),
        whole=Fails(svc.SvcAPIError, status=int(line[:3]), later=False),
    )

# -- connections ----------------------------------------------------------------------------------

GROUP = "Connections"


def in_part(*steps, cut=0.7):
    """A declared length, some of the body, and then these steps."""

    def script(column):
        data = column.good
        some = data[: int(len(data) * cut)] if column.kind == "whole" else first_event(column)
        return [head("200 OK", typed(column), f"Content-Length: {len(data)}") + some, *steps]

    return script


def before_body(*steps):
    return lambda column: [
        head("200 OK", typed(column), f"Content-Length: {len(column.good)}"),
        *steps,
    ]


row(
    GROUP,
    "refused",
    says(),
    whole=Fails(svc.SvcConnectionError, 0, says="could not be reached"),
    settings=NO_RETRY,
    route=lambda _: "http://127.0.0.1:{closed}/x",
)
row(
    GROUP,
    "TLS where the peer speaks none",
    says(),
    whole=Fails(svc.SvcConnectionError, 0),
    settings=NO_RETRY,
    route=lambda url: url.replace("http:", "https:"),
)
row(GROUP, "reset before the answer", says(RESET), whole=LOST_TWICE)
row(GROUP, "reset before the answer, once", says(RESET), good, whole=Answer(2))
row(GROUP, "closed before the answer", says(CLOSE), whole=LOST, settings=NO_RETRY)
row(
    GROUP,
    "closed inside the head",
    says(b"HTTP/1.1 200 OK\r\nContent-", CLOSE),
    whole=LOST,
    settings=NO_RETRY,
)
row(
    GROUP,
    "reset before the body",
    before_body(0.05, RESET),
    whole=LOST,
    stream=Fails(svc.SvcStreamError),
    settings=NO_RETRY,
)
row(GROUP, "reset before the body, once", before_body(0.05, RESET), good, whole=Answer(2))
row(
    GROUP,
    "reset inside the body",
    in_part(0.05, RESET),
    whole=LOST,
    stream=BROKEN,
    settings=NO_RETRY,
)
row(GROUP, "closed inside the body", in_part(CLOSE), whole=LOST_TWICE, stream=BROKEN)
row(GROUP, "closed inside the body, once", in_part(CLOSE), good, whole=Answer(2), stream=BROKEN)
row(
    GROUP,
    "closed after the answer, without a word",
    lambda c: [*good(c), CLOSE],
    whole=Answer(),
    waits=True,
)
row(GROUP, "reset after the answer", lambda c: [*good(c), 0.3, RESET], whole=Answer(), waits=True)

# -- time -----------------------------------------------------------------------------------------

GROUP = "Time"
IDLE = Fails(svc.SvcTimeoutError, says="0.75 s")
LATE = Fails(svc.SvcTimeoutError, says="deadline of 0.8 s")
LATE_STREAM = Fails(svc.SvcStreamError, says="deadline of 0.8 s")
STALLED = Fails(svc.SvcStreamError, partial=FIRST, says="0.75 s")
row(GROUP, "never answers", says(HOLD), whole=replace(IDLE, requests=2), settings={"timeout": 0.75})
row(GROUP, "never answers, once", says(HOLD), good, whole=Answer(2), settings={"timeout": 1.5})
row(
    GROUP,
    "stops inside the body, once",
    in_part(HOLD),
    good,
    whole=Answer(2),
    stream=NOT,
    settings={"timeout": 1.5},
)
row(
    GROUP,
    "stops inside the head",
    says(b"HTTP/1.1 200 OK\r\nContent-", HOLD),
    whole=IDLE,
    settings=SHORT,
)
row(
    GROUP,
    "stops before the body",
    before_body(HOLD),
    whole=replace(IDLE, requests=2),
    stream=BROKEN_TWICE,
    settings={"timeout": 0.75},
)
row(GROUP, "stops inside the body", in_part(HOLD), whole=IDLE, stream=STALLED, settings=SHORT)
row(
    GROUP,
    "a head that trickles",
    says(Drip(head("200 OK", "X-Slow: " + "x" * 500))),
    whole=LATE,
    settings=HURRIED,
)
row(
    GROUP,
    "a head that never ends",
    says(b"HTTP/1.1 200 OK\r\n", Drip(b"X-Slow: x\r\n", 0.01, step=11)),
    whole=LATE,
    settings=HURRIED,
)
row(
    GROUP,
    "a body that trickles",
    before_body(Drip(b"  ")),
    whole=LATE,
    stream=LATE_STREAM,
    settings=HURRIED,
)
row(
    GROUP,
    "early hints without end",
    says(Drip(head("103 Early Hints", "Link: </a>"), 0.02, step=99)),
    whole=LATE,
    settings=HURRIED,
)
row(
    GROUP,
    "heartbeats before any text",
    lambda c: [head("200 OK", typed(c), CHUNKED), Drip(http_chunk(b": ping\n\n"), 0.05, step=99)],
    whole=LATE,
    stream=LATE_STREAM,
    settings=HURRIED,
)
row(
    GROUP,
    "heartbeats after the first text",
    lambda c: [
        head("200 OK", typed(c), CHUNKED),
        http_chunk(first_event(c)),
        Drip(http_chunk(b": ping\n\n" if c.label.endswith("stream") else b"\n"), 0.05, step=99),
    ],
    whole=None,
    stream=replace(BROKEN, says="sent no content"),
    settings=SHORT,
)
row(
    GROUP,
    "the deadline of an answer that comes",
    lambda c: [0.1, *good(c)],
    whole=Answer(),
    settings={"deadline": 15.0},
)
