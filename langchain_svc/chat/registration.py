"""Registers this package in LangChain's tables that have no public API."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

from langchain_core.load import Serializable

PROVIDER = "svc"


def register() -> None:
    """Teach `langchain`'s `init_chat_model` and `create_agent` the provider "svc".

    LangChain has no public way for other packages to add a provider, so this enters `ChatSvc` in
    its table of providers. Constructing `ChatSvc` yourself needs none of this. deepagents calls it
    by itself: `create_deep_agent("svc:svc-pro")`.

    Raises:
        ImportError: `langchain` is not installed, or keeps no such table any more.
    """
    try:
        from langchain.chat_models import base  # noqa: PLC0415  # an optional package

        table: dict[str, Any] = base._BUILTIN_PROVIDERS  # noqa: SLF001  # there is no public way
    except (ImportError, AttributeError) as error:
        raise ImportError(
            "register() found no table of providers: it needs the package langchain, 1.4 or "
            "newer 1.x (pip install langchain). ChatSvc(...) works without it"
        ) from error
    table[PROVIDER] = (
        "langchain_svc",
        "ChatSvc",
        lambda cls, **settings: cls(**settings),
    )


def make_loadable(cls: type[Serializable]) -> None:
    """Let `langchain_core.load.load(..., allowed_objects="all")` make a class of ours again.

    "All" means the classes of a table in langchain-core, which has no public way in. Where the
    table is gone, loading still works with `allowed_objects=[cls]`.
    """
    with suppress(ImportError, AttributeError, KeyError, TypeError):
        # The package has a function of the module's name, which hides it from plain imports.
        loading: Any = import_module("langchain_core.load.load")
        ours = tuple(cls.lc_id())
        loading.ALL_SERIALIZABLE_MAPPINGS[ours] = ours
        loading._default_class_paths_cache.pop("all", None)  # noqa: SLF001  # see above
