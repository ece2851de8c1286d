"""Undoes Content-Encoding while reading, and holds the body to a size.

A small compressed body can grow to gigabytes, so the limit applies to what comes out, and the
decompressor is never asked for more than a step of what is left of it.
"""

from __future__ import annotations

import zlib

ACCEPT_ENCODING = "gzip"
_TAKEN = 16 * 1024  # each of many small members copies what follows it
_STEP = 1024 * 1024  # joining the output of larger ones would take the memory twice
_GZIP = zlib.MAX_WBITS | 16


class BodyError(Exception):
    """The body cannot be taken; its text says why, without any of the body."""


class TooLargeError(BodyError):
    """The body is larger than the limit."""


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
        coding = encoding.strip().lower()
        if coding not in {"", "identity", "gzip", "x-gzip"}:
            raise BodyError("it is compressed in a way that was not asked for")
        self._plain = coding in {"", "identity"}

    def feed(self, raw: bytes) -> bytes:
        """What `raw` adds to the decoded body."""
        data = raw if self._plain else self._decompress(raw)
        self._check(self._left - len(data))
        self._left -= len(data)
        return data

    def _check(self, left: int) -> None:
        if left < 0:
            limit = f"{self._limit} bytes (max_response_bytes sets the limit)"
            raise TooLargeError(f"it is larger than {limit}")

    def finish(self) -> None:
        """Checks that the compressed form has come to its end."""
        if self._inflate is not None and not self._inflate.eof:
            raise BodyError("its compressed form was cut short")

    def _decompress(self, raw: bytes) -> bytes:
        parts: list[bytes] = []
        room, at = self._left, 0
        while at < len(raw):
            if (
                self._inflate is None or self._inflate.eof
            ):  # members follow each other (RFC 1952)
                self._inflate = zlib.decompressobj(_GZIP)
            taken = raw[at : at + _TAKEN]
            try:
                parts.append(self._inflate.decompress(taken, _STEP))
            except zlib.error:
                raise BodyError("its compressed form is damaged") from None
            room -= len(parts[-1])
            self._check(room)
            at += len(taken) - len(
                self._inflate.unconsumed_tail or self._inflate.unused_data
            )
        return parts[0] if len(parts) == 1 else b"".join(parts)
