"""The counts of calls and their cost, and the table that shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .._base.shown import html_table, money

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType


@dataclass
class ModelUsage:
    """The counts of one model's or tool's calls.

    Attributes:
        calls: Calls that reached the service, however they ended.
        cache_hits: Calls that LangChain's cache answered; they count neither as spend nor as calls.
        stopped: Calls that the caller left early.
        cut: Answers that were cut off, at `max_tokens` or by a filter, and that did not go on.
        input_tokens: Tokens in, as the service counted them.
        output_tokens: Tokens out, as the service counted them.
        estimated_input_tokens: Tokens in of the calls for which the service sent no counts, or
            their sum only.
        estimated_output_tokens: Tokens out of those calls.
        retries: How often a request was sent again.
        waited: Seconds spent waiting between tries.
        errors: How many calls failed, by the error's name.
        cost: What the tokens cost, by currency, where the handler has prices.
        unpriced_calls: Calls with tokens whose price is not known, where the handler has prices.
    """

    calls: int = 0
    cache_hits: int = 0
    stopped: int = 0
    cut: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    estimated_input_tokens: int = 0
    estimated_output_tokens: int = 0
    retries: int = 0
    waited: float = 0.0
    errors: Counter[str] = field(default_factory=Counter)
    cost: dict[str, float] = field(default_factory=dict)
    unpriced_calls: int = 0

    @property
    def total_tokens(self) -> int:
        """All tokens, counted and estimated."""
        estimated = self.estimated_input_tokens + self.estimated_output_tokens
        return self.input_tokens + self.output_tokens + estimated

    def to_dict(self) -> dict[str, Any]:
        """A copy of plain dicts and numbers."""
        return vars(self) | {"errors": dict(self.errors), "cost": dict(self.cost)}


@dataclass(frozen=True)
class _Column:
    head: str
    words: str  # for one cell, where there is no column
    cell: Callable[[ModelUsage], str]  # "" where there is nothing to show
    # The cell's text then. A column without one is left out if all its cells are empty.
    empty: str = ""


def _count(count: int) -> str:
    if not count:
        return ""
    return f"{count:,}"


def _tokens(counted: int, estimated: int) -> str:
    if counted and estimated:
        return f"{counted:,} + ~{estimated:,}"
    if estimated:
        return f"~{estimated:,}"
    return _count(counted)


def _tokens_in(usage: ModelUsage) -> str:
    return _tokens(usage.input_tokens, usage.estimated_input_tokens)


def _tokens_out(usage: ModelUsage) -> str:
    return _tokens(usage.output_tokens, usage.estimated_output_tokens)


def _retries(usage: ModelUsage) -> str:
    if not usage.retries:
        return ""
    return f"{usage.retries:,} ({usage.waited:,.1f} s)"


def _cost(usage: ModelUsage) -> str:
    sign = ""
    if usage.estimated_input_tokens or usage.estimated_output_tokens:
        sign = "~"
    costs = (
        f"{sign}{money(cost, currency)}"
        for currency, cost in sorted(usage.cost.items())
    )
    return " + ".join(costs)


_COLUMNS = (
    _Column("calls", "{} calls", lambda u: _count(u.calls), "0"),
    _Column("cached", "{} cached", lambda u: _count(u.cache_hits)),
    _Column("tokens\nin", "{} tokens in", _tokens_in, "0"),
    _Column("tokens\nout", "{} tokens out", _tokens_out, "0"),
    _Column("cost", "{}", _cost),
    _Column("retries", "retried {}", _retries, "0"),
)


def _problems(usage: ModelUsage) -> list[str]:
    """The counts that have no column, in words."""
    problems = [f"{count:,} {name}" for name, count in sorted(usage.errors.items())]
    if usage.stopped:
        problems.append(f"{usage.stopped:,} left early")
    if usage.cut:
        problems.append(_in_words("{} answers cut off", _count(usage.cut)))
    if usage.unpriced_calls:
        count = _count(usage.unpriced_calls)
        problems.append(_in_words("{} calls without a known price", count))
    return problems


def _in_words(words: str, count: str) -> str:
    """A count in words: 2 calls, 1 call."""
    if count == "1":
        words = words.replace("s", "", 1)
    return words.format(count)


class UsageTable:
    """A row for each model and tool. rich and notebooks show a table, all else shows lines.

    Both show all counts: a console without room for the whole table shows the lines.
    """

    def __init__(self, rows: Sequence[tuple[str, ModelUsage]]) -> None:
        """Keep the counts.

        Args:
            rows: The counts under their names, in order.
        """
        self._rows = rows
        self._columns: list[_Column] = []
        for column in _COLUMNS:
            if column.empty or any(column.cell(usage) for _, usage in rows):
                self._columns.append(column)

    def __repr__(self) -> str:
        return "\n".join(self._lines(self._columns)) or "nothing counted"

    def _repr_html_(self) -> str:
        head = ["model", *(column.head for column in self._columns), ""]
        rows: list[list[str]] = []
        for name, usage in self._rows:
            cells = [column.cell(usage) or column.empty for column in self._columns]
            rows.append([name, *cells, ", ".join(_problems(usage))])
        return html_table(head, rows)

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        from rich import box  # noqa: PLC0415  # it is here when this is called
        from rich.table import Table  # noqa: PLC0415  # the same
        from rich.text import Text  # noqa: PLC0415  # the same

        table = Table(
            title="Usage",
            title_justify="left",
            box=box.SIMPLE_HEAD,
            padding=0,
            pad_edge=False,
        )
        table.add_column("model", no_wrap=True)
        for column in self._columns:
            table.add_column(column.head, justify="right", no_wrap=True)
        for name, usage in self._rows:
            cells = (column.cell(usage) or column.empty for column in self._columns)
            # As `Text`, since rich reads brackets in a string as markup.
            table.add_row(Text(name), *map(Text, cells))
        width = console.measure(table, options=options.update(width=10_000)).maximum
        columns_in_lines = self._columns
        if width <= options.max_width:
            yield table
            columns_in_lines = []
        for line in self._lines(columns_in_lines):
            yield Text(line, overflow="fold")

    def _lines(self, columns: Iterable[_Column]) -> Iterator[str]:
        """A line for each row: its cells of these columns, and its problems, in words."""
        for name, usage in self._rows:
            items: list[str] = []
            for column in columns:
                cell = column.cell(usage)
                if cell:
                    items.append(_in_words(column.words, cell))
            items += _problems(usage)
            if items:
                yield f"{name}: {', '.join(items)}"
