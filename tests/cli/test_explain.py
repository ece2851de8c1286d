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
HISTORY = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}]


@pytest.fixture
def files(tmp_path):
    for name, value in (("tools", TOOLS), ("schema", SCHEMA), ("history", HISTORY)):
        (tmp_path / f"{name}.json").write_text(json.dumps(value))
    return tmp_path


def explained(capsys, *words):
    assert cli.main(["explain", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_it_is_the_very_request_that_is_sent(service, files, capsys):
    found = explained(
        capsys, "Weather in Rome?", "--system", "Be brief.", "--model", "svc-pro",
        "--tools", str(files / "tools.json"), "--history", str(files / "history.json"),
    )  # fmt: skip
    assert not service.requests, "nothing is sent"
    model = svc.ChatSvc(model="svc-pro").bind_tools(TOOLS)
    asked = [{"role": "system", "content": "Be brief."}, *HISTORY]
    list(model.stream([*asked, {"role": "user", "content": "Weather in Rome?"}]))
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
    assert "Authorization: Bearer (your key)" in out
    for name in service.env:
        monkeypatch.delenv(name)
    assert cli.main(words) == 0
    assert "POST https://your-host/v1/chat/completions" in capsys.readouterr().out


def test_tokens_by_part_add_up(files, capsys):
    words = ["Weather?", "--system", "Be brief.", "--history", str(files / "history.json")]
    tokens = explained(capsys, *words, "--tools", str(files / "tools.json"))["tokens"]
    total = tokens.pop("total")
    assert total == sum(tokens.values())
    assert all(tokens.values())
    assert tokens["tools and schema"] > 100
    assert explained(capsys, *words)["tokens"]["tools and schema"] == 0


def test_the_cost_is_that_of_the_price(capsys):
    found = explained(capsys, "word " * 4000, "--price", "5,15,USD", "--max-tokens", "1000")
    cost = found["cost"]
    assert cost["prompt"] == pytest.approx(found["tokens"]["total"] * 5e-6)
    assert cost["at_most"] == pytest.approx(cost["prompt"] + 0.015)
    assert cost["currency"] == "USD"
    assert "cost" not in explained(capsys, "word")


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("--tools", '{"name": "x"}', "holds a dict; give a list of tools"),
        ("--tools", '["weather"]', "'weather' is not a tool"),
        ("--history", '[{"role": "user"}]', "give a list of"),
        ("--history", "nonsense", "is not JSON"),
    ],
)
def test_a_wrong_file_is_named(option, text, said, capsys, tmp_path):
    file = tmp_path / "given.json"
    file.write_text(text)
    assert cli.main(["explain", "x", option, str(file)]) in {1, 2}
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("price", ["5", "a,b", "-1,2", "1,2,3,4", "nan,1"])
def test_a_wrong_price_is_refused(price, capsys):
    assert cli.main(["explain", "x", f"--price={price}"]) == 2
    assert f"not {price!r}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("plan", "most", "minute", "hour", "day", "bound"),
    [
        ("free", 10, 3, 100, 2_400, "100 requests per hour"),
        ("v1:Free", 20_000, 2, 100, 2_400, "50,000 tokens per minute"),
        ("free", 60_000, 0, 0, 0, "50,000 tokens per minute"),
        ("pro", 10, 60, 3_000, 72_000, "3,000 requests per hour"),
    ],
)
def test_a_plan_allows_so_many_such_requests(capsys, plan, most, minute, hour, day, bound):
    words = ["x", "--plan", plan, "--max-tokens", str(most)]
    quota = explained(capsys, *words)["quota"]
    allowed = quota["allowed"]
    assert [one["requests"] for one in allowed.values()] == [minute, hour, day]
    assert bound in {one["limited_by"] for one in allowed.values()}
    assert cli.main(["explain", *words]) == 0
    out = capsys.readouterr().out
    assert f"{hour:,} per hour at {quota['tokens_each']:,} tokens each, by " in out


def test_a_plan_without_documented_limits(capsys):
    assert cli.main(["explain", "x", "--plan", "enterprise"]) == 0
    assert "agreed with your provider" in capsys.readouterr().out


def test_a_plan_of_another_interface_is_refused(capsys):
    assert cli.main(["explain", "x", "--plan", "starter"]) == 2
    assert "(free, pro, enterprise), not 'starter'" in capsys.readouterr().err
