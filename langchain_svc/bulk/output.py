"""The output: one line for each row of the input, also where the run ended early."""

from __future__ import annotations

import heapq
import json
import os
from collections.abc import Iterable, Iterator
from itertools import chain
from operator import itemgetter
from pathlib import Path

from .answers import output_line
from .journal import Journal, temporary
from .rows import Register

UNANSWERED = "unanswered"


def output_lines(
    journal: Journal, register: Register, *, ordered: bool, reason: str
) -> Iterator[str]:
    """The results of a journal, and a line for each row that the run has left unanswered.

    Args:
        journal: Of the run.
        register: The rows that the run has read.
        ordered: In the order of the input; otherwise as they finished.
        reason: Why rows are unanswered.
    """
    results = journal.lines(ordered=ordered)
    message = (
        f"The run ended before this row had an answer: {reason}. The next run asks it"
    )
    unanswered = (
        (number, _unanswered_line(number, key, message))
        for number, key in register.others(journal.numbers())
    )
    if ordered:
        merged: Iterable[tuple[int, str]] = heapq.merge(
            results, unanswered, key=itemgetter(0)
        )
    else:
        merged = chain(results, unanswered)
    for _, line in merged:
        yield line


def _unanswered_line(number: int, key: str, message: str) -> str:
    return output_line(
        number,
        json.loads(key),
        content=None,
        usage=None,
        finish_reason=None,
        error={"type": UNANSWERED, "message": message},
    )


def write_output(place: str, lines: Iterator[str], journal: Path) -> None:
    """Write all lines to a file, whole or not at all. An existing one keeps its mode.

    Raises:
        SvcRequestError: It cannot be written.
    """
    path = Path(place).resolve()  # a link stays one
    advice = f"All results are in {journal}: give another place, and run the same again"
    with temporary(path, advice) as draft:
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(line + "\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            draft.chmod(path.stat().st_mode & 0o777)
        draft.replace(path)
