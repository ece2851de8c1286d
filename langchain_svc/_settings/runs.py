"""What a run may be: out of records, and with pseudonyms of its own.

These are the methods in which LangChain begins a run. The core knows of private runs only what
stands here: an object whose `privacy` is set hands each of its runs to `PrivateRuns`, which is the
wing `langchain_svc.privacy`. Where `privacy` is None the methods are LangChain's own, and the wing
is not imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Literal, Protocol, TypeGuard, TypeVar

from langchain_core.runnables.config import var_child_runnable_config

from .._base.lazy import import_late
from .._base.safe_errors import safe_repr
from .._client import refuse_trio
from .._text import Pseudonymizer
from ..errors import SvcRequestError

CONFIG_KEY = "svc_pseudonyms"
"""The key of `config["configurable"]` that holds the pseudonyms of one run."""


def check_pseudonyms(value: object) -> Pseudonymizer | None:
    """A value of the setting or of a run.

    Raises:
        ValueError: It cannot hide and restore.
    """
    if value is None or _is_pseudonymizer(value):
        return value
    raise ValueError(
        "must be Pseudonyms, such as Pseudonyms.from_fhir(record) or Pseudonyms(names=[...]), "
        f"not {safe_repr(value)}"
    )


def _is_pseudonymizer(value: object) -> TypeGuard[Pseudonymizer]:
    return all(
        callable(getattr(value, name, None)) for name in ("hide", "restore", "restorer")
    )


def pseudonyms_of_run(
    args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Pseudonymizer | None:
    """The pseudonyms that a run's config brings; `args` are those behind `self`.

    Raises:
        SvcRequestError: They cannot hide and restore.
    """
    config = kwargs.get("config")
    if config is None and len(args) > 1:
        config = args[1]
    if config is None or not isinstance(config, Mapping):
        config = var_child_runnable_config.get()  # of the chain or agent around it
    if not config:
        return None
    value = (config.get("configurable") or {}).get(CONFIG_KEY)
    try:
        return check_pseudonyms(value)
    except ValueError as error:
        problem = f"config['configurable']['{CONFIG_KEY}'] {error}"
    raise SvcRequestError(problem)


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


def set_uncached(model: Model) -> Model:
    """Keep a private model out of caches, whatever is set for the process."""
    if model.privacy is not None:
        _private_runs().refuse_cache(model)
        model.__dict__["cache"] = False
    return model
