"""Progress: what is shown of a run is true, also where a limit holds it up."""

import re
import sys
import time
from types import SimpleNamespace

import pytest
from langchain_core.runnables import RunnableLambda

import langchain_svc as svc
from langchain_svc import bulk
from langchain_svc._base.shown import money
from langchain_svc.bulk.progress import RunState, show_progress
from langchain_svc.sandbox import Fault

WAITING = r"(\d+) of \d rows, waiting (\d+) s for the service's limit"


@pytest.fixture
def lines(folder, monkeypatch, capsys):
    """Runs with progress in lines, and returns them."""
    monkeypatch.setattr("langchain_svc.bulk.progress._LOG_EVERY", 0.1)

    def run(*given, rows=8, **options):
        begun = time.monotonic()
        report = bulk.run(*given, journal="j", progress=True, **options)
        assert report.done == rows
        return capsys.readouterr().err.splitlines(), time.monotonic() - begun

    return run


def limited(after, seconds):
    """So many answers, then a limit that holds three rows up."""
    headers = {"Retry-After": str(seconds)}
    return [Fault(delay=0.01, times=after), Fault(status=429, headers=headers, times=3)]


@pytest.mark.slow
def test_a_wait_for_the_services_limit_is_said(lines, chat, sandbox, prompts):
    sandbox.faults = limited(5, 4)
    found, took = lines(chat, prompts(8), concurrency=3)
    waits = [match for line in found if (match := re.match(WAITING, line))]
    assert {int(one[1]) for one in waits} == {5}
    assert [int(one[2]) for one in waits] == sorted([int(one[2]) for one in waits], reverse=True)
    assert 4 <= took < 11  # not one row after another
    assert found[-1].startswith("8 of 8 rows")


def test_a_wait_for_the_plans_limit_is_said(lines, sandbox, prompts):
    plan = svc.Plan(requests_per_minute=15)  # a run's calls are 4 s apart
    with svc.ChatSvc(**sandbox.v1, quota=svc.SvcQuota(plan)) as model:
        found, _ = lines(model, prompts(2), rows=2)
    waits = [match for line in found if (match := re.match(WAITING, line))]
    assert {int(one[1]) for one in waits} == {1}
    assert {int(one[2]) for one in waits} <= {2, 3, 4}


@pytest.mark.slow
def test_a_burst_promises_no_early_end(lines, chat, sandbox, prompts):
    sandbox.faults = limited(4, 6)
    found, _ = lines(chat, prompts(8), concurrency=3)
    told = [int(match[1]) for line in found if (match := re.search(r", 0:00:(\d+) left", line))]
    assert told, found
    assert min(told[:3]) >= 5, found  # 4 rows in 6 s


def test_the_number_of_rows_is_counted_and_not_guessed(lines, folder):
    rows = "".join(f'{{"prompt": "{"x" * (n % 90)} y"}}\n' for n in range(500))
    (folder / "in.jsonl").write_text(rows)
    found, _ = lines(RunnableLambda(lambda text: time.sleep(0.03) or text), "in.jsonl", rows=500)
    assert len(found) > 2
    assert all(re.match(r"\d+ of 500 rows", line) for line in found)


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        (5.9e-05, "USD", "0.000059 USD"),
        (0.00022, "", "0.00022"),
        (1e-12, "EUR", "0.000000000001 EUR"),
        (0.0999, "USD", "0.10 USD"),
        (0.0, "USD", "0.00 USD"),
        (1_234.567, "USD", "1,234.57 USD"),
        (9.9e15, "JPY", "9,900,000,000,000,000.00 JPY"),
    ],
)
def test_money_has_a_currency_and_no_exponent(amount, currency, text):
    assert money(amount, currency) == text


def test_a_run_that_nothing_holds_up_waits_for_nothing(lines):
    found, _ = lines(RunnableLambda(lambda text: time.sleep(0.1) or text), list("abcdefgh"))
    assert found
    assert not [line for line in found if "waiting" in line or "left" in line]


def test_a_notebook_shows_a_bar_below_the_cell_and_the_report_as_a_table(
    chat, folder, prompts, monkeypatch, capsys
):
    shown = []

    def display(thing, *, display_id):
        assert display_id
        shown.append(thing)
        return SimpleNamespace(update=shown.append)

    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    report = bulk.run(chat, prompts(8), journal="<j>")
    assert "value=" not in shown[0]._repr_html_()  # before anything is known
    assert '<progress value="8" max="8">' in shown[-1]._repr_html_()
    assert repr(shown[-1]).startswith("8 of 8 rows")
    assert capsys.readouterr().err == ""
    table = report._repr_html_()
    assert "<td>answered</td><td>8</td>" in table
    assert "<td>&lt;j&gt;</td>" in table
    assert re.search(r"cost=None, .*, seconds=\d+\.\d{1,3}, runs=1, journal='<j>'\)$", repr(report))


def test_progress_is_shown_long_before_the_first_minute(lines, monkeypatch):
    monkeypatch.setattr("langchain_svc.bulk.progress._LOG_EVERY", 60)
    found, _ = lines(RunnableLambda(lambda text: time.sleep(0.8) or text), ["a"], rows=1)
    assert [line.split(",")[0] for line in found] == ["0 of 1 rows", "1 of 1 rows"]


@pytest.mark.parametrize(("option", "logged"), [(False, False), (None, True)])
async def test_who_wants_no_progress_is_told_of_no_wait(option, logged):
    state = RunState()
    async with show_progress(state, option=option):
        assert state.wait(1, 60.0, limit=True) is not logged
