"""Requests and answers of the v1 interface, against v1 API."""

from __future__ import annotations

import json

import pytest

from langchain_svc._wire import End, Metadata, Text, Usage, v1


def answer(message=None, **more):
    choice = {"index": 0, "message": message or {"role": "assistant", "content": "Hi"}}
    return json.dumps({"choices": [choice | {"finish_reason": "stop"}], **more}).encode()


@pytest.mark.parametrize(
    ("text", "sent"),
    [("a\ud83cb", "a\ufffdb"), ("\ud83c\udde7", "🇧"), ("\udde7\ud83c", "\ufffd\ufffd")],
)
def test_lone_surrogates_become_replacement_characters(text, sent):
    settings = {"model": "m", "temperature": None, "max_tokens": None}
    messages = [{"role": "user", "content": text}]
    body = v1.chat_body(messages, settings, stream=False, extra={})
    assert json.loads(body)["messages"][0]["content"] == sent


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (answer(), "Hi"),
        (answer({"content": ""}), ""),
        (answer({"content": [{"type": "text", "text": "H"}, {"type": "text", "text": "i"}]}), "Hi"),
        (b'{"choices": [{"text": "Hi"}]}', "Hi"),
        (b'{"response": "Hi", "success": true}', "Hi"),
        (
            b'{"choices": [{"index": 1, "message": {"content": "no"}}, {"index": 0, "message": {"content": "Hi"}}]}',
            "Hi",
        ),
        (b' \n{"choices":[{"message":{"content":"Hi"}}]}\n', "Hi"),
    ],
)
def test_every_plausible_answer(body, text):
    (read,) = [event for event in v1.read_completion(body) if isinstance(event, Text)]
    assert read.text == text


def test_what_an_answer_says_besides_its_text():
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    events = v1.read_completion(answer(id="c1", model="svc-pro", created=5, usage=usage))
    metadata = Metadata("svc-pro", "c1", 5)
    assert events == [metadata, Text("Hi"), Usage(usage), End("stop")]


@pytest.mark.parametrize(
    ("record", "window"),
    [
        ({"id": "m", "context_window": 128000}, 128000),
        ({"id": "m", "context_window": "128K"}, 128000),
        ({"id": "m", "context_length": "1M tokens"}, 1_000_000),
        ({"id": "m", "max_input_tokens": "200,000"}, 200000),
        ({"id": "m", "context_window": "large"}, None),
        ({"id": "m", "context_window": True}, None),
        ({"id": "m"}, None),
        ({"id": "m", "context_window": -4}, None),
        ({"id": "m", "context_window": ""}, None),
    ],
)
def test_context_windows_in_every_form(record, window):
    (found,) = v1.read_models(json.dumps({"data": [record]}).encode())
    assert found.context_window == window
    assert found.raw == record


A = {"id": "a"}
LISTINGS = [{"data": [A]}, {"models": [A]}, [A], ["a"], {"models": [{"name": "a"}, 5, {}]}]


@pytest.mark.parametrize("listing", LISTINGS)
def test_listings_in_every_form(listing):
    assert [m.id for m in v1.read_models(json.dumps(listing).encode())] == ["a"]


def test_capabilities_as_list_or_switches():
    body = b'{"data": [{"id": "a", "capabilities": ["chat"]}, {"id": "b", "capabilities": {"chat": true, "x": false}}]}'
    assert [m.capabilities for m in v1.read_models(body)] == [("chat",), ("chat",)]
