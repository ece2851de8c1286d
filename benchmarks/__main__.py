"""What the package costs, in one command.

    python -m benchmarks                  # the table of speed, in less than a quarter of an hour
    python -m benchmarks --quick          # in less than two minutes
    python -m benchmarks --rows invoke    # only rows whose name holds a text
    python -m benchmarks --before DIR     # and another checkout of the package beside this one
    python -m benchmarks --write          # into docs/performance.md, with the plot
    python -m benchmarks growth           # the rows that show how cost grows with size
    python -m benchmarks counts --check   # calls of functions, which are the same in every run
    python -m benchmarks load             # many calls at once against a faulty service
    python -m benchmarks loop             # how long an answer of 100 kB holds the event loop

Speed: every contestant runs in a process of its own and the server in another. Rounds are
interleaved, so that what else the machine does meets all alike. What counts is CPU time of the
client's process. Needs the extra `bench`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from .speed import report
from .speed.measure import Bench
from .speed.rows import ROWS

_DOCS = Path(__file__).parents[1] / "docs"


def main(arguments: Sequence[str]) -> int:
    """Run what was asked for; returns the exit code."""
    name, *rest = arguments or [""]
    if name in {"counts", "load", "loop"}:
        return int(import_module(f"benchmarks.{name}").main(rest))
    if name == "growth":
        return speed(["--rows", "growth", *rest])
    return speed(rest if name == "speed" else arguments)


def speed(arguments: Sequence[str]) -> int:
    """Measure ChatSvc against its peers and its floor."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="fewer rows and rounds")
    parser.add_argument(
        "--rounds", type=int, help="how often everything is measured, at most"
    )
    parser.add_argument(
        "--rows", nargs="+", help="only rows whose name holds one of these texts"
    )
    parser.add_argument(
        "--before", type=Path, help="a checkout to measure as `ChatSvc before`"
    )
    parser.add_argument("--save", type=Path, help="a file for the figures")
    parser.add_argument(
        "--load", type=Path, help="figures of an earlier run, instead of a new one"
    )
    parser.add_argument(
        "--write", action="store_true", help="write docs/performance.md and plot"
    )
    options = parser.parse_args(arguments)
    if options.before and not (options.before / "langchain_svc").is_dir():
        parser.error(
            f"--before {options.before}: it must be a checkout with langchain_svc in it"
        )
    if options.load:
        run = report.load(options.load)
    else:
        chosen = [
            row
            for row in ROWS
            if (row.quick or not options.quick)
            and (not options.rows or any(text in row.name for text in options.rows))
        ]
        if not chosen:
            parser.error(
                f"--rows {options.rows}: no row has such a name; see benchmarks/speed"
            )
        with Bench(options.before) as bench:
            rounds = options.rounds or (1 if options.quick else 5)
            run = report.Run(report.machine(), bench.run(chosen, rounds))
    if options.save:
        report.save(run, options.save)
    print(report.text(run))
    if options.write:
        report.write(run, _DOCS)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
