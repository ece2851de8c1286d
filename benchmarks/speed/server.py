"""A server that costs nothing to wait for: every answer is bytes that were made beforehand.

The first segment of a request's path names the answer, so that each client reaches it by its base
URL. It runs in a process of its own, and ends when its standard input does.

    python -m benchmarks.speed.server      # prints its port
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .answers import (
    EVENTS_A_CHUNK,
    SERVICE_TIME,
    TOKEN_TIME,
    arguments,
    pieces,
    prompted,
    words,
)

_HEAD = b"HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: "
_USAGE = {"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21}
_PACE = 0.001  # seconds between events: no client here is slower


@dataclass(frozen=True)
class Answer:
    """Parts of an answer, and the seconds to wait before each.

    A `live` one keeps to its times, as a model does; else each part waits for the one before.
    """

    parts: tuple[bytes, ...]
    wait: float = 0.0
    first_wait: float = 0.0
    live: bool = False


def _chunk(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": None}
    frame = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_790_000_000,
    }
    ending = {name: more.pop(name) for name in ("finish_reason",) if name in more}
    return {**frame, "model": "svc-pro", "choices": [choice | ending], **more}


def _event(chunk: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(chunk, separators=(",", ":")).encode() + b"\n\n"


def _stream(deltas: Iterator[dict[str, Any]], reason: str) -> list[bytes]:
    return [
        _event(_chunk({"role": "assistant", "content": ""})),
        *(_event(_chunk(delta)) for delta in deltas),
        _event(_chunk({}, finish_reason=reason, usage=_USAGE)) + b"data: [DONE]\n\n",
    ]


def _http_chunks(events: list[bytes], size: int) -> list[bytes]:
    bodies = [b"".join(events[at : at + size]) for at in range(0, len(events), size)]
    return [b"%x\r\n%b\r\n" % (len(body), body) for body in bodies]


def _streamed(events: list[bytes], *, size: int = 1, together: bool = True) -> Answer:
    head = _HEAD + b"text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    parts = [head, *_http_chunks(events, size), b"0\r\n\r\n"]
    return Answer((b"".join(parts),)) if together else Answer(tuple(parts), wait=_PACE)


def _whole(message: dict[str, Any], reason: str = "stop", wait: float = 0.0) -> Answer:
    choice = {"index": 0, "message": message, "finish_reason": reason}
    frame = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1_790_000_000}
    body = json.dumps(
        {**frame, "model": "svc-pro", "choices": [choice], "usage": _USAGE},
        separators=(",", ":"),
    ).encode()
    head = _HEAD + b"application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    return Answer((head + body,), first_wait=wait)


def _say(text: str, wait: float = 0.0) -> Answer:
    return _whole({"role": "assistant", "content": text}, wait=wait)


def _calls(size: int) -> Answer:
    function = {"name": "save", "arguments": arguments(size)}
    call = {"id": "call_123456789", "type": "function", "function": function}
    return _whole(
        {"role": "assistant", "content": "", "tool_calls": [call]}, "tool_calls"
    )


def _call_deltas(size: int) -> Iterator[dict[str, Any]]:
    first = {"id": "call_123456789", "type": "function"}
    function = {"name": "save", "arguments": ""}
    yield {"tool_calls": [{"index": 0, **first, "function": function}]}
    for piece in pieces(arguments(size)):
        yield {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}


def _text_deltas(texts: Iterator[str]) -> Iterator[dict[str, Any]]:
    return ({"content": text} for text in texts)


def _first(count: int) -> Answer:
    """The head and one event at once; the rest when the first was surely read."""
    whole = _streamed(_stream(_text_deltas(words(count)), "stop"), together=False)
    head, role, first, *rest = whole.parts
    return Answer((head + role + first, b"".join(rest)), wait=0.004)


def _live(count: int, seconds: float = TOKEN_TIME) -> Answer:
    """The head at once, then a token after the other, and the end with the last of them."""
    paced = _streamed(_stream(_text_deltas(words(count)), "stop"), together=False)
    head, role, *tokens, stop, end = paced.parts
    tokens[-1] += stop + end
    return Answer((head + role, *tokens), wait=seconds, live=True)


_MAKERS: dict[str, Callable[[int], Answer]] = {
    "say": lambda size: _say("word " * size),
    "slow": lambda size: _say("word " * size, wait=SERVICE_TIME),
    "many": lambda n: _streamed(
        _stream(_text_deltas(words(n)), "stop"), size=EVENTS_A_CHUNK
    ),
    "each": lambda n: _streamed(_stream(_text_deltas(words(n)), "stop")),
    "paced": lambda n: _streamed(
        _stream(_text_deltas(words(n)), "stop"), together=False
    ),
    "first": _first,
    "live": _live,
    "hundred": lambda count: _live(count, 0.01),
    "prompted": lambda size: _say(prompted(size)),
    "called": _calls,
    "prompted_stream": lambda size: _streamed(
        _stream(_text_deltas(pieces(prompted(size))), "stop"), size=EVENTS_A_CHUNK
    ),
    "called_stream": lambda size: _streamed(
        _stream(_call_deltas(size), "tool_calls"), size=EVENTS_A_CHUNK
    ),
}


@lru_cache(maxsize=64)
def answer(name: str) -> Answer:
    """The answer of a name such as `many-2000`."""
    kind, _, size = name.partition("-")
    return _MAKERS[kind](int(size))


class _Connection(asyncio.Protocol):
    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end:
            return
        lines = head.lower().split(b"\r\n")
        sizes = [
            int(line[15:]) for line in lines if line.startswith(b"content-length:")
        ]
        if len(body) < sum(sizes):
            return
        self._received = b""
        self._answer = answer(head.split(b" ", 2)[1].decode().split("/")[1])
        self._due = asyncio.get_running_loop().time()
        self._after(self._answer.first_wait, 0)

    def _after(self, wait: float, at: int) -> None:
        if not wait:
            self._send(at)
            return
        loop = asyncio.get_running_loop()
        self._due = (self._due if self._answer.live else loop.time()) + wait
        loop.call_at(self._due, self._send, at)

    def _send(self, at: int) -> None:
        self._transport.write(self._answer.parts[at])
        if at + 1 < len(self._answer.parts) and not self._transport.is_closing():
            self._after(self._answer.wait, at + 1)


async def main() -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Connection, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
