"""One contestant in a process of its own, which measures itself when it is told to.

It reads one JSON object a line, `{"way": ..., "answer": ..., "calls": ...}`, and answers with one:
`{"cpu": ..., "wall": ...}`, in seconds for all calls together.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from . import contestants
from .answers import TOOL

_QUESTION = "What is the weather in Oslo?"
_LOOP = asyncio.new_event_loop()
_THREADS = 16


class Clock:
    """CPU and wall time of what runs inside its `with` blocks, added up."""

    def __init__(self) -> None:
        self.cpu = self.wall = 0.0
        self.bytes = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.cpu += time.process_time() - cpu
        self.wall += time.perf_counter() - wall


def construct(clock: Clock, new: Callable[[], Any], calls: int) -> None:
    new()
    with clock.running():
        for _ in range(calls):
            new()


def invoke(clock: Clock, new: Callable[[], Any], calls: int) -> None:
    model = new()
    with clock.running():
        for _ in range(calls):
            model.invoke(_QUESTION)


def call_tool(clock: Clock, new: Callable[[], Any], calls: int) -> None:
    model = new().bind_tools([TOOL])
    _must_call(model.invoke(_QUESTION))
    with clock.running():
        for _ in range(calls):
            model.invoke(_QUESTION)


def ainvoke(clock: Clock, new: Callable[[], Any], calls: int) -> None:
    model = new()

    async def run() -> None:
        for _ in range(calls):
            await model.ainvoke(_QUESTION)

    with clock.running():
        _LOOP.run_until_complete(run())


def stream(clock: Clock, new: Callable[[], Any], calls: int) -> None:
    model = new()
    with clock.running():
        for _ in range(calls):
            for _chunk in model.stream(_QUESTION):
                pass


def astream(clock: Clock, new: Callable[[], Any], calls: int) -> None:
    model = new()

    async def run() -> None:
        for _ in range(calls):
            async for _chunk in model.astream(_QUESTION):
                pass

    with clock.running():
        _LOOP.run_until_complete(run())


def stream_tool(clock: Clock, new: Callable[[], Any], calls: int) -> None:
    model = new().bind_tools([TOOL])
    for _ in range(calls):
        with clock.running():
            chunks = list(model.stream(_QUESTION))
        _must_call(*chunks)


def first_chunk(clock: Clock, new: Callable[[], Any], calls: int) -> None:
    model = new()
    for _ in range(calls):
        with clock.running():
            chunks = iter(model.stream(_QUESTION))
            next(chunks)
        for _rest in chunks:
            pass


def afirst_chunk(clock: Clock, new: Callable[[], Any], calls: int) -> None:
    model = new()

    async def run() -> None:
        for _ in range(calls):
            with clock.running():
                chunks = model.astream(_QUESTION)
                await chunks.__anext__()
            async for _rest in chunks:
                pass

    _LOOP.run_until_complete(run())


def batch(clock: Clock, new: Callable[[], Any], calls: int) -> None:
    model = new()
    with clock.running():
        model.batch([_QUESTION] * calls, {"max_concurrency": _THREADS})


def abatch(clock: Clock, new: Callable[[], Any], calls: int) -> None:
    model = new()
    with clock.running():
        _LOOP.run_until_complete(model.abatch([_QUESTION] * calls))


def memory(clock: Clock, new: Callable[[], Any], calls: int) -> None:
    """What one stream holds when its last chunk has come."""
    import psutil

    assert calls == 1
    model, process = new(), psutil.Process()
    gc.collect()
    before = process.memory_full_info().uss
    with clock.running():
        for _chunk in model.stream(_QUESTION):
            if _finished(_chunk):
                gc.collect()
                clock.bytes = process.memory_full_info().uss - before


def _finished(chunk: Any) -> bool:
    return bool(getattr(chunk, "response_metadata", {}).get("finish_reason"))


def _must_call(*messages: Any) -> None:
    """A contestant that lost the call has not done the work that is measured."""
    if not hasattr(messages[0], "tool_calls"):
        return  # httpx alone
    whole = messages[0]
    if len(messages) > 1:
        from langchain_core.messages.ai import add_ai_message_chunks

        whole = add_ai_message_chunks(*messages)
    if [call["name"] for call in whole.tool_calls] != ["save"]:
        raise RuntimeError("it does not join the pieces of a call")


WAYS: dict[str, Callable[[Clock, Callable[[], Any], int], None]] = {
    way.__name__: way
    for way in (
        construct, invoke, call_tool, ainvoke, stream, astream, stream_tool, first_chunk,
        afirst_chunk, batch, abatch, memory,
    )
}  # fmt: skip


def main(name: str, address: str) -> None:
    """Measure what standard input asks for."""
    asyncio.set_event_loop(_LOOP)

    @cache
    def model(answer: str) -> Any:
        return contestants.make(name, address, answer)

    for line in sys.stdin:
        asked = json.loads(line)
        clock, answer = Clock(), asked["answer"]
        if contestants.prompted(name):
            answer = answer.replace("called", "prompted")
        again = asked["way"] != "construct"
        new = (
            (lambda a=answer: model(a))
            if again
            else (lambda a=answer: contestants.make(name, address, a))
        )
        try:
            WAYS[asked["way"]](clock, new, asked["calls"])
        except Exception as error:  # noqa: BLE001  # the table says who cannot do what
            print(json.dumps({"error": f"{type(error).__name__}: {error}"[:300]}), flush=True)
        else:
            print(json.dumps(vars(clock)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
