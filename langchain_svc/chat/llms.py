"""`SvcLLM`: the chat endpoint of the general interface as a LangChain text model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from langchain_core.callbacks import (
    AsyncCallbackManagerForLLMRun,
    CallbackManagerForLLMRun,
)
from langchain_core.language_models.llms import BaseLLM
from langchain_core.outputs import Generation, GenerationChunk, LLMResult
from langchain_core.runnables import Runnable
from pydantic import ConfigDict

from .._base.threads import bounded_gather
from .._service import (
    AnswerParser,
    CompletionParser,
    Exchange,
    bounded_number,
    keeps_runs,
    url_of,
)
from .._wire import Event, general
from ..config import GENERAL
from ..errors import SvcRequestError
from .interfaces import CHAT_INTERFACES, ChatInterface
from .model import TextModel
from .options import ModelId, call_settings
from .parts import ContentPart
from .readers import TextReader
from .token_usage import COUNTS, summed_outputs, token_usage
from .turn import Turn

_Temperature = Annotated[
    float,
    bounded_number(general.LOWEST_TEMPERATURE, general.HIGHEST_TEMPERATURE, text=True),
]


class _Prompt(Turn[Generation, GenerationChunk]):
    """One prompt and its answer; the service sends one number of tokens, which is not split."""

    def __init__(
        self,
        exchange: Exchange[list[Event]],
        prompt: str,
        model: str | None,
        stops: Sequence[str],
    ) -> None:
        self._counts: dict[str, int] = {}
        super().__init__(
            lambda *_: exchange,
            [{"role": "user", "content": prompt}],
            model=model,
            stops=stops,
            reader=TextReader(split=False),
        )

    def result(self) -> Generation:
        text = "".join(part.content for part in self._parts)
        return Generation(text=text, generation_info=self._generation_info())

    def _chunks(self, parts: list[ContentPart]) -> list[GenerationChunk]:
        return [GenerationChunk(text=part.content) for part in parts]

    def _last_chunk(self) -> GenerationChunk:
        # Once only and at the end: LangChain joins texts and adds numbers when it adds chunks up.
        return GenerationChunk(text="", generation_info=self._generation_info())

    def _record_usage(self, counts: dict[str, int]) -> None:
        own_counts = {
            name: counts[service_name]
            for name, service_name in COUNTS.items()
            if service_name in counts
        }
        if len(own_counts) == len(COUNTS) - 1:
            own_counts.setdefault("total_tokens", sum(own_counts.values()))
        if "total_tokens" not in own_counts:
            super()._record_usage({})
            own_counts = {}
            if self._usage:
                own_counts["total_tokens"] = self._usage["total_tokens"]
        self._counts = own_counts

    def _generation_info(self) -> dict[str, Any]:
        info = self._names() | self._response_metadata()
        info["timestamp"] = self._about.metadata.timestamp
        return {name: value for name, value in info.items() if value} | self._counts


@keeps_runs
class SvcLLM(TextModel, BaseLLM):
    """A text model on the service's general interface: a text in, a text out.

    Each generation carries `generation_info` with `model_name`, `model_provider`,
    `total_tokens`, `usage_source` ("service" or "estimated") and what else came: `timestamp`,
    `request_id`, `rate_limit`. The service sends one token count, which is not split by guessing.

    Setup:
        ```sh
        pip install -c constraints.txt ".[agents,cli,sandbox]"
        export SVC_API_KEY="..." SVC_BASE_URL="https://..."
        ```

    Key init args (completion params):
        - `model`: The model's id; None for the service's default.
        - `temperature`: 0 to 1.
        - `stop`: Texts that end an answer, applied by the client.

    Key init args (client params):
        - `api_key`: The key; otherwise `SVC_API_KEY`.
        - `base_url`: The address; otherwise `SVC_BASE_URL`.

    Instantiate:
        ```python
        from langchain_svc import SvcLLM

        llm = SvcLLM(temperature=0)
        ```

    Invoke:
        ```python
        print(llm.invoke("Good morning"))
        ```

        `model`, `temperature`, `stop`, `timeout`, `deadline` and `max_retries` can be given for
        one call, too.

    Stream:
        ```python
        for piece in llm.stream("What is 17 * 23?"):
            print(piece, end="")
        ```

    Async:
        ```python
        print(await llm.ainvoke("Good morning"))
        ```

    Raises:
        SvcError: Every failure of a call; see `langchain_svc.errors` for the tree.
        pydantic.ValidationError: From the constructor, for a setting out of its bounds.

    Rests on the general API, sections 2, 4, 5, 7 and 8.
    """

    model_config = ConfigDict(extra="forbid")  # as ChatSvc's

    interfaces = (GENERAL,)
    overrides = frozenset(
        {"model", "temperature", "stop", "timeout", "deadline", "max_retries"}
    )

    if TYPE_CHECKING:  # as ChatSvc's
        model_name: str | None = None

    base_url: str | None = url_of(GENERAL)
    """Where the general interface is, without the /api of its paths."""

    model: ModelId | None = None
    """The model's id; the service's default model where it is None."""

    temperature: _Temperature | None = None
    """0 to 1; left to the service where it is None."""

    # LangChain's LLMs make one call of a batch, in which one failure loses every answer. The
    # endpoint takes one message at a time, so here a batch is what it is for a chat model.
    batch = Runnable.batch
    abatch = Runnable.abatch

    @property
    def chat_interface(self) -> ChatInterface:
        """The general interface."""
        return CHAT_INTERFACES["general"]

    # -- what only a chat model has -------------------------------------------------------------

    def bind_tools(self, tools: object, **kwargs: object) -> NoReturn:
        """A text model has no tools.

        Raises:
            SvcRequestError: Always; it names the class to use.
        """
        del tools, kwargs
        raise _needs_chat_model("no tools, so no agent can run on it")

    def with_structured_output(self, schema: object, **kwargs: object) -> NoReturn:
        """A text model answers in text.

        Raises:
            SvcRequestError: Always; it names the class to use.
        """
        del schema, kwargs
        raise _needs_chat_model("no structured output")

    @property
    def _llm_type(self) -> str:
        return "svc-llm"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        # LangChain puts the stop texts of the call under `stop`, also when there are none; ours
        # stand beside them, so that its cache tells two models apart.
        return {
            "model": self.model,
            "temperature": self.temperature,
            "own_stop": self.stop,
        }

    # -- calling --------------------------------------------------------------------------------

    def _generate(
        self,
        prompts: list[str],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> LLMResult:
        def ask(prompt: str) -> Generation:
            if self.streaming:
                return _sum([*self._stream(prompt, stop, run_manager, **kwargs)])
            return self._answer(self._begin(prompt, stop, kwargs, stream=False))

        return self._result([ask(prompt) for prompt in prompts])

    async def _agenerate(
        self,
        prompts: list[str],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> LLMResult:
        async def ask(prompt: str) -> Generation:
            if self.streaming:
                return _sum(
                    [
                        c
                        async for c in self._astream(
                            prompt, stop, run_manager, **kwargs
                        )
                    ]
                )
            return await self._aanswer(self._begin(prompt, stop, kwargs, stream=False))

        return self._result(await bounded_gather(map(ask, prompts)))

    def _stream(
        self,
        prompt: str,
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[GenerationChunk]:
        begin = partial(self._begin, prompt, stop, kwargs, stream=True)
        with closing(self._chunks(begin)) as chunks:
            for chunk in chunks:
                if run_manager is not None:
                    run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

    async def _astream(
        self,
        prompt: str,
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[GenerationChunk]:
        async def begin() -> _Prompt:
            return self._begin(prompt, stop, kwargs, stream=True)

        async with aclosing(self._achunks(begin)) as chunks:
            async for chunk in chunks:
                if run_manager is not None:
                    await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

    def _begin(
        self,
        prompt: str,
        stop: list[str] | None,
        settings: Mapping[str, Any],
        *,
        stream: bool,
    ) -> _Prompt:
        """Prepares one prompt: everything that can go wrong before sending goes wrong here."""
        call, _ = call_settings(self, stop, settings)
        new_parser: Callable[[], AnswerParser[list[Event]]] = CompletionParser
        if stream:
            new_parser = self._new_event_parser
        exchange = self._new_exchange(
            GENERAL,
            "POST",
            general.CHAT_PATH,
            new_parser,
            call._limits(),  # noqa: SLF001  # our own class
            body=general.chat_body(
                prompt, model=call.model, temperature=call.temperature, stream=stream
            ),
            private=lambda: (prompt,),
            chat=(call.model, None),
        )
        return _Prompt(exchange, prompt, call.model, call.stop or ())

    def _result(self, answers: Sequence[Generation]) -> LLMResult:
        outputs = []
        for info in (answer.generation_info or {} for answer in answers):
            name = info.get("model_name")
            outputs.append({"token_usage": token_usage(info), "model_name": name})
        return LLMResult(
            generations=[[answer] for answer in answers],
            llm_output=summed_outputs(outputs, self.model),
        )


def _needs_chat_model(lack: str) -> SvcRequestError:
    return SvcRequestError(
        f"SvcLLM is a text model and has {lack}. Use the chat model of the same interface: "
        'ChatSvc(interface="general")'
    )


def _sum(chunks: list[GenerationChunk]) -> Generation:
    text = "".join(chunk.text for chunk in chunks)
    return Generation(text=text, generation_info=chunks[-1].generation_info)
