"""Runs the whole fault matrix and writes what was found as faults.md.

    python tests/faults/fault_table.py               # run every cell; write the table if all are right
    python tests/faults/fault_table.py --damage 100  # cut at every byte, and 100 random damages
    python tests/faults/fault_table.py --write       # only write the table

The table shows the declarations; it is written only when every cell was as declared.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from itertools import groupby
from pathlib import Path

from fault_columns import COLUMNS
from fault_damage import all_wrong, cuts, damages
from fault_matrix import ROWS, WAYS, Places, cells_of, new_pool, run_row, told
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

`python tests/faults/fault_table.py` runs all cells and writes this file; the tests run them too.
With `--damage 100` it cuts every
good answer at every byte, in four framings, and damages it 100 times at random: the beginning of an answer
must not count as an answer, and every error must be one of this package.

Whole answers are those of

{whole}

and streams those of

{stream}

A tool's error is the cause of its `ToolException`. Unless the fault concerns them, `timeout` is
10 s, `deadline` 20 s and `max_retries` 1, or 0 where a pause between attempts would only take time.
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


def run():
    """Runs every cell; gives the number of rows with a wrong one."""
    started, wrong, done = time.monotonic(), 0, 0
    with Places() as places, new_pool() as pool:
        for row in ROWS:
            outcomes = run_row(places, row, pool)
            done += len(outcomes)
            problem = told(outcomes)
            wrong += bool(problem)
            if problem:
                print(problem)
    took = time.monotonic() - started
    print(f"{done:,} cells in {len(ROWS)} rows, {wrong} rows wrong, {took:.0f} s")
    return wrong


def damage(times):
    """Cuts and damages every good answer; gives the exit code."""
    seed = random.randrange(2**32)
    cases = {"cuts": cuts(), f"damages, seed {seed}": damages(random.Random(seed), times)}
    wrong = 0
    with Places() as places, new_pool() as pool:
        for name, some in cases.items():
            problems, count = all_wrong(places, pool, some, cut=name == "cuts")
            print(f"{count:,} {name}: {len(problems)} wrong", *problems[:20], sep="\n")
            wrong += len(problems)
    return 1 if wrong else 0


def main():
    """Runs the command; gives its exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--damage", type=int, help="cut answers everywhere, and damage them")
    parser.add_argument("--write", action="store_true", help="only write the table")
    options = parser.parse_args()
    if options.damage is not None:
        return damage(options.damage)
    if not options.write and run():
        return 1
    DOCUMENT.write_text(render(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
