"""`DicomImage` and `DicomSeries`: pictures out of DICOM files, for the image store and a patient's
record.

A DICOM file says whose it is in hundreds of places. Nothing of it but the pixels of frames is used:
they are drawn to 8 bits as the file says and written as a fresh PNG.
"""  # noqa: D205  # one sentence over two lines

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ._images import ImageError
from .errors import SvcRequestError

if TYPE_CHECKING:
    from pydicom import Dataset
else:
    Dataset = Any  # hints are read at run time too, and pydicom may not be installed

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

    Bytes of a DICOM file and `pydicom` datasets are taken too, and then mean
    `DicomImage(it)`. It needs `pip install "langchain-svc[dicom]"`.

    In the words of DICOM PS3.15, Annex E: the picture keeps to the Basic Application Level
    Confidentiality Profile by construction, since it holds pixels and no attribute. The Clean
    Pixel Data Option is not done beyond `blank`, and the Clean Recognizable Visual Features Option
    is not done: nothing here looks at the picture.

    Attributes:
        source: The file's bytes, its path, or a `pydicom` dataset.
        frame: Which frame, counted from 1; the middle one where it is None.
        window: Centre and width in the file's own units (HU for CT, SUV for some PET). A width
            below 1 is drawn as LINEAR_EXACT. Where it is None, the first window of the file, or its
            VOI LUT; where it has none, from the least to the greatest value.
        blank: Regions to paint black, as (left, top, width, height) in pixels of the frame. For a
            file that may have text burned in, they say that the rest was looked at.
        burned_in: "refuse" refuses a file that says that text is burned into its pixels or that
            its person can be recognised, and one of a kind where that is common and that does not
            say it is not so. "accept" takes it unchanged.
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
                "(centre, width), with a width above 0",
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
            SvcRequestError: The file is not DICOM, is not a picture (SEG, RTDOSE, RTIMAGE), has no
                pixels that can be decoded, is too large, shows one single shade, or may have text
                burned in. The error never holds what is in the file.
            ImportError: The extra `dicom` is not installed.
        """
        try:
            return draw(self)
        except ImageError as error:
            raise SvcRequestError(f"This DICOM image cannot be taken: {error}") from None


@dataclass(frozen=True)
class DicomSeries:
    """The slices of one series, such as a CT of the chest, to be seen on one contact sheet.

        from langchain_svc import DicomSeries, PatientContext

        ct = DicomSeries(Path("chest_ct"), window=(40, 400))
        patient = PatientContext(age=61, images=[ct.montage(12)])

    Attributes:
        folder: Where the files are, of this series only. Files that are no DICOM are passed over,
            and so are folders inside.
        window: As of `DicomImage`, for all slices. Without it each slice has its own.
        burned_in: As of `DicomImage`.

    Raises:
        SvcRequestError: An attribute is out of its bounds.
    """

    folder: Path = field(repr=False)
    window: tuple[float, float] | None = None
    burned_in: Literal["refuse", "accept"] = "refuse"

    def __post_init__(self) -> None:
        if not isinstance(self.folder, Path):
            raise SvcRequestError("DicomSeries: folder must be a pathlib.Path")
        self._slice(self.folder, None, None)  # which checks the others

    def montage(self, slices: int = 20, *, longest_side: int = 2048) -> bytes:
        """Slices side by side as one PNG of 8 bits, which holds pixels and nothing else.

        They are every n-th slice, row by row, in the order of their positions along the normal of
        their plane (for an axial CT from the feet to the head); where they have none, or lie in
        several planes, in the order of InstanceNumber.

        Args:
            slices: The most slices, from 1 to 100. Frames of a file count as slices.
            longest_side: The longest side of the sheet in pixels.

        Raises:
            SvcRequestError: There is no such folder, it holds several series or none, or a slice
                cannot be taken: as for `DicomImage.png`, but a slice may have one single shade.
            ImportError: The extra `dicom` is not installed.
        """
        if type(slices) is not int or not 1 <= slices <= _MOST_SLICES:
            raise SvcRequestError(f"montage: slices must be a number from 1 to {_MOST_SLICES}")
        if type(longest_side) is not int or longest_side < slices:
            raise SvcRequestError("montage: longest_side must be a number of pixels, such as 2048")
        try:
            return self._montage(slices, longest_side)
        except ImageError as error:
            raise SvcRequestError(f"This DICOM series cannot be taken: {error}") from None

    def _montage(self, slices: int, longest_side: int) -> bytes:
        drawing, series = _extra("picture"), _extra("series")
        files = _files(self.folder)
        chosen = series.every_nth(series.ordered(map(_read_dicom, files)), slices)
        side = longest_side // series.columns_of(len(chosen))
        pictures = []
        for one in chosen:
            image = self._slice(files[one.file], one.frame, side)
            try:
                data = _read_dicom(files[one.file])
                pictures.append(drawing.drawn_frame(data, image, MOST_PIXELS))
            except ImageError as error:
                raise ImageError(f"file {one.file + 1} by name: {error}") from None
        drawn = series.sheet(pictures)
        drawing.check_shades(drawn)
        made: bytes = drawing.as_png(drawn)
        return made

    def _slice(self, file: Path, frame: int | None, side: int | None) -> DicomImage:
        return DicomImage(
            file, frame=frame, window=self.window, burned_in=self.burned_in, longest_side=side
        )


_MOST_SLICES = 100  # on one sheet
_MOST_FILES = 5_000


def _files(folder: Path) -> list[Path]:
    try:
        files = sorted(path for path in folder.iterdir() if path.is_file())
    except OSError as error:
        raise ImageError(f"the folder cannot be read: {error.strerror}") from None
    if len(files) > _MOST_FILES:
        raise ImageError(f"the folder has more than {_MOST_FILES:,} files")
    return files


def _read_dicom(path: Path) -> bytes | None:
    """A file's bytes; None where it is not DICOM."""
    data = _read_file(path)
    return data if is_dicom(data) else None


