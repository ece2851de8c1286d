"""Sends a response over one connection, each chunk flushed on its own."""

from langchain_svc.sandbox.connection import Connection
from langchain_svc.sandbox.faults import Fault
from langchain_svc.sandbox.response import Ending, Response

# What was sent must reach the client before a reset: a RST may overtake it on its way up.
_BEFORE_RESET = 0.02


async def misbehave(fault: Fault, connection: Connection) -> bool:
    """Do what leaves no HTTP answer at all; return whether the client left before it was over."""
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


async def deliver(
    response: Response, connection: Connection, *, pace: float, heartbeats: float | None
) -> bool:
    """Send the response; return whether the client left before it was over."""
    if await connection.wait(0):
        return True
    connection.begin(response.status, response.headers.items())
    between = 0.0  # the first chunk comes at once
    for chunk in response.chunks:
        if await connection.wait(between):
            return True
        await connection.send(chunk)
        between = pace if response.paced else 0.0
    if await connection.wait(0):
        return True
    return await _end(response, connection, heartbeats)


async def _end(response: Response, connection: Connection, heartbeats: float | None) -> bool:
    if response.ending is Ending.COMPLETE:
        connection.end()
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
