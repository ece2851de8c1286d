"""Two short drivers for one conversation (`_service/exchange.py`): blocking, and on a loop.

Closing a driver's generator, which also happens when it is left early or its task is cancelled,
closes the connection at once if the body was not read to its end.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import suppress
from functools import lru_cache
from typing import Any

import httpx

from .._base.threads import LONG, off_loop
from .._http import FOREVER, TIMEOUTS, Connections
from .exchange import converse
from .log_redaction import suppress_logs
from .steps import (
    READ,
    Acquire,
    Close,
    Conversation,
    Exchange,
    Head,
    Lost,
    Open,
    Read,
    Reply,
    Sleep,
)

_TIMEOUTS = (
    httpx.ConnectTimeout,
    httpx.ReadTimeout,
    httpx.WriteTimeout,
    httpx.PoolTimeout,
)

_BEFORE_SENDING = (httpx.ConnectTimeout, httpx.PoolTimeout)


def _lost(error: Exception, *, by_proxy: bool = False) -> Lost:
    """What a failure of the network means, without what a URL or header could bring in."""
    who = "the proxy or the server behind it" if by_proxy else "the server"
    part: BaseException | None = error
    while (
        part is not None
    ):  # their frames are a cycle that holds the model and its connections
        part.__traceback__ = None
        part = part.__cause__ or part.__context__
    if isinstance(error, _TIMEOUTS):
        return Lost("timeout", sent=not isinstance(error, _BEFORE_SENDING))
    if isinstance(error, httpx.ProxyError):
        # Behind the status stands what the proxy says, which may be the password it was sent.
        status = re.match(r"\d{3}(?= )", str(error))
        said = f"answered {status[0]}" if status else "did not let it through"
        return Lost("connect", f"the proxy {said}", sent=False)
    if isinstance(error, httpx.ConnectError):
        said = str(error)[:200] or "it broke off"
        return Lost("connect", f"{who}: {said}" if by_proxy else said, sent=False)
    if isinstance(error, httpx.RemoteProtocolError):
        return Lost("read", f"{who} broke off or spoke no valid HTTP")
    return Lost("read", type(error).__name__)


def _prepared(
    step: Open, client: httpx.Client | httpx.AsyncClient | None
) -> httpx.Request:
    """The request, or as the caller's own client builds it, with that client's headers."""
    request, read = step.request, step.timeouts
    # Waiting for a place in the pool is not the service's fault: only the deadline bounds it.
    until = max(0.0, read.until - time.monotonic())
    pool = None if until == FOREVER else until
    # Connections of httpx's own know no deadline: it bounds each of their waits as it stands now.
    wait = None if read.idle == FOREVER == until else min(read.idle, until)
    bounds = {"connect": wait, "read": wait, "write": wait, "pool": pool}
    extensions = {"timeout": bounds, TIMEOUTS: read}
    if client is not None:
        return client.build_request(
            request.method,
            request.url,
            headers=request.headers,
            content=request.body,
            extensions=extensions,
        )
    url, headers = _addressed(request.url, request.headers)
    # With a stream httpx adds no headers and encodes nothing: that is a seventh of a call's time.
    stream = httpx.ByteStream(request.body or b"")
    made = httpx.Request(
        request.method, url, headers=headers, stream=stream, extensions=extensions
    )
    if request.body is not None:
        made.headers["Content-Length"] = str(len(request.body))
    return made


@lru_cache(maxsize=64)  # an object asks the same few again and again
def _addressed(
    url: str, headers: tuple[tuple[str, str], ...]
) -> tuple[httpx.URL, httpx.Headers]:
    """A URL, and the headers with its Host, which httpx copies."""
    parsed = httpx.URL(url)
    return parsed, httpx.Headers((("Host", parsed.netloc.decode("ascii")), *headers))


class _Link:
    """What a call has open: an answer and the bytes of its body."""

    def __init__(self, connections: Connections, client: Any) -> None:
        self._connections, self._client = connections, client
        self._response: httpx.Response | None = None
        self._body: Any = None
        self.quiet = False  # our own connections log nothing while they read
        self._compressed = False  # whether the answer is
        self.held = 0  # bytes that came since a piece was last handed on


class Link(_Link):
    """Performs the steps of one call, blocking."""

    def open(self, step: Open) -> Reply:
        try:
            request = _prepared(step, self._client)
            if self._client is None:
                response = self._connections.transport().handle_request(request)
            else:
                response = self._client.send(
                    request, stream=True, follow_redirects=False
                )
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            return _lost(error, by_proxy=self._connections.by_proxy)
        stream: Any = response.stream
        self._body = iter(stream)
        self._response = response
        self.quiet = self._client is None and not self._connections.by_proxy
        return Head(response.status_code, response.headers)

    def read(self, _: Read) -> Reply:
        try:
            return next(self._body, b"")
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            return _lost(error)

    def close(self, _: Close | None = None) -> Reply:
        response, self._response = self._response, None
        if response is not None:
            response.close()
        return None

    def sleep(self, step: Sleep) -> Reply:
        time.sleep(step.seconds)
        return None

    def acquire(self, step: Acquire) -> Reply:
        return step.limiter.acquire(step.left)


# What a link does for a step. No bound methods: in each link they would be a cycle that holds it.
_VERBS = {
    Open: "open",
    Read: "read",
    Close: "close",
    Sleep: "sleep",
    Acquire: "acquire",
}


def run(
    exchange: Exchange[Any], connections: Connections, client: httpx.Client | None
) -> Generator[Any, None, None]:
    """The pieces of the answer, blocking."""
    link = Link(connections, client)
    steps = converse(exchange)
    reply: Reply = None
    try:
        while True:
            try:
                step = steps.send(reply)
            except StopIteration:
                return
            if step is READ and link.quiet:
                reply = link.read(step)
                continue
            verb = _VERBS.get(type(step))
            if verb is None:
                yield step
                reply = None
            else:
                with suppress_logs():
                    reply = getattr(link, verb)(step)
    finally:
        steps.close()  # also where a traceback keeps this frame
        link.close()


class AsyncLink(_Link):
    """Performs the steps of one call on an event loop."""

    async def open(self, step: Open) -> Reply:
        self.held = 0
        try:
            request = _prepared(step, self._client)
            if self._client is None:
                transport = await self._connections.async_transport()
                response = await transport.handle_async_request(request)
            else:
                response = await self._client.send(
                    request, stream=True, follow_redirects=False
                )
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            return _lost(error, by_proxy=self._connections.by_proxy)
        stream: Any = response.stream
        self._body = aiter(stream)
        self._response = response
        self.quiet = self._client is None and not self._connections.by_proxy
        self._compressed = bool(response.headers.get("content-encoding"))
        return Head(response.status_code, response.headers)

    async def read(self, _: Read) -> Reply:
        try:
            data: bytes = await self._body.__anext__()
        except StopAsyncIteration:
            return b""
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            return _lost(error)
        self.held += len(data)
        return data

    async def advance(
        self, exchange: Exchange[Any], steps: Conversation, reply: Reply
    ) -> Any:
        """The next step of the conversation, off the loop where it takes long; _OVER at its end.

        It is long by what is read now, never by what was: the bytes at hand, at the end those that
        nothing was made of yet, and after a refusal the request, which its words are looked for in.
        """
        size = 0
        if reply == b"" or isinstance(reply, Lost):
            size, head = self.held, exchange.head
            if head is not None and not 200 <= head.status < 300:
                size += len(exchange.request.body or b"")
        elif isinstance(reply, bytes) and exchange.head is not None:
            if self._compressed:
                size = _EXPANSION * len(reply)
            elif exchange.parser is not None and not exchange.parser.whole:
                size = len(reply)
        if size <= LONG:
            return _advance(steps, reply)
        return await off_loop(exchange.until, _advance, steps, reply)

    async def close(self, _: Close | None = None) -> Reply:
        response, self._response = self._response, None
        if response is not None:
            await response.aclose()
        return None

    async def sleep(self, step: Sleep) -> Reply:
        await asyncio.sleep(step.seconds)
        return None

    async def acquire(self, step: Acquire) -> Reply:
        return await step.limiter.aacquire(step.left)


_OVER: Any = object()
_EXPANSION = 8  # bytes that compressed ones may well become


def _advance(steps: Conversation, reply: Reply) -> Any:
    try:
        return steps.send(reply)
    except StopIteration:  # no future can hold it
        return _OVER


async def arun(
    exchange: Exchange[Any], connections: Connections, client: httpx.AsyncClient | None
) -> AsyncGenerator[Any, None]:
    """The pieces of the answer, on the running event loop."""
    link = AsyncLink(connections, client)
    steps = converse(exchange)
    reply: Reply = None
    try:
        while (step := await link.advance(exchange, steps, reply)) is not _OVER:
            if step is READ and link.quiet:
                reply = await link.read(step)
                continue
            verb = _VERBS.get(type(step))
            if verb is None:
                yield step
                link.held = 0
                reply = None
            else:
                with suppress_logs():
                    reply = await getattr(link, verb)(step)
    finally:
        with suppress(
            ValueError
        ):  # it is still read in a thread, which this task has left
            steps.close()  # also where a traceback keeps this frame
        await link.close()
