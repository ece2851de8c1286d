"""What `with_citations` binds to a model: how its answers are fetched, checked and given out.

The model itself yields what was checked, so that every stream of it shows that: of an agent, a
graph, a callback or a front end.
"""

from __future__ import annotations

import json
from collections.abc import (
    AsyncIterator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, get_args

from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    message_chunk_to_message,
)
from langchain_core.messages.ai import add_usage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

from .._base.safe_errors import safe_repr, type_text
from ..chat.citing_model import (
    Ask,
    AsyncAsk,
    AsyncChunks,
    Chunks,
    DocumentLike,
    Doubtful,
    Unsupported,
)
from ..errors import SvcOutputError, SvcRequestError
from .passages import Passage, Place
from .sources import (
    DOCUMENTS,
    Block,
    CitedConversation,
    cited_conversation,
    harmless,
    statement_key,
)
from .statements import (
    AnswerStatement,
    CitationParser,
    CitationReport,
    annotations_of,
    doubt_about,
    places_of,
    read_repairs,
    repair_question,
)

# -- cited answers ---------------------------------------------------------------------------------
# Answers with checked citations: one text, and annotations that are spans of it. Pure.
#
# Quotes are checked as they come. A statement about which the model is asked is held with all
# that follows, so that the order stays.


@dataclass(frozen=True)
class Checked:
    """A statement, where its quotes stand, and why these may not support it.

    Attributes:
        statement: What was said, and its quotes.
        places: Where these stand; those that stand nowhere are left out.
        doubt: Why what stands there may not say what the statement says.
    """

    statement: AnswerStatement
    places: Sequence[Place]
    doubt: str | None

    @property
    def is_unsupported(self) -> bool:
        """Whether it has quotes, and none of them stands anywhere."""
        return bool(self.statement.quotes) and not self.places


