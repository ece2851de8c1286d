"""Several things at once: locks that a forked child finds free, threads of our own, awaitables.

The threads are for what blocks or takes long. The default executor of an event loop belongs to the
application, which may have filled it. What is done here waits for nobody else's work, and no longer
than the deadline of who asked for it.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
import time
from collections.abc import Callable, Coroutine, Hashable, Iterable
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar
from weakref import WeakSet

from ..errors import SvcTimeoutError

T = TypeVar("T")
LONG = 50_000
"""Characters or bytes of plain reading that are done on the event loop; a thread costs as much."""
LONG_TO_CHECK = 2_000
"""The same where an answer is looked through for calls or checked against a schema."""

_IDLE_SECONDS = 5.0
_LOCKS: WeakSet[Any] = WeakSet()


def new_lock() -> threading.Lock:
    """A lock as of `threading.Lock`, free again in a forked child."""
    lock = threading.Lock()
    _LOCKS.add(lock)
    return lock


def _free_all() -> None:
    for lock in list(_LOCKS):
        lock._at_fork_reinit()  # noqa: SLF001  # what the standard library's own locks do


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_free_all)


class Workers:
    """At most a few threads. They begin with the work, end some seconds after it, and are daemons:
    a name server that never answers keeps no process from ending.

    Args:
        name: What the threads are called.
        most: How many there are at one time.
    """  # noqa: D205  # one sentence

    def __init__(self, name: str, most: int) -> None:
        self.name, self.most = name, most
        self._renew()
        if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        """Forget what there was: a forked child has none of its threads."""
        self._lock = (
            threading.RLock()
        )  # a finalizer may ask, while its thread is in here
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._threads = self._unfinished = 0
        self._shared: dict[Hashable, Future[Any]] = {}

    def submit(self, work: Callable[..., T], *given: Any) -> Future[T]:
        """What the work will give. It sees the context variables of who asked."""
        found: Future[T] = Future()
        self._begin(found, partial(copy_context().run, work, *given))
        return found

    def share(self, key: Hashable, work: Callable[[], T]) -> Future[T]:
        """The same, once for all who ask for this key meanwhile; none of them can cancel it."""
        with self._lock:
            found = self._shared.get(key)
            if found is None:
                found = self._shared[key] = Future()
                found.set_running_or_notify_cancel()
                self._begin(found, work)
                found.add_done_callback(lambda _: self._shared.pop(key, None))
            return found

    def _begin(self, found: Future[Any], work: Callable[[], Any]) -> None:
        with self._lock:
            self._unfinished += 1
            self._jobs.put((found, work))
            if self._unfinished > self._threads and self._threads < self.most:
                threading.Thread(target=self._run, name=self.name, daemon=True).start()
                self._threads += 1

    def _run(self) -> None:
        while True:
            try:
                found, work = self._jobs.get(timeout=_IDLE_SECONDS)
            except Empty:
                with self._lock:
                    if self._unfinished < self._threads:
                        self._threads -= 1
                        return
                continue
            _finish(found, work)
            del found, work  # while it waits, it keeps nobody's answer alive
            with self._lock:
                self._unfinished -= 1


def _finish(found: Future[Any], work: Callable[[], Any]) -> None:
    if not found.running() and not found.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001  # it is raised where it is waited for
        found.set_exception(error)
    else:
        found.set_result(result)
    finally:
        del (
            found,
            work,
        )  # the traceback of an error holds this frame, and the future the error


READERS = Workers("svc-reader", 4)
LOOK_UPS = Workers("svc-look-up", 8)


async def off_loop(until: float, work: Callable[..., T], *given: Any) -> T:
    """What the work gives, done in a thread.

    Raises:
        SvcTimeoutError: It was not done by `until` (`time.monotonic`). The thread goes on alone.
    """
    # No task, which would outlive a cancellation by a turn of the loop.
    reading = asyncio.wrap_future(READERS.submit(work, *given))
    left = None if until == math.inf else max(0.0, until - time.monotonic())
    try:
        done, _ = await asyncio.wait([reading], timeout=left)
        if not done:
            raise SvcTimeoutError(
                "The deadline has passed while the text of the call or of its answer was read"
            )
        return reading.result()
    finally:
        reading.cancel()
        del reading  # an error's traceback holds this frame


async def bounded_gather(
    asks: Iterable[Coroutine[Any, Any, T]], *, at_once: int | None = None
) -> list[T]:
    """All answers in order; the first failure ends the calls that still run.

    Args:
        asks: What to wait for.
        at_once: How many may run at the same time; all where it is None.
    """
    asks = list(asks)
    gate = asyncio.Semaphore(at_once or len(asks) or 1)
    tasks = [asyncio.ensure_future(_through(gate, ask)) for ask in asks]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for ask in asks:
            ask.close()  # one that never had its turn


async def _through(gate: asyncio.Semaphore, ask: Coroutine[Any, Any, T]) -> T:
    await gate.acquire()
    answer = await ask
    gate.release()  # not after a failure: nothing more is to begin
    return answer
