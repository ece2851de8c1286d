"""The figures as a table and as a plot."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict
from pathlib import Path

from .contestants import OURS, PEERS
from .measure import Figures, Results
from .rows import ROWS, Row

_BEGIN, _END = "<!-- measured: begin -->", "<!-- measured: end -->"


def save(results: Results, file: Path) -> None:
    """Keep the figures."""
    file.write_text(json.dumps([[asdict(r)["name"], r.way, f] for r, f in results], indent=1))


def load(file: Path) -> Results:
    """Figures that were kept."""
    rows = {(row.name, row.way): row for row in ROWS}
    return [(rows[name, way], figures) for name, way, figures in json.loads(file.read_text())]


def middle(figures: Figures, name: str) -> float | None:
    """The median of a contestant's rounds."""
    return statistics.median(figures[name]) if figures.get(name) else None


def best_peer(figures: Figures) -> float | None:
    """The median of the best peer."""
    return min((m for name in PEERS if (m := middle(figures, name)) is not None), default=None)


def floor(row: Row, figures: Figures) -> float | None:
    """What httpx and core take for the same."""
    parts = [middle(figures, name) for name in row.floor]
    known = [part for part in parts if part is not None]
    return sum(known) if parts and len(known) == len(parts) else None


def table(results: Results) -> str:
    """The figures in Markdown: medians, with the quartiles of ours."""
    heads = ["CPU of the client", OURS, *PEERS, "httpx + core"]
    lines = [
        "| " + " | ".join([*heads, "of the best peer", "of the floor"]) + " |",
        "|" + "---|" * (len(heads) + 2),
    ]
    for row, figures in results:
        ours, low = middle(figures, OURS), floor(row, figures)
        cells = [f"{row.name}, {row.unit.replace('us', 'µs')}", _spread(figures.get(OURS, []))]
        cells += [_number(middle(figures, name)) for name in PEERS]
        cells += [_number(low)]
        cells += [_ratio(ours, best_peer(figures), row.of_peer), _ratio(ours, low, row.of_floor)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _spread(values: list[float]) -> str:
    if len(values) < 3:
        return _number(statistics.median(values)) if values else ""
    low, mid, high = statistics.quantiles(values, n=4, method="inclusive")
    return f"**{_number(mid)}** ({_number(low)} to {_number(high)})"


def _ratio(ours: float | None, other: float | None, target: float | None) -> str:
    if ours is None or not other:
        return ""
    ratio = ours / other
    if target is None:
        return f"{ratio:.2g}"
    met = "met" if ratio <= target else "missed"
    return f"{ratio:.2g} (at most {target:g}: {met})"


def write(results: Results, docs: Path) -> None:
    """Put the table into the documents, and the plot beside them."""
    from .plot import draw

    page = docs / "performance.md"
    before, _, rest = page.read_text("utf-8").partition(_BEGIN)
    after = rest.partition(_END)[2]
    page.write_text(f"{before}{_BEGIN}\n{table(results)}\n{_END}{after}", "utf-8")
    draw(results, docs / "images" / "performance.png")
