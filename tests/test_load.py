"""The load of `benchmarks/load.py` in small: nothing lost, nothing swapped, nothing left behind."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks import load


@pytest.mark.slow
def test_many_calls_and_streams_at_once(capsys):
    small = ["--calls", "250", "--threaded", "150", "--streams", "40", "--loops", "20"]
    small += ["--at-once", "24", "--pace", "0.05", "--outage", "2", "--outage-calls", "300"]
    assert load.main(small) == 0, capsys.readouterr().out
    report = capsys.readouterr().out
    assert report.count("right") == 8
    assert "WRONG" not in report


@pytest.mark.slow
def test_what_is_not_as_planned_is_reported(capsys, monkeypatch):
    monkeypatch.setattr(load, "right_answer", lambda prompt: prompt)
    tiny = ["--calls", "8", "--threaded", "8", "--streams", "8", "--loops", "2", "--at-once", "4"]
    tiny += ["--pace", "0.01", "--outage", "0.1", "--outage-calls", "8"]
    assert load.main(tiny) == 1
    assert capsys.readouterr().out.count("WRONG") == 8
