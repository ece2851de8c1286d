"""What an image is, told by its bytes and never by its name.

Only the header is read: the format, and the size from which a decompression bomb is known before
anything is decompressed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_STARTS = {b"\x89PNG\r\n\x1a\n": "PNG", b"\xff\xd8\xff": "JPEG"}
_ANIMATED = 0x02  # a flag of WebP
DAMAGED = (
    "it is damaged or cut short, so what it holds beside the picture cannot be removed"
)


class ImageError(ValueError):
    """Bytes, a text or an address that are no image we take; it says why, without any of them."""


@dataclass(frozen=True)
class ImageHeader:
    """What an image's header says: its format and its size in pixels."""

    format: str
    width: int
    height: int


def read_image_header(data: bytes, max_pixels: int) -> ImageHeader:
    """The format and size of an image.

    Raises:
        ImageError: It is none of the formats, its header is damaged, or it is too large.
    """
    kind = format_of(data)
    try:
        width, height = _SIZES[kind](data)
    except (ImageError, IndexError, struct.error):
        width = 0
        height = 0
    if not width or not height:
        raise ImageError(f"its {kind} header is damaged or cut short")
    if width * height > max_pixels:
        raise ImageError(
            f"it has {width}x{height} pixels, which is more than {max_pixels:,} (max_pixels)"
        )
    return ImageHeader(kind, width, height)


def format_of(data: bytes) -> str:
    """PNG, JPEG or WEBP.

    Raises:
        ImageError: It is none of these.
    """
    for start, kind in _STARTS.items():
        if data.startswith(start):
            return kind
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        if data[12:16] == b"VP8X" and data[20:21] and data[20] & _ANIMATED:
            raise ImageError(
                "it is animated, which is not supported: save one frame of it"
            )
        return "WEBP"
    if data.startswith(b"GIF8"):
        raise ImageError("it is a GIF, which is not supported: save it as PNG or JPEG")
    raise ImageError("it is not an image in a known format (PNG, JPEG or WebP)")


def is_dicom(data: bytes | bytearray) -> bool:
    """Whether bytes begin as a DICOM file does: with a preamble of 128 bytes, and DICM."""
    return data[128:132] == b"DICM"


def _png_size(data: bytes) -> tuple[int, int]:
    name, width, height = struct.unpack_from(">4sII", data, 12)
    if name != b"IHDR":
        raise ImageError(DAMAGED)
    return width, height


# The frame headers of JPEG; the markers left out of the range are tables.
JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}


def jpeg_size(data: bytes, frames: frozenset[int] = JPEG_FRAMES) -> tuple[int, int]:
    """Width and height of a JPEG.

    Args:
        data: Its bytes.
        frames: The markers of frame headers, which have the size.

    Raises:
        ImageError, IndexError, struct.error: It is damaged or cut short.
    """
    for marker, body, _ in jpeg_segments(data):
        if marker in frames:
            height, width = struct.unpack_from(">xHH", body)
            return width, height
    raise ImageError(DAMAGED)


_SCAN = 0xDA
_END = 0xD9
_RESTARTS = range(0xD0, 0xD8)


def jpeg_segments(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Each segment up to the end of the image: its marker, its body and, of a scan, its data.

    Raises:
        ImageError, IndexError, struct.error: The file is damaged or cut short.
    """
    at = 2
    while True:
        if data[at] != 0xFF:  # every marker begins so
            raise ImageError(DAMAGED)
        while data[at] == 0xFF:  # and may be filled up with the same
            at += 1
        marker = data[at]
        if marker == _END:
            return
        (size,) = struct.unpack_from(">H", data, at + 1)
        begin = at + 3
        end = at + 1 + max(size, 2)  # the size counts its own two bytes
        if end > len(data):
            raise ImageError(DAMAGED)
        at = end
        if marker == _SCAN:
            at = _end_of_scan(data, end)
        yield marker, data[begin:end], data[end:at]


def _end_of_scan(data: bytes, at: int) -> int:
    """Where the next marker is: within a scan, FF 00 is data, and restarts belong to it."""
    while True:
        at = data.find(b"\xff", at)
        if at < 0:
            raise ImageError(DAMAGED)
        code = data[at + 1]
        if code == 0xFF:  # fills up, and the marker comes later
            at += 1
        elif code == 0 or code in _RESTARTS:
            at += 2
        else:
            return at


def _webp_size(data: bytes) -> tuple[int, int]:
    chunk = data[12:16]
    body = data[20:30]
    if chunk == b"VP8X":
        if len(body) < 10:
            raise ImageError(DAMAGED)
        width = int.from_bytes(body[4:7], "little") + 1
        height = int.from_bytes(body[7:10], "little") + 1
        return width, height
    if chunk == b"VP8L":
        signature, bits = struct.unpack_from("<BI", body)
        if signature != 0x2F:
            raise ImageError(DAMAGED)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    start, width, height = struct.unpack_from("<3x3sHH", body)
    if chunk != b"VP8 " or start != b"\x9d\x01\x2a":
        raise ImageError(DAMAGED)
    return width & 0x3FFF, height & 0x3FFF


_SIZES: dict[str, Callable[[bytes], tuple[int, int]]] = {
    "PNG": _png_size,
    "JPEG": jpeg_size,
    "WEBP": _webp_size,
}
