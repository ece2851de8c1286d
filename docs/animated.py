"""A recording of a terminal as an animated SVG: styles only, so it plays where an image does.

Each line is in the picture once for each text that it had, and shown while it had it; what does not
fit scrolls. Without animations it shows the first screen.
"""

from __future__ import annotations

import re
from html import escape
from itertools import groupby, pairwise

import pyte

ROWS, COLUMNS = 26, 80  # what is seen
WIDTH, HEIGHT = 8.4, 18  # pixels of a character
LEFT, TOP = 16, 44
FRAME, LONGEST, END = 0.05, 1.0, 6.0  # seconds: what is one change, a wait, the end
# Seconds to read, before a step of the demo, a question and its last lines.
PAUSES = {r"\d\. ": 1.8, "> ": 0.7, "For answers": 1.5}
COLOURS = {
    "default": "#d8dbe2", "red": "#ff6b81", "green": "#7bd88f", "brown": "#e5c07b",
    "blue": "#6ab0f3", "cyan": "#5fd7d7", "brightblack": "#8a92a3",
}  # fmt: skip
Recording = list[
    tuple[float, str]
]  # seconds since the start, and what the terminal was sent
Run = tuple[int, str, str]  # column, text, classes
Line = tuple[Run, ...]


def played(recording: Recording) -> tuple[list[list[tuple[float, Line]]], float, str]:
    """What each line shows from when on; how long all takes; and the text at the end."""
    screen = pyte.Screen(COLUMNS, 300)
    stream = pyte.Stream(screen)
    lines: list[list[tuple[float, Line]]] = [[] for _ in range(screen.lines)]
    now, before = 0.0, 0.0
    for at, text in recording:
        now += min(max(at - before, 0.0 if at - before < FRAME / 4 else FRAME), LONGEST)
        before = at
        for piece in re.split(r"(?<=\n)", text):
            now += next(
                (pause for mark, pause in PAUSES.items() if re.match(mark, piece)), 0.0
            )
            screen.dirty.clear()
            stream.feed(
                piece.replace("\x1b[2m", "\x1b[90m")
            )  # it does not know of faint letters
            for row in screen.dirty:
                runs, had = read(screen, row), lines[row]
                if runs != (had[-1][1] if had else ()):
                    lines[row] = [one for one in had if one[0] < now] + [(now, runs)]
    text = "\n".join(line.rstrip() for line in screen.display).rstrip()
    return lines[: text.count("\n") + 1], now + END, text


def read(screen: pyte.Screen, row: int) -> Line:
    """A line as pieces of one look."""
    cells = screen.buffer[row]

    def look(column: int) -> str:
        one = cells[column]
        colour = one.fg if one.fg in COLOURS else "brown"
        return f"{colour}{' b' if one.bold else ''}{' i' if one.italics else ''}"

    found = []
    for classes, columns in groupby(range(screen.columns), look):
        at = list(columns)
        text = "".join(cells[column].data for column in at)
        begin = at[0] + len(text) - len(text.lstrip())
        if text.strip():
            found.append((begin, text.strip(), classes))
    return tuple(found)


def svg(recording: Recording, title: str) -> str:
    """The picture."""
    lines, length, text = played(recording)
    shown: dict[tuple[float, float | None], list[str]] = {}
    scrolls = {0.0: 0}
    for row, states in enumerate(lines):
        for (begin, runs), (end, _) in pairwise([*states, (None, ())]):
            if runs:
                shown.setdefault((begin, end), []).extend(drawn(row, runs))
                if row >= ROWS:
                    scrolls[begin] = max(scrolls.get(begin, 0), row - ROWS + 1)
    styles, groups = [], []
    for number, ((begin, end), texts) in enumerate(
        sorted(shown.items(), key=lambda one: one[0][0])
    ):
        hidden = "" if end is None else f"{share(end, length)}{{visibility:hidden}}"
        styles.append(
            f"@keyframes k{number}{{0%{{visibility:hidden}}{share(begin, length)}"
            f"{{visibility:visible}}{hidden}}}.k{number}{{animation-name:k{number}}}"
        )
        gone = "" if end is None else " gone"
        groups.append(f'<g class="k{number}{gone}">{"".join(texts)}</g>')
    # The first loop begins where the first screen is full, and not with an empty one.
    full = min((at for at in scrolls if at), default=0.0)
    furthest, steps = 0, []
    for at, row in sorted(scrolls.items()):
        furthest = max(furthest, row)
        steps.append(
            f"{share(at, length)}{{transform:translateY(-{furthest * HEIGHT}px)}}"
        )
    width, height = COLUMNS * WIDTH + 2 * LEFT, ROWS * HEIGHT + TOP + LEFT
    colours = "".join(f".{name}{{fill:{colour}}}" for name, colour in COLOURS.items())
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height}" role="img">
<title>{escape(title)}</title>
<desc>{escape(text)}</desc>
<style>
text{{font:14px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre}}
{colours}.b{{font-weight:bold}}.i{{font-style:italic}}.gone{{visibility:hidden}}
g{{animation-duration:{length:.1f}s;animation-timing-function:step-end}}
g{{animation-iteration-count:infinite;animation-delay:-{full:.1f}s}}
@keyframes s{{{"".join(steps)}}}.s{{animation-name:s}}
{chr(10).join(styles)}
@media (prefers-reduced-motion:reduce){{g{{animation:none}}}}
</style>
<rect width="100%" height="100%" rx="8" fill="#1b1e26" stroke="#4a5160" stroke-width="2"/>
<circle cx="20" cy="20" r="6" fill="#ff6b81"/><circle cx="40" cy="20" r="6" fill="#e5c07b"/>
<circle cx="60" cy="20" r="6" fill="#7bd88f"/>
<text class="brightblack" x="50%" y="25" text-anchor="middle">{escape(title)}</text>
<svg x="{LEFT}" y="{TOP}" width="{COLUMNS * WIDTH:g}" height="{ROWS * HEIGHT}"><g class="s">
{chr(10).join(groups)}
</g></svg>
</svg>
"""


def drawn(row: int, runs: Line) -> list[str]:
    """The pieces of a line, each as wide as its characters whatever the font is."""
    return [
        f'<text class="{classes}" x="{column * WIDTH:.4g}" y="{row * HEIGHT + 14}"'
        f' textLength="{len(text) * WIDTH:.4g}" lengthAdjust="spacingAndGlyphs">'
        f"{escape(text)}</text>"
        for column, text, classes in runs
    ]


def share(at: float, length: float) -> str:
    """A moment as a part of the whole."""
    return f"{100 * at / length:.4g}%"
