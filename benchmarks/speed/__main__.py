"""Measures ChatSvc against its peers and its floor, and writes the table and the plot.

    python -m benchmarks.speed                 # the table, in less than ten minutes
    python -m benchmarks.speed --quick         # in about one
    python -m benchmarks.speed --write         # into docs/performance.md, with the plot
    python -m benchmarks.speed --rows invoke   # only rows whose name holds a word

Every contestant runs in a process of its own and the server in another. Rounds are interleaved, so
that what else the machine does meets all alike. What counts is CPU time of the client's process.
Needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from . import report
from .measure import Bench
from .rows import ROWS

_DOCS = Path(__file__).parents[2] / "docs"


def main(words: Sequence[str] | None = None) -> int:
    """Run the benchmark; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds, about a minute")
    parser.add_argument("--rounds", type=int, help="how often everything is measured")
    parser.add_argument("--rows", nargs="+", help="only rows whose name holds one of these words")
    parser.add_argument("--save", type=Path, help="a file for the figures")
    parser.add_argument("--load", type=Path, help="figures of an earlier run, instead of a new one")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md and plot")
    options = parser.parse_args(words)
    if options.load:
        results = report.load(options.load)
    else:
        chosen = [
            row
            for row in ROWS
            if (row.quick or not options.quick)
            and (not options.rows or any(word in row.name for word in options.rows))
        ]
        with Bench() as bench:
            results = bench.run(chosen, options.rounds or (2 if options.quick else 5))
    if options.save:
        report.save(results, options.save)
    print(report.table(results))
    if options.write:
        report.write(results, _DOCS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
