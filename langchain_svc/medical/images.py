"""The images of a patient's record: PNG, JPEG and DICOM, and of their files only the picture.

A DICOM file says whose it is in hundreds of places. Nothing but the pixels of a frame is used.

Rests on the medical API, section 2: "base64-encoded images".
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import InitVar
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass

from ..errors import SvcRequestError
from ..images import (
    ImageError,
    decode_base64,
    is_dicom,
    read_image_header,
    without_metadata,
)

if TYPE_CHECKING:
    from pydicom import Dataset

MOST_FILE_BYTES = 512 * 1024 * 1024


def _is_dataset(value: object) -> bool:
    return any(kind.__module__ == "pydicom.dataset" for kind in type(value).__mro__)


def _source(value: object) -> object:
    if isinstance(value, (bytes, bytearray, Path)) or _is_dataset(value):
        return value
    # Not a ValueError, which pydantic would keep together with the value.
    raise TypeError(
        "DicomImage: source must be a file's bytes, a pathlib.Path or a pydicom dataset"
    )


if TYPE_CHECKING:
    DicomSource: TypeAlias = bytes | bytearray | Path | Dataset
else:
    DicomSource = Annotated[Any, AfterValidator(_source)]

Positive = Annotated[int, Field(strict=True, ge=1)]
_FromZero = Annotated[int, Field(strict=True, ge=0)]
_Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


@dataclass(frozen=True, config=ConfigDict(hide_input_in_errors=True, extra="forbid"))
class DicomImage:
    """One picture of a DICOM file, and how to draw it.

        from langchain_svc import DicomImage, PatientContext

        ct = DicomImage(Path("ct.dcm"), frame=12, window=(40, 400))
        patient = PatientContext(age=61, images=[ct])

    It needs `pip install "langchain-svc[dicom]"`. A notebook displays it.

    In the words of DICOM PS3.15, Annex E: the picture keeps to the Basic Application Level
    Confidentiality Profile by construction, since it holds pixels and no attribute. The Clean
    Pixel Data Option is not done beyond `blank`, and the Clean Recognizable Visual Features Option
    is not done: nothing here looks at the picture.

    Attributes:
        source: The file's bytes, its path, or a `pydicom` dataset.
        frame: Which frame, counted from 1; the middle one where it is None.
        window: Centre and width in the file's own units (HU for CT, SUV for some PET). A width
            below 1 is drawn as LINEAR_EXACT. Where it is None, the first window of the file, or its
            VOI LUT; where it has neither, from the least to the greatest value.
        blank: Regions to paint black, as (left, top, width, height) in pixels of the frame. For a
            file that may have text burned in, they say that the rest was looked at.
        burned_in: "refuse" refuses a file that says that text is burned into its pixels or that
            its person can be recognised, and one of a kind where that is common and that does not
            say otherwise. "accept" takes it unchanged.
        longest_side: A larger picture is reduced to this many pixels; None keeps its size.

    With `expect_patient_id="..."` the constructor compares it with the file's PatientID, and keeps
    neither of them.

    Raises:
        TypeError: The source is none of these.
        ValidationError: An attribute is out of its bounds, or there is none of that name.
        SvcRequestError: The image is not of the expected patient, or does not say whose it is.
        ImportError: The extra `dicom` is not installed, and a patient is expected.
    """

    source: DicomSource = Field(repr=False)
    frame: Positive | None = None
    window: tuple[_Number, Annotated[_Number, Field(gt=0)]] | None = None
    blank: Sequence[tuple[_FromZero, _FromZero, Positive, Positive]] = ()
    burned_in: Literal["refuse", "accept"] = "refuse"
    longest_side: Positive | None = 2048
    expect_patient_id: InitVar[str | None] = None

    def __post_init__(self, expect_patient_id: str | None) -> None:
        if expect_patient_id is None:
            return
        if not isinstance(expect_patient_id, str) or not expect_patient_id.strip():
            raise SvcRequestError(
                "expect_patient_id must be the text of a PatientID, not empty"
            )
        try:
            patient_id = _extra().read_patient_id(_read(self.source))
        except ImageError as error:
            raise SvcRequestError(
                f"This DICOM image cannot be taken: {error}"
            ) from None
        if not patient_id:
            raise SvcRequestError(
                "This DICOM image does not say whose it is (PatientID), and a patient is expected"
            )
        if patient_id != expect_patient_id.strip():
            raise SvcRequestError(
                "This DICOM image is not of the expected patient: its PatientID is another one"
            )

    def png(self) -> bytes:
        """The picture as a PNG of 8 bits, which holds pixels and nothing else.

        Raises:
            SvcRequestError: The file cannot be read or decoded, is too large, is not a picture by
                itself, has one shade only, or may have text burned in; the error says which.
            ImportError: The extra `dicom` is not installed.
        """
        try:
            png: bytes = _extra().draw_png(
                _read(self.source),
                frame=self.frame,
                window=self.window,
                blank=self.blank,
                looked_at=self.burned_in == "accept" or bool(self.blank),
                longest_side=self.longest_side,
            )
        except ImageError as error:
            raise SvcRequestError(
                f"This DICOM image cannot be taken: {error}"
            ) from None
        return png

    def _repr_png_(self) -> bytes:
        return self.png()


_construct = DicomImage.__init__


@wraps(_construct)
def _construct_safely(self: DicomImage, *args: Any, **words: Any) -> None:
    """Construct without leaving the file and the patient's id in the frames of an error."""
    failure: Exception | None = None
    try:
        _construct(self, *args, **words)
    except ValidationError as error:
        # Pydantic wraps what `__post_init__` raises, together with the arguments.
        reason = error.errors(include_url=False)[0].get("ctx", {}).get("error")
        failure = reason if isinstance(reason, SvcRequestError) else error
    except ImportError as error:
        failure = error
    if failure is not None:
        failure.__context__ = None
        del self, args, words
        raise failure.with_traceback(None)


