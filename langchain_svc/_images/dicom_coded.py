"""Compressed pixels: whether they unfold to what the header says, told before they are unfolded."""

from __future__ import annotations

import struct

from .headers import JPEG_FRAMES, ImageError, jpeg_size

_JPEG_LS_FRAME = 0xF7
_CODESTREAM = b"\xff\x4f\xff\x51"  # JPEG 2000: its start and its size
_JP2 = b"\0\0\0\x0cjP  \r\n\x87\n"  # the first box of a file around it


def check_coded(frame: bytes, syntax: str, rows: int, columns: int, sample_bytes: int) -> None:
    """Check that a compressed frame is of the size that the header gives.

    Args:
        frame: The frame's compressed bytes.
        syntax: Its transfer syntax.
        rows: The header's number of rows.
        columns: The header's number of columns.
        sample_bytes: Bytes of all samples of one pixel.

    Raises:
        ImageError: It is not, or does not say its size.
    """
    try:
        if syntax == _RLE:
            fits = _rle_fits(frame, rows * columns, sample_bytes)
        else:
            fits = _coded_size(frame) == (columns, rows)
    except (ValueError, IndexError, struct.error):
        fits = False
    if not fits:
        raise ImageError("its compressed pixels are damaged, or not of the size its header gives")


def _coded_size(frame: bytes) -> tuple[int, int]:
    if frame[:2] == b"\xff\xd8":
        return jpeg_size(frame, JPEG_FRAMES | {_JPEG_LS_FRAME})
    at = _codestream(frame)
    if not frame.startswith(_CODESTREAM, at):
        raise ValueError
    right, lower, left, upper = struct.unpack_from(">4I", frame, at + 8)
    return right - left, lower - upper


def _codestream(frame: bytes) -> int:
    """Where a JPEG 2000 codestream begins: at once, or in a box (ISO/IEC 15444-1, annex I.4)."""
    at = 0
    while frame.startswith(_JP2):
        length, kind = struct.unpack_from(">I4s", frame, at)
        head = 8
        if length == 1:  # it is as long as the 8 bytes after its kind say
            (length,), head = struct.unpack_from(">Q", frame, at + 8), 16
        if kind == b"jp2c":
            return at + head
        if length < head:  # the last box
            raise ValueError
        at += length
    return at


# -- RLE -------------------------------------------------------------------------------------------

_RLE = "1.2.840.10008.1.2.5"
_RLE_HEADER = 64


def _rle_fits(frame: bytes, pixels: int, sample_bytes: int) -> bool:
    """Whether no segment unfolds to more than a byte a pixel: 2 bytes can stand for 128."""
    count, *starts = struct.unpack_from("<16I", frame)
    if count != sample_bytes:
        return False
    ends = [*starts[1:count], len(frame)]
    return all(
        _RLE_HEADER <= start < end <= len(frame) and _unfolds_within(frame, start, end, pixels + 1)
        for start, end in zip(starts[:count], ends, strict=True)
    )


def _unfolds_within(frame: bytes, at: int, end: int, most: int) -> bool:
    length = 0
    while at < end and length <= most:
        head = frame[at]
        if head < 128:  # noqa: PLR2004  # so many bytes and one, unchanged
            at, length = at + head + 2, length + head + 1
        else:  # one byte so many times; 128 is nothing at all
            at, length = at + (2 if head > 128 else 1), length + (257 - head) % 129  # noqa: PLR2004
    return length <= most
