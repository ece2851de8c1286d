"""Whether compressed pixels unfold to what the header says, checked before they are unfolded."""

from __future__ import annotations

import struct

from openjpeg.utils import get_parameters
from pydicom.uid import RLELossless

from ..._images import JPEG_FRAMES, ImageError, jpeg_size

_JPEG = b"\xff\xd8"
_JPEG_LS_FRAME = 0xF7
_RLE_HEADER = 64


def check_coded(
    frame: bytes, syntax: str, rows: int, columns: int, sample_bytes: int
) -> None:
    """Refuse a compressed frame that is not of the size that the header gives."""
    try:
        if syntax == RLELossless:
            fits = _rle_fits(frame, rows * columns, sample_bytes)
        elif frame.startswith(_JPEG):
            # Not by libjpeg, which decodes an image to tell its size.
            fits = jpeg_size(frame, JPEG_FRAMES | {_JPEG_LS_FRAME}) == (columns, rows)
        else:
            size = get_parameters(frame)
            fits = size["columns"] == columns and size["rows"] == rows
    except (ValueError, IndexError, RuntimeError, struct.error):
        fits = False
    if not fits:
        raise ImageError(
            "its compressed pixels are damaged, or not of the size its header gives"
        )


def _rle_fits(frame: bytes, pixels: int, sample_bytes: int) -> bool:
    """Whether no segment unfolds to more than a byte a pixel: 2 bytes can become 128."""
    count, *starts = struct.unpack_from("<16I", frame)
    if count != sample_bytes:
        return False
    ends = [*starts[1:count], len(frame)]
    most = pixels + 1
    for start, end in zip(starts[:count], ends, strict=True):
        if not _RLE_HEADER <= start < end <= len(frame):
            return False
        if _unfolded_length(frame[start:end], most) > most:
            return False
    return True


def _unfolded_length(segment: bytes, most: int) -> int:
    """How many bytes a segment unfolds to; more than `most` are not counted."""
    length = 0
    at = 0
    while at < len(segment) and length <= most:
        head = segment[at]
        if head < 128:  # the next bytes, one more than it says
            at += head + 2
            length += head + 1
        elif head > 128:  # the next byte, so many times
            at += 2
            length += 257 - head
        else:  # nothing at all
            at += 1
    return length
