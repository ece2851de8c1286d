"""Pictures drawn for a prompt: named shapes in named colours, and the prompt written below.

Everything follows from the prompt, the quality and the index, so the same request is the same
file. The prompt also travels inside the file, where `analyze` finds it again.
"""

from __future__ import annotations

import hashlib
import io
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from langchain_svc.sandbox.engine._colours import ALIASES, COLOURS

if TYPE_CHECKING:
    from PIL import Image, ImageDraw, ImageFont

    Pen = ImageDraw.ImageDraw
    Font = ImageFont.ImageFont | ImageFont.FreeTypeFont

Box = tuple[int, int, int, int]

_NAMES = list(COLOURS)
_GROUNDS = ("blue", "green", "grey", "cyan", "brown", "purple")
_PAPER, _INK = _NAMES.index("white"), _NAMES.index("black")
_CAPTION_SHARE = 5  # the lowest fifth of the picture carries the prompt
_CAPTION_CHARACTERS = 220
_MOST_SHAPES = 6


def _circle(pen: Pen, box: Box, colour: int) -> None:
    pen.ellipse(box, fill=colour)


def _square(pen: Pen, box: Box, colour: int) -> None:
    pen.rectangle(box, fill=colour)


def _triangle(pen: Pen, box: Box, colour: int) -> None:
    left, top, right, bottom = box
    pen.polygon([((left + right) // 2, top), (right, bottom), (left, bottom)], fill=colour)


def _diamond(pen: Pen, box: Box, colour: int) -> None:
    left, top, right, bottom = box
    across, down = (left + right) // 2, (top + bottom) // 2
    pen.polygon([(across, top), (right, down), (across, bottom), (left, down)], fill=colour)


def _house(pen: Pen, box: Box, colour: int) -> None:
    left, top, right, bottom = box
    eaves = top + (bottom - top) // 3
    _triangle(pen, (left, top, right, eaves), colour)
    inset = (right - left) // 8
    pen.rectangle((left + inset, eaves, right - inset, bottom), fill=colour)


def _tree(pen: Pen, box: Box, colour: int) -> None:
    left, top, right, bottom = box
    crown = top + 2 * (bottom - top) // 3
    middle, trunk = (left + right) // 2, (right - left) // 10
    pen.rectangle((middle - trunk, crown, middle + trunk, bottom), fill=_NAMES.index("brown"))
    pen.ellipse((left, top, right, crown + trunk), fill=colour)


Shape = Callable[["Pen", Box, int], None]

# The word in the prompt, the shape for it, and its colour when the prompt names none.
_SHAPES: dict[str, tuple[Shape, str]] = {
    "circle": (_circle, "red"),
    "ball": (_circle, "red"),
    "sun": (_circle, "yellow"),
    "moon": (_circle, "white"),
    "apple": (_circle, "red"),
    "square": (_square, "blue"),
    "box": (_square, "brown"),
    "tower": (_square, "grey"),
    "lighthouse": (_house, "red"),
    "triangle": (_triangle, "orange"),
    "mountain": (_triangle, "brown"),
    "roof": (_triangle, "red"),
    "diamond": (_diamond, "cyan"),
    "kite": (_diamond, "pink"),
    "house": (_house, "orange"),
    "cabin": (_house, "brown"),
    "tree": (_tree, "green"),
    "flower": (_tree, "pink"),
}
_PLAIN_SHAPES: Sequence[Shape] = (_circle, _square, _triangle, _diamond)


def _wanted_shapes(prompt: str, seed: bytes) -> tuple[list[tuple[Shape, int]], int]:
    """Return the shapes with their colours, and the colour of the ground."""
    shapes: list[tuple[Shape, int]] = []
    colour = ground = ""
    for word in re.findall(r"[a-z]+", prompt[:2_000].lower()):
        name = ALIASES.get(word, word)
        kind = word if word in _SHAPES else word.removesuffix("s")
        if name in COLOURS:
            colour = name
        elif kind in _SHAPES:
            shape, usual = _SHAPES[kind]
            shapes.append((shape, _NAMES.index(colour or usual)))
            colour = ""
        elif word in {"background", "sky", "ground", "sea"} and colour:
            ground, colour = colour, ""
    if not shapes:
        picks = zip(seed[2:5], seed[5:8], strict=True)
        shapes = [(_PLAIN_SHAPES[a % 4], 3 + b % (len(_NAMES) - 3)) for a, b in picks]
    return shapes[:_MOST_SHAPES], _NAMES.index(ground or _GROUNDS[seed[0] % len(_GROUNDS)])


def _paint(pen: Pen, prompt: str, seed: bytes, width: int, height: int) -> None:
    shapes, ground = _wanted_shapes(prompt, seed)
    pen.rectangle((0, 0, width, height), fill=ground)
    cell = width // len(shapes)
    side = min(cell, height) * 3 // 4
    for number, (shape, colour) in enumerate(shapes):
        # A shape in the colour of the ground would be invisible.
        visible = colour if colour != ground else (colour + 1) % len(_NAMES)
        left = number * cell + (cell - side) // 2
        top = (height - side) * (64 + seed[8 + number] // 2) // 255
        shape(pen, (left, top, left + side, top + side), visible)


def _font(size: int) -> Font:
    from PIL import ImageFont  # noqa: PLC0415 - Pillow is optional

    try:
        return ImageFont.load_default(size)
    except TypeError:  # Pillow 10.0 has one size only
        return ImageFont.load_default()


def _caption(pen: Pen, prompt: str, width: int, top: int, height: int) -> None:
    pen.rectangle((0, top, width, top + height), fill=_PAPER)
    short = prompt if len(prompt) <= _CAPTION_CHARACTERS else f"{prompt[:_CAPTION_CHARACTERS]}..."
    lines = textwrap.wrap(short, 64)
    size = height // 6
    for number, line in enumerate(lines):
        # A font without Unicode refuses what it cannot draw; the file carries the exact text.
        text = line.encode("latin-1", "replace").decode("latin-1")
        pen.text(
            (size, top + size // 2 + number * size * 4 // 3), text, fill=_INK, font=_font(size)
        )


def _canvas(size: str) -> Image.Image:
    from PIL import Image  # noqa: PLC0415 - Pillow is optional

    width, _, height = size.partition("x")
    canvas = Image.new("P", (int(width), int(height)))
    canvas.putpalette([channel for colour in COLOURS.values() for channel in colour])
    return canvas


def draw(prompt: str, *, size: str, quality: str, index: int) -> bytes:
    """Return a PNG of `size` ("1024x1024") drawn for `prompt`; `index` tells variants apart."""
    from PIL import ImageDraw, PngImagePlugin  # noqa: PLC0415 - Pillow is optional

    clean = prompt.encode("utf-8", "replace").decode("utf-8")
    seed = hashlib.sha256(f"{clean}\n{quality}\n{index}".encode()).digest()
    canvas = _canvas(size)
    band = canvas.height // _CAPTION_SHARE
    pen = ImageDraw.Draw(canvas)
    _paint(pen, clean, seed, canvas.width, canvas.height - band)
    _caption(pen, clean, canvas.width, canvas.height - band, band)
    notes = PngImagePlugin.PngInfo()
    notes.add_itxt("prompt", clean)
    notes.add_itxt("quality", quality)
    notes.add_itxt("software", "sandbox drawing by rules, no model")
    file = io.BytesIO()
    canvas.save(file, "PNG", pnginfo=notes)
    return file.getvalue()
