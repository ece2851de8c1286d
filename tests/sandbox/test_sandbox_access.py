"""Paths, methods, keys and bodies: everything before an endpoint is reached."""

import httpx
import pytest

from langchain_svc.sandbox import Sandbox

V1, GENERAL, MEDICAL = "/v1/models", "/api/models", "/api/medical/clinic-protocols"


def get(sandbox, path, headers):
    return httpx.get(sandbox.url + path, headers=headers, verify=False)


@pytest.mark.parametrize("path", [V1, GENERAL])
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer wrong-key"},
        {"Authorization": "Bearer"},
        {"Authorization": "Basic sandbox-key"},
        {"Authorization": "sandbox-key"},
        {"Authorization": "Bearer sandbox-medical-key"},
        {"Authorization": "Bearer sandbox-key-and-more"},
        {"X-API-Key": "sandbox-key"},
    ],
)
def test_bearer_interfaces_refuse(shared, path, headers):
    answer = get(shared, path, headers)
    assert answer.status_code == 401
    assert "wrong-key" not in answer.text


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-API-Key": "sandbox-key"},
        {"X-API-Key": ""},
        {"Authorization": "Bearer sandbox-medical-key"},
    ],
)
def test_the_medical_interface_refuses(shared, headers):
    answer = get(shared, MEDICAL, headers)
    assert answer.status_code == 401
    assert answer.json().keys() == {"error"}


def test_the_documented_error_of_an_invalid_key(shared):
    error = get(shared, V1, {"Authorization": "Bearer x"}).json()["error"]
    assert error["type"] == "invalid_request_error"
    assert error["code"] == "invalid_api_key"
    assert error["message"]


def test_a_key_without_permission(shared):
    bearer = {"Authorization": "Bearer forbidden-1"}
    assert get(shared, V1, bearer).status_code == 403
    assert get(shared, GENERAL, bearer).status_code == 403
    assert get(shared, MEDICAL, {"X-API-Key": "forbidden-2"}).status_code == 403


def test_own_keys():
    with Sandbox(api_key="one", medical_api_key="two") as s:
        assert s.v1 == {"api_key": "one", "base_url_v1": s.url + "/v1"}
        assert s.general == {"api_key": "one", "base_url": s.url}
        assert s.medical == {"api_key": "two", "medical_base_url": s.url}
        assert s.env["SVC_API_KEY"] == "one"
        assert s.env["SVC_MEDICAL_API_KEY"] == "two"
        assert get(s, V1, {"Authorization": "bearer one"}).status_code == 200
        assert get(s, MEDICAL, {"X-API-Key": "two"}).status_code == 200


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("/v1/nothing", {"error"}),
        ("/v1", {"error"}),
        ("/", {"success", "error"}),
        ("/api/models/", {"success", "error"}),
        ("/v1x/models", {"success", "error"}),
        ("/api/medical/nothing", {"error"}),
    ],
)
def test_unknown_paths_answer_in_the_words_of_their_interface(call, path, keys):
    answer = call(path, {})
    assert answer.status_code == 404
    assert answer.json().keys() == keys
    assert ("x-ratelimit-limit" in answer.headers) == path.startswith(("/v1/", "/v1?")) or (
        path == "/v1"
    )


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/chat/completions", "POST"),
        ("POST", "/api/models", "GET"),
        ("HEAD", "/v1/models", "GET"),
        ("DELETE", "/api/medical/clinic-protocols", "GET, POST"),
    ],
)
def test_wrong_methods(call, method, path, allowed):
    answer = call(path, method=method)
    assert answer.status_code == 405
    assert answer.headers["allow"] == allowed


@pytest.mark.parametrize("label", [None, "text/plain", "application/x-www-form-urlencoded"])
def test_a_body_must_be_labelled_json(call, label):
    headers = {} if label is None else {"Content-Type": label}
    answer = call("/api/chat", headers=headers, content=b'{"message": "x"}')
    assert answer.status_code == 400
    assert "Content-Type" in answer.json()["error"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"text"',
        b"null",
        b'{"message": NaN}',
        b'{"message": "x", "temperature": Infinity}',
        b'{"message": "x", "temperature": 1e999}',
        b'{"message": "\xff"}',
        b'{"message": "\\ud800"}',
        b'{"message": ' + b"[" * 100_000,
        b'{"temperature": ' + b"9" * 5000 + b"}",
    ],
)
def test_a_body_must_be_a_json_object(call, body):
    headers = {"Content-Type": "application/json; charset=utf-8"}
    answer = call("/api/chat", headers=headers, content=body)
    assert answer.status_code == 400


def test_text_beyond_ascii_survives(call):
    body = b'{"message": "\\ud83d\\ude00 \xe2\x82\xac"}'
    answer = call("/api/chat", headers={"Content-Type": "application/json"}, content=body)
    assert answer.status_code == 200
    assert "\U0001f600 \u20ac" in answer.json()["response"]


def test_a_body_over_32_megabytes(call):
    with Sandbox() as s:
        parts = (b" " * (1 << 20) for _ in range(33))
        answer = call(
            "/api/chat", headers={"Content-Type": "application/json"}, content=parts, sandbox=s
        )
        assert answer.status_code == 413
        assert s.requests[0].body == b""


def test_a_bug_is_a_500_that_says_nothing_about_the_request(call, monkeypatch, caplog):
    def broken(request):
        raise ZeroDivisionError(request["message"])

    monkeypatch.setattr("langchain_svc.sandbox.samples.consult", broken)
    answer = call("/api/medical/chat", {"message": "Jane Roe"})
    assert answer.status_code == 500
    assert "Jane" not in answer.text
    assert "ZeroDivisionError" in caplog.text
    assert "Jane" not in caplog.text
