"""Private runs: whoever records a run gets masks in place of its texts.

With `privacy="phi"` the core hands over each method by which LangChain begins a run of a model or
tool (`_settings/runs.py`). Here the run's callbacks are masked, and an error leaves without the
texts that it and its frames hold. The runnables that LangChain's own methods (`bind`, `with_retry`)
wrap around a model or tool become private too. `PrivateCallbacks` masks a whole chain or graph.

Which handlers record a run is known only when it is configured, since the environment and
context managers add some. So `PrivateCallbacks` has lists that wrap every handler put into them,
at whatever moment; a child run's manager takes over what is in them.

A caller who asks for a stream (`astream_events`, the stream modes of LangGraph) gets it through a
callback too. That is the caller's answer, and stays unchanged.
"""

from __future__ import annotations

import inspect
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import aclosing
from copy import deepcopy
from functools import lru_cache
from typing import Any, Self, SupportsIndex
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.language_models import BaseLanguageModel
from langchain_core.runnables import (
    Runnable,
    RunnableBinding,
    RunnableConfig,
    RunnableSerializable,
)
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import StructuredTool, Tool

from .._settings import Privacy, keeps_runs
from ..errors import SvcError, SvcRequestError
from .masks import (
    PIECE,
    call_settings,
    masked,
    masked_error,
    remember_offered,
    word_set,
)

# -- callbacks that mask ---------------------------------------------------------------------------

# Where a run stands among others; the application wrote it for this purpose.
_PLACE = word_set(
    "run_id parent_run_id tags metadata name run_type batch_size color end"
)
_CLASS_FIELDS = ("lc", "type", "id", "name")  # of a serialized object
# tenacity's state holds the arguments of the call; the others hold a graph's or stream's values.
_WITHHELD = ("on_retry", "on_interrupt", "on_resume", "on_stream_event")


def _masked_event(
    event: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[list[object], dict[str, object]]:
    """The arguments of an event as a handler may see them."""
    first = args[0] if args else None
    masked_args = [masked(arg) for arg in args]
    if event.endswith("_start"):
        remember_offered(event, first, kwargs)
        if isinstance(first, dict):  # which class runs, without its arguments
            masked_args[0] = {
                name: first[name] for name in _CLASS_FIELDS if name in first
            }
    elif event == "on_llm_new_token" and first:
        masked_args[0] = PIECE
    elif event == "on_custom_event":
        masked_args[0] = first  # the event's name
    masked_kwargs = {name: _masked_keyword(name, kwargs[name]) for name in kwargs}
    return masked_args, masked_kwargs


def _masked_keyword(name: str, value: object) -> object:
    if name in _PLACE:
        return value
    if name == "invocation_params":
        return call_settings(value)
    result = masked(value)
    if name == "chunk":
        _hide_length(result, "text")
        _hide_length(getattr(result, "message", None), "content")
    return result


def _hide_length(chunk: object, field: str) -> None:
    """A mask tells the length of its text, and that of a chunk could give the text away."""
    if getattr(chunk, field, ""):
        setattr(chunk, field, PIECE)


class _Masking:
    """A handler that gets masks in place of texts. To LangChain it looks like the one inside."""

    __slots__ = ("_handler",)
    _handler: BaseCallbackHandler

    def __init__(self, handler: BaseCallbackHandler) -> None:
        object.__setattr__(self, "_handler", handler)

    @property  # type: ignore[misc]  # isinstance asks for it
    def __class__(self) -> type[Any]:
        return type(self._handler)

    def __getattr__(self, name: str) -> object:
        attribute = getattr(self._handler, name)
        if name == "copy_with_metadata_defaults":
            return lambda *args, **kwargs: _Masking(attribute(*args, **kwargs))
        if name.startswith("on_") and callable(attribute):
            return _masked_method(name, attribute)
        return attribute

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._handler, name, value)

    def __eq__(self, other: object) -> bool:
        handler = other._handler if type(other) is _Masking else other
        return bool(self._handler == handler)

    def __hash__(self) -> int:
        return hash(self._handler)

    def __reduce__(self) -> tuple[type[_Masking], tuple[Any]]:
        return _Masking, (self._handler,)

    def __deepcopy__(self, memo: dict[int, Any]) -> _Masking:
        return _Masking(deepcopy(self._handler, memo))

    def __repr__(self) -> str:
        return f"<masked {type(self._handler).__name__}>"


