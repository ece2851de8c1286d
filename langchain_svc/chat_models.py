"""`ChatSvc`: the chat completions of the v1 interface as a LangChain chat model."""

from __future__ import annotations

import json
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from langchain_core.language_models import LangSmithParams, ModelProfile
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.utils import from_env
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BeforeValidator, Field, TypeAdapter, ValidationError, model_validator

from ._http.exchange import Call, Limits, Request
from ._http.readers import TextReader, WholeReader
from ._messages import SystemRole, to_wire
from ._profiles import DEFAULT_MODEL, documented_profile, listed_profile
from ._settings import Retries, Seconds, ServiceSettings, did_you_mean, number
from ._tokens import TOKENS_A_TURN, count_tokens, encoding, surely_too_long
from ._turns import PROVIDER, Turn
from ._version import __version__
from ._wire import v1
from .config import ENV_BASE_URL_V1, V1, check_url, require_key, require_url
from .errors import SvcContextOverflowError, SvcRequestError

if TYPE_CHECKING:
    from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
    from langchain_core.messages import BaseMessage
    from typing_extensions import Self


def _check_model(value: Any) -> str:
    if not isinstance(value, str) or not value or not value.isprintable() or value != value.strip():
        raise ValueError("must be a model id, such as 'svc-pro' (list_models() names them)")
    return value


def _check_stop(value: Any) -> list[str] | None:
    stops = [value] if isinstance(value, str) else value
    if stops is None:
        return None
    if not isinstance(stops, (list, tuple)) or not all(isinstance(s, str) and s for s in stops):
        raise ValueError("must be a list of texts, none of them empty")
    return list(stops)


ModelId = Annotated[str, BeforeValidator(_check_model)]
Temperature = Annotated[float, number(v1.LOWEST_TEMPERATURE, v1.HIGHEST_TEMPERATURE)]
MaxTokens = Annotated[int, number(1, whole=True)]
Stop = Annotated[list[str], BeforeValidator(_check_stop)]

# What one call may set differently, with the same checks as the constructor's.
_OVERRIDES: dict[str, TypeAdapter[Any]] = {
    "model": TypeAdapter(ModelId),
    "temperature": TypeAdapter(Temperature | None),
    "max_tokens": TypeAdapter(MaxTokens | None),
    "timeout": TypeAdapter(Seconds | None),
    "deadline": TypeAdapter(Seconds | None),
    "max_retries": TypeAdapter(Retries),
    "stop": TypeAdapter(Stop | None),
}
# LangChain's own words, which have done their work before a call reaches us.
_LANGCHAIN_WORDS = frozenset({"stream"})


class ListedModel(v1.ModelRecord):
    """A model of the service's listing, with its LangChain profile."""

    @property
    def profile(self) -> ModelProfile:
        """What the model can do, for `ChatSvc(model=..., profile=...)`."""
        return listed_profile(self)


