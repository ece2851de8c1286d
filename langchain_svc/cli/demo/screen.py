"""How the demo looks: live and coloured on a terminal, plain readable text anywhere else."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

T = TypeVar("T")
_WIDEST = 100
_INDENT = 3


def _console(environ: Mapping[str, str] = os.environ) -> Console:
    """A console that writes no escape codes where NO_COLOR or a dumb terminal asks for none."""
    plain = bool(environ.get("NO_COLOR")) or environ.get("TERM") in {"dumb", "unknown"}
    # None leaves it to rich to find out whether stdout is a terminal.
    return Console(force_terminal=False if plain else None, highlight=False)


class Screen:
    """Prints the tour."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or _console()
        self._console.width = min(self._console.width, _WIDEST)
        self._steps = 0

    def step(self, title: str, feature: str) -> None:
        """Begin a step: what it shows, and the LangChain feature that it shows."""
        self._steps += 1
        head = Text.assemble((f"{self._steps}. {title}", "bold cyan"), "  ", (feature, "dim"))
        self._console.print("\n", head, sep="")

    def say(self, text: str) -> None:
        """Print words of the demo's own."""
        self._console.print(self._wrapped(Text(text), indent=0))

    def asked(self, question: str) -> None:
        """Print what is asked."""
        self._show(Text.assemble(("> ", "bold cyan"), (question, "bold")))

    def answered(self, answer: str) -> None:
        """Print an answer that is whole."""
        self._show(Text(answer))

    def note(self, text: str) -> None:
        """Print a remark beside an answer."""
        self._show(Text(text, style="dim"))

    def table(self, table: RenderableType) -> None:
        """Print a table."""
        self._console.print(table)

    def streamed(self, pieces: Iterable[str]) -> None:
        """Print an answer while it grows; where nothing can be redrawn, when it is whole."""
        if not self._console.is_terminal:
            self.answered("".join(pieces))
            return
        text = Text()
        with Live(console=self._console, auto_refresh=False) as live:
            for piece in pieces:
                live.update(self._wrapped(text.append(piece)), refresh=True)

    def counted(self, items: Iterable[T], total: int) -> Iterator[T]:
        """Pass items on while a progress bar counts them."""
        columns = (TextColumn(" " * (_INDENT - 1)), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn(), console=self._console) as progress:
            yield from progress.track(items, total=total)

    def _show(self, text: Text) -> None:
        self._console.print(self._wrapped(text))

    def _wrapped(self, text: Text, indent: int = _INDENT) -> Text:
        """The text in lines that fit, with room before them and no blanks behind."""
        lines = text.wrap(self._console, self._console.width - indent)
        for line in lines:
            line.rstrip()
        margin = " " * indent
        return Text("\n").join(Text(margin).append_text(line) if line else line for line in lines)