def _masked_method(event: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """A handler's method that gets masked arguments; a method of `_WITHHELD` is never called."""

    def call(*args: Any, **kwargs: Any) -> object:
        if event in _WITHHELD:
            return None
        masked_args, masked_kwargs = _masked_event(event, args, kwargs)
        return method(*masked_args, **masked_kwargs)

    async def acall(*args: Any, **kwargs: Any) -> object:
        if event in _WITHHELD:
            return None
        masked_args, masked_kwargs = _masked_event(event, args, kwargs)
        return await method(*masked_args, **masked_kwargs)

    return acall if inspect.iscoroutinefunction(method) else call


def _masking(handler: BaseCallbackHandler | _Masking) -> BaseCallbackHandler | _Masking:
    """The handler, masked unless it is masked already or hands a stream to the caller."""
    if type(handler) is _Masking or hasattr(handler, "tap_output_iter"):
        return handler
    return _Masking(handler)


class _Handlers(list[Any]):
    """A list that masks each handler put into it; a copy of it does the same."""

    def __init__(self, handlers: Iterable[BaseCallbackHandler] = ()) -> None:
        super().__init__(map(_masking, handlers))

    def __bool__(self) -> bool:
        return True  # LangChain replaces an empty list by another

    def copy(self) -> _Handlers:
        return _Handlers(self)

    def append(self, handler: BaseCallbackHandler) -> None:
        super().append(_masking(handler))

    def extend(self, handlers: Iterable[BaseCallbackHandler]) -> None:
        super().extend(map(_masking, handlers))

    def insert(self, index: SupportsIndex, handler: BaseCallbackHandler) -> None:
        super().insert(index, _masking(handler))


class PrivateCallbacks(BaseCallbackManager):
    """Callbacks that get masks in place of texts, for a chain or a graph as a whole.

        from langchain_svc import PrivateCallbacks

        agent = create_agent(model, tools).with_config(callbacks=PrivateCallbacks())

    or for one run: `agent.invoke(question, {"callbacks": PrivateCallbacks([tracer])})`. Every
    handler of that run, also one that the environment adds, such as LangSmith's, gets the events
    of that run and of the runs inside with `[412 characters, hash 1f3a9c2b7d04]` in place of each
    text. A handler that a step inside adds for itself is not reached: `privacy="phi"` of a model
    or tool masks for that one too. The caller gets the real answer, also in a stream of events.
    Tags, metadata and names of runs are the application's own words, and stay.
    """

    def __init__(
        self,
        handlers: Iterable[BaseCallbackHandler] = (),
        inheritable_handlers: Iterable[BaseCallbackHandler] | None = None,
        parent_run_id: UUID | None = None,
        **options: Any,
    ) -> None:
        """Wrap these handlers and all that come later; `options` are a callback manager's own."""
        inherited = handlers if inheritable_handlers is None else inheritable_handlers
        super().__init__(
            _Handlers(handlers), _Handlers(inherited), parent_run_id, **options
        )

    @classmethod
    def around(cls, callbacks: Any) -> PrivateCallbacks | list[Any]:
        """The callbacks of a run, masked; a list of them where each prompt has its own."""
        if isinstance(callbacks, BaseCallbackManager):
            return cls().merge(callbacks)
        callbacks = callbacks or ()
        if any(isinstance(item, (list, BaseCallbackManager)) for item in callbacks):
            return [*map(cls.around, callbacks)]
        return cls(callbacks)

    def set_handlers(
        self,
        handlers: list[BaseCallbackHandler],
        inherit: bool = True,  # noqa: FBT001, FBT002  # LangChain's
    ) -> None:
        """Put these handlers in place of all others."""
        self.handlers = _Handlers()
        self.inheritable_handlers = _Handlers()
        for handler in handlers:
            self.add_handler(handler, inherit=inherit)


def _private_config(
    config: RunnableConfig | list[RunnableConfig] | None,
) -> dict[str, Any] | list[Any]:
    """A run's config with its callbacks masked, or one for each input."""
    if isinstance(config, list):
        return [*map(_private_config, config)]
    complete = ensure_config(config)
    callbacks = PrivateCallbacks.around(complete.get("callbacks"))
    return {**complete, "callbacks": callbacks}


# -- runs of a model or tool -----------------------------------------------------------------------

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
            failed = _without_texts(error)
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
            arguments["config"] = _private_config(arguments.get("config"))
        return self._method(*bound.args, **bound.kwargs)


_signature = lru_cache(inspect.signature)


def _private_result(result: object) -> object:
    """The result of a private method: a runnable, a coroutine or a stream becomes private too."""
    if isinstance(result, Runnable):
        return _make_private(result)
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
        failed = _without_texts(error)
    raise failed


def _pieces(stream: Generator[Any, Any, Any]) -> Iterator[Any]:
    try:
        yield from map(_cleaned, stream)
    except BaseException as error:  # noqa: BLE001  # raised again, without its frames
        failed = _without_texts(error)
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
        failed = _without_texts(error)
    else:
        return
    raise failed


def _cleaned(result: object) -> object:
    """A result in which the errors that a batch returns have no texts, as those that it raises."""
    if isinstance(result, BaseException):
        return _without_texts(result)
    if type(result) is not list and type(result) is not tuple:
        return result
    if any(isinstance(item, BaseException) for item in result):
        return type(result)(map(_cleaned, result))
    return result


def _without_texts(error: BaseException) -> BaseException:
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


def _make_private(runnable: Runnable[Any, Any]) -> Runnable[Any, Any]:
    """A runnable as one whose runs are private."""
    for kind, private in _PRIVATE_KINDS:
        if isinstance(runnable, private):
            return runnable
        if isinstance(runnable, kind):
            fields = {name: getattr(runnable, name) for name in kind.model_fields}
            return private(**fields)
    return PrivateBinding(bound=runnable)
