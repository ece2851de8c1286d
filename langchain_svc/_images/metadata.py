"""An image without what its file says beside the picture.

Cameras, scanners and programs write names, places, times and whole second pictures into image
files. `without_metadata` copies what is needed to draw a file; the pixels are not decoded, so they
stay exactly as they were. What is kept is named here, and anything else is left out, known or not:
also colour profiles, which carry descriptions and serial numbers, and all that follows the picture.

One word of EXIF changes how an image is drawn: its orientation. It is written anew, alone.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

from .headers import DAMAGED, JPEG_FRAMES, ImageError, format_of, jpeg_segments


def without_metadata(data: bytes) -> bytes:
    """The same image with the same pixels, and nothing else that its file held.

    Args:
        data: A PNG, JPEG or WebP.

    Raises:
        ImageError: It is none of these, or damaged so that its parts cannot be told apart.
    """
    try:
        return _WALKS[format_of(data)](data)
    except (IndexError, struct.error):
        raise ImageError(DAMAGED) from None


def _part(data: bytes, at: int, size: int) -> bytes:
    part = data[at : at + size]
    if len(part) < size:
        raise ImageError(DAMAGED)
    return part


_ORIENTATION, _SHORT, _UPRIGHT, _LAST = 0x0112, 3, 1, 8
_ENTRY = 12
_ORDERS = {b"II*\0": "<", b"MM\0*": ">"}


def _orientation(tiff: bytes) -> bytes:
    """An EXIF block with the orientation of another and nothing else; empty where it is upright."""
    try:
        order = _ORDERS[tiff[:4]]
        (start,) = struct.unpack_from(order + "I", tiff, 4)
        (count,) = struct.unpack_from(order + "H", tiff, start)
        for at in range(start + 2, start + 2 + count * _ENTRY, _ENTRY):
            tag, form, _, value = struct.unpack_from(order + "HHIH", tiff, at)
            if tag == _ORIENTATION and form == _SHORT and _UPRIGHT < value <= _LAST:
                return struct.pack(
                    "<4sIHHHIHHI", b"II*\0", 8, 1, tag, form, 1, value, 0, 0
                )
    except (KeyError, struct.error):
        pass
    return b""


# The picture, its transparency, and how bright and wide its colours and pixels are. Those of a
# fixed size hold numbers only; with another size they are something else.
_PNG_KEPT: dict[bytes, int | None] = {
    b"IHDR": 13, b"PLTE": None, b"IDAT": None, b"IEND": 0,
    b"tRNS": None, b"gAMA": 4, b"cHRM": 32, b"sRGB": 1, b"pHYs": 9, b"cICP": 4,
}  # fmt: skip


def _png(data: bytes) -> bytes:
    kept, at, name = [data[:8]], 8, b""
    while name != b"IEND":
        (size,) = struct.unpack_from(">I", data, at)
        chunk = _part(data, at, size + 12)
        at, name = at + size + 12, chunk[4:8]
        if name in _PNG_KEPT and _PNG_KEPT[name] in {None, size}:
            kept.append(chunk)
        elif name == b"eXIf" and (exif := _orientation(chunk[8:-4])):
            body = name + exif
            kept.append(
                struct.pack(">I", len(exif))
                + body
                + struct.pack(">I", zlib.crc32(body))
            )
    if kept[1][4:8] != b"IHDR" or not any(chunk[4:8] == b"IDAT" for chunk in kept):
        raise ImageError(DAMAGED)
    return b"".join(kept)


_JFIF, _APP1, _ADOBE, _SCAN = 0xE0, 0xE1, 0xEE, 0xDA
# Frames and tables (C0 to CF), quantisation, lines, restarts and the hierarchical markers.
_JPEG_KEPT = frozenset({*range(0xC0, 0xD0), _SCAN, 0xDB, 0xDC, 0xDD, 0xDE, 0xDF})


def _jpeg(data: bytes) -> bytes:
    """Tables, frames and scans; of the rest only what says how colours are stored."""
    kept, markers = [b"\xff\xd8"], set()
    for marker, body, scan in jpeg_segments(data):
        markers.add(marker)
        part = None
        if marker in _JPEG_KEPT:
            part = body
        elif marker == _JFIF and body.startswith(b"JFIF\0"):
            part = _part(body, 0, 12) + b"\0\0"  # without its thumbnail
        elif marker == _ADOBE and body.startswith(b"Adobe"):
            part = _part(body, 0, 12)
        elif (
            marker == _APP1
            and body.startswith(b"Exif\0\0")
            and (exif := _orientation(body[6:]))
        ):
            part = body[:6] + exif
        if part is not None:
            kept.append(struct.pack(">BBH", 0xFF, marker, len(part) + 2) + part + scan)
    if _SCAN not in markers or not markers & JPEG_FRAMES:
        raise ImageError(DAMAGED)
    return b"".join(kept) + b"\xff\xd9"


_WEBP_KEPT = frozenset({b"VP8 ", b"VP8L", b"VP8X", b"ALPH"})
_WEBP_PROFILE, _WEBP_EXIF, _WEBP_XMP = 0x20, 0x08, 0x04  # flags


def _webp(data: bytes) -> bytes:
    kept, exif = [], b""
    at, end = 12, 8 + int.from_bytes(data[4:8], "little")
    while at < end:
        name, size = struct.unpack_from("<4sI", data, at)
        body = _part(data, at + 8, size)
        at += 8 + size + (size & 1)
        if name in _WEBP_KEPT:
            kept.append(_riff(name, body))
        elif name == b"EXIF":
            exif = _orientation(body.removeprefix(b"Exif\0\0"))
    if not kept:
        raise ImageError(DAMAGED)
    if kept[0].startswith(b"VP8X"):
        flags = kept[0][8] & ~(_WEBP_PROFILE | _WEBP_EXIF | _WEBP_XMP) | (
            _WEBP_EXIF * bool(exif)
        )
        kept[0] = kept[0][:8] + bytes([flags]) + kept[0][9:]
        kept += [_riff(b"EXIF", exif)] if exif else []
    return _riff(b"RIFF", b"WEBP" + b"".join(kept))


def _riff(name: bytes, body: bytes) -> bytes:
    return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) & 1)


_WALKS: dict[str, Callable[[bytes], bytes]] = {
    "PNG": _png,
    "JPEG": _jpeg,
    "WEBP": _webp,
}
