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


_ORIENTATION = 0x0112  # the tag
_SHORT = 3  # the type of its value
_UPRIGHT = 1
_LAST_ORIENTATION = 8
_ENTRY_SIZE = 12
_ORDERS = {b"II*\0": "<", b"MM\0*": ">"}


def _orientation(tiff: bytes) -> bytes:
    """An EXIF block with the orientation of another and nothing else; empty where it is upright."""
    try:
        order = _ORDERS[tiff[:4]]
        (start,) = struct.unpack_from(order + "I", tiff, 4)
        (count,) = struct.unpack_from(order + "H", tiff, start)
        for index in range(count):
            at = start + 2 + index * _ENTRY_SIZE
            tag, type_code, _, value = struct.unpack_from(order + "HHIH", tiff, at)
            if (tag, type_code) != (_ORIENTATION, _SHORT):
                continue
            if _UPRIGHT < value <= _LAST_ORIENTATION:
                entry = struct.pack("<HHIHH", tag, type_code, 1, value, 0)
                head = struct.pack("<4sIH", b"II*\0", 8, 1)
                return head + entry + bytes(4)  # no further directory
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
    chunks: list[bytes] = []
    names: list[bytes] = []
    at = 8
    name = b""
    while name != b"IEND":
        (size,) = struct.unpack_from(">I", data, at)
        chunk = _part(data, at, size + 12)
        at += len(chunk)
        name = chunk[4:8]
        if name == b"eXIf":
            exif = _orientation(chunk[8:-4])
            if exif:
                chunks.append(_png_chunk(name, exif))
                names.append(name)
        elif name in _PNG_KEPT and _PNG_KEPT[name] in {None, size}:
            chunks.append(chunk)
            names.append(name)
    if names[0] != b"IHDR" or b"IDAT" not in names:
        raise ImageError(DAMAGED)
    return data[:8] + b"".join(chunks)


def _png_chunk(name: bytes, body: bytes) -> bytes:
    checksum = zlib.crc32(name + body)
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", checksum)


_JFIF = 0xE0
_APP1 = 0xE1
_ADOBE = 0xEE
_SCAN = 0xDA
# Frames and tables (C0 to CF), quantisation, lines, restarts and the hierarchical markers.
_JPEG_KEPT = frozenset({*range(0xC0, 0xD0), _SCAN, 0xDB, 0xDC, 0xDD, 0xDE, 0xDF})


def _jpeg(data: bytes) -> bytes:
    """Tables, frames and scans; of the rest only what says how colours are stored."""
    copy = [b"\xff\xd8"]
    markers: set[int] = set()
    for marker, body, scan in jpeg_segments(data):
        markers.add(marker)
        part = _jpeg_part(marker, body)
        if part is not None:
            header = struct.pack(">BBH", 0xFF, marker, len(part) + 2)
            copy += [header, part, scan]
    if _SCAN not in markers or not markers & JPEG_FRAMES:
        raise ImageError(DAMAGED)
    return b"".join(copy) + b"\xff\xd9"


def _jpeg_part(marker: int, body: bytes) -> bytes | None:
    """What stays of a segment; None if nothing does."""
    if marker in _JPEG_KEPT:
        return body
    if marker == _JFIF and body.startswith(b"JFIF\0"):
        return _part(body, 0, 12) + b"\0\0"  # without its thumbnail
    if marker == _ADOBE and body.startswith(b"Adobe"):
        return _part(body, 0, 12)
    if marker == _APP1 and body.startswith(b"Exif\0\0"):
        exif = _orientation(body[6:])
        if exif:
            return body[:6] + exif
    return None


_WEBP_KEPT = frozenset({b"VP8 ", b"VP8L", b"VP8X", b"ALPH"})
# Flags of a VP8X chunk.
_WEBP_PROFILE = 0x20
_WEBP_EXIF = 0x08
_WEBP_XMP = 0x04


def _webp(data: bytes) -> bytes:
    chunks: list[bytes] = []
    exif = b""
    at = 12
    end = 8 + int.from_bytes(data[4:8], "little")
    while at < end:
        name, size = struct.unpack_from("<4sI", data, at)
        body = _part(data, at + 8, size)
        at += 8 + size + size % 2  # a chunk of an odd size is filled up
        if name in _WEBP_KEPT:
            chunks.append(_riff(name, body))
        elif name == b"EXIF":
            exif = _orientation(body.removeprefix(b"Exif\0\0"))
    if not chunks:
        raise ImageError(DAMAGED)
    first = chunks[0]
    if first.startswith(b"VP8X"):  # only then it may have an EXIF chunk
        flags = first[8] & ~(_WEBP_PROFILE | _WEBP_EXIF | _WEBP_XMP)
        if exif:
            flags |= _WEBP_EXIF
            chunks.append(_riff(b"EXIF", exif))
        chunks[0] = first[:8] + bytes([flags]) + first[9:]
    return _riff(b"RIFF", b"WEBP" + b"".join(chunks))


def _riff(name: bytes, body: bytes) -> bytes:
    padding = bytes(len(body) % 2)
    return name + struct.pack("<I", len(body)) + body + padding


_WALKS: dict[str, Callable[[bytes], bytes]] = {
    "PNG": _png,
    "JPEG": _jpeg,
    "WEBP": _webp,
}
