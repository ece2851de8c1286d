"""Asks the cases, one after the other, and keeps a row of each that can be read by hand."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import langchain_svc

from .cases import Case, Outcome, Suite
from .results import Results, Row
from .tap import Tap, UnreachableError
from .ways import Way

_LONGEST_ERROR = 500
_IN_PROMPTS = ("tools", "schema", "passages")  # which are kept in full


def package_version() -> str:
    """The last commit that touched the package, and a digest of what is not committed."""
    root = Path(langchain_svc.__file__).parents[1]
    commit = _git(root, "log", "-1", "--format=%h", "--", "langchain_svc")
    if not commit:
        return langchain_svc.__version__
    changes = _git(root, "diff", "HEAD", "--", "langchain_svc")
    if changes:
        commit += f"-dirty-{hashlib.sha256(changes.encode()).hexdigest()[:6]}"
    return commit


def _git(root: Path, *words: str) -> str:
    command = ["git", "-C", str(root), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    except FileNotFoundError:
        return ""
    return done.stdout.strip()


Step = tuple[Suite, str, Case]


def steps(
    chosen: Sequence[tuple[Suite, Sequence[Case]]], ways: Sequence[str]
) -> Iterator[Step]:
    """Every case and way, so that prompts which begin alike follow each other."""
    for suite, cases in chosen:
        for way in ways:
            if way in suite.ways:
                yield from ((suite, way, case) for case in cases)


def run(
    left: Sequence[Step],
    ways: dict[str, Way],
    results: dict[str, Results],
    tap: Tap,
    seconds: float | None,
) -> None:
    """Ask what is left; with a bound each suite and way gets its share of the seconds.

    Raises:
        UnreachableError: The server is gone, or refuses us.
    """
    end = time.monotonic() + (seconds or float("inf"))
    shares = [list(some) for _, some in groupby(left, lambda step: step[:2])]
    for number, share in enumerate(shares):
        now = time.monotonic()
        until = now + (end - now) / (len(shares) - number)
        for suite, way, case in share:
            if time.monotonic() > until:
                break
            try:
                row = _row(suite, ways[way], case, tap)
            except UnreachableError:  # the machine may have slept
                row = _row(suite, ways[way], case, tap)
            results[way].add(row)
            verdict = "right" if row["right"] else row["why"]
            said = f"{case.key}  {way}  {verdict}  {row['seconds']:.1f} s"
            print(said, file=sys.stderr, flush=True)


def _row(suite: Suite, way: Way, case: Case, tap: Tap) -> Row:
    began = time.monotonic()
    tap.take()
    try:
        outcome = suite.ask(way, case)
    except Exception as error:  # noqa: BLE001  # whatever a user would have got
        text = f"{type(error).__name__}: {error}"
        outcome = Outcome(right=False, why="an error", error=text)
    seconds = time.monotonic() - began
    exchanges = tap.take()
    own = suite.own(case)
    row: dict[str, Any] = {
        "key": case.key,
        "digest": case.digest,
        "part": case.part,
        "category": case.category,
        "way": way.name,
        "right": outcome.right,
        "once": outcome.right and len(exchanges) <= outcome.turns,
        "why": outcome.why,
        "requests": len(exchanges),
        "prompt_tokens": exchanges[0].prompt_tokens if exchanges else None,
        "own_tokens": tap.count_tokens(own) if own else None,
        "empty": outcome.empty,
        "error": outcome.error[:_LONGEST_ERROR],
        "seconds": round(seconds, 2),
        "delivered": outcome.delivered,
        "exchanges": [exchange.as_json() for exchange in exchanges],
    }
    asked = {key: value for key, value in case.data.items() if key not in _IN_PROMPTS}
    return row | {"case": asked}
