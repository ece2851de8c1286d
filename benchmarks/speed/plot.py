"""The plot of the documents: groups of three bars, each with the best peer as its measure."""

from __future__ import annotations

from pathlib import Path

from .contestants import OURS
from .measure import Results
from .report import best_peer, floor, middle, number

_OURS, _PEER, _FLOOR = "#1b6ca8", "#b8b8b8", "#ffffff"


def draw(results: Results, file: Path) -> None:
    """Write the plot of the rows that have a short name."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(10, 4.2))
    shown = [(row, figures) for row, figures in results if row.short]
    for at, (row, figures) in enumerate(shown):
        ours, peer, low = (
            middle(figures, OURS),
            best_peer(row, figures),
            floor(row, figures),
        )
        if ours is None or peer is None:
            continue
        bars = [(ours, OURS, _OURS), (*peer, _PEER), (low, "floor", _FLOOR)]
        for beside, (value, name, colour) in enumerate(bars):
            if value is None:
                continue
            place, height = at + 0.28 * (beside - 1), value / peer[0]
            axes.bar(
                place, height, 0.26, color=colour, edgecolor="#606060", linewidth=0.6
            )
            if name == peer[1]:  # in its bar, where it hides no figure
                axes.text(
                    place,
                    height / 2,
                    name,
                    rotation=90,
                    ha="center",
                    va="center",
                    fontsize=8,
                )
            axes.annotate(
                _told(value, row.unit),
                (place, height), xytext=(0, 3), textcoords="offset points", ha="center",
                fontsize=8, fontweight="bold" if beside == 0 else "normal",
            )  # fmt: skip
    axes.set_xticks(range(len(shown)), [row.short for row, _ in shown], fontsize=9)
    axes.set_yticks([0, 0.5, 1], ["0", "half", "best peer"], fontsize=9)
    axes.margins(y=0.1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_title("CPU time of the client, by that of the best peer: shorter is better",
                   fontsize=11, loc="left", pad=24)  # fmt: skip
    floor_name = "floor: httpx + langchain-core"
    kinds = ((OURS, _OURS), ("the best peer", _PEER), (floor_name, _FLOOR))
    handles = [
        mpl.patches.Patch(facecolor=c, edgecolor="#606060", label=n) for n, c in kinds
    ]
    axes.legend(handles=handles, fontsize=8, frameon=False, ncols=3, loc="lower left",
                bbox_to_anchor=(0, 0.99))  # fmt: skip
    figure.tight_layout()
    file.parent.mkdir(exist_ok=True)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def _told(value: float, unit: str) -> str:
    if unit == "us" and value >= 1000:
        value, unit = value / 1000, "ms"
    return f"{number(value)} {unit.replace('us', 'µs')}"
