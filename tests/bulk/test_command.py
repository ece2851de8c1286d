"""`langchain-svc batch`, as its users see it."""

import json
import re
import shlex
import signal
import time
from subprocess import PIPE

import pytest
from cli.conftest import started, terminal

from langchain_svc import ChatSvc, bulk, cli
from langchain_svc.sandbox import Fault


@pytest.fixture
def service(sandbox, monkeypatch):
    for name, value in sandbox.env.items():
        monkeypatch.setenv(name, value)
    return sandbox


@pytest.fixture
def batch(service, capsys):
    """Runs the command and returns its exit code, stdout and stderr."""

    def run(*words):
        code = cli.main(["batch", *map(str, words)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def asked(sandbox):
    return [one for one in sandbox.requests if one.path.endswith("/chat/completions")]


def test_rows_in_results_out(batch, prompts, written):
    code, out, err = batch(prompts(7), "out.jsonl", "--model", "svc-pro", "--temperature", 0)
    assert (code, out) == (0, "")
    assert re.search(
        r"7 rows answered, \d+ tokens, cost 0.00\d+ USD in 0:00:\d\d; journal out.jsonl.journal\n$",
        err,
    )
    assert "7 of 7 rows" in err
    assert sorted(row["id"] for row in written()) == [f"r{n}" for n in range(7)]


def test_stdin_and_stdout(service, folder):
    with started("batch", "-", "-", "--journal", "j", "--ordered", stdin=PIPE) as process:
        for number in range(3):
            process.stdin.write(json.dumps({"prompt": f"What is {number} * 2?"}) + "\n")
            process.stdin.flush()
            until(lambda number=number: len(asked(service)) > number)  # each is asked at once
        process.stdin.close()
        rows = [json.loads(line) for line in process.stdout]
    assert [row["content"] for row in rows] == ["0 * 2 = 0", "1 * 2 = 2", "2 * 2 = 4"]


def test_a_csv_on_stdin_is_refused(service, folder):
    with started("batch", "-", "out.jsonl", "--quiet", stdin=PIPE) as process:
        _, err = process.communicate("id,prompt\n1,Hello\n", timeout=60)
    assert process.returncode == 2
    assert "a CSV file is given by its name" in err
    assert not asked(service)


def test_objects_and_prompts_of_columns(batch, folder, written):
    (folder / "schema.json").write_text(
        '{"type": "object", "properties": {"total": {"type": "integer"}}}'
    )
    (folder / "in.csv").write_text("id,text\na,The total is 12.\n")
    code, _, _ = batch(
        "in.csv", "out.jsonl", "--schema", "schema.json", "--format", "Read this: {text}"
    )
    assert code == 0
    assert written()[0]["content"] == {"total": 12}


def test_rows_with_errors_are_asked_again_by_the_command_that_is_shown(batch, folder, service):
    (folder / "in.jsonl").write_text('{"prompt": "Hello"}\nnonsense\n')
    service.faults = [Fault(status=400, path="/chat/completions", times=1)]
    code, _, err = batch("in.jsonl", "out.jsonl")
    assert code == 1
    assert "0 rows answered, 2 with an error" in err
    shown = shlex.split(err.splitlines()[-1])
    assert shown[:2] == ["langchain-svc", "batch"]
    code, _, err = batch(*shown[2:])
    assert "1 row answered, 1 with an error" in err
    assert shlex.split(err.splitlines()[-1]) == shown


def test_a_dry_run_tells_what_it_takes_and_asks_nothing(batch, prompts, service, folder):
    (folder / "in.jsonl").write_text((folder / prompts(100)).read_text() + "nonsense\n")
    code, out, _ = batch("in.jsonl", "out.jsonl", "--dry-run", "--max-tokens", 50)
    assert code == 1, "as a row cannot be asked"
    told = {line.split("  ")[0]: line[12:] for line in out.splitlines()}
    assert told["rows"] == "101"
    assert told["bad"].startswith("1 (line 101: the line is not JSON")
    assert told["requests"] == "100"
    assert told["tokens out"] == "at most 5,000 (50 per answer)"
    assert 700 < int(told["tokens in"].removeprefix("about ").replace(",", "")) < 1_300
    assert told["cost"].endswith(" USD")
    assert not asked(service)
    assert [one.name for one in folder.iterdir()] == ["in.jsonl"]


def test_a_dry_run_knows_what_is_answered_and_the_time_by_the_plan(batch, prompts):
    _, _, err = batch(prompts(10), "out.jsonl", "--quiet")
    assert len(err.splitlines()) == 1
    _, out, _ = batch(prompts(1_010), "out.jsonl", "--dry-run", "--plan", "pro")
    assert "answered    10" in out
    assert "requests    1,000" in out
    assert re.search(r"tokens out  about \d+,\d+ \(as in the journal's answers\)", out)
    # 60 a minute, of which 59 in bulk; 16 at a time.
    assert (
        "time        about 0:17:00 with the plan pro, if an answer takes no longer than 16 s" in out
    )


@pytest.mark.parametrize("plan", ["starter", "learn"])
def test_a_dry_run_knows_no_time_by_a_plan_without_limits_here(plan, batch, prompts, service):
    service.faults = [Fault(reset="before")]  # no header teaches a limit
    _, out, _ = batch(prompts(10), "out.jsonl", "--dry-run", "--plan", plan)
    assert f"time        unknown: no limit of the plan {plan} is known here" in out


def test_a_dry_run_needs_no_key(prompts, capsys):
    prompts(1)
    assert cli.main(["batch", "in.jsonl", "out.jsonl", "--dry-run"]) == 0
    assert "cost        unknown: No API key" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["in.jsonl", "-"], "--journal results.journal"),
        (["nowhere.jsonl", "out.jsonl"], "nowhere.jsonl cannot be read"),
        (["in.jsonl", "out.jsonl", "--schema", "in.jsonl"], "is not JSON"),
        (["in.jsonl", "out.jsonl", "--schema", "nowhere"], "--schema: cannot read 'nowhere'"),
        (["in.jsonl", "out.jsonl", "--temperature", "3"], "--temperature: must be a number from 0"),
        (["in.jsonl", "out.jsonl", "--plan", "gold"], "There is no plan 'gold'"),
    ],
)
def test_what_is_wrong_is_one_line(words, said, batch, prompts, service):
    prompts(2)
    code, out, err = batch(*words)
    (line,) = err.splitlines()
    assert (code, out) == (2, "")
    assert line.startswith("langchain-svc: ")
    assert said in line
    assert not asked(service)


