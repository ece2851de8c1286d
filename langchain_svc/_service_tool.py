"""What the tools of the general interface have in common.

A tool prepares a `Job` from its arguments (everything that can be wrong is found there, before
anything is sent), runs its call, and processes the answer into the text for the model and the
artifact for the program. Every failure becomes a text that the model can act on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from langchain_core.tools import BaseTool, ToolException
from pydantic import BaseModel, ConfigDict, PrivateAttr

from ._general import GeneralSettings
from ._http.exchange import Call
from ._settings import shown
from .errors import SvcError

if TYPE_CHECKING:
    from ._http.connections import Connections

Artifact = dict[str, Any]
Told = tuple[str, Artifact]


class Arguments(BaseModel):
    """The arguments of a tool: what its schema does not name is a mistake, and is said so."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


@dataclass(frozen=True)
class Job:
    """One use of a tool: the call to run and what to make of its answer."""

    call: Call[Any]
    process: Callable[[Any], Told]


class SharedConnections:
    """The connections that several tools use: one set for each host they speak to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sets: dict[str, Connections] = {}

    def __reduce__(self) -> tuple[type[SharedConnections], tuple[()]]:
        return SharedConnections, ()  # copies and pickles carry no connections

    def to(self, url: str, proxy: str | None) -> Connections:
        """The connections to a URL's host."""
        # Here and not above: httpx is imported at the first call.
        from ._http.connections import Connections, Route  # noqa: PLC0415

        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        with self._lock:
            if origin not in self._sets:
                self._sets[origin] = Connections(Route(url, proxy))
            return self._sets[origin]

    def close(self) -> None:
        """Close them all. The next call opens new ones."""
        for connections in list(self._sets.values()):
            connections.close()

    async def aclose(self) -> None:
        """The asynchronous twin of `close`."""
        for connections in list(self._sets.values()):
            await connections.aclose()


def explain(error: Any) -> str:
    """What is wrong with a tool's arguments, without repeating them.

    `error` is pydantic's, of its second or first version.
    """
    wrong = [
        f"{shown('.'.join(map(str, part['loc'])))}: {part['msg'].removeprefix('Value error, ')}"
        for part in error.errors()
    ]
    return f"The arguments cannot be used, and nothing was done. {'; '.join(wrong)[:_LONGEST]}"


_LONGEST = 1000


class ServiceTool(BaseTool, GeneralSettings):
    """A tool on the service, with the constructor words that every class of this package has.

    Failures are told to the model (`handle_tool_error`, `handle_validation_error`) unless these
    are set to False, which raises `ToolException` or pydantic's error instead.
    """

    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: Any = True
    handle_validation_error: Any = explain

    _shared: SharedConnections | None = PrivateAttr(default=None)

    def share(self, connections: SharedConnections) -> None:
        """Use these connections from now on; whoever owns them closes them."""
        self._shared = connections

    def _connected(self, url: str) -> Connections:
        if self._shared is None:
            return super()._connected(url)
        proxy = self.proxy
        bare = proxy.get_secret_value() if proxy is not None else None  # type: ignore[union-attr]  # kept as a SecretStr
        return self._shared.to(url, bare)

    def _work(self, prepare: Callable[[], Job]) -> Told:
        with _told():
            job = prepare()
            (answer,) = self._pieces(job.call)
            return job.process(answer)

    async def _awork(self, prepare: Callable[[], Job]) -> Told:
        with _told():
            job = prepare()
            (answer,) = [answer async for answer in self._apieces(job.call)]
            return job.process(answer)


@contextmanager
def _told() -> Iterator[None]:
    """Makes an error of this package one that LangChain tells the model."""
    try:
        yield
    except SvcError as error:
        raise ToolException(str(error)) from error


def provenance(call: Call[Any], raw: Any) -> Artifact:
    """Where an answer comes from, and the whole of it."""
    headers: Mapping[str, str] = call.head.headers if call.head is not None else {}
    model = raw.get("model") if isinstance(raw, dict) else None
    return {
        "endpoint": f"{call.request.method} {urlsplit(call.request.url).path}",
        "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
        "request_id": headers.get("x-request-id"),
        "model": model if isinstance(model, str) else None,
        "raw": raw,
    }
