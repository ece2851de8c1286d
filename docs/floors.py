"""Draws `floors.svg`: the floors of the package, and which room uses which.

    python docs/floors.py            # draws the picture anew
    python docs/floors.py --check    # says whether it is up to date; a test runs this

The floors are those that import-linter holds (`pyproject.toml`); the lines are the imports that
the code has. Lines to the lowest floor are left out: every room uses it.
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "langchain_svc"
PICTURE = Path(__file__).with_name("floors.svg")
WIDTH, FLOOR, BOX, GAP = 1000, 92, 52, 12
COLOURS = ("#2b6cb0", "#b7791f", "#2f855a", "#9b2c2c", "#6b46c1", "#2c7a7b", "#b83280", "#4a5568")


def floors() -> list[list[str]]:
    """The rooms of each floor, from the top."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    (layers,) = re.findall(r'name = "Imports point down".*?layers = \[\n(.*?)\n\]', text, re.DOTALL)
    return [re.findall(r"\w+", line) for line in layers.splitlines()]


def files(room: str) -> list[Path]:
    """The files of a room."""
    folder = PACKAGE / room
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [PACKAGE / f"{room}.py"]


def used(room: str) -> set[str]:
    """The rooms that a room imports, also for types and when first needed."""
    found: set[str] = set()
    for file in files(room):
        depth = len(file.relative_to(PACKAGE).parts)
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == depth:
                names = [node.module] if node.module else [alias.name for alias in node.names]
                found.update(name.partition(".")[0] for name in names)
    return found - {room}


def picture() -> str:
    """The picture as SVG."""
    levels = floors()
    places: dict[str, tuple[float, float, float]] = {}
    for level, rooms in enumerate(levels):
        width = (WIDTH - GAP) / max(len(rooms), 3) - GAP
        left = (WIDTH - len(rooms) * (width + GAP) + GAP) / 2
        for at, room in enumerate(rooms):
            places[room] = (left + at * (width + GAP), level * FLOOR + 20, width)
    lines: list[str] = []
    boxes: list[str] = []
    for level, rooms in enumerate(levels):
        colour = COLOURS[level % len(COLOURS)]
        for room in rooms:
            x, y, width = places[room]
            for other in sorted(used(room) & places.keys() - set(levels[-1])):
                to_x, to_y, to_width = places[other]
                if to_y > y:
                    lines.append(
                        f'<path d="M{x + width / 2:.0f} {y + BOX} C{x + width / 2:.0f} '
                        f"{y + BOX + 36} {to_x + to_width / 2:.0f} {to_y - 36} "
                        f'{to_x + to_width / 2:.0f} {to_y}" stroke="{colour}"/>'
                    )
            count = len(files(room))
            note = "1 file" if count == 1 else f"{count} files"
            boxes.append(
                f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{BOX}" rx="6" '
                f'stroke="{colour}"/>'
                f'<text x="{x + width / 2:.0f}" y="{y + 24}">{escape(room)}</text>'
                f'<text x="{x + width / 2:.0f}" y="{y + 41}" class="note">{note}</text>'
            )
    height = len(levels) * FLOOR
    style = (
        "rect{fill:#fff;stroke-width:1.5}path{fill:none;stroke-width:1.2;opacity:.45}"
        "text{font:14px sans-serif;text-anchor:middle;fill:#1a202c}"
        ".note{font-size:11px;fill:#718096}"
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
            "<title>The floors of langchain_svc: a room uses only rooms below it</title>",
            f"<style>{style}</style>",
            f'<rect width="{WIDTH}" height="{height}" stroke="none"/>',
            *lines,
            *boxes,
            "</svg>\n",
        ]
    )


def main() -> None:
    """Draw the picture, or check it."""
    if "--check" not in sys.argv:
        PICTURE.write_text(picture(), "utf-8")
    elif PICTURE.read_text("utf-8") != picture():
        sys.exit("docs/floors.svg is not what the imports say: run python docs/floors.py")


if __name__ == "__main__":
    main()
