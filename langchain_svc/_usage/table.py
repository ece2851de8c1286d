"""Counts as people read them: a table, the same in a notebook, lines, and one line.

Each tells all that happened: a console without room for the whole table shows the lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from .counts import Durations, ModelUsage

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType


@dataclass(frozen=True)
class _Column:
    head: str
    words: str  # for one cell, where there is no column
    cell: Callable[[ModelUsage], str]  # "" where there is nothing to tell
    empty: str = ""  # what stands there then; a column without it is shown where it is needed


def _count(count: int) -> str:
    return f"{count:,}" if count else ""


def _tokens(counted: int, estimated: int) -> str:
    return " + ".join(filter(None, (_count(counted), f"~{estimated:,}" if estimated else "")))


def _tokens_in(usage: ModelUsage) -> str:
    return _tokens(usage.input_tokens, usage.estimated_input_tokens)


def _tokens_out(usage: ModelUsage) -> str:
    return _tokens(usage.output_tokens, usage.estimated_output_tokens)


def _retries(usage: ModelUsage) -> str:
    return f"{usage.retries:,} ({usage.waited:,.1f} s)" if usage.retries else ""


def _cost(usage: ModelUsage) -> str:
    about = "~" if usage.estimated_input_tokens or usage.estimated_output_tokens else ""
    costs = (f"{about}{cost:,.4g} {name}".strip() for name, cost in sorted(usage.cost.items()))
    return " + ".join(costs)


def _time(durations: Durations, share: float) -> str:
    seconds = durations.quantile(share)
    if seconds is None:
        return ""
    return f"{1000 * seconds:.0f} ms" if seconds < 0.9995 else f"{seconds:,.3g} s"


_COLUMNS = (
    _Column("calls", "{} calls", lambda u: _count(u.calls), "0"),
    _Column("cached", "{} cached", lambda u: _count(u.cache_hits)),
    _Column("tokens\nin", "{} tokens in", _tokens_in, "0"),
    _Column("tokens\nout", "{} tokens out", _tokens_out, "0"),
    _Column("tokens\nin + out", "{} tokens in + out", lambda u: _count(u.unsplit_tokens)),
    _Column("cost", "{}", _cost),
    _Column("retries", "retried {}", _retries, "0"),
    _Column("first\ntoken", "first token {}", lambda u: _time(u.first_token, 0.5)),
    _Column("a call\np50", "a call {}", lambda u: _time(u.duration, 0.5), "-"),
    _Column("\np99", "slowest 1% {}", lambda u: _time(u.duration, 0.99), "-"),
)


def _went_wrong(usage: ModelUsage) -> list[str]:
    """What has no column."""
    said = [f"{count:,} {name}" for name, count in sorted(usage.errors.items())]
    if usage.stopped:
        said.append(f"{usage.stopped:,} left early")
    if usage.unpriced_calls:
        said.append(_said("{:,} calls without a known price", usage.unpriced_calls))
    return said


def _said(words: str, count: object) -> str:
    """A count in words: 2 calls, 1 call."""
    one = words.replace("s", "", 1) if count in {1, "1"} else words
    return one.format(count)


class UsageTable:
    """A row for each model and tool. rich prints it as a table, notebooks too, print as lines."""

    def __init__(self, rows: Sequence[tuple[str, ModelUsage]]) -> None:
        """Keep the counts.

        Args:
            rows: The counts under their names, in order.
        """
        self._rows = rows
        # Those that always stand there, and those with something to tell.
        self._columns = [
            each for each in _COLUMNS if each.empty or any(each.cell(usage) for _, usage in rows)
        ]

    def __str__(self) -> str:
        return "\n".join(self._lines(self._columns)) or "nothing counted"

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        from rich import box  # noqa: PLC0415  # it is here when this is called
        from rich.table import Table  # noqa: PLC0415  # the same
        from rich.text import Text  # noqa: PLC0415  # the same

        table = Table(
            title="Usage", title_justify="left", box=box.SIMPLE_HEAD, padding=0, pad_edge=False
        )
        table.add_column("model", no_wrap=True)
        for each in self._columns:
            table.add_column(each.head, justify="right", no_wrap=True)
        for cells in self._cells():
            table.add_row(*map(Text, cells))  # as text, in which brackets are no markup
        width = console.measure(table, options=options.update(width=10_000)).maximum
        fits = width <= options.max_width
        if fits:
            yield table
        for line in self._lines(() if fits else self._columns):
            yield Text(line, overflow="fold")

    def _repr_html_(self) -> str:
        heads = "".join(f"<th>{escape(each.head.strip())}</th>" for each in self._columns)
        rows = "".join(
            f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
            for cells in self._cells()
        )
        below = "".join(f"<p>{escape(line)}</p>" for line in self._lines(()))
        head = f"<thead><tr><th>model</th>{heads}</tr></thead>"
        return f"<table>{head}<tbody>{rows}</tbody></table>{below}"

    def _cells(self) -> Iterator[list[str]]:
        for name, usage in self._rows:
            yield [name, *(each.cell(usage) or each.empty for each in self._columns)]

    def _lines(self, columns: Iterable[_Column]) -> Iterator[str]:
        """What these columns would show of each row, and what went wrong, in words."""
        for name, usage in self._rows:
            cells = ((each.words, each.cell(usage)) for each in columns)
            told = [_said(words, cell) for words, cell in cells if cell] + _went_wrong(usage)
            if told:
                yield f"{name}: {', '.join(told)}"


def one_line(usages: Iterable[ModelUsage]) -> str:
    """All of it in a line: calls, tokens, cost, and what went wrong."""
    total = sum(usages, start=ModelUsage())
    said = [_said("{:,} calls", total.calls), f"{total.total_tokens:,} tokens", _cost(total)]
    if total.cache_hits:
        said.append(f"{total.cache_hits:,} cached")
    if total.retries:
        said.append(f"retried {total.retries:,}")
    return ", ".join(filter(None, [*said, *_went_wrong(total)]))
