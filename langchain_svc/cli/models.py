"""`langchain-svc models`: what the service lists, in the width of a terminal."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Mapping
from typing import Any

from ..chat_models import ListedModel
from .terminal import columns, emit, is_terminal, new_model

_HEAD = ("MODEL", "CONTEXT", "PRICE IN/OUT", "CAPABILITIES")
_NARROWEST = 20  # columns for capabilities, whatever stands before them
_SCALES = {1_000_000: "1M", 1_000: "1K", 1: "token"}


def add_models(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument("--json", action="store_true", help="print the listing as JSON")
    parser.set_defaults(run=_models)


def _models(args: argparse.Namespace) -> int:
    with new_model() as model:
        models = model.list_models()
    if args.json:
        emit(json.dumps([_record(one) for one in models], indent=2, ensure_ascii=False))
        return 0
    rows = [_HEAD, *map(_row, models)]
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:-1]]
    begin = sum(widths) + 2 * len(widths)
    room = max(_NARROWEST, columns() - begin) if is_terminal(sys.stdout) else sys.maxsize
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        first, *more = textwrap.wrap(row[-1], room, break_long_words=False)
        emit("  ".join([*cells, first]))
        for line in more:
            emit(" " * begin + line)
    return 0


def _record(model: ListedModel) -> dict[str, Any]:
    return {
        "id": model.id,
        "context_window": model.context_window,
        "capabilities": list(model.capabilities),
        "pricing": dict(model.pricing),
    }


def _row(model: ListedModel) -> tuple[str, ...]:
    return (
        model.id,
        f"{model.context_window:,}" if model.context_window else "-",
        _price(model.pricing),
        ", ".join(model.capabilities) or "-",
    )


def _price(pricing: Mapping[str, Any]) -> str:
    """A price in few columns, such as "5 / 15 USD per 1M"; what else there is, --json has."""
    tokens_in = pricing.get("input", pricing.get("prompt"))
    tokens_out = pricing.get("output", pricing.get("completion"))
    if tokens_in is None or tokens_out is None:
        return "see --json" if pricing else "-"
    per = pricing.get("per_tokens")
    scale = f" per {_SCALES.get(per, per)}" if per else ""
    both = f"{_short(tokens_in)} / {_short(tokens_out)}"
    return f"{both} {pricing.get('currency', '')}".strip() + scale


def _short(number: Any) -> str:
    return f"{number:g}" if isinstance(number, (int, float)) else str(number)