def test_the_place_of_a_shared_plan_may_be_in_the_environment(batch, prompts, monkeypatch):
    monkeypatch.setenv("SVC_QUOTA_STORAGE", "nowhere://:pa#ss@h")
    code, _, err = batch(prompts(2), "out.jsonl")
    assert (code, "SVC_QUOTA_STORAGE: " in err, "pa#ss" in err) == (2, True, False)


def test_a_wrong_key_is_said_before_a_row_is_asked(batch, prompts, monkeypatch, folder):
    monkeypatch.setenv("SVC_API_KEY", "wrong")
    code, _, err = batch(prompts(2), "out.jsonl")
    assert (code, "401" in err) == (1, True)
    assert [one.name for one in folder.iterdir()] == ["in.jsonl"]


def test_a_key_that_is_withdrawn_on_the_way_says_how_to_go_on(batch, prompts, service):
    service.faults = [Fault(delay=0.05, times=10), Fault(status=401, path="/chat/completions")]
    code, _, err = batch(prompts(40), "out.jsonl", "--concurrency", 4, "--quiet")
    assert code == 1
    reason, stopped, again = err.splitlines()
    assert reason.startswith("langchain-svc: The service answered 401")
    assert re.match(r"Stopped: \d+ rows answered, .*\. Then resume with:$", stopped)
    service.faults = []
    code, _, err = batch(*shlex.split(again)[2:])
    assert code == 0
    assert "40 rows answered" in err


