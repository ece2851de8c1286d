"""Coroutines of httpcore that no cancellation can cut where they only let others run.

httpcore takes a connection out of its pool and puts it back in several steps, between which it
awaits locks that nobody holds. anyio makes each of these awaits a pause of one turn of the event
loop, and shields some against its own cancellation, but not against that of asyncio. A task that
is cancelled in such a pause leaves a connection which counts as busy for ever, and its socket.
"""

from __future__ import annotations

import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


@types.coroutine
def _undivided(coroutine: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    advance: Callable[[Any], Any] = coroutine.send
    given: Any = None
    while True:
        try:
            awaited = advance(given)
        except StopIteration as end:
            result: T = end.value
            return result
        advance, given = coroutine.send, None
        if awaited is not None:  # a future, and no mere pause
            try:
                yield awaited
            except BaseException as error:  # noqa: BLE001  # the coroutine decides what it means
                advance, given = coroutine.throw, error


def undivided(coroutine: Coroutine[Any, Any, T]) -> Awaitable[T]:
    """Awaits a coroutine without its pauses; what it really waits for can be cancelled as ever."""
    return _undivided(coroutine)
