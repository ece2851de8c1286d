"""Registers this package in LangChain's tables that have no public API."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any

PROVIDER = "svc"
CHAT_MODEL = ("langchain_svc", "ChatSvc")
"""Where the chat model is for LangChain, which may not move: saved models name this place."""


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
    table[PROVIDER] = (*CHAT_MODEL, lambda cls, **settings: cls(**settings))


def make_loadable() -> None:
    """Let `langchain_core.load.load(..., allowed_objects="all")` make a saved `ChatSvc` again.

    "All" means the classes of a table in langchain-core, which has no public way in. Where the
    table is gone, loading still works with `allowed_objects=[ChatSvc]`.
    """
    with suppress(ImportError, AttributeError, KeyError, TypeError):
        # The package has a function of the module's name, which hides it from plain imports.
        loading: Any = import_module("langchain_core.load.load")
        loading.ALL_SERIALIZABLE_MAPPINGS[CHAT_MODEL] = CHAT_MODEL
        loading._default_class_paths_cache.pop("all", None)  # noqa: SLF001  # see above
