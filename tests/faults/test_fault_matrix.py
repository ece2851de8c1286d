"""Every class in every fault, over real sockets; see faults.md for the table."""

from __future__ import annotations

import random

import pytest
from fault_columns import COLUMNS
from fault_damage import all_wrong, cuts, damages
from fault_matrix import ROWS, Places, new_pool, run_row, told
from fault_table import DOCUMENT, cell_count, render


@pytest.fixture(scope="module")
def places():
    with Places() as here:
        yield here


@pytest.fixture(scope="module")
def pool():
    with new_pool() as threads:
        yield threads


@pytest.mark.parametrize("row", ROWS, ids=[f"{row.group}-{row.name}"[:90] for row in ROWS])
def test_every_class_in_this_fault(places, pool, row):
    assert told(run_row(places, row, pool)) == ""


def test_the_beginning_of_an_answer_is_no_answer(places, pool):
    assert all_wrong(places, pool, cuts(step=31), cut=True)[0] == []


def test_no_damage_brings_out_a_foreign_error(places, pool):
    assert all_wrong(places, pool, damages(random.Random(7), 6), cut=False)[0] == []


def test_the_written_table_is_this_matrix():
    current = DOCUMENT.read_text("utf-8") == render()
    assert current, "write tests/faults/faults.md again: python tests/faults/fault_table.py --write"


def test_the_page_has_its_counts():
    page = DOCUMENT.parents[2] / "docs" / "reliability.md"
    counts = (f"{len(ROWS)} faults", f"{len(COLUMNS)} ways", f"{cell_count():,} cells")
    missing = [count for count in counts if count not in page.read_text("utf-8")]
    assert not missing, f"docs/reliability.md must say {missing}"
