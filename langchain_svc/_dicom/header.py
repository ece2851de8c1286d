"""What of a DICOM header is needed to draw its pixels, and what it says of text in them.

Only the elements of `_NEEDED` are read; those that name a patient never become objects.
"""

from __future__ import annotations

from io import BytesIO
from typing import Any

from pydicom import Dataset, dcmread
from pydicom.datadict import tag_for_keyword

from .._wire.pictures import PictureError

_NEEDED = """
    SOPClassUID Modality ImageType ConversionType BurnedInAnnotation RecognizableVisualFeatures
    SamplesPerPixel PhotometricInterpretation PlanarConfiguration NumberOfFrames Rows Columns
    BitsAllocated BitsStored HighBit PixelRepresentation PixelPaddingValue PixelPaddingRangeLimit
    RescaleSlope RescaleIntercept ModalityLUTSequence
    WindowCenter WindowWidth VOILUTFunction VOILUTSequence
    SharedFunctionalGroupsSequence PerFrameFunctionalGroupsSequence
    ExtendedOffsetTable ExtendedOffsetTableLengths PixelData
    RedPaletteColorLookupTableDescriptor RedPaletteColorLookupTableData
    GreenPaletteColorLookupTableDescriptor GreenPaletteColorLookupTableData
    BluePaletteColorLookupTableDescriptor BluePaletteColorLookupTableData
    SegmentedRedPaletteColorLookupTableData SegmentedGreenPaletteColorLookupTableData
    SegmentedBluePaletteColorLookupTableData
""".split()  # noqa: SIM905  # a list of that length is no easier to read
_TAGS = [tag for name in _NEEDED if (tag := tag_for_keyword(name)) is not None]

_DEFLATED = b"1.2.840.10008.1.2.1.99"
_META_BYTES = 8192  # enough for the file's own header, which says so


def read_header(source: bytes | Dataset) -> Dataset:
    """The elements that are needed, pixels included but not decoded.

    Raises:
        PictureError: It cannot be read, or there are no pixels.
    """
    if isinstance(source, Dataset):
        read: Dataset = source
    else:
        read = _read(source)
    kept = Dataset()
    for tag in _TAGS:
        if tag in read:
            kept[tag] = read[tag]
    if "PixelData" not in kept:
        raise PictureError("it holds no pixels (a report, a plan or a structure, for example)")
    meta = getattr(read, "file_meta", None)
    if meta is None or "TransferSyntaxUID" not in meta:
        raise PictureError("it does not say how its pixels are stored (TransferSyntaxUID)")
    kept.file_meta = meta
    return kept


def _read(data: bytes) -> Dataset:
    # Such a file is inflated as a whole before anything of it can be looked at.
    if _DEFLATED in data[:_META_BYTES]:
        raise PictureError("it is deflated as a whole; save it with another transfer syntax")
    try:
        read: Dataset = dcmread(BytesIO(data), specific_tags=_TAGS)
    except Exception:  # noqa: BLE001  # damaged files fail in many ways, and say what they hold
        raise PictureError("its DICOM header is damaged or cut short") from None
    return read


def read_kind(source: bytes | bytearray | Dataset) -> tuple[str, str]:
    """Modality and BodyPartExamined in capitals; "" for what the file does not say.

    Raises:
        PictureError: It cannot be read.
    """
    if isinstance(source, Dataset):
        read: Dataset = source
    else:
        if _DEFLATED in source[:_META_BYTES]:
            raise PictureError("it is deflated as a whole")
        try:
            read = dcmread(
                BytesIO(source),
                stop_before_pixels=True,
                specific_tags=["Modality", "BodyPartExamined"],
            )
        except Exception:  # noqa: BLE001  # damaged files fail in many ways, and say what they hold
            raise PictureError("its DICOM header is damaged or cut short") from None
    return _code(read, "Modality"), _code(read, "BodyPartExamined")


def _code(header: Dataset, name: str) -> str:
    """A short text, without the check by pydicom, which logs a value that is no code."""
    held = header.get_item(name) if name in header else None
    value: Any = None if held is None else held.value
    text = value.decode("ascii", "replace") if isinstance(value, bytes) else str(value or "")
    return text.upper().strip(" \0")


# -- text in the picture ---------------------------------------------------------------------------

_SECONDARY_CAPTURES = "1.2.840.10008.5.1.4.1.1.7"
# Whose detectors make the pixels themselves; the others often photograph or draw a screen.
_DIRECT = frozenset({"CT", "DX", "MG", "MR", "NM", "PT"})


def doubt(header: Dataset) -> str:
    """Why a picture may show who the patient is; empty where nothing says so."""
    if _text(header, "BurnedInAnnotation") == "YES":
        return "its header says that text is burned into the pixels (BurnedInAnnotation YES)"
    if _text(header, "RecognizableVisualFeatures") == "YES":
        return "its header says that the person can be recognised (RecognizableVisualFeatures YES)"
    if _text(header, "BurnedInAnnotation") == "NO":
        return ""
    drawn = "SCREEN SAVE" in _text(header, "ImageType") or "ConversionType" in header
    captured = _text(header, "SOPClassUID").startswith(_SECONDARY_CAPTURES)
    if _text(header, "Modality") in _DIRECT and not drawn and not captured:
        return ""
    return (
        "it does not say whether text is burned into the pixels (BurnedInAnnotation), and images "
        "of its kind (ultrasound, secondary captures, photographs and the like) often name the "
        "patient"
    )


def _text(header: Dataset, name: str) -> str:
    value: Any = header.get(name)
    if value is None:
        return ""
    many = not isinstance(value, str) and hasattr(value, "__iter__")
    return ("\\".join(map(str, value)) if many else str(value)).upper().strip()
