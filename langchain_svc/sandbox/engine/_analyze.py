"""What rules can say about a picture: its size, its colours, and the text that it carries."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_svc.sandbox.engine._colours import nearest

if TYPE_CHECKING:
    from PIL import Image

NOTE = "found by the sandbox's rules, not by a vision model"

_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
# A small file can claim a huge picture; 25 megapixels are more than any size the service draws.
_MOST_PIXELS = 25_000_000
_GRID = 32
_MOST_OBJECTS = 8
_SMALLEST_OBJECT = 4  # grid cells; less is noise
_DARK, _BRIGHT = 85, 170
_CATEGORIES = ("violence", "sexual", "hate", "self_harm", "drugs")


@dataclass(frozen=True)
class _Picture:
    width: int
    height: int
    mode: str
    format: str
    prompt: str
    cells: tuple[str, ...]  # colour names, `_GRID` rows of `_GRID` each
    brightness: int  # mean of 0 to 255


def _decode(image: bytes) -> Image.Image:
    """Open and load the picture, or raise ValueError saying what is wrong with it."""
    from PIL import Image  # noqa: PLC0415 - Pillow is optional

    try:
        picture = Image.open(io.BytesIO(image), formats=_FORMATS)
    except Exception as error:
        raise ValueError("the bytes are no image of a known format") from error
    if picture.width * picture.height > _MOST_PIXELS:
        raise ValueError(f"the image has {picture.width}x{picture.height} pixels: too many")
    try:
        picture.load()
    except Exception as error:
        raise ValueError("the image is damaged") from error
    return picture


def _look(image: bytes) -> _Picture:
    picture = _decode(image)
    # The nearest pixel and no mean: a blend of two colours would be a third that is not there.
    small = picture.convert("RGB").resize((_GRID, _GRID), resample=0)
    data = small.tobytes()
    pixels = list(zip(data[0::3], data[1::3], data[2::3], strict=True))
    return _Picture(
        width=picture.width,
        height=picture.height,
        mode=picture.mode,
        format=picture.format or "",
        prompt=str(picture.info.get("prompt", "")),
        cells=tuple(map(nearest, pixels)),
        brightness=sum(data) // len(data),
    )


def _brightness_word(level: int) -> str:
    if level < _DARK:
        return "dark"
    return "bright" if level > _BRIGHT else "medium"


def _describe(picture: _Picture) -> dict[str, object]:
    counts = Counter(picture.cells).most_common(4)
    colours = [{"name": name, "share": round(n / len(picture.cells), 3)} for name, n in counts]
    shown = f' It was drawn for the prompt "{picture.prompt}".' if picture.prompt else ""
    names = " and ".join(name for name, _ in counts[:2])
    return {
        "description": (
            f"A {_brightness_word(picture.brightness)} {picture.format} image of "
            f"{picture.width}x{picture.height} pixels, mostly {names}.{shown}"
        ),
        "width": picture.width,
        "height": picture.height,
        "mode": picture.mode,
        "format": picture.format,
        "colors": colours,
        "brightness": round(picture.brightness / 255, 3),
        "prompt": picture.prompt or None,
    }


def _region(cells: tuple[str, ...], start: int, seen: set[int]) -> list[int]:
    """Return the connected cells of one colour around `start`, and mark them as seen."""
    seen.add(start)
    found, waiting = [start], [start]
    while waiting:
        cell = waiting.pop()
        column = cell % _GRID
        near = (
            (cell - _GRID, True),
            (cell + _GRID, True),
            (cell - 1, column > 0),
            (cell + 1, column < _GRID - 1),
        )
        for other, inside in near:
            if not (inside and 0 <= other < len(cells)) or other in seen:
                continue
            if cells[other] == cells[start]:
                seen.add(other)
                found.append(other)
                waiting.append(other)
    return found


def _box(picture: _Picture, cells: list[int]) -> dict[str, int]:
    columns = [cell % _GRID for cell in cells]
    rows = [cell // _GRID for cell in cells]
    left, top = min(columns) * picture.width // _GRID, min(rows) * picture.height // _GRID
    right = (max(columns) + 1) * picture.width // _GRID
    bottom = (max(rows) + 1) * picture.height // _GRID
    return {"x": left, "y": top, "width": right - left, "height": bottom - top}


def _detect(picture: _Picture) -> dict[str, object]:
    """Report every connected patch of one colour, save the ground, as an object."""
    ground = Counter(picture.cells).most_common(1)[0][0]
    seen: set[int] = set()
    objects: list[dict[str, object]] = []
    for cell, colour in enumerate(picture.cells):
        if cell in seen or colour == ground:
            continue
        region = _region(picture.cells, cell, seen)
        if len(region) >= _SMALLEST_OBJECT:
            share = round(len(region) / len(picture.cells), 3)
            objects.append(
                {"label": f"{colour} region", "score": share, "box": _box(picture, region)}
            )
    objects.sort(key=lambda found: -float(str(found["score"])))
    return {"objects": objects[:_MOST_OBJECTS], "faces": []}


def _ocr(picture: _Picture) -> dict[str, object]:
    return {"text": picture.prompt}


def _moderate(_picture: _Picture) -> dict[str, object]:
    return {"flagged": False, "categories": dict.fromkeys(_CATEGORIES, False)}


_TASKS: dict[str, Callable[[_Picture], dict[str, object]]] = {
    "describe": _describe,
    "detect": _detect,
    "ocr": _ocr,
    "moderate": _moderate,
}


def analyze(image: bytes, task: str) -> dict[str, object]:
    """Analyse the bytes of an image.

    Raises:
        ValueError: The bytes are no image, or the task is none of the documented four.
    """
    work = _TASKS.get(task)
    if work is None:
        raise ValueError(f"task must be one of {', '.join(_TASKS)}, not {task!r}")
    return {"task": task, **work(_look(image)), "note": NOTE}
