"""Every fault, seen from the other end of a real socket."""

import json
import time

import httpx
import pytest
from sandbox_peer import SAY, read_all

from langchain_svc.sandbox import Fault, Sandbox

V1, GENERAL = "/v1/chat/completions", "/api/chat"
STREAM = {"model": "svc-pro", "messages": SAY, "stream": True}
PLAIN = {"model": "svc-pro", "messages": SAY}
CLOSE = ("Connection: close",)


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox() as s:
        yield s


@pytest.fixture
def ask(sandbox, call):
    """ask(fault, ...) posts a chat completion to a sandbox with that fault."""

    def post(fault, body=PLAIN, path=V1, **kwargs):
        sandbox.clear()
        sandbox.faults = [fault]
        return call(path, body, sandbox=sandbox, **kwargs)

    return post


@pytest.fixture
def raw(sandbox, dial):
    """raw(fault, ...) does the same over a raw socket, returning it."""

    def post(fault, body=STREAM, path=V1, headers=CLOSE):
        sandbox.clear()
        sandbox.faults = [fault]
        return dial(sandbox, path, json.dumps(body).encode(), headers)

    return post


def data_events(received):
    """Return the JSON events in the bytes of a chunked event stream."""
    return [
        json.loads(line[len(b"data: ") :])
        for line in received.splitlines()
        if line.startswith(b"data: {")
    ]


@pytest.mark.parametrize("status", [400, 401, 404, 408, 418, 429, 500, 502, 503, 504, 529])
def test_status(ask, status):
    answer = ask(Fault(status=status))
    assert answer.status_code == status
    assert answer.json()["error"].keys() == {"message", "type", "code"}


def test_status_in_the_words_of_the_interface(ask):
    body = ask(Fault(status=503), {"message": "x"}, GENERAL).json()
    assert body == {"success": False, "error": "The service is temporarily unavailable."}


def test_a_status_without_a_body(ask):
    answer = ask(Fault(status=204))
    assert answer.status_code == 204
    assert answer.content == b""


@pytest.mark.parametrize(
    ("body", "content", "label"),
    [
        ({"detail": "no"}, b'{"detail":"no"}', "application/json"),
        ([1], b"[1]", "application/json"),
        ("<html>Bad gateway", b"<html>Bad gateway", "text/html; charset=utf-8"),
        ("upstream \u20ac", "upstream \u20ac".encode(), "text/plain; charset=utf-8"),
        (b"\x00\xff", b"\x00\xff", "application/octet-stream"),
        ("", b"", "text/plain; charset=utf-8"),
    ],
)
def test_body(ask, body, content, label):
    answer = ask(Fault(status=502, body=body))
    assert answer.status_code == 502
    assert answer.content == content
    assert answer.headers["content-type"] == label


def test_a_status_of_success_is_no_error(ask):
    answer = ask(Fault(status=201))
    assert answer.status_code == 201
    assert answer.json() == {}


def test_a_body_alone_keeps_the_status(ask):
    answer = ask(Fault(body={}), STREAM)
    assert answer.status_code == 200
    assert answer.json() == {}


def test_headers_replace_and_add(ask):
    headers = {"Retry-After": 2, "X-RateLimit-Reset": "soon", "content-type": "text/css"}
    answer = ask(Fault(status=429, headers=headers))
    assert answer.headers["retry-after"] == "2"
    assert answer.headers["x-ratelimit-reset"] == "soon"
    assert answer.headers["content-type"] == "text/css"


def test_content_type(ask):
    answer = ask(Fault(content_type="text/x-anything"))
    assert answer.headers["content-type"] == "text/x-anything"
    assert answer.json()["object"] == "chat.completion"


def test_delay(ask):
    began = time.monotonic()
    assert ask(Fault(delay=0.15)).status_code == 200
    assert time.monotonic() - began >= 0.15


def test_leaving_during_a_delay_or_a_hang_is_recorded(ask, sandbox):
    for fault in (Fault(delay=5), Fault(hang=True)):
        with pytest.raises(httpx.ReadTimeout):
            ask(fault, timeout=0.1)
        deadline = time.monotonic() + 2
        while not sandbox.requests[0].disconnected:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        assert sandbox.requests[0].status is None


def test_reset_before(raw, sandbox):
    assert read_all(raw(Fault(reset="before"))) == (b"", True)
    assert sandbox.requests[0].status is None
    assert not sandbox.requests[0].disconnected


@pytest.mark.parametrize("after", [0, 1, 3])
def test_reset_inside(raw, sandbox, after):
    received, was_reset = read_all(raw(Fault(reset="inside", after=after)))
    assert was_reset
    assert received.startswith(b"HTTP/1.1 200")
    assert len(data_events(received)) == after
    assert sandbox.requests[0].status == 200


@pytest.mark.parametrize("after", [0, 2, 10_000])
def test_cut(raw, after):
    received, was_reset = read_all(raw(Fault(cut=True, after=after)))
    assert not was_reset
    assert not received.endswith(b"0\r\n\r\n")
    assert b"[DONE]" not in received
    chunks = data_events(received)
    assert len(chunks) == after or after == 10_000
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in chunks)


def test_cut_inside_a_body_that_does_not_stream(raw):
    received, _ = read_all(raw(Fault(cut=True, after=2), PLAIN))
    head, _, body = received.partition(b"\r\n\r\n")
    (length,) = (int(line[16:]) for line in head.splitlines() if line.startswith(b"content-length"))
    assert len(body) == 2 * length // 3


