"""What the readers of the wire hold to: streams, headers, errors, bodies, answers, addresses."""

from __future__ import annotations

import ipaddress
import json
import math
import re
import socket
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Any, get_args
from urllib.parse import quote, unquote

import httpx

from langchain_svc._wire import Text, Usage, general, image_endpoints, v1
from langchain_svc._wire.body import BodyDecoder, BodyError
from langchain_svc._wire.failures import read_failure, read_rate_limit, retry_after
from langchain_svc._wire.stream import StreamDecoder
from langchain_svc.errors import SvcError
from langchain_svc.images.addresses import check_address, decode_base64
from langchain_svc.images.headers import ImageError, read_image_header
from langchain_svc.medical import wire as medical

from .draw import Draw, cut_bytes

NOW = 1_790_000_000.0
LABELS = (
    "", "text/event-stream", "application/json", "application/x-ndjson", "text/plain", "text/html",
    "application/json; charset=utf-8", "TEXT/EVENT-STREAM;x", "image/png", ";",
)  # fmt: skip
STREAM_PIECES = (
    "data: ", "data:", "\n", "\n\n", "\r\n", "\r", "[DONE]", ": ping", "event: error\n", "event: done\n",
    "id: 1\n", "retry: 5\n", "\ufeff", "{", "}", "[", "]", '"', ",", ":", "\\", " ", "null", "true", "1",
    '{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null}]}',
    '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"total_tokens":3}}',
    '{"choices":[{"delta":{"content":"\\ud83c"}}]}', '{"choices":[{"delta":{"content":"\\udde7"}}]}',
    '{"choices":[{"message":{"content":"whole"},"finish_reason":"stop"}]}', '{"choices":[', '{"choices":[]}',
    '{"response":"a","done":false}', '{"response":"","done":true}', '{"success":true,"response":"a","tokens":4}',
    '{"error":{"message":"boom"}}', '{"success":false}', '{"text":"a"}', '{"delta":"a"}', '{"type":"done"}',
    '{"id":1,\n', '{"x":1}', '"quoted"', "<html>", "é", "🇧🇷", "Hello ", "data", "ev", "\u2028", "\x00",
)  # fmt: skip


def stream(data: bytes) -> None:
    """A streamed answer says the same however its bytes are cut, and nothing is raised."""
    draw = Draw(data)
    label, strict, how = draw.one_of(LABELS), draw.byte() % 2 == 0, draw.byte()
    body = draw.body(STREAM_PIECES)
    whole = _decoded(label, [body], strict=strict)
    assert _decoded(label, cut_bytes(body, 1), strict=strict) == whole
    assert (
        _decoded(label, [b"", *cut_bytes(body, how + 2), b""], strict=strict) == whole
    )
    whole[0].encode()  # no half of a character is passed on


def _decoded(
    label: str, parts: list[bytes], *, strict: bool
) -> tuple[str, list[Any], bool]:
    decoder = StreamDecoder(label, strict_end=strict)
    events = [event for part in parts for event in decoder.decode(part)]
    was_complete = decoder.state.complete
    events += decoder.close()
    assert decoder.state.complete or not was_complete
    assert decoder.close() == [] or decoder.state.fault is None
    text = "".join(event.text for event in events if isinstance(event, Text))
    usage = [event.counts for event in events if isinstance(event, Usage)][-1:]
    state = json.dumps([asdict(decoder.state), usage], sort_keys=True)
    return text, json.loads(state), decoder.state.complete


HEADER_PIECES = (
    "0", "1", "9", "1790000030", "1790000030500", ".", "-", "+", "e9", " ", ":", "T", "Z", "s", "m", "h", "d", "ms",
    "ns", "us", "µs", "2026-09-21", "14:13:50", "+02:00", "Mon, 21 Sep 2026 14:13:50 GMT", ",", "GMT", "Sep",
    "0001-01-01",
    "9999-12-31T23:59:59", "inf", "nan", "Infinity", "1e400", "٣", "²", "_", "\x00", "\t", "W", "-2359", "+9999", "{",
    "99999999",
)  # fmt: skip


