"""Answers with checked citations: what `ChatSvc.with_citations` returns.

A conversation is asked with its passages; quotes are checked as they come; statements whose quotes
stand nowhere are asked about once more, all together. `CitedAnswer` does this without I/O, and the
two pairs of methods of `CitedModel` only fetch answers.
"""

from __future__ import annotations

import json
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar, cast, get_args

from langchain_core.documents import Document
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    message_chunk_to_message,
)
from langchain_core.messages.ai import add_usage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.messages.utils import convert_to_messages
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableConfig

from .._base.safe_errors import safe_repr
from ..errors import SvcOutputError, SvcRequestError
from .citations import (
    UNSUPPORTED,
    AnswerStatement,
    CitationParser,
    CitationReport,
    annotations_of,
    doubt_about,
    passages_block,
    places_of,
    read_repairs,
    repair_question,
)
from .options import DocumentLike, Unsupported
from .passages import Passage, Passages, Place

Block: TypeAlias = dict[str, Any]
Nonce: TypeAlias = Callable[[Sequence[BaseMessage]], str]
_DOCUMENT_BLOCKS = ("search_result", "document")


@dataclass(frozen=True)
class CitedConversation:
    """A conversation as it is asked: its messages, with the passages in the last one."""

    messages: list[BaseMessage]
    passages: Passages
    nonce: str


# -- what is asked ----------------------------------------------------------------------------


def cited_conversation(
    messages: Sequence[BaseMessage],
    documents: Sequence[DocumentLike] | None,
    nonce: str,
) -> CitedConversation:
    """A conversation with its passages: those that are given, or else those that it holds itself.

    Raises:
        SvcRequestError: A document is neither a `Document` nor a text.
    """
    passages: list[Passage] = []
    asked = list(messages)
    if documents is not None:
        for document in documents:
            passages.append(_passage(len(passages) + 1, document))
    else:
        asked = [_without_documents(message, passages) for message in messages]
    collected = Passages(passages)
    if passages:
        asked.append(HumanMessage(passages_block(collected, nonce, _harmless)))
    return CitedConversation(asked, collected, nonce)


def _harmless(text: str) -> str:
    """A document's text, in which no passage and no citation can begin."""
    return text.replace("<", "‹") if "<" in text else text


def _passage(number: int, document: object) -> Passage:
    if isinstance(document, Document):
        return Passage(number, document.page_content, document.metadata)
    if isinstance(document, str):
        return Passage(number, document, {})
    raise SvcRequestError(
        f"documents must be LangChain Documents or texts, not {safe_repr(document)}"
    )


def _without_documents(message: BaseMessage, passages: list[Passage]) -> BaseMessage:
    """A message whose documents have become passages, and are named in their place."""
    if isinstance(message, ToolMessage) and _holds_documents(message.artifact):
        first = len(passages) + 1
        passages += [
            _passage(first + number, document)
            for number, document in enumerate(message.artifact)
        ]
        numbers = ", ".join(str(number) for number in range(first, len(passages) + 1))
        return message.model_copy(
            update={"content": f"Found, and shown below: passage {numbers}."}
        )
    if not isinstance(message.content, list):
        return message
    content = [_block_or_passage(block, passages) for block in message.content]
    return message.model_copy(update={"content": content})


def _holds_documents(artifact: object) -> bool:
    return (
        isinstance(artifact, list)
        and bool(artifact)
        and all(isinstance(document, Document) for document in artifact)
    )


def _block_or_passage(block: str | Block, passages: list[Passage]) -> str | Block:
    """A block of a message; one that is a document to be cited has become a passage."""
    if isinstance(block, str) or block.get("type") not in _DOCUMENT_BLOCKS:
        return block
    citations = block.get("citations")
    text = _document_text(block)
    if (
        text is None
        or not isinstance(citations, Mapping)
        or not citations.get("enabled")
    ):
        return block
    metadata = {
        key: block[key]
        for key in ("title", "source")
        if isinstance(block.get(key), str)
    }
    passages.append(Passage(len(passages) + 1, text, metadata))
    return {"type": "text", "text": f"[passage {len(passages)} below]"}


def _document_text(block: Mapping[str, Any]) -> str | None:
    """The text of a document block in Anthropic's form; None if it has none."""
    source = block.get("source")
    if isinstance(source, Mapping) and source.get("type") == "text":
        data = source.get("data")
        return data if isinstance(data, str) else None
    content = block.get("content")
    if isinstance(source, Mapping):
        content = source.get("content", content)
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = [part.get("text") for part in content if isinstance(part, Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str)) or None


