"""The chat model, and one turn of a chat: what is asked, and what is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._base.lazy import lazy

if TYPE_CHECKING:
    from .agents import SvcCitations as SvcCitations
    from .chat_models import ChatSvc as ChatSvc
    from .profiles import ListedModel as ListedModel
    from .registration import register as register
else:
    __getattr__ = lazy(
        __name__,
        {
            "agents": "SvcCitations",
            "chat_models": "ChatSvc",
            "profiles": "ListedModel",
            "registration": "register",
        },
    )
