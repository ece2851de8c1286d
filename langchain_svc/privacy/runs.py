"""`privacy="phi"`: the runs of models and tools are kept out of records.

The core hands over each method by which LangChain begins a run (`_service/runs.py`). Here the
run's callbacks are masked (`callbacks.py`), an error leaves without the texts that it and its
frames hold, and what LangChain wraps around a model or tool by its own methods (`bind`,
`with_retry`) becomes private too.
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
)
from contextlib import aclosing
from functools import lru_cache
from typing import Any

from langchain_core.runnables import Runnable, RunnableBinding
from langchain_core.tools import StructuredTool, Tool

from .._service import Privacy, keeps_runs
from ..errors import SvcError, SvcRequestError
from .callbacks import PrivateCallbacks, private_config
from .masks import masked_error

_UNCACHED = (
    "privacy='phi' goes with cache=False only: a cache keeps prompts and answers"
)


def refuse_cache(model: Any) -> None:
    """A private model is not cached: a cache's keys are prompts, and its values answers."""
    if model.cache:
        raise ValueError(_UNCACHED)


class PrivateRun:
    """What is to be done, kept where no frame of a traceback shows it.

    Its texts stand in no variable of the frames that an error leaves through, and the frames
    further in are taken off: tools render tracebacks with local variables.
    """

    __slots__ = ("_args", "_kwargs", "_method")

    def __init__(
        self, method: Callable[..., Any], args: tuple[Any, ...], kwargs: Any
    ) -> None:
        self._method, self._args, self._kwargs = method, args, kwargs

    def __repr__(self) -> str:
        return "<a private run>"

    def __call__(self) -> Any:
        try:
            return _kept(self._begun())
        except BaseException as error:  # noqa: BLE001  # raised again, without its frames
            failed = without_texts(error)
        raise failed

    def _begun(self) -> Any:
        if getattr(self._args[0], "cache", False) is not False:
            raise SvcRequestError(
                f"{_UNCACHED}. A copy of another model needs cache=False, too"
            )
        signature = _signature(self._method)
        given = signature.bind(*self._args, **self._kwargs)
        words = given.arguments
        # Some take their callbacks by themselves, some within a config, and some none.
        if "callbacks" in signature.parameters:
            words["callbacks"] = PrivateCallbacks.around(words.get("callbacks"))
        elif (
            "config" in signature.parameters and self._method.__name__ != "with_config"
        ):
            words["config"] = private_config(words.get("config"))
        return self._method(*given.args, **given.kwargs)


_signature = lru_cache(inspect.signature)


def _kept(found: Any) -> Any:
    """What a method gives, kept private in turn where it is a runnable, or is yet to come."""
    if isinstance(found, Runnable):
        return make_private(found)
    if isinstance(found, Coroutine):
        return _later(found)
    if isinstance(found, Generator):
        return _pieces(found)
    return _apieces(found) if isinstance(found, AsyncGenerator) else _returned(found)


async def _later(found: Coroutine[Any, Any, Any]) -> Any:
    try:
        return _returned(await found)
    except BaseException as error:  # noqa: BLE001  # raised again, without its frames
        failed = without_texts(error)
    raise failed


def _pieces(found: Generator[Any, Any, Any]) -> Iterator[Any]:
    try:
        yield from map(_returned, found)
    except BaseException as error:  # noqa: BLE001  # raised again, without its frames
        failed = without_texts(error)
    else:
        return
    raise failed


async def _apieces(found: AsyncGenerator[Any, Any]) -> AsyncIterator[Any]:
    try:
        async with aclosing(found) as pieces:
            async for piece in pieces:
                yield _returned(piece)
                del piece  # it would stand in this frame when the next one fails
    except BaseException as error:  # noqa: BLE001  # raised again, without its frames
        failed = without_texts(error)
    else:
        return
    raise failed


def _returned(found: Any) -> Any:
    """What a run gives, with the errors that a batch returns as those that it raises."""
    if isinstance(found, BaseException):
        return without_texts(found)
    if type(found) in {list, tuple} and any(
        isinstance(one, BaseException) for one in found
    ):
        return type(found)(map(_returned, found))
    return found


def without_texts(error: BaseException) -> BaseException:
    """An error for the caller: without frames, and without what it held of prompt and answer."""
    cause = error.__cause__
    failed = masked_error(error) if isinstance(error, SvcError) else error
    failed.__context__ = None
    failed.__cause__ = masked_error(cause) if isinstance(cause, SvcError) else None
    return failed.with_traceback(None)


@keeps_runs
class PrivateBinding(RunnableBinding[Any, Any]):
    """A runnable whose runs are private, as what a private model is bound to."""

    privacy: Privacy = "phi"

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


_KINDS: tuple[tuple[Any, Any], ...] = (
    (RunnableBinding, PrivateBinding),
    (Tool, PrivateTool),
    (StructuredTool, PrivateStructuredTool),
)


def make_private(made: Any) -> Any:
    """A runnable as one whose runs are private."""
    for kind, private in _KINDS:
        if isinstance(made, private):
            return made
        if isinstance(made, kind):
            return private(**{name: getattr(made, name) for name in kind.model_fields})
    return PrivateBinding(bound=made)