# -- what is answered -------------------------------------------------------------------------


class LookedUp(NamedTuple):
    """A statement, and where its quotes stand; those that stand nowhere are left out."""

    statement: AnswerStatement
    places: Sequence[Place]

    @property
    def is_doubtful(self) -> bool:
        """Whether it has quotes, and none of them stands anywhere."""
        return bool(self.statement.quotes) and not self.places


class CitedAnswer:
    """One answer, read as it comes: blocks of text with their annotations.

    Blocks are given out until a statement's quotes stand nowhere. It and all that follow are held
    until the model was asked about it, so that the order stays.
    """

    def __init__(
        self,
        conversation: CitedConversation,
        unsupported: Unsupported,
        max_repairs: int,
    ) -> None:
        self.conversation = conversation
        self.report = CitationReport()
        self._unsupported = unsupported
        self._repairs_left = max_repairs
        self._parser = CitationParser(conversation.nonce)
        self._buffer: list[LookedUp] = []  # from the first doubtful statement on
        self._text: list[str] = []
        self._index = -1  # of the last block
        self._in_plain_block = False

    def add_text(self, text: str) -> list[Block]:
        """The blocks that further text completes."""
        self._text.append(text)
        return self._checked(self._parser.parse_chunk(text))

    def close(self, *, has_calls: bool) -> list[Block]:
        """The blocks at the end of the answer, save those about which the model is asked.

        An answer that calls tools goes on after their results: nothing is asked about it.
        """
        if has_calls:
            self._repairs_left = 0
        return self._checked(self._parser.close())

    @property
    def questions(self) -> list[BaseMessage] | None:
        """The conversation that asks about the doubtful statements; None: nothing is asked."""
        doubtful = [item.statement for item in self._buffer if item.is_doubtful]
        if not doubtful or self._repairs_left == 0:
            return None
        question = repair_question(doubtful, self.conversation.nonce, _harmless)
        answer = AIMessage("".join(self._text))
        return [*self.conversation.messages, answer, HumanMessage(question)]

    def repair(self, answer: str) -> None:
        """Take what the model answered to the questions."""
        self._repairs_left -= 1
        doubtful = [
            place for place, item in enumerate(self._buffer) if item.is_doubtful
        ]
        repairs = read_repairs(answer, len(doubtful), self.conversation.nonce)
        for number, place in enumerate(doubtful):
            if number in repairs:
                self._buffer[place] = self._repaired(
                    self._buffer[place], repairs[number]
                )

    def settle(self) -> list[Block]:
        """The blocks that were held.

        Raises:
            SvcOutputError: A statement's quotes stand nowhere, and this is to be an error.
        """
        return [block for item in self._buffer for block in self._blocks(item)]

    def _repaired(self, item: LookedUp, repair: AnswerStatement) -> LookedUp:
        """A statement as the model wrote it anew, if its new quotes stand somewhere."""
        text = item.statement.text
        indent = text[: len(text) - len(text.lstrip())]
        repaired = self._looked_up(replace(repair, text=indent + repair.text))
        return item if repaired.is_doubtful else repaired

    def _looked_up(self, statement: AnswerStatement) -> LookedUp:
        return LookedUp(statement, places_of(statement, self.conversation.passages))

    def _checked(self, statements: Iterator[AnswerStatement]) -> list[Block]:
        blocks: list[Block] = []
        for item in map(self._looked_up, statements):
            if self._buffer or item.is_doubtful:
                self._buffer.append(item)
            else:
                blocks += self._blocks(item)
        return blocks

    def _blocks(self, item: LookedUp) -> list[Block]:
        """A statement as a block of its own; neighbouring text without citations is one block."""
        statement, places = item
        doubt = doubt_about(statement, places)
        self.report.add(statement, places, doubt)
        if not statement.quotes:
            return self._plain(statement.text)
        annotations: list[Any] = list(annotations_of(statement, places, doubt))
        if not places:
            self._check_unsupported()
            if self._unsupported == "drop":
                return []
            annotations = [UNSUPPORTED]
        self._index += 1
        self._in_plain_block = False
        cited = {
            "type": "text",
            "text": statement.text[: statement.mark_at],
            "annotations": annotations,
            "index": self._index,
        }
        return [cited, *self._plain(statement.text[statement.mark_at :])]

    def _plain(self, text: str) -> list[Block]:
        """Text without citations, in one block with what is before it of the same kind."""
        if not text:
            return []
        if not self._in_plain_block:
            self._index += 1
        self._in_plain_block = True
        return [{"type": "text", "text": text, "index": self._index}]

    def _check_unsupported(self) -> None:
        if self._unsupported == "error":
            raise SvcOutputError(
                "A statement's quotes stand in none of the documents, also when the model was "
                "asked again; unsupported='keep' marks such statements, 'drop' leaves them out "
                "(.raw has the answer, .problems the statements)",
                problems=self.report.unsupported,
                raw="".join(self._text),
            )


