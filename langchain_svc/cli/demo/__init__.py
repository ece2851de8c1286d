"""`langchain-svc demo`: what LangChain does with `ChatSvc`, on the sandbox."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from ..terminal import tell

_GRACE = 3.0  # seconds for an interrupted demo to clear up
_INTERRUPTED = 130


def add_demo(parser: argparse.ArgumentParser) -> None:
    """The command has no options."""
    parser.set_defaults(run=_demo)


def _demo(_: argparse.Namespace) -> int:
    with _ended_by_ctrl_c():
        run()
    return 0


def run() -> None:
    """Take the tour, printing to stdout.

    Raises:
        ImportError: A library of the extras is missing; the text says which extras to install.
    """
    needed = {"bm25s": "bm25s", "rich": "rich", "PIL": "pillow"}
    missing = [library for module, library in needed.items() if find_spec(module) is None]
    if missing:
        raise ImportError(
            f"The demo needs {', '.join(missing)}, which is not installed here. "
            'Run: pip install "langchain-svc[cli,sandbox]"'
        )
    from .screen import Screen  # noqa: PLC0415  # after the check
    from .tour import tour  # noqa: PLC0415  # the same

    tour(Screen())


@contextmanager
def _ended_by_ctrl_c() -> Iterator[None]:
    """A block that Ctrl-C ends at whatever moment it comes.

    `concurrent.futures` takes and gives back its locks in Python code. An interruption between the
    two leaves one taken, and LangChain's pool of threads then waits for itself for ever.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # somebody else's program, or a background job that is not to be interrupted
        return
    leave = threading.Timer(_GRACE, _leave)
    leave.daemon = True

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        leave.start()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        leave.cancel()
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave() -> None:
    if sys.stdout.isatty():
        sys.stdout.write("\x1b[?25h")  # the cursor, which the live display hides
        sys.stdout.flush()
    tell("langchain-svc: interrupted")
    os._exit(_INTERRUPTED)
