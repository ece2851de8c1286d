"""The benchmarks: that of tool formats, on a few cases of our own; what the others report."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import tool_calling

from benchmarks import __main__ as command
from benchmarks import counts, questions
from benchmarks.speed import contestants, report
from benchmarks.speed.measure import Bench
from benchmarks.speed.rows import ROWS, Row
from langchain_svc._json.fit import problems

WEATHER = {
    "name": "weather",
    "description": "The weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}
CASES = [
    {"id": "a", "category": "simple", "tools": [WEATHER], "question": "What is the weather in Oslo?",
        "calls": [{"name": "weather", "args": {"city": "Oslo"}}], "accepted": [{"city": ["Oslo", "Oslo, Norway"]}]},
    {"id": "b", "category": "parallel", "tools": [WEATHER], "question": "What is the weather in Paris and in Rome?",
        "calls": [{"name": "weather", "args": {"city": "Rome"}}, {"name": "weather", "args": {"city": "Paris"}}],
        "accepted": [{"city": ["Rome"]}, {"city": ["Paris"]}]},
    {"id": "c", "category": "irrelevance", "tools": [WEATHER], "question": "Hello!", "calls": []},
]  # fmt: skip


@pytest.fixture
def files(tmp_path):
    cases = tmp_path / "cases.jsonl"
    cases.write_text("\n".join(map(json.dumps, CASES)), encoding="utf-8")
    return str(cases), tmp_path / "results.jsonl"


def score(cases, results, *words):
    return tool_calling.main(["--cases", cases, *words, "--results", str(results)])


def test_both_formats_are_scored_and_a_broken_run_goes_on(files, capsys):
    cases, results = files
    assert score(cases, results, "--sandbox") == 0
    lines = results.read_text("utf-8").splitlines()
    results.write_text("\n".join(lines[:2]) + '\n{"id": "c", "cal', encoding="utf-8")
    capsys.readouterr()
    assert score(cases, results, "--sandbox") == 0
    table = capsys.readouterr().out
    assert "all (3)" in table
    assert table.count("100.0") == 8
    whole = [line for line in results.read_text("utf-8").splitlines() if line.endswith("}")]
    rows = [json.loads(line) for line in whole]
    assert len(rows) == 6
    assert {(row["format"], row["id"]) for row in rows} == {
        (f, c) for f in ("tags", "fenced") for c in "abc"
    }


def test_what_failed_is_reported(files, capsys, monkeypatch):
    monkeypatch.setenv("SVC_API_KEY", "k")
    monkeypatch.setenv("SVC_BASE_URL_V1", "http://127.0.0.1:9/v1")
    assert score(*files, "--formats", "tags") == 1
    said = capsys.readouterr()
    assert "(3 failed)" in said.out
    assert "failed: " in said.err


def test_a_model_of_ones_own_is_measured_under_its_name(files, capsys, sandbox, monkeypatch):
    cases, results = files
    monkeypatch.setenv("OWN_KEY", sandbox.v1["api_key"])
    own = ["--upstream", sandbox.v1["base_url_v1"], "--upstream-model", "svc-code"]
    assert score(cases, results, *own, "--upstream-key-env", "OWN_KEY", "--formats", "tags") == 0
    assert "svc-code: calls" in capsys.readouterr().out
    rows = [json.loads(line) for line in results.read_text("utf-8").splitlines()]
    assert [row["model"] for row in rows] == ["svc-code"] * 3
    assert {request.json["model"] for request in sandbox.requests} == {"svc-code"}


def test_the_cases_of_our_own_can_be_got_right():
    cases = [json.loads(line) for line in tool_calling.CASES.read_text("utf-8").split("\n") if line]
    assert len({case["id"] for case in cases}) == len(cases) >= 36
    for case in cases:
        tools = {tool["name"]: tool["parameters"] for tool in case["tools"]}
        for call, accepted in zip(case["calls"], case["accepted"], strict=True):
            assert set(tools[call["name"]]["required"]) <= set(call["args"]) <= set(accepted)
            schema = tools[call["name"]]
            assert problems(call["args"], schema) == []
        assert tool_calling.right(case, case["calls"])
        assert not tool_calling.right(case, case["calls"][1:] or [{"name": "x", "args": {}}])
    for args in ({"city": "Rome"}, {"city": "Oslo", "x": 1}):
        assert not tool_calling.right(CASES[0], [{"name": "weather", "args": args}])


def test_what_grew_is_told_with_its_module():
    before = {"invoke": {"a.py": 100, "b.py": 50}, "stream": {"a.py": 5.0}}
    now = {"invoke": {"a.py": 100, "b.py": 70}, "stream": {"a.py": 5.1}}
    assert counts.check(now, before) == ["invoke: 170 calls, and 150 before: b.py +20"]
    assert counts.check(before, now) == []
    assert len(counts.check({"invoke": before["invoke"]}, before)) == 1


INVOKED = {"ChatSvc": [50.0, 40.0, 60.0], "ChatGroq": [200.0], "ChatOpenAI": [100.0]}
INVOKED |= {"httpx": [30.0], "core": [20.0]}


def test_the_table_says_whether_a_target_is_met():
    row = Row("`invoke`", "invoke", of_peer=0.6, of_floor=0.9, why="It checks the answer.")
    text = report.text(report.Run("Measured on a Z80.", [(row, INVOKED)]))
    line = text.splitlines()[2]
    assert "**50** (45 to 55)" in line
    assert "0.5 (≤0.6)" in line
    assert "1 (≤0.9, missed)" in line
    assert text.count("Z80") == 1
    assert text.endswith("Missed, and why:\n\n- `invoke`: It checks the answer.")


def test_a_run_can_be_kept_and_written_later(tmp_path, capsys):
    (tmp_path / "performance.md").write_text("a <!-- measured: begin --> <!-- measured: end --> b")
    figures = INVOKED | {"ChatSvc before": [70.0]}
    rows = [(row, figures) for row in ROWS if row.name == "`invoke`"]
    report.save(report.Run("Measured on a Z80.", rows), tmp_path / "run.json")
    assert command.main(["--load", str(tmp_path / "run.json")]) == 0
    assert "ChatSvc before" in capsys.readouterr().out
    assert report.load(tmp_path / "run.json").results == rows


def test_what_cannot_be_measured_is_refused(tmp_path, capsys):
    for wrong in (["--before", str(tmp_path)], ["--rows", "nothing of this name"]):
        with pytest.raises(SystemExit):
            command.main(wrong)
        assert wrong[1] in capsys.readouterr().err


@pytest.mark.slow
def test_contestants_are_measured_in_turn(capfd):
    same = {"answer": "live-3", "who": (contestants.OURS, contestants.HTTPX), "calls": 5}
    rows = [
        Row("a token", "live", per=3, **same),
        Row("length", "live", unit="x", key="length", **same),
        Row("start", "cold", "first-8", who=(contestants.OURS,), unit="ms"),
    ]
    with Bench(Path(__file__).parents[1]) as bench:
        results = dict(zip(("cpu", "length", "start"), bench.run(rows, 1), strict=True))
    assert set(results["cpu"][1]) == {"ChatSvc", "ChatSvc before", "httpx"}
    assert all(1 <= figure[0] < 20 for figure in results["length"][1].values())
    assert set(results["start"][1]) == {"ChatSvc", "ChatSvc before"}
    assert "Error" not in capfd.readouterr().err


def test_what_questions_cost_is_told_of_any_answers(tmp_path, capsys):
    call = {"name": "weather", "args": {"city": "Oslo"}}
    written = json.dumps({"name": "weather", "arguments": call["args"]})
    texts = {
        f"<tool_call>{written}</tool_call>": [call],
        f"```json\n{written}\n```\nSo.": [call],
        "No.": [],
    }
    rows = [
        {"id": text, "tools": [WEATHER], "text": text, "expect": {"calls": calls}}
        for text, calls in texts.items()
    ]
    corpus = tmp_path / "corpus.jsonl"
    corpus.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert questions.main([str(corpus)]) == 0
    calls, negatives = capsys.readouterr().out.splitlines()
    assert calls == "calls: 2 of 2 right within 2 requests (100.0%), 1.500 requests each"
    assert negatives.endswith("1.000 requests each")