# -- messages ---------------------------------------------------------------------------------


class CitedMessages:
    """The messages of one cited answer, from those of the model."""

    def __init__(self, answer: CitedAnswer) -> None:
        self._answer = answer
        self._last: AIMessageChunk | None = None
        self._has_calls = False

    def add(self, message: AIMessage) -> AIMessageChunk | None:
        """What can be shown of a message, or of a chunk of one."""
        chunk = _as_chunk(message)
        self._has_calls = self._has_calls or bool(chunk.tool_call_chunks)
        blocks = self._answer.add_text(str(message.text))
        chunk = chunk.model_copy(update={"content": blocks})
        if chunk.chunk_position != "last":
            return chunk
        self._last = chunk
        return None

    def questions(self) -> list[BaseMessage] | None:
        """The conversation by which the model is asked once more; None: nothing is asked."""
        if self._last is None:
            self._last = AIMessageChunk(content=[], chunk_position="last")
        if not isinstance(self._last.content, list):
            raise TypeError(self._last.content)
        self._last.content += self._answer.close(has_calls=self._has_calls)
        return self._answer.questions

    def repair(self, message: AIMessage) -> list[BaseMessage] | None:
        """Take the answer to the questions; the next questions, if there are any."""
        self._answer.repair(str(message.text))
        if self._last is not None:
            self._last.usage_metadata = add_usage(
                self._last.usage_metadata, message.usage_metadata
            )
        return self._answer.questions

    def last(self) -> AIMessageChunk:
        """The end of the answer, with all that was held, and the report."""
        chunk = self._last or AIMessageChunk(content=[])
        content = [*chunk.content, *self._answer.settle()]
        metadata = {
            **chunk.response_metadata,
            "citations": self._answer.report.as_metadata(),
        }
        return chunk.model_copy(
            update={"content": content, "response_metadata": metadata}
        )


# What a cited answer asks: it yields conversations, and is sent the model's answers.
Ended = TypeVar("Ended")
Asking: TypeAlias = Generator[list[BaseMessage], AIMessage, Ended]


def asking(answer: CitedAnswer) -> Asking[AIMessage]:
    """Ask for a whole answer, and about what is doubtful in it."""
    cited = CitedMessages(answer)
    cited.add((yield answer.conversation.messages))
    return whole_message((yield from repairing(cited)))


def repairing(cited: CitedMessages) -> Asking[AIMessageChunk]:
    """Ask about what is doubtful in an answer that has come; the end of it."""
    questions = cited.questions()
    while questions is not None:
        questions = cited.repair((yield questions))
    return cited.last()


def drive(asked: Asking[Ended], ask: Callable[[list[BaseMessage]], AIMessage]) -> Ended:
    """Fetch each answer, blocking."""
    try:
        messages = next(asked)
        while True:
            messages = asked.send(ask(messages))
    except StopIteration as end:
        return cast("Ended", end.value)


async def adrive(
    asked: Asking[Ended], ask: Callable[[list[BaseMessage]], Awaitable[AIMessage]]
) -> Ended:
    """Fetch each answer on an event loop."""
    try:
        messages = next(asked)
        while True:
            messages = asked.send(await ask(messages))
    except StopIteration as end:
        return cast("Ended", end.value)


def _as_chunk(message: AIMessage) -> AIMessageChunk:
    """A whole message as the last chunk of one."""
    if isinstance(message, AIMessageChunk):
        return message
    fields = message.model_dump(exclude={"type", "tool_calls", "invalid_tool_calls"})
    calls = [
        tool_call_chunk(
            name=call["name"],
            args=json.dumps(call["args"]),
            id=call["id"],
            index=number,
        )
        for number, call in enumerate(message.tool_calls)
    ]
    return AIMessageChunk(**fields, tool_call_chunks=calls, chunk_position="last")


