"""Every fault: what it refuses to be, which request gets it, and what comes out of a real socket."""

import dataclasses
import json
import time

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sandbox_peer import SAY, read_all, until
from share import fewer

from langchain_svc.sandbox import Fault, Sandbox, ToolCall
from langchain_svc.sandbox.endpoints import ROUTES

V1, GENERAL = "/v1/chat/completions", "/api/chat"
STREAM = {"model": "svc-pro", "messages": SAY, "stream": True}
PLAIN = {"model": "svc-pro", "messages": SAY}
CLOSE = ("Connection: close",)


@pytest.fixture
def ask(sandbox, call):
    """ask(faults, ...) posts a chat completion to a sandbox with one fault or a list."""

    def post(fault, body=PLAIN, path=V1, wanted="sse", **kwargs):
        if wanted != "sse":
            with Sandbox(faults=fault, stream_format=wanted) as s:
                return call(path, body, sandbox=s, **kwargs)
        sandbox.clear()
        sandbox.faults = fault
        return call(path, body, sandbox=sandbox, **kwargs)

    return post


@pytest.fixture
def raw(sandbox, dial):
    """raw(fault, ...) does the same over a raw socket, returning it."""

    def post(fault, body=STREAM):
        sandbox.clear()
        sandbox.faults = [fault]
        return dial(sandbox, V1, json.dumps(body).encode(), CLOSE)

    return post


def data_events(received):
    """Return the JSON events in the bytes of a chunked event stream."""
    return [
        json.loads(line.removeprefix(b"data: "))
        for line in received.splitlines()
        if line.startswith(b"data: {")
    ]


# -- what it may be, and who gets it -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "values"),
    [
        *(("status", [100, "500"]), ("statu", [500]), ("body", [object()]), ("reset", ["after"])),
        *(("delay", [-1, float("inf")]), ("hang", [1]), ("heartbeats", [1.0])),
        *(("after", [0, 2]), ("times", [0]), ("rate", [0, 1.5])),
        ("headers", [{"Bad Name": "x"}, {"X": "a\r\nb"}, {"X": None}]),
    ],
)
def test_refusals_name_the_field(field, values):
    for value in values:
        with pytest.raises(ValueError, match=field):
            Fault(**{field: value})


def test_what_excludes_each_other():
    with pytest.raises(ValueError, match="hang and cut"):
        Fault(cut=True, hang=True)
    for faults in ([{"status": 500}], {"status": 500}, "503", None):
        with pytest.raises(TypeError, match=r"expected a Fault, such as Fault\(status=503\), got"):
            Sandbox(faults=faults)


@pytest.mark.parametrize(
    "ending", [{"hang": True}, {"raw": b"x"}, {"reset": "before"}, {"error_event": True}]
)
def test_what_an_ending_would_ignore_is_refused_beside_it(ending):
    idle = {"body"}
    if ending != {"error_event": True}:
        idle |= {"status", "headers", "content_type", "mangle"}
    (name,) = ending
    for field in ("status", "body", "headers", "content_type", "mangle", "delay"):
        for value in VALUES[field]:
            if field in idle:
                with pytest.raises(ValueError, match=f"{field} does nothing beside {name}"):
                    Fault(**ending, **{field: value})
            else:
                assert Fault(**ending, **{field: value})


FIELDS = [field.name for field in dataclasses.fields(Fault)]
VALUES = {
    "status": [503],
    "body": ["", {}],
    "headers": [{"X-Test": "1"}],
    "content_type": ["text/css"],
    "delay": [2.0],
    "reset": ["before", "inside"],
    "mangle": ["json", "utf8", "content-type"],
    "raw": [b"", b"SSH-2.0\r\n"],
    "heartbeats": [1.0],
    "after": [2],
    "path": ["/completions"],
    "rate": [0.5],
    "times": [3],
}


@pytest.mark.parametrize("field", FIELDS)
def test_each_field_alone_is_refused_or_changes_what_a_client_gets(ask, sandbox, field):
    def outcome(faults):
        try:
            answer = ask(faults, timeout=0.5)
        except httpx.HTTPError as error:
            return type(error)
        return answer.status_code, answer.headers.items() - {("date", answer.headers["date"])}

    sandbox.faults = []
    for value in VALUES.get(field, [True]):
        try:
            fault = Fault(**{field: value})
        except ValueError as refusal:
            assert field in str(refusal)  # only some are refused
        else:
            assert outcome(fault) != outcome([])
            assert fault == eval(repr(fault))
    neutral = {member.name: member.default for member in dataclasses.fields(Fault)}
    if neutral[field] is not dataclasses.MISSING:
        with pytest.raises(ValueError, match="does nothing"):
            Fault(**{field: neutral[field]})


@given(st.sampled_from(FIELDS), st.data())
def test_a_slip_in_the_name_of_a_field_is_told(name, data):
    place = data.draw(st.integers(0, len(name) - 1))
    wrong = name[:place] + data.draw(st.sampled_from("qxz")) + name[place + 1 :]
    with pytest.raises(ValueError, match=f"no field '{wrong}'; .*{name}"):
        Fault(**{wrong: 503})


