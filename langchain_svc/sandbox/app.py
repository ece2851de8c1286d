"""The application: reads a request, records it, answers it, faults included."""

import asyncio
import logging
import math
import traceback
from collections.abc import Callable
from functools import partial

from langchain_svc.sandbox.connection import Connection, Head
from langchain_svc.sandbox.delivery import deliver, misbehave
from langchain_svc.sandbox.errors import Problem
from langchain_svc.sandbox.faults import Fault, FaultBook, fault_from_json
from langchain_svc.sandbox.log import Entry, Log, masked
from langchain_svc.sandbox.response import NO_FAULT, response
from langchain_svc.sandbox.scripted import Script
from langchain_svc.sandbox.service import Answered, Service
from langchain_svc.sandbox.wire import Call

_logger = logging.getLogger("langchain_svc.sandbox")


class App:
    """Serves one sandbox."""

    def __init__(
        self,
        service: Service,
        faults: FaultBook,
        script: Script,
        log: Log,
        *,
        pace: float,
        clock: Callable[[], float],
    ) -> None:
        self._service = service
        self._faults = faults
        self._script = script
        self._log = log
        self._pace = pace
        self._clock = clock

    async def __call__(self, head: Head, connection: Connection) -> None:
        """Answer one HTTP request."""
        entry = Entry(
            method=head.method,
            path=head.path,
            query=head.query,
            headers=masked(head.headers),
            at=self._clock(),
            client_port=head.client_port,
        )
        self._log.add(entry)
        body = await connection.body()
        if body is None:
            entry.disconnected = True
            return
        entry.body = body.data
        call = Call(entry.method, entry.path, head.headers, entry.body)
        try:
            await self._respond(call, entry, connection, too_large=body.too_large)
        except Exception as bug:  # noqa: BLE001 - whatever it is, the test must see a 500
            await self._confess(bug, call, entry, connection)

    async def _respond(
        self, call: Call, entry: Entry, connection: Connection, *, too_large: bool
    ) -> None:
        fault, pace = NO_FAULT, 0.0
        try:
            fault, pace = self._fault(call), self._pace_of(call)
        except Problem as problem:
            answered = self._service.refuse(call, problem)
        else:
            if fault.hang or fault.raw is not None or fault.reset == "before":
                entry.disconnected = await misbehave(fault, connection)
                return
            answered = await self._answer(call, entry, fault, too_large=too_large)
        entry.unknown_fields = answered.unknown_fields
        if await connection.wait(fault.delay):
            entry.disconnected = True
            return
        entry.status = answered.reply.status
        sent = response(answered.reply, fault)
        entry.disconnected = await deliver(sent, connection, pace=pace, heartbeats=fault.heartbeats)

    async def _answer(self, call: Call, entry: Entry, fault: Fault, *, too_large: bool) -> Answered:
        if fault.status is not None:
            return self._service.refuse(call, Problem(fault.status))
        if too_large:
            return self._service.refuse(call, Problem(413, "The body is larger than 32 MB."))
        scripted = partial(self._script.text, entry.snapshot())
        if not self._service.is_slow(call):
            return self._service.answer(call, scripted)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(None, self._service.answer, call, scripted)

    def _fault(self, call: Call) -> Fault:
        wanted = call.headers.get("x-sandbox-fault")
        if wanted is None:
            return self._faults.pick(call.path) or self._script.fault(call.path) or NO_FAULT
        try:
            return fault_from_json(wanted)
        except (ValueError, TypeError) as wrong:
            raise Problem(400, str(wrong)) from None

    def _pace_of(self, call: Call) -> float:
        wanted = call.headers.get("x-sandbox-pace")
        if wanted is None:
            return self._pace
        try:
            pace = float(wanted)
        except ValueError:
            pace = math.nan
        if not 0 <= pace < math.inf:
            raise Problem(400, "X-Sandbox-Pace: expected seconds, 0 or more.")
        return pace

    async def _confess(
        self, bug: Exception, call: Call, entry: Entry, connection: Connection
    ) -> None:
        # Frames show code, never values; the exception's own text might hold patient data.
        frames = "".join(traceback.format_tb(bug.__traceback__))
        _logger.error("A bug in the sandbox: %s\n%s", type(bug).__name__, frames)
        if entry.status is not None:
            connection.close()  # the answer had begun: it cannot become a 500 any more
            return
        entry.status = 500
        reply = self._service.refuse(call, Problem(500)).reply
        await deliver(response(reply), connection, pace=0, heartbeats=None)
