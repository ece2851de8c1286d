"""A run for a caller who waits: on an event loop of its own, ended cleanly by Ctrl-C.

The first Ctrl-C lets the rows that are being asked end, and the second ends at once.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import Any

from .engine import GRACE, Run

_ENDING = f"\nEnding: {GRACE:.0f} s at most for open rows. Ctrl-C again ends at once.\n".encode()


def block_on(run: Run, work: Callable[[], Coroutine[Any, Any, None]], threads: int) -> None:
    """Do the work of a run, and return when it is done.

    Args:
        run: The run, to be interrupted.
        work: What is to be done on the event loop.
        threads: How many parts of a chain may block at the same time.

    Raises:
        KeyboardInterrupt: After an interruption, when everything is written.
    """

    async def main() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(threads))
        await work()

    if _loop_runs():  # as in a notebook: it is kept waiting, as by any call that blocks
        with ThreadPoolExecutor(1) as thread:
            done = thread.submit(copy_context().run, asyncio.run, main())
            try:
                done.result()
            except KeyboardInterrupt:
                run.interrupt()
    else:
        with _interruptible(run):
            asyncio.run(main())
    if run.interrupted:
        raise KeyboardInterrupt


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


@contextmanager
def _interruptible(run: Run) -> Iterator[None]:
    """A block whose first Ctrl-C interrupts the run."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield  # somebody else's program
        return

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        run.interrupt()
        # Not sys.stderr, which may be in the middle of a line of progress.
        with suppress(OSError):
            os.write(2, _ENDING)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
