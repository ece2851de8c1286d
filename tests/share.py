"""Which rows of a generated mass a run takes: all of them, or a share that moves on each day.

`pytest` takes the share, so that a person runs it; `pytest --whole`, which `.ci/run` does, and a run
of named files take all rows. A share has every row of a table and of each row some columns, so that
each kind is there every time, and each pair of them within days.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

SHARES = 16  # a share is about one row in so many

T = TypeVar("T")
U = TypeVar("U")


class Run:
    """What this run takes: conftest.py sets it before any test is collected."""

    whole = True
    turn = 0


def today() -> int:
    """The number of the day, by which shares move on."""
    return datetime.now(UTC).toordinal()


def part(items: Iterable[T], row: int = 0) -> list[T]:
    """The items that this run takes, at least one; each row of a table begins at another one."""
    items = list(items)
    if Run.whole or not items:
        return items
    step = min(SHARES, len(items))
    return items[(row + Run.turn) % step :: step]


def pairs(rows: Iterable[T], columns: Sequence[U]) -> list[tuple[T, U]]:
    """Every row, each with its part of the columns."""
    return [(row, column) for at, row in enumerate(rows) for column in part(columns, at)]


def fewer(count: int) -> int:
    """How often this run repeats what a whole run does `count` times."""
    return count if Run.whole else max(1, count // SHARES)
