"""A chat model that cites: what it is bound to, and how its answers are fetched and checked.

The model itself yields what was checked, so that every stream of it shows that: of an agent, a
graph, a callback or a front end.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import Any, TypeAlias, get_args

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from .._base.safe_errors import safe_repr, type_text
from ..errors import SvcRequestError
from .cited_answers import CitedAnswer, CitedMessages, whole_message
from .options import Citing, DocumentLike, Doubtful, Unsupported
from .sources import DOCUMENTS, cited_conversation

Ask: TypeAlias = Callable[[list[BaseMessage]], ChatResult]
AsyncAsk: TypeAlias = Callable[[list[BaseMessage]], Awaitable[ChatResult]]
Chunks: TypeAlias = Callable[[list[BaseMessage]], Iterator[ChatGenerationChunk]]
AsyncChunks: TypeAlias = Callable[
    [list[BaseMessage]], AsyncIterator[ChatGenerationChunk]
]


def answer_of(
    citing: Citing, messages: Sequence[BaseMessage], nonce: str, *, marks: bool
) -> CitedAnswer | None:
    """The answer to be read; None where nothing is there to cite.

    Raises:
        SvcRequestError: Nothing is there, and something has to be.
    """
    conversation = cited_conversation(messages, citing.documents, nonce, marks=marks)
    if conversation is not None:
        return CitedAnswer(conversation, citing)
    if not citing.required:
        return None
    raise SvcRequestError(
        "There is nothing to cite: give documents= to with_citations, pass "
        '{"messages": ..., "documents": [...]}, or have search_result blocks or tool '
        "messages with Documents as their artifact in the conversation"
    )


def citing_of(
    documents: Sequence[DocumentLike] | None,
    max_repairs: object,
    unsupported: object,
    doubtful: object,
) -> Citing:
    """What `with_citations` binds.

    Raises:
        SvcRequestError: An argument is wrong.
    """
    if unsupported not in get_args(Unsupported):
        raise SvcRequestError(
            f"unsupported must be 'keep', 'drop' or 'error', not {safe_repr(unsupported)}"
        )
    if doubtful not in get_args(Doubtful):
        raise SvcRequestError(
            f"doubtful must be 'mark' or 'ask', not {safe_repr(doubtful)}"
        )
    if (
        isinstance(max_repairs, bool)
        or not isinstance(max_repairs, int)
        or max_repairs < 0
    ):
        raise SvcRequestError(
            f"max_repairs must be a whole number from 0, not {safe_repr(max_repairs)}"
        )
    bound = None if documents is None else _listed(documents)
    return Citing(bound, max_repairs, unsupported, doubtful)  # type: ignore[arg-type]  # checked above


def _listed(documents: Sequence[DocumentLike]) -> tuple[DocumentLike, ...]:
    if isinstance(documents, (str, Document, Mapping)):
        raise SvcRequestError(
            f"documents must be a list of Documents or texts, not {type_text(documents)}: "
            "write [document]"
        )
    return tuple(documents)


_OF_THE_ANSWER = frozenset(
    {"tools", "tool_choice", "parallel_tool_calls", "response_format"}
)


def of_questions(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a question about an answer, which offers no tools."""
    return {
        name: value for name, value in settings.items() if name not in _OF_THE_ANSWER
    }


def input_with_documents(value: object) -> tuple[object, list[BaseMessage]]:
    """The messages of an input, and the message that brings its documents, if it has any.

    Raises:
        SvcRequestError: It has other keys.
    """
    if not isinstance(value, Mapping) or "messages" not in value:
        return value, []
    unknown = value.keys() - {"messages", "documents"}
    if unknown:
        raise SvcRequestError(
            f"An input of with_citations has messages and documents, not {sorted(unknown)}"
        )
    documents = value.get("documents")
    if documents is None:
        return value["messages"], []
    listed = list(_listed(documents))
    brought = HumanMessage("", additional_kwargs={DOCUMENTS: listed})
    return value["messages"], [brought]


def cited_result(answer: CitedAnswer, ask: Ask, ask_about: Ask) -> ChatResult:
    """A whole answer, and what the model says about its statements in doubt."""
    result = ask(answer.conversation.messages)
    cited = CitedMessages(answer)
    cited.add(_message_of(result))
    questions = cited.questions()
    while questions is not None:
        questions = cited.repair(_message_of(ask_about(questions)))
    return _with_message(result, whole_message(cited.ending()))


async def acited_result(
    answer: CitedAnswer, ask: AsyncAsk, ask_about: AsyncAsk
) -> ChatResult:
    """The async version of `cited_result`."""
    result = await ask(answer.conversation.messages)
    cited = CitedMessages(answer)
    cited.add(_message_of(result))
    questions = cited.questions()
    while questions is not None:
        questions = cited.repair(_message_of(await ask_about(questions)))
    return _with_message(result, whole_message(cited.ending()))


def cited_chunks(
    answer: CitedAnswer, chunks: Chunks, ask_about: Ask
) -> Iterator[ChatGenerationChunk]:
    """The answer as it comes, up to the first statement in doubt; then the rest."""
    cited = CitedMessages(answer)
    info = None
    for chunk in chunks(answer.conversation.messages):
        info = chunk.generation_info or info
        yield from _shown(cited, chunk)
    questions = cited.questions()
    while questions is not None:
        questions = cited.repair(_message_of(ask_about(questions)))
    yield from _ending(cited, info)


async def acited_chunks(
    answer: CitedAnswer, chunks: AsyncChunks, ask_about: AsyncAsk
) -> AsyncIterator[ChatGenerationChunk]:
    """The async version of `cited_chunks`."""
    cited = CitedMessages(answer)
    info = None
    async for chunk in chunks(answer.conversation.messages):
        info = chunk.generation_info or info
        for shown in _shown(cited, chunk):
            yield shown
    questions = cited.questions()
    while questions is not None:
        questions = cited.repair(_message_of(await ask_about(questions)))
    for chunk in _ending(cited, info):
        yield chunk


def _shown(
    cited: CitedMessages, chunk: ChatGenerationChunk
) -> Iterator[ChatGenerationChunk]:
    message = cited.add(chunk.message)  # type: ignore[arg-type]  # a chat model's are AIMessages
    if message is not None:
        yield ChatGenerationChunk(
            message=message, generation_info=chunk.generation_info
        )


def _ending(
    cited: CitedMessages, info: dict[str, Any] | None
) -> Iterator[ChatGenerationChunk]:
    *rest, last = cited.ending()
    yield from (ChatGenerationChunk(message=message) for message in rest)
    yield ChatGenerationChunk(message=last, generation_info=info)


def _message_of(result: ChatResult) -> AIMessage:
    message = result.generations[0].message
    if not isinstance(message, AIMessage):
        raise TypeError(type(message))
    return message


def _with_message(result: ChatResult, message: AIMessage) -> ChatResult:
    generation = ChatGeneration(
        message=message, generation_info=result.generations[0].generation_info
    )
    return ChatResult(generations=[generation], llm_output=result.llm_output)
