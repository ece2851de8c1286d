"""A thread that makes calls in the order in which they are given, for an event loop to wait on.

SQLite's connection lives on one thread, and a pipe or an iterable may keep its reader waiting. The
thread is a daemon: a pipe in which nothing comes does not keep the program from ending.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class Worker:
    """Makes calls one after another on a thread of its own."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def do(self, call: Callable[..., T], *args: Any) -> T:
        """The result of a call. Cancelling does not end a call that has begun."""
        future: Future[T] = Future()
        self._calls.put((future, lambda: call(*args)))
        return await asyncio.wrap_future(future)

    def end(self) -> None:
        """Let the thread end when its calls are made."""
        self._calls.put(None)

    def _work(self) -> None:
        while (item := self._calls.get()) is not None:
            future, call = item
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001  # raised where it is waited for
                future.set_exception(error)
