"""What reading costs: no more than a fixed number of calls for each character, whatever the text.

Counted are the calls that a reader makes, into Python and into C. A text is some pieces over and
over, between others: what costs more than its length does so when it is long.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any

from langchain_svc._calls.parse import StreamParser, parse_calls
from langchain_svc._http.http1 import ResponseDecoder
from langchain_svc._json.answer import SchemaMismatch, read_answer
from langchain_svc._json.parser import PartialObject, read_json
from langchain_svc._wire.stream import StreamDecoder

from .calls import CALL_PIECES, TOOLS
from .draw import Draw
from .http1 import HTTP1_PIECES, STARTS
from .json_text import JSON_PIECES, SCHEMAS
from .wire import LABELS, STREAM_PIECES

SIZE = 4_000
_FREE = 40_000  # calls, for texts of any length


def counted(function: Callable[[], object]) -> int:
    """How many calls a function makes."""
    count = 0

    def note(_frame: FrameType, event: str, _what: Any) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def repeated(draw: Draw, pieces: tuple[str, ...]) -> str:
    """A text with a beginning, a unit over and over, and an end."""
    begin, unit, end = (
        draw.short(pieces, 3),
        draw.short(pieces, 4) or "{",
        draw.short(pieces, 2),
    )
    return begin[:SIZE] + unit * (SIZE // len(unit)) + end[:SIZE]


def of_json(data: bytes) -> None:
    """The readers of JSON."""
    draw = Draw(data)
    schema = draw.one_of(SCHEMAS)
    text = repeated(draw, JSON_PIECES)
    _check(lambda: read_json(text), text, 50)
    _check(lambda: _answer(text, schema), text, 450)
    _check(lambda: _by_parts(text), text, 30)


def of_calls(data: bytes) -> None:
    """The readers of tool calls, of a text as a whole and in pieces."""
    draw = Draw(data)
    step = draw.one_of((1, 7, 64, 1_000))
    text = repeated(draw, CALL_PIECES)
    _check(lambda: parse_calls(text, TOOLS), text, 120)
    _check(lambda: _stream(text, step), text, 160)


def of_streams(data: bytes) -> None:
    """The decoders of streams."""
    draw = Draw(data)
    label, step = draw.one_of(LABELS), draw.one_of((1, 7, 64, 1_000))
    text = repeated(draw, STREAM_PIECES)
    _check(lambda: _decode(text.encode(), label, step), text, 60)


def of_http1(data: bytes) -> None:
    """The reader of HTTP/1.1, of heads, bodies and trailers."""
    draw = Draw(data)
    step = draw.one_of((1, 7, 64, 1_000))
    text = draw.one_of(STARTS) + repeated(draw, HTTP1_PIECES)
    _check(lambda: _read(text.encode(), step), text, 20)


def _check(function: Callable[[], object], text: str, most: int) -> None:
    calls = counted(function)
    assert calls <= most * len(text) + _FREE, (
        f"{calls} calls for {len(text)} characters"
    )


def _answer(text: str, schema: dict[str, Any]) -> None:
    with suppress(SchemaMismatch):
        read_answer(text, schema)


def _by_parts(text: str) -> None:
    parser = PartialObject()
    for at in range(0, len(text), 5):
        parser.parse_chunk(text[at : at + 5])


def _stream(text: str, step: int) -> None:
    parser = StreamParser(TOOLS)
    for at in range(0, len(text), step):
        deque(parser.parse_chunk(text[at : at + step]), maxlen=0)
    deque(parser.close(), maxlen=0)


def _decode(body: bytes, label: str, step: int) -> None:
    decoder = StreamDecoder(label)
    for at in range(0, len(body), step):
        decoder.decode(body[at : at + step])
    decoder.close()


def _read(answer: bytes, step: int) -> None:
    reader = ResponseDecoder()
    reader.start_response()
    for at in range(0, len(answer), step):
        reader.decode(answer[at : at + step])
