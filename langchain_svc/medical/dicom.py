"""One frame of a DICOM file as a PNG of 8 bits, drawn by pydicom.

Only the elements of `_NEEDED` are read. Those that name a patient never become objects, except the
PatientID if the caller expects one.

Rests on DICOM PS3.3, C.11.1 (modality LUT), C.11.2 (VOI LUT and windows) and C.7.6.3 (pixels).
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any, TypeAlias

import numpy as np
from openjpeg.utils import get_parameters
from PIL import Image
from pydicom import Dataset, dcmread
from pydicom.dataset import FileMetaDataset
from pydicom.encaps import get_frame
from pydicom.filereader import read_dataset
from pydicom.pixels.decoders.base import get_decoder
from pydicom.pixels.processing import (
    apply_color_lut,
    apply_modality_lut,
    apply_windowing,
)
from pydicom.pixels.utils import get_expected_length, pixel_array
from pydicom.tag import BaseTag, Tag
from pydicom.uid import UID, DeflatedExplicitVRLittleEndian, RLELossless

from ..images import JPEG_FRAMES, ImageError, jpeg_size

_NEEDED = """
    SOPClassUID Modality BodyPartExamined
    ImageType ConversionType BurnedInAnnotation RecognizableVisualFeatures
    SamplesPerPixel PhotometricInterpretation PlanarConfiguration NumberOfFrames Rows Columns
    BitsAllocated BitsStored HighBit PixelRepresentation PixelPaddingValue PixelPaddingRangeLimit
    RescaleSlope RescaleIntercept ModalityLUTSequence
    WindowCenter WindowWidth VOILUTFunction VOILUTSequence
    PixelAspectRatio PixelSpacing ImagerPixelSpacing
    SharedFunctionalGroupsSequence PerFrameFunctionalGroupsSequence
    ExtendedOffsetTable ExtendedOffsetTableLengths PixelData
    RedPaletteColorLookupTableDescriptor RedPaletteColorLookupTableData
    GreenPaletteColorLookupTableDescriptor GreenPaletteColorLookupTableData
    BluePaletteColorLookupTableDescriptor BluePaletteColorLookupTableData
    SegmentedRedPaletteColorLookupTableData SegmentedGreenPaletteColorLookupTableData
    SegmentedBluePaletteColorLookupTableData
