"""An image without what its file says beside the picture.

Cameras, scanners and programs write names, places, times and whole second pictures into image
files. `without_metadata` walks the structure of a file and copies what is needed to draw it; the
pixels are not decoded, so they stay exactly as they were. What is kept is named here, and anything
else is left out, known or not: also colour profiles, which carry descriptions and serial numbers,
and all that follows the end of the picture.

One word of EXIF changes how an image is drawn: its orientation. It is written anew, alone.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator

from .headers import JPEG_FRAMES, ImageError, kind_of

_DAMAGED = "it is damaged or cut short, so what it holds beside the picture cannot be removed"


def without_metadata(data: bytes) -> bytes:
    """The same image with the same pixels, and nothing else that its file held.

    Args:
        data: A PNG, JPEG, GIF or WebP.

    Raises:
        ImageError: It is none of these, or damaged so that its parts cannot be told apart.
    """
    kind = kind_of(data)
    if kind is None:
        raise ImageError("it is no PNG, JPEG, GIF or WebP")
    try:
        return _WALKS[kind](data)
    except (IndexError, struct.error):
        raise ImageError(_DAMAGED) from None


def _part(data: bytes, at: int, size: int) -> bytes:
    part = data[at : at + size]
    if len(part) < size:
        raise ImageError(_DAMAGED)
    return part


# -- EXIF: the orientation -------------------------------------------------------------------------

_ORIENTATION, _SHORT, _UPRIGHT, _LAST = 0x0112, 3, 1, 8
_ENTRY = 12
_ORDERS = {b"II*\0": "<", b"MM\0*": ">"}


def _orientation(tiff: bytes) -> int:
    """The orientation that an EXIF block asks for, 1 to 8; 1 where it says nothing readable."""
    order = _ORDERS.get(tiff[:4])
    if order is None:
        return _UPRIGHT
    try:
        (start,) = struct.unpack_from(order + "I", tiff, 4)
        (count,) = struct.unpack_from(order + "H", tiff, start)
        for at in range(start + 2, start + 2 + count * _ENTRY, _ENTRY):
            tag, form, _, value = struct.unpack_from(order + "HHIH", tiff, at)
            if tag == _ORIENTATION:
                return value if form == _SHORT and _UPRIGHT <= value <= _LAST else _UPRIGHT
    except struct.error:
        pass
    return _UPRIGHT


def _exif(orientation: int) -> bytes:
    """An EXIF block that holds an orientation and nothing else."""
    return struct.pack("<4sIHHHIHHI", b"II*\0", 8, 1, _ORIENTATION, _SHORT, 1, orientation, 0, 0)


# -- PNG -------------------------------------------------------------------------------------------

_PNG_START = b"\x89PNG\r\n\x1a\n"
# The picture, its transparency, and how bright and wide its colours and pixels are. Those of a
# fixed size hold numbers only; with another size they are something else.
_PNG_KEPT: dict[bytes, int | None] = {
    b"IHDR": 13, b"PLTE": None, b"IDAT": None, b"IEND": 0,
    b"tRNS": None, b"gAMA": 4, b"cHRM": 32, b"sRGB": 1, b"pHYs": 9, b"cICP": 4,
}  # fmt: skip


def _png(data: bytes) -> bytes:
    kept = [_PNG_START]
    at, name = len(_PNG_START), b""
    if data[12:16] != b"IHDR" or data.find(b"IDAT", at) < 0:
        raise ImageError(_DAMAGED)
    while name != b"IEND":
        (size,) = struct.unpack_from(">I", data, at)
        name = data[at + 4 : at + 8]
        chunk = _part(data, at, size + 12)
        at += size + 12
        if name in _PNG_KEPT and _PNG_KEPT[name] in {None, size}:
            kept.append(chunk)
        elif name == b"eXIf" and (orientation := _orientation(chunk[8:-4])) != _UPRIGHT:
            kept.append(_png_chunk(b"eXIf", _exif(orientation)))
    return b"".join(kept)


def _png_chunk(name: bytes, body: bytes) -> bytes:
    check = zlib.crc32(name + body)
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", check)


# -- JPEG ------------------------------------------------------------------------------------------

_SCAN, _END = 0xDA, 0xD9
_JFIF, _APP1, _ADOBE = 0xE0, 0xE1, 0xEE
# Frames and tables (C0 to CF), quantisation, lines, restarts and the hierarchical marks.
_JPEG_KEPT = frozenset({*range(0xC0, 0xD0), _SCAN, 0xDB, 0xDC, 0xDD, 0xDE, 0xDF})
_RESTARTS = frozenset(range(0xD0, 0xD8))


def _jpeg(data: bytes) -> bytes:
    """Tables, frames and scans; of the rest only what says how colours are stored."""
    kept = [b"\xff\xd8"]
    marks: set[int] = set()
    for mark, body, scan in _segments(data):
        marks.add(mark)
        if mark in _JPEG_KEPT:
            kept += [_segment(mark, body), scan]
        elif mark == _JFIF and body[:5] == b"JFIF\0":
            kept.append(_segment(mark, _part(body, 0, 12) + b"\0\0"))  # without its thumbnail
        elif mark == _ADOBE and body[:5] == b"Adobe":
            kept.append(_segment(mark, _part(body, 0, 12)))
        elif mark == _APP1 and body[:6] == b"Exif\0\0":
            orientation = _orientation(body[6:])
            if orientation != _UPRIGHT:
                kept.append(_segment(mark, b"Exif\0\0" + _exif(orientation)))
    if _SCAN not in marks or not marks & JPEG_FRAMES:
        raise ImageError(_DAMAGED)
    return b"".join(kept) + b"\xff\xd9"


def _segment(mark: int, body: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, mark, len(body) + 2) + body


def _segments(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Each segment up to the end of the image: its mark, its body and, of a scan, its data."""
    at = 2
    while True:
        if data[at] != 0xFF:  # noqa: PLR2004  # every mark begins so
            raise ImageError(_DAMAGED)
        while data[at] == 0xFF:  # noqa: PLR2004  # and may be filled up with the same
            at += 1
        mark = data[at]
        if mark == _END:
            return
        (size,) = struct.unpack_from(">H", data, at + 1)
        body = _part(data, at + 3, max(size - 2, 0))
        at += 1 + max(size, 2)
        end = _end_of_scan(data, at) if mark == _SCAN else at
        yield mark, body, data[at:end]
        at = end


