import json

import pytest

from langchain_svc import cli
from langchain_svc.sandbox import Fault

KEYS = ("SVC_API_KEY", "SVC_MEDICAL_API_KEY")


@pytest.fixture
def findings(service, monkeypatch, capsys):
    monkeypatch.delenv("LANGSMITH_TRACING", raising=False)

    def run(*words, code=0):
        assert cli.main(["doctor", "--json", *words]) == code
        return json.loads(capsys.readouterr().out)

    return run


def of(findings, part):
    return [one for one in findings if one["part"] == part]


def failed(findings):
    return [one for one in findings if one["status"] == "FAIL"]


def test_all_is_well(findings, service):
    found = findings()
    assert not failed(found)
    v1 = " ".join(one["found"] for one in of(found, "v1"))
    assert "svc-pro" in v1
    assert "text/event-stream, ended by its own end mark" in v1
    assert "svc-" in of(found, "general")[0]["found"]
    assert "GET status" in of(found, "medical")[0]["found"]
    assert "langchain-core" in of(found, "packages")[0]["found"]


def test_only_the_cheapest_is_asked_and_nothing_of_a_patient(findings, service):
    findings()
    asked = [(request.method, request.path) for request in service.requests]
    assert asked == [
        ("GET", "/v1/models"),
        ("POST", "/v1/chat/completions"),
        ("GET", "/api/models"),
        ("GET", "/api/medical/clinic-protocols"),
    ]
    service.clear()
    findings("--no-chat")
    assert all(request.method == "GET" for request in service.requests)


@pytest.mark.parametrize("words", [[], ["--json"]])
@pytest.mark.parametrize("right", [True, False])
def test_no_key_is_ever_printed(words, right, service, monkeypatch, capsys):
    if not right:
        for name in KEYS:
            monkeypatch.setenv(name, f"wrong-{name}-3141")
    keys = [service.env[name] if right else f"wrong-{name}-3141" for name in KEYS]
    assert cli.main(["doctor", *words]) == (0 if right else 1)
    captured = capsys.readouterr()
    assert not [key for key in keys if key in captured.out + captured.err]


@pytest.mark.parametrize(
    ("variable", "value", "part", "fix"),
    [
        ("SVC_API_KEY", "wrong", "v1", "correct SVC_API_KEY"),
        ("SVC_API_KEY", "", "v1", "export SVC_API_KEY="),
        ("SVC_BASE_URL_V1", "", "v1", "export SVC_BASE_URL_V1="),
        ("SVC_BASE_URL_V1", "svc.example/v1", "v1", "correct SVC_BASE_URL_V1"),
        ("SVC_BASE_URL_V1", "{url}", "v1", "its path ends in /v1"),
        ("SVC_BASE_URL", "{url}/api", "general", "before the /api"),
        ("SVC_MEDICAL_API_KEY", "wrong", "medical", "correct SVC_MEDICAL_API_KEY"),
        ("SVC_BASE_URL_V1", "http://127.0.0.1:9/v1", "v1", "check SVC_BASE_URL_V1"),
        ("SSL_CERT_FILE", "/nowhere/certificates.pem", "environment", "unset it"),
        ("SVC_MEDICAL_BASE_URL", "http://elsewhere.example", "medical", "correct SVC_MEDICAL_BASE"),
    ],
)
def test_what_fails_has_a_fix(variable, value, part, fix, findings, service, monkeypatch):
    monkeypatch.setenv(variable, value.replace("{url}", service.url))
    found = failed(findings(code=1))
    assert part in [one["part"] for one in found]
    assert fix in next(one["fix"] for one in found if one["part"] == part)
    assert all(one["fix"] for one in found)


def test_what_nobody_set_up_is_no_failure_of_a_part_but_nothing_to_deploy_with(
    findings, service, monkeypatch, capsys
):
    for name in service.env:
        monkeypatch.delenv(name)
    found = findings(code=1)
    assert [of(found, part)[0]["status"] for part in ("v1", "general", "medical")] == ["-"] * 3
    assert cli.main(["doctor"]) == 1
    last = capsys.readouterr().out.split("\n\n")[-1]
    assert last.startswith("Nothing is set up.")
    assert "langchain-svc sandbox" in last
    assert not service.requests


def test_a_key_alone_sets_up_no_general_interface(findings, monkeypatch):
    monkeypatch.delenv("SVC_BASE_URL")
    assert [one["status"] for one in of(findings(), "general")] == ["-"]


def test_a_default_model_that_is_not_there(findings, service):
    service.faults = [Fault(body={"data": [{"id": "other"}]}, times=1)]
    (found,) = [one for one in findings("--no-chat") if "default model" in one["found"]]
    assert found["fix"] == "name one of them: --model other"


def test_tracing_is_pointed_out_and_gets_nothing(service, monkeypatch, capsys):
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    monkeypatch.setenv("LANGSMITH_ENDPOINT", service.url)
    assert cli.main(["doctor"]) == 0
    captured = capsys.readouterr()
    assert "warn  environment  LANGSMITH_TRACING sends prompts to LangSmith" in captured.out
    assert captured.err == ""
    assert not [r for r in service.requests if "runs" in r.path]


def test_people_get_lines_that_fit(service, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[-1] == "Everything that is set up works."


def test_a_misspelt_variable_is_told(findings, monkeypatch):
    monkeypatch.setenv("SVC_APIKEY", "sk-private")
    (told,) = [one for one in of(findings(), "environment") if one["status"] == "warn"]
    assert "SVC_APIKEY" in told["found"]
    assert told["fix"] == "rename it to SVC_API_KEY"
    assert "sk-private" not in str(told)