ENDS = [path[place:] for path in ROUTES for place in range(len(path))]
A_FAULT = st.builds(
    dict,
    path=st.none() | st.sampled_from(ENDS) | st.sampled_from(["/models", "t", "/v1", "/vison"]),
    times=st.none() | st.integers(1, 2),
)


@given(st.lists(A_FAULT, max_size=3))
@settings(max_examples=fewer(40), deadline=None)
def test_faults_are_refused_exactly_when_one_of_them_can_never_happen(fields):
    def matches(field, path):
        return path.endswith(field["path"] or "")

    def happens(index):
        before = [field for field in fields[:index] if field["times"] is None]
        return any(
            matches(fields[index], path) and not any(matches(field, path) for field in before)
            for path in ROUTES
        )

    faults = [Fault(status=500 + index, **field) for index, field in enumerate(fields)]
    if not all(happens(index) for index in range(len(faults))):
        with pytest.raises(ValueError, match=r"^faults\[\d\]"):
            Sandbox(faults=faults)
        return
    with Sandbox(faults=faults) as sandbox, httpx.Client(base_url=sandbox.url) as client:
        # Six faults in turn at most, and one that happens without an end.
        statuses = {client.get(path).status_code for _ in range(7) for path in ROUTES}
    assert {fault.status for fault in faults} <= statuses


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/vison", "did you mean '/vision'"),
        ("/chat/completion", "did you mean '/chat/completions'"),
        ("/v1/models/", "did you mean '/v1/models'"),
        ("/v1", "the paths are /v1/chat/completions, "),
    ],
)
def test_a_path_of_no_endpoint_is_refused_with_the_paths_there_are(sandbox, path, hint):
    with pytest.raises(ValueError, match=f"ends with '{path}'; {hint}"):
        sandbox.faults = Fault(status=503, path=path)


def test_a_fault_among_the_answers_says_nothing_of_other_requests():
    for condition in ({"path": "/completions"}, {"rate": 0.5}, {"times": 2}):
        with pytest.raises(ValueError, match=r"^answers: Fault\(.*faults="):
            Sandbox(answers=["Hello.", Fault(status=503, **condition)])
    assert Sandbox(answers=[Fault(status=503), ToolCall("weather")]).answers


def struck(call, faults, count=6, paths=("/api/models",), seed=0):
    """The statuses that these faults make of requests."""
    with Sandbox(faults=faults, seed=seed) as s:
        return [
            call(path, method="GET", sandbox=s).status_code for _ in range(count) for path in paths
        ]


def test_the_first_that_matches_is_applied_so_many_times(call):
    faults = [Fault(status=500, times=2, path="/models"), Fault(status=503, times=1)]
    assert struck(call, faults, 4) == [500, 500, 503, 200]
    other = "/api/medical/clinic-protocols"
    assert struck(call, faults[:1], 2, (other, "/api/models")) == [200, 500, 200, 500]


def test_a_rate_is_seeded_and_times_counts_requests_struck_or_not(call):
    fault = Fault(status=500, rate=0.5, times=20)
    one = struck(call, [fault], 40)
    assert one == struck(call, [fault], 40)
    assert one != struck(call, [fault], 40, seed=1)
    assert 3 < one[:20].count(500) < 17
    assert one[20:] == [200] * 20


def test_faults_may_be_replaced_and_count_anew(call):
    with Sandbox(faults=[Fault(status=500, times=1)]) as s:
        for _ in range(2):
            assert [call(V1, PLAIN, sandbox=s).status_code for _ in range(2)] == [500, 200]
            s.faults = s.faults


# -- heads and whole bodies ----------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 429, 503, 529])
def test_a_status_in_the_words_of_the_interface(ask, status):
    answer = ask(Fault(status=status, headers={"Retry-After": 2, "X-RateLimit-Reset": "soon"}))
    assert answer.status_code == status
    assert (answer.headers["retry-after"], answer.headers["x-ratelimit-reset"]) == ("2", "soon")
    assert answer.json()["error"].keys() == {"message", "type", "code"}
    body = ask(Fault(status=status), {"message": "x"}, GENERAL).json()
    assert body.keys() == {"success", "error"}


@pytest.mark.parametrize(
    ("fault", "status", "content", "label"),
    [
        (Fault(status=204), 204, b"", None),
        (Fault(status=201), 201, b"{}", "application/json"),
        (Fault(body={}), 200, b"{}", "application/json"),
        (Fault(status=502, body=[1]), 502, b"[1]", "application/json"),
        (Fault(body="<html>Bad gateway"), 200, b"<html>Bad gateway", "text/html; charset=utf-8"),
        (Fault(body="\u20ac"), 200, "\u20ac".encode(), "text/plain; charset=utf-8"),
        (Fault(body=b"\x00\xff"), 200, b"\x00\xff", "application/octet-stream"),
        (Fault(body="", content_type="text/css"), 200, b"", "text/css"),
        (Fault(body="", headers={"content-type": "text/css"}), 200, b"", "text/css"),
    ],
)
def test_a_body_and_its_label(ask, fault, status, content, label):
    answer = ask(fault, STREAM)
    assert (answer.status_code, answer.content) == (status, content)
    assert label is None or answer.headers["content-type"] == label


