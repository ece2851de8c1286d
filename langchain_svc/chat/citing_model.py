"""What makes a `ChatSvc` cite: `with_citations`, and what stays with it through a binding."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.prompt_values import ChatPromptValue, PromptValue
from langchain_core.runnables import RunnableBinding
from langchain_core.runnables.configurable import RunnableConfigurableFields
from pydantic import Field, field_validator
from typing_extensions import TypeAliasType

from .._base.lazy import import_late
from .._settings import ServiceSettings
from ..config import reveal_secret
from ..errors import SvcRequestError
from .messages import conversation_nonce
from .prepare import ANSWER_OPTIONS

if TYPE_CHECKING:
    from langchain_core.documents import Document


# -- bindings --------------------------------------------------------------------------------------
# What a `ChatSvc` is bound to: as LangChain's, and still a model that can cite.
#
# LangChain hands `with_citations` on to the model within, and so would lose what is bound to
# it.


class SvcBinding(RunnableBinding[Any, Any]):
    """A `ChatSvc` with settings, tools or a config."""

    @classmethod
    def of(cls, binding: RunnableBinding[Any, Any]) -> Self:
        """A binding of LangChain's as one of these."""
        return cls.model_construct(**_fields_of(binding, RunnableBinding))

    def with_citations(self, *args: Any, **kwargs: Any) -> Self:
        """The same with a model that cites; see `ChatSvc.with_citations`."""
        bound: Any = self.bound
        return self.model_copy(update={"bound": bound.with_citations(*args, **kwargs)})

    @classmethod
    def lc_id(cls) -> list[str]:
        """Saved as what LangChain can load."""
        return RunnableBinding.lc_id()


class SvcConfigurableFields(RunnableConfigurableFields[Any, Any]):
    """A `ChatSvc` whose settings a config may change."""

    @classmethod
    def of(cls, configurable: RunnableConfigurableFields[Any, Any]) -> Self:
        """What LangChain makes configurable as one of these."""
        return cls.model_construct(
            **_fields_of(configurable, RunnableConfigurableFields)
        )

    def with_citations(self, *args: Any, **kwargs: Any) -> Self:
        """The same with a model that cites; see `ChatSvc.with_citations`."""
        default: Any = self.default
        cited = default.with_citations(*args, **kwargs)
        return self.model_copy(update={"default": cited})

    @classmethod
    def lc_id(cls) -> list[str]:
        """Saved as what LangChain can load."""
        return RunnableConfigurableFields.lc_id()


def _fields_of(runnable: Any, kind: type[Any]) -> dict[str, Any]:
    return {name: getattr(runnable, name) for name in kind.model_fields}


# -- citing model ----------------------------------------------------------------------------------

_MADE_ANEW = (
    "interface cannot be a configurable field, since other settings depend on it. Let LangChain "
    "make the model anew for each run: langchain_svc.register(), then "
    "init_chat_model('svc:svc-pro', configurable_fields=('model', 'interface')), with the "
    "addresses in the environment"
)


Unsupported = Literal["keep", "drop", "error"]
"""What becomes of a statement whose quotes stand in no document."""
Doubtful = Literal["mark", "ask"]
"""What becomes of a statement that its quotes may not support."""
DocumentLike = TypeAliasType("DocumentLike", "Document | str")
"""A document that an answer may cite."""

Ask: TypeAlias = Callable[[list[BaseMessage]], ChatResult]
AsyncAsk: TypeAlias = Callable[[list[BaseMessage]], Awaitable[ChatResult]]
Chunks: TypeAlias = Callable[[list[BaseMessage]], Iterator[ChatGenerationChunk]]
AsyncChunks: TypeAlias = Callable[
    [list[BaseMessage]], AsyncIterator[ChatGenerationChunk]
]


class CitingAnswer(Protocol):
    """One answer that cites.

    The first argument fetches the answer, and `ask_about` asks the model about statements in doubt.
    """

    def result(self, ask: Ask, ask_about: Ask) -> ChatResult: ...

    async def aresult(self, ask: AsyncAsk, ask_about: AsyncAsk) -> ChatResult: ...

    def chunks(
        self, chunks: Chunks, ask_about: Ask
    ) -> Iterator[ChatGenerationChunk]: ...

    def achunks(
        self, chunks: AsyncChunks, ask_about: AsyncAsk
    ) -> AsyncIterator[ChatGenerationChunk]: ...


class Citations(Protocol):
    """What `with_citations` binds to a model; the wing `langchain_svc.citations` makes it."""

    @property
    def digest(self) -> str:
        """What tells it from others in the keys of a cache, without any text."""

    def messages_of(self, value: object) -> tuple[object, list[BaseMessage]]:
        """The messages of an input, and the message that brings its documents, if it has any."""

    def answer_to(
        self, messages: Sequence[BaseMessage], nonce: str, *, marks: bool
    ) -> CitingAnswer | None:
        """The answer to a conversation; None where nothing is to be cited."""


