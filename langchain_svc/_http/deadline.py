"""How long to wait, in one value that travels with a request down to the socket."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self

FOREVER = math.inf


class Timeouts(float):
    """Seconds to wait for the next byte, and never past `until` (`time.monotonic`).

    httpx passes it on as the number that it is, which alone a peer could stretch for ever with one
    byte a second.
    """

    until: float = FOREVER

    def __new__(cls, idle: float | None, until: float = FOREVER) -> Self:
        self = super().__new__(cls, FOREVER if idle is None else idle)
        self.until = until
        return self

    def left(self) -> float | None:
        """Seconds that the next wait may take; None for no bound.

        Raises:
            TimeoutError: Time is up.
        """
        wait = min(float(self), self.until - time.monotonic())
        if wait <= 0:
            raise TimeoutError
        return None if wait == FOREVER else wait

    def __reduce__(self) -> tuple[type[Timeouts], tuple[float, float]]:
        return Timeouts, (float(self), self.until)
