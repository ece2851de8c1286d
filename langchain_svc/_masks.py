"""What stands for a text in records: its length, and a hash that only this process can compute.

    [412 characters, hash 1f3a9c2b7d04]

The hash is keyed with bytes that are drawn when the process starts and never leave it. So equal
texts can be matched within one process and its forks, but nobody who reads a record can find a
short text (an age, a name) by hashing all candidates, as they could with a plain hash.

`masked` knows the values that LangChain hands to callbacks. It keeps what says how a run went
(kinds of messages, names of tools, counts of tokens, the model, ids) and masks the rest: texts,
numbers, and names of fields that are not LangChain's own.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any
from uuid import UUID

from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, ToolMessage
from langchain_core.outputs import (
    ChatGeneration,
    ChatGenerationChunk,
    Generation,
    GenerationChunk,
    LLMResult,
)
from langchain_core.prompt_values import ChatPromptValue, PromptValue, StringPromptValue

from .errors import SvcError

_KEY = secrets.token_bytes(32)


class _Mask(str):
    """A text that stands for another, and needs no mask of its own."""

    __slots__ = ()


PIECE = _Mask("[text]")
"""Stands for a piece of a stream: the lengths of its pieces could give a text away."""


def mask(text: str) -> str:
    """What stands for a text. Nothing stands for nothing, and a mask for itself."""
    if not text or isinstance(text, _Mask):
        return text
    digest = blake2b(text.encode("utf-8", "surrogatepass"), key=_KEY, digest_size=6).hexdigest()
    return _Mask(f"[{len(text):,} character{'' if len(text) == 1 else 's'}, hash {digest}]")


# Names of fields that LangChain, LangGraph and this package use. Any other may be a model's word.
_NAMES = frozenset(
    """
    additional_kwargs agent_outcome answer args arguments artifact chat_history content context
    documents error event generations goto graph input inputs id index intermediate_steps invalid
    jump_to kwargs lc llm_output message messages metadata model name options output outputs
    page_content parsed parsing_error prompt prompts query question raw reason reasoning_content
    response resume role status stop structured_response text title token tool_call tool_calls
    tools type update usage masked request_id system_role own_stop timestamp tool_format
    """.split()  # noqa: SIM905  # a list of quoted words reads worse
)
# Under these names stands a word or number of the machinery.
_COUNTS = frozenset(
    """
    batch_size created index input_tokens max_tokens n output_tokens remaining limit retries
    reset_at temperature timeout total_tokens waited prompt_tokens completion_tokens audio
    cache_read cache_creation reasoning total_cost cached
    """.split()  # noqa: SIM905  # the same
)
_WORDS = frozenset(
    """
    _type finish_reason lc model model_name model_provider ls_provider ls_model_name ls_model_type
    role status type usage_source
    """.split()  # noqa: SIM905  # the same
)
_NESTED = frozenset(
    "rate_limit token_usage usage usage_metadata input_token_details output_token_details".split()  # noqa: SIM905  # the same
)
_LABEL = re.compile(r"[\w.:/-]{1,80}", re.ASCII)
_DEEPEST = 12
_MOST = 200


def label(value: Any) -> Any:
    """A word of the machinery as it is; anything else masked."""
    return value if isinstance(value, str) and _LABEL.fullmatch(value) else masked(value)


def masked(value: Any, depth: int = 0) -> Any:
    """A value as records may hold it."""
    if value is None or isinstance(value, (bool, UUID)):
        return value
    if depth > _DEEPEST:
        return "[...]"
    for kind, make in _KINDS:
        if isinstance(value, kind):
            return make(value, depth)
    return f"[a {type(value).__name__}]"


def _mapping(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    return dict(_field(*item, depth + 1) for item in list(value.items())[:_MOST])


def _field(name: Any, value: Any, depth: int) -> tuple[str, Any]:
    counted = isinstance(value, (int, float)) and name in _COUNTS
    if value is None or counted or (name in _NESTED and isinstance(value, Mapping)):
        known = name if name in _NAMES | _COUNTS | _WORDS | _NESTED else mask(str(name))
        return known, value if not isinstance(value, Mapping) else _counts(value)
    if name in _WORDS:
        return name, label(value)
    return (name if name in _NAMES else mask(str(name))), masked(value, depth)


def _counts(value: Mapping[Any, Any]) -> dict[str, Any]:
    """The numbers of a table of counts."""
    return {
        name: _counts(held) if isinstance(held, Mapping) else held
        for name, held in value.items()
        if name in _COUNTS | _NESTED and isinstance(held, (int, float, Mapping))
    }


def _items(value: Any, depth: int) -> list[Any]:
    return [masked(item, depth + 1) for item in list(value)[:_MOST]]


def _text(content: Any) -> str:
    return mask(content if isinstance(content, str) else repr(content) if content else "")


def _message(message: BaseMessage, depth: int = 0) -> BaseMessage:
    """A message of the same kind, with the same id and counts, and without its texts."""
    own: dict[str, Any] = {
        "content": _text(message.content),
        "id": message.id,
        "name": None if message.name is None else label(message.name),
        "additional_kwargs": _mapping(message.additional_kwargs, depth),
        "response_metadata": _mapping(message.response_metadata, depth),
    }
    if isinstance(message, AIMessage):
        own["usage_metadata"] = message.usage_metadata
        own["tool_calls"] = [_tool_call(call) for call in message.tool_calls]
        own["invalid_tool_calls"] = [_tool_call(call) for call in message.invalid_tool_calls]
    if isinstance(message, ToolMessage):
        own["tool_call_id"] = message.tool_call_id
        own["status"] = message.status
        own["artifact"] = masked(message.artifact, depth)
    if isinstance(message, ChatMessage):
        own["role"] = label(message.role)
    kind = type(message)
    position = getattr(message, "chunk_position", None)
    if position is not None:
        own["chunk_position"] = position
    return kind.model_construct(**{"type": message.type, **own})


def _tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    args: Any = mask(call["args"]) if isinstance(call["args"], str) else _arguments(call["args"])
    made = {"name": label(call["name"]), "args": args, "id": call["id"], "type": call.get("type")}
    return made | ({"error": mask(call["error"] or "")} if "error" in call else {})


def _arguments(args: Any) -> dict[str, str]:
    """The arguments of a call as one mask: their names are the model's words too."""
    return {"masked": mask(repr(args))} if args else {}


