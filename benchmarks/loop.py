"""How long an answer of 100 kB holds the event loop: the CPU time of its longest callback.

    python -m benchmarks loop           # the kinds that take longest first, in milliseconds
    python -m benchmarks loop 8         # for answers of 8 kB

The answers come over a socket, as fast as they can be read.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from langchain_svc import ChatSvc, SvcOutputError

_ROUNDS = 3  # the best counts: what else the machine does only adds to it
_PROSE = 'He <b>said</b> it is `code`, and *more* [1] {x} "quoted", a < b > c. '
_ITEM = '{"a": 7, "b": "a row of text"}'
_CALL = '<tool_call>{"name": "save", "arguments": %s}</tool_call>\n'
_FORM = {
    "title": "Rows",
    "type": "object",
    "properties": {
        "rows": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
            },
        }
    },
}
_TOOL = {"name": "save", "description": "Saves rows.", "parameters": _FORM}


def _object(size: int, between: str = ", ") -> str:
    return '{"rows": [' + between.join([_ITEM] * (size // 32)) + "]}"


KINDS: dict[str, Callable[[int], str]] = {
    "prose with marks": lambda size: _PROSE * (size // len(_PROSE)),
    "thoughts": lambda size: "<think>a</think>" * (size // 16),
    "an object": _object,
    "an object in a fence": lambda size: f"```json\n{_object(size)}\n```",
    "an object without commas": lambda size: _object(size, " "),
    "an object in single quotes": lambda size: _object(size).replace('"', "'"),
    "an object without colons": lambda size: _object(size).replace('":', '"'),
    "an object in wide signs": lambda size: _object(size, "\uff0c").replace(
        ":", "\uff1a"
    ),
    "an object too deep": lambda size: "[" * 3000 + _object(size),
    "many objects": lambda size: (_ITEM + "\n") * (size // 31),
    "a call": lambda size: _CALL % _object(size),
    "a call without commas": lambda size: _CALL % _object(size, " "),
    "a call that is cut off": lambda size: (_CALL % _object(size))[:-30],
    "a call amid prose": lambda size: f"So:\n{_CALL % _object(size)}It is done.",
    "many calls": lambda size: _CALL % _object(500) * (size // 560),
    "many calls of Python": lambda size: f"[{'save(rows=[]), ' * (size // 15)}]",
    "calls in code": lambda size: "```python\nsave(rows=[])\n```\n" * (size // 28),
    "openers of calls": lambda size: "<tool_call>" * (size // 11),
    "braces": lambda size: '{"' * (size // 2),
}


@lru_cache(4)
def _whole(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return json.dumps({"choices": [choice]}).encode()


@lru_cache(4)
def _streamed(text: str, step: int) -> bytes:
    deltas = [{"content": text[at : at + step]} for at in range(0, len(text), step)]
    lines = []
    for delta, reason in [*((delta, None) for delta in deltas), ({}, "stop")]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        lines.append(f"data: {json.dumps({'choices': [choice]})}\n\n")
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


class _Answer(BaseHTTPRequestHandler):
    """Answers with the server's text, streamed in pieces if that is asked for."""

    server: _Server

    def do_POST(self) -> None:
        """Answer a request."""
        length = int(self.headers["content-length"])
        kind = "application/json"
        body = _whole(self.server.text)
        if json.loads(self.rfile.read(length)).get("stream"):
            kind = "text/event-stream"
            body = _streamed(self.server.text, self.server.step)
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


class _Server(ThreadingHTTPServer):
    text = ""
    step = 12


@contextmanager
def _timed_callbacks(seconds: list[float]) -> Iterator[None]:
    """Notes the CPU time that the loop's own thread spends in each callback."""
    run = asyncio.Handle._run  # noqa: SLF001  # asyncio's debug mode counts other threads' time, too

    def timed(handle: asyncio.Handle) -> None:
        begun = time.thread_time()
        run(handle)
        seconds.append(time.thread_time() - begun)

    asyncio.Handle._run = timed  # type: ignore[method-assign]  # noqa: SLF001
    try:
        yield
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]  # noqa: SLF001


async def _drain(model: Any) -> None:
    async for _ in model.astream("hi"):
        pass


async def _longest(ask: Callable[[], Coroutine[Any, Any, Any]]) -> float:
    """The longest callback of the best round."""
    rounds = []
    for _ in range(_ROUNDS):
        seconds: list[float] = []
        with _timed_callbacks(seconds), suppress(SvcOutputError):
            await asyncio.create_task(ask())
        rounds.append(max(seconds))
    return min(rounds)


async def measure(server: _Server, size: int) -> dict[str, float]:
    """The seconds of each kind of answer, read in each way."""
    url = f"http://127.0.0.1:{server.server_port}/v1"
    chat = ChatSvc(api_key="measured-key-0123456789", base_url_v1=url)
    ways = {
        "text": chat,
        "calls": chat.bind_tools([_TOOL]),
        "form": chat.with_structured_output(_FORM),
    }
    longest: dict[str, float] = {}
    for kind, text_of in KINDS.items():
        server.text = text_of(size)
        for way, model in ways.items():
            name = f"{kind}, {way}"
            longest[f"{name}, whole"] = await _longest(lambda m=model: m.ainvoke("hi"))
            for server.step in (12, size):
                longest[f"{name}, {server.step} a piece"] = await _longest(
                    lambda m=model: _drain(m)
                )
    return longest


def main(arguments: Sequence[str]) -> int:
    """Measure; returns the exit code."""
    size = 1000 * int([*arguments, "100"][0])
    with _Server(("127.0.0.1", 0), _Answer) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        longest = asyncio.run(measure(server, size))
        server.shutdown()
    for name in sorted(longest, key=longest.__getitem__, reverse=True):
        print(f"{longest[name] * 1000:7.1f}  {name}")
    return 0
