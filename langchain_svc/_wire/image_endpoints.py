"""Images on both interfaces: generation (v1 API, general API) and analysis (general API).

The response fields are "not shown" in either document. One function for each kind of answer reads
every plausible shape; docs/general.md has the table of what they read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..config import GENERAL, V1, Endpoint
from ..images import ImageError, format_of, is_image_text
from .general import read_success
from .v1 import UnreadableError, drop_none, dump_json

Task = Literal["detect", "ocr", "moderate", "describe"]
Size = Literal["1024x1024", "1792x1024", "1024x1792"]
Quality = Literal["standard", "hd"]
_CHOICES = ("size", "quality")
GENERATE = {
    "v1": Endpoint(V1, "POST", "/images/generate", closed=_CHOICES),
    "general": Endpoint(GENERAL, "POST", "/api/generate-image", closed=_CHOICES),
}
VISION = Endpoint(GENERAL, "POST", "/api/vision", closed=("task",), images=("image",))
# v1 API, section 8.
LONGEST_PROMPT = 1000
MOST_IMAGES = 4

# Keys that hold one image, in the order of trust: bytes outlive an address.
_BYTES_KEYS = (
    "b64_json",
    "base64",
    "b64",
    "image_base64",
    "imageBase64",
    "data_uri",
    "dataUri",
)
_URL_KEYS = ("url", "image_url", "imageUrl", "uri", "link", "src", "href")
_IMAGE_KEYS = ("image", "img", "picture")
# Keys that hold what holds the images.
_OUTER_KEYS = (
    "images", "data", "result", "results", "output", "outputs", "artifacts", "urls", "generated",
    "response", "content", "payload",
)  # fmt: skip
_ALL_KEYS = (*_BYTES_KEYS, *_URL_KEYS, *_IMAGE_KEYS, *_OUTER_KEYS)
_DEEPEST = 8


@dataclass(frozen=True)
class GeneratedImages:
    """The images of an answer: addresses and base64, plain or as a data URI, and the raw body.

    Where the body is the image itself, the image is its bytes, and the raw body is None.
    """

    images: tuple[str | bytes, ...]
    raw: object


@dataclass(frozen=True)
class ImageAnalysis:
    """An answer about an image: a text for a model, its part about the image, and all of it."""

    text: str
    content: object
    raw: object


def vision_body(image: str, task: str) -> bytes:
    """The bytes of an image analysis request (general API, section 2)."""
    return dump_json({"image": image, "task": task})


def generate_body(
    prompt: str, *, size: str | None, quality: str | None, n: int | None
) -> bytes:
    """The bytes of an image generation request of either interface; what is None is left out."""
    return dump_json(
        drop_none({"prompt": prompt, "size": size, "n": n, "quality": quality})
    )


def read_generated(body: bytes) -> GeneratedImages:
    """The images of a generation's answer.

    Raises:
        UnreadableError: The body holds no image, or reports a failure.
    """
    try:
        format_of(body)
    except ImageError:
        raw = read_success(body)
    else:
        return GeneratedImages((body,), None)
    images = _images_in(raw, _DEEPEST)
    if not images:
        raise UnreadableError(
            "it holds no image: neither an address nor base64 where one may be"
        )
    return GeneratedImages(tuple(images), raw)


def _images_in(value: object, depth: int, *, sure: bool = False) -> list[str]:
    """The images in a value; where one is `sure` to be, the store says what is wrong with it."""
    if isinstance(value, str):
        text = value.strip()
        if (text and sure) or is_image_text(text):
            return [text]
        return []
    if not depth:
        return []
    images: list[str] = []
    if isinstance(value, list):
        for item in value:
            images += _images_in(item, depth - 1, sure=sure)
    elif isinstance(value, dict):
        for key in _ALL_KEYS:
            images = _images_in(value.get(key), depth - 1, sure=key in _BYTES_KEYS)
            if images:  # the other keys hold the same images in another way
                break
    return images


# -- analysis --------------------------------------------------------------------------------

_TEXT_KEYS: dict[str, tuple[str, ...]] = {
    "describe": ("description", "caption", "summary", "text", "answer", "content"),
    "ocr": (
        "text",
        "ocr",
        "ocr_text",
        "extracted_text",
        "full_text",
        "content",
        "lines",
    ),
    "detect": (),
    "moderate": (),
}
_INNER_KEYS = ("result", "data", "output", "analysis", "response", "results")
# What an answer says about itself and not about the image.
_ABOUT = frozenset(
    {
        "success",
        "task",
        "model",
        "id",
        "timestamp",
        "created",
        "status",
        "usage",
        "tokens",
        "error",
    }
)


def read_analysis(body: bytes, task: str) -> ImageAnalysis:
    """The text that the task asks for, or else the JSON of an analysis.

    Raises:
        UnreadableError: The body says nothing about an image, or reports a failure.
    """
    raw = read_success(body)
    content = _content(raw, _TEXT_KEYS[task])
    text = _task_text(content, _TEXT_KEYS[task])
    is_structured = isinstance(content, (dict, list)) and bool(content)
    # An empty list of detected things is an answer, and so is a page without text.
    if task == "detect" and content == []:
        text = "Nothing was found in the image."
    elif task == "ocr" and text is not None and not text.strip():
        text = "No text was found in the image."
    elif text is None and is_structured and _says_something(content):
        text = dump_json(content).decode()
    if text is None or not text.strip():
        raise UnreadableError("it says nothing about the image")
    return ImageAnalysis(text, content, raw)


def _content(raw: object, text_keys: tuple[str, ...]) -> object:
    """The part of a body that is about the image."""
    value = raw
    while isinstance(value, dict) and not _has_text(value, text_keys):
        inner = [value[key] for key in _INNER_KEYS if value.get(key) not in (None, {})]
        if not inner:
            break
        # An empty list only if all are empty.
        value = next(filter(None, inner), inner[0])
    if not isinstance(value, dict):
        return value
    content: dict[str, object] = {}
    for name, item in value.items():
        is_empty = item is None or (name in _INNER_KEYS and not item)
        if name not in _ABOUT and not is_empty:
            content[name] = item
    return content


def _has_text(value: dict[str, object], text_keys: tuple[str, ...]) -> bool:
    return any(isinstance(value.get(key), str) for key in text_keys)


def _task_text(content: object, text_keys: tuple[str, ...]) -> str | None:
    if isinstance(content, str):
        return content
    if not isinstance(content, dict):
        return None
    for key in text_keys:
        value = content.get(key)
        if isinstance(value, str):
            return value
        lines = _strings_in(value)
        if lines:
            return "\n".join(lines)
    return None


def _strings_in(value: object) -> list[str]:
    """The items of a list of strings; none of anything else."""
    if not isinstance(value, list):
        return []
    strings = [item for item in value if isinstance(item, str)]
    if len(strings) < len(value):
        return []
    return strings


def _says_something(value: object) -> bool:
    """Whether a JSON value has anything but nulls; an empty list says that nothing is there."""
    if isinstance(value, dict):
        return any(map(_says_something, value.values()))
    if isinstance(value, list):
        return not value or any(map(_says_something, value))
    return value is not None
