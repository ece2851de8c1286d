"""One frame of a DICOM file as a PNG of 8 bits.

Rests on DICOM PS3.3, C.11.1 (modality LUT), C.11.2 (VOI LUT and windows) and C.7.6.3 (pixels).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any, Protocol, TypeAlias

import numpy as np
from PIL import Image
from pydicom import Dataset
from pydicom.encaps import get_frame
from pydicom.pixels.decoders.base import get_decoder
from pydicom.pixels.processing import apply_color_lut
from pydicom.pixels.utils import pixel_array

from .dicom_coded import check_coded
from .dicom_header import check_kind, doubt, read_header
from .headers import ImageError

Array: TypeAlias = "np.ndarray[Any, Any]"

_WHITE = 255
_MOST_FRAMES = 100_000
_PLAIN = frozenset({"MONOCHROME1", "MONOCHROME2"})
_COLOURS = frozenset(
    {"RGB", "PALETTE COLOR", "YBR_FULL", "YBR_FULL_422", "YBR_PARTIAL_420", "YBR_ICT", "YBR_RCT"}
)


class Drawing(Protocol):
    """How to draw a picture: the attributes of a `DicomImage`, but for its source."""

    @property
    def frame(self) -> int | None: ...
    @property
    def window(self) -> tuple[float, float] | None: ...
    @property
    def blank(self) -> Sequence[tuple[int, int, int, int]]: ...
    @property
    def burned_in(self) -> str: ...
    @property
    def longest_side(self) -> int | None: ...


def draw_png(source: bytes | Dataset, image: Drawing, max_pixels: int) -> bytes:
    """A frame as a PNG, drawn as `image` says.

    Raises:
        ImageError: It cannot be decoded, is too large, has one shade only, or may have text
            burned in.
    """
    drawn = drawn_frame(source, image, max_pixels)
    check_shades(drawn)
    return as_png(drawn)


def drawn_frame(source: bytes | Dataset, image: Drawing, max_pixels: int) -> Image.Image:
    """A frame as a picture, drawn as `image` says.

    Raises:
        ImageError: As for `draw_png`, but for its shades.
    """
    try:
        header = read_header(source)
        check_kind(header)
        _check_text(header, image)
        frame = _checked(header, image.frame, max_pixels)
        picture = _eight_bits(header, frame, image)
        shape = _shape(header, frame)
    except ImageError:
        raise
    except Exception:  # noqa: BLE001  # damaged files fail in many ways, and say what they hold
        raise ImageError("its pixels, or what says how to draw them, are damaged") from None
    for left, top, width, height in image.blank:
        picture[top : top + height, left : left + width] = 0
    return _resized(Image.fromarray(picture), shape, image.longest_side, max_pixels)


def _check_text(header: Dataset, image: Drawing) -> None:
    if image.burned_in == "refuse" and not image.blank and (reason := doubt(header)):
        raise ImageError(
            f"{reason}. Look at it, then give blank=[...] for its regions of text, or "
            'burned_in="accept"'
        )


def check_shades(drawn: Image.Image) -> None:
    """Refuse a picture on which nothing can be seen.

    Raises:
        ImageError: All of its pixels are of one shade.
    """
    if drawn.getcolors(1):
        raise ImageError(
            "drawn so, all of its pixels have one shade. Give another window=(centre, width) or "
            "another frame"
        )


def as_png(drawn: Image.Image) -> bytes:
    """The file of a picture."""
    file = BytesIO()
    drawn.save(file, "PNG")
    return file.getvalue()


def _resized(
    drawn: Image.Image, shape: float, longest_side: int | None, max_pixels: int
) -> Image.Image:
    """A picture with square pixels, and no larger than it may be."""
    width, height = drawn.width * max(1, 1 / shape), drawn.height * max(1, shape)
    if longest_side is not None:
        part = min(1, longest_side / max(width, height))
        width, height = width * part, height * part
    if width * height > max_pixels:
        raise ImageError(f"with square pixels it has more than {max_pixels:,} of them")
    size = max(1, round(width)), max(1, round(height))
    return drawn if size == drawn.size else drawn.resize(size, Image.Resampling.LANCZOS)


_SHAPES = ("PixelAspectRatio", "PixelSpacing", "ImagerPixelSpacing")


def _shape(header: Dataset, frame: int) -> float:
    """How many times as high as wide a pixel is (PS3.3, C.7.6.3.1.7 and 10.7.1.3)."""
    for holder in (*_groups(header, frame, ("PixelMeasuresSequence",)), header):
        for name in _SHAPES:
            held = holder.get(name)
            if isinstance(held, Sequence) and len(held) == 2:  # noqa: PLR2004  # down and across
                shape = float(held[0]) / (float(held[1]) or 1)
                return shape if 0 < shape < math.inf else 1.0
    return 1.0


# -- before anything is decoded --------------------------------------------------------------------


def _checked(header: Dataset, wanted: int | None, max_pixels: int) -> int:
    """The index of the frame to draw, once it is known to be there and of a bearable size."""
    rows, columns = int(header.Rows), int(header.Columns)
    count = int(header.get("NumberOfFrames") or 1)
    if rows * columns > max_pixels:
        raise ImageError(f"it has {columns}x{rows} pixels, which is more than {max_pixels:,}")
    if min(rows, columns, count) < 1 or count > _MOST_FRAMES:
        raise ImageError("its numbers of rows, columns and frames are not the size of a picture")
    if wanted is not None and wanted > count:
        raise ImageError(f"it has {count} frames, counted from 1; there is no frame {wanted}")
    frame = wanted - 1 if wanted is not None else count // 2
    syntax = header.file_meta.TransferSyntaxUID
    if syntax.is_private or not _can_decode(syntax):
        raise ImageError("its pixels are compressed in a way that cannot be decoded here")
    if syntax.is_compressed:
        sample_bytes = int(header.SamplesPerPixel) * (int(header.BitsAllocated) // 8)
        coded = get_frame(
            header.PixelData, frame, number_of_frames=count, extended_offsets=_offsets(header)
        )
        check_coded(coded, str(syntax), rows, columns, sample_bytes)
    return frame


def _offsets(header: Dataset) -> tuple[bytes, bytes] | None:
    if "ExtendedOffsetTable" not in header:
        return None
    return header.ExtendedOffsetTable, header.ExtendedOffsetTableLengths


def _can_decode(syntax: Any) -> bool:
    try:
        return bool(get_decoder(syntax).is_available)
    except NotImplementedError:
        return False


# -- 8 bits ----------------------------------------------------------------------------------------


def _eight_bits(header: Dataset, frame: int, image: Drawing) -> Array:
    kind = str(header.PhotometricInterpretation)
    if kind not in _PLAIN | _COLOURS:
        raise ImageError("its colours are stored in a way that is not known here")
    stored = pixel_array(header, index=frame)
    if kind == "PALETTE COLOR":
        return _from_bits(apply_color_lut(stored, header), _palette_bits(header))
    if kind in _COLOURS:
        return _from_bits(stored, int(header.BitsStored))
    grey = _grey(header, frame, image, stored)
    return _WHITE - grey if kind == "MONOCHROME1" else grey


def _palette_bits(header: Dataset) -> int:
    return int(header.RedPaletteColorLookupTableDescriptor[2])


def _from_bits(values: Array, bits: int) -> Array:
    """Values of so many bits in 8."""
    if bits <= 8:  # noqa: PLR2004  # unchanged
        return values.astype(np.uint8)
    return (values.astype(np.uint32) >> (bits - 8)).astype(np.uint8)


def _grey(header: Dataset, frame: int, image: Drawing, stored: Array) -> Array:
    said = _said(header, frame)
    little = bool(header.file_meta.TransferSyntaxUID.is_little_endian)
    values = _rescaled(stored, said, little=little)
    if image.window is None and (luts := said.get("VOILUTSequence")):
        return _from_bits(_looked_up(values, luts[0], little=little), int(luts[0].LUTDescriptor[2]))
    window = image.window or _window(said)
    if window is not None:
        curve = "LINEAR" if image.window else str(said.get("VOILUTFunction") or "LINEAR")
        return _windowed(values, *window, curve)
    shown = _shown(header, stored, image.blank)
    seen = values[shown] if shown.any() else values
    return _spread(values, float(seen.min()), float(seen.max()))


def _rescaled(stored: Array, said: Dataset, *, little: bool) -> Array:
    """Stored numbers as the file's own units, such as HU (PS3.3, C.11.1)."""
    if luts := said.get("ModalityLUTSequence"):
        return _looked_up(stored, luts[0], little=little).astype(np.float32)
    slope, intercept = said.get("RescaleSlope"), said.get("RescaleIntercept")
    values: Array = stored.astype(np.float32)
    return values * float(1 if slope is None else slope) + float(intercept or 0)


