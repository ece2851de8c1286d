"""Two short drivers for the conversation of an exchange: blocking, and on an event loop.

Closing a driver's generator, which also happens when it is left early or its task is cancelled,
closes the connection at once if the body was not read to its end.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextvars import ContextVar, Token
from functools import lru_cache
from typing import TypeVar, cast

from .._http import FOREVER, TIMEOUTS
from .._http.connections import Connections, PoolKey
from .._http.library import Failures, failures_of, httpx, library_of
from ..config import reveal_secret
from .exchange import converse
from .steps import (
    READ,
    Acquire,
    Close,
    Exchange,
    Head,
    Loss,
    Open,
    PutOnRecord,
    Read,
    Reply,
    Route,
    Sleep,
    Step,
)

# -- log redaction ---------------------------------------------------------------------------------
# Keeps what is sent and answered out of the logs and tracebacks of the libraries below.
#
# At DEBUG httpcore writes the headers of every answer, and at INFO httpx the reason phrase,
# where a service may repeat the key or the prompt. While a call of ours runs, their records
# keep the name of what happened and lose the rest. An error that ends the call from outside (a
# cancelled task, Ctrl-C) loses the frames of these libraries, among whose variables are the key
# and the body.

_OURS: ContextVar[bool] = ContextVar("svc_call", default=False)
_LOGGERS = tuple(
    f"{library}.{name}"
    for library in ("httpcore", "httpcore2")
    for name in ("connection", "http11", "http2", "proxy", "socks")
)


class suppress_logs:  # noqa: N801  # used as a statement
    """The block in which records are cut, and out of which no frames come."""

    __slots__ = ("_token",)
    _token: Token[bool]

    def __enter__(self) -> None:
        self._token = _OURS.set(True)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        _OURS.reset(self._token)
        if error is not None:
            error.__context__ = None
            raise error.with_traceback(None)


def _keep_name(record: logging.LogRecord) -> bool:
    """Leaves the event's name, such as receive_response_headers.complete."""
    if _OURS.get():
        record.msg = record.getMessage().partition(" ")[0]
        record.args = ()
    return True


def _drop_reason(record: logging.LogRecord) -> bool:
    """Leaves method, address, version and status."""
    arguments = record.args
    if _OURS.get() and isinstance(arguments, tuple) and len(arguments) == _REASON + 1:
        record.args = (*arguments[:_REASON], "")
    return True


_REASON = 4  # HTTP Request: METHOD URL "VERSION STATUS REASON"
for _name in _LOGGERS:
    logging.getLogger(_name).addFilter(_keep_name)
for _name in ("httpx", "httpx2"):
    logging.getLogger(_name).addFilter(_drop_reason)


# -- the drivers ----------------------------------------------------------------------------------

T = TypeVar("T")


def _loss_of(error: Exception, failures: Failures, *, by_proxy: bool = False) -> Loss:
    """What a failure of the network means, without what a URL or header could bring in."""
    _drop_frames(error)
    if isinstance(error, failures.timeouts):
        return Loss("timeout", sent=not isinstance(error, failures.before_sending))
    if isinstance(error, failures.of_proxy):
        # Behind the status stands what the proxy says, which may be the password it was sent.
        detail = "the proxy did not let it through"
        status = re.match(r"\d{3}(?= )", str(error))
        if status:
            detail = f"the proxy answered {status[0]}"
        return Loss("connect", detail, sent=False)
    peer = "the server"
    if by_proxy:
        peer = "the proxy or the server behind it"
    if isinstance(error, failures.of_connect):
        detail = str(error)[:200] or "it broke off"
        if by_proxy:
            detail = f"{peer}: {detail}"
        return Loss("connect", detail, sent=False)
    if isinstance(error, failures.of_protocol):
        return Loss("read", f"{peer} broke off or spoke no valid HTTP")
    return Loss("read", type(error).__name__)


def _drop_frames(error: BaseException | None) -> None:
    """Drop the frames of an error and its causes: a cycle that holds the model and connections."""
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def _build_request(
    step: Open, client: httpx.Client | httpx.AsyncClient | None
) -> httpx.Request:
    """The request, or as the caller's own client builds it, with that client's headers."""
    request = step.request
    extensions = {"timeout": _waits(step), TIMEOUTS: step.timeouts}
    if client is not None:
        return client.build_request(
            request.method,
            request.url,
            headers=request.headers,
            content=request.body,
            extensions=extensions,
        )
    url, headers = _address(request.url, request.headers)
    # With a stream httpx adds no headers and encodes nothing: that is a seventh of a call's time.
    built = httpx.Request(
        request.method,
        url,
        headers=headers,
        stream=httpx.ByteStream(request.body or b""),
        extensions=extensions,
    )
    if request.body is not None:
        built.headers["Content-Length"] = str(len(request.body))
    return built


def _waits(step: Open) -> dict[str, float | None]:
    """The longest that httpx may wait for a place in its pool, and for each other thing."""
    timeouts = step.timeouts
    remaining = max(0.0, timeouts.until - time.monotonic())
    # Waiting for a place in the pool is not the service's fault: only the deadline bounds it.
    pool = None
    if remaining != FOREVER:
        pool = remaining
    # Connections of httpx's own know no deadline: it bounds each of their waits as it stands now.
    wait: float | None = min(timeouts.idle, remaining)
    if wait == FOREVER:
        wait = None
    return {"connect": wait, "read": wait, "write": wait, "pool": pool}


