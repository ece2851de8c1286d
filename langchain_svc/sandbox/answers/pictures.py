"""Pictures: shapes in colours that a prompt names, drawn and recognised by rules.

A drawing follows from the prompt, the quality and the index alone, so the same request is the same
file. The prompt stands below the shapes, and in the file, where `analyze` finds it again.
"""

from __future__ import annotations

import hashlib
import io
import re
import textwrap
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from PIL import Image, ImageDraw

NOTE = "found by the sandbox's rules, not by a vision model"
COLOURS: dict[str, tuple[int, int, int]] = {
    "black": (20, 20, 20),
    "white": (245, 245, 245),
    "grey": (128, 128, 128),
    "red": (214, 40, 40),
    "orange": (247, 127, 0),
    "yellow": (252, 211, 77),
    "green": (46, 139, 87),
    "blue": (37, 99, 235),
    "purple": (126, 58, 168),
    "brown": (121, 85, 61),
}
_NAMES = list(COLOURS)

# -- drawing --------------------------------------------------------------------------------------

_ROUND, _SQUARE, _POINTED = "round", "square", "pointed"
_SHAPES = {
    "circle": (_ROUND, "red"), "ball": (_ROUND, "red"), "sun": (_ROUND, "yellow"),
    "moon": (_ROUND, "white"), "star": (_POINTED, "yellow"), "square": (_SQUARE, "blue"),
    "box": (_SQUARE, "brown"), "house": (_SQUARE, "orange"), "lighthouse": (_SQUARE, "red"),
    "tower": (_SQUARE, "grey"), "triangle": (_POINTED, "orange"), "mountain": (_POINTED, "brown"),
    "tree": (_POINTED, "green"), "boat": (_POINTED, "brown"),
}  # fmt: skip
_GROUNDS = frozenset({"background", "sky", "sea", "ground"})
_MOST_SHAPES = 6
_CAPTION = 220  # characters


def _wanted(prompt: str, seed: bytes) -> tuple[list[tuple[str, str]], str]:
    """Shapes with their colours, and the colour of the ground."""
    shapes: list[tuple[str, str]] = []
    colour = ground = ""
    for word in re.findall(r"[a-z]+", prompt[:2_000].lower()):
        kind = word if word in _SHAPES else word.removesuffix("s")
        if word in COLOURS:
            colour = word
        elif kind in _SHAPES:
            shapes.append((_SHAPES[kind][0], colour or _SHAPES[kind][1]))
            colour = ""
        elif word in _GROUNDS and colour:
            ground, colour = colour, ""
    kinds = (_ROUND, _SQUARE, _POINTED)
    shapes = shapes[:_MOST_SHAPES] or [(kinds[seed[1] % 3], _NAMES[seed[2] % 3])]
    # A shape in the colour of the ground would be invisible.
    free = [name for name in _NAMES[2:] if all(name != colour for _, colour in shapes)]
    return shapes, ground or free[seed[0] % len(free)]


