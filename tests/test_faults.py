"""What goes wrong on a real socket: the right error, the right number of requests, in time."""

from __future__ import annotations

import asyncio
import gzip
import json
import time
import zlib

import pytest
from langchain_core import exceptions as core
from peers import LAST_CHUNK, RawServer, chunked_head, http_chunk, response

import langchain_svc as svc
from langchain_svc.sandbox import Fault, Sandbox

ANSWER = json.dumps(
    {
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}
        ]
    }
).encode()
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'
DONE = b"data: [DONE]\n\n"


def invoke(model):
    return model.invoke("Count from 1 to 9").content


def ainvoke(model):
    async def call():
        async with model:
            return (await model.ainvoke("Count from 1 to 9")).content

    return asyncio.run(call())


def stream(model):
    return "".join(chunk.content for chunk in model.stream("Count from 1 to 9"))


def astream(model):
    async def call():
        async with model:
            return "".join([chunk.content async for chunk in model.astream("Count from 1 to 9")])

    return asyncio.run(call())


WHOLE = pytest.mark.parametrize("call", [invoke, ainvoke])
STREAMED = pytest.mark.parametrize("call", [stream, astream])
EVERY_WAY = pytest.mark.parametrize("call", [invoke, ainvoke, stream, astream])


@pytest.fixture(scope="module")
def box():
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def model(box):
    box.clear()
    with svc.ChatSvc(**box.v1, timeout=0.5, deadline=5, max_retries=1) as model:
        yield model
    box.faults = []


def failing(call, model, kind, within):
    started = time.monotonic()
    with pytest.raises(svc.SvcError) as raised:
        call(model)
    assert type(raised.value) is kind
    assert isinstance(raised.value, core.ModelError)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    assert time.monotonic() - started < within
    return raised.value


STATUSES = {
    400: (svc.SvcBadRequestError, 1), 401: (svc.SvcAuthenticationError, 1), 403: (svc.SvcPermissionDeniedError, 1),
    404: (svc.SvcNotFoundError, 1), 408: (svc.SvcAPIError, 2), 429: (svc.SvcRateLimitError, 2), 500: (svc.SvcServerError, 2),
    501: (svc.SvcServerError, 1), 502: (svc.SvcServerError, 2), 503: (svc.SvcServerError, 2), 504: (svc.SvcServerError, 2),
}  # fmt: skip


@EVERY_WAY
@pytest.mark.parametrize("status", STATUSES)
def test_error_statuses(box, model, call, status):
    kind, requests = STATUSES[status]
    box.faults = [Fault(status=status, headers={"Retry-After": "0"})]
    error = failing(call, model, kind, within=2)
    assert error.status_code == status
    assert len(box.requests) == requests


@EVERY_WAY
@pytest.mark.parametrize(
    ("body", "label"),
    [
        ("<html>Bad gateway</html>", "text/html"),
        ("", "text/plain"),
        ("{", "application/json"),
        (b"\xff\xfe", "text/plain"),
    ],
)
def test_error_statuses_with_a_body_of_no_use(box, model, call, body, label):
    box.faults = [Fault(status=502, body=body, content_type=label, headers={"Retry-After": "0"})]
    assert str(failing(call, model, svc.SvcServerError, within=2)).startswith(
        "The service answered 502"
    )


@EVERY_WAY
def test_a_fault_that_passes_is_not_seen(box, model, call):
    for fault in (
        Fault(status=503, times=1),
        Fault(reset="before", times=1),
        Fault(hang=True, times=1),
    ):
        box.faults = [fault]
        assert "1" in call(model)


@WHOLE
def test_an_answer_lost_halfway_is_asked_for_again(box, model, call):
    for fault in (
        Fault(cut=True, times=1),
        Fault(reset="inside", times=1),
        Fault(stall=True, times=1),
    ):
        box.faults = [fault]
        assert "1" in call(model)