class CitedAnswer:
    """One answer, read as it comes: pieces of its one text block, with their annotations."""

    def __init__(
        self,
        conversation: CitedConversation,
        citing: Citing,
    ) -> None:
        self.conversation = conversation
        self.report: CitationReport = CitationReport()
        self._unsupported = citing.unsupported
        self._asks_when_doubtful = citing.doubtful == "ask"
        self._repairs_left = citing.max_repairs
        self._parser = CitationParser(conversation.nonce)
        self._buffer: list[Checked] = []  # from the first open statement on
        self._text: list[str] = []  # as the model wrote it
        self._size = 0  # characters that were given out

    def add_text(self, text: str) -> list[Block]:
        """What further text adds to the block."""
        self._text.append(text)
        return self._given_out(self._parser.parse_chunk(text))

    def close(self, *, has_calls: bool) -> list[Block]:
        """The end of the answer, save the statements about which the model is asked.

        An answer that calls tools goes on after their results: nothing is asked about it.
        """
        if has_calls:
            self._repairs_left = 0
        return self._given_out(self._parser.close())

    @property
    def questions(self) -> list[BaseMessage] | None:
        """The conversation that asks about the open statements; None: nothing is asked."""
        items = [item for item in self._buffer if self._is_open(item)]
        if not items or self._repairs_left == 0:
            return None
        question = repair_question(
            [(item.statement, item.doubt) for item in items],
            self.conversation.nonce,
            harmless,
        )
        answer = AIMessage("".join(self._text))
        return [*self.conversation.messages, answer, HumanMessage(question)]

    def repair(self, answer: str) -> None:
        """Take what the model answered to the questions."""
        self._repairs_left -= 1
        places = [
            place for place, item in enumerate(self._buffer) if self._is_open(item)
        ]
        repairs = read_repairs(answer, len(places), self.conversation.nonce)
        for number, place in enumerate(places):
            if number in repairs:
                self._buffer[place] = self._repaired(
                    self._buffer[place], repairs[number]
                )

    def settle(self) -> list[Block]:
        """What was held.

        Raises:
            SvcOutputError: A statement's quotes stand nowhere, and this is to be an error.
        """
        return [block for item in self._buffer for block in self._blocks(item)]

    def _repaired(self, item: Checked, repair: AnswerStatement) -> Checked:
        """A statement as the model wrote it anew, if its new quotes support it."""
        text = item.statement.text
        indent = text[: len(text) - len(text.lstrip())]
        repaired = self._checked(replace(repair, text=indent + repair.text))
        return item if self._is_open(repaired) else repaired

    def _is_open(self, item: Checked) -> bool:
        """Whether the model is to be asked about a statement."""
        if item.is_unsupported:
            return True
        return self._asks_when_doubtful and item.doubt is not None

    def _checked(self, statement: AnswerStatement) -> Checked:
        places = places_of(statement, self.conversation.passages)
        return Checked(statement, places, doubt_about(statement, places))

    def _given_out(self, statements: Iterable[AnswerStatement]) -> list[Block]:
        blocks: list[Block] = []
        for item in map(self._checked, statements):
            if self._buffer or (self._repairs_left and self._is_open(item)):
                self._buffer.append(item)
            else:
                blocks += self._blocks(item)
        return blocks

    def _blocks(self, item: Checked) -> list[Block]:
        """A statement as a piece of the block, with its annotations."""
        statement = item.statement
        annotations: list[Any] = [*annotations_of(statement, item.places, item.doubt)]
        known = [] if statement.quotes else self._cited_before(statement)
        if known:
            self.report.cited += 1
            annotations += [{**one, **_span(statement)} for one in known]
        else:
            self.report.count(statement, item.places, item.doubt)
        if item.is_unsupported:
            self._check_unsupported()
            if self._unsupported == "drop":
                return []
            value = {"unsupported": True, **_span(statement)}
            annotations = [{"type": "non_standard_annotation", "value": value}]
        block: Block = {"type": "text", "text": statement.text}
        if annotations:
            block["annotations"] = [
                _moved(annotation, self._size) for annotation in annotations
            ]
        self._size += len(statement.text)
        return [block]

    def _cited_before(self, statement: AnswerStatement) -> Sequence[Block]:
        """The citations that another agent has given the same statement."""
        known = self.conversation.cited_before
        return known.get(statement_key(statement.text), ()) if known else ()

    def _check_unsupported(self) -> None:
        if self._unsupported == "error":
            raise SvcOutputError(
                "A statement's quotes stand in none of the documents, also when the model was "
                "asked again; unsupported='keep' marks such statements, 'drop' leaves them out "
                "(.raw has the answer, .problems the statements)",
                problems=self.report.unsupported,
                raw="".join(self._text),
            )

    def metadata(self) -> dict[str, object]:
        """The report, with the documents that its citations count."""
        documents = [
            {"index": passage.number - 1, **_labels(passage)}
            for passage in self.conversation.passages.all
        ]
        return {**self.report.as_metadata(), "documents": documents}

    # -- fetching it -----------------------------------------------------------------------------

    def result(self, ask: Ask, ask_about: Ask) -> ChatResult:
        """A whole answer, and what the model says about its statements in doubt."""
        result = ask(self.conversation.messages)
        cited = CitedMessages(self)
        cited.add_message(_message_of(result))
        questions = cited.questions()
        while questions is not None:
            questions = cited.repair(_message_of(ask_about(questions)))
        return _with_message(result, whole_message(cited.ending()))

    async def aresult(self, ask: AsyncAsk, ask_about: AsyncAsk) -> ChatResult:
        """The async version of `result`."""
        result = await ask(self.conversation.messages)
        cited = CitedMessages(self)
        cited.add_message(_message_of(result))
        questions = cited.questions()
        while questions is not None:
            questions = cited.repair(_message_of(await ask_about(questions)))
        return _with_message(result, whole_message(cited.ending()))

    def chunks(self, chunks: Chunks, ask_about: Ask) -> Iterator[ChatGenerationChunk]:
        """The answer as it comes, up to the first statement in doubt; then the rest."""
        cited = CitedMessages(self)
        info = None
        for chunk in chunks(self.conversation.messages):
            info = chunk.generation_info or info
            yield from _shown(cited, chunk)
        questions = cited.questions()
        while questions is not None:
            questions = cited.repair(_message_of(ask_about(questions)))
        yield from _ending(cited, info)

    async def achunks(
        self, chunks: AsyncChunks, ask_about: AsyncAsk
    ) -> AsyncIterator[ChatGenerationChunk]:
        """The async version of `chunks`."""
        cited = CitedMessages(self)
        info = None
        async for chunk in chunks(self.conversation.messages):
            info = chunk.generation_info or info
            for shown in _shown(cited, chunk):
                yield shown
        questions = cited.questions()
        while questions is not None:
            questions = cited.repair(_message_of(await ask_about(questions)))
        for chunk in _ending(cited, info):
            yield chunk


def _span(statement: AnswerStatement) -> dict[str, int]:
    """Where in its text a statement stands, without what stands behind its last mark."""
    text = statement.text[: statement.mark_at]
    begin = len(text) - len(text.lstrip())
    return {"start_index": begin, "end_index": max(begin, len(text.rstrip()))}


def _moved(annotation: Block, by: int) -> Block:
    """An annotation of a statement as one of the whole text."""
    if annotation["type"] != "citation":
        return {**annotation, "value": _moved_span(annotation["value"], by)}
    return _moved_span(annotation, by)


def _moved_span(span: Block, by: int) -> Block:
    begin, end = span["start_index"] + by, span["end_index"] + by
    return {**span, "start_index": begin, "end_index": end}


