"""Counts what calls cost: tokens, money, retries, waits, errors and time, by model and endpoint.

One handler may watch many threads, event loops and graphs at once. Each run is known by its id
from its start to its end, so a handler that is reached twice (given to the call and active as a
context manager) still counts once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import LLMResult
from langchain_core.tracers.context import register_configure_hook
from typing_extensions import Self

from ._chat import TOKENS_A_TURN, count_tokens
from ._forks import new_lock
from ._usage import ModelUsage, Price, UsageTable, one_line, read_prices
from .errors import SvcContextOverflowError, SvcRequestError

_Active = ContextVar["SvcUsageCallbackHandler | None"]
_ACTIVE: list[_Active] = []
"""One for each depth of nested blocks: LangChain gives a run the handlers of all."""


def _free_depth() -> _Active:
    for depth in _ACTIVE:
        held = depth.get()
        if held is None or held._token is None:  # noqa: SLF001  # our own class: it has ended elsewhere
            return depth
    _ACTIVE.append(ContextVar("svc_usage", default=None))
    register_configure_hook(_ACTIVE[-1], inheritable=True)
    return _ACTIVE[-1]


_MOST_RUNS = 10_000  # that are counted at one time
# How a run ends when the caller stops reading, which is not an error.
LEFT_EARLY = (GeneratorExit, asyncio.CancelledError, KeyboardInterrupt)


Run = TypeVar("Run")


class OpenRuns(dict[UUID, Run]):
    """Runs that have begun. The oldest go: LangChain tells no end of a cancelled one."""

    def begin(self, run_id: UUID, run: Run) -> None:
        """Keep a run, unless it is told a second time."""
        self.setdefault(run_id, run)
        while len(self) > _MOST_RUNS:
            with suppress(KeyError, RuntimeError):  # another thread was quicker
                del self[next(iter(self))]


# By the kind, the name and the endpoint of what was called.
_Counts = dict[tuple[str, str, str], ModelUsage]

# Where our models send their calls, by LangChain's name for the kind of a model.
_ENDPOINTS = {"svc-chat": "/v1/chat/completions", "svc-llm": "/api/chat"}


@dataclass
class _Run:
    kind: Literal["model", "tool"]
    name: str
    endpoint: str = ""
    prompt: Sequence[str | BaseMessage] = ()
    started: float = field(default_factory=time.perf_counter)
    first_token: float | None = None


class SvcUsageCallbackHandler(BaseCallbackHandler):
    """Counts calls, tokens, cost, cache hits, retries, waits, errors and times, by model.

    Give it to calls, or use it as a context manager that watches every call made inside:

        with SvcUsageCallbackHandler(prices=model.list_models()) as usage:
            chain.batch(questions)
        print(usage)
        print(usage.models["svc-pro"].total_tokens)

    Calls of this package's tools are counted too, by the tool's name. See docs/usage.md.

    Attributes:
        models: A `ModelUsage` for each model id: a copy of the counts of this moment.
        tools: The same for each of this package's tools.
    """

    run_inline = True  # the work is short, and a thread a token would cost more than it

    def __init__(self, prices: Mapping[str, Any] | Iterable[Any] | None = None) -> None:
        """Count from zero.

        Args:
            prices: What tokens cost: the models of `ChatSvc.list_models()`, or by model id
                `{"input": 5.0, "output": 15.0, "per_tokens": 1_000_000, "currency": "USD"}`. A
                handler asks the service for nothing by itself.

        Raises:
            ValueError: A price by model id cannot be read.
        """
        self._prices = None if prices is None else read_prices(prices)
        self._counts: _Counts = {}
        self._lock = new_lock()
        self._runs: OpenRuns[_Run] = OpenRuns()
        self._token: Token[SvcUsageCallbackHandler | None] | None = None

    def __enter__(self) -> Self:
        if self._token is not None:
            raise RuntimeError("This handler is active already; make another for a nested block")
        self._token = _free_depth().set(self)
        return self

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            with suppress(ValueError):  # the block ends in another context than it began in
                self._token.var.reset(self._token)
        self._token = None

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # copies of a model are counted together

    def __reduce__(self) -> tuple[partial[Self], tuple[()]]:
        return partial(type(self), self._prices), ()  # another process counts for itself

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

    def on_tool_start(
        self, serialized: dict[str, Any], input_str: str, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """A tool's run begins."""
        del input_str, kwargs
        self._runs.begin(run_id, _Run("tool", (serialized or {}).get("name") or "unknown"))

    def svc_tool_called(  # the tools of this package call it
        self,
        run_id: UUID,
        *,
        endpoint: str,
        retries: int,
        waited: float,
        error: type[BaseException] | None,
    ) -> None:
        """One of this package's tools has called the service, or refused to."""
        with self._lock:
            run = self._runs.pop(run_id, None)
            if run is None:
                return
            usage = self._of(run, endpoint=endpoint)
            refused = error is not None and issubclass(error, SvcRequestError)
            _count_end(run, usage, error, sent=bool(endpoint) and not refused)
            usage.retries += retries
            usage.waited += waited

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """A tool's run has ended; one of this package has been counted by now."""
        del output, kwargs
        self._runs.pop(run_id, None)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """A tool's run has failed; one of this package has been counted by now."""
        self.on_tool_end(error, run_id=run_id, **kwargs)

    # -- what comes of it -----------------------------------------------------------------------

    @property
    def models(self) -> dict[str, ModelUsage]:
        """The counts of each model, over all endpoints."""
        return _totals(self._snapshot(), "model")

    @property
    def tools(self) -> dict[str, ModelUsage]:
        """The counts of each of this package's tools, over all endpoints."""
        return _totals(self._snapshot(), "tool")

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """A consistent copy of all counts, by model id or tool name, of plain dicts and numbers.

        Each has its `kind` ("model" or "tool") and, under `endpoints`, the same counts by endpoint.
        """
        counts = self._snapshot()
        made = {
            name: {"kind": kind, **usage.to_dict(), "endpoints": {}}
            for kind in ("model", "tool")
            for name, usage in _totals(counts, kind).items()
        }
        for (_, name, endpoint), usage in counts.items():
            made[name]["endpoints"][endpoint] = usage.to_dict()
        return made

    def table(self) -> UsageTable:
        """The counts as a table: rich and notebooks show it as one, `print` as lines."""
        counts = self._snapshot()
        names = [name for _, name, _ in counts]
        return UsageTable(
            [
                (f"{name} {endpoint}".strip() if names.count(name) > 1 else name, usage)
                for (_, name, endpoint), usage in counts.items()
            ]
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {one_line(self._snapshot().values())}>"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def _snapshot(self) -> _Counts:
        """A copy of all counts of one moment, models before tools."""
        with self._lock:
            return {key: self._counts[key] + ModelUsage() for key in sorted(self._counts)}

    def _of(self, run: _Run, *, name: str = "", endpoint: str = "") -> ModelUsage:
        """Where a run is counted."""
        key = (run.kind, name or run.name, endpoint or run.endpoint)
        return self._counts.setdefault(key, ModelUsage())

    def _start(
        self, run_id: UUID, prompt: Sequence[str | BaseMessage], kwargs: dict[str, Any]
    ) -> None:
        params = kwargs.get("invocation_params") or {}
        metadata = kwargs.get("metadata") or {}
        model = params.get("model") or params.get("model_name") or metadata.get("ls_model_name")
        kind = str(params.get("_type") or "")
        endpoint = _ENDPOINTS.get(kind, kind)
        self._runs.begin(run_id, _Run("model", str(model or "unknown"), endpoint, prompt))

    def _first_token(self, run_id: UUID) -> None:
        run = self._runs.get(run_id)
        if run is not None and run.first_token is None:
            run.first_token = time.perf_counter()

    def _end(
        self, run_id: UUID, message: AIMessage | None, error: BaseException | None = None
    ) -> None:
        """Count a model's run that has ended, under the model that answered or was asked."""
        with self._lock:
            run = self._runs.pop(run_id, None)
            if run is not None:
                self._count(run, message, error)

    def _count(self, run: _Run, message: AIMessage | None, error: BaseException | None) -> None:
        metadata = message.response_metadata if message is not None else {}
        model = metadata.get("model_name") or run.name
        usage = self._of(run, name=model)
        if error is None and _from_cache(message):
            usage.cache_hits += 1
            return
        _count_end(run, usage, None if error is None else type(error), sent=_was_sent(error))
        usage.retries += metadata.get("retries", 0) + getattr(error, "retries", 0)
        usage.waited += metadata.get("waited", 0.0) + getattr(error, "waited", 0.0)
        if message is not None:
            before = usage.total_tokens
            price = self._price(model, run.name)
            priced = _count_tokens(run, usage, message, error, price)
            if self._prices is not None and usage.total_tokens > before and not priced:
                usage.unpriced_calls += 1

    def _price(self, *models: str) -> Price | None:
        return next((p for p in map((self._prices or {}).get, models) if p is not None), None)


def _totals(counts: _Counts, wanted: str) -> dict[str, ModelUsage]:
    made: dict[str, ModelUsage] = {}
    for (kind, name, _), usage in counts.items():
        if kind == wanted:
            made[name] = made.get(name, ModelUsage()) + usage
    return made


def _count_end(
    run: _Run, usage: ModelUsage, error: type[BaseException] | None, *, sent: bool
) -> None:
    """Count how a run ended, and how long it took."""
    if error is not None and issubclass(error, LEFT_EARLY):
        usage.stopped += 1
    elif error is not None:
        usage.errors[error.__name__] += 1
    if sent:
        usage.calls += 1
        usage.duration.add(time.perf_counter() - run.started)
    if run.first_token is not None:
        usage.first_token.add(run.first_token - run.started)


def _was_sent(error: BaseException | None) -> bool:
    """Whether a call reached the service; an overflow may have been foreseen."""
    if isinstance(error, SvcContextOverflowError):
        return error.status_code is not None
    return not isinstance(error, SvcRequestError)


def _count_tokens(
    run: _Run,
    usage: ModelUsage,
    message: AIMessage,
    error: BaseException | None,
    price: Price | None,
) -> bool:
    """Count the tokens of a call, and what they cost; says whether that is known."""
    counts = message.usage_metadata
    if counts is not None:
        estimated = message.response_metadata.get("usage_source") == "estimated"
        spent = counts["input_tokens"], counts["output_tokens"]
        usage.add_tokens(*spent, estimated=estimated)
    elif "total_tokens" in message.response_metadata:
        spent = message.response_metadata["total_tokens"], 0
        usage.unsplit_tokens += spent[0]
        if price is not None and price.input != price.output:
            return False
    elif error is not None and message.text:
        turns = (turn if isinstance(turn, str) else turn.text for turn in run.prompt)
        asked = sum(count_tokens(text) + TOKENS_A_TURN for text in turns)
        spent = asked, count_tokens(message.text)
        usage.add_tokens(*spent, estimated=True)
    else:
        return True
    if price is None:
        return False
    usage.add_cost(price.input * spent[0] + price.output * spent[1], price.currency)
    return True


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
