"""Reads long answers off the event loop, and for no longer than their deadline."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from ..errors import SvcTimeoutError

T = TypeVar("T")
LONG = 50_000
"""Bytes of an answer. Below, a thread costs more than the reading."""


async def parse_off_loop(size: int, until: float, work: Callable[..., T], *given: Any) -> T:
    """What the work gives, which is done in a thread where an answer of this size is long.

    Raises:
        SvcTimeoutError: It was not done by `until` (`time.monotonic`). The thread goes on alone.
    """
    if size <= LONG:
        return work(*given)
    loop = asyncio.get_running_loop()
    # No task, which would outlive a cancellation by a turn of the loop.
    reading = loop.run_in_executor(None, partial(copy_context().run, work, *given))
    left = None if until == math.inf else max(0.0, until - time.monotonic())
    try:
        done, _ = await asyncio.wait([reading], timeout=left)
    finally:
        reading.cancel()
    if not done:
        raise SvcTimeoutError("The answer came, but could not be read within the deadline")
    return reading.result()
