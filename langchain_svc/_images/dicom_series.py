"""The slices of a series: their order, a selection of them, and one sheet with all of these.

Rests on DICOM PS3.3, C.7.6.2.1.1 (position and orientation of a slice).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image
from pydicom import Dataset

from .dicom_header import read_elements, tags_of
from .headers import ImageError

_TAGS = tags_of(
    (
        "SeriesInstanceUID", "InstanceNumber", "ImagePositionPatient", "ImageOrientationPatient",
        "NumberOfFrames", "Rows",
    )
)  # fmt: skip
_MOST_SLICES = 100_000


@dataclass(frozen=True)
class Slice:
    """One frame of one file: the file's index, and the frame counted from 1."""

    file: int
    frame: int


def ordered(files: Iterable[bytes | None]) -> list[Slice]:
    """The slices of files in the order of their positions, or else of their instance numbers.

    Args:
        files: The bytes of each file; None for what is not a DICOM file.

    Raises:
        ImageError: They are damaged, of several series, or hold no picture.
    """
    headers = [
        (index, header)
        for index, data in enumerate(files)
        if data is not None and "Rows" in (header := read_elements(data, _TAGS))
    ]
    if not headers:
        raise ImageError("there is no DICOM file with a picture in the folder")
    try:
        series = {str(header.get("SeriesInstanceUID")) for _, header in headers}
        keys = _keys([header for _, header in headers])
        counts = [int(header.get("NumberOfFrames") or 1) for _, header in headers]
    except Exception:  # noqa: BLE001  # damaged files fail in many ways, and say what they hold
        raise ImageError("what says how its slices are ordered is damaged") from None
    if len(series) > 1:
        raise ImageError(f"the folder holds {len(series)} series; give a folder of one")
    if min(counts) < 1 or sum(counts) > _MOST_SLICES:
        raise ImageError(f"its number of frames is not from 1 to {_MOST_SLICES:,}")
    sequence = sorted(zip(keys, headers, counts, strict=True), key=lambda one: one[0])
    return [
        Slice(index, frame) for _, (index, _), count in sequence for frame in range(1, count + 1)
    ]


def _keys(headers: Sequence[Dataset]) -> list[Any]:
    numbers = [int(header.get("InstanceNumber") or 0) for header in headers]
    heights = [held for header in headers if (held := _height(header)) is not None]
    parallel = all(np.allclose(normal, heights[0][0], atol=1e-3) for normal, _ in heights)
    if len(heights) < len(headers) or not parallel:
        return list(zip(numbers, range(len(headers)), strict=True))
    along = [height for _, height in heights]
    return list(zip(along, numbers, range(len(headers)), strict=True))


def _height(header: Dataset) -> tuple[Any, float] | None:
    """A slice's normal, and how far along it the slice lies."""
    position, axes = header.get("ImagePositionPatient"), header.get("ImageOrientationPatient")
    if not position or not axes or len(position) != 3 or len(axes) != 6:  # noqa: PLR2004  # in space
        return None
    normal = np.cross([float(n) for n in axes[:3]], [float(n) for n in axes[3:]])
    return normal, round(float(np.dot(normal, [float(n) for n in position])), 4)


def every_nth(slices: Sequence[Slice], most: int) -> list[Slice]:
    """At most so many slices, at equal distances and as far from one end as from the other."""
    step = math.ceil(len(slices) / most)
    return list(slices[(len(slices) - 1) % step // 2 :: step])


def columns_of(count: int) -> int:
    """The columns of a sheet of so many pictures."""
    return math.ceil(math.sqrt(count))


def sheet(pictures: Sequence[Image.Image]) -> Image.Image:
    """Pictures row by row, on black."""
    columns = columns_of(len(pictures))
    rows = math.ceil(len(pictures) / columns)
    width = max(picture.width for picture in pictures)
    height = max(picture.height for picture in pictures)
    mode = "RGB" if any(picture.mode == "RGB" for picture in pictures) else "L"
    drawn = Image.new(mode, (columns * width, rows * height))
    for number, picture in enumerate(pictures):
        row, column = divmod(number, columns)
        drawn.paste(picture, (column * width, row * height))
    return drawn
