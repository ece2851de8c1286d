"""`PrivateCallbacks`: whoever records a run gets masks in place of its texts.

Which handlers hear of a run is known only when it is configured, since the environment and
context managers add some. So this callback manager has lists that wrap whatever is put into them,
at whatever moment; a child run's manager takes over what is in them.

What a caller asked to be streamed to himself (`astream_events`, the stream modes of LangGraph)
travels as a callback too, but is the caller's answer, and is left unchanged.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, SupportsIndex
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.runnables.config import ensure_config

from .masks import PIECE, call_settings, masked, offered, words

# What says where a run stands among others; the application wrote it for this purpose.
_PLACE = words("run_id parent_run_id tags metadata name run_type batch_size color end")
_KEPT_OF_SERIALIZED = ("lc", "type", "id", "name")
# tenacity's state holds the arguments of the call; the others hold a graph's or stream's values.
_WITHHELD = ("on_retry", "on_interrupt", "on_resume", "on_stream_event")


def _passed(
    event: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any]:
    """The arguments of an event as a handler may see them."""
    told = [masked(arg) for arg in args]
    if event.endswith("_start"):
        first = args[0] if args else None
        offered(event, first, kwargs)
        if isinstance(first, dict):  # which class runs, without what it was made of
            told[0] = {
                name: first[name] for name in _KEPT_OF_SERIALIZED if name in first
            }
    elif event == "on_llm_new_token" and args:
        told[0] = PIECE if args[0] else args[0]
    elif event == "on_custom_event":
        told[0] = args[0]
    return told, {
        name: value if name in _PLACE else _masked_word(name, value)
        for name, value in kwargs.items()
    }


def _masked_word(name: str, value: Any) -> Any:
    if name == "invocation_params":
        return call_settings(value)
    told = masked(value)
    if name == "chunk":  # its length would be told by its mask
        for one, text in ((told, "text"), (getattr(told, "message", None), "content")):
            if getattr(one, text, ""):
                setattr(one, text, PIECE)
    return told


class _Masking:
    """A handler that is told masks in place of texts. To LangChain it looks like the one inside."""

    __slots__ = ("_handler",)

    def __init__(self, handler: BaseCallbackHandler) -> None:
        object.__setattr__(self, "_handler", handler)

    @property  # type: ignore[misc]  # isinstance asks for it
    def __class__(self) -> type[Any]:
        return type(self._handler)

    def __getattr__(self, name: str) -> Any:
        held = getattr(self._handler, name)
        if name.startswith("on_") and callable(held):
            return _hearing(name, held)
        if name == "copy_with_metadata_defaults":
            return lambda *args, **kwargs: _Masking(held(*args, **kwargs))
        return held

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._handler, name, value)

    def __eq__(self, other: object) -> bool:
        return bool(
            self._handler == (other._handler if type(other) is _Masking else other)
        )

    def __hash__(self) -> int:
        return hash(self._handler)

    def __reduce__(self) -> tuple[type[_Masking], tuple[Any]]:
        return _Masking, (self._handler,)

    def __deepcopy__(self, memo: dict[int, Any]) -> _Masking:
        return _Masking(deepcopy(self._handler, memo))

    def __repr__(self) -> str:
        return f"<masked {type(self._handler).__name__}>"


def _hearing(event: str, hear: Callable[..., Any]) -> Callable[..., Any]:
    """A handler's method, told what may be told."""

    def tell(*args: Any, **kwargs: Any) -> Any:
        if event in _WITHHELD:
            return None
        args_, kwargs_ = _passed(event, args, kwargs)
        return hear(*args_, **kwargs_)

    async def atell(*args: Any, **kwargs: Any) -> Any:
        told = tell(*args, **kwargs)
        return None if told is None else await told

    return atell if inspect.iscoroutinefunction(hear) else tell


def _masking(handler: Any) -> Any:
    """The handler under a mask, unless it is under one or hands a stream to the caller."""
    if type(handler) is _Masking or hasattr(handler, "tap_output_iter"):
        return handler
    return _Masking(handler)


class _Handlers(list[Any]):
    """A list of handlers, each of them masked, in which every copy is one too."""

    def __init__(self, handlers: Iterable[Any] = ()) -> None:
        super().__init__(map(_masking, handlers))

    def __bool__(self) -> bool:
        return True  # LangChain replaces an empty list by another

    def copy(self) -> _Handlers:
        return _Handlers(self)

    def append(self, handler: Any) -> None:
        super().append(_masking(handler))

    def extend(self, handlers: Iterable[Any]) -> None:
        super().extend(map(_masking, handlers))

    def insert(self, index: SupportsIndex, handler: Any) -> None:
        super().insert(index, _masking(handler))


class PrivateCallbacks(BaseCallbackManager):
    """Callbacks that get masks in place of texts, for a chain or a graph as a whole.

        from langchain_svc import PrivateCallbacks

        agent = create_agent(model, tools).with_config(callbacks=PrivateCallbacks())

    or for one run: `agent.invoke(question, {"callbacks": PrivateCallbacks([tracer])})`. Every
    handler of that run, also one that the environment adds, such as LangSmith's, is told what
    happens there and in the runs inside with `[412 characters, hash 1f3a9c2b7d04]` in place of
    each text. A handler that a step inside adds for itself is not reached: `privacy="phi"` of a
    model or tool masks for that one too. The caller gets the real answer, and so does who reads a
    stream of events. Tags, metadata and names of runs are the application's own words, and stay.
    """

    def __init__(
        self,
        handlers: Iterable[BaseCallbackHandler] = (),
        inheritable_handlers: Iterable[BaseCallbackHandler] | None = None,
        parent_run_id: UUID | None = None,
        **words: Any,
    ) -> None:
        """Wrap these handlers and all that come later; `words` are a callback manager's own."""
        inherited = handlers if inheritable_handlers is None else inheritable_handlers
        super().__init__(
            _Handlers(handlers), _Handlers(inherited), parent_run_id, **words
        )

    @classmethod
    def around(cls, callbacks: Any) -> Any:
        """The callbacks of a run, masked; of several, one for each prompt."""
        if isinstance(callbacks, BaseCallbackManager):
            return cls().merge(callbacks)
        several = [
            one
            for one in callbacks or ()
            if isinstance(one, (list, BaseCallbackManager))
        ]
        return [*map(cls.around, callbacks)] if several else cls(callbacks or ())

    def set_handlers(
        self,
        handlers: list[BaseCallbackHandler],
        inherit: bool = True,  # noqa: FBT001, FBT002  # LangChain's
    ) -> None:
        """Put these handlers in place of all others."""
        self.handlers, self.inheritable_handlers = _Handlers(), _Handlers()
        for handler in handlers:
            self.add_handler(handler, inherit=inherit)


def private_config(config: Any) -> Any:
    """A run's config with its callbacks masked, or one for each input."""
    if isinstance(config, list):
        return [*map(private_config, config)]
    made = ensure_config(config)
    return {**made, "callbacks": PrivateCallbacks.around(made.get("callbacks"))}
