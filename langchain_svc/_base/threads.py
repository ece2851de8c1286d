"""Several things at once: locks that a forked child finds free, threads of our own, awaitables.

The threads are for work that blocks. The default executor of an event loop belongs to the
application, which may have filled it. Work in these threads waits for nobody else's, and its caller
waits no longer than its own deadline.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Hashable, Iterable
from concurrent.futures import Future
from contextvars import copy_context
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, TypeVar
from weakref import WeakSet

T = TypeVar("T")
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
    """A few daemon threads, which start with the work and end some seconds after it.

    They are daemons, so that a name server that never answers keeps no process from ending.

    Args:
        name: The name of the threads.
        most: How many there are at one time.
    """

    def __init__(self, name: str, most: int) -> None:
        self.name = name
        self.most = most
        self._renew()
        if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
            os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        """Begin empty: a forked child has none of its parent's threads."""
        # Reentrant: the garbage collector may run a finalizer that submits work while its thread
        # is in here.
        self._lock = threading.RLock()
        self._jobs: SimpleQueue[tuple[Future[Any], Callable[[], Any]]] = SimpleQueue()
        self._threads = 0
        self._unfinished = 0
        self._shared: dict[Hashable, Future[Any]] = {}

    def submit(self, work: Callable[..., T], *args: Any) -> Future[T]:
        """The future result of the work, which sees the caller's context variables."""
        future: Future[T] = Future()
        self._enqueue(future, partial(copy_context().run, work, *args))
        return future

    def share(self, key: Hashable, work: Callable[[], T]) -> Future[T]:
        """One future for all who ask for a key before it is done; none of them can cancel it."""
        with self._lock:
            future = self._shared.get(key)
            if future is None:
                future = Future()
                self._shared[key] = future
                future.set_running_or_notify_cancel()
                self._enqueue(future, work)
                future.add_done_callback(lambda _: self._shared.pop(key, None))
            return future

    def _enqueue(self, future: Future[Any], work: Callable[[], Any]) -> None:
        with self._lock:
            self._unfinished += 1
            self._jobs.put((future, work))
            if self._unfinished > self._threads and self._threads < self.most:
                threading.Thread(target=self._run, name=self.name, daemon=True).start()
                self._threads += 1

    def _run(self) -> None:
        while True:
            try:
                future, work = self._jobs.get(timeout=_IDLE_SECONDS)
            except Empty:
                with self._lock:
                    if self._unfinished < self._threads:
                        self._threads -= 1
                        return
                continue
            _complete(future, work)
            del future, work  # an idle thread keeps nobody's answer alive
            with self._lock:
                self._unfinished -= 1


def _complete(future: Future[Any], work: Callable[[], Any]) -> None:
    if not future.running() and not future.set_running_or_notify_cancel():
        return
    try:
        result = work()
    except BaseException as error:  # noqa: BLE001  # whoever waits for the future gets it
        future.set_exception(error)
    else:
        future.set_result(result)
    finally:
        # The future holds the error, whose traceback holds this frame: a circle without this.
        del future, work


LOOK_UPS = Workers("svc-look-up", 8)


async def bounded_gather(
    calls: Iterable[Coroutine[Any, Any, T]], *, at_once: int
) -> list[T]:
    """The results of all calls, in order; the first failure ends the calls that still run.

    Args:
        calls: The coroutines to run.
        at_once: How many may run at the same time.
    """
    calls = list(calls)
    gate = asyncio.Semaphore(at_once)
    tasks = [asyncio.ensure_future(_await_through(gate, call)) for call in calls]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for call in calls:
            call.close()  # Python warns of a coroutine that was never awaited


async def _await_through(gate: asyncio.Semaphore, call: Coroutine[Any, Any, T]) -> T:
    await gate.acquire()
    result = await call
    gate.release()  # not after a failure: then no other call may begin
    return result
