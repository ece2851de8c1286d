"""The usage table, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

try:
    from rich import box
    from rich.table import Table
except ImportError as error:
    raise ImportError(
        'The usage table needs rich: pip install "langchain-svc[cli]". '
        "to_dict() has the same counts without it"
    ) from error

if TYPE_CHECKING:
    from .callbacks import ModelUsage


def usage_table(models: Mapping[str, ModelUsage]) -> Table:
    """One row for each model, in the order of their ids. A `~` marks estimates.

    Tokens of which only the sum is known have a column where there are any.
    """
    unsplit = any(usage.unsplit_tokens for usage in models.values())
    table = Table(
        title="Usage", title_justify="left", box=box.SIMPLE_HEAD, padding=0, pad_edge=False
    )
    table.add_column("model", no_wrap=True)
    sums = ("tokens\nin + out",) if unsplit else ()
    for name in ("calls", "cached", "tokens\nin", "tokens\nout", *sums, "retries"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("errors", justify="right", min_width=6, overflow="fold")
    for name in ("first\ntoken", "a call"):
        table.add_column(name, justify="right", no_wrap=True)
    for model, usage in sorted(models.items()):
        table.add_row(
            model,
            f"{usage.calls:,}",
            f"{usage.cache_hits:,}",
            _tokens(usage.input_tokens, usage.estimated_input_tokens),
            _tokens(usage.output_tokens, usage.estimated_output_tokens),
            *([f"{usage.unsplit_tokens:,}"] if unsplit else []),
            _retries(usage),
            _errors(usage),
            _mean(usage.first_token_seconds, usage.streams),
            _mean(usage.seconds, usage.calls),
        )
    return table


def _tokens(counted: int, estimated: int) -> str:
    parts = [f"{counted:,}"] if counted or not estimated else []
    return " + ".join([*parts, f"~{estimated:,}"] if estimated else parts)


def _retries(usage: ModelUsage) -> str:
    return f"{usage.retries} ({usage.waited:.1f} s)" if usage.retries else "0"


def _errors(usage: ModelUsage) -> str:
    named = [f"{count} {name}" for name, count in sorted(usage.errors.items())]
    if usage.stopped:
        named.append(f"{usage.stopped} left early")
    return ", ".join(named) or "0"


def _mean(seconds: float, count: int) -> str:
    return f"{1000 * seconds / count:,.0f} ms" if count else "-"
