"""What the endpoints of all three interfaces share."""

import base64
import binascii
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal

from langchain_svc.sandbox import answers
from langchain_svc.sandbox.answers import ChatAnswer
from langchain_svc.sandbox.catalogue import MODELS, Model
from langchain_svc.sandbox.exchanges import Exchange
from langchain_svc.sandbox.limits import Meter
from langchain_svc.sandbox.wire import Body, Problem, Reply

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
    exchange: Exchange
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

    run: Callable[[Ask, Any], Reply | Awaitable[Reply]]
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
