"""The versioned interface (v1 API): its requests, its answers, its models and their prices."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic_core import from_json, to_json, to_jsonable_python

from ..config import V1, Endpoint
from .body import MOST_VALUES, has_too_many_values
from .chunks import End, Event, Text, Usage, read_object

_BOM = b"\xef\xbb\xbf"
# v1 API, section 2: the bounds of a chat completion request.
LOWEST_TEMPERATURE = 0.0
HIGHEST_TEMPERATURE = 2.0
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
# The model's name is of a closed set, and a turn hides its messages itself.
CHAT = Endpoint(V1, "POST", "/chat/completions", closed=("model", "messages"))
MODELS = Endpoint(V1, "GET", "/models")
_WINDOW_KEYS = (
    "context_window",
    "context_length",
    "max_context",
    "max_input_tokens",
    "context",
)
T = TypeVar("T")


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
        error: The error object that the body carried instead, if there was one.
    """

    def __init__(self, reason: str, error: object = None) -> None:
        super().__init__(reason)
        self.error = error


def chat_body(
    messages: Sequence[Mapping[str, str]],
    settings: Mapping[str, object],
    *,
    stream: bool,
    extra: Mapping[str, object],
) -> bytes:
    """The bytes of a chat request: the `CHAT_SETTINGS` that are not None, and further fields."""
    # The order is fixed, so that the same request is the same bytes in every cassette.
    body = {
        "model": settings["model"],
        "messages": messages,
        **settings,
        "stream": stream or None,
    }
    return dump_json({**drop_none(body), **extra})


def drop_none(fields: Mapping[str, object]) -> dict[str, object]:
    """The fields of a request that are not None: what is not set is not sent."""
    return {name: value for name, value in fields.items() if value is not None}


# Why an answer ended; "stop" occurs in section 2. These say that it was cut off.
_OUT_OF_ROOM = frozenset({"length", "max_tokens", "model_length"})
_CUTTING_REASONS = _OUT_OF_ROOM | {"content_filter"}


def is_out_of_room(reason: str | None) -> bool:
    """Whether a finish_reason says that the answer was too long, and so could go on."""
    return reason is not None and reason.lower() in _OUT_OF_ROOM


def is_cut(reason: str | None) -> bool:
    """Whether a finish_reason says that the answer was cut off."""
    return reason is not None and reason.lower() in _CUTTING_REASONS


def dump_json(value: object) -> bytes:
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
    listing = load_body(body)
    if isinstance(listing, dict):
        listing = _first_of_type(listing, ("data", "models"), list)
    if not isinstance(listing, list):
        raise UnreadableError("it holds no list of models")
    records = []
    for item in listing:
        record = _read_model(item)
        if record is not None:
            records.append(record)
    if listing and not records:
        raise UnreadableError("none of the models that it lists has an id")
    return records


def _first_of_type(
    fields: Mapping[str, object], keys: Sequence[str], kind: type[T]
) -> T | None:
    """The first value under these keys that is of a type."""
    for key in keys:
        value = fields.get(key)
        if isinstance(value, kind):
            return value
    return None


def _read_model(item: object) -> ModelRecord | None:
    if isinstance(item, str):
        return ModelRecord(item, raw={"id": item})
    if not isinstance(item, dict):
        return None
    model_id = _first_of_type(item, ("id", "model", "name"), str)
    if model_id is None:
        return None
    max_tokens = item.get("max_tokens")
    if type(max_tokens) is not int:
        max_tokens = None
    pricing = item.get("pricing") or item.get("price")
    if not isinstance(pricing, dict):
        pricing = {}
    return ModelRecord(
        id=model_id,
        name=_first_of_type(item, ("name",), str),
        provider=_first_of_type(item, ("provider",), str),
        max_tokens=max_tokens,
        capabilities=_capabilities(item.get("capabilities")),
        context_window=_context_window(item),
        pricing=pricing,
        raw=item,
    )


def _capabilities(value: object) -> tuple[str, ...]:
    """The names in a list, or those that a table switches on."""
    if isinstance(value, dict):
        return tuple(str(name) for name, is_on in value.items() if is_on)
    if isinstance(value, list):
        return tuple(map(str, value))
    return ()


def _context_window(item: Mapping[str, object]) -> int | None:
    """The context window: a number of tokens, or a text like `128K`."""
    for key in _WINDOW_KEYS:
        value = item.get(key)
        if isinstance(value, str):
            value = _size_of(value)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _size_of(text: str) -> int | None:
    """The number that a text like `128K`, `1M tokens` or `200,000` stands for."""
    text = text.strip().lower().removesuffix("tokens").strip()
    scale = {"k": 1_000, "m": 1_000_000}.get(text[-1:], 1)
    digits = text.rstrip("km").replace(",", "").replace("_", "")
    if not digits.isascii() or not digits.isdigit():
        return None
    return int(digits) * scale


def load_body(body: bytes) -> object:
    """The JSON value of a body.

    Raises:
        UnreadableError: It holds none.
    """
    body = body.removeprefix(_BOM)
    if not body.strip():
        raise UnreadableError("it is empty")
    if has_too_many_values(body):
        raise UnreadableError(f"it holds more than {MOST_VALUES:,} values")
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


# -- prices ----------------------------------------------------------------------------------------
# What tokens cost, as the caller says or the service lists it.
#
# The fields of a listed price are "not shown" (v1 API, section 2). Read are a number for tokens
# in (`input` or `prompt`) and one for tokens out (`output` or `completion`), `per_tokens`, to
# how many tokens they refer, and `currency`. Without `per_tokens` a price is not read: guessed
# wrongly, it would be wrong by a million.


@dataclass(frozen=True)
class Price:
    """What one token in and one token out cost."""

    input: float
    output: float
    currency: str = ""


def read_prices(source: object) -> dict[str, Price]:
    """The prices of models by their ids.

    Args:
        source: Prices by model id, as dicts; or the models of `ChatSvc.list_models()`, of which
            those without a price that can be read are left out.

    Raises:
        ValueError: It is neither, or a price by model id cannot be read.
    """
    prices: dict[str, Price] = {}
    if isinstance(source, Mapping):
        for model_id, pricing in source.items():
            price = _read_price(pricing)
            if price is None:
                raise ValueError(
                    f"The price of {model_id!r} is unclear: {pricing!r:.200}. {_FORM}"
                )
            prices[model_id] = price
        return prices
    models = [source]
    if isinstance(source, Iterable):
        models = list(source)
    for model in models:
        if not hasattr(model, "id") or not hasattr(model, "pricing"):
            raise ValueError(f"Prices cannot be {source!r:.200}. {_FORM}")
        price = _read_price(model.pricing)
        if price is not None:
            prices[model.id] = price
    return prices


_FORM = (
    "Give the models of list_models(), or by model id "
    '{"input": 5.0, "output": 15.0, "per_tokens": 1_000_000, "currency": "USD"}'
)


def _read_price(pricing: object) -> Price | None:
    if isinstance(pricing, Price):
        return pricing
    if not isinstance(pricing, Mapping):
        return None
    tokens_in = _number(pricing.get("input", pricing.get("prompt")))
    tokens_out = _number(pricing.get("output", pricing.get("completion")))
    per_tokens = _number(pricing.get("per_tokens"))
    if tokens_in is None or tokens_out is None or not per_tokens:
        return None
    currency = str(pricing.get("currency") or "")[:12]
    return Price(tokens_in / per_tokens, tokens_out / per_tokens, currency)


def _number(value: Any) -> float | None:
    """A number that is not below 0, also written as text."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    if number < 0 or not math.isfinite(number):
        return None
    return number
