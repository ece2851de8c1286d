"""Images on both interfaces: generation (v1 API, general API) and analysis (general API).

The response fields are "not shown" in either document. One reader for each kind of answer takes
every plausible shape; docs/general.md has the table of what they take.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

from .._wire import UnreadableError, dump_json, given
from .._wire.general import read_success
from .addresses import is_image_text
from .headers import ImageError, format_of

GENERATE_PATH = "/images/generate"  # on the v1 interface
GENERAL_GENERATE_PATH = "/api/generate-image"
VISION_PATH = "/api/vision"
Task = Literal["detect", "ocr", "moderate", "describe"]
Size = Literal["1024x1024", "1792x1024", "1024x1792"]
Quality = Literal["standard", "hd"]
TASKS: tuple[str, ...] = get_args(Task)
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

    Where the body is the image itself, its bytes are found, and the raw body is None.
    """

    found: tuple[str | bytes, ...]
    raw: Any


@dataclass(frozen=True)
class ImageAnalysis:
    """What was read of an answer: a text for a model, its part about the image, and all."""

    text: str
    found: Any
    raw: Any


def vision_body(image: str, task: str) -> bytes:
    """The bytes of an image analysis request (general API, section 2)."""
    return dump_json({"image": image, "task": task})


def generate_body(
    prompt: str, *, size: str | None, quality: str | None, n: int | None
) -> bytes:
    """The bytes of an image generation request of either interface; what is None is left out."""
    return dump_json(
        given({"prompt": prompt, "size": size, "n": n, "quality": quality})
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
    found = tuple(_pictures(raw, _DEEPEST))
    if not found:
        raise UnreadableError(
            "it holds no image: neither an address nor base64 where one may be"
        )
    return GeneratedImages(found, raw)


def _pictures(value: Any, depth: int, *, sure: bool = False) -> Iterator[str]:
    """The images in a value; where one is `sure` to be, the store says what is wrong with it."""
    if isinstance(value, str):
        text = value.strip()
        if (text and sure) or is_image_text(text):
            yield text
    elif isinstance(value, list) and depth:
        for item in value:
            yield from _pictures(item, depth - 1, sure=sure)
    elif isinstance(value, dict) and depth:
        tries = (
            list(_pictures(value.get(key), depth - 1, sure=key in _BYTES_KEYS))
            for key in _ALL_KEYS
        )
        yield from next(filter(None, tries), ())


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
    """What an analysis found: the text that the task asks for, or else its JSON.

    Raises:
        UnreadableError: The body says nothing about an image, or tells of a failure.
    """
    raw = read_success(body)
    found = _payload(raw, _TEXT_KEYS[task])
    text = _task_text(found, task)
    # An empty list of things found is an answer, and so is a page without text.
    if task == "detect" and found == []:
        text = "Nothing was found in the image."
    elif task == "ocr" and text is not None and not text.strip():
        text = "No text was found in the image."
    elif text is None and found and isinstance(found, (dict, list)) and _tells(found):
        text = dump_json(found).decode()
    if text is None or not text.strip():
        raise UnreadableError("it says nothing about the image")
    return ImageAnalysis(text, found, raw)


def _payload(raw: Any, keys: tuple[str, ...]) -> Any:
    """The part of a body that is about the image."""
    value = raw
    while isinstance(value, dict) and not any(
        isinstance(value.get(key), str) for key in keys
    ):
        inner = [value[key] for key in _INNER_KEYS if value.get(key) not in (None, {})]
        if not inner:
            break
        value = max(inner, key=bool)  # the first that is not an empty list
    if not isinstance(value, dict):
        return value
    return {
        name: item
        for name, item in value.items()
        if name not in _ABOUT and item is not None and (name not in _INNER_KEYS or item)
    }


def _task_text(found: Any, task: str) -> str | None:
    if isinstance(found, str):
        return found
    for key in _TEXT_KEYS[task] if isinstance(found, dict) else ():
        value = found.get(key)
        if isinstance(value, str):
            return value
        if (
            isinstance(value, list)
            and value
            and all(isinstance(line, str) for line in value)
        ):
            return "\n".join(value)
    return None


def _tells(value: Any) -> bool:
    """Whether a JSON value holds anything but nulls; an empty list says that nothing is there."""
    if isinstance(value, (dict, list)):
        inner = value.values() if isinstance(value, dict) else value
        return value == [] or any(map(_tells, inner))
    return value is not None
