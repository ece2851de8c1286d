"""Counts what calls cost: tokens, money, retries, waits and errors, by model and tool.

One handler may watch many threads, event loops and graphs at once. It knows a run by its id from
start to end. So a run counts once even if LangChain calls the handler twice for it, as when it is
passed to the call and active as a context manager.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar, Token
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import LLMResult
from langchain_core.tracers.context import register_configure_hook

from .._base.shown import html_table, money, record_repr
from .._base.threads import new_lock
from .._base.tokens import TOKENS_A_TURN, count_tokens
from .._wire import Price, is_cut, read_prices
from ..errors import SvcContextOverflowError, SvcError, SvcRequestError

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType


@dataclass
class ModelUsage:
    """The counts of one model's or tool's calls.

    Attributes:
        calls: Calls that reached the service, however they ended.
        cache_hits: Calls that LangChain's cache answered; they count neither as spend nor as calls.
        stopped: Calls that the caller left early.
        cut: Answers that were cut off, at `max_tokens` or by a filter, and that did not go on.
        input_tokens: Tokens in, as the service counted them.
        output_tokens: Tokens out, as the service counted them.
        estimated_input_tokens: Tokens in of the calls for which the service sent no counts, or
            their sum only.
        estimated_output_tokens: Tokens out of those calls.
        retries: How often a request was sent again.
        waited: Seconds spent waiting between tries.
        errors: How many calls failed, by the error's name.
        cost: What the tokens cost, by currency, where the handler has prices.
        unpriced_calls: Calls with tokens whose price is not known, where the handler has prices.
    """

    calls: int = 0
    cache_hits: int = 0
    stopped: int = 0
    cut: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    estimated_input_tokens: int = 0
    estimated_output_tokens: int = 0
    retries: int = 0
    waited: float = 0.0
    errors: Counter[str] = field(default_factory=Counter)
    cost: dict[str, float] = field(default_factory=dict)
    unpriced_calls: int = 0

    @property
    def total_tokens(self) -> int:
        """All tokens, counted and estimated."""
        estimated = self.estimated_input_tokens + self.estimated_output_tokens
        return self.input_tokens + self.output_tokens + estimated

    def __repr__(self) -> str:
        return record_repr(self)

    def to_dict(self) -> dict[str, Any]:
        """A copy of plain dicts and numbers."""
        return vars(self) | {"errors": dict(self.errors), "cost": dict(self.cost)}


@dataclass(frozen=True)
class _Column:
    head: str
    words: str  # for one cell, where there is no column
    cell: Callable[[ModelUsage], str]  # "" where there is nothing to show
    # The cell's text then. A column without one is left out if all its cells are empty.
    empty: str = ""


def _count(count: int) -> str:
    if not count:
        return ""
    return f"{count:,}"


def _tokens(counted: int, estimated: int) -> str:
    if counted and estimated:
        return f"{counted:,} + ~{estimated:,}"
    if estimated:
        return f"~{estimated:,}"
    return _count(counted)


def _tokens_in(usage: ModelUsage) -> str:
    return _tokens(usage.input_tokens, usage.estimated_input_tokens)


def _tokens_out(usage: ModelUsage) -> str:
    return _tokens(usage.output_tokens, usage.estimated_output_tokens)


def _retries(usage: ModelUsage) -> str:
    if not usage.retries:
        return ""
    return f"{usage.retries:,} ({usage.waited:,.1f} s)"


def _cost(usage: ModelUsage) -> str:
    sign = ""
    if usage.estimated_input_tokens or usage.estimated_output_tokens:
        sign = "~"
    costs = (
        f"{sign}{money(cost, currency)}"
        for currency, cost in sorted(usage.cost.items())
    )
    return " + ".join(costs)


_COLUMNS = (
    _Column("calls", "{} calls", lambda u: _count(u.calls), "0"),
    _Column("cached", "{} cached", lambda u: _count(u.cache_hits)),
    _Column("tokens\nin", "{} tokens in", _tokens_in, "0"),
    _Column("tokens\nout", "{} tokens out", _tokens_out, "0"),
    _Column("cost", "{}", _cost),
    _Column("retries", "retried {}", _retries, "0"),
)


def _problems(usage: ModelUsage) -> list[str]:
    """The counts that have no column, in words."""
    problems = [f"{count:,} {name}" for name, count in sorted(usage.errors.items())]
    if usage.stopped:
        problems.append(f"{usage.stopped:,} left early")
    if usage.cut:
        problems.append(_in_words("{} answers cut off", _count(usage.cut)))
    if usage.unpriced_calls:
        count = _count(usage.unpriced_calls)
        problems.append(_in_words("{} calls without a known price", count))
    return problems


def _in_words(words: str, count: str) -> str:
    """A count in words: 2 calls, 1 call."""
    if count == "1":
        words = words.replace("s", "", 1)
    return words.format(count)


class UsageTable:
    """A row for each model and tool. rich and notebooks show a table, all else shows lines.

    Both show all counts: a console without room for the whole table shows the lines.
    """

    def __init__(self, rows: Sequence[tuple[str, ModelUsage]]) -> None:
        """Keep the counts.

        Args:
            rows: The counts under their names, in order.
        """
        self._rows = rows
        self._columns: list[_Column] = []
        for column in _COLUMNS:
            if column.empty or any(column.cell(usage) for _, usage in rows):
                self._columns.append(column)

    def __repr__(self) -> str:
        return "\n".join(self._lines(self._columns)) or "nothing counted"

    def _repr_html_(self) -> str:
        head = ["model", *(column.head for column in self._columns), ""]
        rows: list[list[str]] = []
        for name, usage in self._rows:
            cells = [column.cell(usage) or column.empty for column in self._columns]
            rows.append([name, *cells, ", ".join(_problems(usage))])
        return html_table(head, rows)

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        from rich import box, table, text  # noqa: PLC0415  # it is here when this is called

        grid = table.Table(
            title="Usage",
            title_justify="left",
            box=box.SIMPLE_HEAD,
            padding=0,
            pad_edge=False,
        )
        grid.add_column("model", no_wrap=True)
        for column in self._columns:
            grid.add_column(column.head, justify="right", no_wrap=True)
        for name, usage in self._rows:
            cells = (column.cell(usage) or column.empty for column in self._columns)
            # As `Text`, since rich reads brackets in a string as markup.
            grid.add_row(text.Text(name), *map(text.Text, cells))
        width = console.measure(grid, options=options.update(width=10_000)).maximum
        columns_in_lines = self._columns
        if width <= options.max_width:
            yield grid
            columns_in_lines = []
        for line in self._lines(columns_in_lines):
            yield text.Text(line, overflow="fold")

    def _lines(self, columns: Iterable[_Column]) -> Iterator[str]:
        """A line for each row: its cells of these columns, and its problems, in words."""
        for name, usage in self._rows:
            items: list[str] = []
            for column in columns:
                cell = column.cell(usage)
                if cell:
                    items.append(_in_words(column.words, cell))
            items += _problems(usage)
            if items:
                yield f"{name}: {', '.join(items)}"


# -- the handler ----------------------------------------------------------------------------------

_Active = ContextVar["SvcUsageCallbackHandler | None"]
_ACTIVE: list[_Active] = []
"""One for each depth of nested blocks: LangChain gives a run the handlers of all."""


def _free_depth() -> _Active:
    for depth in _ACTIVE:
        handler = depth.get()
        # A block that ended in another context leaves a handler without a token here.
        if handler is None or handler._token is None:  # noqa: SLF001  # our own class
            return depth
    depth = ContextVar("svc_usage", default=None)
    _ACTIVE.append(depth)
    register_configure_hook(depth, inheritable=True)
    return depth


_MOST_RUNS = 10_000  # that are counted at one time
# How a run ends when the caller stops reading, which is not an error.
LEFT_EARLY = (GeneratorExit, asyncio.CancelledError, KeyboardInterrupt)


Run = TypeVar("Run")


class RunHandler(BaseCallbackHandler, Generic[Run]):
    """Knows the open runs of chat models, and of what a subclass opens beside them."""

    run_inline = True  # the work is short, and a thread a token would cost more than it

    def __init__(self) -> None:
        self._runs: dict[UUID, Run] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # copies of a model share it

    def _open_run(self, run_id: UUID, run: Run) -> None:
        """Keep a run. The oldest go: LangChain does not report the end of a cancelled run."""
        self._runs.setdefault(run_id, run)  # LangChain may report its start twice
        while len(self._runs) > _MOST_RUNS:
            with suppress(KeyError, RuntimeError):  # another thread was quicker
                del self._runs[next(iter(self._runs))]

    @abstractmethod
    def _start_model_run(
        self,
        run_id: UUID,
        prompt: list[BaseMessage],
        details: dict[str, Any],
    ) -> None: ...

    @abstractmethod
    def _end_model_run(
        self, run_id: UUID, answer: AIMessage | None, error: BaseException | None = None
    ) -> None: ...

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        """A chat model's run starts."""
        prompt: list[BaseMessage] = []
        for turns in messages:
            prompt += turns
        details = {"serialized": serialized, **kwargs}
        self._start_model_run(run_id, prompt, details)

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **kwargs: Any) -> None:
        """A run has its answer."""
        del kwargs
        self._end_model_run(run_id, _message_of(response))

    def on_llm_error(
        self, error: BaseException, *, run_id: UUID, **kwargs: Any
    ) -> None:
        """A run has failed, or its stream was left early."""
        response = kwargs.get("response")
        answer = None
        if isinstance(response, LLMResult):
            answer = _message_of(response)
        self._end_model_run(run_id, answer, error)


