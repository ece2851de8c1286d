"""What a service or a proxy repeats of a secret does not reach the caller, however it is written."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest
from peers import RawServer, chunked_head, http_chunk, response

import langchain_svc as svc

KEY = "sk-MARKED/KEY+93417="
TOKEN = "tenant-7f3a9c2b7d04"
PASSWORD = "hunter2-hunter2"
BASIC = base64.b64encode(f"alice.smith:{PASSWORD}".encode()).decode()


def answering(answer, **headers):
    """A server whose one answer is these bytes, whatever is asked."""
    head = {"content_type": "application/json", **headers}
    return RawServer(lambda connection: connection.sendall(response(answer, **head)))


def completion(text):
    """A completion whose text is written into its JSON as it is, escapes and all."""
    return b'{"choices":[{"message":{"content":"%s"},"finish_reason":"stop"}]}' % text.encode()


ESCAPES = {
    "as it is": KEY,
    "slashes as PHP writes them": KEY.replace("/", r"\/"),
    "signs as .NET writes them": KEY.replace("+", r"\u002B").replace("=", r"\u003d"),
    "a letter": KEY.replace("s", r"\u0073", 1),
    "every letter": "".join(f"\\u{ord(c):04x}" for c in KEY),
}


@pytest.mark.parametrize("written", ESCAPES.values(), ids=ESCAPES)
def test_a_key_in_an_answer_is_found_however_json_escapes_it(written):
    with answering(completion(f"Your key is {written}.")) as server:
        words = {**server.v1, "api_key": KEY}
        with svc.ChatSvc(**words) as model:
            assert model.invoke("x").text == "Your key is [key]."
            assert "".join(piece.text for piece in model.stream("x")) == "Your key is [key]."


@pytest.mark.parametrize("written", ESCAPES.values(), ids=ESCAPES)
def test_a_key_in_the_raw_body_of_a_tool_is_found_too(written):
    body = '{"response":"ok","about":{"%s":["%s"]},"note":"It is %s"}' % ((written,) * 3)
    with answering(body.encode()) as server:
        tool = svc.SvcMedicalConsult(api_key=KEY, medical_base_url=server.url)
        call = {"name": tool.name, "args": {"message": "x"}, "id": "1", "type": "tool_call"}
        made = tool.invoke(call)
        tool.close()
    assert made.status == "success"
    for part in (made.content, json.dumps(made.artifact.raw), repr(made)):
        assert "MARKED" not in part and "93417" not in part
    assert made.artifact.raw["about"] == {"[key]": ["[key]"]}


def event(text):
    return b"data: " + json.dumps({"choices": [{"delta": {"content": text}}]}).encode() + b"\n\n"


@pytest.mark.parametrize("merge_events", [False, True])
@pytest.mark.parametrize("reads", [1, 2])
@pytest.mark.parametrize("at", range(1, len(KEY)))
def test_a_key_that_is_cut_over_two_events_is_found(at, reads, merge_events):
    """Of one that is cut in its first letters those are gone before it is known for a key."""
    events = [event("It is " + KEY[:at]), event(KEY[at:] + " indeed"), b"data: [DONE]\n\n"]

    def answer(connection):
        connection.sendall(chunked_head())
        for data in [b"".join(events)] if reads == 1 else events:
            connection.sendall(http_chunk(data))
        connection.sendall(b"0\r\n\r\n")

    with RawServer(answer) as server:
        words = {**server.v1, "api_key": KEY, "merge_events": merge_events}
        with svc.ChatSvc(**words) as model:
            text = "".join(piece.text for piece in model.stream("x"))
    assert text.endswith("[key] indeed") and text.startswith("It is ")
    assert text.removeprefix("It is ").removesuffix("[key] indeed") in ("", KEY[:at][:3])


def test_what_begins_like_a_key_and_is_none_arrives_whole():
    texts = ["It is ", KEY[:6], "x and ", KEY[:-1]]
    body = b"".join(map(event, texts)) + b"data: [DONE]\n\n"
    with answering(body, content_type="text/event-stream") as server:
        model = svc.ChatSvc(**{**server.v1, "api_key": KEY}, merge_events=False)
        assert "".join(piece.text for piece in model.stream("x")) == "".join(texts)
        model.close()


@pytest.mark.parametrize("status", ["200 OK", "403 Forbidden"])
@pytest.mark.parametrize("streaming", [False, True])
def test_a_header_of_the_callers_is_not_repeated(status, streaming):
    good, refused = f"Tenant {TOKEN}", f"Tenant {TOKEN} and Bearer {TOKEN[:-1]}"
    body = completion(good) if status[0] == "2" else json.dumps({"error": refused}).encode()
    with answering(body, status=status) as server:
        words = {**server.v1, "default_headers": {"X-Tenant": f"Bearer {TOKEN}"}}
        with svc.ChatSvc(**words) as model:
            try:
                told = "".join(p.text for p in model.stream("x")) if streaming else model.invoke("x").text  # fmt: skip
            except svc.SvcPermissionDeniedError as error:
                told = repr(error)
    assert "[key]" in told and "7f3a9c2b" not in told


@pytest.mark.parametrize("name", ["limit", "remaining", "reset"])
@pytest.mark.parametrize("kind", ["chat", "text"])
def test_a_key_in_a_rate_limit_header_stays_out_of_the_metadata(kind, name):
    body = completion("fine") if kind == "chat" else b'{"success":true,"response":"fine"}'
    with answering(body, **{f"x_ratelimit_{name}": f"60;{KEY}", "x_request_id": "sk-marked"}) as server:  # fmt: skip
        if kind == "chat":
            with svc.ChatSvc(**{**server.v1, "api_key": KEY}) as model:
                told = model.invoke("x").response_metadata
        else:
            with svc.SvcLLM(api_key=KEY, base_url=server.url) as model:
                told = model.generate(["x"]).generations[0][0].generation_info
    assert "MARKED" not in repr(told)
    assert told["rate_limit"]["raw"] == {name: "60;[key]"}


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("from_environment", [False, True])
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxys_password_does_not_come_back(monkeypatch, scheme, from_environment, asynchronous):
    """For https the proxy answers CONNECT, for http in the place of the service."""
    told = f"{PASSWORD} {BASIC} alice.smith"
    body = json.dumps({"error": {"message": told}}).encode()
    with answering(body, status=f"407 denied {told}") as server:
        proxy = server.url.replace("//", f"//alice.smith:{PASSWORD}@")
        words = {"api_key": KEY, "base_url_v1": f"{scheme}://svc.example/v1", "max_retries": 0, "insecure_hosts": ["svc.example"]}  # fmt: skip
        if from_environment:
            monkeypatch.setenv(f"{scheme.upper()}_PROXY", proxy)
        else:
            words["proxy"] = proxy
        with svc.ChatSvc(**words) as model, pytest.raises(svc.SvcError) as caught:
            asyncio.run(model.ainvoke("x")) if asynchronous else model.invoke("x")
    assert server.requests and "407" in str(caught.value)
    for part in (PASSWORD, BASIC, "alice", "denied"):
        assert part not in f"{caught.value!r}{vars(caught.value)}"


@pytest.mark.parametrize("key", ["the", "token", "hospital", "x1", "2026-11-22"])
def test_a_secret_that_is_an_ordinary_word_takes_nothing_out_of_an_answer(key):
    said = f"the token of the hospital of 2026-11-22, x1; {key}"
    with answering(completion(said)) as server:
        words = {**server.v1, "api_key": key, "default_headers": {"X-Site": key}}
        with svc.ChatSvc(**words) as model:
            assert model.invoke("x").text == said
            assert "".join(piece.text for piece in model.stream("x")) == said


def test_a_short_key_is_redacted_in_errors_as_a_word_only():
    body = json.dumps({"error": {"message": "Keys abc and abcdef are too short"}}).encode()
    with answering(body, status="401 Unauthorized") as server:
        model = svc.ChatSvc(**{**server.v1, "api_key": "abc"})
        with model, pytest.raises(svc.SvcAuthenticationError) as caught:
            model.invoke("x")
    assert "Keys [key] and abcdef are too short" in str(caught.value)


def test_a_key_in_what_a_stream_says_beside_its_text_stays_out_of_the_metadata():
    chunk = {"id": f"c-{KEY}", "model": f"m-{KEY}", "choices": [{"delta": {"content": "fine"}, "finish_reason": f"r-{KEY}"}]}  # fmt: skip
    body = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
    with answering(body, content_type="text/event-stream") as server:
        model = svc.ChatSvc(**{**server.v1, "api_key": KEY})
        pieces = list(model.stream("x"))
        model.close()
    assert "MARKED" not in repr(pieces) and "m-[key]" in repr(pieces)