@EVERY_WAY
@pytest.mark.parametrize("form", ["0.3", "date", "reset"])
def test_the_service_says_when_to_come_back(box, model, call, form):
    headers = {"Retry-After": form}
    if form == "date":
        headers = {
            "Retry-After": time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 2))
        }
    if form == "reset":
        headers = {"X-RateLimit-Reset": "300ms"}
    box.faults = [Fault(status=429, headers=headers, times=1)]
    started = time.monotonic()
    assert "1" in call(model)
    assert 0.3 <= time.monotonic() - started < 3.5


@EVERY_WAY
def test_a_long_wait_is_not_begun(box, model, call):
    box.faults = [Fault(status=429, headers={"Retry-After": "3600"})]
    error = failing(call, model, svc.SvcRateLimitError, within=1)
    assert (error.retry_after, error.is_retryable, len(box.requests)) == (3600.0, False, 1)


@EVERY_WAY
def test_no_redirect_is_followed(box, model, call):
    with Sandbox() as elsewhere:
        for status in (301, 302, 303, 307, 308):
            box.faults = [
                Fault(status=status, headers={"Location": elsewhere.url + "/v1/chat/completions"})
            ]
            failing(call, model, svc.SvcAPIError, within=1)
        assert elsewhere.requests == []


@EVERY_WAY
def test_refused(call):
    with RawServer(lambda _: None) as gone:
        pass
    with svc.ChatSvc(**gone.v1, max_retries=1) as model:
        assert "could not be reached" in str(failing(call, model, svc.SvcConnectionError, within=3))


@EVERY_WAY
@pytest.mark.parametrize("fault", [Fault(hang=True), Fault(delay=3)])
def test_no_answer_in_time(box, model, call, fault):
    box.faults = [fault]
    assert "0.5 s" in str(failing(call, model, svc.SvcTimeoutError, within=2.5))
    assert len(box.requests) == 2


@EVERY_WAY
def test_the_deadline_holds(box, call):
    for fault in (Fault(hang=True), Fault(stall=True), Fault(status=503)):
        box.faults = [fault]
        with (
            svc.ChatSvc(**box.v1, deadline=0.6, max_retries=50) as model,
            pytest.raises(svc.SvcError),
        ):
            started = time.monotonic()
            call(model)
        assert time.monotonic() - started < 1.0
    box.faults = []


BREAKS = {
    "reset": Fault(reset="inside", after=3), "cut": Fault(cut=True, after=3), "end": Fault(end=True, after=3),
    "stall": Fault(stall=True, after=3), "error": Fault(error_event=True, after=3), "json": Fault(mangle="json", after=3),
}  # fmt: skip


@STREAMED
@pytest.mark.parametrize("form", ["sse", "ndjson"])
@pytest.mark.parametrize("name", BREAKS)
def test_broken_streams(box, call, name, form):
    box.clear()
    box.faults = [BREAKS[name]]
    with svc.ChatSvc(**box.v1, timeout=0.5, default_headers={"X-Sandbox-Stream": form}) as model:
        error = failing(call, model, svc.SvcStreamError, within=2)
        box.faults = []
        assert 0 < len(error.partial) < len(call(model))
        assert len(box.requests) == 2
        assert error.partial not in str(error)


@STREAMED
def test_a_broken_stream_hands_on_what_came_first(box, model, call):
    del call
    box.faults = [Fault(cut=True, after=3)]
    pieces = []
    with pytest.raises(svc.SvcStreamError) as raised:
        pieces.extend(chunk.content for chunk in model.stream("Count from 1 to 9"))
    box.faults = []
    assert raised.value.partial


@STREAMED
def test_heartbeats_do_not_keep_a_dead_stream_alive(box, model, call):
    box.faults = [Fault(stall=True, after=2, heartbeats=0.1)]
    assert "sent no content" in str(failing(call, model, svc.SvcStreamError, within=3))


