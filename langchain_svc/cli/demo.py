"""`langchain-svc demo`: the command, whose `tour.py` needs LangChain and two extras."""

from __future__ import annotations

import argparse
import os
import signal

from .terminal import INTERRUPTED, tell


def add_arguments(_: argparse.ArgumentParser) -> None:
    """Add nothing: the command has no options."""


def run(_: argparse.Namespace) -> int:
    """Take the tour, printing to stdout."""
    from .tour import take_tour  # noqa: PLC0415  # `--help` needs none of it

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit)
    take_tour()
    return 0


def _exit(*_: object) -> None:
    # At once: an interruption inside `concurrent.futures` may leave one of its locks acquired.
    tell("langchain-svc: interrupted")
    os._exit(INTERRUPTED)
