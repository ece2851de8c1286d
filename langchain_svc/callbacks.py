"""Counts what calls cost: tokens, retries, waits, errors and time, per model.

One handler may watch many threads, event loops and graphs at once. Each run is known by its id
from its start to its end, so a handler that is reached twice (given to the call and active as a
context manager) still counts once.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar, Token
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import LLMResult
from langchain_core.tracers.context import register_configure_hook
from typing_extensions import Self

from ._chat import TOKENS_A_TURN, count_tokens
from ._forks import new_lock
from .errors import SvcContextOverflowError, SvcRequestError

if TYPE_CHECKING:
    from rich.table import Table
else:
    Table = Any  # hints are read at run time too, and rich may not be installed

_ACTIVE: ContextVar[SvcUsageCallbackHandler | None] = ContextVar("svc_usage", default=None)
register_configure_hook(_ACTIVE, inheritable=True)

_MOST_RUNS = 10_000  # that are counted at one time
# How a run ends when the caller stops reading, which is not an error.
_LEFT = (GeneratorExit, asyncio.CancelledError, KeyboardInterrupt)


@dataclass
class ModelUsage:
    """What the calls of one model came to.

    Attributes:
        calls: Calls that reached the service, however they ended.
        cache_hits: Calls that LangChain's cache answered; they count neither as spend nor as calls.
        stopped: Calls whose stream the caller left early.
        input_tokens: Tokens in, as the service counted them.
        output_tokens: Tokens out, as the service counted them.
        estimated_input_tokens: Tokens in of the calls for which the service sent no counts.
        estimated_output_tokens: Tokens out of those calls.
        unsplit_tokens: Tokens of which only the sum is known, as of `SvcLLM`.
        retries: How often a request was sent again.
        waited: Seconds spent waiting between tries.
        errors: How many calls failed, by the error's name.
        seconds: Seconds from start to end, over all calls.
        streams: Calls that streamed at least one token.
        first_token_seconds: Seconds to the first token, over those streams.
    """

    calls: int = 0
    cache_hits: int = 0
    stopped: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    estimated_input_tokens: int = 0
    estimated_output_tokens: int = 0
    unsplit_tokens: int = 0
    retries: int = 0
    waited: float = 0.0
    errors: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0
    streams: int = 0
    first_token_seconds: float = 0.0

    @property
    def total_tokens(self) -> int:
        """All tokens, counted and estimated."""
        return (
            self.input_tokens
            + self.output_tokens
            + self.estimated_input_tokens
            + self.estimated_output_tokens
            + self.unsplit_tokens
        )

    def add_tokens(self, tokens_in: int, tokens_out: int, *, estimated: bool) -> None:
        """Count the tokens of one call."""
        if estimated:
            self.estimated_input_tokens += tokens_in
            self.estimated_output_tokens += tokens_out
        else:
            self.input_tokens += tokens_in
            self.output_tokens += tokens_out


@dataclass
class _ModelRun:
    model: str
    prompt: Sequence[str | BaseMessage]
    started: float
    watchers: Sequence[SvcUsageCallbackHandler]
    first_token: float | None = None


class SvcUsageCallbackHandler(BaseCallbackHandler):
    """Counts calls, tokens, cache hits, retries, waits, errors and times, per model.

    Give it to calls, or use it as a context manager that watches every call made inside:

        with SvcUsageCallbackHandler() as usage:
            chain.batch(questions)
        print(usage.models["svc-pro"].total_tokens)

    Attributes:
        models: A `ModelUsage` for each model id. Read it when no call is running, or take a
            consistent copy with `to_dict()`.
    """

    run_inline = True  # the work is short, and a thread a token would cost more than it

    def __init__(self) -> None:
        self.models: dict[str, ModelUsage] = {}
        self._lock = new_lock()
        self._runs: dict[UUID, _ModelRun] = {}
        self._outer: SvcUsageCallbackHandler | None = None
        self._token: Token[SvcUsageCallbackHandler | None] | None = None

    def __enter__(self) -> Self:
        if self._token is not None:
            raise RuntimeError("This handler is active already; make another for a nested block")
        self._outer = _ACTIVE.get()
        self._token = _ACTIVE.set(self)
        return self

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            with suppress(ValueError):  # the block ends in another context than it began in
                _ACTIVE.reset(self._token)
        self._token = None
        self._outer = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # copies of a model are counted together

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()  # another process counts for itself

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()

    # -- what LangChain tells -------------------------------------------------------------------

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        """A chat model's run begins."""
        del serialized
        self._start(run_id, [message for turns in messages for message in turns], kwargs)

    def on_llm_start(
        self, serialized: dict[str, Any], prompts: list[str], *, run_id: UUID, **kwargs: Any
    ) -> None:
        """A text model's run begins."""
        del serialized
        self._start(run_id, prompts, kwargs)

    def on_llm_new_token(self, token: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A piece of a stream has come."""
        del kwargs
        if token:
            self._first_token(run_id)

    def on_stream_event(self, event: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """An event of LangChain's newer streaming protocol has come."""
        del kwargs
        if event.get("event") == "content-block-delta":
            self._first_token(run_id)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """A run has its answer."""
        del kwargs
        self._end(run_id, _message(response))

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A run has failed, or its stream was left early."""
        response = kwargs.get("response")
        self._end(run_id, _message(response) if isinstance(response, LLMResult) else None, error)

    # -- what comes of it -----------------------------------------------------------------------

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """A consistent copy of all counts, by model id, of plain dicts and numbers."""
        with self._lock:
            return {
                model: {**asdict(usage), "errors": dict(usage.errors)}
                for model, usage in self.models.items()
            }

    def table(self) -> Table:
        """The counts as a table to print with rich.

        Raises:
            ImportError: rich is not installed (`pip install "langchain-svc[cli]"`).
        """
        from ._usage_table import usage_table  # noqa: PLC0415  # rich is an extra

        with self._lock:
            return usage_table(self.models)

    def _start(
        self, run_id: UUID, prompt: Sequence[str | BaseMessage], kwargs: dict[str, Any]
    ) -> None:
        params = kwargs.get("invocation_params") or {}
        metadata = kwargs.get("metadata") or {}
        model = params.get("model") or params.get("model_name") or metadata.get("ls_model_name")
        watchers = self._chain()
        run = _ModelRun(str(model or "unknown"), prompt, time.perf_counter(), watchers)
        for handler in watchers:
            handler._note(run_id, run)  # noqa: SLF001  # our own class

    def _chain(self) -> list[SvcUsageCallbackHandler]:
        """This handler and those of the blocks around it, which LangChain does not call."""
        return [self] if self._outer is None else [self, *self._outer._chain()]  # noqa: SLF001  # our own class

    def _note(self, run_id: UUID, run: _ModelRun) -> None:
        self._runs.setdefault(run_id, run)
        while len(self._runs) > _MOST_RUNS:  # LangChain does not tell the end of a cancelled run
            with suppress(KeyError, RuntimeError):  # another thread was quicker
                del self._runs[next(iter(self._runs))]

    def _first_token(self, run_id: UUID) -> None:
        run = self._runs.get(run_id)
        if run is not None and run.first_token is None:
            run.first_token = time.perf_counter()

    def _end(
        self, run_id: UUID, message: AIMessage | None, error: BaseException | None = None
    ) -> None:
        run = self._runs.get(run_id)
        if run is None:
            return
        for handler in run.watchers:
            if handler._runs.pop(run_id, None) is not None:  # noqa: SLF001  # our own class
                with handler._lock:  # noqa: SLF001  # our own class
                    _count(run, handler.models, message, error)


def _count(
    run: _ModelRun,
    models: dict[str, ModelUsage],
    message: AIMessage | None,
    error: BaseException | None,
) -> None:
    """Count a run that has ended, under the model that answered or was asked."""
    metadata = message.response_metadata if message is not None else {}
    usage = models.setdefault(metadata.get("model_name") or run.model, ModelUsage())
    if error is None and _from_cache(message):
        usage.cache_hits += 1
        return
    if isinstance(error, _LEFT):
        usage.stopped += 1
    elif error is not None:
        usage.errors[type(error).__name__] += 1
    if _was_sent(error):
        usage.calls += 1
        usage.seconds += time.perf_counter() - run.started
    if run.first_token is not None:
        usage.streams += 1
        usage.first_token_seconds += run.first_token - run.started
    usage.retries += metadata.get("retries", 0) + getattr(error, "retries", 0)
    usage.waited += metadata.get("waited", 0.0) + getattr(error, "waited", 0.0)
    if message is not None:
        _count_tokens(run, usage, message, error)


def _was_sent(error: BaseException | None) -> bool:
    """Whether a call reached the service; an overflow may have been foreseen."""
    if isinstance(error, SvcContextOverflowError):
        return error.status_code is not None
    return not isinstance(error, SvcRequestError)


def _count_tokens(
    run: _ModelRun, usage: ModelUsage, message: AIMessage, error: BaseException | None
) -> None:
    counts = message.usage_metadata
    if counts is not None:
        estimated = message.response_metadata.get("usage_source") == "estimated"
        usage.add_tokens(counts["input_tokens"], counts["output_tokens"], estimated=estimated)
    elif "total_tokens" in message.response_metadata:
        usage.unsplit_tokens += message.response_metadata["total_tokens"]
    elif error is not None and message.text:
        asked = sum(count_tokens(_text(turn)) + TOKENS_A_TURN for turn in run.prompt)
        usage.add_tokens(asked, count_tokens(message.text), estimated=True)


def _text(turn: str | BaseMessage) -> str:
    return turn if isinstance(turn, str) else turn.text


def _message(response: LLMResult) -> AIMessage | None:
    for generations in response.generations:
        for generation in generations:
            message = getattr(generation, "message", None)
            if isinstance(message, AIMessage):
                return message
            if message is None and generation is not None:  # a text model's answer
                info = generation.generation_info or {}
                return AIMessage(generation.text, response_metadata=info)
    return None


def _from_cache(message: AIMessage | None) -> bool:
    """LangChain marks an answer from its cache with a total cost of nothing."""
    counts: Any = message.usage_metadata if message is not None else None
    return bool(counts) and counts.get("total_cost") == 0 and "total_cost" in counts
