"""What stands for a text in records: its length, and a hash that only this process can compute.

    [412 characters, hash 1f3a9c2b7d04]

The hash is keyed with bytes that are drawn when the process starts and never leave it. So equal
texts can be matched within one process and its forks, but nobody who reads a record can find a
short text (an age, a name) by hashing all candidates, as they could with a plain hash.

`masked` knows the values that LangChain hands to callbacks, and masks every text, number, boolean
and every name of a field that is not LangChain's own. What says how a run went (kinds of messages,
counts of tokens, the reason of the end) is kept only in the places that are known for it by their
parent, such as `usage_metadata`, and of words only those of a known set: a patient's record has a
`status` and a `temperature`, too, and a model may call a tool by any name it likes.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

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

from .._wire import WINDOWS
from ..errors import SvcError

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
    response resume role status stop structured_response text title token tool tool_call tool_calls
    tools type update usage masked request_id system_role own_stop timestamp tool_format
    extra_body finish_reason model_name rate_limit response_metadata usage_metadata
    """.split()  # noqa: SIM905  # a list of quoted words reads worse
)
_COUNTS = frozenset(
    """
    input_tokens output_tokens total_tokens prompt_tokens completion_tokens audio cache_read
    cache_creation reasoning total_cost cached cached_tokens reasoning_tokens
    """.split()  # noqa: SIM905  # the same
)
_TABLES_OF_COUNTS = frozenset(
    """
    token_usage usage usage_metadata input_token_details output_token_details
    prompt_tokens_details completion_tokens_details
    """.split()  # noqa: SIM905  # the same
)
# Of what stands beside an answer, and what a call was given: numbers, and words of a known set.
_NUMBERS_OF_ANSWERS = frozenset({"created", "retries", "waited"})
_LIMITS = frozenset({"limit", "remaining", "reset_after"})
_NUMBERS_OF_CALLS = frozenset(
    """
    temperature max_tokens n timeout deadline max_retries max_repairs seed stream
    parallel_tool_calls
    """.split()  # noqa: SIM905  # the same
)
_WORDS_OF_CALLS = frozenset({"_type", "model", "model_name", "system_role", "tool_format"})
_WORDS: Mapping[str, frozenset[str]] = {
    "finish_reason": frozenset(
        """
        stop length tool_calls content_filter malformed_tool_call max_tokens model_length
        function_call end_turn stop_sequence tool_use error
        """.split()  # noqa: SIM905  # the same
    ),
    "usage_source": frozenset({"service", "estimated"}),
    "model_provider": frozenset({"svc"}),
    "role": frozenset({"user", "assistant", "system", "developer", "tool", "function"}),
    "status": frozenset({"success", "error"}),
}
_LABEL = re.compile(r"[\w.:/-]{1,80}", re.ASCII)
_DEEPEST = 12
_MOST = 200


class _Offered:
    """The names of models and tools that the application has given to a run of this process."""

    def __init__(self) -> None:
        self._names: dict[str, None] = dict.fromkeys(WINDOWS)

    def add(self, *names: Any) -> None:
        for name in names:
            if isinstance(name, str) and name not in self._names:
                self._names[name] = None
        while len(self._names) > _MOST_OFFERED:
            self._names.pop(next(iter(self._names)), None)

    def __contains__(self, name: object) -> bool:
        return name in self._names


_MOST_OFFERED = 2_000
_OFFERED = _Offered()


def offered(event: str, serialized: Any, words: Mapping[str, Any]) -> None:
    """Takes note of the models and tools that a run begins with: their names may be told."""
    if event == "on_tool_start" and isinstance(serialized, Mapping):
        _OFFERED.add(serialized.get("name"))
    metadata = words.get("metadata") or {}
    _OFFERED.add(metadata.get("ls_model_name"), metadata.get("ls_provider"))
    params = words.get("invocation_params")
    if isinstance(params, Mapping):
        _OFFERED.add(params.get("model"), params.get("model_name"))
        tools = params.get("tools")
        for tool in tools if isinstance(tools, (list, tuple)) else ():
            inner = tool.get("function", tool) if isinstance(tool, Mapping) else {}
            _OFFERED.add(inner.get("name") if isinstance(inner, Mapping) else None)


def masked(value: Any, depth: int = 0) -> Any:
    """A value as records may hold it."""
    if value is None:
        return value
    if depth > _DEEPEST:
        return "[...]"
    for kind, make in _KINDS:
        if isinstance(value, kind):
            return make(value, depth)
    return f"[a {type(value).__name__}]"


