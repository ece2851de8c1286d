"""The v1 document, row by row and bound by bound."""

import base64

import pytest

from langchain_svc.sandbox import Sandbox, answers

CHAT = {"model": "svc-pro", "messages": [{"role": "user", "content": "What is two plus two?"}]}
DRAW = {"prompt": "a red house"}


def test_chat_completion_has_the_documented_fields(call):
    answer = call("/v1/chat/completions", CHAT)
    body = answer.json()
    assert answer.status_code == 200
    assert body.keys() == {"id", "object", "created", "model", "choices", "usage"}
    assert body["object"] == "chat.completion"
    assert body["model"] == "svc-pro"
    assert isinstance(body["created"], int)
    (choice,) = body["choices"]
    assert choice.keys() == {"index", "message", "finish_reason"}
    assert choice["message"]["role"] == "assistant"
    assert choice["finish_reason"] == "stop"
    usage = body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


def test_ids_repeat_from_run_to_run_but_not_within_one(call):
    def ids():
        with Sandbox() as s:
            return [call("/v1/chat/completions", CHAT, sandbox=s).json()["id"] for _ in range(2)]

    first, second = ids(), ids()
    assert first == second
    assert first[0] != first[1]
    assert first[0].startswith("chatcmpl-")


def test_created_follows_the_clock(call):
    with Sandbox(clock=lambda: 1_700_000_000.9) as s:
        answer = call("/v1/chat/completions", CHAT, sandbox=s)
    assert answer.json()["created"] == 1_700_000_000
    assert answer.headers["date"] == "Tue, 14 Nov 2023 22:13:20 GMT"


def test_max_tokens_cuts_the_answer(call):
    body = call("/v1/chat/completions", {**CHAT, "max_tokens": 3}).json()
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["completion_tokens"] == 3


def test_max_tokens_is_2000_when_omitted(call, monkeypatch):
    asked, original = [], answers.answer

    def spy(messages, *, model, max_tokens):
        asked.append(max_tokens)
        return original(messages, model=model, max_tokens=max_tokens)

    monkeypatch.setattr(answers, "answer", spy)
    call("/v1/chat/completions", CHAT)
    call("/v1/chat/completions", {**CHAT, "max_tokens": 7})
    assert asked == [2000, 7]


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 0},
        {"temperature": 2},
        {"temperature": 0.7},
        {"max_tokens": 1},
        {"stream": False},
        {"model": "grove-mini"},
        {"messages": [{"role": "assistant", "content": ""}, {"role": "user", "content": "x"}]},
        {"messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "x"}]},
    ],
)
def test_chat_accepts(call, change):
    assert call("/v1/chat/completions", {**CHAT, **change}).status_code == 200


MESSAGE_MISTAKES = [
    ([], "messages"),
    ("hello", "messages"),
    (["hello"], "messages[0]"),
    ([{"role": "user"}], "messages[0].content"),
    ([{"content": "x"}], "messages[0].role"),
    ([{"role": "tool", "content": "x"}], "messages[0].role"),
    ([{"role": ["user"], "content": "x"}], "messages[0].role"),
    ([{"role": "user", "content": None}], "messages[0].content"),
    ([{"role": "user", "content": [{"type": "text", "text": "x"}]}], "messages[0].content"),
]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": "1"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"temperature": None}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"stream": 1}, "stream"),
        ({"stream": "true"}, "stream"),
        ({"model": 7}, "model"),
        ({"model": ""}, "model"),
        *(({"messages": wrong}, field) for wrong, field in MESSAGE_MISTAKES),
    ],
)
def test_chat_refuses_naming_the_field(call, change, field):
    answer = call("/v1/chat/completions", {**CHAT, **change})
    error = answer.json()["error"]
    assert answer.status_code == 400
    assert error.keys() == {"message", "type", "code"}
    assert error["type"] == "invalid_request_error"
    assert error["message"].startswith(field + ":")


@pytest.mark.parametrize("name", ["model", "messages"])
def test_chat_requires(call, name):
    answer = call("/v1/chat/completions", {k: v for k, v in CHAT.items() if k != name})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == f"{name}: required, but missing."


def test_unknown_model(call):
    answer = call("/v1/chat/completions", {**CHAT, "model": "svc-imaginary"})
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "model_not_found"


def test_context_window(call):
    # dune-lite has the smallest window of the catalogue: 4,000 tokens.
    text = "a b c d " * 1001
    assert answers.count_tokens(text) > 4000
    long = {"model": "dune-lite", "messages": [{"role": "user", "content": text}]}
    answer = call("/v1/chat/completions", long)
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "context_length_exceeded"


def test_unknown_fields_are_ignored_and_recorded(call):
    with Sandbox() as s:
        message = {"role": "user", "content": "x", "name": "Ann"}
        body = {**CHAT, "messages": [message], "tools": [], "stop": ["x"]}
        assert call("/v1/chat/completions", body, sandbox=s).status_code == 200
        assert s.requests[0].unknown_fields == ("tools", "stop", "messages[0].name")


def test_strict_refuses_what_is_not_documented(call):
    system = [{"role": "system", "content": "x"}]
    with Sandbox(strict=True) as s:
        assert call("/v1/chat/completions", CHAT, sandbox=s).status_code == 200
        field = call("/v1/chat/completions", {**CHAT, "tools": []}, sandbox=s)
        role = call("/v1/chat/completions", {**CHAT, "messages": system}, sandbox=s)
        assert s.requests[1].unknown_fields == ("tools",)
    assert field.status_code == role.status_code == 400
    assert field.json()["error"]["message"].startswith("tools:")
    assert role.json()["error"]["message"].startswith("messages[0].role:")


def test_images(call):
    answer = call("/v1/images/generate", {**DRAW, "n": 2, "size": "1024x1792", "quality": "hd"})
    body = answer.json()
    assert answer.status_code == 200
    assert body.keys() == {"created", "data"}
    pictures = [base64.b64decode(each["b64_json"]) for each in body["data"]]
    assert len(pictures) == 2
    assert all(each.startswith(b"\x89PNG") for each in pictures)
    assert body["data"][0]["revised_prompt"] == DRAW["prompt"]


def test_an_image_prompt_may_have_1000_characters(call):
    assert call("/v1/images/generate", {"prompt": "x" * 1000}).status_code == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "prompt"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": "x" * 1001}, "prompt"),
        ({**DRAW, "n": 0}, "n"),
        ({**DRAW, "n": 5}, "n"),
        ({**DRAW, "n": True}, "n"),
        ({**DRAW, "n": 1.0}, "n"),
        ({**DRAW, "size": "512x512"}, "size"),
        ({**DRAW, "quality": "best"}, "quality"),
    ],
)
def test_images_refuse_naming_the_field(call, body, field):
    answer = call("/v1/images/generate", body)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].startswith(field + ":")


def test_models(call):
    body = call("/v1/models", method="GET").json()
    assert body["object"] == "list"
    windows = {record["id"]: record["context_window"] for record in body["data"]}
    assert windows == {
        "svc-turbo": 128_000,
        "svc-pro": 200_000,
        "svc-vision": 128_000,
        "svc-code": 128_000,
    }
    assert all(record["capabilities"] and record["pricing"] for record in body["data"])