def _extra(module: str) -> Any:
    """A module of ours that needs the extra."""
    try:
        return import_module(f"{__package__}._images.dicom_{module}")
    except ImportError:
        raise ImportError(
            "DICOM needs pydicom, numpy and Pillow: pip install 'langchain-svc[dicom]'"
        ) from None


def draw(image: DicomImage, max_pixels: int = MOST_PIXELS) -> bytes:
    """The picture as a PNG.

    Raises:
        ImageError: As for `DicomImage.png`.
        ImportError: The extra `dicom` is not installed.
    """
    drawing = _extra("picture")
    source = image.source
    if isinstance(source, Path):
        source = _read_file(source)
    if isinstance(source, (bytes, bytearray)):
        source = bytes(source)
        if not is_dicom(source):
            raise ImageError("it is not a DICOM file: DICM does not stand at its 129th byte")
    made: bytes = drawing.draw_png(source, image, max_pixels)
    return made


def kind_of(image: DicomImage) -> tuple[str, str]:
    """The codes of Modality and BodyPartExamined, in capitals; "" for what is not said.

    Raises:
        ImageError: The file cannot be read.
        ImportError: The extra `dicom` is not installed.
    """
    from ._images import read_kind  # noqa: PLC0415  # an extra

    source = image.source
    return read_kind(_read_file(source) if isinstance(source, Path) else source)


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_FILE_BYTES + 1)
    except OSError as error:
        raise ImageError(f"the file cannot be read: {error.strerror}") from None
    if len(data) > MOST_FILE_BYTES:
        raise ImageError(f"the file has more than {MOST_FILE_BYTES:,} bytes")
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
    return bool(numbers and window[1] > 0)


def _is_region(region: Any) -> bool:
    if not isinstance(region, (tuple, list)) or len(region) != 4:  # noqa: PLR2004  # a rectangle
        return False
    whole = all(type(value) is int and value >= 0 for value in region)
    return whole and region[2] > 0 and region[3] > 0
