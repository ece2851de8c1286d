"""The application: reads a request, records it and answers it, faults included."""

import asyncio
import logging
import traceback
from contextlib import aclosing
from dataclasses import replace
from functools import partial

from .answers import Script
from .endpoints import CHATS, Settings
from .faults import NO_EFFECT, Effect, Ending, FaultBook, Response, apply_fault
from .inspector import Inspector
from .log import Log, ServedExchange
from .server import HttpConnection
from .service import Service
from .wire import HttpReply, HttpRequest, Problem

_logger = logging.getLogger("langchain_svc.sandbox")
# The client must receive what was sent before it sees the reset: an RST may overtake the data.
_BEFORE_RESET = 0.02


class App:
    """Serves one sandbox."""

    def __init__(
        self,
        settings: Settings,
        service: Service,
        faults: FaultBook,
        script: Script,
        log: Log,
        *,
        inspector: Inspector | None,
    ) -> None:
        self._settings = settings
        self._service = service
        self._faults = faults
        self._script = script
        self._log = log
        self._inspector = inspector

    async def __call__(self, request: HttpRequest, connection: HttpConnection) -> None:
        """Answer one HTTP request, whose body is yet to come."""
        if self._inspector is not None and self._inspector.serves(request):
            await self._inspect(self._inspector, request, connection)
            return
        exchange = self._log.open_exchange(request, at=self._settings.clock())
        connection.tap = exchange.record_sent
        try:
            body = await connection.read_body()
            if body is None:
                exchange.update(disconnected=True)
                return
            exchange.update(body=body)
            request = replace(request, body=body)
            disconnected = await self._respond(request, exchange, connection)
            exchange.update(disconnected=disconnected)
        except Exception as bug:  # noqa: BLE001 - whatever it is, the test must see a 500
            await self._report(bug, request, exchange, connection)
        finally:
            self._log.close_exchange(exchange)

    async def _inspect(
        self, inspector: Inspector, request: HttpRequest, connection: HttpConnection
    ) -> None:
        connection.tap = None
        request = replace(request, body=await connection.read_body() or b"")
        answer = partial(inspector.answer, request, is_local=connection.is_local)
        try:
            reply = await asyncio.to_thread(answer)
        except Exception as bug:  # noqa: BLE001 - the page says that it has lost the sandbox
            _log_bug(bug)
            connection.close()
        else:
            await _deliver(apply_fault(reply), connection)

    async def _respond(
        self, request: HttpRequest, exchange: ServedExchange, connection: HttpConnection
    ) -> bool:
        """Answer; return whether the client left before it was over."""
        path = request.path
        exchange.fault = self._faults.pick(path)
        if exchange.fault is None and path in CHATS:
            exchange.fault = self._script.next_fault()
        fault = exchange.fault or NO_EFFECT
        if fault.sends_no_answer:
            return await _misbehave(fault, connection)
        reply = await self._make_reply(request, exchange, fault, connection)
        if reply is None or await connection.wait(fault.delay):
            return True
        exchange.update(status=reply.status)
        response = apply_fault(reply, fault)
        exchange.headers = response.headers
        return await _deliver(
            response,
            connection,
            pace=self._settings.pace,
            heartbeats=fault.heartbeats,
        )

    async def _make_reply(
        self,
        request: HttpRequest,
        exchange: ServedExchange,
        fault: Effect,
        connection: HttpConnection,
    ) -> HttpReply | None:
        if fault.status is not None:
            return self._service.refuse(request, Problem(fault.status))
        if connection.too_large:
            return self._service.refuse(request, Problem(413))
        return await connection.until_gone(self._service.answer(request, exchange))

    async def _report(
        self,
        bug: Exception,
        request: HttpRequest,
        exchange: ServedExchange,
        connection: HttpConnection,
    ) -> None:
        _log_bug(bug)
        if exchange.received.status is not None:
            # The head was already sent, so the status cannot become 500 any more.
            connection.close()
            return
        exchange.update(status=500)
        reply = self._service.refuse(request, Problem(500))
        await _deliver(apply_fault(reply), connection)


def _log_bug(bug: Exception) -> None:
    # Frames show code, never values; the exception's own text might hold patient data.
    frames = "".join(traceback.format_tb(bug.__traceback__))
    _logger.error("A bug in the sandbox: %s\n%s", type(bug).__name__, frames)


# -- sending: each function returns whether the client left before it was over --------------------


async def _misbehave(fault: Effect, connection: HttpConnection) -> bool:
    """Do what leaves no HTTP answer at all."""
    if await connection.wait(fault.delay):
        return True
    if fault.hang:
        return await connection.wait(None)
    if fault.raw is not None:
        connection.write(fault.raw)
        connection.close()
    else:
        connection.reset()
    await connection.wait(None)
    return False


async def _deliver(
    response: Response,
    connection: HttpConnection,
    *,
    pace: float = 0.0,
    heartbeats: float | None = None,
) -> bool:
    """Send a response, each chunk flushed on its own, and end it as it says."""
    if await connection.wait(0):
        return True
    connection.send_head(response.status, response.headers.items())
    if await _send_chunks(response, connection, pace):
        return True
    if response.ending is Ending.COMPLETE:
        connection.end_body()
        return False
    if response.ending is Ending.STALL:
        while not await connection.wait(heartbeats):
            await connection.send(response.heartbeat)
        return True
    if await connection.wait(_BEFORE_RESET):
        return True
    if response.ending is Ending.RESET:
        connection.reset()
    else:
        connection.close()
    await connection.wait(None)
    return False


async def _send_chunks(
    response: Response, connection: HttpConnection, pace: float
) -> bool:
    pause = 0.0  # the first chunk is sent at once
    async with aclosing(response.chunks) as chunks:
        while True:
            next_chunk = anext(chunks, None)
            if response.live:
                chunk = await connection.until_gone(next_chunk)
            else:
                chunk = await next_chunk
            if chunk is None:
                return await connection.wait(0)
            if await connection.wait(pause):
                return True
            await connection.send(chunk)
            if response.paced:
                pause = pace
