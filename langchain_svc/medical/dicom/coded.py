"""Whether compressed pixels unfold to what the header says, told before they are unfolded."""

from __future__ import annotations

import struct

from openjpeg.utils import get_parameters
from pydicom.uid import RLELossless

from ..._images import JPEG_FRAMES, ImageError, jpeg_size

_JPEG_LS_FRAME = 0xF7
_RLE_HEADER = 64


def check_coded(
    frame: bytes, syntax: str, rows: int, columns: int, sample_bytes: int
) -> None:
    """Refuse a compressed frame that is not of the size that the header gives."""
    try:
        if syntax == RLELossless:
            fits = _rle_fits(frame, rows * columns, sample_bytes)
        elif frame.startswith(
            b"\xff\xd8"
        ):  # not by libjpeg, which decodes it to tell its size
            fits = jpeg_size(frame, JPEG_FRAMES | {_JPEG_LS_FRAME}) == (columns, rows)
        else:
            said = get_parameters(frame)
            fits = (said["columns"], said["rows"]) == (columns, rows)
    except (ValueError, IndexError, RuntimeError, struct.error):
        fits = False
    if not fits:
        raise ImageError(
            "its compressed pixels are damaged, or not of the size its header gives"
        )


def _rle_fits(frame: bytes, pixels: int, sample_bytes: int) -> bool:
    """Whether no segment unfolds to more than a byte a pixel: 2 bytes can stand for 128."""
    count, *starts = struct.unpack_from("<16I", frame)
    if count != sample_bytes:
        return False
    ends = [*starts[1:count], len(frame)]
    return all(
        _RLE_HEADER <= start < end <= len(frame)
        and _unfolds_within(frame, start, end, pixels + 1)
        for start, end in zip(starts[:count], ends, strict=True)
    )


def _unfolds_within(frame: bytes, at: int, end: int, most: int) -> bool:
    length = 0
    while at < end and length <= most:
        head = frame[at]
        if head < 128:  # so many bytes and one, unchanged
            at, length = at + head + 2, length + head + 1
        else:  # one byte so many times; 128 is nothing at all
            at, length = at + (2 if head > 128 else 1), length + (257 - head) % 129
    return length <= most
