"""What differs between the interfaces that answer a chat: `ChatSvc` asks one of these objects.

A conversation is a list of turns for the v1 interface and one text for the general interface.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from langchain_core.language_models import ModelProfile

from .._base.shown import html_table, plain
from .._settings import suggest_name
from .._text import conversation_text
from .._wire import WINDOWS, ModelRecord, general, read_prices, v1
from ..config import Endpoint
from ..errors import SvcRequestError

if TYPE_CHECKING:
    from .messages import WireMessages


# -- profiles --------------------------------------------------------------------------------------
# What each model can do, as data: LangChain's profiles for the models of the document.
#
# Windows are those of the v1 API, section 1 ("128K" read as 128,000). Every ability is said
# outright, also where it is missing, because agents take an absent value for "unknown".

DEFAULT_MODEL = "svc-turbo"
_HEAD = ("model", "context", "price in/out", "capabilities")

# What changes where the images of messages are described.
IMAGES_DESCRIBED = ModelProfile(
    image_inputs=True, image_url_inputs=True, image_tool_message=True
)


# Tools and structured output are this package's doing, by prompting, for every model alike.
_ABLE = (
    *("text_inputs", "text_outputs", "temperature"),
    *("tool_calling", "tool_choice", "structured_output"),
    "reasoning_output",  # read from the text of the answer
)
_UNABLE = (
    *("image_inputs", "image_url_inputs", "pdf_inputs", "audio_inputs", "video_inputs"),
    *("image_tool_message", "pdf_tool_message", "attachment"),
    *("image_outputs", "audio_outputs", "video_outputs"),
    "tool_call_streaming",
)


def text_profile(
    name: str | None, window: int | None, max_output_tokens: int | None = None
) -> ModelProfile:
    """The profile of a model behind the text-only chat endpoint."""
    profile: Any = {
        **dict.fromkeys(_ABLE, True),
        **dict.fromkeys(_UNABLE, False),
    }
    if name is not None:
        profile["name"] = name
    if window is not None:
        profile["max_input_tokens"] = window
    if max_output_tokens is not None:
        profile["max_output_tokens"] = max_output_tokens
    result: ModelProfile = profile
    return result


def documented_profile(model: str | None) -> ModelProfile | None:
    """The profile of a model that the document names; None for any other."""
    if model not in WINDOWS:
        return None
    return text_profile(model, WINDOWS[model])


class ListedModel(ModelRecord):
    """A model of the service's listing, with its LangChain profile."""

    @property
    def profile(self) -> ModelProfile:
        """What the model can do, for `ChatSvc(model=..., profile=...)`."""
        window = self.context_window or WINDOWS.get(self.id)
        return text_profile(self.id, window, self.max_tokens)

    def cells(self) -> tuple[str, ...]:
        """What a table shows: the id, the context window, the price, the capabilities."""
        window = self.profile.get("max_input_tokens")
        context = f"{window:,}" if window else "-"
        capabilities = ", ".join(self.capabilities) or "-"
        return self.id, context, self._price(), capabilities

    def _price(self) -> str:
        price = read_prices([self]).get(self.id)
        if price is not None:
            amounts = f"{plain(price.input * 1e6)} / {plain(price.output * 1e6)}"
            return " ".join(f"{amounts} {price.currency} per 1M".split())
        if self.pricing:
            return "unclear"
        return "-"

    def _repr_html_(self) -> str:
        return html_table(_HEAD, [self.cells()])


class ListedModels(list[ListedModel]):
    """The models of a listing, which a notebook shows as a table."""

    def _repr_html_(self) -> str:
        return html_table(_HEAD, [model.cells() for model in self])


def listed_models(body: bytes) -> list[ListedModel]:
    """The models in a listing."""
    return ListedModels(ListedModel(**vars(one)) for one in v1.read_models(body))


def find_listed(models: list[ListedModel], model_id: str | None) -> ListedModel:
    """The model of that id; a record without an id where the service chooses the model.

    Raises:
        SvcRequestError: It is not listed.
    """
    if model_id is None:
        return ListedModel("")
    for model in models:
        if model.id == model_id:
            return model
    raise SvcRequestError(
        f"The service lists no model {model_id!r}; "
        + suggest_name(model_id, [model.id for model in models])
    )


# -- interfaces ------------------------------------------------------------------------------------

InterfaceName = Literal["v1", "general"]


class RequestSettings(Protocol):
    """What a request says besides its conversation."""

    @property
    def model(self) -> str | None: ...
    @property
    def temperature(self) -> float | None: ...
    @property
    def extra_body(self) -> dict[str, Any]: ...


class _Body(Protocol):
    def __call__(
        self,
        messages: WireMessages,
        settings: Mapping[str, object],
        *,
        stream: bool,
        extra: Mapping[str, object],
    ) -> bytes: ...


@dataclass(frozen=True)
class ChatInterface:
    """An interface with a chat endpoint: its addresses, its requests and its bounds.

    Attributes:
        endpoint: The endpoint that answers a chat.
        models: The one that lists models.
        settings: The fields of a request that are settings of `ChatSvc`, by the same names.
        body: The bytes of a request.
        problem: Says why the interface cannot take a model's settings; None where it can.
        profile: What the documents say about a model.
        labels: What tells it from the v1 interface in traces and caches.
        as_one_text: Whether it takes a conversation as one text.
    """

    endpoint: Endpoint
    models: Endpoint
    settings: tuple[str, ...]
    body: _Body
    problem: Callable[[RequestSettings], str | None]
    profile: Callable[[str | None], ModelProfile | None]
    labels: Mapping[str, str]
    as_one_text: bool = False

    def new_body(
        self, model: RequestSettings, messages: WireMessages, *, stream: bool
    ) -> bytes:
        """The bytes of a request with a model's settings."""
        settings = {name: getattr(model, name) for name in self.settings}
        return self.body(messages, settings, stream=stream, extra=model.extra_body)


# -- v1: a list of turns ---------------------------------------------------------------------------


def _v1_problem(model: RequestSettings) -> str | None:
    if model.model is None:
        return "model: must be a model id, such as 'svc-pro' (list_models() names them)"
    return None


# -- general: one text -----------------------------------------------------------------------------


def _general_body(
    messages: WireMessages,
    settings: Mapping[str, object],
    *,
    stream: bool,
    extra: Mapping[str, object],
) -> bytes:
    turns = [(message["role"], message["content"]) for message in messages]
    text = conversation_text(turns)
    return general.chat_body(text, settings, stream=stream, extra=extra)


def _general_problem(model: RequestSettings) -> str | None:
    highest = general.HIGHEST_TEMPERATURE
    if model.temperature is not None and model.temperature > highest:
        return (
            f"temperature: must be a number from 0 to {highest:g} on the general interface, "
            f"not {model.temperature:g}"
        )
    for name in v1.CHAT_SETTINGS:
        if name not in general.CHAT_SETTINGS and getattr(model, name) is not None:
            return (
                f"{name}: the general interface has no such field; leave it out, or use "
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
        v1.CHAT,
        v1.MODELS,
        v1.CHAT_SETTINGS,
        v1.chat_body,
        _v1_problem,
        documented_profile,
        {},
    ),
    "general": ChatInterface(
        general.CHAT,
        general.MODELS,
        general.CHAT_SETTINGS,
        _general_body,
        _general_problem,
        _general_profile,
        {"interface": "general"},
        as_one_text=True,
    ),
}