def _end_of_scan(data: bytes, at: int) -> int:
    """Where the next mark is: within a scan, FF 00 is data, and restarts belong to it."""
    while True:
        at = data.find(b"\xff", at)
        if at < 0:
            raise ImageError(_DAMAGED)
        following = data[at + 1]
        if following and following not in _RESTARTS and following != 0xFF:  # noqa: PLR2004  # fill
            return at
        at += 1 if following == 0xFF else 2  # noqa: PLR2004  # the same


# -- GIF -------------------------------------------------------------------------------------------

_IMAGE, _EXTENSION, _TRAILER, _GRAPHIC, _APPLICATION = 0x2C, 0x21, 0x3B, 0xF9, 0xFF
_LOOPS = b"NETSCAPE2.0"


def _gif(data: bytes) -> bytes:
    at = 13 + _palette(data[10])
    kept = [_part(data, 0, at)]
    while data[at] != _TRAILER:
        if data[at] == _IMAGE:
            start = at + 10 + _palette(data[at + 9]) + 1  # with the size of its codes
        elif data[at] == _EXTENSION:
            start = at + 2
        else:
            raise ImageError(_DAMAGED)
        end = _end_of_blocks(data, start)
        if data[at] == _IMAGE or data[at + 1] == _GRAPHIC or _loops(data, at):
            kept.append(data[at:end])
        at = end
    return b"".join(kept) + bytes([_TRAILER])


def _palette(flags: int) -> int:
    """The bytes of the palette that flags announce."""
    return 3 << (flags & 7) + 1 if flags & 0x80 else 0


def _loops(data: bytes, at: int) -> bool:
    """Whether an extension is the one that says how often to repeat, and nothing else."""
    named = data[at + 1] == _APPLICATION and data[at + 3 : at + 14] == _LOOPS
    return named and data[at + 14] == 3 and data[at + 18] == 0  # noqa: PLR2004  # one block of 3


def _end_of_blocks(data: bytes, at: int) -> int:
    while size := data[at]:
        at += 1 + size
    return at + 1


# -- WebP ------------------------------------------------------------------------------------------

_WEBP_KEPT = frozenset({b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF"})
_WEBP_DROPPED_FLAGS = 0x20 | 0x08 | 0x04  # colour profile, EXIF, XMP
_WEBP_EXIF_FLAG = 0x08


def _webp(data: bytes) -> bytes:
    end = 8 + int.from_bytes(data[4:8], "little")
    kept: list[bytes] = []
    orientation = _UPRIGHT
    at = 12
    while at < end:
        name = data[at : at + 4]
        (size,) = struct.unpack_from("<I", data, at + 4)
        padded = size + (size & 1)
        body = _part(data, at + 8, size)
        at += 8 + padded
        if name in _WEBP_KEPT:
            kept.append(_riff(name, body))
        elif name == b"EXIF":
            orientation = _orientation(body.removeprefix(b"Exif\0\0"))
    if not kept:
        raise ImageError(_DAMAGED)
    if kept[0][:4] == b"VP8X":
        flags = kept[0][8] & ~_WEBP_DROPPED_FLAGS
        if orientation != _UPRIGHT:
            flags |= _WEBP_EXIF_FLAG
            kept.append(_riff(b"EXIF", _exif(orientation)))
        kept[0] = kept[0][:8] + bytes([flags]) + kept[0][9:]
    return _riff(b"RIFF", b"WEBP" + b"".join(kept))


def _riff(name: bytes, body: bytes) -> bytes:
    return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) & 1)


_WALKS: dict[str, Callable[[bytes], bytes]] = {
    "PNG": _png,
    "JPEG": _jpeg,
    "GIF": _gif,
    "WEBP": _webp,
}