class ChatSvc(BaseChatModel, ServiceSettings):
    """A chat model on the service's v1 interface.

    Every way of calling a LangChain chat model works: `invoke`, `stream`, `batch`, their
    asynchronous twins, `stream_events`. Answers always carry `usage_metadata`, and
    `response_metadata` with `model_name`, `finish_reason`, `id`, `rate_limit` and
    `usage_source` ("service" or "estimated").

        from langchain_svc import ChatSvc

        model = ChatSvc(model="svc-pro", api_key="...", base_url_v1="https://.../v1")
        model.invoke("Good morning")

    Every setting can be given for one call too: `model.invoke(..., temperature=0)`.

    Raises:
        SvcError: Every failure of a call; see `langchain_svc.errors` for the tree.
        pydantic.ValidationError: From the constructor, for a setting out of its bounds.

    Rests on v1-api.md, sections 2, 4, 5, 7 and 8.
    """

    model: ModelId = DEFAULT_MODEL
    """The model's id."""

    temperature: Temperature | None = None
    """0 to 2; left to the service (0.7) where it is None."""

    max_tokens: MaxTokens | None = None
    """The most tokens of an answer; left to the service (2000) where it is None."""

    stop: Stop | None = None
    """Texts at which an answer ends. They are applied on our side, and not part of the answer."""

    streaming: bool = False
    """Whether `invoke` reads the answer as a stream too."""

    base_url_v1: str | None = Field(default_factory=from_env(ENV_BASE_URL_V1, default=None))
    """Where the interface is; its path ends in /v1."""

    system_role: SystemRole = "user"
    """"user" folds system text into the user turns; "system" sends it in a role of its own,
    which the documents do not show."""

    merge_events: bool = True
    """Whether the events that arrive in one network read become one chunk."""

    require_stream_end: bool = True
    """Whether a stream that just ends, with neither [DONE] nor a finish_reason, is an error."""

    @model_validator(mode="after")
    def _check_base_url_v1(self) -> Self:
        if self.base_url_v1 is not None:
            checked = check_url(self.base_url_v1, self.insecure_hosts) if self.base_url_v1 else None
            self.__dict__["base_url_v1"] = checked
        return self

    @model_validator(mode="after")
    def _set_langchain_svc_version(self) -> Self:
        self._add_version("langchain-svc", __version__)
        return self

    # -- what LangChain asks about a model ------------------------------------------------------

    @property
    def model_name(self) -> str:
        """The model's id, under the name that other integrations use."""
        return self.model

    @property
    def _llm_type(self) -> str:
        return "svc-chat"

    @property
    def lc_secrets(self) -> dict[str, str]:
        """Where the key comes from when a serialized model is loaded."""
        return {"api_key": "SVC_API_KEY"}

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Whether `langchain_core.load` can save and load the model: yes, without its key."""
        return True

    def _resolve_model_profile(self) -> ModelProfile | None:
        return documented_profile(self.model)

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "stop": self.stop,
            "system_role": self.system_role,
        }

    def _get_invocation_params(
        self, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        return {
            **self._identifying_params,
            "_type": self._llm_type,
            "stop": self.stop if stop is None else stop,
            **kwargs,
        }

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = LangSmithParams(
            ls_provider=PROVIDER,
            ls_model_name=kwargs.get("model") or self.model,
            ls_model_type="chat",
        )
        temperature = kwargs.get("temperature", self.temperature)
        if temperature is not None:
            params["ls_temperature"] = temperature
        max_tokens = kwargs.get("max_tokens", self.max_tokens)
        if max_tokens is not None:
            params["ls_max_tokens"] = max_tokens
        stops = self.stop if stop is None else stop
        if stops:
            params["ls_stop"] = stops
        return params

    # -- counting tokens ------------------------------------------------------------------------

    def get_token_ids(self, text: str) -> list[int]:
        """Token ids by tiktoken's encoding, which must be on this machine.

        Raises:
            SvcRequestError: It is not; `get_num_tokens` still gives an estimate.
        """
        if self.custom_get_token_ids is not None:
            return self.custom_get_token_ids(text)
        known = encoding()
        if known is None:
            raise SvcRequestError(
                "Token ids need tiktoken's o200k_base file, which is not in its cache here (set "
                "TIKTOKEN_CACHE_DIR to a folder that holds it); get_num_tokens needs none"
            )
        return known.encode(text, disallowed_special=())

    def get_num_tokens(self, text: str) -> int:
        """About how many tokens the text has: by tiktoken, or offline by a rule on characters."""
        if self.custom_get_token_ids is not None:
            return len(self.custom_get_token_ids(text))
        return count_tokens(text)

    def get_num_tokens_from_messages(
        self, messages: list[BaseMessage], tools: Sequence[Any] | None = None
    ) -> int:
        """About how many tokens a conversation has as it would be sent, with its tools."""
        turns = to_wire(messages, system_role=self.system_role)
        count = sum(self.get_num_tokens(turn["content"]) + TOKENS_A_TURN for turn in turns)
        if tools:
            schemas = (json.dumps(convert_to_openai_tool(tool)) for tool in tools)
            count += sum(map(self.get_num_tokens, schemas))
        return count

    # -- calling --------------------------------------------------------------------------------

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        turn = self._turn(messages, stop, kwargs, stream=False)
        (answer,) = self._run(turn.call)
        return turn.result(answer)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        turn = self._turn(messages, stop, kwargs, stream=False)
        (answer,) = [answer async for answer in self._arun(turn.call)]
        return turn.result(answer)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        turn = self._turn(messages, stop, kwargs, stream=True)
        with closing(self._run(turn.call)) as texts:
            for text in texts:
                chunk = turn.chunk(text)
                if chunk is not None:
                    yield chunk
                if turn.stopped:
                    break
        yield turn.last_chunk()

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        turn = self._turn(messages, stop, kwargs, stream=True)
        async with aclosing(self._arun(turn.call)) as texts:
            async for text in texts:
                chunk = turn.chunk(text)
                if chunk is not None:
                    yield chunk
                if turn.stopped:
                    break
        yield turn.last_chunk()

    def list_models(self) -> list[ListedModel]:
        """The models that the service lists (GET /models), each with its `.profile`.

        Raises:
            SvcError: As for any call; `SvcResponseError` when no list of models came.
        """
        (models,) = self._run(self._listing())
        return list(models)

    async def alist_models(self) -> list[ListedModel]:
        """The asynchronous twin of `list_models`."""
        (models,) = [models async for models in self._arun(self._listing())]
        return list(models)

    def _turn(
        self,
        messages: Sequence[BaseMessage],
        stop: list[str] | None,
        overrides: Mapping[str, Any],
        *,
        stream: bool,
    ) -> Turn:
        """Prepares one turn: everything that can go wrong before sending goes wrong here."""
        options = self._options(stop, overrides)
        turns = to_wire(messages, system_role=self.system_role)
        prompt = [turn["content"] for turn in turns]
        self._refuse_too_long(options.model, prompt)
        body = v1.chat_body(
            options.model,
            turns,
            temperature=options.temperature,
            max_tokens=options.max_tokens,
            stream=stream,
        )
        reader = self._new_text_reader if stream else _new_completion_reader
        call = self._new_call(
            "POST", v1.CHAT_PATH, reader, options.limits, body=body, private=tuple(prompt)
        )
        return Turn(call, options.model, prompt, tuple(options.stop or ()))

    def _options(self, stop: list[str] | None, overrides: Mapping[str, Any]) -> _Options:
        """The settings of one call: the constructor's, changed by what the call gives."""
        given = {name: _checked(name, value) for name, value in overrides.items()}
        stops = self.stop if stop is None else _checked("stop", stop)
        return _Options(
            model=given.get("model", self.model),
            temperature=given.get("temperature", self.temperature),
            max_tokens=given.get("max_tokens", self.max_tokens),
            stop=stops,
            limits=self._limits(given),
        )

    def _refuse_too_long(self, model: str, prompt: list[str]) -> None:
        profile = self.profile if model == self.model else documented_profile(model)
        window = (profile or {}).get("max_input_tokens")
        count = surely_too_long(prompt, window) if window else None
        if count is not None:
            raise SvcContextOverflowError(
                f"The prompt has about {count:,} tokens and cannot fit into the {window:,} of "
                f"{model!r}; nothing was sent. Shorten it or choose a model with a larger window"
            )

    def _listing(self) -> Call[Any]:
        return self._new_call("GET", v1.MODELS_PATH, _new_listing_reader, self._limits({}))

    def _run(self, call: Call[Any]) -> Generator[Any, None, None]:
        from ._http.client import run  # noqa: PLC0415  # httpx is imported at the first call

        return run(call, self._connected(call.request.url), self.http_client)

    def _arun(self, call: Call[Any]) -> AsyncGenerator[Any, None]:
        from ._http.client import arun  # noqa: PLC0415  # httpx is imported at the first call

        return arun(call, self._connected(call.request.url), self.http_async_client)

    def _new_call(
        self,
        method: str,
        path: str,
        reader: Callable[[], Any],
        limits: Limits,
        *,
        body: bytes | None = None,
        private: tuple[str, ...] = (),
    ) -> Call[Any]:
        key = require_key(V1, self._key())
        request = Request(
            method=method,
            url=require_url(V1, self.base_url_v1) + path,
            headers=(*V1.key_headers(key), *self._headers(has_body=body is not None)),
            body=body,
            private=private,
            secrets=(key,),
        )
        return Call(request, limits, reader)

    def _new_text_reader(self) -> TextReader:
        return TextReader(merge=self.merge_events, strict_end=self.require_stream_end)


@dataclass(frozen=True)
class _Options:
    """The settings of one call."""

    model: str
    temperature: float | None
    max_tokens: int | None
    stop: list[str] | None
    limits: Limits


def _checked(name: str, value: Any) -> Any:
    """What one call sets differently, checked as the constructor would."""
    if name in _LANGCHAIN_WORDS:
        return value
    check = _OVERRIDES.get(name)
    if check is None:
        raise SvcRequestError(
            f"A call of ChatSvc takes no {name!r}; {did_you_mean(name, _OVERRIDES)}"
        )
    try:
        return check.validate_python(value)
    except ValidationError as error:
        said = error.errors(include_url=False, include_context=False, include_input=False)
        raise SvcRequestError(f"{name} {said[0]['msg'].removeprefix('Value error, ')}") from None


def _listed_models(body: bytes) -> list[ListedModel]:
    return [ListedModel(**vars(record)) for record in v1.read_models(body)]


_new_completion_reader = partial(WholeReader, v1.read_completion)
_new_listing_reader = partial(WholeReader, _listed_models)