DicomImage.__init__ = _construct_safely  # type: ignore[method-assign]


def _extra() -> ModuleType:
    try:
        from . import dicom  # noqa: PLC0415  # pydicom and numpy take 0.3 s and are optional
    except ImportError as error:
        raise ImportError(
            "DICOM needs pydicom, its decoders and Pillow: pip install 'langchain-svc[dicom]'"
        ) from error
    return dicom


def _read(source: DicomSource) -> bytes | Dataset:
    if isinstance(source, Path):
        source = _read_file(source)
    if not isinstance(source, (bytes, bytearray)):
        return source
    if not is_dicom(source):
        raise ImageError(
            "it is not a DICOM file: DICM does not stand at its 129th byte"
        )
    return bytes(source)


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_FILE_BYTES + 1)
    except OSError as error:
        raise ImageError(f"the file cannot be read: {error.strerror}") from None
    if len(data) > MOST_FILE_BYTES:
        raise ImageError(f"the file has more than {MOST_FILE_BYTES:,} bytes")
    return data


# -- what a record takes ---------------------------------------------------------------------------

MOST_IMAGES = 8
MOST_IMAGE_BYTES = 8 * 1024 * 1024
MOST_PIXELS = 50_000_000  # by the header, which is read before anything is decompressed

_NO_IMAGE = (
    f"must be a PNG or JPEG in base64, of at most {MOST_IMAGE_BYTES // 1024**2} MB, plain or as a "
    "data URI; paths and addresses are not read, and the application gives DICOM as DicomImage(...)"
)
_STARTS = (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"\xff\xd8\xff")


def _base64_image(value: object) -> str:
    """The base64 of a PNG or JPEG, recognized by its content and not by its name."""
    if not isinstance(value, (str, bytes, bytearray)):
        raise ValueError(_NO_IMAGE)  # noqa: TRY004  # pydantic reports ValueErrors
    try:
        if isinstance(value, str):
            data = decode_base64(value, MOST_IMAGE_BYTES)
        else:
            data = bytes(value)
        if len(data) > MOST_IMAGE_BYTES or not data.startswith(_STARTS):
            raise ValueError(_NO_IMAGE)
        read_image_header(data, MOST_PIXELS)
        bare = without_metadata(data)
    except ImageError as error:
        raise ValueError(f"{_NO_IMAGE}; {error}") from None
    return base64.b64encode(bare).decode("ascii")


def _clinical_image(value: object) -> str:
    """The same for the application, which may also give DICOM: that is drawn as a PNG."""
    if not isinstance(value, DicomImage):
        return _base64_image(value)
    try:
        png = value.png()
    except SvcRequestError as error:
        raise ValueError(error.message) from None
    return _base64_image(png)


_MODALITIES = {
    "CT": "CT", "MR": "MRI", "CR": "X-ray", "DX": "X-ray", "MG": "mammography", "US": "ultrasound",
    "PT": "PET", "NM": "nuclear medicine", "XA": "angiography",
}  # fmt: skip
# Only these are said: somebody may have typed anything into the field.
_BODY_PARTS = frozenset(
    """
    abdomen ankle arm brain breast chest elbow extremity foot hand head heart hip kidney knee leg
    liver lung neck pelvis prostate shoulder skull spine wrist
    """.split()
)


def imaging_type(images: Sequence[Any]) -> str | None:
    """What DICOM images are of, such as "chest CT": by Modality and BodyPartExamined.

    None where none of them is DICOM or says it; an image that cannot be read says nothing here.
    """
    types: dict[str, None] = {}
    for image in images[:MOST_IMAGES]:
        if not isinstance(image, DicomImage):
            continue
        try:
            modality, body_part = _extra().read_codes(_read(image.source))
        except (ImageError, ImportError):
            continue
        name = _MODALITIES.get(modality)
        if name is None:
            continue
        body_part = body_part.lower()
        if body_part in _BODY_PARTS:
            name = f"{body_part} {name}"
        types[name] = None
    return ", ".join(types) or None


def _without_repeats(images: tuple[str, ...]) -> tuple[str, ...]:
    """No image twice: a finding would count as two."""
    return tuple(dict.fromkeys(images))


# What a model may write, and what an application may give: decoders of DICOM are not for a model.
if TYPE_CHECKING:
    Images: TypeAlias = Sequence[str | bytes]
    ClinicalImages: TypeAlias = Sequence[str | bytes | DicomImage]
else:
    _Image = Annotated[str, BeforeValidator(_base64_image)]
    _ClinicalImage = Annotated[str, BeforeValidator(_clinical_image)]
    _MOST = Field(max_length=MOST_IMAGES)
    _ONCE = AfterValidator(_without_repeats)
    Images = Annotated[tuple[_Image, ...], _MOST, _ONCE]
    ClinicalImages = Annotated[tuple[_ClinicalImage, ...], _MOST, _ONCE]
