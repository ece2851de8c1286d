"""What became of the cases: files that a rerun goes on with, a table, and two runs compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from math import comb
from pathlib import Path
from typing import Any

from .cases import Case

Row = dict[str, Any]


def read_rows(path: Path) -> dict[str, Row]:
    """The rows of a file by their keys, the last of each; a broken line is no row."""
    rows: dict[str, Row] = {}
    if path.exists():
        for line in path.read_text("utf-8").splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue
            rows[row["key"]] = row
    return rows


class Results:
    """The file of one model, way and commit."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = read_rows(path)
        if path.exists() and not path.read_bytes().endswith(b"\n"):
            with path.open("ab") as file:  # of a run that was broken off
                file.write(b"\n")

    def has(self, case: Case) -> bool:
        """Whether this very case was answered."""
        row = self.rows.get(case.key)
        return row is not None and row["digest"] == case.digest

    def add(self, row: Row) -> None:
        """Keep a row, at once."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")
        self.rows[row["key"]] = row


# -- a table -----------------------------------------------------------------------------------

_HEAD = (
    "suite", "way", "cases", "at once", "right", "requests", "prompt", "own", "nothing",
    "errors", "right of each kind",
)  # fmt: skip


def table(cases: Sequence[Case], results: dict[str, Results]) -> str:
    """Each suite and way, over the cases that all ways of the suite have answered."""
    lines: list[Sequence[str]] = [_HEAD]
    for part in dict.fromkeys(case.part for case in cases):
        some = [case for case in cases if case.part == part]
        ways = [
            way for way, kept in results.items() if any(kept.has(one) for one in some)
        ]
        common = [one for one in some if all(results[way].has(one) for way in ways)]
        for way in ways if common else ():
            rows = [results[way].rows[case.key] for case in common]
            lines.append((part, way, *_figures(rows)))
    return _markdown(lines)


def _figures(rows: Sequence[Row]) -> Sequence[str]:
    kinds = []
    for kind in dict.fromkeys(row["category"] for row in rows):
        of_kind = [row["right"] for row in rows if row["category"] == kind]
        kinds.append(f"{kind} {sum(of_kind)}/{len(of_kind)}")
    return (
        str(len(rows)),
        str(sum(row["once"] for row in rows)),
        str(sum(row["right"] for row in rows)),
        f"{sum(row['requests'] for row in rows) / len(rows):.2f}",
        _mean(row["prompt_tokens"] for row in rows),
        _mean(row["own_tokens"] for row in rows),
        str(sum(row["empty"] for row in rows)),
        str(sum(bool(row["error"]) for row in rows)),
        ", ".join(kinds),
    )


def _mean(values: Iterable[int | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{sum(known) / len(known):.0f}" if known else "-"


def _markdown(lines: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = []
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        padded.append(f"| {' | '.join(cells)} |")
    padded.insert(1, f"|{'|'.join('-' * (width + 2) for width in widths)}|")
    return "\n".join(padded)


# -- by hand -----------------------------------------------------------------------------------

_LONGEST = 400  # characters of a prompt's last turn: its end is what a model reads last


def reading(path: Path) -> str:
    """The answers of a file as a person reads them: the end of each prompt, and what came."""
    told = []
    for row in read_rows(path).values():
        told.append(f"== {row['key']}: {'right' if row['right'] else row['why']}")
        for exchange in row["exchanges"]:
            asked = exchange["sent"]["messages"][-1]["content"]
            told += [f"-- asked: {asked[-_LONGEST:]}", f"-- {exchange['answer']}"]
        told += [f"-- delivered: {row['delivered']} {row['error']}".rstrip(), ""]
    return "\n".join(told)


# -- two runs ----------------------------------------------------------------------------------


def sign_test(gained: int, lost: int) -> float:
    """How likely so uneven a split is if neither is better: exact, two-sided."""
    changed = gained + lost
    tail = sum(comb(changed, few) for few in range(min(gained, lost) + 1))
    return min(1.0, tail / 2.0 ** (changed - 1))


def comparison(before: Path, after: Path) -> str:
    """What the second file gained and lost, case by case, over the cases of both."""
    old, new = read_rows(before), read_rows(after)
    common = [
        key
        for key, row in old.items()
        if key in new and new[key]["digest"] == row["digest"]
    ]
    lines = [("suite", "cases", "before", "after", "gained", "lost", "p")]
    parts = list(dict.fromkeys(old[key]["part"] for key in common))
    for part in [*parts, "all"]:
        keys = [key for key in common if part in {"all", old[key]["part"]}]
        gained = sum(new[key]["right"] > old[key]["right"] for key in keys)
        lost = sum(new[key]["right"] < old[key]["right"] for key in keys)
        right = [sum(rows[key]["right"] for key in keys) for rows in (old, new)]
        p = f"{sign_test(gained, lost):.3f}"
        figures = (len(keys), *right, gained, lost)
        lines.append((part, *map(str, figures), p))
    told = [f"before: {before.name}", f"after: {after.name}", "", _markdown(lines), ""]
    for key in common:
        was, now = old[key], new[key]
        if was["right"] != now["right"]:
            word, wrong = ("gained", was) if now["right"] else ("lost", now)
            told.append(f"{word} {key}: {wrong['why']} {wrong['error']}".rstrip())
    return "\n".join(told)