def _looked_up(values: Array, table: Dataset, *, little: bool) -> Array:
    """The entries of a table for numbers; those before and after it get its ends.

    Not by pydicom: its indexes are as wide as the entries, so that 8-bit tables of more than 256
    entries wrap around.
    """
    count, first, _ = (int(number) for number in table.LUTDescriptor)
    count = count or 1 << 16
    held = table.LUTData
    if isinstance(held, bytes):
        wide = len(held) >= 2 * count
        held = np.frombuffer(held, f"{'<' if little else '>'}u2" if wide else "u1")
    entries = np.asarray(held, np.uint16).reshape(-1)[:count]
    indexes = np.clip(np.rint(values).astype(np.int64) - first, 0, len(entries) - 1)
    found: Array = entries[indexes]
    return found


_SAID = (
    "RescaleSlope", "RescaleIntercept", "ModalityLUTSequence", "WindowCenter", "WindowWidth",
    "VOILUTFunction", "VOILUTSequence",
)  # fmt: skip


def _said(header: Dataset, frame: int) -> Dataset:
    """How to draw one frame: what is said of it, of all frames, or of the whole file."""
    said = Dataset()
    for holder in (header, *reversed(list(_groups(header, frame)))):
        for name in _SAID:
            if name in holder:
                said[name] = holder[name]
    return said