def test_a_delay_and_leaving_in_it(ask, sandbox):
    began = time.monotonic()
    assert ask(Fault(delay=0.15)).status_code == 200
    assert time.monotonic() - began >= 0.15
    for fault in (Fault(delay=5), Fault(hang=True)):
        with pytest.raises(httpx.ReadTimeout):
            ask(fault, timeout=0.1)
        until(lambda: sandbox.requests[0].disconnected)
        assert sandbox.requests[0].status is None


def test_a_wrong_content_length_breaks_the_connection_not_the_sandbox(ask):
    with pytest.raises(httpx.RemoteProtocolError):
        ask(Fault(headers={"Content-Length": "5"}))
    assert ask([]).status_code == 200


# -- broken in the middle ------------------------------------------------------------------------------


def test_raw_bytes_and_a_reset_before_any(raw, sandbox):
    assert read_all(raw(Fault(raw=b"ICY 200 OK\r\n\r\n"))) == (b"ICY 200 OK\r\n\r\n", False)
    assert read_all(raw(Fault(reset="before"))) == (b"", True)
    assert sandbox.requests[0].status is None
    assert not sandbox.requests[0].disconnected


@pytest.mark.parametrize("after", [0, 1, 3, 10_000])
@pytest.mark.parametrize("ending", [{"reset": "inside"}, {"cut": True}], ids=["reset", "cut"])
def test_an_answer_breaks_after_so_many_pieces(raw, ending, after):
    received, was_reset = read_all(raw(Fault(**ending, after=after)))
    assert was_reset == ("reset" in ending)
    assert received.startswith(b"HTTP/1.1 200")
    assert not received.endswith(b"0\r\n\r\n")
    assert b"[DONE]" not in received
    chunks = data_events(received)
    assert len(chunks) == after or after == 10_000
    assert all(chunk["choices"][0]["finish_reason"] is None for chunk in chunks)


def test_a_cut_inside_a_body_that_does_not_stream(raw, ask):
    received, _ = read_all(raw(Fault(cut=True, after=2), PLAIN))
    head, _, body = received.partition(b"\r\n\r\n")
    (length,) = (int(line[16:]) for line in head.splitlines() if line.startswith(b"content-length"))
    assert len(body) == 2 * length // 3
    with pytest.raises(httpx.RemoteProtocolError):
        ask(Fault(cut=True))


def test_an_end_without_a_mark(ask):
    for wanted in ("sse", "sse-text", "ndjson", "text"):
        answer = ask(Fault(end=True, after=2), STREAM, wanted=wanted)
        assert answer.text
        assert "[DONE]" not in answer.text
        assert '"finish_reason":"stop"' not in answer.text
    answer = ask(Fault(end=True))
    assert "content-length" not in answer.headers
    with pytest.raises(json.JSONDecodeError):
        answer.json()


@pytest.mark.parametrize(("heartbeats", "comments"), [(None, 0), (0.02, 3)])
def test_a_stall_with_heartbeats_and_without(raw, sandbox, heartbeats, comments):
    client = raw(Fault(stall=True, heartbeats=heartbeats))
    received = b""
    while not data_events(received) or received.count(b": ping\n\n") < comments:
        received += client.recv(65536)
    assert len(data_events(received)) == 1
    if not heartbeats:
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.recv(65536)
    assert not sandbox.requests[0].disconnected


def test_an_error_event(ask):
    for wanted in ("sse", "sse-text", "ndjson"):
        answer = ask(Fault(error_event=True), STREAM, wanted=wanted)
        last = answer.text.strip().splitlines()[-1]
        error = json.loads(last.removeprefix("data: "))["error"]
        assert error.keys() == {"message", "type", "code"}
        assert "[DONE]" not in answer.text
    whole = ask(Fault(error_event=True))
    assert whole.status_code == 200
    assert whole.json().keys() == {"error"}


def test_mangled_json(ask):
    with pytest.raises(json.JSONDecodeError):
        ask(Fault(mangle="json")).json()
    lines = [line for line in ask(Fault(mangle="json", after=2), STREAM).text.splitlines() if line]
    assert json.loads(lines[1][6:])
    with pytest.raises(json.JSONDecodeError):
        json.loads(lines[2][6:])
    assert lines[-1] == "data: [DONE]"
    text = ask(Fault(mangle="json"), STREAM, wanted="text").text  # which has none
    assert text == ask([], STREAM, wanted="text").text


@pytest.mark.parametrize("wanted", ["sse", "sse-text", "ndjson", "text", "json"])
def test_half_a_character(ask, wanted):
    answer = ask(Fault(mangle="utf8"), STREAM, wanted=wanted)
    assert answer.content.endswith(b"\xe2\x82")
    answer.content[:-2].decode()


def test_a_wrong_content_type(ask):
    assert ask(Fault(mangle="content-type")).headers["content-type"] == "text/html"
    streamed = ask(Fault(mangle="content-type"), STREAM)
    assert streamed.headers["content-type"] == "application/json"
    assert streamed.text.endswith("data: [DONE]\n\n")
