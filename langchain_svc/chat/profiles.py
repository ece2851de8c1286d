"""What each model can do, as data: LangChain's profiles for the models of the document.

Windows are those of the v1 API, section 1 ("128K" read as 128,000). Every ability is said
outright, also where it is missing, because agents take an absent value for "unknown".
"""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import ModelProfile

from .._base.shown import html_table, plain
from .._service import suggest_name
from .._wire import WINDOWS, ModelRecord, read_prices, v1
from ..errors import SvcRequestError

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
