"""`ChatSvc`: the chat completions of the v1 interface as a LangChain chat model."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import suppress
from functools import partial
from importlib import import_module
from inspect import signature
from operator import attrgetter
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Literal,
    Self,
    TypeVar,
    overload,
)

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models import (
    BaseChatModel,
    LangSmithParams,
    LanguageModelInput,
    ModelProfile,
)
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from pydantic import ConfigDict, Field, model_validator

from .._base.tokens import count_tokens, encoding
from .._calls import ToolFormat
from .._client import (
    AnswerParser,
    CompletionParser,
    EventParser,
    Exchange,
    WholeParser,
)
from .._settings import (
    Retries,
    keep_prices,
    keeps_runs,
    limits_of,
    new_exchange,
    set_uncached,
    url_of,
    vision_exchange,
)
from .._version import __version__
from .._wire import Event, read_prices, v1
from ..config import GENERAL, V1, Interface
from ..errors import SvcRequestError
from ..images import ImageStore
from .citing_model import CitingModel
from .interfaces import (
    CHAT_INTERFACES,
    DEFAULT_MODEL,
    IMAGES_DESCRIBED,
    ChatInterface,
    InterfaceName,
    ListedModel,
    find_listed,
    listed_models,
)
from .loops import aanswer, achunks, answer, chunks
from .messages import SystemRole, WireMessages
from .prepare import (
    CallOptions,
    ContinueBy,
    ExtraBody,
    MaxTokens,
    ModelId,
    OnCut,
    Stop,
    Temperature,
    call_options,
    count_prompt,
    new_turn,
    traced_options,
)
from .readers import ToolLike
from .turn import PROVIDER, Turn, summed_outputs

CHAT_MODEL = ("langchain_svc", "ChatSvc")
"""Where the chat model is for LangChain, which may not move: saved models name this place."""
_Method = Literal["json_schema", "function_calling", "json_mode"]
_Object = TypeVar("_Object")


def _alias_of(name: str) -> property:
    """A property that reads and sets the field of another name."""

    def set_field(model: object, value: object) -> None:
        setattr(model, name, value)

    return property(attrgetter(name), set_field, doc=f"The same as `{name}`.")


@keeps_runs
class ChatSvc(CitingModel, BaseChatModel):
    """A chat model on the service's v1 interface, or with `interface="general"` on the general one.

    Every way of calling a LangChain chat model works: `invoke`, `stream`, `batch`, their async
    versions, `stream_events`. Tool calls and objects are asked for in the prompt, since the
    endpoint knows neither, and read from the answer's text.

    Setup:
        The key and the address come from your provider. Without a key, `langchain-svc sandbox`
        serves on your machine, and prints variables that work.

        ```sh
        pip install -c constraints.txt ".[agents,cli,sandbox]"
        export SVC_API_KEY="..." SVC_BASE_URL_V1="https://.../v1"
        ```

    Key init args (completion params):
        - `model`: The model's id, such as "svc-pro"; `list_models()` names them.
        - `temperature`: 0 to 2.
        - `max_tokens`: The most tokens of an answer; the service takes 2,000 where it is None.
        - `stop`: Texts that end an answer, applied by the client.

    Key init args (client params):
        - `api_key`: The key; otherwise `SVC_API_KEY`.
        - `base_url_v1`: The address; otherwise `SVC_BASE_URL_V1`.
        - `interface`: "general" asks the general interface at `base_url` (`SVC_BASE_URL`) instead.
        - `timeout`: Seconds to wait for the next byte. `deadline` bounds the whole call.
        - `max_retries`: How often a call is tried again.

    Instantiate:
        ```python
        from langchain_svc import ChatSvc

        model = ChatSvc(model="svc-pro", temperature=0, max_retries=2)
        ```

    Invoke:
        ```python
        messages = [("system", "Answer in one sentence."), ("human", "What is 17 * 23?")]
        answer = model.invoke(messages)
        print(answer.text)
        ```

        Settings that shape an answer can be given for one call, `model.invoke(...,
        temperature=0)`: `model`, `max_tokens`, `stop`, `timeout`, `deadline`, `max_retries`,
        `max_repairs`, `on_cut`, `max_continuations`, `continue_by`, `extra_body`.

    Stream:
        ```python
        for chunk in model.stream("Tell me a joke about HTTP."):
            print(chunk.text, end="")
        ```

    Async:
        ```python
        answer = await model.ainvoke("What is 17 * 23?")
        ```

    Tool calling:
        ```python
        def weather(city: str) -> str:
            \"\"\"Say what the weather of a city is.\"\"\"
            return f"It is sunny in {city}."

        answer = model.bind_tools([weather]).invoke("How is the weather in Paris?")
        print(answer.tool_calls)
        ```

    Structured output:
        ```python
        from pydantic import BaseModel

        class Meeting(BaseModel):
            topic: str
            city: str

        text = "The meeting about 'caching' is in Lisbon."
        print(model.with_structured_output(Meeting).invoke(text))
        ```

    Citations:
        ```python
        cited = model.with_citations(["Grass is green in spring."])
        print(cited.invoke("Which colour is grass in spring?").content_blocks)
        ```

    Token usage:
        ```python
        print(answer.usage_metadata)
        ```

        `usage_source` in `response_metadata` says whether the service reported it or it is
        estimated.

    Response metadata:
        ```python
        print(answer.response_metadata["model_name"], answer.response_metadata["finish_reason"])
        ```

    Raises:
        SvcError: Every failure of a call; see `langchain_svc.errors` for the tree.
        pydantic.ValidationError: From the constructor, for a setting out of its bounds.

    Rests on the v1 API, sections 2, 4, 5, 7 and 8, and on the same of the general API.
    """

    # Misspelt settings are refused by name before; this tells Pydantic's plugin of mypy.
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", defer_build=False)

    interfaces: ClassVar[tuple[Interface, ...]] = (V1, GENERAL)

    if TYPE_CHECKING:  # what other integrations call them, which the constructor takes
        model_name: str = DEFAULT_MODEL
        request_timeout: float | None = None
        stop_sequences: list[str] | str | None = None
        max_completion_tokens: int | None = None
    else:
        model_name = _alias_of("model")
        request_timeout = _alias_of("timeout")
        stop_sequences = _alias_of("stop")
        max_completion_tokens = _alias_of("max_tokens")

    overrides: ClassVar[frozenset[str]] = frozenset(
        {
            *v1.CHAT_SETTINGS,
            *(
                "timeout",
                "deadline",
                "max_retries",
                "max_repairs",
                "stop",
                "extra_body",
            ),
            *("on_cut", "max_continuations", "continue_by"),
        }
    )

    model: ModelId | None = DEFAULT_MODEL
    """The model's id. On the general interface it is None by default: the service chooses."""

    temperature: Temperature | None = None
    """0 to 2; left to the service (0.7) where it is None."""

    max_tokens: MaxTokens | None = None
    """Maximum tokens of an answer; None leaves it to the service (2000)."""

    interface: InterfaceName = Field(default="v1", frozen=True)
    """The interface that answers: "v1" at `base_url_v1`, or "general" at `base_url`, which takes
    the conversation as one text, a temperature of 0 to 1 and no `max_tokens`."""

    base_url_v1: str | None = url_of(V1)
    """Where the interface is; its path ends in /v1."""

    system_role: SystemRole = "user"
    """"user" folds system text into the user turns; "system" sends it in a role of its own,
    which the documents do not show."""

    tool_format: ToolFormat = "tags"
    """How the model is asked to write calls of tools: "tags" or "fenced" (JSON in a fence)."""

    max_repairs: Retries = 2
    """How often, within one run, the model is told what is wrong with its answer: JSON that does
    not fit, a call that cannot be read or that repeats what it read, a required call that is not
    there."""

    on_cut: OnCut = None
    """What becomes of an answer that `max_tokens` cut off. None: a tool call or an object is
    continued, a text is marked (finish_reason "length"). "continue": a text is continued, too.
    "mark": nothing is; a call that was cut off is an invalid one. "error": `SvcOutputError`."""

    max_continuations: Retries = 3
    """How often, for one answer, the model is told to go on where it was cut off. A call that is
    still cut off then is asked for in parts, once; then it is a `SvcOutputError`."""

    continue_by: ContinueBy = "ask"
    """How it is told. "ask": in a turn of the user, which names the last words of the answer; what
    comes is joined where it repeats them, or nowhere. "prefill": the answer is the last turn, for
    services that go on from that; what comes is joined as it is. The general interface is asked."""

    reasoning: Literal["split", "keep"] = "split"
    """"split" takes what a model thinks aloud (`<think>` and the like) out of the content, into a
    content block of its own; "keep" leaves it there."""

    stream_tool_args: bool = False
    """Whether a stream yields the arguments of a call while they are written, as models with native
    tools do. Otherwise it yields a call when it is whole and known to be one: what was yielded can
    neither be asked for anew nor wait for the model to confirm that it means it."""

    extra_body: ExtraBody = Field(default_factory=dict)
    """Further fields of every request, which the documents do not show."""

    image_inputs: Literal["refuse", "describe", "omit"] = "refuse"
    """"describe" has each image described once by the service's vision model (POST /api/vision,
    which needs `base_url`), and puts the description and a handle of `images` in its place.
    "omit" leaves images out, and says so in their place."""

    base_url: str | None = url_of(GENERAL)
    """Where the general interface is, without the /api of its paths."""

    images: ImageStore = Field(default_factory=ImageStore, exclude=True, repr=False)
    """The images that handles stand for."""

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

    @model_validator(mode="before")
    @classmethod
    def _read_base_url(cls, values: Any) -> Any:
        """Takes `base_url`, as other integrations name it, where it can mean one thing only."""
        if not isinstance(values, Mapping):
            return values
        if values.get("interface") == "general":
            return _general_values(values)
        if not values.get("base_url"):
            return values
        if values.get("image_inputs") == "describe":
            return values
        if values.get("base_url_v1"):
            raise ValueError(
                'base_url is the general interface, which only image_inputs="describe" needs; '
                "base_url_v1 is set already"
            )
        others = {name: value for name, value in values.items() if name != "base_url"}
        return others | {"base_url_v1": values["base_url"]}

    @model_validator(mode="after")
    def _check_interface(self) -> Self:
        """Forget addresses that calls do not use, and refuse what the interface does not take."""
        # Another host than the chat's may be told the key only where that is asked for.
        for interface in {*self.interfaces}.difference(self._interfaces_in_use()):
            self.__dict__[interface.url_word] = None
        problem = CHAT_INTERFACES[self.interface].problem(self)
        if problem is not None:
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _check_profile_keys(self) -> Self:
        # This takes the place of LangChain's check, which works out type hints for each object:
        # half of the time of making one. Of a profile that came from us it can find nothing.
        if self.profile != self._resolve_model_profile():
            super()._check_profile_keys()  # type: ignore[operator]  # Pydantic unwraps it
        return self

    def _interfaces_in_use(self) -> Collection[Interface]:
        if self.interface == "general":
            return (GENERAL,)
        if self.image_inputs == "describe":
            return self.interfaces
        return (V1,)

    @property
    def chat_interface(self) -> ChatInterface:
        """The interface that answers, with its requests and bounds."""
        return CHAT_INTERFACES[self.interface]

    def check(self) -> ListedModel:
        """Ask the service for its models (GET /models), the cheapest call there is.

        A wrong key, address or model id shows up now, and not in the middle of the work.

        Returns:
            What the service lists about this model; without an id where the service chooses it.

        Raises:
            SvcError: As for any call; `SvcRequestError` where the model is not listed.
        """
        return find_listed(self.list_models(), self.model)

    async def acheck(self) -> ListedModel:
        """The async version of `check`."""
        return find_listed(await self.alist_models(), self.model)

    # -- what LangChain asks about a model ------------------------------------------------------

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
        params: LangSmithParams = super()._get_ls_params(stop, **kwargs)
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

    @classmethod
    def lc_id(cls) -> list[str]:
        """The place by which a saved model names its class; a subclass has its own."""
        return [*CHAT_MODEL] if cls is ChatSvc else super().lc_id()

    @property
    def _llm_type(self) -> str:
        return "svc-chat"

    def _resolve_model_profile(self) -> ModelProfile | None:
        profile = CHAT_INTERFACES[self.interface].profile(self.model)
        if profile is not None and self.image_inputs == "describe":
            profile |= IMAGES_DESCRIBED
        if profile is not None and self.stream_tool_args:
            profile["tool_call_streaming"] = True
        return profile

    @property
    def _identifying_params(self) -> dict[str, Any]:
        chat = CHAT_INTERFACES[self.interface]
        return {
            **{name: getattr(self, name) for name in chat.settings},
            **chat.labels,
            "stop": self.stop,
            "system_role": self.system_role,
            "extra_body": self.extra_body,
        }

    def _get_invocation_params(
        self, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        params = {
            **self._identifying_params,
            "_type": self._llm_type,
            "stop": self.stop if stop is None else stop,
            **traced_options(type(self), kwargs),
        }
        return {**params, "model_name": params["model"]}

    def _combine_llm_outputs(
        self, llm_outputs: list[dict[str, Any] | None]
    ) -> dict[str, Any]:
        return summed_outputs(llm_outputs, self.model)

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

    def get_num_tokens_from_messages(
        self, messages: list[BaseMessage], tools: Sequence[Any] | None = None
    ) -> int:
        """About how many tokens a conversation has as it would be sent, with its tools.

        No request is sent: an image counts as its description once it has one.
        """
        if self.image_inputs == "describe":
            from .described_images import find_images  # noqa: PLC0415  # most models see no picture

            messages, _ = find_images(messages, self.images)
        return count_prompt(self, messages, tools or (), self.get_num_tokens)

    # -- tools and objects ----------------------------------------------------------------------

    def bind_tools(
        self,
        tools: Sequence[ToolLike],
        *,
        tool_choice: str | bool | dict[str, Any] | None = None,
        parallel_tool_calls: bool | None = None,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """This model with tools that it can call, as with native tool calling.

        The endpoint has no tools: they are described in the prompt, and calls are read from the
        answer's text. A call that can be read is one of `tool_calls`, whether or not its arguments
        fit the tool; one that cannot, after `max_repairs` requests to write it anew, is one of
        `invalid_tool_calls`.

        Args:
            tools: Functions with docstrings, Pydantic classes, TypedDicts, `BaseTool`s or dicts.
            tool_choice: "auto" (also None and False), "any" (also "required" and True), "none",
                or the name of a tool. Where a call is required and none comes, the model is told
                so at most `max_repairs` times, within the same run.
            parallel_tool_calls: False keeps the first call of an answer.
            strict: Accepted for the sake of code written for other models; calls are always
                checked against their schemas.
            **kwargs: Settings for every call of the binding. `response_format=SomeClass` makes an
                answer without calls fit the class: `message.additional_kwargs["parsed"]` is its
                object.

        Raises:
            SvcRequestError: A tool or the choice cannot be read.
            SvcOutputError: From a call, when a required call did not come.
        """
        from .tools import ToolList, tool_request  # noqa: PLC0415  # most models have no tools

        bound = {
            "tools": ToolList(tools),
            "tool_choice": tool_choice,
            "parallel_tool_calls": parallel_tool_calls,
        }
        tool_request(bound)  # what cannot be read is refused now, and not at the call
        options = {name: value for name, value in bound.items() if value is not None}
        return self.bind(**options, **kwargs)

    @overload
    def with_structured_output(
        self,
        schema: type[_Object],
        *,
        include_raw: Literal[False] = False,
        method: _Method = "json_schema",
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, _Object]: ...

    @overload
    def with_structured_output(
        self,
        schema: Any = None,
        *,
        include_raw: bool = False,
        method: _Method = "json_schema",
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, Any]: ...

    def with_structured_output(
        self,
        schema: Any = None,
        *,
        include_raw: bool = False,
        method: _Method = "json_schema",
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, Any]:
        """This model, answering with objects of a class or another type, or with dicts.

        An answer is checked within the run, and asked for again with the exact problems at most
        `max_repairs` times.

        Args:
            schema: A Pydantic class (v2 or v1), a dataclass, a list, tuple, union or Literal of
                these, a TypedDict, a JSON schema of an object, a list or anything else, or an
                OpenAI function. With "json_mode" it may be None: any JSON object will do.
            include_raw: Give `{"raw": message, "parsed": object, "parsing_error": error}` and
                raise nothing for an answer that does not fit.
            method: "json_schema" puts the schema into the prompt; "function_calling" does too, and
                gives the message the answer as a tool call of the schema's name; "json_mode"
                leaves the wording to your prompt, unless the schema is a class or a list.
            strict: Accepted for the sake of code written for other models; answers are always
                checked.
            **kwargs: Settings for every call.

        Raises:
            SvcRequestError: The schema or the method cannot be read.
            SvcOutputError: From a call, when no answer fits the schema.
        """
        from .structured import structured_output  # noqa: PLC0415  # the same

        return structured_output(
            self, schema, kwargs, include_raw=include_raw, method=method, strict=strict
        )

    # -- calling --------------------------------------------------------------------------------

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        if self.citing is None:
            return answer(
                self._client, self._begin(messages, stop, kwargs, stream=False)
            )
        ask = partial(self._ask, stop, kwargs)
        cited = self._cited_answer(messages, kwargs)
        if cited is None:
            return ask(messages)
        ask_about = partial(self._ask, stop, self._of_questions(kwargs))
        return cited.result(ask, ask_about)

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        ask = partial(self._aask, stop, kwargs)
        cited = self._cited_answer(messages, kwargs)
        if cited is None:
            return await ask(messages)
        ask_about = partial(self._aask, stop, self._of_questions(kwargs))
        return await cited.aresult(ask, ask_about)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        stream = partial(self._written, stop, kwargs)
        cited = self._cited_answer(messages, kwargs)
        if cited is None:
            return stream(messages)
        ask_about = partial(self._ask, stop, self._of_questions(kwargs))
        return cited.chunks(stream, ask_about)

    def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        stream = partial(self._awritten, stop, kwargs)
        cited = self._cited_answer(messages, kwargs)
        if cited is None:
            return stream(messages)
        ask_about = partial(self._aask, stop, self._of_questions(kwargs))
        return cited.achunks(stream, ask_about)

    def _new_event_parser(self) -> EventParser:
        return EventParser(merge=self.merge_events, strict_end=self.require_stream_end)

    def _ask(
        self,
        stop: list[str] | None,
        settings: Mapping[str, Any],
        messages: list[BaseMessage],
    ) -> ChatResult:
        return answer(self._client, self._begin(messages, stop, settings, stream=False))

    async def _aask(
        self,
        stop: list[str] | None,
        settings: Mapping[str, Any],
        messages: list[BaseMessage],
    ) -> ChatResult:
        turn = await self._abegin(messages, stop, settings, stream=False)
        return await aanswer(self._client, turn)

    def _written(
        self,
        stop: list[str] | None,
        settings: Mapping[str, Any],
        messages: list[BaseMessage],
    ) -> Iterator[ChatGenerationChunk]:
        begin = partial(self._begin, messages, stop, settings, stream=True)
        return chunks(self._client, begin)

    def _awritten(
        self,
        stop: list[str] | None,
        settings: Mapping[str, Any],
        messages: list[BaseMessage],
    ) -> AsyncIterator[ChatGenerationChunk]:
        begin = partial(self._abegin, messages, stop, settings, stream=True)
        return achunks(self._client, begin)

    def _begin(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None,
        settings: Mapping[str, Any],
        *,
        stream: bool,
    ) -> Turn:
        """Prepares one turn: everything that can go wrong before sending goes wrong here."""
        options = call_options(self, stop, settings)
        if self.image_inputs == "describe":
            from .described_images import describe_images  # noqa: PLC0415  # most models see no picture

            ask = partial(vision_exchange, self, options.limits, "describe")
            messages = describe_images(self._client, ask, messages, self.images)
        return self._turn(messages, options, stream=stream)

    async def _abegin(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None,
        settings: Mapping[str, Any],
        *,
        stream: bool,
    ) -> Turn:
        """The same; images are described without blocking."""
        options = call_options(self, stop, settings)
        if self.image_inputs == "describe":
            from .described_images import adescribe_images  # noqa: PLC0415  # the same

            ask = partial(vision_exchange, self, options.limits, "describe")
            messages = await adescribe_images(self._client, ask, messages, self.images)
        return self._turn(messages, options, stream=stream)

    def _turn(
        self, messages: Sequence[BaseMessage], options: CallOptions, *, stream: bool
    ) -> Turn:
        model = options.model
        chat = CHAT_INTERFACES[self.interface]
        new_parser: Callable[[], AnswerParser[list[Event]]] = self._new_event_parser
        if not stream:
            new_parser = partial(CompletionParser, strict_end=self.require_stream_end)

        def ask(turns: WireMessages) -> Exchange[list[Event]]:
            return new_exchange(
                self,
                chat.endpoint,
                new_parser,
                options.limits,
                body=chat.new_body(model, turns, stream=stream),
                headers=options.extra_headers,
                chat=(model.model, model.max_tokens),
            )

        return new_turn(ask, messages, options, stream=stream)


def _general_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a model on the general interface, where the service chooses the model.

    Raises:
        ValueError: The address of the v1 interface is among them.
    """
    if values.get("base_url_v1"):
        raise ValueError(
            'base_url_v1: not used with interface="general"; give its address as base_url '
            "(SVC_BASE_URL)"
        )
    if values.keys() & {"model", "model_name"}:
        return dict(values)
    return {**values, "model": None}


# -- LangChain's tables ----------------------------------------------------------------------------
# Those in which a package enters itself, and which have no public way in.


def register() -> None:
    """Teach `langchain`'s `init_chat_model` and `create_agent` the provider "svc".

    LangChain has no public way for other packages to add a provider, so this enters `ChatSvc` in
    its table of providers. Constructing `ChatSvc` yourself needs none of this. deepagents calls it
    by itself: `create_deep_agent("svc:svc-pro")`.

    Raises:
        ImportError: `langchain` is not installed, or keeps no such table any more.
    """
    try:
        from langchain.chat_models import base  # noqa: PLC0415  # an optional package

        table: dict[str, Any] = base._BUILTIN_PROVIDERS  # noqa: SLF001  # there is no public way
    except (ImportError, AttributeError) as error:
        raise ImportError(
            "register() found no table of providers: it needs the package langchain, 1.4 or "
            "newer 1.x (pip install langchain). ChatSvc(...) works without it"
        ) from error
    table[PROVIDER] = (*CHAT_MODEL, lambda cls, **settings: cls(**settings))


def make_loadable() -> None:
    """Let `langchain_core.load.load(..., allowed_objects="all")` make a saved `ChatSvc` again.

    "All" means the classes of a table in langchain-core, which has no public way in. Where the
    table is gone, loading still works with `allowed_objects=[ChatSvc]`.
    """
    with suppress(ImportError, AttributeError, KeyError, TypeError):
        # The package has a function of the module's name, which hides it from plain imports.
        loading: Any = import_module("langchain_core.load.load")
        loading.ALL_SERIALIZABLE_MAPPINGS[CHAT_MODEL] = CHAT_MODEL
        loading._default_class_paths_cache.pop("all", None)  # noqa: SLF001  # see above


# LangChain asks for these signatures at every call, which costs a twentieth of it to work out.
for _method in (vars(ChatSvc)[name] for name in ("_generate", "_agenerate")):
    _method.__signature__ = signature(_method)

make_loadable()
