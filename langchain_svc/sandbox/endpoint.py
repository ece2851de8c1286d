"""What the endpoints of all three interfaces share."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal

from langchain_svc.sandbox import answers
from langchain_svc.sandbox.answers import ChatAnswer
from langchain_svc.sandbox.limits import Meter
from langchain_svc.sandbox.log import ServedExchange
from langchain_svc.sandbox.wire import Body, HttpReply, Problem

Size = Literal["1024x1024", "1792x1024", "1024x1792"]
Quality = Literal["standard", "hd"]
Messages = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class Settings:
    """What a sandbox was asked to be."""

    plan: str
    api_key: str
    medical_api_key: str
    stream_format: str | None
    stream_usage: bool
    strict: bool
    reset_format: str
    seed: int
    clock: Callable[[], float]


@dataclass(frozen=True)
class Ask:
    """What the sandbox knows around an admitted request.

    The `id` is the same for the same requests in the same order, and unique within a sandbox.
    `scripted` gives the text that a test has written for a chat, or None.
    """

    id: str
    now: float
    settings: Settings
    stream_format: str
    meter: Meter
    exchange: ServedExchange
    scripted: Callable[[Messages], str | None]

    def chat(self, messages: Messages, model_id: str, max_tokens: int | None = None) -> ChatAnswer:
        """ChatAnswer a chat: by the test's script, else by the rules; its tokens are counted."""
        answer = self.scripted_chat(messages, model_id, max_tokens)
        if answer is None:
            answer = answers.answer(messages, model=model_id, max_tokens=max_tokens)
            self._admit(model_id, answer)
        return answer

    def scripted_chat(
        self, messages: Messages, model_id: str, max_tokens: int | None = None
    ) -> ChatAnswer | None:
        """ChatAnswer a chat by the test's script; None where it has no more."""
        if model_id not in MODELS:
            raise Problem(
                404, "There is no such model; GET models lists all.", code="model_not_found"
            )
        text = self.scripted(messages)
        if text is None:
            return None
        answer = answers.cut(text, messages, max_tokens)
        self._admit(model_id, answer)
        return answer

    def _admit(self, model_id: str, answer: ChatAnswer) -> None:
        _fit_window(MODELS[model_id], answer.prompt_tokens)
        self.charge(answer)

    def charge(self, answer: ChatAnswer) -> None:
        """Count the tokens of an answer."""
        self.meter.charge(answer.total_tokens)
        self.exchange.tokens = (answer.prompt_tokens, answer.completion_tokens)

    @property
    def timestamp(self) -> str:
        """The time as ISO 8601 in UTC, to the millisecond."""
        moment = datetime.fromtimestamp(self.now, tz=timezone.utc)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class Endpoint:
    """One row of a document's endpoint table; `body` is None where there is none."""

    run: Callable[[Ask, Any], HttpReply | Awaitable[HttpReply]]
    body: type[Body] | None = None
    slow: bool = False


def _fit_window(model: Model, prompt_tokens: int) -> None:
    if prompt_tokens > model.window:
        raise Problem(
            400,
            f"The prompt has {prompt_tokens} tokens; {model.id} takes {model.window}.",
            code="context_length_exceeded",
        )


def image_bytes(text: str, name: str) -> bytes:
    """Decode base64, plain or as a data URI, or refuse it with 400 naming the field."""
    payload = text
    if text[:5].lower() == "data:":
        head, _, payload = text.partition(",")
        if not head.lower().endswith(";base64"):
            raise Problem(400, f"{name}: expected a data URI in base64.")
    try:
        data = base64.b64decode("".join(payload.split()), validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not data:
        raise Problem(400, f"{name}: expected an image in base64.")
    return data


DEFAULT_MODEL = "svc-turbo"


@dataclass(frozen=True)
class Model:
    """One model: `window` is both its context window and the general API's `max_tokens`."""

    id: str
    name: str
    provider: str
    capabilities: tuple[str, ...]
    window: int


# The four of the v1 document, with invented prices in USD per million tokens (input, output).
_PRICES = {
    "svc-turbo": (0.5, 1.5),
    "svc-pro": (5.0, 15.0),
    "svc-vision": (2.5, 7.5),
    "svc-code": (1.0, 3.0),
}

_MODELS = (
    Model("svc-turbo", "SVC Turbo", "SVC", ("chat",), 128_000),
    Model("svc-pro", "SVC Pro", "SVC", ("chat", "code", "analysis"), 200_000),
    Model("svc-vision", "SVC Vision", "SVC", ("chat", "vision", "analysis"), 128_000),
    Model("svc-code", "SVC Code", "SVC", ("chat", "code"), 128_000),
    Model("svc-mini", "SVC Mini", "SVC", ("chat",), 32_000),
    Model("svc-analyst", "SVC Analyst", "SVC", ("chat", "analysis"), 128_000),
    Model("alder-small", "Alder Small", "Alder Works", ("chat",), 16_000),
    Model("alder-medium", "Alder Medium", "Alder Works", ("chat", "analysis"), 64_000),
    Model("alder-large", "Alder Large", "Alder Works", ("chat", "code", "analysis"), 128_000),
    Model("brook-swift", "Brook Swift", "Brookside Lab", ("chat",), 8_000),
    Model("brook-deep", "Brook Deep", "Brookside Lab", ("chat", "analysis"), 200_000),
    Model("brook-eye", "Brook Eye", "Brookside Lab", ("chat", "vision"), 32_000),
    Model("cinder-7", "Cinder 7", "Cinderpath", ("chat",), 8_000),
    Model("cinder-30", "Cinder 30", "Cinderpath", ("chat", "code"), 32_000),
    Model("cinder-90", "Cinder 90", "Cinderpath", ("chat", "code", "analysis"), 64_000),
    Model("dune-lite", "Dune Lite", "Dunelight", ("chat",), 4_000),
    Model("dune-code", "Dune Code", "Dunelight", ("chat", "code"), 64_000),
    Model("dune-sight", "Dune Sight", "Dunelight", ("chat", "vision"), 64_000),
    Model("ember-base", "Ember Base", "Emberfield", ("chat",), 16_000),
    Model("ember-reason", "Ember Reason", "Emberfield", ("chat", "analysis"), 128_000),
    Model("fjord-one", "Fjord One", "Fjord Systems", ("chat", "vision", "code"), 128_000),
    Model("fjord-long", "Fjord Long", "Fjord Systems", ("chat", "analysis"), 200_000),
    Model("grove-mini", "Grove Mini", "Grovekeeper", ("chat",), 8_000),
)

MODELS = {model.id: model for model in _MODELS}


def general_listing() -> dict[str, object]:
    """Return the body of GET /api/models: all 23 records."""
    return {
        "models": [
            {
                "id": model.id,
                "name": model.name,
                "provider": model.provider,
                "capabilities": list(model.capabilities),
                "max_tokens": model.window,
            }
            for model in MODELS.values()
        ]
    }


def v1_listing() -> dict[str, object]:
    """Return the body of GET /v1/models: the four models that the v1 document names."""
    return {"object": "list", "data": [_v1_record(MODELS[name]) for name in _PRICES]}


def _v1_record(model: Model) -> dict[str, object]:
    price_in, price_out = _PRICES[model.id]
    return {
        "id": model.id,
        "object": "model",
        "capabilities": list(model.capabilities),
        "context_window": model.window,
        "pricing": {
            "input": price_in,
            "output": price_out,
            "currency": "USD",
            "per_tokens": 1_000_000,
        },
    }
