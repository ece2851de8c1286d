"""`DicomImage`: one picture out of a DICOM file, for the image store and a patient's record.

A DICOM file says whose it is in hundreds of places. Nothing of it but the pixels of one frame is
used: they are drawn to 8 bits as the file says and written as a fresh PNG.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ._wire.pictures import PictureError
from .errors import SvcRequestError

if TYPE_CHECKING:
    from pydicom import Dataset

MOST_PIXELS = 50_000_000
MOST_FILE_BYTES = 512 * 1024 * 1024
MARKED = 132  # bytes from which a file is known
_MARK = b"DICM"


@dataclass(frozen=True)
class DicomImage:
    """One picture of a DICOM file, and how to draw it.

        from langchain_svc import DicomImage, PatientContext

        ct = DicomImage(Path("ct.dcm"), frame=12, window=(40, 400))
        patient = PatientContext(age=61, images=[ct])

    Bytes of a DICOM file and `pydicom` datasets are taken as they are, too, and then mean
    `DicomImage(it)`. It needs `pip install "langchain-svc[dicom]"`.

    Attributes:
        source: The file's bytes, its path, or a `pydicom` dataset.
        frame: Which frame, counted from 1; the middle one where it is None.
        window: Centre and width in the file's own units (HU for CT). Where it is None, the first
            window of the file, or its VOI LUT; where it has none, from the least to the greatest
            value.
        blank: Regions to paint black, as (left, top, width, height) in pixels of the frame. For a
            file that may have text burned in, they say that the rest was looked at.
        burned_in: "refuse" refuses a file that says that text is burned into its pixels or that
            its person can be recognised, and one of a kind where that is common and that does not
            say it is not so. "accept" takes it as it is.
        longest_side: A larger picture is made as small as that; None keeps its size.

    Raises:
        SvcRequestError: An attribute is out of its bounds.
    """

    source: bytes | bytearray | Path | Dataset = field(repr=False)
    frame: int | None = None
    window: tuple[float, float] | None = None
    blank: Sequence[tuple[int, int, int, int]] = ()
    burned_in: Literal["refuse", "accept"] = "refuse"
    longest_side: int | None = 2048

    def __post_init__(self) -> None:
        file = isinstance(self.source, (bytes, bytearray, Path)) or _is_dataset(self.source)
        for name, wrong, wanted in (
            ("source", not file, "a file's bytes, a pathlib.Path or a pydicom dataset"),
            ("frame", not _counts(self.frame), "a number from 1, or None for the middle one"),
            ("longest_side", not _counts(self.longest_side), "a number of pixels, or None"),
            ("burned_in", self.burned_in not in {"refuse", "accept"}, '"refuse" or "accept"'),
            (
                "window",
                not (self.window is None or _is_window(self.window)),
                "(centre, width), with a width of at least 1",
            ),
            (
                "blank",
                not all(_is_region(region) for region in self.blank),
                "regions (left, top, width, height) in whole pixels",
            ),
        ):
            if wrong:
                raise SvcRequestError(f"DicomImage: {name} must be {wanted}")

    def png(self) -> bytes:
        """The picture as a PNG of 8 bits, which holds pixels and nothing else.

        Raises:
            SvcRequestError: The file is no DICOM, has no pixels that can be decoded, is too large,
                or may have text burned in. The error never holds what is in the file.
            ImportError: The extra `dicom` is not installed.
        """
        try:
            return draw(self)
        except PictureError as error:
            raise SvcRequestError(f"This DICOM image cannot be taken: {error}") from None


def draw(image: DicomImage, max_pixels: int = MOST_PIXELS) -> bytes:
    """The picture as a PNG.

    Raises:
        PictureError: As for `DicomImage.png`.
        ImportError: The extra `dicom` is not installed.
    """
    try:
        from ._dicom.picture import draw_png  # noqa: PLC0415  # an extra
    except ImportError:
        raise ImportError(
            "DICOM needs pydicom, numpy and Pillow: pip install 'langchain-svc[dicom]'"
        ) from None
    source = image.source
    if isinstance(source, Path):
        source = _read_file(source)
    if isinstance(source, (bytes, bytearray)):
        source = bytes(source)
        if not is_dicom(source):
            raise PictureError("it is no DICOM file: DICM does not stand at its 129th byte")
    return draw_png(source, image, max_pixels)


def kind_of(image: DicomImage) -> tuple[str, str]:
    """The codes of Modality and BodyPartExamined, in capitals; "" for what is not said.

    Raises:
        PictureError: The file cannot be read.
        ImportError: The extra `dicom` is not installed.
    """
    from ._dicom.header import read_kind  # noqa: PLC0415  # an extra

    source = image.source
    return read_kind(_read_file(source) if isinstance(source, Path) else source)


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_FILE_BYTES + 1)
    except OSError as error:
        raise PictureError(f"the file cannot be read: {error.strerror}") from None
    if len(data) > MOST_FILE_BYTES:
        raise PictureError(f"the file has more than {MOST_FILE_BYTES:,} bytes")
    return data


def is_dicom(data: bytes) -> bool:
    """Whether bytes begin as a DICOM file does."""
    return data[MARKED - len(_MARK) : MARKED] == _MARK


def as_dicom(value: Any) -> DicomImage | None:
    """What is DICOM as a `DicomImage`, told by its content or its class; None for all else."""
    if isinstance(value, DicomImage):
        return value
    if isinstance(value, (bytes, bytearray)):
        return DicomImage(value) if is_dicom(bytes(value[:MARKED])) else None
    return DicomImage(value) if _is_dataset(value) else None


def _is_dataset(value: Any) -> bool:
    return any(kind.__module__ == "pydicom.dataset" for kind in type(value).__mro__)


def _counts(value: Any) -> bool:
    return value is None or (type(value) is int and value > 0)


def _is_window(window: Any) -> bool:
    if not isinstance(window, (tuple, list)) or len(window) != 2:  # noqa: PLR2004  # centre, width
        return False
    numbers = all(type(value) in {int, float} and math.isfinite(value) for value in window)
    return numbers and window[1] >= 1


def _is_region(region: Any) -> bool:
    if not isinstance(region, (tuple, list)) or len(region) != 4:  # noqa: PLR2004  # a rectangle
        return False
    whole = all(type(value) is int and value >= 0 for value in region)
    return whole and region[2] > 0 and region[3] > 0
