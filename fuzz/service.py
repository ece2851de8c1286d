"""What every class holds to whatever a service writes into its socket."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from langchain_core.tools import ToolException

import langchain_svc as svc
from tests.peers import RawServer, read_request, response

from .draw import Draw

KEY = "sk-Marked/7Zq+Key=99"
_SOUND = json.dumps(
    {
        "choices": [
            {"index": 0, "message": {"content": "sound"}, "finish_reason": "stop"}
        ]
    }
).encode()
_DEADLINE = 1.0
_SLACK = 20.0  # seconds that a busy machine may add

_BODIES = (
    '{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}',
    '{"success":true,"response":"a","translation":"a","result":"a"}',
    'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\n', "data: [DONE]\n\n",
    '{"status":"ok","response":"a"}',
    '{"data":[{"id":"m","url":"https://x.example/a.png"}]}', '{"models":[{"id":"m"}]}', '{"response":"","done":true}\n',
)  # fmt: skip
_CHUNKS = tuple(f"{len(body):x}\r\n{body}\r\n" for body in _BODIES)
_WHOLE = tuple(
    f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}" for body in _BODIES
)

SERVICE_PIECES = (
    *_BODIES, *_CHUNKS, *_WHOLE, "0\r\n\r\n",
    "HTTP/1.1 200 OK\r\n", "HTTP/1.1 500 Oops\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.0 200 OK\r\n",
    "HTTP/1.1 204 No\r\n",
    "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9/\r\n", "HTTP/1.1 407 " + KEY + "\r\n",
    "HTTP/1.1 400 " + "x" * 300 + "\r\n",
    "HTTP/2 200\r\n", "HTTP/1.1 999 No\r\n", "HTTP/1.1 2", "\r\n", "\n", "\r\n\r\n", "Content-Length: 0\r\n",
    "Content-Length: 12\r\n",
    "Content-Length: 99999999999999999999\r\n", "Content-Length: -1\r\n", "Content-Length: 5, 5\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Transfer-Encoding: gzip, chunked\r\n", "Content-Encoding: gzip\r\n", "Content-Encoding: br\r\n",
    "Content-Encoding: deflate, gzip\r\n",
    "Content-Type: text/event-stream\r\n", "Content-Type: application/json\r\n",
    "Content-Type: application/x-ndjson\r\n", "Connection: close\r\n",
    "Connection: keep-alive\r\n", "Connection: upgrade\r\nUpgrade: h2c\r\n", "Retry-After: 99999999\r\n",
    "Retry-After: " + KEY + "\r\n",
    "X-Request-Id: " + KEY + "\r\n", "X-RateLimit-Reset: nan\r\n", "X: " + "y" * 70_000 + "\r\n", "Bad Header\r\n",
    " folded\r\n", "Set-Cookie: a=b\r\n",
    "0\r\n\r\n", "5\r\nhello\r\n", "1\r\n{\r\n", "ffffffffffffffff\r\n", "-1\r\n", "5;x=y\r\n12345\r\n", "z\r\n",
    "3\r\nabcdef\r\n",
    'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}\n\n', "data: [DONE]\n\n",
    ": ping\n\n", "data: ",
    '{"error":{"message":"' + KEY + '","code":"' + KEY + '"}}',
    '{"response":"a","done":false}\n', "[" * 2_000, "\x00", "\x1f", "\u00e9", "<html>",
    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", "HTTP/1.1 200 OK\r\nContent-Length: 80\r\n\r\n",
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.1 429 Full\r\nRetry-After: 0\r\nContent-Length: 0\r\n\r\n",
)  # fmt: skip

# Heads that are right, and whole answers that something follows.
_STARTS = (
    ("",) * 9
    + 2 * _WHOLE
    + tuple(
        f"HTTP/1.1 {status}\r\n{framing}\r\n{label}\r\n"
        for status in ("200 OK", "400 No")
        for framing in (
            "Content-Length: 60",
            "Transfer-Encoding: chunked",
            "Connection: close",
        )
        for label in (
            "",
            "Content-Type: text/event-stream\r\n",
            "Content-Encoding: gzip\r\n",
        )
    )
)

_Ask = Callable[[Any], Any]


def _chat(**words: Any) -> Callable[..., Any]:
    return lambda url, **common: svc.ChatSvc(base_url_v1=url + "/v1", **common, **words)


def _tool(kind: Any, word: str = "base_url") -> Callable[..., Any]:
    return lambda url, **common: kind(
        **{word: url + ("/v1" if word.endswith("v1") else "")},
        handle_tool_error=False,
        **common,
    )


def _general_chat(url: str, **common: Any) -> Any:
    return svc.ChatSvc(interface="general", base_url=url, **common)


async def _alisted(model: Any) -> Any:
    return await model.alist_models()


async def _astreamed(model: Any) -> Any:
    return [piece async for piece in model.astream("hi")]


def _given(arguments: Any) -> tuple[_Ask, _Ask]:
    return (lambda asked: asked.invoke(arguments)), (
        lambda asked: asked.ainvoke(arguments)
    )


_STREAM: tuple[_Ask, _Ask] = (lambda model: list(model.stream("hi"))), _astreamed
_LIST: tuple[_Ask, _Ask] = (lambda model: model.list_models()), _alisted
_MEDICAL = "medical_base_url"
CLASSES: tuple[tuple[Callable[..., Any], tuple[_Ask, _Ask]], ...] = (
    (_chat(), _given("hi")),
    (_chat(), _STREAM),
    (_chat(), _LIST),
    (_chat(streaming=True, privacy="phi"), _given("hi")),
    (_general_chat, _given("hi")),
    (_general_chat, _STREAM),
    (_general_chat, _LIST),
    (_tool(svc.SvcTranslate), _given({"text": "hi", "target": "de"})),
    (_tool(svc.SvcAnalyzeImage), _given({"image": "https://x.example/a.png", "task": "ocr"})),
    (_tool(svc.SvcGenerateImage, "base_url_v1"), _given({"prompt": "a dot"})),
    (_tool(svc.SvcMedicalConsult, _MEDICAL), _given({"message": "a cough"})),
    (_tool(svc.SvcDecisionSupport, _MEDICAL), _given({"symptoms": ["a cough"], "specialty": "cardiovascular"})),
    (_tool(svc.SvcCancerRisk, _MEDICAL), _given({"symptoms": "a cough", "imaging_type": "chest CT"})),
    (_tool(svc.SvcMedicalStatus, _MEDICAL), _given({})),
)  # fmt: skip


class _Service(RawServer):
    """Answers each request with the script, or soundly where there is none."""

    script: bytes | None = None
    end = 0

    def __init__(self) -> None:
        super().__init__(self._answer)

    def _answer(self, connection: socket.socket) -> None:
        asked = self.requests.pop()
        while asked:
            script, end = self.script, self.end
            connection.sendall(
                response(_SOUND, connection=None) if script is None else script
            )
            if script is not None and end == 1:
                linger = struct.pack("ii", 1, 0)  # closes with a reset
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            if script is not None and end < 2:
                return
            asked = read_request(connection)


@lru_cache(maxsize=1)
def _service() -> _Service:
    return _Service().__enter__()


def service(data: bytes) -> None:
    """A call gives an answer or one of our errors, in time, and the next call is not harmed."""
    draw = Draw(data)
    make, ways = draw.one_of(CLASSES)
    asynchronous, end = draw.byte() % 2, draw.below(4)
    played = _service()
    start = draw.one_of(_STARTS).encode()
    played.end, played.script = end, start + draw.body(SERVICE_PIECES)
    begun = time.monotonic()
    common = {"api_key": KEY, "timeout": 0.25, "deadline": _DEADLINE, "max_retries": 0}
    with make(played.url, **common) as asked:
        try:
            if asynchronous:
                asyncio.run(_awaited(asked, ways[1]))
            else:
                ways[0](asked)
        except (svc.SvcError, ToolException) as error:
            said = f"{error} {error!r} {vars(error)}"
            assert KEY not in said, said
            assert len(str(error)) < 10_000
        assert time.monotonic() - begun < _DEADLINE + _SLACK
        played.script = None
        with svc.ChatSvc(
            base_url_v1=played.url + "/v1", api_key=KEY, max_retries=0
        ) as model:
            assert model.invoke("hi").text == "sound"


async def _awaited(asked: Any, ask: _Ask) -> None:
    try:
        await ask(asked)
    finally:
        await asked.aclose()
