"""`langchain-svc models`: what the service lists."""

from __future__ import annotations

import argparse

from .._wire import read_prices
from ..chat import ListedModel
from .terminal import add_options, emit, emit_json, new_model

_HEAD = ("MODEL", "CONTEXT", "PRICE IN/OUT", "CAPABILITIES")


def add(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    add_options(parser, "--json")


def run(args: argparse.Namespace) -> int:
    """Print a line for each model."""
    with new_model() as model:
        models = model.list_models()
    if args.json:
        names = ("id", "context_window", "capabilities", "pricing")
        emit_json([{name: getattr(one, name) for name in names} for one in models])
        return 0
    rows = [_HEAD, *map(_row, models)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        emit("  ".join(cells).rstrip())
    return 0


def _row(model: ListedModel) -> tuple[str, ...]:
    price = read_prices([model]).get(model.id)
    shown = "see --json" if model.pricing else "-"
    if price is not None:
        both = f"{price.input * 1e6:g} / {price.output * 1e6:g}"
        shown = " ".join(f"{both} {price.currency} per 1M".split())
    return (
        model.id,
        f"{model.context_window:,}" if model.context_window else "-",
        shown,
        ", ".join(model.capabilities) or "-",
    )
