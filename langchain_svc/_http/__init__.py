"""Connections under httpx's transports: pools, sockets, TLS, proxies, HTTP/1.1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._base.lazy import lazy
from .client_kinds import client_kind
from .deadline import FOREVER, TIMEOUTS, Timeouts

if TYPE_CHECKING:
    from .connections import Connections, PoolKey
    from .library import Failures, failures_of, httpx, library_of

if not TYPE_CHECKING:  # a misspelt name is an error for type checkers
    # httpx, which they import, is slow to load, and many processes never connect.
    __getattr__ = lazy(
        __name__,
        {
            "connections": "Connections PoolKey",
            "library": "Failures failures_of httpx library_of",
        },
    )
