"""What exactly will be sent: an answer with a fault already applied, and no I/O yet."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from enum import Enum

from .faults import NO_EFFECT, Effect
from .wire import (
    HALF_CHARACTER,
    JSON_TYPE,
    HttpReply,
    Problem,
    Stream,
    encode,
)

_BODILESS = frozenset({204, 304})  # HTTP forbids these a body

_STREAM_ERROR = {
    "error": {
        "message": "The service failed while it was answering.",
        "type": "server_error",
        "code": "internal_error",
    }
}


class Ending(Enum):
    """What happens after the last chunk."""

    COMPLETE = "the body ends as HTTP wants it"
    CUT = "the connection is closed"
    RESET = "the connection is reset"
    STALL = "nothing, and the connection stays open"


@dataclass(frozen=True)
class Response:
    """A response: each chunk is flushed on its own, then the ending happens.

    Without a content-length header the body is chunked. `heartbeat` is sent while stalled.
    """

    status: int
    headers: dict[str, str]
    chunks: AsyncGenerator[bytes, None]
    ending: Ending = Ending.COMPLETE
    paced: bool = False
    live: bool = False
    heartbeat: bytes = b""


def apply_fault(reply: HttpReply, fault: Effect = NO_EFFECT) -> Response:
    """Apply a fault to an answer."""
    reply = _with_body_and_headers(reply, fault)
    if reply.stream:
        return _streamed(reply, reply.stream, fault)
    return _whole(reply, fault)


def _with_body_and_headers(reply: HttpReply, fault: Effect) -> HttpReply:
    """The answer with the body and the headers that the fault has."""
    headers = dict(reply.headers)
    if fault.body is not None:
        body, headers["content-type"] = _payload(fault.body)
        reply = replace(reply, body=body, stream=None)
    if fault.mangle == "content-type":
        is_json = headers.get("content-type", "").startswith(JSON_TYPE)
        headers["content-type"] = "text/html" if is_json else JSON_TYPE
    if fault.content_type is not None:
        headers["content-type"] = fault.content_type
    for name, value in fault.headers.items():
        headers[name.lower()] = str(value)
    return replace(reply, headers=headers)


def _payload(body: object) -> tuple[bytes, str]:
    """The bytes of a fault's body, and its content type."""
    if isinstance(body, bytes):
        return body, "application/octet-stream"
    if isinstance(body, str):
        media_type = "text/html" if body.lstrip().startswith("<") else "text/plain"
        return body.encode(), f"{media_type}; charset=utf-8"
    return encode(body), JSON_TYPE


def _ending(fault: Effect) -> Ending:
    if fault.cut:
        return Ending.CUT
    if fault.reset == "inside":
        return Ending.RESET
    if fault.stall:
        return Ending.STALL
    return Ending.COMPLETE


def _streamed(reply: HttpReply, stream: Stream, fault: Effect) -> Response:
    return Response(
        reply.status,
        dict(reply.headers),
        _frames(stream, fault),
        _ending(fault),
        paced=not stream.live,
        live=stream.live,
        heartbeat=b": ping\n\n" if stream.events else b"",
    )


def _broken_index(stream: Stream, fault: Effect) -> int | None:
    """The index of the piece whose JSON the fault breaks: the last one, where there are fewer."""
    if fault.mangle != "json":
        return None
    if isinstance(stream.pieces, tuple):
        return min(fault.after, len(stream.pieces) - 1)
    return fault.after


async def _frames(stream: Stream, fault: Effect) -> AsyncGenerator[bytes, None]:
    broken_index = _broken_index(stream, fault)
    index = 0
    failed = fault.error_event
    try:
        async with aclosing(stream.texts()) as texts:
            async for text in texts:
                if fault.interrupts and index >= fault.after:
                    break
                if index == broken_index:
                    yield stream.broken_frame(text, index)
                else:
                    yield stream.frame(text, index)
                index += 1
    except Problem:
        failed = True  # the head was already sent: the status stays
    if failed:
        yield stream.error_frame(_STREAM_ERROR)
    elif fault.mangle == "utf8":
        yield stream.half_frame(index)
    elif not fault.interrupts:
        for frame in stream.tail():
            yield frame


def _whole(reply: HttpReply, fault: Effect) -> Response:
    body = _mangled(reply.body, fault)
    if fault.error_event:
        body = encode(_STREAM_ERROR)
    headers = dict(reply.headers)
    ending = _ending(fault)
    if reply.status in _BODILESS:
        return Response(reply.status, headers, _slices(b"", NO_EFFECT), ending)
    if not fault.end:
        # A cut body still announces its full length: that is how a client notices.
        headers.setdefault("content-length", str(len(body)))
    return Response(reply.status, headers, _slices(body, fault), ending)


def _mangled(body: bytes, fault: Effect) -> bytes:
    if fault.mangle == "json":
        return body[:-1] + b","
    if fault.mangle == "utf8":
        return body + HALF_CHARACTER
    return body


async def _slices(body: bytes, fault: Effect) -> AsyncGenerator[bytes, None]:
    if fault.error_event or not fault.interrupts:
        yield body
        return
    count = fault.after + 1
    for index in range(fault.after):
        start = index * len(body) // count
        end = (index + 1) * len(body) // count
        yield body[start:end]
