"""One contestant in a process of its own, which measures itself when it is told to.

It reads one JSON object a line, `{"way": ..., "answer": ..., "calls": ...}`, and answers with one:
`{"cpu": ..., ...}`, in seconds for all calls together.
"""

from __future__ import annotations

import asyncio
import gc
import json
import resource
import socket
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from . import contestants
from .answers import TOKEN_TIME, TOOL

_QUESTION = "What is the weather in Oslo?"
_LOOP = asyncio.new_event_loop()
_THREADS = 16
_CALLERS = 64


class Clock:
    """CPU time of what runs inside its `with` blocks, added up.

    Attributes:
        bytes: What was held.
        first: Seconds to the first token of a stream, the median.
        length: How long a live stream took, by how long the model took, the median.
        rate: Requests a second.
    """

    cpu = bytes = first = length = rate = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        cpu = time.process_time()
        yield
        self.cpu += time.process_time() - cpu


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


def live(clock: Clock, new: Callable[[], Any], calls: int) -> None:
    """Streams at once, begun together, as fast as a model makes them."""
    model = new()
    firsts, lengths = [], []

    async def read() -> None:
        begin, texts = time.perf_counter(), 0
        async for chunk in model.astream(_QUESTION):
            if (text := _text(chunk)) and not texts:
                firsts.append(time.perf_counter() - begin)
            texts += text.count(" ")
        lengths.append((time.perf_counter() - begin) / (texts * TOKEN_TIME))

    async def run() -> None:
        await asyncio.gather(*(read() for _ in range(calls)))

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with clock.running():
        _LOOP.run_until_complete(run())
    clock.first, clock.length = statistics.median(firsts), statistics.median(lengths)
    clock.bytes = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def app(clock: Clock, new: Callable[[], Any], calls: int) -> None:
    """A FastAPI app that passes streams on, asked by another process."""
    import uvicorn
    from fastapi import FastAPI
    from fastapi.responses import StreamingResponse

    model, api = new(), FastAPI()

    @api.get("/")
    async def answer() -> Any:
        texts = (_text(chunk) async for chunk in model.astream(_QUESTION))
        return StreamingResponse(texts, media_type="text/plain")

    async def run() -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(api, log_level="error", lifespan="off"))
        serving = asyncio.create_task(server.serve([listening]))
        port = listening.getsockname()[1]
        callers = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "benchmarks.speed.callers", str(port), str(calls),
            str(min(calls, _CALLERS)), stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        with clock.running():
            seconds, _ = await callers.communicate()
        clock.rate = calls / float(seconds)
        server.should_exit = True
        await serving

    _LOOP.run_until_complete(run())


def _text(chunk: Any) -> str:
    return chunk.get("content", "") if isinstance(chunk, dict) else chunk.text


def stream_tool(
    clock: Clock, new: Callable[[], Any], calls: int, *, while_written: bool = False
) -> None:
    made = new()
    if while_written and hasattr(made, "stream_tool_args"):
        made = made.model_copy(update={"stream_tool_args": True})
    model = made.bind_tools([TOOL])
    for _ in range(calls):
        with clock.running():
            chunks = list(model.stream(_QUESTION))
        _must_call(*chunks)


def stream_tool_args(clock: Clock, new: Callable[[], Any], calls: int) -> None:
    """Arguments as they are written, which is how the peers stream them anyway."""
    stream_tool(clock, new, calls, while_written=True)


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


def abatch_bounded(clock: Clock, new: Callable[[], Any], calls: int) -> None:
    model = new()
    with clock.running():
        _LOOP.run_until_complete(
            model.abatch([_QUESTION] * calls, {"max_concurrency": 64})
        )


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
        live, app, construct, invoke, call_tool, ainvoke, stream, astream, stream_tool,
        stream_tool_args, first_chunk, afirst_chunk, batch, abatch, abatch_bounded, memory,
    )
}  # fmt: skip


def main(name: str, address: str) -> None:
    """Measure what standard input asks for."""
    asyncio.set_event_loop(_LOOP)
    contestants.prepare(name)

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
            print(
                json.dumps({"error": f"{type(error).__name__}: {error}"[:300]}),
                flush=True,
            )
        else:
            print(json.dumps(vars(clock)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
