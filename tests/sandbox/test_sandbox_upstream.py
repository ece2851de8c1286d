"""A real model behind the sandbox, played by a small OpenAI-compatible server in another process."""

import gc
import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from sandbox_peer import BEARER, MEDICAL

from langchain_svc import ChatSvc, SvcTranslate, cli
from langchain_svc.sandbox import Sandbox, ToolCall, Upstream

KEY = "sk-upstream-271828"


@pytest.fixture(scope="module")
def server():
    script = Path(__file__).with_name("upstream_server.py")
    words = [sys.executable, str(script)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        process.url = f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
        yield process
        process.kill()


@pytest.fixture
def sandbox(server):
    with Sandbox(upstream=Upstream(server.url, "llama-3", api_key=KEY), plan="pro") as s:
        yield s


def ask(sandbox, text, path="/v1/chat/completions", **extra):
    body = {"model": "svc-pro", "messages": [{"role": "user", "content": text}], "message": text}
    return httpx.post(sandbox.url + path, json={**body, **extra}, headers=BEARER, timeout=10)


def detail(sandbox, number=1):
    headers = {"X-Inspector-Token": sandbox.inspector_url.partition("token=")[2]}
    return httpx.get(f"{sandbox.url}/_inspector/exchange/{number}/0", headers=headers).json()


def test_a_chat_in_the_services_own_contract_and_marked(sandbox):
    answer = ask(sandbox, "Hello", max_tokens=7)
    value = answer.json()
    assert value["model"] == "upstream:llama-3"
    assert answer.headers["x-sandbox-upstream"] == "llama-3"
    assert value["choices"][0]["finish_reason"] == "length"
    assert value["usage"] == {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16}
    assert answer.headers["x-ratelimit-remaining"] == "59"
    asked = json.loads(value["choices"][0]["message"]["content"])
    assert asked.pop("messages") == [{"role": "user", "content": "Hello"}]
    told = {"model": "llama-3", "max_tokens": 7, "temperature": 0.7, "stream": False}
    assert asked == {"path": "/v1/chat/completions", "key": f"Bearer {KEY}", **told}
    assert detail(sandbox)["upstream"] == "llama-3"
    assert detail(sandbox)["tokens"] == [11, 5]


@pytest.mark.parametrize("stream_format", ["sse", "sse-text", "ndjson", "text"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/chat"])
def test_a_stream_in_every_format(server, path, stream_format):
    with Sandbox(upstream=Upstream(server.url, "m"), stream_format=stream_format) as s:
        assert ask(s, "Hello", path, stream=True).status_code == 200
        shown = detail(s)
    assert shown["answer"] == "One two"
    assert shown["tokens"] == [11, 5]
    assert len(shown["raw"]) >= 2


def test_our_own_client_on_it(sandbox):
    with ChatSvc(model="svc-pro", **sandbox.v1) as model:
        chunks = list(model.stream("Hello"))
        total = sum(chunks[1:], chunks[0])
        assert total.text == "One two"
        assert total.usage_metadata["total_tokens"] == 16
        assert "Hello" in model.invoke("Hello").text
    with SvcTranslate(**sandbox.general) as tool:
        assert "Good morning" in tool.invoke({"text": "Good morning", "target": "fr"})


@pytest.mark.parametrize("stream", [False, True])
def test_thoughts_stand_in_the_text(sandbox, stream):
    ask(sandbox, "think", stream=stream)
    assert detail(sandbox)["answer"] == "<think>Hmm.</think>Yes."


PIXEL = "iVBORw0KGgoAAAANSUhEUg=="
ADDRESS = {"image": "http://169.254.169.254/", "task": "describe"}
CONSULT = {"message": "I cough.", "patientContext": {"age": 40}, "language": "de"}


@pytest.mark.parametrize(
    ("path", "body", "asked"),
    [
        ("/api/translate", {"text": "Good day", "to": "fr"}, "into the language fr"),
        ("/api/vision", {"image": PIXEL, "task": "describe"}, f"data:image/png;base64,{PIXEL}"),
        ("/api/medical/chat", CONSULT, '\\\\\\"age\\\\\\": 40'),
    ],
)
def test_the_endpoints_that_are_answered_by_prompting(sandbox, path, body, asked):
    answer = httpx.post(sandbox.url + path, json=body, headers={**BEARER, **MEDICAL})
    assert asked in answer.text
    assert answer.headers["x-sandbox-upstream"] == "llama-3"
    assert "upstream:llama-3" in answer.text
    assert "medical" not in path or answer.json()["synthetic"] is True


def test_an_address_of_an_image_is_not_passed_on(sandbox):
    answer = httpx.post(sandbox.url + "/api/vision", json=ADDRESS, headers=BEARER)
    assert answer.json()["result"]["seen"] is False
    assert "x-sandbox-upstream" not in answer.headers


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        *((400, 400), (422, 400), (429, 429), (502, 503), (503, 503)),
        *((status, 500) for status in (302, 401, 403, 404, 500)),
    ],
)
def test_its_failures_become_documented_ones_that_give_nothing_away(sandbox, theirs, ours, stream):
    answer = ask(sandbox, f"fail {theirs}", stream=stream)
    assert answer.status_code == ours
    assert set(answer.json()["error"]) == {"message", "type", "code"}
    assert answer.headers.get("retry-after") == ("7" if ours == 429 else None)
    for secret in (KEY, "gpu.internal", "127.0.0.1"):
        assert secret not in answer.text
    shown = detail(sandbox)
    assert shown["note"].startswith(f"upstream: {theirs} no such thing as Bearer ***")
    assert KEY not in json.dumps(shown)


def test_an_answer_that_is_none_and_a_server_that_is_not_there(sandbox):
    assert ask(sandbox, "broken").status_code == 500
    with Sandbox(upstream=Upstream("http://127.0.0.1:9/v1", "m")) as s:
        assert ask(s, "Hello").status_code == 503
        assert detail(s)["note"] == "upstream: ConnectError"


def test_a_failure_inside_a_stream_is_an_error_in_it(sandbox):
    answer = ask(sandbox, "cut", stream=True)
    assert answer.status_code == 200
    last = answer.text.strip().splitlines()[-1]
    assert json.loads(last.removeprefix("data: "))["error"]["type"] == "server_error"
    assert "gpu.internal" not in answer.text


@pytest.mark.parametrize("text", ["hang", *["flood"] * 5])
@pytest.mark.parametrize("leaves", ["client", "sandbox"])
def test_it_stops_when_the_client_or_the_sandbox_does(server, caplog, text, leaves):
    with Sandbox(upstream=Upstream(server.url, "m")) as s:
        body = {"model": "svc-pro", "messages": [{"role": "user", "content": text}], "stream": True}
        url = s.url + "/v1/chat/completions"
        with httpx.stream("POST", url, json=body, headers=BEARER) as answer:
            pieces = answer.iter_raw()
            assert b"One " in next(pieces)
            if leaves == "sandbox":
                s.stop()
                with pytest.raises(httpx.RemoteProtocolError):
                    list(pieces)
        assert server.stdout.readline() == "the client left\n"
    gc.collect()  # a task that was not ended is reported when it is collected
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == []


def test_scripted_answers_and_the_contract_come_first(sandbox):
    sandbox.answers = ["Scripted.", ToolCall("a", {})]
    answer = ask(sandbox, "Hello").json()
    assert answer["choices"][0]["message"]["content"] == "Scripted."
    assert answer["model"] == "svc-pro"
    assert ask(sandbox, "Hello", model="gpt-9").status_code == 404
    assert httpx.post(sandbox.url + "/v1/chat/completions", json={}).status_code == 401
    assert all(not detail(sandbox, n)["upstream"] for n in (1, 2, 3))  # fmt: skip


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


@pytest.mark.parametrize(
    ("model", "key", "path", "said"),
    [
        ("llama-3", KEY, "", ""),
        ("llama3.2", KEY, "", ""),
        ("lama", KEY, "", "lists no 'lama'; --upstream-model takes one of: llama-3, llama3.2:l"),
        ("llama-3", "wrong", "", "answers 401: --upstream-key-env names"),
        ("llama-3", KEY, "/chat", "/v1/chat answers 404 to GET /models: is that its base address?"),
    ],
)
def test_it_is_asked_at_the_start_whether_it_will_answer(server, model, key, path, said):
    trouble = Upstream(server.url + path, model, api_key=key).trouble()
    assert said in trouble
    assert bool(said) == bool(trouble)
    assert key not in trouble


def test_the_command_starts_without_it_and_says_so(monkeypatch, capsys):
    monkeypatch.setattr("langchain_svc.cli.sandbox.serve", lambda *_: None)
    assert cli.main(["sandbox", "--port", "0", *LOCAL, "--upstream-model", "m"]) == 0
    shown = capsys.readouterr()
    assert "will not answer yet: http://127.0.0.1:9/v1 does not answer (" in shown.err
    assert "SVC_API_KEY" in shown.out