def headers(data: bytes) -> None:
    """Whatever a header says, a wait is a finite number of seconds that is not negative, or None."""
    draw = Draw(data)
    status = draw.one_of((429, 503, 200, 500))
    now = draw.one_of((NOW, 0.0, 1e12, -1e11, 253_402_300_799.0))
    names = (
        "retry-after",
        "x-ratelimit-reset",
        "x-ratelimit-limit",
        "x-ratelimit-remaining",
    )
    text = draw.text(HEADER_PIECES, 100)
    values = dict.fromkeys(names[: 1 + len(text) % 4], text)
    wait = retry_after(status, values, now)
    assert wait is None or (
        isinstance(wait, float) and math.isfinite(wait) and wait >= 0
    )
    seen = read_rate_limit(values, now)
    if seen is not None:
        json.dumps(seen, allow_nan=False)
        assert all(
            seen.get(name, 0) >= 0 for name in ("limit", "remaining", "reset_after")
        )


KEY = "sk-Marked/7Zq+Key=99"
PATIENT = "Quxwellina Zyprandt, 57: Wolfram's syndrome; MRN 83-4471-XQ"
SENT = json.dumps({"message": PATIENT}).encode()
_MARKS = ("marked", "7zq")
_PATIENTS_MARKS = ("quxwell", "zyprandt", "wolfram", "4471")


def _escaped(text: str) -> str:
    return "".join(f"\\u{ord(letter):04x}" for letter in text)


# A service may quote what it was sent in any of these ways.
_QUOTED = tuple(
    way(text)
    for text in (KEY, PATIENT, KEY.split("/")[1], PATIENT.split(",", maxsplit=1)[0])
    for way in (
        str, str.upper, str.swapcase, quote, lambda t: quote(quote(t)), lambda t: quote(t, safe=""),
        _escaped, lambda t: json.dumps(_escaped(t))[1:-1], lambda t: json.dumps(t)[1:-1],
        lambda t: t.replace(" ", "+"), lambda t: t.replace(" ", "\n"), lambda t: t.replace(" ", "\u00a0"),
        lambda t: "".join(f"&#{ord(letter)};" for letter in t),
        lambda t: "".join(f"&#x{ord(letter):x};" for letter in t),
        lambda t: "".join(f"%{ord(letter):02X}" for letter in t), lambda t: t.replace("/", "\\/"),
    )
)  # fmt: skip
FAILURE_PIECES = (
    *_QUOTED, '{"error": {"message": "', '", "code": "', '", "type": "', '"}}', '{"message": "',
    '{"detail": [{"msg": "',
    '{"error": "', '"}', '"', "{", "}", "[", "]", ",", ":", " ", "\\n", "\\", "/", "code", "The value ", "invalid ",
    "'", "_", "x", "\x00", "é",
    "context_length_exceeded", "<html>", "x" * 300, "word " * 300, "9" * 70,
    "\u00ad".join(KEY), "\u200b".join(PATIENT), "\u202e", "\u0383",
)  # fmt: skip


def failure(data: bytes) -> None:
    """An error answer becomes an error that is short, without keys and quotations."""
    draw = Draw(data)
    status = 300 + draw.byte() + draw.byte() % 44
    label = draw.short(FAILURE_PIECES, 3)
    values = dict.fromkeys(("x-request-id", "retry-after")[: draw.below(3)], label)
    body = draw.body(FAILURE_PIECES)
    private = draw.byte() % 2 == 0
    error = read_failure(
        status, values, body, now=NOW, secrets=[KEY], sent=SENT, private=private
    )
    assert isinstance(error, SvcError)
    shown = f"{error}\n{error!r}\n{vars(error)!r}\n{error.__cause__!r}\n{error.__context__!r}"
    assert len(shown) < 10_000
    assert str(error).isprintable()
    str(error).encode()
    runs = [PATIENT[at : at + 20] for at in range(len(PATIENT) - 19)]
    assert not [run for run in runs if run in shown]
    marks = _MARKS
    if private:
        marks += _PATIENTS_MARKS
    for form in _forms(shown):
        for mark in marks:
            assert mark not in form, mark


