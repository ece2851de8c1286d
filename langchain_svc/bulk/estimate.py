"""What a run would take, told before the first request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .._chat import TOKENS_A_TURN, count_tokens
from .journal import Journal, Totals
from .rows import Row, Source, to_json

_SAMPLE = 1_000  # rows whose tokens are counted; the others' follow from their length
_SHOWN = 3  # rows that cannot be asked


@dataclass
class Estimate:
    """What is in the input, and what of it is still to be asked.

    Attributes:
        rows: Rows of the input.
        answered: Those that the journal has.
        requests: Those to ask: requests to the service, if each takes one.
        tokens_in: About how many tokens they have.
        tokens_out: Of the answers of a row, as the journal's answers had them; None without such.
        bad: How many rows cannot be asked.
        problems: Why, of the first few.
    """

    rows: int = 0
    answered: int = 0
    requests: int = 0
    tokens_in: int = 0
    tokens_out: float | None = None
    bad: int = 0
    problems: tuple[str, ...] = ()


def estimate(source: Source, journal: Journal | None, *, retry_errors: bool) -> Estimate:
    """Read all rows and ask none."""
    found = Estimate()
    totals = journal.totals() if journal is not None else Totals()
    if totals.done:
        found.tokens_out = totals.output_tokens / totals.done
    letters = sampled = counted = 0
    for row in _rows(source, journal, retry_errors=retry_errors):
        found.rows += 1
        if not row.to_ask:
            found.answered += 1
        elif row.problem:
            found.bad += 1
            if len(found.problems) < _SHOWN:
                found.problems += (f"row {row.number}: {row.problem}",)
        else:
            text = _text(row.input)
            letters += len(text)
            if found.requests < _SAMPLE:
                sampled += len(text)
                counted += count_tokens(text) + TOKENS_A_TURN
            found.requests += 1
    found.tokens_in = round(counted * letters / sampled) if sampled else 0
    return found


def _rows(source: Source, journal: Journal | None, *, retry_errors: bool) -> Iterator[Row]:
    while rows := source.chunk():
        if journal is not None:
            journal.mark(rows, retry_errors=retry_errors)
        yield from rows


def _text(asked: Any) -> str:
    if isinstance(asked, str):
        return asked
    if isinstance(asked, list):
        return "\n".join(str(turn.get("content")) for turn in asked if isinstance(turn, dict))
    return to_json(asked)