def check_arguments(max_repairs: object, unsupported: object) -> None:
    """Refuse what is neither a number of repairs nor a way with unsupported statements.

    Raises:
        SvcRequestError: An argument is not one of these.
    """
    if unsupported not in get_args(Unsupported):
        raise SvcRequestError(
            f"unsupported must be 'keep', 'drop' or 'error', not {safe_repr(unsupported)}"
        )
    if (
        isinstance(max_repairs, bool)
        or not isinstance(max_repairs, int)
        or max_repairs < 0
    ):
        raise SvcRequestError(
            f"max_repairs must be a whole number from 0, not {safe_repr(max_repairs)}"
        )


class CitedModel(Runnable[Any, AIMessage]):
    """A chat model whose statements carry checked citations: see `ChatSvc.with_citations`."""

    def __init__(
        self,
        model: Runnable[LanguageModelInput, AIMessage],
        documents: Sequence[DocumentLike] | None,
        *,
        nonce: Nonce,
        max_repairs: int,
        unsupported: Unsupported,
    ) -> None:
        check_arguments(max_repairs, unsupported)
        self.model = model
        self.documents = documents
        self._nonce = nonce
        self._max_repairs = max_repairs
        self._unsupported = unsupported

    def _start(self, value: object) -> CitedAnswer:
        """The answer to be read.

        Raises:
            SvcRequestError: There are no documents, or the input cannot be read.
        """
        messages, documents = _read_input(value, self.documents)
        conversation = cited_conversation(messages, documents, self._nonce(messages))
        if not conversation.passages.all:
            raise SvcRequestError(
                "There is nothing to cite: give documents= to with_citations, pass "
                '{"messages": ..., "documents": [...]}, or have search_result blocks or tool '
                "messages with Documents as their artifact in the conversation"
            )
        return CitedAnswer(conversation, self._unsupported, self._max_repairs)

    def invoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AIMessage:
        """The whole answer."""
        ask = partial(self.model.invoke, config=config, **kwargs)
        return drive(asking(self._start(input)), ask)

    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AIMessage:
        """The whole answer."""
        ask = partial(self.model.ainvoke, config=config, **kwargs)
        return await adrive(asking(self._start(input)), ask)

    def stream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> Iterator[AIMessageChunk]:
        """The answer as it comes, up to the first statement whose quotes stand nowhere."""
        ask = partial(self.model.invoke, config=config, **kwargs)
        answer = self._start(input)
        cited = CitedMessages(answer)
        for chunk in self.model.stream(answer.conversation.messages, config, **kwargs):
            shown = cited.add(chunk)
            if shown is not None:
                yield shown
        yield drive(repairing(cited), ask)

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **kwargs: Any
    ) -> AsyncIterator[AIMessageChunk]:
        """The answer as it comes, up to the first statement whose quotes stand nowhere."""
        ask = partial(self.model.ainvoke, config=config, **kwargs)
        answer = self._start(input)
        cited = CitedMessages(answer)
        async for chunk in self.model.astream(
            answer.conversation.messages, config, **kwargs
        ):
            shown = cited.add(chunk)
            if shown is not None:
                yield shown
        yield await adrive(repairing(cited), ask)


def whole_message(chunk: AIMessageChunk) -> AIMessage:
    """The one chunk of an answer that came at once, as a message."""
    joined = AIMessageChunk(content=[]) + chunk
    message = message_chunk_to_message(joined)
    if not isinstance(message, AIMessage):
        raise TypeError(type(message))
    return message


def _read_input(
    value: object, documents: Sequence[DocumentLike] | None
) -> tuple[list[BaseMessage], Sequence[DocumentLike] | None]:
    """The messages of an input, and its documents if it brings its own."""
    if isinstance(value, Mapping) and "messages" in value:
        unknown = value.keys() - {"messages", "documents"}
        if unknown:
            raise SvcRequestError(
                f"An input of with_citations has messages and documents, not {sorted(unknown)}"
            )
        if value.get("documents") is not None:
            documents = value["documents"]
        value = value["messages"]
    if isinstance(value, PromptValue):
        return value.to_messages(), documents
    if isinstance(value, str):
        return [HumanMessage(value)], documents
    if isinstance(value, Sequence):
        return convert_to_messages(value), documents
    raise SvcRequestError(
        "The input must be what a chat model takes, or an object with messages and documents, "
        f"not {safe_repr(value)}"
    )
