"""`SvcCitations`: an agent whose answers cite the documents that its tools have found."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeAlias

from .._base.middleware import Middleware, require_langchain
from .._base.safe_errors import type_text
from ..chat.chat_models import ChatSvc
from ..chat.citing_model import Doubtful, Unsupported
from ..errors import SvcRequestError
from .citing import citing_of

# LangChain's, which may not be installed when type hints are read.
Request: TypeAlias = Any
Response: TypeAlias = Any


class SvcCitations(Middleware):
    """Checks the citations of an agent's answers, as `ChatSvc.with_citations` does.

        agent = create_agent(model, [retriever_tool], middleware=[SvcCitations()])

    The documents are those of the conversation: the results of tools (a list of `Document`s as
    artifact, or else their text), and `search_result` or `document` blocks with `citations`
    enabled. A call of the model without any goes on as it is. What the agent streams was checked.

    Args:
        max_repairs: How often the model may be asked about quotes that stand nowhere.
        unsupported: "keep" marks a statement whose quotes stand nowhere, "drop" leaves it out,
            "error" raises `SvcOutputError`.
        doubtful: "ask" asks the model about statements that their quotes may not support, too.

    Raises:
        ImportError: `langchain` is not installed (`pip install "langchain-svc[agents]"`).
        SvcRequestError: An argument is not one of these.
    """

    def __init__(
        self,
        *,
        max_repairs: int = 1,
        unsupported: Unsupported = "keep",
        doubtful: Doubtful = "mark",
    ) -> None:
        require_langchain(type(self).__name__)
        bound = citing_of(None, max_repairs, unsupported, doubtful)
        super().__init__()
        self._bound = replace(bound, required=False)
        self.max_repairs = max_repairs
        self.unsupported: Unsupported = unsupported

    def wrap_model_call(
        self,
        request: Request,
        handler: Callable[[Request], Response],
    ) -> Response:
        """Call the model as one that cites."""
        return handler(self._citing(request))

    async def awrap_model_call(
        self,
        request: Request,
        handler: Callable[[Request], Awaitable[Response]],
    ) -> Response:
        """The async version of `wrap_model_call`."""
        return await handler(self._citing(request))

    def _citing(self, request: Request) -> Request:
        """The request with a model that cites what the conversation holds.

        Raises:
            SvcRequestError: The agent's model is no `ChatSvc`.
        """
        model = request.model
        if not isinstance(model, ChatSvc):
            raise SvcRequestError(
                f"SvcCitations needs a ChatSvc as the agent's model, not {type_text(model)}"
            )
        return request.override(model=model.model_copy(update={"citing": self._bound}))
