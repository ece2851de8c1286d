"""The plot of the documents: one small panel a row, each with its own axis from zero."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from .contestants import OURS, PEERS
from .measure import Figures, Results
from .report import floor, middle
from .rows import Row

_COLUMNS = 4
_NAMES = (OURS, *PEERS)
_COLOURS = {OURS: "#1b6ca8"}
_OTHERS = "#b8b8b8"
_WIDTH_OF_TITLE = 34


def draw(results: Results, file: Path) -> None:
    """Write the plot of every row that has a peer."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    shown = [(row, figures) for row, figures in results if len(figures) > 1]
    lines = -(-len(shown) // _COLUMNS)
    figure, axes = plt.subplots(lines, _COLUMNS, figsize=(15, 2.2 * lines), squeeze=False)
    panels = axes.flatten()
    for panel, (row, figures) in zip(panels, shown, strict=False):
        _panel(panel, row, figures)
    for panel in panels[len(shown) :]:
        panel.axis("off")
    figure.suptitle(
        "What a client costs: CPU time, modules and memory of its process. Shorter is better; "
        "whiskers are quartiles; the dashed line is httpx and langchain-core alone.",
        fontsize=11,
    )
    figure.tight_layout(rect=(0, 0, 1, 0.985))
    file.parent.mkdir(exist_ok=True)
    figure.savefig(file, dpi=90)
    plt.close(figure)


def _panel(panel: Any, row: Row, figures: Figures) -> None:
    names = [name for name in _NAMES if figures.get(name)]
    for at, name in enumerate(names):
        value = statistics.median(figures[name])
        whiskers = _whiskers(figures[name])
        above = whiskers[1][0] if whiskers else 0
        panel.barh(at, value, color=_COLOURS.get(name, _OTHERS), xerr=whiskers,
                   error_kw={"elinewidth": 1, "ecolor": "#404040"})  # fmt: skip
        panel.annotate(
            f"{value:,.0f}" if value >= 100 else f"{value:.3g}", (value + above, at),
            xytext=(4, 0), textcoords="offset points", va="center", fontsize=8,
        )  # fmt: skip
    low = floor(row, figures)
    if low is not None:
        panel.axvline(low, color="#c03030", linestyle="--", linewidth=1)
    longest = max([low or 0.0, *(middle(figures, name) or 0.0 for name in names)])
    panel.set_xlim(0, 1.25 * longest)
    panel.set_yticks(range(len(names)), names, fontsize=8)
    panel.invert_yaxis()
    panel.tick_params(axis="x", labelsize=7)
    panel.spines[["top", "right"]].set_visible(False)
    unit = row.unit.replace("us", "µs")
    panel.set_title(f"{_title(row)}\n({unit})", fontsize=9, loc="left")


def _title(row: Row) -> str:
    names = {
        "package_modules": "modules of `import langchain_svc`",
        "class_modules": "modules of the class",
    }
    return (
        names.get(row.way, row.name)
        .replace("`", "")
        .replace(", per event", "")
        .replace(", per call", "")
    )


def _whiskers(values: list[float]) -> list[list[float]] | None:
    if len(values) < 3:
        return None
    low, mid, high = statistics.quantiles(values, n=4, method="inclusive")
    return [[mid - low], [high - mid]]