_SHADING = ("PixelValueTransformationSequence", "FrameVOILUTSequence")


def _groups(header: Dataset, frame: int, names: Sequence[str] = _SHADING) -> Iterator[Dataset]:
    each = header.get("PerFrameFunctionalGroupsSequence") or ()
    for item in (*each[frame : frame + 1], *(header.get("SharedFunctionalGroupsSequence") or ())):
        for name in names:
            yield from item.get(name) or ()


def _window(said: Dataset) -> tuple[float, float] | None:
    centre, width = (_first(said.get(name)) for name in ("WindowCenter", "WindowWidth"))
    if centre is None or width is None or width <= 0:
        return None
    return centre, width


def _first(value: Any) -> float | None:
    if value is None or value == "":
        return None
    return float(value if isinstance(value, (int, float)) else value[0])


def _windowed(values: Array, centre: float, width: float, curve: str) -> Array:
    """Values within a window as 0 to 255 (PS3.3, C.11.2.1.2 and C.11.2.1.3).

    LINEAR takes no width below 1: it counts in whole stored numbers. Where a file or a caller
    gives one, as for PET in SUV, it can only mean LINEAR_EXACT.
    """
    if curve == "SIGMOID":
        with np.errstate(over="ignore"):  # far outside it is 0
            part = 1 / (1 + np.exp(-4 * (values - centre) / width))
    elif curve == "LINEAR_EXACT" or width < 1:
        part = (values - centre) / width + 0.5
    else:
        part = (values - (centre - 0.5)) / max(width - 1, 1e-6) + 0.5
    shades: Array = np.rint(np.clip(part, 0, 1) * _WHITE).astype(np.uint8)
    return shades


def _spread(values: Array, least: float, greatest: float) -> Array:
    if greatest <= least:
        return np.zeros(values.shape, np.uint8)
    part = (values - least) / (greatest - least)
    shades: Array = np.rint(np.clip(part, 0, 1) * _WHITE).astype(np.uint8)
    return shades


def _shown(header: Dataset, stored: Array, blank: Sequence[tuple[int, int, int, int]]) -> Array:
    """Where there is something of the patient: neither padding nor a region to be blanked."""
    shown = np.ones(stored.shape, bool)
    if "PixelPaddingValue" in header:
        pads = [int(header.PixelPaddingValue)]
        pads.append(int(header.get("PixelPaddingRangeLimit") or pads[0]))
        shown &= (stored < min(pads)) | (stored > max(pads))
    for left, top, width, height in blank:
        shown[top : top + height, left : left + width] = False
    return shown
