"""What differs between the interfaces that answer a chat: `ChatSvc` asks one of these objects.

A conversation is a list of turns for the v1 interface and one text for the general interface.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from .._calls import conversation_text
from .._wire import general, v1
from ..config import GENERAL, V1, Interface
from .profiles import documented_profile, text_profile

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


class _NewBody(Protocol):
    def __call__(
        self, model: RequestSettings, messages: WireMessages, *, stream: bool
    ) -> bytes: ...


@dataclass(frozen=True)
class ChatInterface:
    """An interface with a chat endpoint: its addresses, its requests and its bounds.

    Attributes:
        interface: Where it is, and the key for it.
        path: The path of its chat endpoint.
        models_path: The path of its listing of models.
        settings: The fields of a request that are settings of `ChatSvc`, by the same names.
        new_body: Makes the bytes of a request.
        problem: Says why the interface cannot take a model's settings; None where it can.
        profile: What the documents say about a model.
        closed: The fields of a request that are no text; see `hidden_body`.
        labels: What tells it from the v1 interface in traces and caches.
        as_one_text: Whether it takes a conversation as one text.
    """

    interface: Interface
    path: str
    models_path: str
    settings: tuple[str, ...]
    new_body: _NewBody
    problem: Callable[[RequestSettings], str | None]
    profile: Callable[[str | None], ModelProfile | None]
    closed: tuple[str, ...]
    labels: Mapping[str, str]
    as_one_text: bool = False


# -- v1: a list of turns ---------------------------------------------------------------------------


def _v1_body(model: RequestSettings, messages: WireMessages, *, stream: bool) -> bytes:
    return v1.chat_body(
        messages,
        model=model.model,
        temperature=model.temperature,
        max_tokens=model.max_tokens,
        stream=stream,
        extra=model.extra_body,
    )


def _v1_problem(model: RequestSettings) -> str | None:
    if model.model is None:
        return "model: must be a model id, such as 'svc-pro' (list_models() names them)"
    return None


# -- general: one text -----------------------------------------------------------------------------


def _general_body(
    model: RequestSettings, messages: WireMessages, *, stream: bool
) -> bytes:
    turns = [(message["role"], message["content"]) for message in messages]
    return general.chat_body(
        conversation_text(turns),
        model=model.model,
        temperature=model.temperature,
        stream=stream,
        extra=model.extra_body,
    )


def _general_problem(model: RequestSettings) -> str | None:
    highest = general.HIGHEST_TEMPERATURE
    if model.temperature is not None and model.temperature > highest:
        return (
            f"temperature: must be a number from 0 to {highest:g} on the general interface, "
            f"not {model.temperature:g}"
        )
    if model.max_tokens is not None:
        return (
            "max_tokens: the general interface has no such field; leave it out, or use "
            'interface="v1"'
        )
    reserved = general.CHAT_FIELDS & model.extra_body.keys()
    if reserved:
        names = ", ".join(sorted(reserved))
        return f"extra_body: must not hold {names}, which the request sets itself"
    return None


def _general_profile(model: str | None) -> ModelProfile:
    # The document names no models; one that has the id of a v1 model is taken for that model.
    return documented_profile(model) or text_profile(model, None)


CHAT_INTERFACES: dict[InterfaceName, ChatInterface] = {
    "v1": ChatInterface(
        V1,
        v1.CHAT_PATH,
        v1.MODELS_PATH,
        v1.CHAT_SETTINGS,
        _v1_body,
        _v1_problem,
        documented_profile,
        v1.CHAT_CLOSED,
        {},
    ),
    "general": ChatInterface(
        GENERAL,
        general.CHAT_PATH,
        general.MODELS_PATH,
        ("model", "temperature"),
        _general_body,
        _general_problem,
        _general_profile,
        general.CHAT_CLOSED,
        {"interface": "general"},
        as_one_text=True,
    ),
}
