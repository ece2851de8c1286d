"""`langchain-svc models`: what the service lists."""

from __future__ import annotations

import argparse

import langchain_svc as svc

from .terminal import add_options, emit, emit_json, model_settings, new_model

_HEAD = ("MODEL", "CONTEXT", "PRICE IN/OUT", "CAPABILITIES")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_options(parser, "--interface", "--json")


def run(args: argparse.Namespace) -> int:
    """Print a line for each model."""
    with new_model(**model_settings(args)) as client:
        models = client.list_models()
    if args.json:
        emit_json([_record(model) for model in models])
        return 0
    rows = [_HEAD, *(model.cells() for model in models)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = map(str.ljust, row, widths)
        emit("  ".join(cells).rstrip())
    return 0


def _record(model: svc.ListedModel) -> dict[str, object]:
    return {
        "id": model.id,
        "context_window": model.context_window,
        "capabilities": model.capabilities,
        "pricing": model.pricing,
    }
