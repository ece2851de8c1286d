"""`SvcLLM`: the chat endpoint of the general interface as a LangChain text model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, closing
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import LangSmithParams, LanguageModelInput
from langchain_core.language_models.llms import BaseLLM
from langchain_core.outputs import Generation, GenerationChunk, LLMResult
from langchain_core.runnables import RunnableConfig
from pydantic import ConfigDict, model_validator
from typing_extensions import Self

from ._chat import (
    PROVIDER,
    GeneralTemperature,
    ModelId,
    Prompt,
    PromptOptions,
    Stop,
    TokenCounts,
    alias_of,
    check_prompt_options,
)
from ._service import (
    Exchange,
    ServiceSettings,
    TextParser,
    WholeParser,
    bounded_gather,
    keeps_runs,
    set_uncached,
    url_of,
)
from ._version import __version__
from ._wire import general
from .config import GENERAL


@keeps_runs
class SvcLLM(TokenCounts, ServiceSettings, BaseLLM):
    """A text model on the service's general interface: a text in, a text out.

    `invoke`, `stream`, `batch` and their async versions work as for any LangChain LLM. Each
    generation carries `generation_info` with `model_name`, `model_provider`, `total_tokens`,
    `usage_source` ("service" or "estimated") and what else came: `timestamp`, `request_id`,
    `rate_limit`. The service sends one number of tokens, which is not split by guess.

        from langchain_svc import SvcLLM

        llm = SvcLLM(api_key="...", base_url="https://...")
        llm.invoke("Good morning")

    What shapes one answer can be given for one call too: `llm.invoke(..., temperature=0)`, and so
    `model`, `stop`, `timeout`, `deadline`, `max_retries`.

    Raises:
        SvcError: Every failure of a call; see `langchain_svc.errors` for the tree.
        pydantic.ValidationError: From the constructor, for a setting out of its bounds.

    Rests on the general API, sections 2, 4, 5, 7 and 8.
    """

    model_config = ConfigDict(extra="forbid")  # as ChatSvc's

    interfaces = (GENERAL,)

    if TYPE_CHECKING:  # what other integrations call them, which the constructor takes
        model_name: str | None = None
        request_timeout: float | None = None
        stop_sequences: list[str] | str | None = None
    else:
        model_name, request_timeout = alias_of("model"), alias_of("timeout")
        stop_sequences = alias_of("stop")

    base_url: str | None = url_of(GENERAL)
    """Where the general interface is, without the /api of its paths."""

    model: ModelId | None = None
    """The model's id; the service's default model where it is None."""

    temperature: GeneralTemperature | None = None
    """0 to 1; left to the service where it is None."""

    stop: Stop | None = None
    """Texts at which an answer ends. They are applied on our side, and not part of the answer."""

    streaming: bool = False
    """Whether `invoke` reads the answer as a stream too."""

    merge_events: bool = True
    """Whether the events that arrive in one network read become one chunk."""

    require_stream_end: bool = True
    """Whether a stream in completion shape that just ends, without a mark, is an error."""

    _keep_from_cache = model_validator(mode="after")(set_uncached)

    @model_validator(mode="after")
    def _set_langchain_svc_version(self) -> Self:
        self._add_version("langchain-svc", __version__)
        return self

    # -- what LangChain asks about a model ------------------------------------------------------

    @property
    def _llm_type(self) -> str:
        return "svc-llm"

    @property
    def lc_secrets(self) -> dict[str, str]:
        """Where the key comes from when a serialized model is loaded."""
        return {"api_key": "SVC_API_KEY"}

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Whether `langchain_core.load` can save and load the model: yes, without its key."""
        return True

    @property
    def _identifying_params(self) -> dict[str, Any]:
        # LangChain puts the stop texts of the call under `stop`, also when there are none; ours
        # stand beside them, so that its cache tells two models apart.
        return {"model": self.model, "temperature": self.temperature, "own_stop": self.stop}

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = super()._get_ls_params(self.stop if stop is None else stop, **kwargs)
        params["ls_provider"] = PROVIDER
        return params

    # -- calling --------------------------------------------------------------------------------

    def batch(
        self,
        inputs: list[LanguageModelInput],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[str]:
        """Answers to several prompts, at once and each on its own.

        LangChain's LLMs make one call of a batch, in which one failure loses every answer. The
        endpoint takes one message at a time, so here a batch is what it is for a chat model.
        """
        batch = super(BaseLLM, self).batch
        return batch(inputs, config, return_exceptions=return_exceptions, **kwargs)

    async def abatch(
        self,
        inputs: list[LanguageModelInput],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[str]:
        """The async version of `batch`."""
        abatch = super(BaseLLM, self).abatch
        return await abatch(inputs, config, return_exceptions=return_exceptions, **kwargs)

    def _generate(
        self,
        prompts: list[str],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> LLMResult:
        ask = self._whole
        if self.streaming:
            ask = self._summed
        return LLMResult(generations=[[ask(p, stop, run_manager, kwargs)] for p in prompts])

    async def _agenerate(
        self,
        prompts: list[str],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> LLMResult:
        ask = self._awhole
        if self.streaming:
            ask = self._asummed
        answers = await bounded_gather(ask(p, stop, run_manager, kwargs) for p in prompts)
        return LLMResult(generations=[[answer] for answer in answers])

    def _stream(
        self,
        prompt: str,
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[GenerationChunk]:
        asked = self._asked(prompt, stop, kwargs, stream=True)
        with closing(self._pieces(asked.exchange)) as texts:
            for text in texts:
                for chunk in asked.chunks(text):
                    if run_manager is not None:
                        run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                    yield chunk
                if asked.stopped:
                    break
        last = asked.last_chunk()
        if run_manager is not None:
            run_manager.on_llm_new_token(last.text, chunk=last)
        yield last

    async def _astream(
        self,
        prompt: str,
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[GenerationChunk]:
        asked = self._asked(prompt, stop, kwargs, stream=True)
        async with aclosing(self._apieces(asked.exchange)) as texts:
            async for text in texts:
                for chunk in asked.chunks(text):
                    if run_manager is not None:
                        await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                    yield chunk
                if asked.stopped:
                    break
        last = asked.last_chunk()
        if run_manager is not None:
            await run_manager.on_llm_new_token(last.text, chunk=last)
        yield last

    def list_models(self) -> list[general.GeneralModel]:
        """The models that the service lists (GET /api/models).

        Raises:
            SvcError: As for any call; `SvcResponseError` when no list of models came.
        """
        (models,) = self._pieces(self._listing())
        return list(models)

    async def alist_models(self) -> list[general.GeneralModel]:
        """The async version of `list_models`."""
        (models,) = [models async for models in self._apieces(self._listing())]
        return list(models)

    # -- one prompt -----------------------------------------------------------------------------

    def _whole(self, prompt: str, stop: Any, run_manager: Any, given: Any) -> Generation:
        asked = self._asked(prompt, stop, given, stream=False)
        (answer,) = self._pieces(asked.exchange)
        return asked.generation(answer)

    async def _awhole(self, prompt: str, stop: Any, run_manager: Any, given: Any) -> Generation:
        asked = self._asked(prompt, stop, given, stream=False)
        (answer,) = [answer async for answer in self._apieces(asked.exchange)]
        return asked.generation(answer)

    def _summed(self, prompt: str, stop: Any, run_manager: Any, given: Any) -> Generation:
        return _sum(list(self._stream(prompt, stop, run_manager, **given)))

    async def _asummed(self, prompt: str, stop: Any, run_manager: Any, given: Any) -> Generation:
        return _sum([c async for c in self._astream(prompt, stop, run_manager, **given)])

    def _asked(
        self, prompt: str, stop: list[str] | None, given: Mapping[str, Any], *, stream: bool
    ) -> Prompt:
        """Prepares one prompt: everything that can go wrong before sending goes wrong here."""
        options = self._options(stop, given)
        body = general.chat_body(
            prompt, model=options.model, temperature=options.temperature, stream=stream
        )
        exchange = self._new_exchange(
            GENERAL,
            "POST",
            general.CHAT_PATH,
            self._new_text_reader if stream else _new_answer_reader,
            options.limits,
            body=body,
            private=(prompt,),
            chat=(options.model, None),
        )
        return Prompt(exchange, prompt, options)

    def _options(self, stop: list[str] | None, given: Mapping[str, Any]) -> PromptOptions:
        """The settings of one call: the constructor's, changed by what the call gives."""
        given = check_prompt_options(given if stop is None else {**given, "stop": stop})
        return PromptOptions(
            model=given.get("model", self.model),
            temperature=given.get("temperature", self.temperature),
            stop=tuple(given.get("stop", self.stop) or ()),
            limits=self._limits(given),
        )

    def _listing(self) -> Exchange[Any]:
        limits = self._limits({})
        return self._new_exchange(GENERAL, "GET", general.MODELS_PATH, _new_listing_parser, limits)

    def _new_text_reader(self) -> TextParser:
        return TextParser(merge=self.merge_events, strict_end=self.require_stream_end)


def _sum(chunks: list[GenerationChunk]) -> Generation:
    text = "".join(chunk.text for chunk in chunks)
    return Generation(text=text, generation_info=chunks[-1].generation_info)


_new_answer_reader = partial(WholeParser, general.read_answer)
_new_listing_parser = partial(WholeParser, general.read_models)
