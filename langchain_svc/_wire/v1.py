"""The versioned interface (v1 API): its requests, its answers and its models."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json, to_json, to_jsonable_python

from .chunks import read_object
from .events import End, Event, Text, Usage

CHAT_PATH = "/chat/completions"
MODELS_PATH = "/models"
_BOM = b"\xef\xbb\xbf"
# v1 API, section 2: the bounds of a chat completion request.
LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 0.0, 2.0
MAX_TOKENS_BY_DEFAULT = 2_000  # where it is left out
# Section 1: the documented models and how many tokens they take ("128K" read as 128,000).
WINDOWS = {
    "svc-turbo": 128_000,
    "svc-pro": 200_000,
    "svc-vision": 128_000,
    "svc-code": 128_000,
}
# The fields of a chat completion request that are settings of `ChatSvc`, by the same names.
CHAT_SETTINGS = ("model", "temperature", "max_tokens")
CHAT_FIELDS = frozenset({*CHAT_SETTINGS, "messages", "stream"})


@dataclass(frozen=True)
class ModelRecord:
    """One model of GET /models, or of the general interface's GET /api/models.

    The record's fields are "not shown" beyond capabilities, context window and pricing
    (v1 API, section 2), so each is None or empty where no known key holds it.

    Attributes:
        id: The model id, for `ChatSvc(model=...)`.
        name: The name to show, and `provider` its label (general API, section 2).
        max_tokens: The most tokens of the model (the same).
        capabilities: What the service says the model can do.
        context_window: Its size in tokens.
        pricing: The pricing information, unchanged.
        raw: The whole record, unchanged.
    """

    id: str
    name: str | None = None
    provider: str | None = None
    max_tokens: int | None = None
    capabilities: tuple[str, ...] = ()
    context_window: int | None = None
    pricing: Mapping[str, Any] = field(default_factory=dict)
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)


class UnreadableError(ValueError):
    """A body that cannot be read as an answer; its text says why, without any of the body.

    Attributes:
        said: The error object that the body carried instead, if there was one.
    """

    def __init__(self, reason: str, said: Any = None) -> None:
        super().__init__(reason)
        self.said = said


def chat_body(
    messages: Sequence[Mapping[str, str]],
    settings: Mapping[str, Any],
    *,
    stream: bool,
    extra: Mapping[str, Any],
) -> bytes:
    """The bytes of a chat completion request.

    Args:
        messages: The conversation.
        settings: The values of `CHAT_SETTINGS`.
        stream: Whether the answer is to come in pieces.
        extra: Fields beside the documented ones, which the caller asked to send.
    """
    # The order is fixed, so that the same request is the same bytes in every cassette.
    body = {
        "model": settings["model"],
        "messages": messages,
        **settings,
        "stream": stream or None,
    }
    return dump_json({**given(body), **extra})


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a request that are not None: what is not given is not sent."""
    return {name: value for name, value in fields.items() if value is not None}


# Why an answer ended; "stop" occurs in section 2. These say that it was not let end.
_OUT_OF_ROOM = frozenset({"length", "max_tokens", "model_length"})
_CUTTING_REASONS = _OUT_OF_ROOM | {"content_filter"}


def is_out_of_room(reason: str | None) -> bool:
    """Whether a finish_reason says that the answer was too long, and so could go on."""
    return reason is not None and reason.lower() in _OUT_OF_ROOM


def is_cut(reason: str | None) -> bool:
    """Whether a finish_reason says that the answer was cut off."""
    return reason is not None and reason.lower() in _CUTTING_REASONS


def dump_json(value: Any) -> bytes:
    """JSON as UTF-8 bytes. Lone surrogates, which UTF-8 has no form for, become U+FFFD."""
    try:
        return to_json(value, inf_nan_mode="constants")
    except ValueError:
        text = json.dumps(value, ensure_ascii=False, default=to_jsonable_python)
        return without_surrogates(text).encode()


