"""The figures as a table and as a plot."""

from __future__ import annotations

import datetime as dt
import json
import os
import platform
import statistics
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from .contestants import BEFORE, OURS, PEERS
from .measure import Figures, Results
from .rows import ROWS, Row

_BEGIN, _END = "<!-- measured: begin -->", "<!-- measured: end -->"
_LIBRARIES = ("langchain-core", "httpx", "langchain-openai", "langchain-mistralai",
              "langchain-groq")  # fmt: skip


@dataclass(frozen=True)
class Run:
    """The figures of one run, and the machine that it ran on."""

    machine: str
    results: Results


def machine() -> str:
    """What figures of this machine depend on, in one sentence."""
    cpuinfo = Path("/proc/cpuinfo")
    named = (
        cpuinfo.read_text("utf-8").partition("model name")[2]
        if cpuinfo.exists()
        else ""
    )
    model = named.partition("\n")[0].strip("\t: ") or platform.machine()
    versions = ", ".join(f"{name} {version(name)}" for name in _LIBRARIES)
    today = dt.datetime.now(dt.UTC).date()
    return (
        f"Measured on {today}: {model}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}, {versions}."
    )


def save(run: Run, file: Path) -> None:
    """Keep the figures."""
    kept = {
        "machine": run.machine,
        "rows": {row.name: figures for row, figures in run.results},
    }
    file.write_text(json.dumps(kept, indent=1), "utf-8")


def load(file: Path) -> Run:
    """Figures that were kept."""
    kept = json.loads(file.read_text("utf-8"))
    return Run(
        kept["machine"],
        [(r, kept["rows"][r.name]) for r in ROWS if r.name in kept["rows"]],
    )


def middle(figures: Figures, name: str) -> float | None:
    """The median of a contestant's rounds."""
    return statistics.median(figures[name]) if figures.get(name) else None


def best_peer(row: Row, figures: Figures) -> tuple[float, str] | None:
    """The median of the best peer, and its name."""
    best = max if row.unit == "1/s" else min
    known = [(m, name) for name in PEERS if (m := middle(figures, name)) is not None]
    return best(known, default=None)


def floor(row: Row, figures: Figures) -> float | None:
    """What httpx and core take for the same."""
    parts = [middle(figures, name) for name in row.floor]
    known = [part for part in parts if part is not None]
    return sum(known) if parts and len(known) == len(parts) else None


def ratios(row: Row, figures: Figures) -> list[tuple[str, float | None, float | None]]:
    """Ours by the best peer's and by the floor: the name, the ratio and its target."""
    ours, peer = middle(figures, OURS), best_peer(row, figures)
    against = (("best peer", peer and peer[0], row.of_peer),
               ("floor", floor(row, figures), row.of_floor))  # fmt: skip
    return [(name, ours / m if ours and m else None, goal) for name, m, goal in against]


def text(run: Run) -> str:
    """Everything in Markdown: the table, the machine and the targets that were missed."""
    missed: dict[str, list[str]] = {}  # the rows, by the reason that they share
    for row, figures in run.results:
        if any(r and goal and r > goal for _, r, goal in ratios(row, figures)):
            missed.setdefault(row.why or "no reason is known.", []).append(row.name)
    title = "Missed, and why:" if missed else ""
    reasons = "\n".join(f"- {'; '.join(names)}: {why}" for why, names in missed.items())
    return "\n\n".join(filter(None, (table(run.results), run.machine, title, reasons)))


def table(results: Results) -> str:
    """The figures in Markdown: medians, with the quartiles of ours."""
    names = [OURS, *(n for n in (BEFORE,) if any(n in f for _, f in results)), *PEERS]
    lines = [
        "| "
        + " | ".join(["", *names, "floor", "of the best peer", "of the floor"])
        + " |",
        "|" + "---|" * (len(names) + 4),
    ]
    for row, figures in results:
        cells = [f"{row.name}, {row.unit.replace('us', 'µs')}".removesuffix(", x")]
        cells += [_spread(figures.get(OURS, []))]
        cells += [number(middle(figures, name)) for name in names[1:]]
        cells += [number(floor(row, figures))]
        cells += [_ratio(ratio, goal) for _, ratio, goal in ratios(row, figures)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def number(value: float | None) -> str:
    """A figure with three digits at least."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _spread(values: list[float]) -> str:
    if len(values) < 3:
        return f"**{number(statistics.median(values))}**" if values else ""
    low, mid, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"**{number(mid)}** ({number(low)} to {number(high)})"


def _ratio(ratio: float | None, goal: float | None) -> str:
    if ratio is None:
        return ""
    if goal is None:
        return f"{ratio:.2g}"
    return f"{ratio:.2g} (≤{goal:g}{'' if ratio <= goal else ', missed'})"


def write(run: Run, docs: Path) -> None:
    """Put the figures of now that have a target into the page, and the plot beside it."""
    from .plot import draw

    now = [(row, {n: v for n, v in f.items() if n != BEFORE}) for row, f in run.results]
    page = docs / "performance.md"
    before, _, rest = page.read_text("utf-8").partition(_BEGIN)
    after = rest.partition(_END)[2]
    aimed = [(row, figures) for row, figures in now if row.of_peer or row.of_floor]
    measured = text(Run(run.machine, aimed))
    page.write_text(f"{before}{_BEGIN}\n{measured}\n{_END}{after}", "utf-8")
    draw(now, docs / "images" / "performance.png")
