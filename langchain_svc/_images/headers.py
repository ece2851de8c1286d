"""What an image is, told by its bytes and never by its name.

Only the header is read: the format, and the size from which a decompression bomb is known before
anything is decompressed.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass

MIME_TYPES = {
    "PNG": "image/png",
    "JPEG": "image/jpeg",
    "GIF": "image/gif",
    "WEBP": "image/webp",
}
FORMATS = "PNG, JPEG, GIF or WebP"


class ImageError(ValueError):
    """Bytes or a text that are not an image we take; its text says why, without any of them."""


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
    kind = kind_of(data)
    if kind is None:
        raise ImageError(f"it is not an image in a known format ({FORMATS})")
    try:
        width, height = _SIZES[kind](data)
    except (IndexError, ValueError):
        width = height = 0
    if not width or not height:
        raise ImageError(f"its {kind} header is damaged or cut short")
    if width * height > max_pixels:
        raise ImageError(
            f"it has {width}x{height} pixels, which is more than {max_pixels:,} (max_pixels)"
        )
    return ImageHeader(kind, width, height)


def kind_of(data: bytes) -> str | None:
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if data.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "WEBP"
    return None


def _png_size(data: bytes) -> tuple[int, int]:
    if data[12:16] != b"IHDR" or len(data) < 24:  # noqa: PLR2004  # where the height ends
        raise ValueError
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


def _gif_size(data: bytes) -> tuple[int, int]:
    if len(data) < 10:  # noqa: PLR2004  # where the height ends
        raise ValueError
    return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")


# The frame headers of JPEG; the markers left out of the range are tables.
JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_BARE_MARKERS = frozenset({0x01, *range(0xD0, 0xD8)})


def jpeg_size(data: bytes, frames: frozenset[int] = JPEG_FRAMES) -> tuple[int, int]:
    """Width and height of a JPEG.

    Args:
        data: Its bytes.
        frames: The marks of frame headers, which have the size.

    Raises:
        ValueError: It is damaged or cut short.
        IndexError: The same.
    """
    at = 2
    while True:
        while data[at] == 0xFF and data[at + 1] == 0xFF:  # noqa: PLR2004  # fill bytes
            at += 1
        if data[at] != 0xFF:  # noqa: PLR2004  # every marker begins so
            raise ValueError
        marker = data[at + 1]
        if marker in frames:
            size = data[at + 5 : at + 9]
            if len(size) < 4:  # noqa: PLR2004  # two numbers of two bytes
                raise ValueError
            return int.from_bytes(size[2:], "big"), int.from_bytes(size[:2], "big")
        if marker in _BARE_MARKERS:
            at += 2
            continue
        at += 2 + max(2, int.from_bytes(data[at + 2 : at + 4], "big"))


def _webp_size(data: bytes) -> tuple[int, int]:
    chunk, body = data[12:16], data[20:30]
    if len(body) < 10:  # noqa: PLR2004  # the longest of the three headers
        raise ValueError
    if chunk == b"VP8X":
        return int.from_bytes(body[4:7], "little") + 1, int.from_bytes(body[7:10], "little") + 1
    if chunk == b"VP8L" and body[0] == 0x2F:  # noqa: PLR2004  # its signature
        bits = int.from_bytes(body[1:5], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if chunk == b"VP8 " and body[3:6] == b"\x9d\x01\x2a":
        width, height = body[6:8], body[8:10]
        return int.from_bytes(width, "little") & 0x3FFF, int.from_bytes(height, "little") & 0x3FFF
    raise ValueError


_SIZES: dict[str, Callable[[bytes], tuple[int, int]]] = {
    "PNG": _png_size,
    "JPEG": jpeg_size,
    "GIF": _gif_size,
    "WEBP": _webp_size,
}


def decode_base64(text: str, max_bytes: int) -> bytes:
    """The bytes of base64, plain or as a data URI.

    Both alphabets are taken, and padding may be missing.

    Raises:
        ImageError: It is not base64, or more than `max_bytes`.
    """
    payload = text
    if text[:5].lower() == "data:":
        head, _, payload = text.partition(",")
        if not head.lower().endswith(";base64"):
            raise ImageError("it is a data URI without ;base64")
    # Measured before anything is copied. A third of the letters may be line breaks, no more.
    if len(payload) > max_bytes * 2 + 64:
        raise ImageError(f"it has more than {max_bytes:,} bytes")
    payload = "".join(payload.split()).rstrip("=").replace("-", "+").replace("_", "/")
    try:
        data = base64.b64decode(payload + "=" * (-len(payload) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise ImageError("it is not valid base64") from None
    if len(data) > max_bytes:
        raise ImageError(f"it has more than {max_bytes:,} bytes")
    return data
