"""What the endpoints of all three interfaces share."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from hashlib import sha256

from langchain_svc.sandbox import answers
from langchain_svc.sandbox.answers import Answer
from langchain_svc.sandbox.catalogue import MODELS, Model
from langchain_svc.sandbox.errors import Problem
from langchain_svc.sandbox.schema import Field
from langchain_svc.sandbox.wire import Reply, encode

SIZES = ("1024x1024", "1792x1024", "1024x1792")
QUALITIES = ("standard", "hd")


Messages = Sequence[Mapping[str, str]]


@dataclass(frozen=True)
class Ask:
    """One admitted request: its checked body, and what the sandbox knows around it."""

    body: dict[str, object]
    serial: int
    now: float
    seed: int
    strict: bool
    stream_format: str
    stream_usage: bool
    charge: Callable[[int], None]
    scripted: Callable[[Messages], str | None]

    def text(self, name: str, default: str) -> str:
        """Return an optional string field."""
        return str(self.body.get(name, default))

    def chat(self, messages: Messages, model: str, max_tokens: int | None = None) -> Answer:
        """Answer a chat: by the test's script, else by the rules."""
        text = self.scripted(messages)
        if text is not None:
            return answers.cut(text, messages, max_tokens)
        return answers.answer(messages, model=model, max_tokens=max_tokens)

    @property
    def streams(self) -> bool:
        """Whether the answer is to be delivered in pieces."""
        return self.body.get("stream") is True and self.stream_format != "json"

    @property
    def id(self) -> str:
        """The same for the same requests in the same order, and unique within a sandbox."""
        return f"{sha256(encode(self.body)).hexdigest()[:16]}{self.serial:06d}"

    @property
    def timestamp(self) -> str:
        """The time as ISO 8601 in UTC, to the millisecond."""
        moment = datetime.fromtimestamp(self.now, tz=timezone.utc)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True)
class Endpoint:
    """One row of a document's endpoint table; `fields` is None where there is no body."""

    run: Callable[[Ask], Reply]
    fields: tuple[Field, ...] | None = None
    slow: bool = False


def find_model(model_id: str) -> Model:
    """Return a model of the catalogue, or refuse with 404."""
    if model_id not in MODELS:
        raise Problem(
            404, "model: there is no such model; the listing has all.", code="model_not_found"
        )
    return MODELS[model_id]


def fit_window(model: Model, prompt_tokens: int) -> None:
    """Refuse a prompt that is longer than the model's context window."""
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
