"""Every class in every fault, over real sockets; see faults.md for the table."""

from __future__ import annotations

import pytest
from fault_columns import COLUMNS
from fault_matrix import ROWS, batches, run_rows
from fault_table import DOCUMENT, cell_count, render

from langchain_svc._wire import TRANSIENT


def name_of(rows):
    return f"{rows[0].group}-{rows[0].name}"[:90]


@pytest.mark.parametrize("rows", batches(), ids=name_of)
def test_every_class_in_this_fault(places, pool, rows):
    assert run_rows(places, rows, pool) == {}


def test_each_status_that_is_retried_has_its_rows():
    told = {row.name[:3] for row in ROWS}
    missing = {status for status in TRANSIENT if str(status) not in told}
    assert not missing, "add them to tests/faults/fault_rows_exchange.py, then write the table"


def test_the_written_table_is_this_matrix():
    current = DOCUMENT.read_text("utf-8") == render()
    assert current, (
        "write tests/faults/faults.md again: PYTHONPATH=tests python tests/faults/fault_table.py"
    )


def test_the_page_has_its_counts():
    page = DOCUMENT.parents[2] / "docs" / "reliability.md"
    counts = (f"{len(ROWS)} faults", f"{len(COLUMNS)} ways", f"{cell_count():,} cells")
    missing = [count for count in counts if count not in page.read_text("utf-8")]
    assert not missing, f"docs/reliability.md must say {missing}"