def requested_model(details: Mapping[str, Any]) -> str | None:
    """The model's id, by the details of a run's start."""
    params = details.get("invocation_params") or {}
    metadata = details.get("metadata") or {}
    return (
        metadata.get("ls_model_name") or params.get("model") or params.get("model_name")
    )


@dataclass
class _ModelRun:
    model: str
    prompt: list[BaseMessage]


class SvcUsageCallbackHandler(RunHandler[_ModelRun]):
    """Counts calls, tokens, cost, cache hits, retries, waits and errors, by model.

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

    def __init__(self, prices: Mapping[str, Any] | Iterable[Any] | None = None) -> None:
        """Count from zero.

        Args:
            prices: What tokens cost: the models of `ChatSvc.list_models()`, or by model id
                `{"input": 5.0, "output": 15.0, "per_tokens": 1_000_000, "currency": "USD"}`. A
                handler asks the service for nothing by itself.

        Raises:
            ValueError: A price by model id cannot be read.
        """
        super().__init__()
        self._prices: Mapping[str, Price] | None = None
        if prices is not None:
            self._prices = read_prices(prices)
        self._models: defaultdict[str, ModelUsage] = defaultdict(ModelUsage)
        self._tools: defaultdict[str, ModelUsage] = defaultdict(ModelUsage)
        self._lock = new_lock()
        self._token: Token[SvcUsageCallbackHandler | None] | None = None

    def __enter__(self) -> Self:
        if self._token is not None:
            raise RuntimeError(
                "This handler is active already; make another for a nested block"
            )
        self._token = _free_depth().set(self)
        return self

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            with suppress(ValueError):  # the block began in another context
                self._token.var.reset(self._token)
        self._token = None

    def __reduce__(self) -> tuple[type[Self], tuple[Any]]:
        return type(self), (self._prices,)  # another process counts for itself

    # -- what LangChain reports -----------------------------------------------------------------

    def _start_model_run(
        self,
        run_id: UUID,
        prompt: list[BaseMessage],
        details: dict[str, Any],
    ) -> None:
        model = str(requested_model(details) or "unknown")
        self._open_run(run_id, _ModelRun(model, prompt))

    def _end_model_run(
        self, run_id: UUID, answer: AIMessage | None, error: BaseException | None = None
    ) -> None:
        with self._lock:
            run = self._runs.pop(run_id, None)
            if run is not None:
                self._count(run, answer, error)

    def svc_tool_called(  # the tools of this package call it
        self,
        run_id: UUID,
        *,
        name: str,
        endpoint: str,
        retries: int,
        waited: float,
        error: type[BaseException] | None,
    ) -> None:
        """One of this package's tools has called the service, or refused to."""
        with self._lock:
            usage = self._tools[name]
            is_refused = error is not None and issubclass(error, SvcRequestError)
            _count_end(usage, error, sent=bool(endpoint) and not is_refused)
            usage.retries += retries
            usage.waited += waited

    # -- the counts -----------------------------------------------------------------------------

    @property
    def models(self) -> dict[str, ModelUsage]:
        """The counts of each model."""
        return self._copies(self._models)

    @property
    def tools(self) -> dict[str, ModelUsage]:
        """The counts of each of this package's tools."""
        return self._copies(self._tools)

    def _copies(self, counts: Mapping[str, ModelUsage]) -> dict[str, ModelUsage]:
        copies: dict[str, ModelUsage] = {}
        with self._lock:
            for name, usage in sorted(counts.items()):
                errors = Counter(usage.errors)
                copies[name] = replace(usage, errors=errors, cost=dict(usage.cost))
        return copies

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """All counts by model id or tool name, of plain dicts and numbers.

        Each has its `kind`, "model" or "tool".
        """
        counts: dict[str, dict[str, Any]] = {}
        for kind, usages in (("model", self.models), ("tool", self.tools)):
            for name, usage in usages.items():
                counts[name] = {"kind": kind, **usage.to_dict()}
        return counts

    def table(self) -> UsageTable:
        """The counts as a table: rich and notebooks show it as one, `print` as lines."""
        return UsageTable([*self.models.items(), *self.tools.items()])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {'; '.join(str(self.table()).splitlines())}>"

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def _count(
        self, run: _ModelRun, message: AIMessage | None, error: BaseException | None
    ) -> None:
        """Count a run that has ended, under the model that answered or was requested."""
        metadata: dict[str, Any] = {}
        if message is not None:
            metadata = message.response_metadata
        model = metadata.get("model_name") or run.model
        usage = self._models[model]
        if message is not None and error is None and is_from_cache(message):
            usage.cache_hits += 1
            return
        error_type = None
        if error is not None:
            error_type = type(error)
        _count_end(usage, error_type, sent=_was_sent(error))
        reason = metadata.get("finish_reason") or getattr(error, "finish_reason", None)
        if isinstance(reason, str) and is_cut(reason):
            usage.cut += 1
        if isinstance(error, SvcError):
            usage.retries += error.retries
            usage.waited += error.waited
        if message is None:
            return
        usage.retries += metadata.get("retries", 0)
        usage.waited += metadata.get("waited", 0.0)
        tokens = _count_tokens(run, usage, message, error)
        if tokens is not None and self._prices is not None:
            price = self._prices.get(model) or self._prices.get(run.model)
            _count_cost(usage, price, *tokens)


