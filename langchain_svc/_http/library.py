"""The library under our transports: httpx, or httpx2 where the process has loaded that already.

httpx2 carries httpx on under the same names, and the SDKs of OpenAI and Anthropic have moved to it.
langchain-core may bring it; then importing httpx beside it would only cost the first call time. A
client that a user hands over may be of either, whichever of them is used here.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from ..config import LIBRARIES, client_kind

if TYPE_CHECKING:
    import httpcore as httpcore
    import httpx as httpx
else:
    _SUFFIX = ""
    if "httpx2" in sys.modules:
        _SUFFIX = "2"
    httpx = import_module(f"httpx{_SUFFIX}")
    httpcore = import_module(f"httpcore{_SUFFIX}")


class Failures(NamedTuple):
    """The exceptions of one library, by what they mean."""

    while_opening: tuple[type[Exception], ...]
    while_reading: tuple[type[Exception], ...]
    timeouts: tuple[type[Exception], ...]
    before_sending: tuple[type[Exception], ...]
    of_proxy: type[Exception]
    of_connect: type[Exception]
    of_protocol: type[Exception]


@lru_cache(maxsize=len(LIBRARIES))
def failures_of(library: str) -> Failures:
    """The exceptions of httpx or of httpx2."""
    module = import_module(library)
    return Failures(
        while_opening=(module.HTTPError, module.InvalidURL, OSError),
        while_reading=(module.HTTPError, module.StreamError, OSError),
        timeouts=(
            module.ConnectTimeout,
            module.ReadTimeout,
            module.WriteTimeout,
            module.PoolTimeout,
        ),
        before_sending=(module.ConnectTimeout, module.PoolTimeout),
        of_proxy=module.ProxyError,
        of_connect=module.ConnectError,
        of_protocol=module.RemoteProtocolError,
    )


def library_of(client: object) -> str:
    """Which library a client is of: where there is none, the one that we use."""
    kind = client_kind(client)
    if kind is None:
        return httpx.__name__
    return kind[0]
