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
        assert row[2] == program.does
        wanted = f"third party: {program.third_party}" if program.third_party else "works"
        assert row[3] == wanted
        assert re.fullmatch(rf"{re.escape(program.of)} \d[\w.]*", row[1])