@EVERY_WAY
def test_compressed_answers(call):
    body = ANSWER if call in (invoke, ainvoke) else EVENT + DONE
    bare = zlib.compressobj(wbits=-15)
    forms = {
        "gzip": gzip.compress(body),
        "deflate": zlib.compress(body),
        "DEFLATE": bare.compress(body) + bare.flush(),
    }
    for coding, packed in forms.items():
        with (
            RawServer(
                lambda c, p=packed, e=coding: c.sendall(response(p, content_encoding=e))
            ) as server,
            svc.ChatSvc(**server.v1, max_retries=0) as model,
        ):
            assert call(model) == "Hi"


@EVERY_WAY
@pytest.mark.parametrize("case", ["damaged", "short", "unknown", "bomb", "huge"])
def test_bodies_that_cannot_be_taken(call, case):
    packed = gzip.compress(ANSWER)
    bodies = {
        "damaged": (packed[:20] + b"\x00\xff\x00" + packed[23:], "gzip"),
        "short": (packed[:-4], "gzip"),
        "unknown": (ANSWER, "br"),
        "bomb": (gzip.compress(b" " * 30_000_000), "gzip"),
        "huge": (b" " * 3_000_000, "identity"),
    }
    body, coding = bodies[case]
    with RawServer(lambda c: c.sendall(response(body, content_encoding=coding))) as server:
        with svc.ChatSvc(**server.v1, max_response_bytes=2_000_000) as model:
            kind = svc.SvcResponseError if call in (invoke, ainvoke) else svc.SvcStreamError
            assert "body cannot be read" in str(failing(call, model, kind, within=3))
        assert len(server.requests) == 1


@EVERY_WAY
@pytest.mark.parametrize(
    "what",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 abc\r\n\r\n",
        b"\x00" * 200,
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000,
    ],
)
def test_a_peer_that_speaks_no_http(call, what):
    with (
        RawServer(lambda c: c.sendall(what)) as server,
        svc.ChatSvc(**server.v1, max_retries=0) as model,
    ):
        failing(call, model, svc.SvcConnectionError, within=3)


def trickle(head):
    def handle(connection):
        for i in range(len(head)):
            connection.sendall(head[i : i + 1])
            time.sleep(0.1)

    return handle


@EVERY_WAY
@pytest.mark.parametrize("what", ["head", "body"])
def test_a_peer_that_trickles_does_not_outlast_the_deadline(call, what):
    whole = ANSWER if call in (invoke, ainvoke) else EVENT + DONE
    handle = trickle(response(whole))
    if what == "body":

        def handle(connection):
            connection.sendall(response(whole)[: -len(whole)])
            trickle(whole)(connection)

    with RawServer(handle) as server, svc.ChatSvc(**server.v1, timeout=5, deadline=0.7) as model:
        with pytest.raises(svc.SvcError):
            started = time.monotonic()
            call(model)
        assert time.monotonic() - started < 1.2


@STREAMED
def test_an_end_mark_ends_the_stream_although_the_connection_stays(call):
    def handle(connection):
        connection.sendall(chunked_head() + http_chunk(EVENT) + http_chunk(DONE))
        time.sleep(3)

    with RawServer(handle) as server, svc.ChatSvc(**server.v1, timeout=5) as model:
        started = time.monotonic()
        assert call(model) == "Hi"
        assert time.monotonic() - started < 1


@STREAMED
def test_connections_are_used_again_after_a_stream(box, call):
    box.clear()
    with svc.ChatSvc(**box.v1) as model:
        if call is stream:
            for _ in range(5):
                call(model)
        else:

            async def several():
                for _ in range(5):
                    [chunk async for chunk in model.astream("hi")]
                await model.aclose()

            asyncio.run(several())
    assert len({request.client_port for request in box.requests}) == 1


@STREAMED
def test_one_byte_at_a_time_over_a_socket(call):
    body = EVENT.replace(b"Hi", "Grüße 🇧🇷".encode()) + DONE

    def handle(connection):
        connection.sendall(chunked_head())
        for i in range(len(body)):
            connection.sendall(http_chunk(body[i : i + 1]))
        connection.sendall(LAST_CHUNK)

    with RawServer(handle) as server, svc.ChatSvc(**server.v1) as model:
        assert call(model) == "Grüße 🇧🇷"