def _forms(text: str) -> set[str]:
    """A text, and what it becomes for someone who undoes its escapes."""
    forms = {text}
    for _ in range(2):
        forms |= {unquote(form) for form in forms} | {
            _unescaped(form) for form in forms
        }
    return {form.casefold() for form in forms}


def _unescaped(text: str) -> str:
    return re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)


def body(data: bytes) -> None:
    """A body comes out the same, or fails, however it is cut, and never larger than its limit."""
    draw = Draw(data)
    encoding = draw.one_of(
        ("", "gzip", "deflate", "x-gzip", "identity", "br", "gzip, gzip")
    )
    limit, how, packed = draw.below(200), draw.byte(), draw.below(4)
    raw = draw.rest()
    if packed:
        packer = zlib.compressobj(
            wbits=(zlib.MAX_WBITS | 16, zlib.MAX_WBITS, -zlib.MAX_WBITS)[packed - 1]
        )
        raw = packer.compress(raw) + packer.flush()
    whole = _body(encoding, limit, [raw])
    assert _body(encoding, limit, cut_bytes(raw, 1)) == whole
    assert _body(encoding, limit, [b"", *cut_bytes(raw, how + 2), b""]) == whole


def _body(encoding: str, limit: int, parts: list[bytes]) -> bytes | None:
    out = b""
    try:
        decoder = BodyDecoder(encoding, limit)
        for part in parts:
            out += decoder.decode(part)
            assert len(out) <= limit
        decoder.close()
    except BodyError:
        return None
    return out


ANSWER_PIECES = (
    "{", "}", "[", "]", '"', ",", ":", " ", "null", "true", "false", "0", "-1", "1.5", "1e999", "NaN", "9" * 5000,
    "\\ud83c", "\\u0000",
    '"choices":', '"message":', '"content":', '"delta":', '"text":', '"finish_reason":', '"usage":',
    '"total_tokens":', '"error":',
    '"success":', '"data":', '"models":', '"id":', '"context_window":', '"pricing":', '"capabilities":', '"128K"',
    '"response":',
    '"timestamp":', '"translation":', '"translations":', '"result":', '"output":', '"source":', '"images":', '"url":',
    '"b64_json":',
    '"https://x.example/a.png"', '"data:image/png;base64,"', '"description":', '"label":', '"score":', '"objects":',
    '"status":',
    '"riskLevel":', '"recommendations":', '"diagnosis":', '"uptime":', '"latency":', '"a"', "[" * 100,
    '{"data":' * 20, "\x89PNG\r\n\x1a\n",
    "IHDR", "\xff\xd8\xff", "RIFF", "WEBPVP8X", '{"data":[', '{"result":{', "]}", "}}",
)  # fmt: skip
_READERS: tuple[Callable[[bytes], Any], ...] = (
    v1.read_completion,
    v1.read_models,
    general.read_translation,
    image_endpoints.read_generated,
    *(
        lambda body, task=task: image_endpoints.read_analysis(body, task)
        for task in get_args(image_endpoints.Task)
    ),
    medical.read_answer,
)


def answers(data: bytes) -> None:
    """Whatever a body holds, every reader of answers returns a value or calls it unreadable."""
    _check_answer(Draw(data).body(ANSWER_PIECES))


def _check_answer(answer: bytes) -> None:
    for read in _READERS:
        try:
            found = read(answer)
        except v1.UnreadableError as error:
            assert 0 < len(str(error)) < 200
            continue
        assert isinstance(getattr(found, "text", ""), str)


_KEYS = tuple(
    dict.fromkeys(piece[1:-2] for piece in ANSWER_PIECES if piece.endswith('":'))
)
_TEXTS = (
    "",
    "Hello",
    "https://x.example/a.png",
    "data:image/png;base64,iVBORw0KGgo=",
    "error",
    "128K",
    "²K",
    "stop",
    "\ud83c",
    "a" * 9_000,
)
_NUMBERS = (0, 1, -1, 0.5, 1e308, 10**30, 2**53, True, False, None)


