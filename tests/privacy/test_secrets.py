"""What a service or a proxy repeats of a secret reaches neither errors nor metadata from headers."""

from __future__ import annotations

import asyncio
import base64
import json

import pytest
from peers import RawServer, response

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
    """A completion with this text."""
    return b'{"choices":[{"message":{"content":"%s"},"finish_reason":"stop"}]}' % text.encode()


@pytest.mark.parametrize("streaming", [False, True])
def test_a_header_of_the_callers_is_not_repeated_in_an_error(streaming):
    body = json.dumps({"error": f"Tenant {TOKEN} and Bearer {TOKEN[:-1]}"}).encode()
    with answering(body, status="403 Forbidden") as server:
        words = {**server.v1, "default_headers": {"X-Tenant": f"Bearer {TOKEN}"}}
        with svc.ChatSvc(**words) as model, pytest.raises(svc.SvcPermissionDeniedError) as caught:
            list(model.stream("x")) if streaming else model.invoke("x")
    assert "[key]" in repr(caught.value) and "7f3a9c2b" not in repr(caught.value)


@pytest.mark.parametrize("name", ["limit", "remaining", "reset"])
@pytest.mark.parametrize("interface", ["v1", "general"])
def test_a_key_in_a_rate_limit_header_stays_out_of_the_metadata(interface, name):
    body = completion("fine") if interface == "v1" else b'{"success":true,"response":"fine"}'
    with answering(body, **{f"x_ratelimit_{name}": f"60;{KEY}", "x_request_id": "sk-marked"}) as server:  # fmt: skip
        where = {"base_url_v1": server.v1["base_url_v1"]}
        if interface == "general":
            where = {"base_url": server.url}
        with svc.ChatSvc(interface=interface, api_key=KEY, **where) as model:
            told = model.invoke("x").response_metadata
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
        words = {
            "api_key": KEY,
            "base_url_v1": f"{scheme}://svc.example/v1",
            "max_retries": 0,
            "insecure_hosts": ["svc.example"],
        }
        if from_environment:
            monkeypatch.setenv(f"{scheme.upper()}_PROXY", proxy)
        else:
            words["proxy"] = proxy
        with svc.ChatSvc(**words) as model, pytest.raises(svc.SvcError) as caught:
            asyncio.run(model.ainvoke("x")) if asynchronous else model.invoke("x")
    assert server.requests and "407" in str(caught.value)
    for part in (PASSWORD, BASIC, "alice", "denied"):
        assert part not in f"{caught.value!r}{vars(caught.value)}"


def test_a_short_key_is_redacted_in_errors_as_a_word_only():
    body = json.dumps({"error": {"message": "Keys abc and abcdef are too short"}}).encode()
    with answering(body, status="401 Unauthorized") as server:
        model = svc.ChatSvc(**{**server.v1, "api_key": "abc"})
        with model, pytest.raises(svc.SvcAuthenticationError) as caught:
            model.invoke("x")
    assert "Keys [key] and abcdef are too short" in str(caught.value)
