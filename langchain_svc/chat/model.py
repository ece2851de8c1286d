"""What `ChatSvc` stands on: tokens are counted, models are listed, and a turn is run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import aclosing, closing
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, TypeVar

from langchain_core.language_models import LangSmithParams
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import model_validator

from .._base.tokens import count_tokens, encoding
from .._client import EventParser, Exchange, WholeParser
from .._settings import (
    ServiceSettings,
    keep_prices,
    limits_of,
    new_exchange,
    set_uncached,
)
from .._version import __version__
from .._wire import Event, read_prices
from ..errors import SvcRequestError
from .interfaces import ChatInterface, ListedModel, listed_models
from .prepare import Stop
from .readers import LONG
from .turn import PROVIDER, Turn

T = TypeVar("T")


class ServiceModel(ServiceSettings):
    """A mixin that stands before LangChain's `BaseChatModel`."""

    if TYPE_CHECKING:
        # Fields and methods of LangChain's, which Pydantic must not see a second time.
        custom_get_token_ids: Callable[[str], list[int]] | None = None

        def _add_version(self, pkg: str, version: str) -> None: ...

    overrides: ClassVar[frozenset[str]]
    """The settings that one call may have of its own."""

    stop: Stop | None = None
    """Texts at which an answer ends. They are applied on our side, and not part of the answer."""

    streaming: bool = False
    """Whether `invoke` reads the answer as a stream too."""

    merge_events: bool = True
    """Whether the events that arrive in one network read become one chunk."""

    require_stream_end: bool = True
    """Whether a stream that just ends, with neither [DONE] nor a finish_reason, is an error."""

    _keep_from_cache = model_validator(mode="after")(set_uncached)

    @model_validator(mode="after")
    def _set_langchain_svc_version(self) -> Self:
        self._add_version("langchain-svc", __version__)
        return self

    @property
    def chat_interface(self) -> ChatInterface:
        """The interface that answers, with its requests and bounds."""
        raise NotImplementedError

    @property
    def lc_secrets(self) -> dict[str, str]:
        """Where the key comes from when a serialized model is loaded."""
        return {"api_key": "SVC_API_KEY"}

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Whether `langchain_core.load` can save and load the model: yes, without its key."""
        return True

    def _get_ls_params(
        self, stop: list[str] | None = None, **kwargs: Any
    ) -> LangSmithParams:
        if stop is None:
            stop = self.stop
        params: LangSmithParams = super()._get_ls_params(stop, **kwargs)  # type: ignore[misc]  # LangChain's
        params["ls_provider"] = PROVIDER
        model = kwargs.get("model_name")  # LangChain itself reads `model` of a call
        if isinstance(model, str):
            params["ls_model_name"] = model
        return params

    @classmethod
    def _setting_type(cls, name: str) -> Any:
        """The type of a setting, with its checks."""
        field = cls.model_fields[name]
        return Annotated[field.annotation, field]

    # -- counting tokens ------------------------------------------------------------------------

    def get_token_ids(self, text: str) -> list[int]:
        """Token ids by tiktoken's encoding, which must be on this machine.

        Raises:
            SvcRequestError: It is not; `get_num_tokens` still gives an estimate.
        """
        if self.custom_get_token_ids is not None:
            return self.custom_get_token_ids(text)
        tokenizer = encoding()
        if tokenizer is None:
            raise SvcRequestError(
                "Token ids need tiktoken's o200k_base file, which is not in its cache here (set "
                "TIKTOKEN_CACHE_DIR to a folder that holds it); get_num_tokens needs none"
            )
        return tokenizer.encode(text, disallowed_special=())

    def get_num_tokens(self, text: str) -> int:
        """About how many tokens the text has.

        With a `quota`, by the tokens a byte that the service reported for prompts; before any
        report, or without one, by tiktoken, or offline by a rule on characters.
        """
        if self.custom_get_token_ids is not None:
            return len(self.custom_get_token_ids(text))
        size = len(text.encode(errors="surrogatepass"))
        if self.quota is not None:
            estimate = self.quota.estimates.text(size)
            if estimate is not None:
                return estimate
        return count_tokens(text)

    # -- the models ----------------------------------------------------------------------------

    def list_models(self) -> list[ListedModel]:
        """The models that the service lists on this interface, each with its `.profile`.

        Raises:
            SvcError: As for any call; `SvcResponseError` when no list of models came.
        """
        (models,) = self._client.read(self._listing())
        return self._listed(models)

    async def alist_models(self) -> list[ListedModel]:
        """The async version of `list_models`."""
        (models,) = [models async for models in self._client.aread(self._listing())]
        return self._listed(models)

    def _listing(self) -> Exchange[list[ListedModel]]:
        parser = partial(WholeParser, listed_models)
        chat = self.chat_interface
        return new_exchange(self, chat.models, parser, limits_of(self))

    def _listed(self, models: list[ListedModel]) -> list[ListedModel]:
        """The models of a listing, whose prices count for budgets without any of their own."""
        keep_prices(self, self.chat_interface.models.interface, read_prices(models))
        return models

    # -- running a turn -------------------------------------------------------------------------

    def _answer(self, turn: Turn) -> ChatResult:
        while turn.exchange is not None:
            (events,) = self._client.read(turn.exchange)
            turn.read_answer(events)
        return turn.result()

    async def _aanswer(self, turn: Turn) -> ChatResult:
        while turn.exchange is not None:
            (events,) = [events async for events in self._client.aread(turn.exchange)]
            await _aread(turn.size_with(events), turn.read_answer, events)
        return turn.result()

    def _chunks(
        self, begin: Callable[[], Turn]
    ) -> Generator[ChatGenerationChunk, None, None]:
        turn = begin()
        while turn.exchange is not None:
            with closing(self._client.read(turn.exchange)) as reads:
                for events in reads:
                    yield from turn.read_events(events)
                    if turn.stopped:
                        break
            yield from turn.end_stream()

    async def _achunks(
        self, begin: Callable[[], Awaitable[Turn]]
    ) -> AsyncGenerator[ChatGenerationChunk, None]:
        turn = await begin()
        while turn.exchange is not None:
            async with aclosing(self._client.aread(turn.exchange)) as reads:
                async for events in reads:
                    size = turn.size_with(events)
                    for chunk in await _aread(size, turn.read_events, events):
                        yield chunk
                    if turn.stopped:
                        break
            for chunk in await _aread(turn.size, turn.end_stream):
                yield chunk

    def _new_event_parser(self) -> EventParser:
        return EventParser(merge=self.merge_events, strict_end=self.require_stream_end)


async def _aread(size: int, read: Callable[..., T], *events: list[Event]) -> T:
    """What a turn makes of an answer; a long one is read in a thread, so that the loop goes on."""
    if size <= LONG:
        return read(*events)
    return await asyncio.to_thread(read, *events)
