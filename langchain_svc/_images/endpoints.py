"""Images on both interfaces: generation (v1 API, general API) and analysis (general API).

The response fields are "not shown" in either document. One reader for each kind of answer takes
every plausible shape; docs/general.md has the table of what they take.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from .._wire import UnreadableError, dump_json, read_success
from .headers import ImageError, read_image_header

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
_BYTES_KEYS = ("b64_json", "base64", "b64", "image_base64", "imageBase64", "data_uri", "dataUri")
_URL_KEYS = ("url", "image_url", "imageUrl", "uri", "link", "src", "href")
_IMAGE_KEYS = ("image", "img", "picture")
# Keys that hold what holds the images.
_OUTER_KEYS = (
    "images", "data", "result", "results", "output", "outputs", "artifacts", "urls", "generated",
    "response", "content", "payload",
)  # fmt: skip
_DEEPEST = 8


@dataclass(frozen=True)
class GeneratedImage:
    """One image of an answer: an address, base64 (plain or as a data URI), or its bytes."""

    url: str | None = None
    base64: str | None = None
    data: bytes | None = None


@dataclass(frozen=True)
class GeneratedImages:
    """The images of an answer, and the raw body (None where the body is the image itself)."""

    found: tuple[GeneratedImage, ...]
    raw: Any


@dataclass(frozen=True)
class ImageAnalysis:
    """What was read of an answer.

    Attributes:
        text: A text that a model can use.
        parts: What is known by name.
        raw: The whole body, unchanged.
    """

    text: str
    parts: Mapping[str, Any]
    raw: Any


def vision_body(image: str, task: str) -> bytes:
    """The bytes of an image analysis request (general API, section 2)."""
    return dump_json({"image": image, "task": task})


def generate_body(prompt: str, *, size: str | None, quality: str | None, n: int | None) -> bytes:
    """The bytes of an image generation request of either interface; what is None is left out."""
    given = {"prompt": prompt, "size": size, "n": n, "quality": quality}
    return dump_json({name: value for name, value in given.items() if value is not None})


def read_generated(body: bytes) -> GeneratedImages:
    """The images of a generation's answer.

    Raises:
        UnreadableError: The body holds no image, or reports a failure.
    """
    try:
        read_image_header(body, _ANY_SIZE)
    except ImageError:
        raw = read_success(body)
    else:
        return GeneratedImages((GeneratedImage(data=body),), None)
    found = tuple(_pictures(raw, _DEEPEST))
    if not found:
        raise UnreadableError("it holds no image: neither an address nor base64 where one may be")
    return GeneratedImages(found, raw)


_ANY_SIZE = 2**62  # the store has the limit


def _pictures(value: Any, depth: int) -> Iterator[GeneratedImage]:
    if not depth:
        return
    if isinstance(value, list):
        for item in value:
            yield from _pictures(item, depth - 1)
    elif isinstance(value, str):
        yield from _from_text(value)
    elif isinstance(value, dict):
        yield from _from_object(value, depth)


def _from_object(value: Mapping[str, Any], depth: int) -> Iterator[GeneratedImage]:
    for key in (*_BYTES_KEYS, *_URL_KEYS, *_IMAGE_KEYS, *_OUTER_KEYS):
        inner = value.get(key)
        found = list(_pictures(inner, depth - 1))
        if not found and key in _BYTES_KEYS and isinstance(inner, str) and inner.strip():
            found = [GeneratedImage(base64=inner)]  # the store says what is wrong with it
        if found:
            yield from found
            return


def _from_text(text: str) -> Iterator[GeneratedImage]:
    text = text.strip()
    start = text[:8].lower()
    if start.startswith(("http://", "https://")):
        yield GeneratedImage(url=text)
    elif start.startswith("data:") or text.startswith(_BASE64_STARTS):
        yield GeneratedImage(base64=text)


# base64 of the first bytes of PNG, JPEG, GIF and WebP.
_BASE64_STARTS = ("iVBORw0KGgo", "/9j/", "_9j_", "R0lGOD", "UklGR")


# -- analysis --------------------------------------------------------------------------------

_TEXT_KEYS: dict[str, tuple[str, ...]] = {
    "describe": ("description", "caption", "summary", "text", "answer", "content"),
    "ocr": ("text", "ocr", "ocr_text", "extracted_text", "full_text", "content", "lines"),
    "detect": (),
    "moderate": (),
}
_INNER_KEYS = ("result", "data", "output", "analysis", "response", "results")
# What an answer says about itself and not about the image.
_ABOUT = frozenset(
    {"success", "task", "model", "id", "timestamp", "created", "status", "usage", "tokens", "error"}
)


def read_analysis(body: bytes, task: str) -> ImageAnalysis:
    """What an analysis found.

    Raises:
        UnreadableError: The body says nothing about an image, or tells of a failure.
    """
    raw = read_success(body)
    if not isinstance(raw, (dict, list, str)):
        raise UnreadableError("it says nothing about the image")
    found = _payload(raw, _TEXT_KEYS[task])
    text = _task_text(found, task)
    # An empty list of things found is an answer, and so is a page without text.
    if task == "detect" and found == []:
        text = "Nothing was found in the image."
    elif task == "ocr" and text is not None and not text.strip():
        text = "No text was found in the image."
    elif text is None:
        text = outline(found) if _tells(found) else ""
    if not text.strip():
        raise UnreadableError("it says nothing about the image")
    return ImageAnalysis(text, {"result": found}, raw)


def _payload(raw: Any, keys: tuple[str, ...]) -> Any:
    """The part of a body that is about the image."""
    value = raw
    for _ in range(_DEEPEST):
        if not isinstance(value, dict) or any(isinstance(value.get(k), str) for k in keys):
            break
        inner = [value[key] for key in _INNER_KEYS if value.get(key) not in (None, {}, [])]
        if not inner:
            break
        value = inner[0]
    if not isinstance(value, dict):
        return value
    empty = [name for name in _INNER_KEYS if value.get(name) in (None, {}, [])]
    if [] in (value.get(name) for name in empty):
        return []
    return {name: item for name, item in value.items() if name not in {*_ABOUT, *empty}}


def _task_text(found: Any, task: str) -> str | None:
    if isinstance(found, str):
        return found
    if not isinstance(found, dict):
        return None
    for key in _TEXT_KEYS[task]:
        value = found.get(key)
        if isinstance(value, str):
            return value
        if isinstance(value, list) and value and all(isinstance(line, str) for line in value):
            return "\n".join(value)
    return None


def _tells(value: Any) -> bool:
    """Whether a JSON value holds anything but nulls; an empty list says that nothing is there."""
    if isinstance(value, dict):
        return any(map(_tells, value.values()))
    if isinstance(value, list):
        return not value or any(map(_tells, value))
    return value is not None


_LONGEST_OUTLINE = 4000
_NAMES = ("label", "name", "class", "category", "type", "text")
_SCORES = ("score", "confidence", "probability")


def outline(value: Any) -> str:
    """A JSON value as a few lines for a model, one for each of its parts."""
    if isinstance(value, dict):
        lines = [f"{name}: {_short(item)}" for name, item in value.items()]
    elif isinstance(value, list):
        lines = [_short(item) for item in value]
    else:
        lines = [] if value is None else [_short(value)]
    text = "\n".join(lines)
    return text if len(text) <= _LONGEST_OUTLINE else text[: _LONGEST_OUTLINE - 3] + "..."


def _short(value: Any, depth: int = 4) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "unknown"}[value]
    if isinstance(value, list):
        return ", ".join(_short(item, depth - 1) for item in value) or "none"
    if not isinstance(value, dict):
        return str(value)
    if not depth:
        return "..."
    named = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), None)
    score = next((value[key] for key in _SCORES if isinstance(value.get(key), (int, float))), None)
    if named is not None and score is not None:
        return f"{named} ({score:g})"
    return "; ".join(f"{name} {_short(item, depth - 1)}" for name, item in value.items()) or "none"
