"""`SvcCitations`: an agent whose answers cite the documents that its tools have found."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage

from .._base.middleware import Middleware, require_langchain
from .._service import reveal_secret
from .cited_answers import (
    CitedAnswer,
    adrive,
    asking,
    check_arguments,
    cited_conversation,
    drive,
)
from .messages import conversation_nonce
from .options import Unsupported

# LangChain's, which may not be installed when type hints are read.
Request: TypeAlias = Any
Response: TypeAlias = Any


class SvcCitations(Middleware):
    """Checks the citations of an agent's answers, as `ChatSvc.with_citations` does.

        agent = create_agent(model, [retriever_tool], middleware=[SvcCitations()])

    The documents are those of the conversation: tool messages whose artifact is a list of
    `Document`s (`response_format="content_and_artifact"`, as retriever tools have it), and
    `search_result` or `document` blocks with `citations` enabled. A call of the model without any
    goes on as it is. An agent's answer comes whole.

    Args:
        max_repairs: How often the model may be asked about quotes that stand nowhere.
        unsupported: "keep" marks a statement whose quotes stand nowhere, "drop" leaves it out,
            "error" raises `SvcOutputError`.

    Raises:
        ImportError: `langchain` is not installed (`pip install "langchain-svc[agents]"`).
        SvcRequestError: An argument is not one of these.
    """

    def __init__(
        self, *, max_repairs: int = 1, unsupported: Unsupported = "keep"
    ) -> None:
        require_langchain(type(self).__name__)
        check_arguments(max_repairs, unsupported)
        super().__init__()
        self.max_repairs = max_repairs
        self.unsupported: Unsupported = unsupported

    def wrap_model_call(
        self,
        request: Request,
        handler: Callable[[Request], Response],
    ) -> Response:
        """Call the model with the passages, and check what it cites."""
        answer = self._answer(request)
        if answer is None:
            return handler(request)
        responses: list[Response] = []

        def ask(messages: list[BaseMessage]) -> AIMessage:
            responses.append(
                handler(_request(request, messages, is_first=not responses))
            )
            return _answer_of(responses[-1])

        cited = drive(asking(answer), ask)
        return _with_answer(responses[0], cited)

    async def awrap_model_call(
        self,
        request: Request,
        handler: Callable[[Request], Awaitable[Response]],
    ) -> Response:
        """The async version of `wrap_model_call`."""
        answer = self._answer(request)
        if answer is None:
            return await handler(request)
        responses: list[Response] = []

        async def ask(messages: list[BaseMessage]) -> AIMessage:
            responses.append(
                await handler(_request(request, messages, is_first=not responses))
            )
            return _answer_of(responses[-1])

        cited = await adrive(asking(answer), ask)
        return _with_answer(responses[0], cited)

    def _answer(self, request: Request) -> CitedAnswer | None:
        """The answer to be read; None where the conversation has no documents."""
        key = reveal_secret(getattr(request.model, "api_key", None)) or ""
        nonce = conversation_nonce(request.messages, key)
        conversation = cited_conversation(request.messages, None, nonce)
        if not conversation.passages.all:
            return None
        return CitedAnswer(conversation, self.unsupported, self.max_repairs)


def _request(request: Request, messages: list[Any], *, is_first: bool) -> Request:
    """The request with other messages; a question about an answer offers no tools."""
    if is_first:
        return request.override(messages=messages)
    return request.override(messages=messages, tools=[])


def _answer_of(response: Response) -> AIMessage:
    return next(
        message
        for message in reversed(response.result)
        if isinstance(message, AIMessage)
    )


def _with_answer(response: Response, answer: AIMessage) -> Response:
    """The response with its answer replaced."""
    replaced = _answer_of(response)
    result: list[BaseMessage] = [
        answer if message is replaced else message for message in response.result
    ]
    return type(response)(
        result=result, structured_response=response.structured_response
    )
