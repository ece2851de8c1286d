"""The prices that the service listed, apart for each address and key.

What another tenant of this process pays says nothing about what this one pays. No key is kept, only
a digest that tells two of them apart in this process.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Mapping

from .._wire import Price

# Beyond them the oldest go: a call without a list is refused, and says what to do.
_MOST_LISTS = 1_000
_SECRET = os.urandom(32)
_LISTS: dict[bytes, Mapping[str, Price]] = {}


def keep_prices(url: str, key: str, prices: Mapping[str, Price]) -> None:
    """Keep the newest list of an interface's address and a key."""
    owner = _owner(url, key)
    _LISTS.pop(owner, None)
    _LISTS[owner] = prices
    for oldest in list(_LISTS)[:-_MOST_LISTS]:
        _LISTS.pop(oldest, None)


def listed_prices(url: str, key: str) -> Mapping[str, Price]:
    """The prices by model id; none where this address and key have listed none."""
    return _LISTS.get(_owner(url, key), {})


def _owner(url: str, key: str) -> bytes:
    return hmac.digest(_SECRET, f"{url}\n{key}".encode(), "sha256")
