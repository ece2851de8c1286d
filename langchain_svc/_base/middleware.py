"""LangChain's class of agent middleware, which may not be installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain.agents.middleware import AgentMiddleware

    Middleware = AgentMiddleware[Any, Any, Any]
else:
    try:
        from langchain.agents.middleware import AgentMiddleware as Middleware
    except ImportError:
        # The name can be imported; `require_langchain` says what is missing.
        Middleware = object


def require_langchain(name: str) -> None:
    """Refuse to make a middleware without LangChain.

    Raises:
        ImportError: `langchain` is not installed.
    """
    if Middleware is object:
        raise ImportError(
            f'{name} needs the extra: pip install "langchain-svc[agents]"'
        )