if TYPE_CHECKING:
    Bound: TypeAlias = Citations | None
else:  # a protocol, which Pydantic does not check
    Bound = object


class CitingModel(ServiceSettings):
    """A mixin that stands before LangChain's `BaseChatModel`."""

    citing: Bound = Field(default=None, exclude=True, repr=False)
    """What `with_citations` sets: the documents that answers cite, and how."""

    @field_validator("citing")
    @classmethod
    def _check_citing(cls, citing: Any) -> Any:
        if citing is None or hasattr(citing, "answer_to"):
            return citing
        raise ValueError(
            "is what with_citations sets: ChatSvc().with_citations(documents)"
        )

    def with_citations(
        self,
        documents: Sequence[DocumentLike] | None = None,
        *,
        max_repairs: int = 1,
        unsupported: Unsupported = "keep",
        doubtful: Doubtful = "mark",
    ) -> Self:
        """This model, citing documents by quotes that were looked up in them.

        It is a chat model like any other: bind tools to it, hand it to an agent, stream it. What it
        yields was checked. The answer's content is one text block. A statement that rests on a
        document has LangChain's annotations of type `citation`: `cited_text` stands verbatim in the
        document, `start_index` and `end_index` are the statement's place in the block's text,
        `title` and `url` are the document's, and `extras` has its `id`, its index as `document`,
        the quote's place in it, and `support`: "quoted", or "doubtful" with the `reason` why the
        quoted sentence may not say what the statement says.
        `response_metadata["citations"]` counts the statements that are `cited` and `uncited`, lists
        the `doubtful` and the `unsupported` ones (their quotes stand nowhere), and has the
        `documents` that indices count.

        Args:
            documents: LangChain `Document`s or texts; an empty list if a search has found nothing.
                None: those of the call, which `{"messages": ..., "documents": [...]}` brings, or
                else those in the messages: `search_result` and `document` blocks with `citations`
                enabled, and the results of tools.
            max_repairs: How often the model may be asked about statements whose quotes stand
                nowhere.
            unsupported: What becomes of a statement whose quotes still stand nowhere: "keep" marks
                it with a `non_standard_annotation`, "drop" leaves it out, "error" raises.
            doubtful: Whether the model is asked about statements that their quotes may not support,
                too: "mark" only says so in their annotations.

        Raises:
            SvcRequestError: An argument is wrong; or, from a call, there is nothing to cite.
            SvcOutputError: From a call, with `unsupported="error"`.
        """
        wing = import_late("langchain_svc.citations")
        citing = wing.citing_of(documents, max_repairs, unsupported, doubtful)
        return self.model_copy(update={"citing": citing})

    if not TYPE_CHECKING:  # LangChain's types hold

        def bind(self, **kwargs: Any) -> Any:
            """This model with settings for every call, which `with_citations` keeps."""
            return SvcBinding.of(super().bind(**kwargs))

        def with_config(self, config: Any = None, **kwargs: Any) -> Any:
            """This model with a config for every call, which `with_citations` keeps."""
            return SvcBinding.of(super().with_config(config, **kwargs))

        def configurable_fields(self, **kwargs: Any) -> Any:
            """This model with settings that a config may change; `with_citations` keeps that."""
            if "interface" in kwargs:  # its addresses and bounds are other ones
                raise SvcRequestError(_MADE_ANEW)
            return SvcConfigurableFields.of(super().configurable_fields(**kwargs))

    def _convert_input(self, model_input: LanguageModelInput) -> PromptValue:
        convert: Callable[[object], PromptValue]
        convert = super()._convert_input  # type: ignore[misc]  # LangChain's
        if self.citing is None:
            return convert(model_input)
        messages, documents = self.citing.messages_of(model_input)
        prompt = convert(messages)
        if not documents:
            return prompt
        return ChatPromptValue(messages=[*prompt.to_messages(), *documents])

    def _cited_answer(
        self, messages: Sequence[BaseMessage], settings: Mapping[str, Any]
    ) -> CitingAnswer | None:
        """The answer that cites; None where nothing is to be cited."""
        if self.citing is None:
            return None
        nonce = conversation_nonce(messages, reveal_secret(self.api_key) or "")
        marks = settings.get("response_format") is None
        return self.citing.answer_to(messages, nonce, marks=marks)

    @staticmethod
    def _of_questions(settings: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of a question about an answer, which offers no tools."""
        return {
            name: value
            for name, value in settings.items()
            if name not in ANSWER_OPTIONS
        }

    def _get_llm_string(self, stop: list[str] | None = None, **kwargs: Any) -> str:
        llm_string: str = super()._get_llm_string(stop, **kwargs)  # type: ignore[misc]  # LangChain's
        if self.citing is None:
            return llm_string
        return f"{llm_string}---{self.citing.digest}"


# LangChain's fallbacks do with each of their models what returns a runnable.
CitingModel.with_citations.__annotations__["return"] = BaseChatModel