def _generation(made: Generation, depth: int = 0) -> Generation:
    info = None if made.generation_info is None else _mapping(made.generation_info, depth)
    if isinstance(made, ChatGeneration):
        kind: Any = ChatGenerationChunk if isinstance(made, ChatGenerationChunk) else ChatGeneration
        message = _message(made.message, depth)
        return kind.model_construct(  # type: ignore[no-any-return]  # one of the two above
            message=message, text=message.content, generation_info=info, type=made.type
        )
    kind = GenerationChunk if isinstance(made, GenerationChunk) else Generation
    return kind(text=mask(made.text), generation_info=info)  # type: ignore[no-any-return]  # the same


def _result(result: LLMResult, depth: int = 0) -> LLMResult:
    return LLMResult(
        generations=[[_generation(one, depth) for one in many] for many in result.generations],
        llm_output=None if result.llm_output is None else _mapping(result.llm_output, depth),
        run=result.run,
    )


def _prompt(prompt: PromptValue, depth: int = 0) -> PromptValue:
    if isinstance(prompt, StringPromptValue):
        return StringPromptValue(text=mask(prompt.text))
    return ChatPromptValue(messages=[_message(one, depth) for one in prompt.to_messages()])


def _document(document: Document, _: int) -> Document:
    return Document(page_content=mask(document.page_content), metadata={})


_TEXTS_OF_ERRORS = frozenset({"partial", "raw", "llm_output", "problems"})


def _bare(error: SvcError) -> SvcError:
    """The same error without a traceback, a cause and what it holds of the model's answer."""
    made = type(error).__new__(type(error), *error.args)
    held = {name: masked(value) for name, value in vars(error).items() if name in _TEXTS_OF_ERRORS}
    made.__dict__.update({**vars(error), **held})
    return made


class MaskedError(Exception):
    """Stands for an error whose text may hold anything; it says the error's class."""


def masked_error(error: BaseException, _: int = 0) -> BaseException:
    """An error as records may hold it: without texts of prompt or answer, and without frames.

    A traceback's frames hold the prompt in their variables, so it has none.
    """
    if isinstance(error, SvcError):  # its text is written by us, and safe
        return _bare(error)
    if not isinstance(error, Exception):  # the ways in which a run is ended from outside
        return type(error)()
    return MaskedError(f"{type(error).__name__}: {mask(str(error))}")


_KINDS: tuple[tuple[Any, Callable[[Any, int], Any]], ...] = (
    (str, lambda value, _: mask(value)),
    ((int, float, complex), lambda _, __: "[a number]"),
    (BaseMessage, _message),
    (Mapping, _mapping),
    ((list, tuple, set, frozenset), _items),
    (Generation, _generation),
    (LLMResult, _result),
    (PromptValue, _prompt),
    (Document, _document),
    (BaseException, masked_error),
)
