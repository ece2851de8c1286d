"""Makes `init_chat_model("svc:svc-pro")` work."""

from __future__ import annotations

from typing import Any

from ._chat import PROVIDER


def _make(cls: type[Any], **kwargs: Any) -> Any:
    return cls(**kwargs)


def register() -> None:
    """Teach `langchain`'s `init_chat_model` and `create_agent` the provider "svc".

    LangChain has no public way for other packages to add a provider, so this enters `ChatSvc` in
    its table of providers. Constructing `ChatSvc` yourself needs none of this.

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
    table[PROVIDER] = ("langchain_svc", "ChatSvc", _make)
