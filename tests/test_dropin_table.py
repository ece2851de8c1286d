"""docs/dropin.md tells of every program that tests/dropin tries, and of nothing that failed."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_table_has_a_row_for_each_program(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tests" / "dropin")
    from registry import programs

    text = (ROOT / "docs" / "dropin.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")][
        1:
    ]
    told = {row[0]: row for row in rows}
    known = programs()
    assert list(told) == list(known)
    for name, row in told.items():
        program = known[name]
        third_party = f" *Third party*: {program.third_party}."
        assert row[1] == program.does + third_party * bool(program.third_party)
        usual = program.of in ("langchain-core", "langchain", "langgraph")
        assert usual or re.fullmatch(rf"{re.escape(program.of)} \d[\w.]*", row[2])