def _paint(
    pen: ImageDraw.ImageDraw, shapes: list[tuple[str, str]], width: int, height: int
) -> None:
    cell = width // len(shapes)
    side = min(cell, height) * 3 // 4
    for number, (kind, colour) in enumerate(shapes):
        left, top = number * cell + (cell - side) // 2, (height - side) // 2
        box, fill = (left, top, left + side, top + side), _NAMES.index(colour)
        if kind == _ROUND:
            pen.ellipse(box, fill=fill)
        elif kind == _SQUARE:
            pen.rectangle(box, fill=fill)
        else:
            pen.polygon([(left + side // 2, top), box[2:], (left, box[3])], fill=fill)


def draw(prompt: str, *, size: str, quality: str, index: int) -> bytes:
    """Return a PNG of `size` ("1024x1024") drawn for `prompt`; `index` tells variants apart."""
    from PIL import Image, ImageDraw, PngImagePlugin  # noqa: PLC0415 - Pillow is optional

    prompt = prompt.encode("utf-8", "replace").decode("utf-8")
    seed = hashlib.sha256(f"{prompt}\n{quality}\n{index}".encode()).digest()
    width, height = map(int, size.split("x"))
    shapes, ground = _wanted(prompt, seed)
    canvas = Image.new("P", (width, height), _NAMES.index(ground))
    canvas.putpalette([channel for colour in COLOURS.values() for channel in colour])
    pen = ImageDraw.Draw(canvas)
    band = height // 5
    _paint(pen, shapes, width, height - band)
    pen.rectangle((0, height - band, width, height), fill=_NAMES.index("white"))
    # A font without Unicode refuses what it cannot draw; the file carries the exact text.
    caption = f"{prompt[:_CAPTION]}\n({quality}, variant {index})".encode("latin-1", "replace")
    lines = textwrap.wrap(caption.decode("latin-1"), 64)
    for number, line in enumerate(lines):
        pen.text((band // 6, height - band + 8 + number * band // 7), line, fill=0)
    notes = PngImagePlugin.PngInfo()
    notes.add_itxt("prompt", prompt)
    notes.add_itxt("software", "sandbox drawing by rules, no model")
    file = io.BytesIO()
    canvas.save(file, "PNG", pnginfo=notes)
    return file.getvalue()


# -- looking --------------------------------------------------------------------------------------

_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
# A small file can claim a huge picture; 25 megapixels are more than any size the service draws.
_MOST_PIXELS = 25_000_000
_GRID = 32
_DARK, _BRIGHT = 85, 170
_CATEGORIES = ("violence", "sexual", "hate", "self_harm", "drugs")


def analyze(image: bytes, task: str) -> dict[str, object]:
    """Analyse the bytes of an image.

    Raises:
        ValueError: The bytes are not an image, or the task is not one of the documented four.
    """
    picture = _opened(image)
    shown = str(picture.info.get("prompt", ""))
    if task == "ocr":
        found: dict[str, Any] = {"text": shown}
    elif task == "moderate":
        found = {"flagged": False, "categories": dict.fromkeys(_CATEGORIES, False)}
    elif task in {"describe", "detect"}:
        # The nearest pixel and no mean: a blend of two colours would be a third.
        small = picture.convert("RGB").resize((_GRID, _GRID), resample=0).tobytes()
        cells = [_nearest(small[at : at + 3]) for at in range(0, len(small), 3)]
        look = _described if task == "describe" else _detected
        found = look(picture, cells, sum(small) // len(small))
    else:
        raise ValueError(f"task must be detect, ocr, moderate or describe, not {task!r}")
    return {"task": task, **found, "note": NOTE}


def _opened(image: bytes) -> Image.Image:
    from PIL import Image  # noqa: PLC0415 - Pillow is optional

    try:
        picture = Image.open(io.BytesIO(image), formats=_FORMATS)
        fits = picture.width * picture.height <= _MOST_PIXELS
        if fits:
            picture.load()
    except Exception as error:
        raise ValueError("the bytes are not a whole image of a known format") from error
    if not fits:
        raise ValueError(f"the image has {picture.width}x{picture.height} pixels: too many")
    return picture


def _nearest(pixel: bytes) -> str:
    return min(
        COLOURS,
        key=lambda name: sum((a - b) ** 2 for a, b in zip(pixel, COLOURS[name], strict=True)),
    )


def _described(picture: Image.Image, cells: list[str], brightness: int) -> dict[str, object]:
    counts = Counter(cells).most_common(4)
    light = "dark" if brightness < _DARK else "bright" if brightness > _BRIGHT else "medium"
    prompt = picture.info.get("prompt")
    drawn = f' It was drawn for the prompt "{prompt}".' if prompt else ""
    return {
        "description": (
            f"A {light} {picture.format} image of {picture.width}x{picture.height} pixels, mostly "
            f"{' and '.join(name for name, _ in counts[:2])}.{drawn}"
        ),
        "width": picture.width,
        "height": picture.height,
        "format": picture.format,
        "colors": [{"name": name, "share": round(n / len(cells), 3)} for name, n in counts],
        "brightness": round(brightness / 255, 3),
    }


def _detected(picture: Image.Image, cells: list[str], _brightness: int) -> dict[str, object]:
    """All of one colour, save the ground, is an object."""
    (ground, _), *others = Counter(cells).most_common(5)
    objects = []
    for name, count in others:
        at = [number for number, cell in enumerate(cells) if cell == name]
        columns, rows = [n % _GRID for n in at], [n // _GRID for n in at]
        wide, high = picture.width / _GRID, picture.height / _GRID
        box = {
            "x": int(min(columns) * wide),
            "y": int(min(rows) * high),
            "width": int((max(columns) - min(columns) + 1) * wide),
            "height": int((max(rows) - min(rows) + 1) * high),
        }
        score = round(count / len(cells), 3)
        objects.append({"label": f"{name} region", "score": score, "box": box})
    return {"objects": objects, "ground": ground, "faces": []}