@lru_cache(maxsize=64)  # an object asks the same few again and again
def _address(
    url: str, headers: tuple[tuple[str, str], ...]
) -> tuple[httpx.URL, httpx.Headers]:
    """A URL, and the headers with its Host, which httpx copies."""
    parsed = httpx.URL(url)
    return parsed, httpx.Headers((("Host", parsed.netloc.decode("ascii")), *headers))


def new_connections(place: str, route: Route) -> Connections:
    """Connections to an origin."""
    key = PoolKey(
        place, reveal_secret(route.proxy), route.api_key, route.max_connections
    )
    return Connections(key)


# What a link does for a step. No bound methods: in each link they would be a cycle that holds it.
_VERBS = {
    Open: "open",
    Read: "read",
    Close: "close",
    Sleep: "sleep",
    Acquire: "acquire",
    PutOnRecord: "record",
}


class Link:
    """Performs the steps of one call, blocking."""

    def __init__(self, connections: Connections, client: httpx.Client | None) -> None:
        self._connections = connections
        self._client = client
        self._response: httpx.Response | None = None
        self._body: Iterator[bytes] = iter(())
        self.quiet = False  # our own connections log nothing while they read

    @property
    def _failures(self) -> Failures:
        return failures_of(library_of(self._client))  # looked up where one has come

    def open(self, step: Open) -> Reply:
        try:
            request = _build_request(step, self._client)
            if self._client is None:
                response = self._connections.transport().handle_request(request)
            else:
                response = self._client.send(
                    request, stream=True, follow_redirects=False
                )
        except self._failures.while_opening as error:
            return _loss_of(error, self._failures, by_proxy=self._connections.by_proxy)
        self._body = iter(cast("httpx.SyncByteStream", response.stream))
        self._response = response
        self.quiet = self._client is None and not self._connections.by_proxy
        # Plain texts: each look-up in httpx's headers goes through all of them.
        return Head(response.status_code, dict(response.headers.items()))

    def read(self, _: Read) -> Reply:
        try:
            return next(self._body, b"")
        except self._failures.while_reading as error:
            return _loss_of(error, self._failures)

    def close(self, _: Close | None = None) -> Reply:
        response = self._response
        self._response = None
        if response is not None:
            response.close()
        return None

    def sleep(self, step: Sleep) -> Reply:
        time.sleep(step.seconds)
        return None

    def acquire(self, step: Acquire) -> Reply:
        return step.limiter.acquire(step.remaining)

    def record(self, step: PutOnRecord) -> Reply:
        return step.log.record(step.end)


def run(exchange: Exchange[T], connections: Connections) -> Generator[T, None, None]:
    """The pieces of the answer, blocking."""
    client = cast("httpx.Client | None", exchange.route.client)  # httpx2's is the same
    link = Link(connections, client)
    conversation = converse(exchange)
    reply: Reply = None
    try:
        while True:
            try:
                step = conversation.send(reply)
            except StopIteration:
                return
            if step is READ and link.quiet:
                reply = link.read(READ)
            elif isinstance(step, Step):
                with suppress_logs():
                    reply = getattr(link, _VERBS[type(step)])(step)
            else:
                yield step
                reply = None
    finally:
        conversation.close()  # also where a traceback keeps this frame
        link.close()


class AsyncLink:
    """Performs the steps of one call on an event loop."""

    def __init__(
        self, connections: Connections, client: httpx.AsyncClient | None
    ) -> None:
        self._connections = connections
        self._client = client
        self._response: httpx.Response | None = None
        self._body: AsyncIterator[bytes] | None = None
        self.quiet = False  # as a Link's

    @property
    def _failures(self) -> Failures:
        return failures_of(library_of(self._client))  # looked up where one has come

    async def open(self, step: Open) -> Reply:
        try:
            request = _build_request(step, self._client)
            if self._client is None:
                transport = await self._connections.async_transport()
                response = await transport.handle_async_request(request)
            else:
                response = await self._client.send(
                    request, stream=True, follow_redirects=False
                )
        except self._failures.while_opening as error:
            return _loss_of(error, self._failures, by_proxy=self._connections.by_proxy)
        self._body = aiter(cast("httpx.AsyncByteStream", response.stream))
        self._response = response
        self.quiet = self._client is None and not self._connections.by_proxy
        return Head(response.status_code, dict(response.headers.items()))

    async def read(self, _: Read) -> Reply:
        assert self._body is not None  # noqa: S101  # it is read after it was opened
        try:
            return await anext(self._body, b"")
        except self._failures.while_reading as error:
            return _loss_of(error, self._failures)

    async def close(self, _: Close | None = None) -> Reply:
        response = self._response
        self._response = None
        if response is not None:
            await response.aclose()
        return None

    async def sleep(self, step: Sleep) -> Reply:
        await asyncio.sleep(step.seconds)
        return None

    async def acquire(self, step: Acquire) -> Reply:
        return await step.limiter.aacquire(step.remaining)

    async def record(self, step: PutOnRecord) -> Reply:
        return await step.log.arecord(step.end)


async def arun(
    exchange: Exchange[T], connections: Connections
) -> AsyncGenerator[T, None]:
    """The pieces of the answer, on the running event loop."""
    client = cast("httpx.AsyncClient | None", exchange.route.async_client)  # as above
    link = AsyncLink(connections, client)
    conversation = converse(exchange)
    reply: Reply = None
    try:
        while True:
            try:
                step = conversation.send(reply)
            except StopIteration:
                return
            if step is READ and link.quiet:
                reply = await link.read(READ)
            elif isinstance(step, Step):
                with suppress_logs():
                    reply = await getattr(link, _VERBS[type(step)])(step)
            else:
                yield step
                reply = None
    finally:
        conversation.close()  # also where a traceback keeps this frame
        await link.close()