def test_a_run_that_stops_without_an_answer_shows_no_command_that_would_fail_again(batch, prompts):
    code, _, err = batch(prompts(40), "out.jsonl", "--model", "none", "--quiet")
    assert code == 2
    reason, stopped = err.splitlines()
    assert reason.startswith("langchain-svc: The service answered 404")
    assert re.match(
        r"Stopped: 0 rows answered, .* tokens\. Correct the command; it begins anew\.$", stopped
    )
    assert batch("in.jsonl", "out.jsonl")[0] == 0


# -- rows that are not whole ------------------------------------------------------------------------


def test_cut_answers_are_counted_apart_and_asked_again(batch, prompts, written):
    code, _, err = batch(prompts(3), "out.jsonl", "--max-tokens", 2)
    assert code == 1
    assert "0 rows answered, 3 cut off, " in err
    assert "3 of 3 rows, 3 cut off" in err
    assert "Answers were cut at --max-tokens, 2 in this run" in err
    assert {row["error"]["type"] for row in written()} == {"cut"}
    for limit in (4, 8, 16):  # the next command asks for more, until the answers end
        shown = shlex.split(err.splitlines()[-1])[2:]
        wanted = ["in.jsonl", "out.jsonl", "--max-tokens", str(limit), "--retry-errors"]
        assert sorted(shown) == sorted(wanted)
        code, _, err = batch(*shown)
        if code == 0:
            break
    assert (code, [row["error"] for row in written()]) == (0, [None] * 3)
    assert "cut" not in err


def test_a_damaged_file_is_one_line_before_anything_is_sent(batch, folder, service):
    rows = [f"{n},The lamp {n} broke" for n in range(1, 501)]
    rows[99] = '100,"The lamp 100 broke'
    (folder / "in.csv").write_text("\n".join(["id,text", *rows]))
    for more in ([], ["--dry-run"]):
        code, out, err = batch("in.csv", "out.jsonl", "--format", "Sum up: {text}", *more)
        assert (code, out) == (2, "")
        assert err.startswith("langchain-svc: in.csv, line 101: a quoted field")
        assert len(err.splitlines()) == 1
    assert not asked(service)
    assert [one.name for one in folder.iterdir()] == ["in.csv"]


def test_a_forgotten_format_leads_to_no_circle(batch, folder, service):
    (folder / "in.csv").write_text("id,text\na,The lamp broke\nb,It is dark\n")
    code, _, err = batch("in.csv", "out.jsonl")
    assert code == 2
    assert "--format" in err
    assert "(and 1 more alike)" in err
    assert not asked(service)
    assert batch("in.csv", "out.jsonl", "--format", "Sum up: {text}")[0] == 0


def test_a_row_to_correct_is_named_and_then_asked(batch, folder, written):
    lines = ['{"prompt": "Hello"}', "", "oops", '{"prompt": "What is 2 + 2?"}']
    (folder / "in.jsonl").write_text("\n".join(lines))
    code, _, err = batch("in.jsonl", "out.jsonl", "--quiet")
    assert code == 1
    assert "line 3: the line is not JSON" in err
    assert "Correct such rows in in.jsonl" in err
    (folder / "in.jsonl").write_text("\n".join(lines).replace("oops", '{"prompt": "Hi"}'))
    code, _, err = batch(*shlex.split(err.splitlines()[-1])[2:])
    assert code == 0
    assert "3 rows answered" in err


def test_a_format_that_changes_after_nothing_was_answered(batch, folder, service):
    (folder / "in.csv").write_text("id,text\na,The lamp broke\n")
    service.faults = [Fault(status=400, path="/chat/completions", times=1)]
    assert batch("in.csv", "out.jsonl", "--format", "Sum: {text}")[0] == 1
    assert batch("in.csv", "out.jsonl", "--format", "Sum up: {text}")[0] == 0


@pytest.mark.parametrize(
    ("name", "rows"), [("in.csv", "id,prompt\na,x\na,y\n"), ("in.jsonl", '{"prompt": "x"}\n[]\n')]
)
def test_a_dry_run_fails_where_a_row_would(name, rows, batch, folder):
    (folder / name).write_text(rows)
    code, out, _ = batch(name, "out.jsonl", "--dry-run")
    assert (code, "bad         1 (line" in out) == (1, True)


