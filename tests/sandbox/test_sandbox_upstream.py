"""A real model behind the sandbox, played by another sandbox, which speaks OpenAI's protocol."""

import gc
import json

import httpx
import pytest
from sandbox_peer import BEARER, ENDLESS, MEDICAL, detail, until
from share import pairs

from langchain_svc import ChatSvc, cli
from langchain_svc.sandbox import Fault, Sandbox, ToolCall, Upstream

KEY = "sk-upstream-271828"
USAGE = {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}


@pytest.fixture
def far():
    with Sandbox(answers=lambda _: "One two", api_key=KEY) as s:
        yield s


@pytest.fixture
def sandbox(far):
    with Sandbox(upstream=Upstream(far.url + "/v1", "svc-code", api_key=KEY), plan="pro") as s:
        yield s


def ask(sandbox, text, path="/v1/chat/completions", **extra):
    body = {"model": "svc-pro", "messages": [{"role": "user", "content": text}], "message": text}
    return httpx.post(sandbox.url + path, json={**body, **extra}, headers=BEARER, timeout=10)


def whole(**message):
    """The far server answers with this message, whatever it is asked."""
    choice = {"index": 0, "message": message, "finish_reason": "length"}
    return Fault(status=200, body={"choices": [choice], "usage": USAGE})


def streamed(*deltas, **end):
    """It answers with these deltas, and an end."""
    values = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    text = "".join(f"data: {json.dumps(value)}\n\n" for value in [*values, end])
    return Fault(status=200, body=text + "data: [DONE]\n\n", content_type="text/event-stream")


def test_a_chat_in_the_services_own_contract_and_marked(sandbox, far):
    far.faults = [whole(content="Hi.")]
    answer = ask(sandbox, "Hello", max_tokens=7)
    value = answer.json()
    assert value["model"] == "upstream:svc-code"
    assert answer.headers["x-sandbox-upstream"] == "svc-code"
    assert value["choices"][0]["message"]["content"] == "Hi."
    assert value["choices"][0]["finish_reason"] == "length"
    assert value["usage"] == USAGE
    assert answer.headers["x-ratelimit-remaining"] == "59"
    told = {"model": "svc-code", "max_tokens": 7, "temperature": 0.7, "stream": False}
    assert far.requests[0].json == {"messages": [{"role": "user", "content": "Hello"}], **told}
    assert detail(sandbox)["upstream"] == "svc-code"
    assert detail(sandbox)["tokens"] == [11, 5]


def test_our_own_client_on_it(sandbox, far):
    with ChatSvc(model="svc-pro", **sandbox.v1) as model:
        chunks = list(model.stream("Hello"))
        total = sum(chunks[1:], chunks[0])
        assert total.text == model.invoke("Hello").text == "One two"
        assert total.usage_metadata["total_tokens"] == sum(detail(sandbox)["tokens"]) > 0
    with ChatSvc(interface="general", **sandbox.general) as model:
        assert "".join(piece.text for piece in model.stream("Hello")) == "One two"
    assert far.requests[-1].json["messages"][-1]["content"] == "Hello"


@pytest.mark.parametrize("stream", [False, True])
def test_thoughts_stand_in_the_text(sandbox, far, stream):
    pieces = [{"reasoning": "Hm"}, {"reasoning": "m."}, {"content": "Yes."}]
    thought = whole(content="Yes.", reasoning_content="Hmm.")
    far.faults = [streamed(*pieces, usage=USAGE) if stream else thought]
    ask(sandbox, "think", stream=stream)
    assert detail(sandbox)["answer"] == "<think>Hmm.</think>Yes."
    assert detail(sandbox)["tokens"] == [11, 5]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/translate", {"text": "Good day", "to": "fr"}),
        ("/api/vision", {"image": "http://169.254.169.254/", "task": "describe"}),
        ("/api/medical/chat", {"message": "I cough."}),
    ],
)
def test_what_is_no_chat_stays_with_the_rules(sandbox, far, path, body):
    answer = httpx.post(sandbox.url + path, json=body, headers={**BEARER, **MEDICAL})
    assert answer.status_code == 200
    assert "x-sandbox-upstream" not in answer.headers
    assert not far.requests


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        *((400, 400), (422, 400), (429, 429), (502, 503), (503, 503)),
        *((status, 500) for status in (302, 401, 403, 404, 500)),
    ],
)
def test_its_failures_become_documented_ones_that_give_nothing_away(
    sandbox, far, theirs, ours, stream
):
    said = f"no such thing as Bearer {KEY} on http://gpu.internal"
    far.faults = [Fault(status=theirs, body=said, headers={"Retry-After": 7})]
    answer = ask(sandbox, "Hello", stream=stream)
    assert answer.status_code == ours
    assert set(answer.json()["error"]) == {"message", "type", "code"}
    assert answer.headers.get("retry-after") == ("7" if ours == 429 else None)
    for secret in (KEY, "gpu.internal", "127.0.0.1"):
        assert secret not in answer.text
    shown = detail(sandbox)
    assert shown["note"].startswith(f"upstream: {theirs} no such thing as Bearer ***")
    assert KEY not in json.dumps(shown)


