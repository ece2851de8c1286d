"""Undoes Content-Encoding while reading, and holds the body to a size.

A small compressed body can grow to gigabytes, so the limit applies to what comes out, and the
decompressor is never asked for more than what is left of it.
"""

from __future__ import annotations

import zlib

ACCEPT_ENCODING = "gzip, deflate"


class BodyError(Exception):
    """The body cannot be taken; its text says why, without any of the body."""


class BodyReader:
    """Decodes a body piece by piece: `feed(raw) -> bytes`, then `finish()`.

    Args:
        encoding: The answer's Content-Encoding header, or "".
        limit: The most bytes that may come out.

    Raises:
        BodyError: From every method, for an unknown encoding, damaged data, a body cut short
            or one larger than `limit`.
    """

    def __init__(self, encoding: str, limit: int) -> None:
        self._left = limit
        self._limit = limit
        self._start = b""
        self._inflate: zlib._Decompress | None = None
        coding = encoding.strip().lower()
        if coding not in {"", "identity", "gzip", "x-gzip", "deflate"}:
            raise BodyError("it is compressed in a way that was not asked for")
        self._plain = coding in {"", "identity"}

    def feed(self, raw: bytes) -> bytes:
        """What `raw` adds to the decoded body."""
        data = raw if self._plain else self._decompress(raw)
        self._left -= len(data)
        if self._left < 0:
            raise BodyError(
                f"it is larger than {self._limit} bytes (max_response_bytes sets the limit)"
            )
        return data

    def finish(self) -> None:
        """Checks that the compressed form has come to its end."""
        unfinished = self._start if self._inflate is None else not self._inflate.eof
        if unfinished:
            raise BodyError("its compressed form was cut short")

    def _decompress(self, raw: bytes) -> bytes:
        if self._inflate is None:
            self._start += raw
            if len(self._start) < _MAGIC_BYTES:
                return b""
            raw, self._start = self._start, b""
            self._inflate = zlib.decompressobj(_window_bits(raw))
        try:
            data = self._inflate.decompress(raw, self._left + 1)
        except zlib.error:
            raise BodyError("its compressed form is damaged") from None
        if self._inflate.unused_data:
            raise BodyError("its compressed form is damaged")
        return data


_MAGIC_BYTES = 2


def _window_bits(start: bytes) -> int:
    """How to read a compressed body: gzip, zlib, or the bare deflate some servers send."""
    first, second = start[0], start[1]
    if (first, second) == (0x1F, 0x8B):
        return zlib.MAX_WBITS | 16
    is_zlib = first & 0x0F == zlib.DEFLATED and (first << 8 | second) % 31 == 0
    return zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS
