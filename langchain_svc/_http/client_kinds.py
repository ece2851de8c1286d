"""Of which library a client is that a user hands over, without importing either."""

from __future__ import annotations

LIBRARIES = ("httpx", "httpx2")
_KINDS = ("Client", "AsyncClient")


def client_kind(client: object) -> tuple[str, str] | None:
    """The library and the class of a client, such as `("httpx2", "AsyncClient")`; None: no client.

    The SDKs' own clients inherit from these classes.
    """
    for base in type(client).__mro__:
        library = base.__module__.partition(".")[0]
        if library in LIBRARIES and base.__name__ in _KINDS:
            return library, base.__name__
    return None
