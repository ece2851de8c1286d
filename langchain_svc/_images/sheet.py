"""A store's contact sheet: small pictures with their handles, for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING

try:
    from PIL import Image, ImageDraw, ImageFont, ImageOps
except ImportError as error:
    raise ImportError(
        "The contact sheet needs Pillow: pip install pillow. save(handle, path) works without it"
    ) from error

if TYPE_CHECKING:
    from ..images import StoredImage

    _Font = ImageFont.FreeTypeFont | ImageFont.ImageFont

_COLUMNS = 4
_SIDE, _PAD, _GAP, _CAPTION, _ROUND = 224, 10, 18, 48, 10  # pixels
_PAPER, _CARD, _EDGE, _FRAME = "#f2f3f6", "#ffffff", "#d9dce3", "#f7f8fa"
_CHIP, _HANDLE, _FACTS, _LABEL = "#e3ecfd", "#1d4fa3", "#7a808c", "#24282f"
_ACROSS, _DOWN = _SIDE + 2 * _PAD, _SIDE + 2 * _PAD + _CAPTION  # one card


@dataclass(frozen=True)
class Sheet:
    """A contact sheet. A notebook displays it; elsewhere its bytes are `png`."""

    png: bytes = field(repr=False)
    images: int

    def _repr_png_(self) -> bytes:
        return self.png


def draw_sheet(images: Sequence[StoredImage]) -> Sheet:
    """The images as cards in rows of four, each with its handle, size and label."""
    columns = min(_COLUMNS, max(1, len(images)))
    rows = max(1, -(-len(images) // columns))
    size = columns * (_ACROSS + _GAP) + _GAP, rows * (_DOWN + _GAP) + _GAP
    paper = Image.new("RGB", size, _PAPER)
    for index, image in enumerate(images):
        row, column = divmod(index, columns)
        paper.paste(_card(image), (_GAP + column * (_ACROSS + _GAP), _GAP + row * (_DOWN + _GAP)))
    file = BytesIO()
    paper.save(file, "PNG", optimize=True)
    return Sheet(file.getvalue(), len(images))


def _card(image: StoredImage) -> Image.Image:
    card = Image.new("RGB", (_ACROSS, _DOWN), _PAPER)
    pen = ImageDraw.Draw(card)
    pen.rounded_rectangle((0, 0, _ACROSS - 1, _DOWN - 1), _ROUND, fill=_CARD, outline=_EDGE)
    pen.rectangle((_PAD, _PAD, _PAD + _SIDE - 1, _PAD + _SIDE - 1), fill=_FRAME)
    small = _thumbnail(image)
    if small is None:
        middle = _PAD + _SIDE // 2
        words = "cannot be drawn" if image.data is not None else "an address,\nnever fetched"
        pen.text((middle, middle), words, _FACTS, _font(14), anchor="mm", align="center")
    else:
        left, top = (_PAD + (_SIDE - side) // 2 for side in small.size)
        card.paste(small, (left, top))
    _write_caption(pen, image)
    return card


def _write_caption(pen: ImageDraw.ImageDraw, image: StoredImage) -> None:
    """The handle on a chip and what kind of image it is; below, a few words."""
    top, big, usual = _PAD + _SIDE + 9, _font(14), _font(13)
    wide = round(big.getlength(image.handle)) + 12
    pen.rounded_rectangle((_PAD, top, _PAD + wide, top + 19), 5, fill=_CHIP)
    pen.text((_PAD + 6, top + 10), image.handle, _HANDLE, big, anchor="lm")
    facts = f"{image.format} {image.width} x {image.height}" if image.data is not None else ""
    pen.text((_PAD + _SIDE, top + 10), facts, _FACTS, usual, anchor="rm")
    words = _fitting(" ".join((image.label or image.description).split()), usual)
    pen.text((_PAD, top + 32), words, _LABEL, usual, anchor="lm")


def _fitting(text: str, font: _Font) -> str:
    """As much of a text as one line of a card takes."""
    text = text[:_LETTERS]
    if font.getlength(text) <= _SIDE:
        return text
    while text and font.getlength(f"{text}...") > _SIDE:
        text = text[:-1]
    return f"{text.rstrip()}..."


_LETTERS = 120  # more fit into no line


@cache
def _font(size: int) -> _Font:
    return ImageFont.load_default(size)


def _thumbnail(image: StoredImage) -> Image.Image | None:
    if image.data is None or image.format is None:
        return None
    try:
        with Image.open(BytesIO(image.data), formats=[image.format]) as opened:
            # Colours of a palette do not blend.
            small = opened.convert("RGBA") if opened.mode in {"P", "PA", "1"} else opened
            small.thumbnail((_SIDE, _SIDE))
            return _on_paper(ImageOps.exif_transpose(small))
    except Exception:  # noqa: BLE001  # damaged images fail in many ways, and a frame stays empty
        return None


def _on_paper(small: Image.Image) -> Image.Image:
    if small.mode not in {"RGBA", "LA"}:
        return small.convert("RGB")
    paper = Image.new("RGBA", small.size, _CARD)
    paper.alpha_composite(small.convert("RGBA"))
    return paper.convert("RGB")
