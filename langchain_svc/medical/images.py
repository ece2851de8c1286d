"""The images of a patient: PNG or JPEG in base64, with nothing in their files but the picture.

Rests on the medical API, section 2: "base64-encoded images".
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from ..errors import SvcRequestError
from ..images import ImageError, decode_base64, read_image_header, without_metadata
from .dicom import DicomImage, codes_of

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
            modality, body_part = codes_of(image)
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
