"""The general interface (general API): chat, models and translation.

Its images are in `_images/endpoints.py`, beside those of the versioned interface.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from .chunks import read_object, word
from .v1 import UnreadableError, dump_json, given, load_body

CHAT_PATH = "/api/chat"
MODELS_PATH = "/api/models"
TRANSLATE_PATH = "/api/translate"
# general API, section 2: the bounds of a chat request.
LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 0.0, 1.0


def chat_body(
    message: str, *, model: str | None, temperature: float | None, stream: bool
) -> bytes:
    """The bytes of a chat request; what is None is left out."""
    body = {"message": message, "model": model, "temperature": temperature}
    return dump_json(given({**body, "stream": stream or None}))


def read_success(body: bytes) -> Any:
    """The JSON value of an answer.

    Raises:
        UnreadableError: It is none, or one that tells of a failure under a status of success.
    """
    raw = load_body(body)
    if not isinstance(raw, dict):
        return raw
    found = read_object(raw)
    if found is not None and found.error is not None:
        raise UnreadableError(
            "it carries an error under a status of success", found.error
        )
    return raw


# -- translation ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Translation:
    """One translation.

    Attributes:
        text: The translated text.
        source: The source language that the service names, if it names one.
        raw: The whole body, unchanged.
    """

    text: str
    source: str | None
    raw: Any


# Keys that can only hold the translation; only where none does, those that hold anything.
_SURE_KEYS = (
    "translation", "translatedText", "translated_text", "translated", "translations",
    "target_text", "targetText",
)  # fmt: skip
_LIKELY_KEYS = ("text", "result", "output", "response", "content", "data", "answer")
_OUTER_KEYS = ("data", "result", "results", "output", "response", "payload")
_SOURCE_KEYS = (
    "detected_source_language", "detectedSourceLanguage", "detected_language", "detectedLanguage",
    "source_language", "sourceLanguage", "source", "from",
)  # fmt: skip
_DEEPEST = 8


def translate_body(text: str, *, target: str, source: str | None) -> bytes:
    """The bytes of a translation request; the source language is left out where it is None."""
    return dump_json(given({"text": text, "from": source, "to": target}))


def read_translation(body: bytes) -> Translation:
    """The translation in a body.

    Raises:
        UnreadableError: There is none, or the body tells of a failure.
    """
    raw = read_success(body)
    outer = raw if isinstance(raw, dict) else {"data": raw}
    text = _translated(outer, _SURE_KEYS) or _translated(
        outer, (*_SURE_KEYS, *_LIKELY_KEYS)
    )
    if not text:
        raise UnreadableError("it holds no translation")
    return Translation(text, _source(outer), raw)


def _translated(
    value: Any, keys: tuple[str, ...], depth: int = _DEEPEST, *, here: bool = False
) -> str | None:
    """The text under the first of the keys that holds one, at the least depth.

    `here` says that the value stands under such a key: there a plain `text` is the translation.
    """
    if isinstance(value, str) and here:
        return value
    if isinstance(value, list) and depth:
        texts = filter(
            None, (_translated(item, keys, depth - 1, here=here) for item in value)
        )
        return "\n".join(texts) if here else next(texts, None)
    if isinstance(value, dict) and depth:
        keys = (*keys, "text") if here else keys
        under = (
            _translated(value.get(key), keys, depth - 1, here=True) for key in keys
        )
        inside = (_translated(value.get(key), keys, depth - 1) for key in _OUTER_KEYS)
        return next(filter(None, chain(under, inside)), None)
    return None


def _source(raw: Mapping[str, Any]) -> str | None:
    places: list[Any] = [raw, *(raw.get(key) for key in _OUTER_KEYS)]
    found = (p.get(key) for p in places if isinstance(p, dict) for key in _SOURCE_KEYS)
    return next((said for value in found if (said := word(value))), None)