def shaped_answers(data: bytes) -> None:
    """The same for sound JSON whose fields have the names that answers have."""
    _check_answer(json.dumps(_shaped(Draw(data), [40])).encode())


def _shaped(draw: Draw, left: list[int]) -> Any:
    left[0] -= 1
    kind = draw.below(8) if left[0] > 0 else 0
    if kind < 2:
        return draw.one_of(_TEXTS)
    if kind == 2:
        return draw.one_of(_NUMBERS)
    if kind == 3:
        return [_shaped(draw, left) for _ in range(draw.below(4))]
    return {draw.one_of(_KEYS): _shaped(draw, left) for _ in range(draw.below(5))}


def pictures(data: bytes) -> None:
    """Bytes are an image with a size or refused; a text is base64 within its limit or refused."""
    with suppress(ImageError):
        seen = read_image_header(data, 10**9)
        assert 0 < seen.width * seen.height <= 10**9
    with suppress(ImageError):
        assert len(decode_base64(data.decode("latin-1"), 100)) <= 100


ADDRESS_PIECES = (
    "http://", "https://", "HTTP:", "//", "/", "?", "#", "@", ":", ":80", ".", "%", "%2e", "%31", "%00", "%25", "[",
    "]", "::", ":", "0x", "0", "1",
    "127", "127.0.0.1", "10.0.0.1", "192.168.0.1", "169.254.169.254", "8.8.8.8", "1.1.1.1", "0x7f", "017700000001",
    "2130706433", "::1", "[::1]",
    "[::ffff:127.0.0.1]", "::127.0.0.1", "fe80::1", "fec0::1", "fc00::", "64:ff9b::", "2002:7f00:1::",
    "2606:4700::1111", "::ffff:0:", "localhost", "example.com",
    "local", "internal", "localdomain", "a", "x.", "-", "_", "xn--", "\\", " ", "\t", "&", ";", "=", "user:pw@", "２",
    "。", "e", "f", "5efe:",
)  # fmt: skip


def addresses(data: bytes) -> None:
    """What passes the check of addresses is public to every parser that we can ask."""
    draw = Draw(data)
    url = draw.one_of(("http://", "https://", "")) + draw.text(ADDRESS_PIECES, 80)
    try:
        assert check_address(url) == url
    except ImageError as error:
        assert len(str(error)) < 200
        return
    for host in {*_hosts(url)}:
        assert _is_outside(host), host


def _hosts(url: str) -> list[str]:
    authority = url.split("://", 1)[1].replace("/", "?").replace("#", "?").split("?")[0]
    plain = authority.rpartition("@")[2]
    host = (
        plain.rpartition("]")[0].lstrip("[")
        if "]" in plain
        else plain.partition(":")[0]
    )
    try:
        return [host, unquote(host), httpx.URL(url).raw_host.decode()]
    except httpx.InvalidURL:
        return [host, unquote(host)]


def _is_outside(host: str) -> bool:
    """Whether a host is no address, or one of the public internet; no name is looked up."""
    host = host.rstrip(".").lower()
    last = host.rpartition(".")[2]
    if last in {"localhost", "localdomain", "local", "internal"} or "%" in host:
        return False
    try:
        found = socket.getaddrinfo(host, 80, flags=socket.AI_NUMERICHOST)[0][4][0]
    except (OSError, UnicodeError):
        return True
    if re.search(r"(?:^|\.)0[\dx]", host):  # octal for some parsers, decimal for others
        return False
    address = ipaddress.ip_address(str(found).partition("%")[0])
    if address.version == 6:
        low = ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
        if int(address) >> 32 in (0, 0xFFFF, 0xFFFF_0000, 0x64FF9B << 64):
            return low.is_global
        return int(address) >> 125 == 1 and address.is_global
    return address.is_global and not address.is_multicast
