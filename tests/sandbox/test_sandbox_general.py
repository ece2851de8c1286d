"""The general document, row by row and bound by bound."""

import base64
import re

import pytest

from langchain_svc.sandbox import Sandbox

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
    "AAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


def test_chat_has_the_documented_fields(call):
    answer = call("/api/chat", {"message": "hello", "model": "svc-pro", "temperature": 1})
    body = answer.json()
    assert answer.status_code == 200
    assert body.keys() == {"success", "response", "model", "tokens", "timestamp"}
    assert body["success"] is True
    assert body["model"] == "svc-pro"
    assert body["response"]
    assert isinstance(body["tokens"], int)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", body["timestamp"])


def test_chat_has_a_default_engine(call):
    assert call("/api/chat", {"message": "hello"}).json()["model"] == "svc-turbo"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "message"),
        ({"message": ""}, "message"),
        ({"message": ["x"]}, "message"),
        ({"message": "x", "temperature": 1.01}, "temperature"),
        ({"message": "x", "temperature": -1}, "temperature"),
        ({"message": "x", "temperature": False}, "temperature"),
        ({"message": "x", "stream": "yes"}, "stream"),
        ({"message": "x", "model": None}, "model"),
    ],
)
def test_chat_refuses_naming_the_field(call, body, field):
    answer = call("/api/chat", body)
    assert answer.status_code == 400
    assert answer.json().keys() == {"success", "error"}
    assert answer.json()["success"] is False
    assert answer.json()["error"].startswith(field + ":")


def test_chat_knows_no_such_model(call):
    assert call("/api/chat", {"message": "x", "model": "nobody"}).status_code == 404


def test_chat_enforces_the_listed_max_tokens(call):
    answer = call("/api/chat", {"message": "a b c d " * 1001, "model": "dune-lite"})
    assert answer.status_code == 400


def test_models(call):
    records = call("/api/models", method="GET").json()["models"]
    assert len({record["id"] for record in records}) == 23
    assert {"svc-turbo", "svc-pro", "svc-vision", "svc-code"} <= {each["id"] for each in records}
    for record in records:
        assert record.keys() == {"id", "name", "provider", "capabilities", "max_tokens"}
        assert set(record["capabilities"]) <= {"chat", "vision", "code", "analysis"}
        assert call("/api/chat", {"message": "x", "model": record["id"]}).status_code == 200


@pytest.mark.parametrize("task", ["detect", "ocr", "moderate", "describe"])
@pytest.mark.parametrize("prefix", ["", "data:image/png;base64,"])
def test_vision(call, task, prefix):
    body = call("/api/vision", {"image": prefix + PIXEL, "task": task}).json()
    assert body["success"] is True
    assert body["task"] == task
    assert body["result"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x.png", "HTTPS://example.invalid/x.png"])
def test_vision_never_fetches_an_address(call, url):
    body = call("/api/vision", {"image": url, "task": "describe"}).json()
    assert body["success"] is True
    assert body["result"]["seen"] is False
    assert "not fetch" in body["result"]["note"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"task": "ocr"}, "image"),
        ({"image": PIXEL}, "task"),
        ({"image": PIXEL, "task": "read"}, "task"),
        ({"image": "", "task": "ocr"}, "image"),
        ({"image": "not base64!", "task": "ocr"}, "image"),
        ({"image": "data:image/png,abc", "task": "ocr"}, "image"),
        ({"image": "data:image/png;base64,", "task": "ocr"}, "image"),
        ({"image": "\u20ac\u20ac\u20ac\u20ac", "task": "ocr"}, "image"),
        ({"image": base64.b64encode(b"no picture").decode(), "task": "ocr"}, "image"),
    ],
)
def test_vision_refuses_naming_the_field(call, body, field):
    answer = call("/api/vision", body)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(field + ":")


def test_generate_image_is_shaped_unlike_v1(call):
    body = call("/api/generate-image", {"prompt": "x" * 1500, "size": "1792x1024"}).json()
    assert body["success"] is True
    head, _, data = body["image"].partition(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(data).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "prompt"),
        ({"prompt": "x", "size": "1x1"}, "size"),
        ({"prompt": "x", "quality": 3}, "quality"),
    ],
)
def test_generate_image_refuses_naming_the_field(call, body, field):
    answer = call("/api/generate-image", body)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(field + ":")


def test_translate(call):
    named = call("/api/translate", {"text": "good morning", "from": "en", "to": "fr"})
    detected = call("/api/translate", {"text": "good morning", "to": "fr"})
    assert named.status_code == detected.status_code == 200
    assert named.json()["target"] == "fr"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"to": "fr"}, "text"),
        ({"text": "x"}, "to"),
        ({"text": "x", "to": 5}, "to"),
        ({"text": "x", "to": "fr", "from": None}, "from"),
    ],
)
def test_translate_refuses_naming_the_field(call, body, field):
    answer = call("/api/translate", body)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(field + ":")


def test_timestamp_follows_the_clock(call):
    with Sandbox(clock=lambda: 0.5) as s:
        body = call("/api/chat", {"message": "x"}, sandbox=s).json()
    assert body["timestamp"] == "1970-01-01T00:00:00.500Z"
