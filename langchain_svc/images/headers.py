"""What an image is, told by its bytes and never by its name.

Only the header is read: the format, and the size from which a decompression bomb is known before
anything is decompressed.
"""

from __future__ import annotations

import struct
import zlib
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


# -- metadata --------------------------------------------------------------------------------------
# An image without what its file says beside the picture.
#
# Cameras, scanners and programs write names, places, times and whole second pictures into image
# files. `without_metadata` copies what is needed to draw a file; the pixels are not decoded, so
# they stay exactly as they were. What is kept is named here, and anything else is left out,
# known or not: also colour profiles, which carry descriptions and serial numbers, and all that
# follows the picture.
#
# One word of EXIF changes how an image is drawn: its orientation. It is written anew, alone.


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
_SCAN_MARKER = 0xDA
# Frames and tables (C0 to CF), quantisation, lines, restarts and the hierarchical markers.
_JPEG_KEPT = frozenset({*range(0xC0, 0xD0), _SCAN_MARKER, 0xDB, 0xDC, 0xDD, 0xDE, 0xDF})


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
    if _SCAN_MARKER not in markers or not markers & JPEG_FRAMES:
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