def _labels(passage: Passage) -> dict[str, object]:
    """What tells a document from others."""
    labels = {
        "id": passage.metadata.get("id"),
        "title": passage.title,
        "url": passage.url,
        "page": passage.metadata.get("page"),
    }
    return {name: value for name, value in labels.items() if value is not None}


class CitedMessages:
    """The messages of one cited answer, from those of the model."""

    def __init__(self, answer: CitedAnswer) -> None:
        self._answer = answer
        self._last = AIMessageChunk(content=[], chunk_position="last")
        self._rest: list[Block] = []  # what the last chunk adds
        self._has_calls = False

    def add_message(self, message: AIMessage) -> AIMessageChunk | None:
        """What can be shown of a message, or of a chunk of one."""
        chunk = _as_chunk(message)
        self._has_calls = self._has_calls or bool(chunk.tool_call_chunks)
        blocks = self._answer.add_text(str(message.text))
        if chunk.chunk_position == "last":
            self._last, self._rest = chunk, blocks
            return None
        content = joined(blocks)
        shown = chunk.model_copy(update={"content": content})
        has_more = chunk.tool_call_chunks or chunk.additional_kwargs
        return shown if content or has_more or chunk.response_metadata else None

    def questions(self) -> list[BaseMessage] | None:
        """The conversation by which the model is asked once more; None: nothing is asked."""
        self._rest += self._answer.close(has_calls=self._has_calls)
        return self._answer.questions

    def repair(self, message: AIMessage) -> list[BaseMessage] | None:
        """Take the answer to the questions; the next questions, if there are any."""
        self._answer.repair(str(message.text))
        usage = add_usage(self._last.usage_metadata, message.usage_metadata)
        self._last = self._last.model_copy(update={"usage_metadata": usage})
        return self._answer.questions

    def ending(self) -> list[AIMessageChunk]:
        """All that was held, and behind it a chunk without text that has the report.

        Front ends leave out the text of a chunk with a finish reason.
        """
        rest = joined([*self._rest, *self._answer.settle()])
        report = {**self._last.response_metadata, "citations": self._answer.metadata()}
        update = {"content": [], "response_metadata": report}
        last = self._last.model_copy(update=update)
        return [AIMessageChunk(content=rest, id=last.id), last] if rest else [last]


def joined(blocks: Sequence[Block]) -> list[str | Block]:
    """Pieces of one text block as one."""
    if not blocks:
        return []
    block: Block = {"type": "text", "text": "".join(b["text"] for b in blocks)}
    annotations = [one for b in blocks for one in b.get("annotations", ())]
    if annotations:
        block["annotations"] = annotations
    return [{**block, "index": 0}]


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


def whole_message(chunks: Sequence[AIMessageChunk]) -> AIMessage:
    """The chunks of an answer that came at once, as a message."""
    message = message_chunk_to_message(sum(chunks, AIMessageChunk(content=[])))
    if not isinstance(message, AIMessage):
        raise TypeError(type(message))
    return message


def _shown(
    cited: CitedMessages, chunk: ChatGenerationChunk
) -> Iterator[ChatGenerationChunk]:
    message = cited.add_message(chunk.message)  # type: ignore[arg-type]  # a chat model's are AIMessages
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


# -- citing ----------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Citing:
    """What `with_citations` binds to a model.

    Attributes:
        documents: What its answers may cite; None: what the call or the messages bring.
        max_repairs: How often the model may be asked about statements in doubt.
        unsupported: What becomes of a statement whose quotes stand nowhere.
        doubtful: Whether the model is asked about statements that quotes may not support, too.
        required: Whether a call without any document is refused.
    """

    documents: tuple[DocumentLike, ...] | None = None
    max_repairs: int = 1
    unsupported: Unsupported = "keep"
    doubtful: Doubtful = "mark"
    required: bool = True

    def __repr__(self) -> str:
        return "<citing>"

    @property
    def digest(self) -> str:
        """What tells it from others in the keys of a cache, without any text."""
        texts = [repr(document) for document in self.documents or ()]
        settings = (
            self.documents is None,
            texts,
            self.max_repairs,
            self.unsupported,
            self.doubtful,
        )
        return sha256(repr(settings).encode(errors="replace")).hexdigest()

    def messages_of(self, value: object) -> tuple[object, list[BaseMessage]]:
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

    def answer_to(
        self, messages: Sequence[BaseMessage], nonce: str, *, marks: bool
    ) -> CitedAnswer | None:
        """The answer to be read; None where nothing is there to cite.

        Raises:
            SvcRequestError: Nothing is there, and something has to be.
        """
        conversation = cited_conversation(messages, self.documents, nonce, marks=marks)
        if conversation is not None:
            return CitedAnswer(conversation, self)
        if not self.required:
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
