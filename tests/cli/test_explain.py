import json

import pytest

import langchain_svc as svc
from langchain_svc import cli

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": "The weather of a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]
SCHEMA = {"title": "Trip", "type": "object", "properties": {"city": {"type": "string"}}}


@pytest.fixture
def files(tmp_path):
    for name, value in (("tools", TOOLS), ("schema", SCHEMA)):
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    return tmp_path


def explained(capsys, *words):
    assert cli.main(["explain", *words]) == 0
    return json.loads(capsys.readouterr().out)


def test_it_is_the_very_request_that_is_sent(service, files, capsys):
    found = explained(
        capsys, "Weather in Rome?", "--system", "Be brief.", "--model", "svc-pro",
        "--tools", str(files / "tools.json"),
    )  # fmt: skip
    assert not service.requests, "nothing is sent"
    model = svc.ChatSvc(model="svc-pro").bind_tools(TOOLS)
    list(model.stream([("system", "Be brief."), ("user", "Weather in Rome?")]))
    request = service.requests[-1]
    assert found["request"]["body"] == request.json
    assert found["request"]["url"] == f"{service.url}{request.path}"


def test_a_schema_is_in_the_request(service, files, capsys):
    found = explained(capsys, "Rome", "--schema", str(files / "schema.json"))
    model = svc.ChatSvc().with_structured_output(SCHEMA)
    list(model.stream("Rome"))
    assert found["request"]["body"] == service.requests[-1].json


def test_it_needs_no_key_and_shows_none(service, monkeypatch, capsys):
    words = ["explain", "Hello", "there"]
    assert cli.main(words) == 0
    out = capsys.readouterr().out
    assert service.env["SVC_API_KEY"] not in out
    assert '"Authorization": "Bearer (your key)"' in out
    for name in service.env:
        monkeypatch.delenv(name)
    assert cli.main(words) == 0
    assert "https://your-host/v1/chat/completions" in capsys.readouterr().out


def test_tokens_by_part_add_up(files, capsys):
    words = ["Weather?", "--system", "Be brief."]
    tokens = explained(capsys, *words, "--tools", str(files / "tools.json"))["tokens"]
    total = tokens.pop("total")
    assert total == sum(tokens.values())
    assert all(tokens.values())
    assert tokens["tools and schema"] > 100
    assert explained(capsys, *words)["tokens"]["tools and schema"] == 0


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("--tools", '{"name": "x"}', "holds a dict; give a list of tools"),
        ("--tools", '["weather"]', "'weather' is not a tool"),
        ("--tools", "nonsense", "is not JSON"),
    ],
)
def test_a_wrong_file_is_named(option, text, said, capsys, tmp_path):
    file = tmp_path / "given.json"
    file.write_text(text)
    assert cli.main(["explain", "x", option, str(file)]) in {1, 2}
    assert said in capsys.readouterr().err
