"""The methods in which LangChain begins a run, and what may keep a run out of records.

The core knows of private runs only what stands here: an object whose `privacy` is set hands each
of its runs to `PrivateRuns`, which is the wing `langchain_svc.privacy`. Where `privacy` is None the
methods are LangChain's own, and the wing is not imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, Protocol, TypeVar

from .._base.lazy import import_late
from ..errors import SvcRequestError
from .pseudonyms import pseudonyms_of_run

Privacy = Literal["phi"] | None
Kind = TypeVar("Kind", bound="type[Any]")
Method = TypeVar("Method", bound=Callable[..., Any])
Model = TypeVar("Model", bound=Any)


class PrivateRuns(Protocol):
    """Keeps runs out of records."""

    def private_run(
        self, method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Callable[[], Any]:
        """A function that calls a method of a private object, which stands first in `args`.

        It shows nothing of the arguments, since it stands in the frames of an error.
        """

    def refuse_cache(self, model: object) -> None:
        """Raises ValueError where a private model has a cache."""


def _private_runs() -> PrivateRuns:
    return import_late("langchain_svc.privacy")


# The methods of models and tools that take texts, and those that make another runnable.
RUNS = (
    "invoke",
    "ainvoke",
    "stream",
    "astream",
    "batch",
    "abatch",
    "batch_as_completed",
    "abatch_as_completed",
    "transform",
    "atransform",
    "astream_log",
    "astream_events",
    "stream_events",
    "generate",
    "agenerate",
    "generate_prompt",
    "agenerate_prompt",
    "get_num_tokens_from_messages",
    "run",
    "arun",
)
MAKERS = (
    "bind",
    "with_config",
    "with_retry",
    "with_fallbacks",
    "with_listeners",
    "with_alisteners",
    "with_types",
    "map",
    "as_tool",
    "assign",
    "pick",
    "with_structured_output",
)
_ASYNCHRONOUS = frozenset(name for name in RUNS if name.startswith("a"))


def keeps_runs(kind: Kind) -> Kind:
    """Gives a class a version of each such method that looks whether its runs are private."""
    for name in (*RUNS, *MAKERS):
        method = getattr(kind, name, None)
        if method is not None:
            setattr(kind, name, _maybe_private(kind, name, method))
    return kind


def _maybe_private(kind: type[Any], name: str, method: Callable[..., Any]) -> Any:
    is_async = name in _ASYNCHRONOUS

    @wraps(method)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_async and "trio" in sys.modules:
            refuse_trio()
        pseudonyms = pseudonyms_of_run(args, kwargs)
        if pseudonyms is not None and pseudonyms is not self.pseudonyms:
            self = self.model_copy(update={"pseudonyms": pseudonyms})
        if self.privacy is None:
            return method(self, *args, **kwargs)
        private_run = _private_runs().private_run(method, (self, *args), kwargs)
        del args, kwargs  # whoever shows an error's frames shows their variables
        return private_run()

    # A function is pickled by its place.
    run.__module__ = kind.__module__
    run.__qualname__ = f"{kind.__qualname__}.{name}"
    return run


def replaces(method: Callable[..., Any]) -> Callable[[Method], Method]:
    """Gives a method, which passes everything on, the signature of the one that it replaces."""
    decorate: Any = wraps(method)
    return decorate  # type: ignore[no-any-return]  # it returns what it gets


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


def set_uncached(model: Model) -> Model:
    """Keep a private model out of caches, whatever is set for the process."""
    if model.privacy is not None:
        _private_runs().refuse_cache(model)
        model.__dict__["cache"] = False
    return model
