"""What the sandbox remembers, and what it must not."""

import dataclasses

import pytest

from langchain_svc.sandbox import Sandbox


def test_a_request_as_it_came(call):
    with Sandbox(clock=lambda: 12.5) as s:
        call("/api/chat?trace=1", {"message": "x"}, headers={"X-Thing": "Y"}, sandbox=s)
        (seen,) = s.requests
    assert (seen.method, seen.path, seen.query) == ("POST", "/api/chat", "trace=1")
    assert seen.headers["x-thing"] == "Y"
    assert seen.body == b'{"message":"x"}'
    assert seen.json == {"message": "x"}
    assert seen.at == 12.5
    assert seen.status == 200
    assert seen.client_port > 0
    assert not seen.disconnected
    with pytest.raises(dataclasses.FrozenInstanceError):
        seen.status = 500


def test_a_body_that_is_no_json(call):
    with Sandbox() as s:
        call("/api/chat", content=b"\xff{", sandbox=s)
        call("/api/models", method="GET", sandbox=s)
        assert [each.json for each in s.requests] == [None, None]
        assert [each.status for each in s.requests] == [400, 200]


def test_secrets_are_masked(call):
    headers = {
        "Authorization": "Bearer sandbox-key",
        "X-API-Key": "very-secret",
        "Cookie": "session=very-secret",
        "Proxy-Authorization": "Basic very-secret",
    }
    with Sandbox() as s:
        call("/api/chat", {"message": "x"}, headers=headers, sandbox=s)
        call("/api/chat", {"message": "x"}, headers={"Authorization": "very-secret x"}, sandbox=s)
        one, two = (each.headers for each in s.requests)
    assert one["authorization"] == "Bearer ***"
    assert one["x-api-key"] == one["cookie"] == "***"
    assert one["proxy-authorization"] == "Basic ***"
    assert two["authorization"] == "***"


def test_the_repr_of_a_sandbox_says_where_it_is_and_no_key():
    sandbox = Sandbox(plan="free", api_key="k-secret")
    assert repr(sandbox) == "<Sandbox: not running, plan free>"
    with sandbox:
        assert repr(sandbox) == f"<Sandbox: {sandbox.url}, plan free>"


def test_its_repr_shows_no_body_and_no_headers(call):
    with Sandbox() as s:
        call("/api/medical/chat", {"message": "Jane Roe"}, sandbox=s)
        assert "Jane" not in repr(s.requests)


def test_clear_and_keep(call):
    with Sandbox(keep=2) as s:
        for index in range(4):
            call(f"/nothing/{index}", {}, sandbox=s)
        assert [each.path for each in s.requests] == ["/nothing/2", "/nothing/3"]
        s.clear()
        assert s.requests == []


def test_the_log_survives_the_sandbox(call):
    with Sandbox() as s:
        call("/api/models", method="GET", sandbox=s)
    assert s.requests[0].status == 200


def test_nothing_is_logged(call, caplog, capfd):
    with caplog.at_level("DEBUG"), Sandbox() as s:
        call("/api/medical/chat", {"message": "Jane Roe"}, sandbox=s)
    ours = [each for each in caplog.records if not each.name.startswith(("httpx", "httpcore"))]
    assert [each.name for each in ours if each.name != "asyncio"] == []
    assert "Jane" not in "".join(each.getMessage() for each in ours)
    assert capfd.readouterr() == ("", "")