def test_an_answer_that_is_none_and_a_server_that_is_not_there(sandbox, far):
    far.faults = [Fault(body="{")]
    assert ask(sandbox, "Hello").status_code == 500
    with Sandbox(upstream=Upstream("http://127.0.0.1:9/v1", "m")) as s:
        assert ask(s, "Hello").status_code == 503
        assert detail(s)["note"] == "upstream: ConnectError"


def test_a_failure_inside_a_stream_is_an_error_in_it(sandbox, far):
    far.faults = [streamed({"content": "One "}, error={"message": "no memory at gpu.internal"})]
    answer = ask(sandbox, "Hello", stream=True)
    assert answer.status_code == 200
    last = answer.text.strip().splitlines()[-1]
    assert json.loads(last.removeprefix("data: "))["error"]["type"] == "server_error"
    assert "gpu.internal" not in answer.text


@pytest.mark.parametrize(("leaves", "silent"), pairs(["client", "sandbox"], [True, *[False] * 5]))
def test_it_stops_when_the_client_or_the_sandbox_does(sandbox, far, caplog, silent, leaves):
    far.answers = [ENDLESS]
    far.faults = [Fault(stall=True, after=2)] if silent else []
    body = {"model": "svc-pro", "messages": [{"role": "user", "content": "Go"}], "stream": True}
    url = sandbox.url + "/v1/chat/completions"
    with httpx.stream("POST", url, json=body, headers=BEARER) as answer:
        pieces = answer.iter_raw()
        assert b"word" in next(pieces)
        if leaves == "sandbox":
            sandbox.stop()
            with pytest.raises(httpx.RemoteProtocolError):
                list(pieces)
    until(lambda: far.requests[0].disconnected)
    gc.collect()  # a task that was not ended is reported when it is collected
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


def test_scripted_answers_and_the_contract_come_first(sandbox):
    sandbox.answers = ["Scripted.", ToolCall("a", {})]
    answer = ask(sandbox, "Hello").json()
    assert answer["choices"][0]["message"]["content"] == "Scripted."
    assert answer["model"] == "svc-pro"
    assert ask(sandbox, "Hello", model="gpt-9").status_code == 404
    assert httpx.post(sandbox.url + "/v1/chat/completions", json={}).status_code == 401
    assert all(not detail(sandbox, n)["upstream"] for n in (1, 2, 3))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("localhost:11434", "m"), "expected an address"),
        (("http://user:pw@127.0.0.1/v1", "m"), "expected an address"),
        (("http://gpu.example/v1", "m"), "in the clear"),
        (("https://gpu.example/v1", ""), "model"),
        (("https://gpu.example/v1", "m", "a\nb"), "key"),
    ],
)
def test_what_cannot_be_an_upstream(arguments, said):
    with pytest.raises(ValueError, match=said) as caught:
        Upstream(*arguments)
    assert "pw" not in str(caught.value)


def test_plain_http_may_be_allowed():
    assert Upstream("http://gpu.example/v1", "m", allow_http=True).url


LOCAL = ["--upstream", "http://127.0.0.1:9/v1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (LOCAL, "--upstream-model"),
        (["--upstream", "http://gpu.example/v1", "--upstream-model", "m"], "--upstream-allow-http"),
        ([*LOCAL, "--upstream-model", "m", "--upstream-key-env", "NO"], "NO is not set"),
    ],
)
def test_the_command_says_what_is_missing(words, said, capsys):
    assert cli.main(["sandbox", "--port", "0", *words]) == 2
    assert said in capsys.readouterr().err


LISTED = Fault(body={"data": [{"id": "llama-3"}]})


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (LISTED, ""),
        (Fault(status=401), "answers 401: --upstream-key-env names"),
        (Fault(status=404), "/v1 answers 404 to GET /models: is that its base address?"),
    ],
)
def test_it_is_asked_at_the_start_whether_it_will_answer(far, answer, said):
    far.faults = [answer]
    trouble = Upstream(far.url + "/v1", "llama-3", api_key=KEY).trouble()
    assert said in trouble
    assert bool(said) == bool(trouble)
    assert KEY not in trouble


def test_the_command_starts_without_it_and_says_so(monkeypatch, capsys):
    monkeypatch.setattr("langchain_svc.cli.sandbox.serve", lambda *_: None)
    assert cli.main(["sandbox", "--port", "0", *LOCAL, "--upstream-model", "m"]) == 0
    shown = capsys.readouterr()
    assert "will not answer yet: http://127.0.0.1:9/v1 does not answer (" in shown.err
    assert "SVC_API_KEY" in shown.out
