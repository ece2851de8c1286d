"""Every class in every fault, over real sockets; see docs/faults.md for the table."""

from __future__ import annotations

import pytest
from fault_matrix import ROWS, Places, new_pool, run_row, told
from fault_table import DOCUMENT, render


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


def test_the_table_in_the_docs_is_this_matrix():
    assert DOCUMENT.read_text("utf-8") == render()
