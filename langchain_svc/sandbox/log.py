"""What the sandbox received: the only place where request bodies are kept."""

import json
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from langchain_svc.sandbox.wire import Request

_SECRET_HEADERS = frozenset({"authorization", "x-api-key", "cookie", "proxy-authorization"})
_SCHEMES = frozenset({"bearer", "basic", "digest"})


@dataclass(frozen=True)
class Received:
    """One request as it arrived, and what became of it when this snapshot was taken.

    Attributes:
        method: HTTP method.
        path: Path without the query.
        query: Query without the question mark.
        headers: Names in lower case; keys and cookies masked.
        at: Arrival, by the sandbox's clock.
        client_port: The client's port: equal ports mean one connection.
        body: Body as received.
        status: Status that was answered; None when there was no answer (yet).
        unknown_fields: Fields that no document lists, as paths such as `messages[0].name`.
        disconnected: The client went away before the answer was complete.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str] = field(repr=False)
    at: float
    client_port: int
    body: bytes = field(default=b"", repr=False)
    status: int | None = None
    unknown_fields: tuple[str, ...] = ()
    disconnected: bool = False

    @cached_property
    def json(self) -> object:
        """The body parsed as JSON, or None when it is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


@dataclass
class Entry:
    """One line of the log, whose request may still be being answered."""

    received: Received

    def update(self, **changes: Any) -> None:
        """Replace fields of what was received."""
        self.received = replace(self.received, **changes)


class Log:
    """Entries in order of arrival, readable from any thread while requests are served."""

    def __init__(self, keep: int | None) -> None:
        self._lock = threading.Lock()
        self._entries: deque[Entry] = deque(maxlen=keep)

    def add(self, request: Request, *, at: float) -> Entry:
        """Append a request whose body is yet to come."""
        known = {**vars(request), "headers": _masked(request.headers), "at": at}
        entry = Entry(Received(**known))
        with self._lock:
            self._entries.append(entry)
        return entry

    def clear(self) -> None:
        """Forget all entries."""
        with self._lock:
            self._entries.clear()

    def snapshots(self) -> list[Received]:
        """Return every entry as it stands now."""
        with self._lock:
            return [entry.received for entry in self._entries]


def _masked(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers with the values of keys and cookies replaced, their scheme kept."""
    return {
        name: _mask(value) if name in _SECRET_HEADERS else value for name, value in headers.items()
    }


def _mask(value: str) -> str:
    scheme, space, _ = value.partition(" ")
    return f"{scheme} ***" if space and scheme.lower() in _SCHEMES else "***"
