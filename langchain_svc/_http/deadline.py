"""How long to wait, in one value that travels with a request down to the socket.

httpx takes a number of seconds for every read, and a peer that sends one byte a second stretches
a request for ever. `Timeouts` is that number, and knows the moment after which nothing may be
awaited any more; the connections of `sockets.py` ask it at every wait.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

FOREVER = math.inf


class Timeouts(float):
    """Seconds to wait for the next byte, and never past `until` (`time.monotonic`)."""

    until: float = FOREVER

    def __new__(cls, idle: float | None, until: float = FOREVER) -> Self:
        self = super().__new__(cls, FOREVER if idle is None else idle)
        self.until = until
        return self

    def left(self) -> float | None:
        """Seconds that the next wait may take; None for no bound, 0 when time is up."""
        wait = min(float(self), self.until - time.monotonic())
        return None if wait == FOREVER else max(0.0, wait)

    def __reduce__(self) -> tuple[type[Timeouts], tuple[float, float]]:
        return Timeouts, (float(self), self.until)
