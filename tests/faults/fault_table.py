"""Writes the fault matrix as faults.md: PYTHONPATH=tests python tests/faults/fault_table.py

The table shows the declarations. The tests run every cell, and compare the table with them.
"""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

from fault_columns import COLUMNS
from fault_matrix import ROWS, WAYS, cells_of
from fault_words import Answer

DOCUMENT = Path(__file__).with_name("faults.md")


def cell_count():
    """How many cells the matrix has."""
    return len(WAYS) * sum(len(cells_of(row)) for row in ROWS)


def render():
    """The text of the document."""
    kinds = {kind: [c.name for c in COLUMNS if c.kind == kind] for kind in ("whole", "stream")}
    parts = [
        _TOP.format(
            rows=len(ROWS),
            columns=len(COLUMNS),
            cells=f"{cell_count():,}",
            whole="\n".join(f"- `{name}`" for name in kinds["whole"]),
            stream="\n".join(f"- `{name}`" for name in kinds["stream"]),
        )
    ]
    for group, rows in groupby(ROWS, key=lambda row: row.group):
        listed = list(rows)
        count = len(WAYS) * sum(len(cells_of(row)) for row in listed)
        parts.append(f"\n## {group}\n\n{count} cells.\n\n")
        parts.append("| what the server does | whole answers | streams |\n|---|---|---|\n")
        parts += [
            f"| {_named(row.name)} | {_shown(row.whole)} | {_shown(row.stream)} |\n"
            for row in listed
        ]
    return "".join(parts)


_TOP = """# Faults, one by one

This page lists the behaviour of every class under every fault, over real sockets. Every cell is run
blocking and on an event loop: {rows} faults, {columns} classes, {cells} cells. A cell passes if

- the outcome is as listed, with the status, the wait and the partial text if there are any;
- the server received the listed number of requests (one if none is listed);
- the call returned well before the server would have closed the connection, and within its limits;
- the error contains no key, is short, and `is_retryable` is as in [reliability.md](../../docs/reliability.md);
- the next call of the same object succeeds without a retry, and leaves no connection open.

`pytest tests/faults` runs all cells, and `PYTHONPATH=tests python tests/faults/fault_table.py`
writes this file. Further tests cut every good answer, in four framings, and damage it at random:
the beginning of an answer must not count as an answer, and every error must be one of this package.

Whole answers are those of

{whole}

and streams those of

{stream}

Unless the fault concerns them, `timeout` is 10 s, `deadline` 20 s and `max_retries` 1, or 0 where a
pause between attempts would only take time.
"""


def _named(name):
    """The row's name, with a word for each value that is filled in when it runs."""
    name = re.sub(r"\{([a-z_]+)\}", lambda field: f"({field[1].replace('_', ' ')})", name)
    return name.replace("|", "\\|")


def _shown(owed):
    if owed is None:
        return "-"
    many = "" if owed.requests == 1 else f", {owed.requests or 'no'} requests"
    if isinstance(owed, Answer):
        return f"answer{many}"
    wait = "" if owed.wait is None else f", `retry_after` {owed.wait:g}"
    partial = ", `partial`" if owed.partial else ""
    later = " (not again)" if owed.wait and not owed.is_retryable else ""
    return f"`{owed.error.__name__}`{many}{wait}{later}{partial}"


if __name__ == "__main__":
    DOCUMENT.write_text(render(), encoding="utf-8")
