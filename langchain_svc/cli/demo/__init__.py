"""`langchain-svc demo`: what LangChain does with `ChatSvc`, on the sandbox."""

from __future__ import annotations

import argparse
import os
import signal

from ..terminal import INTERRUPTED, tell


def add_arguments(_: argparse.ArgumentParser) -> None:
    """Add nothing: the command has no options."""


def run(_: argparse.Namespace) -> int:
    """Take the tour, printing to stdout.

    Raises:
        ImportError: A library of the extras is missing; the text says which extras to install.
    """
    try:
        from .tour import tour  # noqa: PLC0415  # extras
    except ModuleNotFoundError as missing:
        raise ImportError(
            f"The demo needs {missing.name}, which is not installed here. "
            'Run: pip install "langchain-svc[cli,sandbox]"'
        ) from missing
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _exit)
    tour()
    return 0


def _exit(*_: object) -> None:
    # At once: an interruption inside `concurrent.futures` may leave one of its locks acquired.
    tell("langchain-svc: interrupted")
    os._exit(INTERRUPTED)