""".split()


_TAGS = [Tag(name) for name in _NEEDED]
_PREAMBLE = 132  # bytes before the first element
_MOST_INFLATED = 128 * 1024 * 1024


def read_header(source: bytes | Dataset) -> Dataset:
    """The elements that are needed, pixels included but not decoded."""
    dataset = source if isinstance(source, Dataset) else _read_elements(source)
    header = Dataset()
    for tag in _TAGS:
        if tag in dataset:
            # Not converted: a warning would repeat a wrong value.
            header[tag] = dataset.get_item(tag)
    if "PixelData" not in header:
        raise ImageError(
            "it holds no pixels (a report, a plan or a structure, for example)"
        )
    meta = getattr(dataset, "file_meta", None)
    if meta is None or "TransferSyntaxUID" not in meta:
        raise ImageError(
            "it does not say how its pixels are stored (TransferSyntaxUID)"
        )
    header.file_meta = meta
    return header


def read_codes(source: bytes | Dataset) -> tuple[str, str]:
    """Modality and BodyPartExamined in capitals; "" for what the file does not say."""
    header = read_header(source)
    return _text(header, "Modality"), _text(header, "BodyPartExamined")


def read_patient_id(source: bytes | Dataset) -> str:
    """The PatientID without padding; "" where the file has none."""
    tags = [Tag("PatientID")]
    header = source if isinstance(source, Dataset) else _read_elements(source, tags)
    return _value(header, "PatientID")


def _read_elements(data: bytes, tags: Sequence[BaseTag] = _TAGS) -> Dataset:
    try:
        file = BytesIO(data)
        file.seek(_PREAMBLE)
        # As pydicom does it; but pydicom then inflates without a bound.
        meta = read_dataset(
            file,
            is_implicit_VR=False,
            is_little_endian=True,
            stop_when=lambda tag, _, __: tag.group != 2,  # file meta information
        )
        if meta.get("TransferSyntaxUID") != DeflatedExplicitVRLittleEndian:
            return dcmread(BytesIO(data), specific_tags=[*tags])
        dataset = read_dataset(
            BytesIO(_inflated(file.read())),
            is_implicit_VR=False,
            is_little_endian=True,
            specific_tags=[*tags],
        )
        dataset.file_meta = FileMetaDataset(meta)
    except ImageError:
        raise
    except Exception:  # noqa: BLE001  # damaged files fail in many ways, and say what they hold
        raise ImageError("its DICOM header is damaged or cut short") from None
    return dataset


def _inflated(data: bytes) -> bytes:
    """A data set that is deflated as a whole (PS3.5, A.5)."""
    inflating = zlib.decompressobj(-zlib.MAX_WBITS)
    inflated = inflating.decompress(data, _MOST_INFLATED)
    if inflating.unconsumed_tail:
        raise ImageError(f"it inflates to more than {_MOST_INFLATED:,} bytes")
    return inflated


# -- what is refused -------------------------------------------------------------------------------

_NO_PICTURES = {
    "SEG": (
        "1.2.840.10008.5.1.4.1.1.66.",
        "a segmentation (SEG): its pixels are labels",
    ),
    "RTDOSE": ("1.2.840.10008.5.1.4.1.1.481.2", "a dose distribution (RTDOSE)"),
    "RTIMAGE": (
        "1.2.840.10008.5.1.4.1.1.481.1",
        "an image of a radiation beam (RTIMAGE)",
    ),
}
_SECONDARY_CAPTURES = "1.2.840.10008.5.1.4.1.1.7"
# Their detectors make the pixels; other modalities often photograph or draw a screen.
_DIRECT = frozenset({"CR", "CT", "DX", "MG", "MR", "NM", "PT"})


def check_kind(header: Dataset, *, looked_at: bool) -> None:
    """Refuse what is no picture by itself, and a picture that may show who the patient is."""
    modality = _text(header, "Modality")
    object_class = _text(header, "SOPClassUID")
    for kind, (prefix, name) in _NO_PICTURES.items():
        if modality == kind or object_class.startswith(prefix):
            raise ImageError(
                f"it is {name}, which means little without the image that it belongs to. Draw it "
                "over that image, and give the result as PNG"
            )
    if not looked_at and (reason := _identifying(header)):
        raise ImageError(
            f"{reason}. Look at it, then give blank=[...] for its regions of text, or "
            'burned_in="accept"'
        )


def _identifying(header: Dataset) -> str:
    """Why a picture may show who the patient is; empty if nothing suggests it."""
    if _text(header, "BurnedInAnnotation") == "YES":
        return "its header says that text is burned into the pixels (BurnedInAnnotation YES)"
    if _text(header, "RecognizableVisualFeatures") == "YES":
        return "its header says that the person can be recognised (RecognizableVisualFeatures YES)"
    if _text(header, "BurnedInAnnotation") == "NO":
        return ""
    if _text(header, "Modality") in _DIRECT and not _may_be_drawn(header):
        return ""
    return (
        "it does not say whether text is burned into the pixels (BurnedInAnnotation), and images "
        "of its kind (ultrasound, secondary captures, photographs and the like) often name the "
        "patient"
    )


def _may_be_drawn(header: Dataset) -> bool:
    """Whether a picture is of a screen, or was made of another picture and may have a legend."""
    kind = _text(header, "ImageType")
    if "SCREEN SAVE" in kind or "ConversionType" in header:
        return True
    if _text(header, "SOPClassUID").startswith(_SECONDARY_CAPTURES):
        return True
    return "SECONDARY" in kind


def _text(header: Dataset, name: str) -> str:
    return _value(header, name).upper()


def _value(header: Dataset, name: str) -> str:
    if name not in header:
        return ""
    value: object = header.get_item(name).value
    if isinstance(value, bytes):
        value = _decoded(value)
    return str(value or "").strip(" \0")


def _decoded(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


# -- the picture -----------------------------------------------------------------------------------

MOST_PIXELS = 50_000_000
_MOST_FRAMES = 100_000
_WHITE = 255
_PLAIN = frozenset({"MONOCHROME1", "MONOCHROME2"})
_COLOURS = frozenset({
    "RGB", "PALETTE COLOR", "YBR_FULL", "YBR_FULL_422", "YBR_PARTIAL_420", "YBR_ICT", "YBR_RCT",
})  # fmt: skip
Array: TypeAlias = "np.ndarray[Any, Any]"
Window: TypeAlias = tuple[float, float]  # centre and width
Region: TypeAlias = tuple[int, int, int, int]  # left, top, width, height


def draw_png(
    source: bytes | Dataset,
    *,
    frame: int | None,
    window: Window | None,
    blank: Sequence[Region],
    looked_at: bool,
    longest_side: int | None,
) -> bytes:
    """A frame as a PNG, drawn as a `DicomImage` says; an ImageError says why it is not drawn."""
    try:
        header = read_header(source)
        check_kind(header, looked_at=looked_at)
        index = _frame_index(header, frame)
        _check_stored(header, index)
        aspect = _aspect(header, index)
        shades = _shades(header, index, window, blank)
    except ImageError:
        raise
    except NotImplementedError:
        raise ImageError(
            "its pixels are stored in a way that cannot be decoded here"
        ) from None
    except Exception:  # noqa: BLE001  # damaged files fail in many ways, and say what they hold
        raise ImageError(
            "its pixels, or what says how to draw them, are damaged"
        ) from None
    shades[_mask(shades, blank)] = 0
    picture = _resized(Image.fromarray(shades), aspect, longest_side)
    if picture.getcolors(1):
        raise ImageError(
            "drawn so, all of its pixels have one shade. Give another window=(centre, width) or "
            "another frame"
        )
    file = BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def _mask(pixels: Array, regions: Sequence[Region]) -> Array:
    """Where pixels lie in one of the regions."""
    mask = np.zeros(pixels.shape[:2], bool)
    for x, y, width, height in regions:
        mask[y : y + height, x : x + width] = True
    return mask


# -- before anything is decoded --------------------------------------------------------------------


def _frame_index(header: Dataset, frame: int | None) -> int:
    """The index of the frame to draw, once it is known to be there and not too large."""
    rows = int(header.Rows)
    columns = int(header.Columns)
    count = int(header.get("NumberOfFrames") or 1)
    if rows * columns > MOST_PIXELS:
        raise ImageError(
            f"it has {columns}x{rows} pixels, which is more than {MOST_PIXELS:,}"
        )
    if min(rows, columns, count) < 1 or count > _MOST_FRAMES:
        raise ImageError(
            "its numbers of rows, columns and frames are not the size of a picture"
        )
    if frame is None:
        return count // 2
    if frame > count:
        raise ImageError(
            f"it has {count} frames, counted from 1; there is no frame {frame}"
        )
    return frame - 1


def _check_stored(header: Dataset, index: int) -> None:
    """Refuse pixels that cannot be decoded, or are of another size than the header says."""
    syntax = header.file_meta.TransferSyntaxUID
    if not get_decoder(syntax).is_available:
        raise NotImplementedError
    if syntax.is_compressed:
        _check_compressed(header, index, syntax)
    else:
        _check_uncompressed(header)


def _check_uncompressed(header: Dataset) -> None:
    """Refuse more rows or frames than the header says: a part would pass for the whole.

    Zeros at the end are padding, and so is whatever is shorter than a row.
    """
    length = get_expected_length(header)
    row = length // (int(header.Rows) * int(header.get("NumberOfFrames") or 1))
    excess = header.PixelData[length:]
    if len(excess) >= row and any(excess):
        raise ImageError(
            "it holds more pixels than the rows and frames that its header gives"
        )


def _check_compressed(header: Dataset, index: int, syntax: UID) -> None:
    offsets = None
    if "ExtendedOffsetTable" in header:
        offsets = (header.ExtendedOffsetTable, header.ExtendedOffsetTableLengths)
    coded = get_frame(
        header.PixelData,
        index,
        number_of_frames=int(header.get("NumberOfFrames") or 1),
        extended_offsets=offsets,
    )
    sample_bytes = int(header.SamplesPerPixel) * (int(header.BitsAllocated) // 8)
    check_coded(coded, syntax, int(header.Rows), int(header.Columns), sample_bytes)


# -- 8 bits ----------------------------------------------------------------------------------------


def _shades(
    header: Dataset, index: int, window: Window | None, blank: Sequence[Region]
) -> Array:
    kind = str(header.PhotometricInterpretation)
    if kind not in _PLAIN | _COLOURS:
        raise NotImplementedError
    stored = pixel_array(header, index=index)
    if kind == "PALETTE COLOR":
        bits = int(header.RedPaletteColorLookupTableDescriptor[2])
        return _eight_bits(apply_color_lut(stored, header), bits)
    if kind in _COLOURS:
        return _eight_bits(stored, int(header.BitsStored))
    _use_frames_own(header, index)
    grey = _grey(header, stored, window, blank)
    if kind == "MONOCHROME1":
        return _WHITE - grey
    return grey


def _eight_bits(values: Array, bits: int) -> Array:
    return (values >> max(0, bits - 8)).astype(np.uint8)


def _grey(
    header: Dataset, stored: Array, window: Window | None, blank: Sequence[Region]
) -> Array:
    """Shades by the caller's window, or else by the file's table or window."""
    values = apply_modality_lut(stored, header)
    if window is not None:
        header.pop("VOILUTSequence", None)
        header.pop("VOILUTFunction", None)
    if tables := header.get("VOILUTSequence"):
        is_little_endian = bool(header.file_meta.TransferSyntaxUID.is_little_endian)
        return _looked_up(values, tables[0], is_little_endian=is_little_endian)
    window = window or _own_window(header)
    if window:
        parts = _in_window(values, header, *window)
    else:
        visible = values[_is_patient(header, stored) & ~_mask(stored, blank)]
        parts = _in_range(values, visible)
    shades: Array = np.rint(np.clip(parts, 0, 1) * _WHITE).astype(np.uint8)
    return shades


def _in_range(values: Array, visible: Array) -> Array:
    """Values as parts of the range of the visible ones, 0 to 1."""
    least = 0.0
    greatest = 0.0
    if visible.size:
        least = float(visible.min())
        greatest = float(visible.max())
    parts: Array = (values - least) / (greatest - least or 1)
    return parts


def _in_window(values: Array, header: Dataset, centre: float, width: float) -> Array:
    """Values as parts of a window, 0 to 1.

    LINEAR takes no width below 1: it counts in whole stored numbers. Where a file or a caller
    gives one, as for PET in SUV, it can only mean LINEAR_EXACT.
    """
    curve = str(header.get("VOILUTFunction") or "LINEAR")
    if curve == "LINEAR" and width < 1:
        curve = "LINEAR_EXACT"
    header.add_new("VOILUTFunction", "CS", curve)
    header.add_new("WindowCenter", "FD", centre)
    header.add_new("WindowWidth", "FD", width)
    with np.errstate(over="ignore"):  # far outside a sigmoid
        least, greatest = apply_windowing(np.array([-np.inf, np.inf]), header)
        shades = apply_windowing(values, header)
    parts: Array = (shades - least) / (greatest - least or 1)
    return parts


def _own_window(header: Dataset) -> Window | None:
    centre = _first(header.get("WindowCenter"))
    width = _first(header.get("WindowWidth"))
    if centre is None or width is None or width <= 0:
        return None
    return centre, width


def _first(value: Sequence[float] | float | str | None) -> float | None:
    if value is None or value == "":
        return None
    if isinstance(value, Sequence):
        value = value[0]
    return float(value)


def _looked_up(values: Array, table: Dataset, *, is_little_endian: bool) -> Array:
    """The entries of a table for values; values before and after the table get its ends.

    pydicom is not used here: its indexes wrap around in 8-bit tables of more than 256 entries.
    """
    count, first, bits = (int(number) for number in table.LUTDescriptor)
    count = count or 1 << 16
    entries = table.LUTData
    if isinstance(entries, bytes):
        if len(entries) < 2 * count:
            entries = np.frombuffer(entries, "u1")
        else:
            entries = np.frombuffer(entries, "<u2" if is_little_endian else ">u2")
    entries = np.asarray(entries[:count], np.uint16)
    indexes = np.clip(np.rint(values).astype(np.int64) - first, 0, count - 1)
    return _eight_bits(entries[indexes], bits)


def _is_patient(header: Dataset, stored: Array) -> Array:
    """Where the pixels show the patient and not padding."""
    if "PixelPaddingValue" not in header:
        return np.ones(stored.shape, bool)
    first = int(header.PixelPaddingValue)
    limit = header.get("PixelPaddingRangeLimit")
    last = first if limit is None else int(limit)
    return (stored < min(first, last)) | (stored > max(first, last))


# -- what an enhanced file says of one frame, and the shape of pixels ------------------------------

_SHADING = (
    "RescaleSlope", "RescaleIntercept", "ModalityLUTSequence", "WindowCenter", "WindowWidth",
    "VOILUTFunction", "VOILUTSequence",
)  # fmt: skip
_SHAPES = ("PixelAspectRatio", "PixelSpacing", "ImagerPixelSpacing")


def _use_frames_own(header: Dataset, index: int) -> None:
    """Let what an enhanced file says of one frame, or else of all frames, replace its header."""
    groups = _groups(
        header, index, "PixelValueTransformationSequence", "FrameVOILUTSequence"
    )
    for group in reversed(list(groups)):
        for name in _SHADING:
            if name in group:
                header[name] = group[name]
    for name, neutral in (("RescaleSlope", 1), ("RescaleIntercept", 0)):
        if header.get(name) is None:
            header.add_new(name, "DS", neutral)


def _groups(header: Dataset, index: int, *names: str) -> Iterator[Dataset]:
    frames = header.get("PerFrameFunctionalGroupsSequence") or ()
    shared = header.get("SharedFunctionalGroupsSequence") or ()
    for item in (*frames[index : index + 1], *shared):
        for name in names:
            yield from item.get(name) or ()


def _aspect(header: Dataset, index: int) -> float:
    """How many times as high as wide a pixel is (PS3.3, C.7.6.3.1.7 and 10.7.1.3)."""
    for item in (*_groups(header, index, "PixelMeasuresSequence"), header):
        for name in _SHAPES:
            spacing = item.get(name)
            if isinstance(spacing, Sequence) and len(spacing) == 2:  # down and across
                aspect = float(spacing[0]) / (float(spacing[1]) or 1)
                return aspect if 0 < aspect < math.inf else 1.0
    return 1.0


def _resized(
    picture: Image.Image, aspect: float, longest_side: int | None
) -> Image.Image:
    """A picture with square pixels, and no larger than it may be."""
    width = picture.width * max(1, 1 / aspect)
    height = picture.height * max(1, aspect)
    if longest_side is not None:
        scale = min(1, longest_side / max(width, height))
        width *= scale
        height *= scale
    if width * height > MOST_PIXELS:
        raise ImageError(f"with square pixels it has more than {MOST_PIXELS:,} of them")
    size = (max(1, round(width)), max(1, round(height)))
    if size == picture.size:
        return picture
    return picture.resize(size, Image.Resampling.LANCZOS)


# -- coded -----------------------------------------------------------------------------------------
# Whether compressed pixels unfold to what the header says, checked before they are unfolded.

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
