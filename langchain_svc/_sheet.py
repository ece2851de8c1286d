"""A store's contact sheet: small pictures with their handles, for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING

try:
    from PIL import Image, ImageDraw, ImageFont
except ImportError as error:
    raise ImportError(
        "The contact sheet needs Pillow: pip install pillow. save(handle, path) works without it"
    ) from error

if TYPE_CHECKING:
    from .images import StoredImage

_SIDE, _GAP, _CAPTION, _COLUMNS = 192, 12, 34, 4
_PAPER, _FRAME, _INK = "#ffffff", "#e6e6e6", "#333333"
_LETTERS = 30


@dataclass(frozen=True)
class Sheet:
    """A contact sheet. A notebook displays it; elsewhere its bytes are `png`."""

    png: bytes = field(repr=False)
    images: int

    def _repr_png_(self) -> bytes:
        return self.png


def draw_sheet(images: Sequence[StoredImage]) -> Sheet:
    """The images in rows of four, each with its handle, size and label."""
    columns = min(_COLUMNS, max(1, len(images)))
    rows = max(1, -(-len(images) // columns))
    across, down = _SIDE + _GAP, _SIDE + _CAPTION + _GAP
    paper = Image.new("RGB", (columns * across + _GAP, rows * down + _GAP), _PAPER)
    pen = ImageDraw.Draw(paper)
    font = ImageFont.load_default(12)
    for index, image in enumerate(images):
        left = _GAP + index % columns * across
        top = _GAP + index // columns * down
        pen.rectangle((left, top, left + _SIDE - 1, top + _SIDE - 1), fill=_FRAME)
        small = _thumbnail(image)
        if small is None:
            pen.text((left + 8, top + 8), _why_empty(image), fill=_INK, font=font)
        else:
            at = (left + (_SIDE - small.width) // 2, top + (_SIDE - small.height) // 2)
            paper.paste(small, at)
        for line, text in enumerate(_caption(image)):
            pen.text((left, top + _SIDE + 3 + 15 * line), text, fill=_INK, font=font)
    file = BytesIO()
    paper.save(file, "PNG", optimize=True)
    return Sheet(file.getvalue(), len(images))


def _thumbnail(image: StoredImage) -> Image.Image | None:
    if image.data is None or image.format is None:
        return None
    try:
        with Image.open(BytesIO(image.data), formats=[image.format]) as opened:
            opened.thumbnail((_SIDE, _SIDE))
            small: Image.Image = opened.convert("RGB")
            return small
    except Exception:  # noqa: BLE001  # damaged images fail in many ways, and a frame stays empty
        return None


def _why_empty(image: StoredImage) -> str:
    return "cannot be drawn" if image.data is not None else "an address,\nnever fetched"


def _caption(image: StoredImage) -> tuple[str, str]:
    size = f"{image.format} {image.width}x{image.height}" if image.data is not None else "address"
    label = image.label if len(image.label) <= _LETTERS else image.label[: _LETTERS - 3] + "..."
    return f"{image.handle}  {size}", " ".join(label.split())
