"""What differs between the interfaces that answer a chat: `ChatSvc` asks one of these objects.

A conversation is a list of turns for the v1 interface and one text for the general interface.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from .._calls import conversation_text
from .._wire import general, v1
from ..config import GENERAL, V1, Interface
from .profiles import DEFAULT_MODEL, documented_profile, text_profile

if TYPE_CHECKING:
    from langchain_core.language_models import ModelProfile

    from .messages import WireMessages

InterfaceName = Literal["v1", "general"]


class RequestSettings(Protocol):
    """What a request says besides its conversation."""

    @property
    def model(self) -> str | None: ...
    @property
    def temperature(self) -> float | None: ...
    @property
    def max_tokens(self) -> int | None: ...
    @property
    def extra_body(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class ChatInterface:
    """An interface with a chat endpoint: its addresses, its requests and its bounds.

    Attributes:
        interface: Where it is, and the key for it.
        path: The path of its chat endpoint.
        models_path: The path of its listing of models.
        default_model: The model of a `ChatSvc` that names none; None leaves it to the service.
        settings: The fields of a request that are settings of `ChatSvc`, by the same names.
        labels: What tells it from other interfaces in traces and caches.
    """

    interface: Interface
    path: str
    models_path: str
    default_model: str | None
    settings: tuple[str, ...]
    labels: tuple[tuple[str, str], ...] = ()

    def body(
        self, model: RequestSettings, messages: WireMessages, *, stream: bool
    ) -> bytes:
        """The bytes of a request."""
        raise NotImplementedError

    def problem(self, model: RequestSettings) -> str | None:
        """Why the interface cannot take a model's settings; None where it can."""
        raise NotImplementedError

    def profile(self, model: str | None) -> ModelProfile | None:
        """What the documents say about a model."""
        raise NotImplementedError


class _V1Chat(ChatInterface):
    def body(
        self, model: RequestSettings, messages: WireMessages, *, stream: bool
    ) -> bytes:
        settings = {name: getattr(model, name) for name in self.settings}
        return v1.chat_body(messages, settings, stream=stream, extra=model.extra_body)

    def problem(self, model: RequestSettings) -> str | None:
        if model.model is None:
            return (
                "model must be a model id, such as 'svc-pro' (list_models() names them)"
            )
        return None

    def profile(self, model: str | None) -> ModelProfile | None:
        if model is None:
            return None
        return documented_profile(model)


class _GeneralChat(ChatInterface):
    def body(
        self, model: RequestSettings, messages: WireMessages, *, stream: bool
    ) -> bytes:
        return general.chat_body(
            conversation_text(_turns(messages)),
            model=model.model,
            temperature=model.temperature,
            stream=stream,
            extra=model.extra_body,
        )

    def problem(self, model: RequestSettings) -> str | None:
        highest = general.HIGHEST_TEMPERATURE
        if model.temperature is not None and model.temperature > highest:
            return (
                f"temperature must be a number from 0 to {highest:g} on the general interface, "
                f"not {model.temperature:g}"
            )
        if model.max_tokens is not None:
            return (
                "max_tokens is no field of the general interface: leave it out, or use "
                'interface="v1"'
            )
        reserved = general.CHAT_FIELDS & model.extra_body.keys()
        if reserved:
            return (
                f"extra_body must not hold {sorted(reserved)}: the request sets these"
            )
        return None

    def profile(self, model: str | None) -> ModelProfile | None:
        # The document names no models: their windows are known from a listing only.
        return text_profile(model, None)


def _turns(messages: WireMessages) -> Sequence[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in messages]


CHAT_INTERFACES: dict[InterfaceName, ChatInterface] = {
    "v1": _V1Chat(V1, v1.CHAT_PATH, v1.MODELS_PATH, DEFAULT_MODEL, v1.CHAT_SETTINGS),
    "general": _GeneralChat(
        GENERAL,
        general.CHAT_PATH,
        general.MODELS_PATH,
        None,
        ("model", "temperature"),
        (("interface", "general"),),
    ),
}
