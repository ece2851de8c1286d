"""Rows about bodies: what they say, how large they are, how they are packed and framed."""

from __future__ import annotations

import gzip
from dataclasses import replace
from functools import lru_cache

from fault_columns import FIRST, LARGE, SECOND
from fault_peer import CHUNKED, CLOSE, HOLD, RESET, Flood, head, response
from fault_words import (
    BROKEN,
    LOST,
    MB,
    NO_RETRY,
    NOT,
    SMALL,
    Answer,
    Fails,
    Rows,
    body,
    first_event,
    good,
    raw,
    says,
    typed,
)
from peers import LAST_CHUNK, http_chunk

import langchain_svc as svc

ROWS = Rows()
row = ROWS.add


# -- bodies ---------------------------------------------------------------------------------------

GROUP = "Bodies"
UNREADABLE = Fails(svc.SvcResponseError, status=200)
NO_TEXT = Fails(svc.SvcStreamError)
row(GROUP, "the good answer", good, whole=Answer())
row(GROUP, "empty", raw(b""), whole=UNREADABLE, stream=NO_TEXT)
row(GROUP, "white space", raw(b" \n"), whole=UNREADABLE, stream=NO_TEXT)
row(
    GROUP,
    "204 No Content",
    says(head("204 No Content")),
    whole=Fails(svc.SvcResponseError, status=204),
    stream=NO_TEXT,
)
row(
    GROUP,
    "a page of HTML under 200",
    raw(b"<!doctype html><html>Log in</html>", "text/html"),
    whole=UNREADABLE,
    stream=NO_TEXT,
)
row(GROUP, "text that is not JSON", raw(b"upstream error"), whole=UNREADABLE, stream=NOT)
row(
    GROUP,
    "malformed JSON",
    lambda c: raw(c.good[:-1] + b",,}")(c) if c.kind == "whole" else body("malformed")(c),
    whole=UNREADABLE,
    stream=BROKEN,
)
row(
    GROUP,
    "truncated JSON of the right length",
    lambda c: raw(c.good[:-3])(c) if c.kind == "whole" else body("half event")(c),
    whole=UNREADABLE,
    stream=BROKEN,
)
row(
    GROUP,
    "half a letter at the end",
    lambda c: (
        raw(c.good[: c.good.find("ü".encode()) + 1])(c)
        if c.kind == "whole"
        else body("half letter")(c)
    ),
    whole=UNREADABLE,
    stream=BROKEN,
)
for data in (b"null", b"5", b"true", b'""', b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe", b"\0"):
    shown = (
        data.decode("latin-1").encode("unicode_escape").decode()
        if len(data) < 9
        else data[:5].decode() + "... nested 100,000 times"
    )
    row(GROUP, f"`{shown}`", raw(data), whole=UNREADABLE, stream=NOT)
for name, words in {
    "missing": "the field is missing",
    "null": "the field is null",
    "wrong": "the field has another type",
}.items():
    row(GROUP, words, body(name), whole=UNREADABLE, stream=NO_TEXT)
row(GROUP, "empty choices or object", body("empty"), whole=UNREADABLE, stream=NO_TEXT)
row(GROUP, "odd usage", body("odd usage"), whole=Answer())
row(GROUP, "a byte order mark first", lambda c: raw(b"\xef\xbb\xbf" + c.good)(c), whole=Answer())
row(
    GROUP,
    "half an emoji, as an escape",
    lambda c: raw(c.good.replace(SECOND.encode(), SECOND.encode() + rb"\ud83d"))(c),
    whole=Answer(),
    more="\ufffd",
)
row(
    GROUP,
    "an error object under 200",
    raw(b'{"error": {"message": "the engine broke", "code": "engine_failed"}}', "application/json"),
    whole=UNREADABLE,
    stream=NO_TEXT,
)
row(GROUP, "no Content-Type", lambda c: [response(c.good)], whole=Answer())
row(GROUP, "another Content-Type", lambda c: raw(c.good, "text/plain")(c), whole=Answer())

# -- sizes ----------------------------------------------------------------------------------------

GROUP = "Sizes, with a limit of 1 MB where none is named"
LIMIT = f"larger than {MB} bytes (max_response_bytes sets the limit)"
TOO_LARGE = Fails(svc.SvcResponseError, status=200, says=LIMIT)
TOO_LARGE_STREAM = Fails(svc.SvcStreamError, later=False, says=LIMIT)


EMPTY_LINES = http_chunk(b"\n" * 9_999)


@lru_cache(maxsize=1)
def bomb():
    """30 MB of spaces in 30 kB."""
    return gzip.compress(b" " * (30 * MB))


row(
    GROUP,
    "one event of 5 MB, below the limit",
    body("large"),
    whole=None,
    stream=Answer(),
    settings={"max_response_bytes": 6 * MB},
    more="x" * LARGE,
)
row(
    GROUP,
    "1 MB, below the limit",
    body("large"),
    whole=Answer(),
    stream=NOT,
    settings={"max_response_bytes": 2 * MB},
)
row(
    GROUP,
    "100 MB of a declared length",
    lambda c: [head("200 OK", typed(c), f"Content-Length: {100 * MB}"), Flood(100 * MB)],
    whole=TOO_LARGE,
    stream=TOO_LARGE_STREAM,
    settings=SMALL,
    limit=20 * MB,
)
row(
    GROUP,
    "100 MB in chunks",
    lambda c: [head("200 OK", typed(c), CHUNKED), Flood(100 * MB, http_chunk(b" " * 60_000))],
    whole=TOO_LARGE,
    stream=TOO_LARGE_STREAM,
    settings=SMALL,
    limit=20 * MB,
)
row(GROUP, "one event of 5 MB", body("large"), whole=None, stream=TOO_LARGE_STREAM, settings=SMALL)
row(
    GROUP,
    "a stream of 100 MB in small events",
    lambda c: [
        head("200 OK", typed(c), CHUNKED),
        http_chunk(first_event(c)),
        Flood(100 * MB, EMPTY_LINES),
    ],
    whole=None,
    stream=replace(TOO_LARGE_STREAM, partial=FIRST),
    settings=SMALL,
    limit=20 * MB,
)
row(
    GROUP,
    "a bomb: 30 MB in 30 kB of gzip",
    raw(bomb, None, "Content-Encoding: gzip"),
    whole=TOO_LARGE,
    stream=TOO_LARGE_STREAM,
    settings=SMALL,
)
row(
    GROUP,
    "headers of 40 kB",
    lambda c: [response(c.good, "200 OK", typed(c), *(f"X-{i}: {'x' * 990}" for i in range(40)))],
    whole=Answer(),
)
row(
    GROUP,
    "headers of 1 MB",
    lambda c: [response(c.good, "200 OK", typed(c), *(f"X-{i}: {'x' * 990}" for i in range(1000)))],
    whole=LOST,
    settings=NO_RETRY,
)

# -- compression ----------------------------------------------------------------------------------

GROUP = "Compression"


def packed(pack, coding):
    def script(column):
        return [response(pack(column.good), "200 OK", typed(column), f"Content-Encoding: {coding}")]

    return script


def damaged(data):
    whole = bytearray(gzip.compress(data))
    whole[15] ^= 0xFF
    whole[20] ^= 0xFF
    return bytes(whole)


DAMAGED = {"whole": UNREADABLE, "stream": Fails(svc.SvcStreamError)}
row(GROUP, "gzip", packed(gzip.compress, "gzip"), whole=Answer())
row(
    GROUP,
    "gzip in two members",
    packed(lambda d: gzip.compress(d[:20]) + gzip.compress(d[20:]), "gzip"),
    whole=Answer(),
)
row(GROUP, "identity", packed(bytes, "identity"), whole=Answer())
row(GROUP, "gzip that is damaged", packed(damaged, "gzip"), **DAMAGED)
row(
    GROUP,
    "gzip that is cut short",
    packed(lambda d: gzip.compress(d)[:-6], "gzip"),
    whole=UNREADABLE,
    stream=Fails(svc.SvcStreamError, partial="*"),
)
row(
    GROUP,
    "gzip with a wrong checksum",
    packed(lambda d: gzip.compress(d)[:-8] + b"\0" * 8, "gzip"),
    whole=UNREADABLE,
    stream=Fails(svc.SvcStreamError, partial="*"),
)
row(
    GROUP,
    "an empty body that is called gzip",
    packed(lambda _: b"", "gzip"),
    whole=UNREADABLE,
    stream=NO_TEXT,
)
row(GROUP, "br, which was not asked for", packed(bytes, "br"), **DAMAGED)

# -- framing --------------------------------------------------------------------------------------

GROUP = "Framing"


def framed(*headers, wrap=bytes, line="200 OK", version="1.1", before=b"", then=()):
    """The good body in a frame of one's own making."""

    def script(column):
        named = [text.format(size=len(column.good)) for text in (typed(column), *headers)]
        return [before + head(line, *named, version=version) + wrap(column.good), *then]

    return script


def in_chunks(data, size=7):
    return b"".join(http_chunk(data[i : i + size]) for i in range(0, len(data), size))


LENGTH = "Content-Length: {size}"
BROKEN_FRAME = {
    "whole": LOST,
    "stream": Fails(svc.SvcStreamError, partial="*"),
    "settings": NO_RETRY,
}
row(GROUP, "chunked", framed(CHUNKED, wrap=lambda d: in_chunks(d) + LAST_CHUNK), whole=Answer())
row(
    GROUP,
    "chunked, with extensions and trailers",
    framed(
        CHUNKED,
        wrap=lambda d: http_chunk(d).replace(b"\r\n", b";a=b\r\n", 1) + b"0\r\nX-T: 1\r\n\r\n",
    ),
    whole=Answer(),
)
row(
    GROUP,
    "HTTP/1.0, until the connection ends",
    framed(version="1.0", then=(CLOSE,)),
    whole=Answer(),
)
row(GROUP, "HTTP/1.1, until the connection ends", framed(then=(CLOSE,)), whole=Answer())
row(GROUP, "100 Continue first", framed(LENGTH, before=head("100 Continue")), whole=Answer())
row(
    GROUP, "the same Content-Length twice", framed(LENGTH, LENGTH), whole=LOST, settings=NO_RETRY
)  # RFC 9110, 8.6: reject or take one
row(
    GROUP,
    "both a length and chunks",
    framed("Content-Length: 5", CHUNKED, wrap=lambda d: in_chunks(d) + LAST_CHUNK),
    whole=Answer(),
)
row(
    GROUP,
    "two different lengths",
    framed(LENGTH, "Content-Length: 5"),
    whole=LOST,
    settings=NO_RETRY,
)
row(
    GROUP,
    "a length that is not a number",
    framed("Content-Length: five"),
    whole=LOST,
    settings=NO_RETRY,
)
row(
    GROUP,
    "a length too long, then the end",
    lambda c: [response(c.good, "200 OK", typed(c), length=len(c.good) + 9), CLOSE],
    whole=LOST,
    stream=Answer(),
    settings=NO_RETRY,
)
row(
    GROUP,
    "a length too short",
    lambda c: [response(c.good, "200 OK", typed(c), length=len(c.good) // 2)],
    whole=UNREADABLE,
    stream=Fails(svc.SvcStreamError, partial="*"),
)
row(
    GROUP,
    "a second answer that nobody asked for",
    lambda c: [good(c)[0] + response(b'{"data": "smuggled"}')],
    whole=Answer(),
)
row(
    GROUP,
    "a second answer, a moment after the first",
    lambda c: [*good(c), 0.05, response(b'{"data": "smuggled"}')],
    whole=Answer(),
    waits=True,
)
row(
    GROUP,
    "a chunk size that is not a number",
    framed(CHUNKED, wrap=lambda d: b"zz\r\n" + d),
    whole=LOST,
    stream=Fails(svc.SvcStreamError),
    settings=NO_RETRY,
)
row(
    GROUP,
    "chunks that break off",
    framed(CHUNKED, wrap=lambda d: in_chunks(d)[:-20], then=(CLOSE,)),
    **BROKEN_FRAME,
)
row(
    GROUP,
    "a last chunk that is missing",
    framed(CHUNKED, wrap=in_chunks, then=(CLOSE,)),
    whole=LOST,
    stream=Answer(),
    settings=NO_RETRY,
)
row(GROUP, "a header without a colon", framed(LENGTH, "nonsense"), whole=LOST, settings=NO_RETRY)
row(
    GROUP,
    "101 Switching Protocols, which was not asked for",
    says(head("101 Switching Protocols", "Upgrade: h2c")),
    whole=LOST,
    settings=NO_RETRY,
)
row(
    GROUP,
    "no HTTP: another protocol's greeting",
    says(b"SSH-2.0-OpenSSH_9.6\r\n", CLOSE),
    whole=LOST,
    settings=NO_RETRY,
)

# -- streams --------------------------------------------------------------------------------------

GROUP = "Streams"
row(GROUP, "no end mark", body("no end"), whole=None, stream=replace(BROKEN, partial="*"))
row(
    GROUP,
    "cut inside the first event, where only the connection's end shows it",
    lambda c: [head("200 OK", typed(c)) + c.good[:20], CLOSE],
    whole=None,
    stream=NO_TEXT,
)
row(GROUP, "an error object", body("error"), whole=None, stream=BROKEN)
row(
    GROUP,
    "a broken chunk after the first event",
    lambda c: [head("200 OK", typed(c), CHUNKED) + http_chunk(first_event(c)) + b"zz\r\n"],
    whole=None,
    stream=BROKEN,
)
row(
    GROUP,
    "a reset inside the second event",
    lambda c: [
        head("200 OK", typed(c), CHUNKED)
        + http_chunk(first_event(c))
        + http_chunk(c.good[len(first_event(c)) :])[:20],
        0.05,
        RESET,
    ],
    whole=None,
    stream=BROKEN,
)
row(
    GROUP,
    "an end mark, and the connection stays open",
    framed(CHUNKED, wrap=http_chunk, then=(HOLD,)),
    whole=None,
    stream=Answer(),
)
row(
    GROUP,
    "a reset after the end mark",
    framed(CHUNKED, wrap=http_chunk, then=(0.05, RESET)),
    whole=None,
    stream=Answer(),
)
row(
    GROUP,
    "text after the end mark",
    framed(CHUNKED, wrap=lambda d: http_chunk(d) + http_chunk(b"and more\n\n") + LAST_CHUNK),
    whole=None,
    stream=Answer(),
)
row(
    GROUP,
    "one byte at a time",
    framed(CHUNKED, wrap=lambda d: in_chunks(d, 1) + LAST_CHUNK),
    whole=None,
    stream=Answer(),
)
row(
    GROUP,
    "lines that end with CR LF",
    framed(CHUNKED, wrap=lambda d: http_chunk(d.replace(b"\n", b"\r\n")) + LAST_CHUNK),
    whole=None,
    stream=Answer(),
)
