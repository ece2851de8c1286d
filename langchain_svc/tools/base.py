"""What every tool of this package has in common, and every toolkit.

A tool prepares a `ToolUse` from its arguments (everything that can be wrong is found there, before
anything is sent), runs its call, and processes the answer into the text for the model and the
artifact for the program. A failure is raised as the `SvcError` that it is; only the call of a model
is answered with a text instead, which the model can act on.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, BaseToolkit, ToolException
from pydantic import BeforeValidator, PrivateAttr, ValidationError, model_validator
from typing_extensions import Self

from .._base.safe_errors import safe_repr
from .._base.threads import LONG, off_loop
from .._service import (
    Exchange,
    ServiceSettings,
    bounded_number,
    did_you_mean,
    keeps_runs,
    replaces,
)
from .._wire import safe_label
from ..errors import SvcError, SvcRequestError

if TYPE_CHECKING:
    from .._http import Connections

ToolOutput = tuple[str, Any]
"""The text for the model and the artifact for the program."""


@dataclass(frozen=True)
class ToolUse:
    """One use of a tool: the call to run and what to make of its answer."""

    exchange: Exchange[Any]
    process: Callable[[Any], ToolOutput] = field(repr=False)


def failure_text(error: ToolException) -> str:
    """The default of `handle_tool_error`: the text of a failure, which only a tool call gets."""
    return str(error)


@keeps_runs
class ServiceTool(ServiceSettings, BaseTool):
    """A tool on the service, with the constructor parameters that every class of this package has.

    The call of a model (`tool.invoke(tool_call)`, as `ToolNode` and agents do) is answered with the
    text of a failure and `status="error"`. Every other call raises the `SvcError`, so that a chain
    or a bulk run counts the failure. Setting `handle_tool_error` or `handle_validation_error`
    decides for both: False raises, anything else gives the text.
    """

    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: Any = failure_text

    max_result_chars: Annotated[int, bounded_number(1, whole=True, text=True)] = 100_000
    """The most characters of a result that a model is given; the artifact is whole."""

    # The toolkit whose connections it uses, which closes them.
    _shared: ServiceToolkit | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if "args_schema" not in self.model_fields_set:
            self.__dict__["args_schema"] = self._arguments()
        if "handle_validation_error" not in self.model_fields_set:
            self.__dict__["handle_validation_error"] = partial(
                explain, self.args_schema
            )
        return self

    def _arguments(self) -> Any:
        """The schema of the arguments, which may depend on the settings."""
        return self.args_schema

    @abstractmethod
    def _use(self, *args: Any, **kwargs: Any) -> ToolUse:
        """The call that a run's config and the checked arguments ask for."""

    @replaces(BaseTool.run)
    def run(self, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        return super().run(self._named(tool_input, kwargs), *args, **kwargs)

    @replaces(BaseTool.arun)
    async def arun(self, tool_input: Any, *args: Any, **kwargs: Any) -> Any:
        return await super().arun(self._named(tool_input, kwargs), *args, **kwargs)

    def _named(self, tool_input: Any, given: dict[str, Any]) -> Any:
        """The arguments by name; an input that is one text is the first of them.

        LangChain tells callbacks all else that a call is given, and that may be a key or a header.
        """
        if taken := sorted(given.keys() & ServiceSettings.model_fields.keys()):
            given.clear()  # they would stand in the frames of the error
            raise SvcRequestError(
                f"A call of {self.name} takes no {taken[0]!r}: it is set where the tool is made"
            )
        names = [*getattr(self.args_schema, "model_fields", ())]
        one_text = isinstance(tool_input, str) and names
        return {names[0]: tool_input} if one_text else _bounded(tool_input)

    def _to_args_and_kwargs(
        self, tool_input: str | dict[str, Any], tool_call_id: str | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The checked arguments, and for `_run` whether they are those of a model's call."""
        answers_call = tool_call_id is not None
        try:
            args, arguments = super()._to_args_and_kwargs(tool_input, tool_call_id)
        except ValidationError as error:
            is_set = getattr(self.handle_validation_error, "func", None) is not explain
            if answers_call or is_set:
                raise
            failure = SvcRequestError(explain(self.args_schema, error))
        else:
            return args, {**arguments, "answers_call": answers_call}
        raise failure  # out here, where it has no context: pydantic's error holds the arguments

    # LangChain looks at the annotation, which must be this; adapters to others leave config out.
    def _run(
        self,
        *,
        config: RunnableConfig = None,  # type: ignore[assignment]
        run_manager: Any = None,
        answers_call: bool = False,
        **arguments: Any,
    ) -> ToolOutput:
        try:
            return self._call(config, run_manager, arguments)
        except SvcError as error:
            failure = self._failure(error, answers_call=answers_call)
        del arguments, config  # they would stand in the frames of the error
        raise failure

    async def _arun(
        self,
        *,
        config: RunnableConfig = None,  # type: ignore[assignment]
        run_manager: Any = None,
        answers_call: bool = False,
        **arguments: Any,
    ) -> ToolOutput:
        try:
            return await self._acall(config, run_manager, arguments)
        except SvcError as error:
            failure = self._failure(error, answers_call=answers_call)
        del arguments, config
        raise failure

    def _failure(self, error: SvcError, *, answers_call: bool) -> Exception:
        """What to raise: LangChain makes a text of a `ToolException`, where one is wanted.

        The error leaves its frames behind, since they have the patient's record.
        """
        error = error.with_traceback(None)
        handler = self.handle_tool_error
        as_text = answers_call if handler is failure_text else handler
        if not as_text:
            return error
        failure = ToolException(self._told_to_model(error))
        failure.__cause__ = error
        return failure

    def _told_to_model(self, error: SvcError) -> str:
        """A failure in words that a model can act on."""
        if isinstance(error, SvcRequestError):
            return f"Nothing was sent: {error}"
        if type(error) is SvcError:  # not of the call: the program failed, and says how
            return str(error)
        later = " It may work later." if error.is_retryable else ""
        return (
            f"{self.name} gave no answer: {str(error).rstrip('.')}. "
            f"Nothing is known from this call.{later}"
        )

    def _call(
        self, config: RunnableConfig, run: Any, arguments: dict[str, Any]
    ) -> ToolOutput:
        with self._used(run, config, arguments) as use:
            (answer,) = self._pieces(use.exchange)
            return self._within_bound(use.process(answer))

    async def _acall(
        self, config: RunnableConfig, run: Any, arguments: dict[str, Any]
    ) -> ToolOutput:
        with self._used(run, config, arguments) as use:
            (answer,) = [answer async for answer in self._apieces(use.exchange)]
            if use.exchange.received > LONG:
                told = await off_loop(use.exchange.until, use.process, answer)
            else:
                told = use.process(answer)
            return self._within_bound(told)

    def _within_bound(self, told: ToolOutput) -> ToolOutput:
        text, artifact = told
        if len(text) <= self.max_result_chars:
            return told
        end = text.rfind(
            "\n", 0, self.max_result_chars
        )  # a line is told whole or not at all
        end = self.max_result_chars if end <= 0 else end
        note = f"[{len(text) - end:,} more characters of this result are left out here]"
        return f"{text[:end]}\n{note}", artifact

    @contextmanager
    def _used(
        self, run: Any, config: RunnableConfig, given: dict[str, Any]
    ) -> Iterator[ToolUse]:
        """Prepares a use, and tells handlers that have `svc_tool_called` how it went.

        LangChain tells them neither of retries nor of errors that the model is told as text.
        """
        done: Exchange[Any] | None = None
        raised: type[BaseException] | None = None
        try:
            use = self._use(config or {}, **given)
            done = use.exchange
            yield use
        except BaseException as error:
            raised = type(error)
            raise
        finally:
            handlers = () if run is None else run.handlers
            tells = {getattr(handler, "svc_tool_called", None) for handler in handlers}
            for tell in filter(None, tells):  # once, however often a handler was given
                tell(
                    run.run_id,
                    name=self.name,
                    endpoint="" if done is None else urlsplit(done.request.url).path,
                    retries=0 if done is None else done.retries,
                    waited=0.0 if done is None else done.waited,
                    error=raised,
                )

    def _connections_to(self, url: str) -> Connections:
        if self._shared is None:
            return super()._connections_to(url)
        return self._shared._connections_to(url)  # noqa: SLF001  # the same package

    def __copy__(self) -> Self:
        made = super().__copy__()
        made._shared = None  # a copy may be given another route  # noqa: SLF001  # our own class
        return made


_DEEPEST = 8  # no schema of a tool goes half as deep
_MOST_BITS = 1024  # of an integer, as many as the largest float has


def _bounded(value: Any, depth: int = _DEEPEST) -> Any:
    """What a model gave, with what no tool takes cut off.

    LangChain writes an input out for traces before it checks it, and that fails for lists in
    lists without end and for integers of thousands of digits.
    """
    if isinstance(value, dict):
        return (
            {k: _bounded(held, depth - 1) for k, held in value.items()}
            if depth
            else "..."
        )
    if isinstance(value, list):
        return [_bounded(held, depth - 1) for held in value] if depth else "..."
    large = isinstance(value, int) and value.bit_length() > _MOST_BITS
    return math.inf if large else value


class ServiceToolkit(ServiceSettings, BaseToolkit):
    """Tools over one set of connections, with the settings of the toolkit."""

    def _make(self, kind: Callable[..., ServiceTool], **own: Any) -> ServiceTool:
        """A tool of this kind: what both have a parameter for is passed on."""
        self._refuse_incomplete_pickle()  # a tool without its patient would ask the model for one
        words = {
            name: getattr(self, name)
            for name in type(self).model_fields
            if name in kind.model_fields  # type: ignore[attr-defined]  # a class of ours
        }
        tool = kind(**words, **own)
        tool._shared = self  # noqa: SLF001  # the same package
        return tool


def tool_selection(names: Sequence[str]) -> BeforeValidator:
    """Accepts names of tools, one or several, and gives them in the order of `names`."""

    def check(value: Any) -> tuple[str, ...] | None:
        if value is None:
            return None
        chosen = [value] if isinstance(value, str) else value
        if not isinstance(chosen, (list, tuple, set, frozenset)) or not chosen:
            raise ValueError(
                f"must be a list of names of tools, not {safe_repr(value)}"
            )
        for name in chosen:
            if name not in names:
                raise ValueError(
                    f"there is no tool {safe_repr(name)}; {did_you_mean(str(name), names)}"
                )
        return tuple(name for name in names if name in chosen)

    return BeforeValidator(check)


_SAID = {
    "missing": "is required",
    "string_type": "must be a text",
    "string_unicode": "must be a text, without lone surrogates",
    "tuple_type": "must be a list",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
}
_MOST_PROBLEMS = 10


def explain(schema: Any, error: ValidationError) -> str:
    """What is wrong with a call's arguments, for the model: fields and bounds, never values."""
    problems: list[str] = []
    for found in error.errors(
        include_url=False, include_context=False, include_input=False
    ):
        if found["type"] == "extra_forbidden":
            problems.append("there is an argument or field that the tool does not have")
            continue
        place = ".".join(map(str, found["loc"])) or "the arguments"
        said = _SAID.get(found["type"], found["msg"].removeprefix("Value error, "))
        problems.append(f"{place}: {said}")
    wrong = "; ".join(dict.fromkeys(problems[:_MOST_PROBLEMS]))
    known = ", ".join(getattr(schema, "model_fields", ())) or "none"
    return f"Nothing was sent, because {wrong}. The arguments are: {known}."


def utc_now(exchange: Exchange[Any]) -> str:
    """The present in UTC as ISO 8601."""
    return datetime.fromtimestamp(exchange.wall(), timezone.utc).isoformat(
        timespec="milliseconds"
    )


def request_id(exchange: Exchange[Any]) -> str | None:
    """The service's id of a request, unless it holds what was sent."""
    request = exchange.request
    given = exchange.head.headers.get("x-request-id") if exchange.head else None
    return safe_label(given, secrets=request.secrets, private=request.private)
