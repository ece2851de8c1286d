"""`ServiceTool` and `ServiceToolkit`, the base of every tool and toolkit of this package.

A tool prepares a `ToolUse` from its arguments, and finds there whatever is wrong with them, before
it sends anything. Then it runs the call, and processes the answer into the text for the model and
the artifact for the program. It raises a failure as the `SvcError` that it is; only the call of a
model is answered with a text instead, which the model can act on.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self
from urllib.parse import urlsplit

from langchain_core.callbacks import (
    AsyncCallbackManagerForToolRun,
    CallbackManagerForToolRun,
)
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, BaseToolkit, ToolException
from langchain_core.tools.base import ArgsSchema
from pydantic import (
    BeforeValidator,
    ConfigDict,
    ValidationError,
    model_validator,
)

from .._base.safe_errors import safe_repr
from .._client import Exchange, LentClient
from .._settings import (
    ServiceSettings,
    bounded_number,
    did_you_mean,
    keeps_runs,
    refuse_incomplete_pickle,
    replaces,
)
from .._wire import safe_label
from ..errors import SvcError, SvcRequestError

ToolOutput = tuple[str, Any]
"""The text for the model and the artifact for the program."""

_ToolInput = str | dict[str, Any]
_RunManager = CallbackManagerForToolRun | AsyncCallbackManagerForToolRun | None


@dataclass(frozen=True)
class ToolUse:
    """One use of a tool: the call to run and what to make of its answer.

    Attributes:
        receipt: What is on record of the call so far; None if it is nothing.
    """

    exchange: Exchange[Any]
    process: Callable[[Any], ToolOutput] = field(repr=False)
    receipt: Callable[[], Any] = field(default=lambda: None, repr=False)


def failure_text(error: ToolException) -> str:
    """The default of `handle_tool_error`: only the call of a model gets this text of a failure."""
    return str(error)


@keeps_runs
class ServiceTool(ServiceSettings, BaseTool):
    """A tool on the service, with the constructor parameters that every class of this package has.

    The call of a model (`tool.invoke(tool_call)`, as `ToolNode` and agents do) is answered with the
    text of a failure and `status="error"`. Every other call raises the `SvcError`, so that a chain
    or a bulk run counts the failure. Setting `handle_tool_error` or `handle_validation_error`
    decides for both: False raises, anything else gives the text.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(defer_build=False)

    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: bool | str | Callable[[ToolException], str] | None = failure_text

    max_result_chars: Annotated[int, bounded_number(1, whole=True, text=True)] = 100_000
    """The most characters of a result that a model gets; the artifact is whole."""

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if "args_schema" not in self.model_fields_set:
            self.__dict__["args_schema"] = self._arguments()
        if "handle_validation_error" not in self.model_fields_set:
            self.__dict__["handle_validation_error"] = partial(
                explain, self.args_schema
            )
        return self

    def _arguments(self) -> ArgsSchema | None:
        """The schema of the arguments, which may depend on the settings."""
        return self.args_schema

    @abstractmethod
    def _use(self, *args: Any, **kwargs: Any) -> ToolUse:
        """Prepare the call that a run's config and the checked arguments ask for."""

    @replaces(BaseTool.run)
    def run(self, tool_input: _ToolInput, *args: Any, **kwargs: Any) -> Any:
        self._refuse_settings(kwargs)
        return super().run(self._by_name(tool_input), *args, **kwargs)

    @replaces(BaseTool.arun)
    async def arun(self, tool_input: _ToolInput, *args: Any, **kwargs: Any) -> Any:
        self._refuse_settings(kwargs)
        return await super().arun(self._by_name(tool_input), *args, **kwargs)

    def _refuse_settings(self, options: dict[str, Any]) -> None:
        """Refuse the tool's own settings in a call.

        LangChain passes the options of a call to callbacks, and a setting may be a key or a header.
        """
        settings = sorted(options.keys() & ServiceSettings.model_fields.keys())
        if settings:
            options.clear()  # they would stand in the frames of the error
            raise SvcRequestError(
                f"A call of {self.name} takes no {settings[0]!r}: it is set where the tool is made"
            )

    def _by_name(self, tool_input: _ToolInput) -> _ToolInput:
        """The arguments by name; an input that is a text is the first of them."""
        if isinstance(tool_input, dict):
            return {name: _bounded(value) for name, value in tool_input.items()}
        names = [*getattr(self.args_schema, "model_fields", ())]
        if names and isinstance(tool_input, str):
            return {names[0]: tool_input}
        return tool_input

    def _to_args_and_kwargs(
        self, tool_input: str | dict[str, Any], tool_call_id: str | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The checked arguments, and for `_run` the id of the model's call that has them."""
        try:
            args, arguments = super()._to_args_and_kwargs(tool_input, tool_call_id)
        except ValidationError as error:
            handler = getattr(self.handle_validation_error, "func", None)
            if tool_call_id is not None or handler is not explain:
                raise
            failure = SvcRequestError(explain(self.args_schema, error))
        else:
            return args, {**arguments, "call_id": tool_call_id}
        raise failure  # out here, where it has no context: pydantic's error holds the arguments

    # LangChain looks at the annotation, which must be this; adapters to others leave config out.
    def _run(
        self,
        *,
        config: RunnableConfig = None,  # type: ignore[assignment]
        run_manager: CallbackManagerForToolRun | None = None,
        call_id: str | None = None,
        **arguments: Any,
    ) -> ToolOutput | tuple[ToolMessage, None]:
        try:
            return self._call(config, run_manager, arguments)
        except SvcError as error:
            failure = self._failure(error, call_id)
        del arguments, config  # they would stand in the frames of the error
        return self._answer_failure(failure, call_id)

    async def _arun(
        self,
        *,
        config: RunnableConfig = None,  # type: ignore[assignment]
        run_manager: AsyncCallbackManagerForToolRun | None = None,
        call_id: str | None = None,
        **arguments: Any,
    ) -> ToolOutput | tuple[ToolMessage, None]:
        try:
            return await self._acall(config, run_manager, arguments)
        except SvcError as error:
            failure = self._failure(error, call_id)
        del arguments, config
        return self._answer_failure(failure, call_id)

    def _failure(
        self, error: SvcError, call_id: str | None
    ) -> SvcError | ToolException:
        """The error itself, or a `ToolException` with a text for the model.

        The error leaves its frames behind, since they hold the patient's record.
        """
        error = error.with_traceback(None)
        as_text = bool(self.handle_tool_error)
        if self.handle_tool_error is failure_text:
            as_text = call_id is not None
        if not as_text:
            return error
        failure = ToolException(self._failure_for_model(error))
        failure.__cause__ = error
        return failure

    def _answer_failure(
        self, failure: SvcError | ToolException, call_id: str | None
    ) -> tuple[ToolMessage, None]:
        """The message to the model whose call failed, where there is a receipt of the call.

        All else is raised: LangChain makes a message of a `ToolException`, but without an artifact.
        """
        if call_id is None or isinstance(failure, SvcError):
            raise failure
        receipt = getattr(failure.__cause__, "receipt", None)
        if receipt is None:
            raise failure
        handler = self.handle_tool_error
        text = str(failure)
        if isinstance(handler, str):
            text = handler
        elif callable(handler):
            text = handler(failure)
        message = ToolMessage(
            text,
            artifact=receipt,
            name=self.name,
            tool_call_id=call_id,
            status="error",
        )
        return message, None

    def _failure_for_model(self, error: SvcError) -> str:
        """A failure in words that a model can act on."""
        if isinstance(error, SvcRequestError) and not error.retries:
            return f"Nothing was sent: {error}"
        if type(error) is SvcError:  # not of the call: the program failed, and says how
            return str(error)
        text = (
            f"{self.name} gave no answer: {str(error).rstrip('.')}. "
            "Nothing is known from this call."
        )
        return f"{text} It may work later." if error.is_retryable else text

    def _call(
        self, config: RunnableConfig, run: _RunManager, arguments: dict[str, Any]
    ) -> ToolOutput:
        with self._reported_use(run, config, arguments) as use:
            (answer,) = self._client.read(use.exchange)
            return self._shortened(use.process(answer))

    async def _acall(
        self, config: RunnableConfig, run: _RunManager, arguments: dict[str, Any]
    ) -> ToolOutput:
        with self._reported_use(run, config, arguments) as use:
            (answer,) = [answer async for answer in self._client.aread(use.exchange)]
            return self._shortened(use.process(answer))

    def _shortened(self, output: ToolOutput) -> ToolOutput:
        """The output with at most `max_result_chars` of text, cut between lines if it has any."""
        text, artifact = output
        if len(text) <= self.max_result_chars:
            return output
        end = text.rfind("\n", 0, self.max_result_chars)
        if end <= 0:
            end = self.max_result_chars
        note = f"[{len(text) - end:,} more characters of this result are left out here]"
        return f"{text[:end]}\n{note}", artifact

    @contextmanager
    def _reported_use(
        self, run: _RunManager, config: RunnableConfig, arguments: dict[str, Any]
    ) -> Iterator[ToolUse]:
        """Prepare a use, and report afterwards how it went."""
        use: ToolUse | None = None
        error_type: type[BaseException] | None = None
        try:
            use = self._use(config or {}, **arguments)
            yield use
        except BaseException as error:
            error_type = type(error)
            if isinstance(error, SvcError) and use is not None:
                error.receipt = use.receipt()
            raise
        finally:
            if run is not None:
                self._report(run, use, error_type)

    def _report(
        self,
        run: CallbackManagerForToolRun | AsyncCallbackManagerForToolRun,
        use: ToolUse | None,  # None where the call was refused before it began
        error_type: type[BaseException] | None,
    ) -> None:
        """Report a use to the handlers that have `svc_tool_called`.

        LangChain reports neither retries nor the errors that the model gets as text.
        """
        endpoint = ""
        retries = 0
        waited = 0.0
        if use is not None:
            endpoint = urlsplit(use.exchange.request.url).path
            retries = use.exchange.retries
            waited = use.exchange.waited
        # A set: a handler that was passed twice gets one report.
        reports = {
            getattr(handler, "svc_tool_called", None) for handler in run.handlers
        }
        for report in filter(None, reports):
            report(
                run.run_id,
                name=self.name,
                endpoint=endpoint,
                retries=retries,
                waited=waited,
                error=error_type,
            )


_DEEPEST = 7  # levels inside an argument; no schema of a tool has half as many
_MOST_BITS = 1024  # of an integer, as many as the largest float has


def _bounded(value: object, depth: int = _DEEPEST) -> object:
    """A model's argument, without what is too deep or too large for any tool.

    LangChain writes the arguments out for traces before it checks them. That fails for lists in
    lists without end, and for integers of thousands of digits.
    """
    if isinstance(value, int) and value.bit_length() > _MOST_BITS:
        return math.inf
    if not isinstance(value, (dict, list)):
        return value
    if not depth:
        return "..."
    if isinstance(value, list):
        return [_bounded(item, depth - 1) for item in value]
    return {key: _bounded(item, depth - 1) for key, item in value.items()}


class ServiceToolkit(ServiceSettings, BaseToolkit):
    """Tools with the settings of the toolkit, over its connections."""

    model_config: ClassVar[ConfigDict] = ConfigDict(defer_build=False)

    def _new_tool(self, kind: type[ServiceTool], **settings: Any) -> ServiceTool:
        """A tool of this kind, with the toolkit's values of the settings that both have."""
        # A tool without its patient would ask the model for one.
        refuse_incomplete_pickle(self)
        shared = {
            name: getattr(self, name)
            for name in type(self).model_fields
            if name in kind.model_fields
        }
        tool = kind(**shared, **settings)
        tool._client = LentClient(self._client)  # noqa: SLF001  # our own class
        return tool


def tool_selection(names: Sequence[str]) -> BeforeValidator:
    """A validator of one name of a tool or several, which puts them in the order of `names`."""

    def check(value: object) -> tuple[str, ...] | None:
        if value is None:
            return None
        selected = [value] if isinstance(value, str) else value
        if not isinstance(selected, (list, tuple, set, frozenset)) or not selected:
            raise ValueError(
                f"must be a list of names of tools, not {safe_repr(value)}"
            )
        for name in selected:
            if name not in names:
                raise ValueError(
                    f"there is no tool {safe_repr(name)}; {did_you_mean(str(name), names)}"
                )
        return tuple(name for name in names if name in selected)

    return BeforeValidator(check)


_WORDING = {
    "missing": "is required",
    "string_type": "must be a text",
    "string_unicode": "must be a text, without lone surrogates",
    "tuple_type": "must be a list",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
}
_MOST_PROBLEMS = 10


def explain(schema: object, error: ValidationError) -> str:
    """What is wrong with a call's arguments, for the model: fields and bounds, never values."""
    problems: list[str] = []
    for detail in error.errors(
        include_url=False, include_context=False, include_input=False
    ):
        if detail["type"] == "extra_forbidden":
            problems.append("there is an argument or field that the tool does not have")
            continue
        place = ".".join(map(str, detail["loc"])) or "the arguments"
        message = detail["msg"].removeprefix("Value error, ")
        problems.append(f"{place}: {_WORDING.get(detail['type'], message)}")
    reasons = "; ".join(dict.fromkeys(problems[:_MOST_PROBLEMS]))
    names = ", ".join(getattr(schema, "model_fields", ())) or "none"
    return f"Nothing was sent, because {reasons}. The arguments are: {names}."


def utc_now(exchange: Exchange[Any]) -> str:
    """The time in UTC, in the form of ISO 8601."""
    return datetime.fromtimestamp(exchange.wall(), UTC).isoformat(
        timespec="milliseconds"
    )


def request_id(exchange: Exchange[Any]) -> str | None:
    """The service's id of a request, unless it holds a key."""
    if exchange.head is None:
        return None
    label = exchange.head.headers.get("x-request-id")
    return safe_label(label, secrets=exchange.request.secrets)
