"""The four loops of a turn: its answer and its chunks, blocking and on an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import aclosing, closing
from typing import TypeVar

from langchain_core.outputs import ChatGenerationChunk, ChatResult

from .._client import Client
from .._wire import Event
from .readers import LONG
from .turn import Turn

T = TypeVar("T")


def answer(client: Client, turn: Turn) -> ChatResult:
    """The answer of a turn."""
    while turn.exchange is not None:
        (events,) = client.read(turn.exchange)
        turn.read_answer(events)
    return turn.result()


async def aanswer(client: Client, turn: Turn) -> ChatResult:
    """The async version of `answer`."""
    while turn.exchange is not None:
        (events,) = [events async for events in client.aread(turn.exchange)]
        await _aread(turn.size_with(events), turn.read_answer, events)
    return turn.result()


def chunks(
    client: Client, begin: Callable[[], Turn]
) -> Generator[ChatGenerationChunk, None, None]:
    """The chunks of a turn, as they come."""
    turn = begin()
    while turn.exchange is not None:
        with closing(client.read(turn.exchange)) as reads:
            for events in reads:
                yield from turn.read_events(events)
                if turn.stopped:
                    break
        yield from turn.end_stream()


async def achunks(
    client: Client, begin: Callable[[], Awaitable[Turn]]
) -> AsyncGenerator[ChatGenerationChunk, None]:
    """The async version of `chunks`."""
    turn = await begin()
    while turn.exchange is not None:
        async with aclosing(client.aread(turn.exchange)) as reads:
            async for events in reads:
                size = turn.size_with(events)
                for chunk in await _aread(size, turn.read_events, events):
                    yield chunk
                if turn.stopped:
                    break
        for chunk in await _aread(turn.size, turn.end_stream):
            yield chunk


async def _aread(size: int, read: Callable[..., T], *events: list[Event]) -> T:
    """What a turn makes of an answer; a long one is read in a thread, so that the loop goes on."""
    if size <= LONG:
        return read(*events)
    return await asyncio.to_thread(read, *events)