def is_from_cache(message: AIMessage) -> bool:
    """Whether LangChain's cache gave the answer, which it marks by a cost of 0."""
    counts: Mapping[str, object] = message.usage_metadata or {}
    return counts.get("total_cost") == 0


def _count_cost(
    usage: ModelUsage, price: Price | None, tokens_in: int, tokens_out: int
) -> None:
    """Count what the tokens of a call cost."""
    if price is not None:
        cost = price.input * tokens_in + price.output * tokens_out
        usage.cost[price.currency] = usage.cost.get(price.currency, 0.0) + cost
    elif tokens_in or tokens_out:
        usage.unpriced_calls += 1


def _count_end(
    usage: ModelUsage, error: type[BaseException] | None, *, sent: bool
) -> None:
    """Count how a run ended."""
    if sent:
        usage.calls += 1
    if error is not None and issubclass(error, LEFT_EARLY):
        usage.stopped += 1
    elif error is not None:
        usage.errors[error.__name__] += 1


def _was_sent(error: BaseException | None) -> bool:
    """Whether a call reached the service; an overflow may have been foreseen."""
    if isinstance(error, SvcContextOverflowError):
        return error.status_code is not None
    return not isinstance(error, SvcRequestError)


def _count_tokens(
    run: _ModelRun, usage: ModelUsage, message: AIMessage, error: BaseException | None
) -> tuple[int, int] | None:
    """Count the tokens of a call: those in and those out."""
    counts = message.usage_metadata
    metadata = message.response_metadata
    is_estimated = metadata.get("usage_source") == "estimated"
    if counts is not None:
        tokens_in = counts["input_tokens"]
        tokens_out = counts["output_tokens"]
    elif error is not None and message.text:
        # A stream that broke: the service sends the counts at the end.
        is_estimated = True
        tokens_in = sum(count_tokens(turn.text) + TOKENS_A_TURN for turn in run.prompt)
        tokens_out = count_tokens(message.text)
    else:
        return None
    if is_estimated:
        usage.estimated_input_tokens += tokens_in
        usage.estimated_output_tokens += tokens_out
    else:
        usage.input_tokens += tokens_in
        usage.output_tokens += tokens_out
    return tokens_in, tokens_out


def _message_of(response: LLMResult) -> AIMessage | None:
    """The first answer of a response; that of another package's text model as a message."""
    for generation in chain.from_iterable(response.generations):
        message = getattr(generation, "message", None)
        if isinstance(message, AIMessage):
            return message
        if message is not None:
            return None
        return AIMessage(
            generation.text, response_metadata=generation.generation_info or {}
        )
    return None
