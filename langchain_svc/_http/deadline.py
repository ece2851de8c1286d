"""How long to wait, in one value that travels with a request down to the socket."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

FOREVER = math.inf
TIMEOUTS = "svc_timeouts"
"""The extension of httpx's requests that carries them."""


@dataclass
class Timeouts:
    """Seconds to wait for the next byte, and never past `until` (`time.monotonic`).

    With the first alone, a peer could stretch a call for ever by one byte a second.
    """

    idle: float
    until: float = FOREVER

    def remaining(self) -> float | None:
        """Seconds that the next wait may take; None where it has no bound.

        Raises:
            TimeoutError: Time is up.
        """
        wait = min(self.idle, self.until - time.monotonic())
        if wait <= 0:
            raise TimeoutError
        if wait == FOREVER:
            return None
        return wait
