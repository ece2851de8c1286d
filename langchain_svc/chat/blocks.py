"""A content block -> the text that stands for it, which says all that the block says but bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping

from langchain_core.utils.utils import LC_AUTO_PREFIX

from .._calls import render_json
from .._wire.base64_text import base64_note, without_base64
from ..errors import SvcRequestError

_TEXTS = frozenset({"text", "input_text", "output_text", "text-plain", "refusal"})
_MEDIA = frozenset(
    {
        "audio",
        "input_audio",
        "video",
        "video_url",
        "file",
        "input_file",
        "document",
        "media",
        "text-plain",  # a file of text, where no text stands in it
    }
)
# What other services and streams note beside a text.
_BOOKKEEPING = frozenset({"type", "cache_control", "index", "id"})
# Values that say nothing beside a text. That it is plain is said of each text of LangChain's.
_NOTHING: tuple[object, ...] = (None, "", [], {}, "text/plain")

# The keys under which media have their base64: LangChain's, and those of four providers.
_BYTES = frozenset({"base64", "data", "file_data", "bytes"})
_BASE64 = re.compile(r"[A-Za-z0-9+/_=\r\n-]+")
_DATA_OF_URI = re.compile(r"(?<=;base64,)[A-Za-z0-9+/_=%-]+", re.IGNORECASE)


def kind_of(block: Mapping[str, object]) -> str:
    """The type of a block; Bedrock's blocks have none, and are named by their key."""
    kind = block.get("type") or next(iter(block), "unknown")
    return kind if isinstance(kind, str) else type(kind).__name__


def text_of(block: Mapping[str, object]) -> str | None:
    """The text in a block, if it has one."""
    for key in ("text", "refusal"):
        text = block.get(key)
        if isinstance(text, str):
            return text
    return None


def is_medium(block: Mapping[str, object]) -> bool:
    """Whether a block stands for bytes and not for text."""
    kind = kind_of(block)
    if "image" not in kind and kind not in _MEDIA:
        return False
    if "type" not in block and len(block) > 1:
        return False  # the key that names it is one of several
    source = block.get("source")
    if isinstance(source, Mapping) and source.get("type") in {"text", "content"}:
        return False  # a document in text
    return text_of(block) is None


def block_text(block: Mapping[str, object]) -> str:
    """The text of a block, or the whole block as JSON where it says more than its text.

    Raises:
        SvcRequestError: JSON cannot hold the block.
    """
    text = text_of(block)
    if text is None or not (kind_of(block) in _TEXTS or len(block) == 1):
        return _as_json(block)
    for key, value in block.items():
        if key not in _BOOKKEEPING and value != text and value not in _NOTHING:
            return _as_json(block)
    return text


def medium_note(block: Mapping[str, object]) -> str:
    """What stands for a medium, which the model cannot take: all of its block but the bytes."""
    kind = kind_of(block)
    if "image" in kind:
        kind = "image"
    return f"[{kind} left out: this model takes text only] {_as_json(block)}"


def _as_json(block: Mapping[str, object]) -> str:
    # LangChain numbers some blocks anew in every call: their prompts are to be the same.
    stable = {
        key: value
        for key, value in block.items()
        if key != "id" or not str(value).startswith(LC_AUTO_PREFIX)
    }
    try:
        readable = _without_bytes(stable)
    except RecursionError:
        raise SvcRequestError(
            f"A content block of type {kind_of(block)!r} holds itself, or is nested too deep: "
            "send what it says as a text block"
        ) from None
    return render_json(readable)


def _without_bytes(
    value: object, key: object = None, *, in_medium: bool = False
) -> object:
    """The value with a note in place of bytes; `key` is its name in a block."""
    if isinstance(value, Mapping):
        in_medium = in_medium or is_medium(value)
        return {
            name: _without_bytes(inner, name, in_medium=in_medium)
            for name, inner in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_without_bytes(inner, key, in_medium=in_medium) for inner in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"[{len(value):,} bytes]"
    if not isinstance(value, str):
        return value
    # A medium says where its bytes are. Elsewhere only a length tells them from words and keys.
    if in_medium and key in _BYTES and _BASE64.fullmatch(value):
        return base64_note(value)
    return without_base64(_DATA_OF_URI.sub(lambda match: base64_note(match[0]), value))
