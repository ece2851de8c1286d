"""The general interface (general API): chat, models and translation.

Its images are in `image_endpoints.py`, beside those of the versioned interface.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

from ..config import GENERAL, Endpoint
from .chunks import read_object, word
from .v1 import UnreadableError, drop_none, dump_json, load_body

# general API, section 2: the fields of a chat request, and a bound of one.
HIGHEST_TEMPERATURE = 1.0
# The fields of a chat request that are settings of `ChatSvc`, by the same names.
CHAT_SETTINGS = ("model", "temperature")
CHAT_FIELDS = frozenset({*CHAT_SETTINGS, "message", "stream"})
# The model's name is of a closed set, and a turn hides its messages itself.
CHAT = Endpoint(GENERAL, "POST", "/api/chat", closed=("model", "message"))
MODELS = Endpoint(GENERAL, "GET", "/api/models")
TRANSLATE = Endpoint(GENERAL, "POST", "/api/translate", closed=("from", "to"))


def chat_body(
    message: str,
    settings: Mapping[str, object],
    *,
    stream: bool,
    extra: Mapping[str, object],
) -> bytes:
    """The bytes of a chat request: the `CHAT_SETTINGS` that are not None, and further fields."""
    body = {"message": message, **settings, "stream": stream or None}
    return dump_json({**drop_none(body), **extra})


def read_success(body: bytes) -> object:
    """The JSON value of an answer.

    Raises:
        UnreadableError: It is none, or one that tells of a failure under a status of success.
    """
    raw = load_body(body)
    if not isinstance(raw, dict):
        return raw
    answer = read_object(raw)
    if answer is not None and answer.error is not None:
        raise UnreadableError(
            "it carries an error under a status of success", answer.error
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
    raw: object


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
    return dump_json(drop_none({"text": text, "from": source, "to": target}))


def read_translation(body: bytes) -> Translation:
    """The translation in a body.

    Raises:
        UnreadableError: There is none, or the body tells of a failure.
    """
    raw = read_success(body)
    outer: dict[str, object] = {"data": raw}
    if isinstance(raw, dict):
        outer = raw
    text = _translated(outer, _SURE_KEYS)
    if not text:
        text = _translated(outer, (*_SURE_KEYS, *_LIKELY_KEYS))
    if not text:
        raise UnreadableError("it holds no translation")
    return Translation(text, _source(outer), raw)


def _translated(
    value: object, keys: tuple[str, ...], depth: int = _DEEPEST, *, here: bool = False
) -> str | None:
    """The text under the first of the keys that holds one, at the least depth.

    `here` says that the value stands under such a key: there a plain `text` is the translation.
    """
    if here and isinstance(value, str):
        return value
    if not depth:
        return None
    if isinstance(value, list):
        parts = (_translated(item, keys, depth - 1, here=here) for item in value)
        texts = filter(None, parts)
        if here:
            return "\n".join(texts)
        return next(texts, None)
    if isinstance(value, dict):
        if here:
            keys = (*keys, "text")
        under = (_translated(value.get(k), keys, depth - 1, here=True) for k in keys)
        inside = (_translated(value.get(k), keys, depth - 1) for k in _OUTER_KEYS)
        return next(filter(None, chain(under, inside)), None)
    return None


def _source(raw: Mapping[str, object]) -> str | None:
    for place in (raw, *map(raw.get, _OUTER_KEYS)):
        if isinstance(place, dict):
            for key in _SOURCE_KEYS:
                language = word(place.get(key))
                if language:
                    return language
    return None
