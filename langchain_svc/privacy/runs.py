"""`privacy="phi"`: the runs of models and tools are kept out of records.

Each method by which LangChain begins a run has a private version here, which masks the run's
callbacks (`callbacks.py`) and lets an error leave without the texts that it and its frames
hold. What LangChain wraps around a model or tool by its own methods (`bind`, `with_retry`) is
wrapped once more for the same reason. Where `privacy` is None the methods are LangChain's own.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from functools import wraps
from typing import Any, Literal, TypeVar

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.runnables import Runnable, RunnableBinding

from ..errors import SvcError, SvcRequestError

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
            return _returned(self.begun())
        except BaseException as error:  # noqa: BLE001  # raised again, without its frames
            failed = without_texts(error)
        raise failed

    async def later(self) -> Any:
        try:
            return _returned(await self.begun())
        except BaseException as error:  # noqa: BLE001  # raised again, without its frames
            failed = without_texts(error)
        raise failed

    def pieces(self) -> Iterator[Any]:
        try:
            yield from map(_returned, self.begun())
        except BaseException as error:  # noqa: BLE001  # raised again, without its frames
            failed = without_texts(error)
        else:
            return
        raise failed

    async def apieces(self) -> AsyncIterator[Any]:
        try:
            async with aclosing(self.begun()) as pieces:
                async for piece in pieces:
                    yield _returned(piece)
                    del piece  # it would stand in this frame when the next one fails
        except BaseException as error:  # noqa: BLE001  # raised again, without its frames
            failed = without_texts(error)
        else:
            return
        raise failed

    def events(self) -> Any:
        """The events of a run: of the newer protocol an object to read them from."""
        newer = self._kwargs.get("version") == "v3"
        return self.begun() if newer else self.apieces()


def _returned(found: Any) -> Any:
    """What a run gives, with the errors that a batch returns as those that it raises."""
    if isinstance(found, BaseException):
        return without_texts(found)
    if type(found) in {list, tuple} and any(isinstance(one, BaseException) for one in found):
        return type(found)(map(_returned, found))
    return found


def without_texts(error: BaseException) -> BaseException:
    """An error for the caller: without frames, and without what it held of prompt and answer."""
    from .masks import masked_error  # noqa: PLC0415  # most processes have no private run

    cause = error.__cause__
    failed = masked_error(error) if isinstance(error, SvcError) else error
    failed.__context__ = None
    failed.__cause__ = masked_error(cause) if isinstance(cause, SvcError) else None
    return failed.with_traceback(None)


Way = Callable[[Run], Any]
"""How a run is run: all at once, or piece by piece; blocking, or on an event loop."""
Kind = TypeVar("Kind", bound="type[Any]")
Model = TypeVar("Model", bound=Any)


def private_runs(*, wraps_: tuple[str, ...] = (), **ways: Way) -> Callable[[Kind], Kind]:
    """Gives a class private versions of the methods by which LangChain begins runs.

    Args:
        wraps_: The methods that make another runnable of this one, which is to be private too.
        **ways: How each method is run, by its name.
    """

    def decorate(kind: Kind) -> Kind:
        made = {name: private_run(getattr(kind, name), way) for name, way in ways.items()}
        made |= {name: _wrapping(getattr(kind, name)) for name in wraps_}
        for name, method in made.items():
            # A function is pickled by its place.
            method.__module__, method.__qualname__ = kind.__module__, f"{kind.__qualname__}.{name}"
            setattr(kind, name, method)
        return kind

    return decorate


def private_run(method: Callable[..., Any], way: Way) -> Callable[..., Any]:
    """A method that masks its callbacks where the object is private."""
    signature = inspect.signature(method)
    # Some take their callbacks by themselves, some within a config, and some none.
    word = next((one for one in ("callbacks", "config") if one in signature.parameters), None)
    mask = _masked_config if word == "config" else _masked_callbacks
    asynchronous = way in {Run.later, Run.apieces, Run.events}

    @wraps(method)
    def public_or_private(self: Any, *args: Any, **kwargs: Any) -> Any:
        if asynchronous:
            refuse_trio()
        if self.privacy is None:
            return method(self, *args, **kwargs)
        refuse_cache(self)
        bound = signature.bind(self, *args, **kwargs)
        if word is not None:
            bound.arguments[word] = mask(bound.arguments.get(word))
        run = Run(method, bound.args, bound.kwargs)
        del args, kwargs, bound
        return way(run)

    return public_or_private


def refuse_trio() -> None:
    """LangChain's asynchronous methods are asyncio's; on trio they fail in ways that say little."""
    trio = sys.modules.get("trio")
    if trio is None:
        return
    try:
        trio.lowlevel.current_task()  # trio before 0.28 has no `in_trio_task`
    except RuntimeError:
        return
    raise SvcRequestError(
        "Asynchronous calls run on asyncio, and this is trio. Call the blocking method in a "
        "thread: await trio.to_thread.run_sync(model.invoke, question)"
    )


def _wrapping(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose runnable is private where the object is."""

    @wraps(method)
    def wrap(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = method(self, *args, **kwargs)
        return made if self.privacy is None else make_private(made)

    return wrap


def _masked_config(config: Any) -> Any:
    from .callbacks import private_config  # noqa: PLC0415  # the same

    return [*map(private_config, config)] if isinstance(config, list) else private_config(config)


def _masked_callbacks(callbacks: Any) -> Any:
    from .callbacks import PrivateCallbacks  # noqa: PLC0415  # the same

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


# The methods of every runnable.
RUNS: dict[str, Way] = {
    "invoke": Run.now,
    "ainvoke": Run.later,
    "stream": Run.pieces,
    "astream": Run.apieces,
    "batch": Run.now,
    "abatch": Run.later,
    "batch_as_completed": Run.pieces,
    "abatch_as_completed": Run.apieces,
    "astream_events": Run.events,
}
WRAPS = ("bind", "with_config", "with_retry", "with_fallbacks", "with_listeners", "with_types")


@private_runs(wraps_=WRAPS, **RUNS, stream_events=Run.begun)
class PrivateBinding(RunnableBinding[Any, Any]):
    """A runnable whose runs are private, as what a private model is bound to."""

    privacy: Privacy = "phi"

    @classmethod
    def lc_id(cls) -> list[str]:
        """Saved as what LangChain can load."""
        return RunnableBinding.lc_id()


def make_private(made: Runnable[Any, Any]) -> PrivateBinding:
    """A runnable as one whose runs are private."""
    if isinstance(made, PrivateBinding):
        return made
    if isinstance(made, RunnableBinding):
        return PrivateBinding(
            **{name: getattr(made, name) for name in RunnableBinding.model_fields}
        )
    return PrivateBinding(bound=made)


MODEL_RUNS = RUNS | {
    "stream_events": Run.begun,
    "generate": Run.now,
    "agenerate": Run.later,
    "generate_prompt": Run.now,
    "agenerate_prompt": Run.later,
}


def set_uncached(model: Model) -> Model:
    """Keep a private model out of caches, whatever is set for the process."""
    if model.privacy is not None:
        if model.cache:
            raise ValueError(
                "privacy='phi' goes with cache=False only: a cache keeps prompts and answers"
            )
        model.__dict__["cache"] = False
    return model
