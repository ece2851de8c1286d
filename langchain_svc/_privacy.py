"""`privacy="phi"`: the runs of models and tools are kept out of records.

Each method by which LangChain begins a run has a twin here, which masks the run's callbacks
(`_private_callbacks.py`) and lets an error leave without the texts that it and its frames hold.
Where `privacy` is None the methods are LangChain's own.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from functools import wraps
from typing import Any, Literal, TypeVar

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from pydantic import model_validator
from typing_extensions import Self

from ._construct import Constructed
from ._masks import masked_error
from ._private_callbacks import PrivateCallbacks, private_config
from .errors import SvcError, SvcRequestError

Privacy = Literal["phi"] | None


class Run:
    """What is to be done, kept where no frame of a traceback shows it.

    Whoever renders a traceback with its local variables prints the prompt of every frame that has
    one. So the texts of a private run stand in no variable of the frames that an error leaves
    through, and the frames further in are taken off it.
    """

    __slots__ = ("_args", "_do", "_kwargs")

    def __init__(self, do: Callable[..., Any], args: tuple[Any, ...], kwargs: Any) -> None:
        self._do, self._args, self._kwargs = do, args, kwargs

    def __repr__(self) -> str:
        return "<a private run>"

    def begun(self) -> Any:
        return self._do(*self._args, **self._kwargs)

    def now(self) -> Any:
        try:
            return self.begun()
        except BaseException as error:  # noqa: BLE001  # raised again, without its frames
            failed = without_texts(error)
        raise failed

    async def later(self) -> Any:
        try:
            return await self.begun()
        except BaseException as error:  # noqa: BLE001  # raised again, without its frames
            failed = without_texts(error)
        raise failed

    def pieces(self) -> Iterator[Any]:
        try:
            yield from self.begun()
        except BaseException as error:  # noqa: BLE001  # raised again, without its frames
            failed = without_texts(error)
        else:
            return
        raise failed

    async def apieces(self) -> AsyncIterator[Any]:
        try:
            async with aclosing(self.begun()) as pieces:
                async for piece in pieces:
                    yield piece
                    del piece  # it would stand in this frame when the next one fails
        except BaseException as error:  # noqa: BLE001  # raised again, without its frames
            failed = without_texts(error)
        else:
            return
        raise failed


def without_texts(error: BaseException) -> BaseException:
    """An error for the caller: without frames, and without what it held of prompt and answer."""
    cause = error.__cause__
    failed = masked_error(error) if isinstance(error, SvcError) else error
    failed.__context__ = None
    failed.__cause__ = masked_error(cause) if isinstance(cause, SvcError) else None
    return failed.with_traceback(None)


Way = Callable[[Run], Any]
"""How a run is run: all at once, or piece by piece; blocking, or on an event loop."""
Kind = TypeVar("Kind", bound="type[Any]")


def private_runs(*, callbacks: tuple[str, ...] = (), **ways: Way) -> Callable[[Kind], Kind]:
    """Gives a class private twins of the methods by which LangChain begins runs.

    Args:
        callbacks: The methods that take their callbacks as `callbacks` and not within a `config`.
        **ways: How each method is run, by its name.
    """

    def decorate(kind: Kind) -> Kind:
        for name, way in ways.items():
            made = _twin(getattr(kind, name), way, "callbacks" if name in callbacks else "config")
            # A function is pickled by its place.
            made.__module__, made.__qualname__ = kind.__module__, f"{kind.__qualname__}.{name}"
            setattr(kind, name, made)
        return kind

    return decorate


def _twin(method: Callable[..., Any], way: Way, word: str) -> Callable[..., Any]:
    """A method that masks its callbacks where the object is private."""
    signature = inspect.signature(method)
    mask_callbacks = _masked_config if word == "config" else _masked_callbacks

    @wraps(method)
    def public_or_private(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.privacy is None:
            return method(self, *args, **kwargs)
        refuse_cache(self)
        bound = signature.bind(self, *args, **kwargs)
        bound.arguments[word] = mask_callbacks(bound.arguments.get(word))
        run = Run(method, bound.args, bound.kwargs)
        del args, kwargs, bound
        return way(run)

    return public_or_private


def _masked_config(config: Any) -> Any:
    return [*map(private_config, config)] if isinstance(config, list) else private_config(config)


def _masked_callbacks(callbacks: Any) -> Any:
    several = isinstance(callbacks, list)
    if several and any(isinstance(one, (list, BaseCallbackManager)) for one in callbacks):
        return [PrivateCallbacks.around(one) for one in callbacks]  # one for each prompt
    return PrivateCallbacks.around(callbacks)


def refuse_cache(model: Any) -> None:
    """A private model is not cached: a cache's keys are prompts, and its values answers."""
    if getattr(model, "cache", False) is not False:
        raise SvcRequestError(
            "privacy='phi' goes with cache=False only: a cache keeps prompts and answers. It is "
            "set where the model is made; a copy of another model needs it too"
        )


@private_runs(
    callbacks=("generate", "agenerate"),
    invoke=Run.now,
    ainvoke=Run.later,
    stream=Run.pieces,
    astream=Run.apieces,
    batch=Run.now,
    abatch=Run.later,
    generate=Run.now,
    agenerate=Run.later,
    stream_events=Run.begun,
    astream_events=Run.begun,
)
class PrivateChatModel(Constructed, BaseChatModel):
    """A chat model whose runs are private where `privacy` says so."""

    privacy: Privacy = None
    """"phi" keeps the texts of prompts and answers out of callbacks, traces, errors and caches."""

    @model_validator(mode="after")
    def _keep_from_cache(self) -> Self:
        set_uncached(self)
        return self


@private_runs(
    callbacks=("run", "arun"),
    invoke=Run.now,
    ainvoke=Run.later,
    run=Run.now,
    arun=Run.later,
)
class PrivateTool(Constructed, BaseTool):
    """A tool whose runs are private where `privacy` says so."""

    privacy: Privacy = None
    """"phi" keeps the texts of arguments and results out of callbacks, traces and errors."""


def set_uncached(model: Any) -> None:
    """Keep a private model out of caches, whatever is set for the process."""
    if model.privacy is not None:
        if model.cache:
            raise ValueError(
                "privacy='phi' goes with cache=False only: a cache keeps prompts and answers"
            )
        model.__dict__["cache"] = False