def call_words(params: Any) -> Any:
    """The parameters of a call: its settings unchanged, and the rest masked."""
    if not isinstance(params, Mapping):
        return masked(params)
    kept = {
        name: value
        for name, value in params.items()
        if (name in _NUMBERS_OF_CALLS and isinstance(value, (int, float)))
        or (name in _WORDS_OF_CALLS and isinstance(value, str) and _LABEL.fullmatch(value))
    }
    return {**_mapping({k: v for k, v in params.items() if k not in kept}, 0), **kept}


def _mapping(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    return {
        (name if name in _NAMES else mask(str(name))): masked(held, depth + 1)
        for name, held in list(value.items())[:_MOST]
    }


def _word(name: str, value: Any) -> Any:
    """A value, unmasked where it is one of those known under this name, or was offered."""
    known = _WORDS.get(name, _OFFERED)
    return value if isinstance(value, str) and value in known else masked(value)


def _metadata(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    """What stands beside an answer."""
    made: dict[str, Any] = {}
    for name, held in list(value.items())[:_MOST]:
        if name in _TABLES_OF_COUNTS and isinstance(held, Mapping):
            made[name] = _counts(held)
        elif name == "rate_limit" and isinstance(held, Mapping):
            made[name] = {
                key: held[key] for key in _LIMITS & held.keys() if _is_count(key, held[key])
            }
        elif name in _COUNTS | _NUMBERS_OF_ANSWERS and _is_count(name, held):
            made[name] = held
        elif name in {"model", "model_name"}:
            if held in _OFFERED:  # else whoever counts goes by the name that was asked for
                made[name] = held
        elif name in _WORDS:
            made[name] = _word(name, held)
        else:
            made |= _mapping({name: held}, depth)
    return made


_MAY_BE_FRACTIONS = frozenset({"waited", "reset_after", "total_cost"})


def _is_count(name: str, value: Any) -> bool:
    kinds = (int, float) if name in _MAY_BE_FRACTIONS else int
    return isinstance(value, kinds) and not isinstance(value, bool)


def _counts(value: Mapping[Any, Any]) -> dict[str, Any]:
    """The numbers of a table of counts."""
    return {
        name: _counts(held) if isinstance(held, Mapping) else held
        for name, held in value.items()
        if (name in _COUNTS and _is_count(name, held))
        or (name in _TABLES_OF_COUNTS and isinstance(held, Mapping))
    }


def _items(value: Any, depth: int) -> list[Any]:
    return [masked(item, depth + 1) for item in list(value)[:_MOST]]


def _text(content: Any) -> str:
    return mask(content if isinstance(content, str) else repr(content) if content else "")


def _message(message: BaseMessage, depth: int = 0) -> BaseMessage:
    """A message of the same kind, with the same counts, and without its texts."""
    own: dict[str, Any] = {
        "content": _text(message.content),
        "id": masked(message.id),
        "name": _word("name", message.name),
        "additional_kwargs": _mapping(message.additional_kwargs, depth),
        "response_metadata": _metadata(message.response_metadata, depth),
    }
    if isinstance(message, AIMessage):
        usage = message.usage_metadata
        own["usage_metadata"] = None if usage is None else _counts(usage)
        own["tool_calls"] = [_tool_call(call) for call in message.tool_calls]
        own["invalid_tool_calls"] = [_tool_call(call) for call in message.invalid_tool_calls]
    if isinstance(message, ToolMessage):
        own["tool_call_id"] = masked(message.tool_call_id)
        own["status"] = _word("status", message.status)
        own["artifact"] = masked(message.artifact, depth)
    if isinstance(message, ChatMessage):
        own["role"] = _word("role", message.role)
    kind = type(message)
    position = getattr(message, "chunk_position", None)
    if position is not None:
        own["chunk_position"] = position
    return kind.model_construct(**{"type": message.type, **own})


def _tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    args: Any = mask(call["args"]) if isinstance(call["args"], str) else _arguments(call["args"])
    kind = "invalid_tool_call" if "error" in call else "tool_call"
    name = _word("name", call["name"])
    made = {"name": name, "args": args, "id": masked(call["id"]), "type": kind}
    return made | ({"error": mask(call["error"] or "")} if "error" in call else {})


def _arguments(args: Any) -> dict[str, str]:
    """The arguments of a call as one mask: their names are the model's words too."""
    return {"masked": mask(repr(args))} if args else {}


def _generation(made: Generation, depth: int = 0) -> Generation:
    info = None if made.generation_info is None else _metadata(made.generation_info, depth)
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
        llm_output=None if result.llm_output is None else _metadata(result.llm_output, depth),
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
    (bool, lambda _, __: "[a boolean]"),
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
