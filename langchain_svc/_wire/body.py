"""Undoes Content-Encoding while reading, and holds the body to a size.

A small compressed body can grow to gigabytes, so the limit applies to what comes out, and the
decompressor is never asked for more than what is left of it.
"""

from __future__ import annotations

import zlib

# gzip or zlib by its header; bare deflate, which some servers send under the same name, has none.
_AUTO = zlib.MAX_WBITS | 32
_BARE = -zlib.MAX_WBITS

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
        self._inflate: zlib._Decompress | None = None
        self._fresh = True
        coding = encoding.strip().lower()
        if coding in {"gzip", "x-gzip", "deflate"}:
            self._inflate = zlib.decompressobj(_AUTO)
        elif coding not in {"", "identity"}:
            raise BodyError("it is compressed in a way that was not asked for")

    def feed(self, raw: bytes) -> bytes:
        """What `raw` adds to the decoded body."""
        data = raw if self._inflate is None else self._decompress(self._inflate, raw)
        self._left -= len(data)
        if self._left < 0:
            raise BodyError(
                f"it is larger than {self._limit} bytes (max_response_bytes sets the limit)"
            )
        return data

    def finish(self) -> None:
        """Checks that the compressed form has come to its end."""
        if self._inflate is not None and not self._inflate.eof and not self._fresh:
            raise BodyError("its compressed form was cut short")

    def _decompress(self, inflate: zlib._Decompress, raw: bytes) -> bytes:
        if not raw:
            return b""
        try:
            data = inflate.decompress(raw, self._left + 1)
        except zlib.error:
            if not self._fresh:
                raise BodyError("its compressed form is damaged") from None
            data = self._decompress_bare(raw)
        self._fresh = False
        return data

    def _decompress_bare(self, raw: bytes) -> bytes:
        self._inflate = zlib.decompressobj(_BARE)
        try:
            return self._inflate.decompress(raw, self._left + 1)
        except zlib.error:
            raise BodyError("its compressed form is damaged") from None