def test_a_dry_run_fails_where_the_model_is_not_there_or_the_key_is_refused(
    batch, prompts, monkeypatch
):
    code, out, _ = batch(prompts(2), "out.jsonl", "--dry-run", "--model", "gpt-4o")
    assert (code, "problem     gpt-4o is not listed" in out) == (1, True)
    assert batch("in.jsonl", "out.jsonl", "--dry-run")[0] == 0
    monkeypatch.setenv("SVC_API_KEY", "wrong")
    code, out, _ = batch("in.jsonl", "out.jsonl", "--dry-run")
    assert (code, "401" in out) == (1, True)


def test_jsonl_gets_no_name_of_another_format(batch, prompts):
    code, _, err = batch(prompts(1), "out.csv")
    assert (code, "name it out.jsonl" in err) == (2, True)


def test_the_rows_that_a_refused_key_leaves_are_told(batch, prompts, service, written):
    service.faults = [Fault(status=401, path="/chat/completions")]
    code, _, err = batch(prompts(50), "out.jsonl", "--quiet")
    assert code == 1
    assert "0 rows answered, 50 unanswered" in err
    assert {row["error"]["type"] for row in written()} == {"unanswered"}
    service.faults = []
    service.clear()
    code, _, err = batch(*shlex.split(err.splitlines()[-1])[2:])
    assert (code, len(asked(service))) == (0, 50)


def test_an_answer_that_a_filter_cut_is_told_as_that(batch, prompts, service):
    choice = {"message": {"content": "half"}, "finish_reason": "content_filter"}
    service.faults = [Fault(path="/chat/completions", body={"choices": [choice]})]
    code, _, err = batch(prompts(1), "out.jsonl", "--quiet")
    assert code == 1
    assert "The first error is a cut: " in err
    assert "content_filter" in err
    assert "Answers were cut at" not in err


def test_a_dry_run_tells_of_a_quote_that_was_closed_by_accident(batch, folder):
    rows = [f"{n},The lamp {n} broke" for n in range(1, 51)]
    rows[9] = '10,"The lamp 10 broke'
    rows[19] = '20,The lamp 20 broke"'
    (folder / "in.csv").write_text("\n".join(["id,text", *rows]))
    _, out, _ = batch("in.csv", "out.jsonl", "--format", "Sum up: {text}", "--dry-run")
    assert "rows        40 (the longest from line 11 to 21)" in out


# -- from outside -----------------------------------------------------------------------------------


def shown(batch, *words):
    """What `--status` shows, by its first word."""
    code, out, _ = batch("--status", *words)
    assert code == 0
    return dict(re.split(r"  +", line, maxsplit=1) for line in out.splitlines())


def test_a_run_can_be_looked_at_while_it_goes_on_and_after(batch, service, folder, prompts):
    (folder / "in.jsonl").write_text((folder / prompts(30)).read_text() + "nonsense\n")
    service.faults = [Fault(delay=0.01, times=10), Fault(delay=60, path="/chat/completions")]
    with started("batch", "in.jsonl", "out.jsonl", "--concurrency", "2") as process:
        until((folder / "out.jsonl.journal.status").exists)
        until(lambda: shown(batch, "out.jsonl")["rows"] != "0 of 31")
        during = shown(batch, "out.jsonl")
        process.kill()
        process.wait()
    assert re.match(rf"process {process.pid} on .+, last sign \d s ago$", during["run"])
    assert during["rows"].endswith(" of 31")
    after = shown(batch, "out.jsonl")
    assert after["run"] == "none; the same command resumes"
    service.faults = []
    code, _, err = batch("in.jsonl", "out.jsonl", "--quiet")
    assert code == 1
    last = shown(batch, "out.jsonl")
    assert (last["rows"], last["answered"], last["failed"]) == ("31 of 31", "30", "1 (1 BadRow)")
    assert last["run"] == "none; all rows are through"
    counted = f"30 rows answered, 1 with an error, {last['tokens']} tokens, cost {last['cost']}"
    assert f"{counted} in {last['time']}; journal" in err
    assert last["time"].endswith(", in 2 runs")


def test_the_time_of_a_job_is_that_of_all_its_runs(service, folder, prompts):
    seconds = []
    for count in (1, 2, 3):
        service.faults = [Fault(delay=0.3, path="/chat/completions")]
        with ChatSvc(**service.v1) as model:
            report = bulk.run(model, prompts(count), journal="j")
        seconds.append(report.seconds)
        assert report.runs == count
    assert seconds[0] >= 0.3
    assert seconds[2] >= seconds[1] + 0.3 >= seconds[0] + 0.6


def test_there_is_nothing_to_look_at_before_a_run(batch, folder):
    code, _, err = batch("--status", "out.jsonl")
    assert (code, "There is no journal out.jsonl.journal" in err) == (2, True)


def test_a_dry_run_of_a_shard_counts_what_the_others_use_of_the_plan(batch, prompts):
    _, out, _ = batch(prompts(400), "o.jsonl", "--dry-run", "--plan", "60/min", "--shard", "1/2")
    assert "requests    200\n" in out
    assert "at most 0:06:48 with the plan 60/min, if an answer takes no longer than 32 s" in out


def test_a_dry_run_of_an_openai_batch_says_which_model_answers(batch, folder):
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}
    (folder / "in.jsonl").write_text(json.dumps({"custom_id": "a", "body": body}))
    code, out, _ = batch("in.jsonl", "out.jsonl", "--dry-run", "--model", "svc-pro")
    assert (code, "model       svc-pro; not gpt-4o, as the rows say" in out) == (0, True)


# -- Ctrl-C -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_run_that_is_told_to_end_waits_for_what_is_asked_and_says_how_to_go_on(
    end, service, prompts, written
):
    service.faults = [Fault(delay=0.3, path="/chat/completions")]
    with started("batch", prompts(200), "out.jsonl", "--concurrency", "4") as process:
        until(lambda: len(asked(service)) >= 6)
        process.send_signal(getattr(signal, end))
        if end == "SIGHUP":  # a shell sends it as well as the terminal
            process.send_signal(signal.SIGHUP)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "Press Ctrl-C again to stop now" in err
    done = int(re.search(r"interrupted: (\d+) rows answered", err)[1])
    answered = [row for row in written() if row["error"] is None]
    assert done == len(asked(service)) == len(answered), "what was asked was not thrown away"
    assert len(written()) == 200
    assert f"{200 - done} unanswered" in err
    assert err.splitlines()[-1].strip() == "langchain-svc batch in.jsonl out.jsonl --concurrency 4"


def test_a_hangup_does_not_end_what_runs_below_nohup(service, prompts, written):
    service.faults = [Fault(delay=0.3, path="/chat/completions")]
    ignores = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)"
    with started("batch", prompts(8), "out.jsonl", "--concurrency", "2", first=ignores) as run:
        until(lambda: len(asked(service)) >= 2)
        run.send_signal(signal.SIGHUP)
        run.communicate(timeout=60)
    assert run.returncode == 0
    assert [row["error"] for row in written()] == [None] * 8


def test_a_terminal_that_is_closed_leaves_the_output(service, prompts, written):
    service.faults = [Fault(delay=0.3, path="/chat/completions")]
    with terminal("batch", prompts(100), "out.jsonl", "--concurrency", "4") as screen:
        until(lambda: len(asked(service)) >= 6)
        screen.close()
        screen.process.wait(60)
    assert screen.process.returncode == 130
    assert len(written()) == 100
    assert len([row for row in written() if row["error"] is None]) == len(asked(service))


def test_a_second_ctrl_c_ends_at_once_also_while_nothing_comes_on_stdin(service, folder):
    service.faults = [Fault(hang=True, path="/chat/completions")]
    with started("batch", "-", "out.jsonl", stdin=PIPE) as process:
        process.stdin.write('{"prompt": "Hello"}\n')
        process.stdin.flush()
        until(lambda: asked(service))
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "Resume with" in err
