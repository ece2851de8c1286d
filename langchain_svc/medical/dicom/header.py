"""The elements of a DICOM header that drawing needs, and what they say of text in the pixels.

Only the elements of `_NEEDED` are read. Those that name a patient never become objects, except the
PatientID if the caller expects one.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from io import BytesIO

from pydicom import Dataset, dcmread
from pydicom.dataset import FileMetaDataset
from pydicom.filereader import read_dataset
from pydicom.tag import BaseTag, Tag
from pydicom.uid import DeflatedExplicitVRLittleEndian

from ...images import ImageError

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
