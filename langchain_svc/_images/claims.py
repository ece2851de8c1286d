"""Who is finding something out right now, so that others wait for it instead of asking too."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import Future, wait

from .._forks import new_lock


class Claim:
    """One piece of work that somebody has begun; what comes of it is not told here."""

    def __init__(self) -> None:
        self._over: Future[None] = Future()
        self._over.set_running_or_notify_cancel()  # from now on nobody who waits can cancel it
        self._thread = threading.get_ident()

    def wait(self, seconds: float | None) -> bool:
        """Wait until it is over, well or not; False where that cannot be waited for.

        The work of a thread's own event loop cannot end while the thread waits.
        """
        if self._thread == threading.get_ident():
            return False
        return bool(wait([self._over], seconds).done)

    async def await_(self, seconds: float | None) -> bool:
        """The async version of `wait`."""
        over = asyncio.wrap_future(self._over)
        try:
            done, _ = await asyncio.wait([over], timeout=seconds)
        finally:
            over.cancel()  # it must not be told any more, once its event loop is closed
        return bool(done)

    def end(self) -> None:
        """Let go who waits."""
        self._over.set_result(None)


class Claims:
    """The pieces of work that are going on, by name; usable from any thread."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._open: dict[str, Claim] = {}
        self._pid = os.getpid()

    def __reduce__(self) -> tuple[type[Claims], tuple[()]]:
        return Claims, ()  # work that goes on elsewhere is nothing to wait for in a copy

    def take(self, name: str) -> tuple[Claim, bool]:
        """The claim on a piece of work, and whether it is the caller's to do."""
        with self._lock:
            if self._pid != os.getpid():  # what a parent's threads began ends in the parent
                self._open, self._pid = {}, os.getpid()
            found = self._open.get(name)
            if found is not None:
                return found, False
            self._open[name] = made = Claim()
            return made, True

    def release(self, name: str) -> None:
        """Say that the caller's work is over."""
        with self._lock:
            claim = self._open.pop(name, None)
        if claim is not None:
            claim.end()
