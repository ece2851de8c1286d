"""`privacy="phi"`: the runs of models and tools are kept out of records.

The core hands over each method by which LangChain begins a run (`_settings/runs.py`). Here the
run's callbacks are masked (`callbacks.py`), and an error leaves without the texts that it and its
frames hold. The runnables that LangChain's own methods (`bind`, `with_retry`) wrap around a model
or tool become private too.
"""

from __future__ import annotations

import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
)
from contextlib import aclosing
from functools import lru_cache
from typing import Any, Self

from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import Runnable, RunnableBinding, RunnableSerializable
from langchain_core.tools import StructuredTool, Tool

from .._settings import Privacy, keeps_runs
from ..errors import SvcError, SvcRequestError
from .callbacks import PrivateCallbacks, private_config
from .masks import masked_error

_UNCACHED = (
    "privacy='phi' goes with cache=False only: a cache keeps prompts and answers"
)


def refuse_cache(model: BaseLanguageModel[Any]) -> None:
    """A private model is not cached: a cache's keys are prompts, and its values answers."""
    if model.cache:
        raise ValueError(_UNCACHED)


class PrivateRun:
    """A call of a private object's method, which no frame of a traceback shows.

    Its texts stand in no variable of the frames that an error leaves through, and the frames
    further in are taken off: tools render tracebacks with local variables.
    """

    __slots__ = ("_args", "_kwargs", "_method")

    def __init__(
        self,
        method: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
    ) -> None:
        self._method = method
        self._args = args
        self._kwargs = kwargs

    def __repr__(self) -> str:
        return "<a private run>"

    def __call__(self) -> object:
        try:
            return _private_result(self._start())
        except BaseException as error:  # noqa: BLE001  # raised again, without its frames
            failed = without_texts(error)
        raise failed

    def _start(self) -> object:
        if getattr(self._args[0], "cache", False) is not False:
            raise SvcRequestError(
                f"{_UNCACHED}. A copy of another model needs cache=False, too"
            )
        signature = _signature(self._method)
        bound = signature.bind(*self._args, **self._kwargs)
        arguments = bound.arguments
        # Some methods take their callbacks by themselves, some within a config, and some none.
        if "callbacks" in signature.parameters:
            arguments["callbacks"] = PrivateCallbacks.around(arguments.get("callbacks"))
        elif (
            "config" in signature.parameters and self._method.__name__ != "with_config"
        ):
            arguments["config"] = private_config(arguments.get("config"))
        return self._method(*bound.args, **bound.kwargs)


_signature = lru_cache(inspect.signature)


def _private_result(result: object) -> object:
    """The result of a private method: a runnable, a coroutine or a stream becomes private too."""
    if isinstance(result, Runnable):
        return make_private(result)
    if isinstance(result, Coroutine):
        return _awaited(result)
    if isinstance(result, Generator):
        return _pieces(result)
    if isinstance(result, AsyncGenerator):
        return _apieces(result)
    return _cleaned(result)


async def _awaited(run: Coroutine[Any, Any, Any]) -> object:
    try:
        return _cleaned(await run)
    except BaseException as error:  # noqa: BLE001  # raised again, without its frames
        failed = without_texts(error)
    raise failed


def _pieces(stream: Generator[Any, Any, Any]) -> Iterator[Any]:
    try:
        yield from map(_cleaned, stream)
    except BaseException as error:  # noqa: BLE001  # raised again, without its frames
        failed = without_texts(error)
    else:
        return
    raise failed


async def _apieces(stream: AsyncGenerator[Any, Any]) -> AsyncIterator[Any]:
    try:
        async with aclosing(stream) as pieces:
            async for piece in pieces:
                yield _cleaned(piece)
                del piece  # it would stand in this frame when the next one fails
    except BaseException as error:  # noqa: BLE001  # raised again, without its frames
        failed = without_texts(error)
    else:
        return
    raise failed


def _cleaned(result: object) -> object:
    """A result in which the errors that a batch returns have no texts, as those that it raises."""
    if isinstance(result, BaseException):
        return without_texts(result)
    if type(result) is not list and type(result) is not tuple:
        return result
    if any(isinstance(item, BaseException) for item in result):
        return type(result)(map(_cleaned, result))
    return result


def without_texts(error: BaseException) -> BaseException:
    """An error for the caller: without frames, and without texts of prompt and answer in it."""
    cause = error.__cause__
    failed = error
    if isinstance(error, SvcError):
        failed = masked_error(error)
    failed.__context__ = None
    failed.__cause__ = masked_error(cause) if isinstance(cause, SvcError) else None
    return failed.with_traceback(None)


@keeps_runs
class PrivateBinding(RunnableBinding[Any, Any]):
    """A runnable whose runs are private, as what a private model is bound to."""

    privacy: Privacy = "phi"

    def with_citations(self, *args: Any, **kwargs: Any) -> Self:
        """The same with a model that cites; see `ChatSvc.with_citations`."""
        bound: Any = self.bound
        return self.model_copy(update={"bound": bound.with_citations(*args, **kwargs)})

    @classmethod
    def lc_id(cls) -> list[str]:
        """Saved as what LangChain can load."""
        return RunnableBinding.lc_id()


@keeps_runs
class PrivateTool(Tool):
    """What `as_tool` makes of a model, or of a runnable with one argument."""

    privacy: Privacy = "phi"


@keeps_runs
class PrivateStructuredTool(StructuredTool):
    """What `as_tool` makes of a runnable with several arguments."""

    privacy: Privacy = "phi"


_PRIVATE_KINDS: tuple[
    tuple[type[RunnableSerializable[Any, Any]], type[RunnableSerializable[Any, Any]]],
    ...,
] = (
    (RunnableBinding, PrivateBinding),
    (Tool, PrivateTool),
    (StructuredTool, PrivateStructuredTool),
)


def make_private(runnable: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """A runnable as one whose runs are private."""
    for kind, private in _PRIVATE_KINDS:
        if isinstance(runnable, private):
            return runnable
        if isinstance(runnable, kind):
            fields = {name: getattr(runnable, name) for name in kind.model_fields}
            return private(**fields)
    return PrivateBinding(bound=runnable)
