"""Several awaitables at once, bounded, with nothing left running behind a failure."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


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