def without_surrogates(text: str) -> str:
    """A text with its halves of pairs joined, or U+FFFD where the other half is missing."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_completion(body: bytes) -> list[Event]:
    """The events of the whole answer in a body.

    Raises:
        UnreadableError: The body is not JSON, tells of a failure, or holds no text.
    """
    value = load_body(body)
    if not isinstance(value, dict):
        raise UnreadableError("it is not a JSON object")
    answer = read_object(value)
    if answer is None:
        raise UnreadableError("its JSON has none of the fields of an answer")
    if answer.error is not None:
        raise UnreadableError(
            "it carries an error under a status of success", answer.error
        )
    if answer.text is None:
        place = "its first choice holds" if answer.completion else "it holds"
        raise UnreadableError(f"{place} no text")
    events: list[Event] = [answer.metadata, Text(answer.text)]
    if answer.usage:
        events.append(Usage(answer.usage))
    if answer.finish_reason:
        events.append(End(answer.finish_reason))
    return events


def read_models(body: bytes) -> list[ModelRecord]:
    """The models of a listing: under `data` or `models`, or a bare list.

    Raises:
        UnreadableError: The body holds no list of models.
    """
    found: Any = load_body(body)
    if isinstance(found, dict):
        found = next(
            (found[k] for k in ("data", "models") if isinstance(found.get(k), list)),
            None,
        )
    if not isinstance(found, list):
        raise UnreadableError("it holds no list of models")
    records = [record for item in found if (record := _read_model(item)) is not None]
    if found and not records:
        raise UnreadableError("none of the models that it lists has an id")
    return records


def _read_model(item: Any) -> ModelRecord | None:
    if isinstance(item, str):
        return ModelRecord(item, raw={"id": item})
    if not isinstance(item, dict):
        return None
    id_ = next(
        (item[k] for k in ("id", "model", "name") if isinstance(item.get(k), str)), None
    )
    if id_ is None:
        return None
    pricing = item.get("pricing") or item.get("price")
    name, provider, most = (item.get(key) for key in ("name", "provider", "max_tokens"))
    return ModelRecord(
        id=id_,
        name=name if isinstance(name, str) else None,
        provider=provider if isinstance(provider, str) else None,
        max_tokens=most if type(most) is int else None,
        capabilities=_words(item.get("capabilities")),
        context_window=_first_size(item),
        pricing=pricing if isinstance(pricing, dict) else {},
        raw=item,
    )


def _words(value: Any) -> tuple[str, ...]:
    if isinstance(value, dict):
        return tuple(str(name) for name, has in value.items() if has)
    return tuple(str(name) for name in value) if isinstance(value, list) else ()


def _first_size(item: Mapping[str, Any]) -> int | None:
    """The context window: a number of tokens, or a text like `128K`."""
    for key in (
        "context_window",
        "context_length",
        "max_context",
        "max_input_tokens",
        "context",
    ):
        value = item.get(key)
        if isinstance(value, str):
            digits = value.strip().lower().removesuffix("tokens").strip()
            scale = {"k": 1_000, "m": 1_000_000}.get(digits[-1:], 1)
            digits = digits.rstrip("km").replace(",", "").replace("_", "")
            value = (
                int(digits) * scale if digits.isascii() and digits.isdigit() else None
            )
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def load_body(body: bytes) -> Any:
    """The JSON value of a body.

    Raises:
        UnreadableError: It holds none.
    """
    body = body.removeprefix(_BOM)
    if not body.strip():
        raise UnreadableError("it is empty")
    try:
        return from_json(body)
    except ValueError:
        pass
    try:
        # Half of a surrogate pair is an error there, but an ordinary cut for some servers.
        return from_json(dump_json(json.loads(body.decode())))
    except (ValueError, RecursionError):
        if body.lstrip().startswith(b"<"):
            raise UnreadableError(
                "it is a page of HTML, as a gateway or another server sends: check the address"
            ) from None
        raise UnreadableError("it is not valid JSON") from None