def test_cut_looks_like_a_broken_body_to_a_client(ask):
    for body in (PLAIN, STREAM):
        with pytest.raises(httpx.RemoteProtocolError):
            ask(Fault(cut=True), body)


@pytest.mark.parametrize("wanted", ["sse", "sse-text", "ndjson", "text"])
def test_end(ask, wanted):
    answer = ask(Fault(end=True, after=2), STREAM, headers={"X-Sandbox-Stream": wanted})
    assert answer.status_code == 200
    assert answer.text
    assert "[DONE]" not in answer.text
    assert '"finish_reason":"stop"' not in answer.text


def test_end_of_a_body_that_does_not_stream(ask):
    answer = ask(Fault(end=True))
    assert "content-length" not in answer.headers
    with pytest.raises(json.JSONDecodeError):
        answer.json()


def test_stall(dial):
    with Sandbox(faults=[Fault(stall=True, after=1)]) as s:
        client = dial(s, V1, json.dumps(STREAM).encode())
        received = b""
        while not data_events(received):
            received += client.recv(65536)
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.recv(65536)
        assert s.open_connections == 1
        assert not s.requests[0].disconnected


def test_stall_with_heartbeats(raw):
    client = raw(Fault(stall=True, heartbeats=0.02))
    received = b""
    while received.count(b": ping\n\n") < 3:
        received += client.recv(65536)
    assert len(data_events(received)) == 1


@pytest.mark.parametrize("wanted", ["sse", "sse-text", "ndjson"])
def test_error_event(ask, wanted):
    answer = ask(Fault(error_event=True), STREAM, headers={"X-Sandbox-Stream": wanted})
    last = answer.text.strip().splitlines()[-1]
    assert json.loads(last.removeprefix("data: "))["error"].keys() == {"message", "type", "code"}
    assert "[DONE]" not in answer.text


def test_error_event_in_an_answer_that_does_not_stream(ask):
    answer = ask(Fault(error_event=True))
    assert answer.status_code == 200
    assert answer.json().keys() == {"error"}


def test_mangled_json(ask):
    with pytest.raises(json.JSONDecodeError):
        ask(Fault(mangle="json")).json()
    lines = [line for line in ask(Fault(mangle="json", after=2), STREAM).text.splitlines() if line]
    assert json.loads(lines[1][6:])
    with pytest.raises(json.JSONDecodeError):
        json.loads(lines[2][6:])
    assert lines[-1] == "data: [DONE]"


@pytest.mark.parametrize("wanted", ["text", "sse-text"])
def test_text_has_no_json_to_mangle(ask, wanted):
    headers = {"X-Sandbox-Stream": wanted}
    assert (
        ask(Fault(mangle="json"), STREAM, headers=headers).text
        == ask(Fault(), STREAM, headers=headers).text
    )


@pytest.mark.parametrize("wanted", ["sse", "sse-text", "ndjson", "text", "json"])
def test_mangled_utf8(ask, wanted):
    answer = ask(Fault(mangle="utf8"), STREAM, headers={"X-Sandbox-Stream": wanted})
    assert answer.content.endswith(b"\xe2\x82")
    answer.content[:-2].decode()


def test_mangled_content_type(ask):
    assert ask(Fault(mangle="content-type")).headers["content-type"] == "text/html"
    streamed = ask(Fault(mangle="content-type"), STREAM)
    assert streamed.headers["content-type"] == "application/json"
    assert streamed.text.endswith("data: [DONE]\n\n")


def test_raw(raw):
    received, _ = read_all(raw(Fault(raw=b"ICY 200 OK\r\n\r\n")))
    assert received == b"ICY 200 OK\r\n\r\n"


def test_a_wrong_content_length_breaks_the_connection_not_the_sandbox(ask):
    with pytest.raises(httpx.RemoteProtocolError):
        ask(Fault(headers={"Content-Length": "5"}))
    assert ask(Fault()).status_code == 200


def test_a_fault_by_header(call):
    with Sandbox(faults=[Fault(status=500)]) as s:
        wanted = json.dumps({"status": 429, "headers": {"Retry-After": "7"}})
        answer = call(V1, PLAIN, headers={"X-Sandbox-Fault": wanted}, sandbox=s)
        assert answer.status_code == 429
        assert answer.headers["retry-after"] == "7"
        assert call(V1, PLAIN, sandbox=s).status_code == 500


def test_raw_bytes_by_header(shared, dial):
    header = 'X-Sandbox-Fault: {"raw": "bm9wZQ=="}'
    assert read_all(dial(shared, V1, b"{}", (header,)))[0] == b"nope"


@pytest.mark.parametrize(
    "wanted",
    ["", "nonsense", "[]", '{"statu": 500}', '{"status": 99}', '{"raw": "%"}', '{"headers": 1}'],
)
def test_a_wrong_header_is_refused(call, wanted):
    answer = call(V1, PLAIN, headers={"X-Sandbox-Fault": wanted})
    assert answer.status_code == 400
    assert "Fault" in answer.json()["error"]["message"]


def test_faults_may_be_replaced_and_count_anew(call):
    with Sandbox(faults=[Fault(status=500, times=1)]) as s:

        def statuses():
            return [call(V1, PLAIN, sandbox=s).status_code for _ in range(2)]

        assert statuses() == [500, 200]
        s.faults = s.faults
        assert statuses() == [500, 200]
        s.faults = []
        assert statuses() == [200, 200]
