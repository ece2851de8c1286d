"""Undoes Content-Encoding while reading, and holds the body to a size and a number of values.

A small compressed body can grow to gigabytes, so the limit applies to what comes out, and the
decompressor is never asked for more than a step of what remains of it.
"""

from __future__ import annotations

import zlib

ACCEPT_ENCODING = "gzip"
_WINDOW = 16 * 1024  # each of many small members copies what follows it
_STEP = 1024 * 1024  # joining the output of larger ones would take the memory twice
MOST_VALUES = (
    500_000  # in JSON: an empty list takes three bytes there, and seventy in memory
)
_GZIP = zlib.MAX_WBITS | 16


class BodyError(Exception):
    """The body cannot be taken; its text says why, without any of the body."""


class TooLargeError(BodyError):
    """The body is larger than the limit."""


class BodyDecoder:
    """Undoes the encoding of a body piece by piece: `decode(raw)`, then `close()`.

    Args:
        encoding: The answer's Content-Encoding header, or "".
        limit: The most bytes that may come out.

    Raises:
        BodyError: From every method, for an unknown encoding, damaged data, a body cut short
            or one larger than `limit`.
    """

    def __init__(self, encoding: str, limit: int) -> None:
        self._limit = limit
        self._remaining = limit
        self._inflate: zlib._Decompress | None = None
        coding = encoding.strip().lower()
        if coding not in {"", "identity", "gzip", "x-gzip"}:
            raise BodyError("it is compressed in a way that was not asked for")
        self._is_plain = coding in {"", "identity"}

    def decode(self, raw: bytes) -> bytes:
        """What `raw` adds to the decoded body."""
        data = raw
        if not self._is_plain:
            data = self._decompress(raw)
        self._remaining -= len(data)
        if self._remaining < 0:
            raise self._too_large()
        return data

    def _too_large(self) -> TooLargeError:
        limit = f"{self._limit} bytes (max_response_bytes sets the limit)"
        return TooLargeError(f"it is larger than {limit}")

    def close(self) -> None:
        """Checks that the compressed form has come to its end."""
        if self._inflate is not None and not self._inflate.eof:
            raise BodyError("its compressed form was cut short")

    def _decompress(self, raw: bytes) -> bytes:
        parts: list[bytes] = []
        remaining = self._remaining
        start = 0
        while start < len(raw):
            # Members follow each other (RFC 1952).
            if self._inflate is None or self._inflate.eof:
                self._inflate = zlib.decompressobj(_GZIP)
            window = raw[start : start + _WINDOW]
            try:
                part = self._inflate.decompress(window, _STEP)
            except zlib.error:
                raise BodyError("its compressed form is damaged") from None
            parts.append(part)
            remaining -= len(part)
            if remaining < 0:
                raise self._too_large()
            unread = self._inflate.unconsumed_tail or self._inflate.unused_data
            start += len(window) - len(unread)
        if len(parts) == 1:
            return parts[0]
        return b"".join(parts)


def has_too_many_values(body: bytes) -> bool:
    """Whether JSON has so many values, or commas in texts, that reading it may fill the memory."""
    return body.count(b",") + body.count(b"[") + body.count(b"{") > MOST_VALUES
