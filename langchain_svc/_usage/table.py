"""Counts as people read them: a table, the same in a notebook, and one line.

A table never hides what happened. What finds no room as a column, from the least important on,
stands below as words, and so do errors at any width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from .counts import Durations, ModelUsage

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table


@dataclass(frozen=True)
class _Column:
    head: str
    words: str  # for one cell, where there is no column
    weight: int  # the lightest find no room first
    cell: Callable[[ModelUsage], str]  # "" where there is nothing to tell
    empty: str = ""  # what stands there then; a column without it is shown where it is needed


def _short(count: int) -> str:
    """12,345, then 123k, 12.3M and 1.23G."""
    if count < 100_000:  # longer ones do not fit
        return f"{count:,}" if count else ""
    for unit, size in (("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12)):
        if count < 999.5 * size or unit == "T":
            return f"{float(f'{count / size:.3g}'):g}{unit}"
    raise AssertionError(count)


def _tokens(counted: int, estimated: int) -> str:
    parts = (_short(counted), f"~{_short(estimated)}" if estimated else "")
    return " + ".join(filter(None, parts))


def _tokens_in(usage: ModelUsage) -> str:
    return _tokens(usage.input_tokens, usage.estimated_input_tokens)


def _tokens_out(usage: ModelUsage) -> str:
    return _tokens(usage.output_tokens, usage.estimated_output_tokens)


def _retries(usage: ModelUsage) -> str:
    return f"{_short(usage.retries)} ({usage.waited:,.1f} s)" if usage.retries else ""


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
    _Column("calls", "{} calls", 9, lambda u: _short(u.calls), "0"),
    _Column("cached", "{} cached", 0, lambda u: _short(u.cache_hits)),
    _Column("tokens\nin", "{} tokens in", 8, _tokens_in, "0"),
    _Column("tokens\nout", "{} tokens out", 7, _tokens_out, "0"),
    _Column("tokens\nin + out", "{} tokens in + out", 6, lambda u: _short(u.unsplit_tokens)),
    _Column("cost", "{}", 5, _cost),
    _Column("retries", "retried {}", 4, _retries, "0"),
    _Column("first\ntoken", "first token {}", 1, lambda u: _time(u.first_token, 0.5)),
    _Column("a call\np50", "a call {}", 3, lambda u: _time(u.duration, 0.5), "-"),
    _Column("\np99", "slowest 1% {}", 2, lambda u: _time(u.duration, 0.99), "-"),
)


def _went_wrong(usage: ModelUsage) -> list[str]:
    """What stands below a table at any width."""
    said = [f"{count:,} {name}" for name, count in sorted(usage.errors.items())]
    if usage.stopped:
        said.append(f"{usage.stopped:,} left early")
    if usage.unpriced_calls:
        said.append(_said("{:,} calls without a known price", usage.unpriced_calls))
    return said


def _facts(usage: ModelUsage, columns: Iterable[_Column]) -> str:
    """What columns would show of it, and what went wrong, in words."""
    cells = [(each.words, each.cell(usage)) for each in columns]
    told = [_said(words, cell) for words, cell in cells if cell]
    return ", ".join(told + _went_wrong(usage))


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

    def __str__(self) -> str:
        return "\n".join(self._below(_COLUMNS)) or "nothing counted"

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        from rich.text import Text  # noqa: PLC0415  # it is here when this is called

        wide = options.update(width=10_000)
        columns, table = self._columns(), None
        while columns and table is None:
            table = _table(self._rows, columns)
            if console.measure(table, options=wide).maximum > options.max_width:
                columns.remove(min(columns, key=lambda each: each.weight))
                table = None
        if table is not None:
            yield table
        for line in self._below(each for each in self._columns() if each not in columns):
            yield Text(line, overflow="fold")

    def _repr_html_(self) -> str:
        columns = self._columns()
        heads = "".join(f"<th>{escape(each.head.strip())}</th>" for each in columns)
        rows = "".join(
            f"<tr><td>{escape(name)}</td>{_cells(usage, columns)}</tr>"
            for name, usage in self._rows
        )
        below = "".join(f"<p>{escape(line)}</p>" for line in self._below(()))
        head = f"<thead><tr><th>model</th>{heads}</tr></thead>"
        return f"<table>{head}<tbody>{rows}</tbody></table>{below}"

    def _columns(self) -> list[_Column]:
        """Those that always stand there, and those with something to tell."""
        usages = [usage for _, usage in self._rows]
        return [each for each in _COLUMNS if each.empty or any(map(each.cell, usages))]

    def _below(self, columns: Iterable[_Column]) -> list[str]:
        """A line for each row of which these columns, or what went wrong, have news."""
        columns = list(columns)
        told = ((name, _facts(usage, columns)) for name, usage in self._rows)
        return [f"{name}: {facts}" for name, facts in told if facts]


def _cells(usage: ModelUsage, columns: Iterable[_Column]) -> str:
    return "".join(f"<td>{escape(each.cell(usage) or each.empty)}</td>" for each in columns)


def _table(rows: Sequence[tuple[str, ModelUsage]], columns: Iterable[_Column]) -> Table:
    from rich import box  # noqa: PLC0415  # an extra
    from rich.table import Table  # noqa: PLC0415  # the same
    from rich.text import Text  # noqa: PLC0415  # the same

    table = Table(
        title="Usage", title_justify="left", box=box.SIMPLE_HEAD, padding=0, pad_edge=False
    )
    table.add_column("model", no_wrap=True)
    for each in columns:
        table.add_column(each.head, justify="right", no_wrap=True)
    for name, usage in rows:
        cells = (each.cell(usage) or each.empty for each in columns)
        table.add_row(*map(Text, (name, *cells)))  # as text, in which brackets are no markup
    return table


def one_line(usages: Iterable[ModelUsage]) -> str:
    """All of it in a line: calls, tokens, cost, and what went wrong."""
    total = sum(usages, start=ModelUsage())
    said = [_said("{:,} calls", total.calls), f"{total.total_tokens:,} tokens", _cost(total)]
    if total.cache_hits:
        said.append(f"{total.cache_hits:,} cached")
    if total.retries:
        said.append(f"retried {total.retries:,}")
    return ", ".join(filter(None, [*said, *_went_wrong(total)]))
