"""What stands for a text in records: its length, and a hash that only this process can compute.

    [412 characters, hash 1f3a9c2b7d04]

The hash is keyed with bytes that never leave the process: nobody can find a short text (an age, a
name) by hashing all candidates, as they could with a plain hash.

`masked` masks every text, number, boolean and name of a field that is not LangChain's own. A value
that says how a run went stays readable only under a parent that is known for it, such as
`usage_metadata`, and a word only if it is one of a known set: a patient's record has a `status`
and a `temperature`, too.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from hashlib import blake2b
from itertools import islice
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.outputs import Generation, LLMResult
from langchain_core.prompt_values import PromptValue
from pydantic import BaseModel

from .._base.safe_errors import type_text
from .._wire import WINDOWS, v1
from ..errors import SvcError

_KEY = secrets.token_bytes(32)


class _Mask(str):
    """A text that stands for another, and needs no mask of its own."""

    __slots__ = ()


PIECE = _Mask("[text]")
"""Stands for a piece of a stream: the lengths of its pieces could give a text away."""


def mask(text: str) -> str:
    """What stands for a text. An empty text stays empty, and a mask stays as it is."""
    if not text or isinstance(text, _Mask):
        return text
    data = text.encode("utf-8", "surrogatepass")
    digest = blake2b(data, key=_KEY, digest_size=6).hexdigest()
    unit = "character" if len(text) == 1 else "characters"
    return _Mask(f"[{len(text):,} {unit}, hash {digest}]")


def word_set(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.split())


# Names of fields that LangChain, LangGraph and this package use. Any other may be a model's word.
_NAMES = word_set("""
    additional_kwargs agent_outcome answer args arguments artifact chat_history content context
    documents error event generations goto graph input inputs id index intermediate_steps invalid
    jump_to kwargs lc llm_output message messages metadata model name options output outputs
    page_content parsed parsing_error prompt prompts query question raw reason reasoning_content
    response resume role status stop structured_response text title token tool tool_call tool_calls
    tools type update usage masked request_id system_role own_stop timestamp tool_format
    extra_body finish_reason model_name rate_limit response_metadata usage_metadata
""")
# What stays readable of a message beside its content: counts, words of a known set, and tables of
# both.
_TABLES = word_set("""
    token_usage usage usage_metadata input_token_details output_token_details
    prompt_tokens_details completion_tokens_details rate_limit
""")
_COUNTS = word_set("""
    input_tokens output_tokens total_tokens prompt_tokens completion_tokens audio cache_read
    cache_creation reasoning cached cached_tokens reasoning_tokens created retries limit remaining
""")
_AMOUNTS = word_set("total_cost waited reset_after")
_WORDS: Mapping[str, frozenset[str]] = {
    "finish_reason": word_set("""
        stop length tool_calls content_filter malformed_tool_call max_tokens model_length
        function_call end_turn stop_sequence tool_use error
    """),
    "usage_source": word_set("service estimated"),
    "model_provider": word_set("svc"),
    "role": word_set("user assistant system developer tool function"),
    "status": word_set("success error"),
    "system_role": word_set("user system"),
    "tool_format": word_set("tags fenced"),
    "on_cut": word_set("continue mark error"),
    "continue_by": word_set("ask prefill"),
}
# The settings of a call whose numbers stay readable.
_NUMBERS_OF_CALLS = frozenset(v1.CHAT_SETTINGS) | word_set("""
    n timeout deadline max_retries max_repairs
    max_continuations continuations seed stream parallel_tool_calls
""")
_DEEPEST = 12
_MOST_ITEMS = 200

# The names of models and tools that the application has given to a run of this process. Those of
# the documented models are harmless beside them.
_OFFERED: dict[object, None] = {}
_MOST_OFFERED = 2_000


def remember_offered(
    event: str, serialized: object, arguments: Mapping[str, Any]
) -> None:
    """Remember the models and tools that a run begins with: their names are not masked."""
    names = [*_names_of_call(arguments)]
    if event == "on_tool_start" and isinstance(serialized, Mapping):
        names.append(serialized.get("name"))
    _OFFERED.update(dict.fromkeys(name for name in names if isinstance(name, str)))
    if len(_OFFERED) > _MOST_OFFERED:
        for name in list(_OFFERED)[:-_MOST_OFFERED]:
            _OFFERED.pop(name, None)


def _is_offered(name: object) -> bool:
    return name in _OFFERED or name in WINDOWS


def _names_of_call(arguments: Mapping[str, Any]) -> Iterator[object]:
    """The names of the model and the tools in the arguments of an event."""
    metadata = arguments.get("metadata") or {}
    yield metadata.get("ls_model_name")
    yield metadata.get("ls_provider")
    params = arguments.get("invocation_params")
    if not isinstance(params, Mapping):
        return
    yield params.get("model")
    yield params.get("model_name")
    tools = params.get("tools")
    if not isinstance(tools, (list, tuple)):
        return
    for tool in tools:
        if isinstance(tool, Mapping):
            function = tool.get("function", tool)
            if isinstance(function, Mapping):
                yield function.get("name")


def masked(value: object, depth: int = 0) -> object:
    """A value as records may hold it."""
    if value is None:
        return value
    if depth > _DEEPEST:
        return "[...]"
    for kind, mask_value in _MASKS:
        if isinstance(value, kind):
            return mask_value(value, depth)
    return f"[{type_text(value)}]"


def call_settings(params: object) -> object:
    """The parameters of a call: its settings unchanged, and the rest masked."""
    if not isinstance(params, Mapping):
        return masked(params)
    settings = {
        name: value for name, value in params.items() if _is_setting(name, value)
    }
    others = {name: value for name, value in params.items() if name not in settings}
    return _mapping(others, 0) | settings


def _is_setting(name: str, value: object) -> bool:
    if name == "_type":  # of the model's class
        return True
    if name in _NUMBERS_OF_CALLS and isinstance(value, (int, float)):
        return True
    return _is_harmless(name, value)


def _mapping(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, item in list(value.items())[:_MOST_ITEMS]:
        key = name if name in _NAMES else mask(str(name))
        fields[key] = masked(item, depth + 1)
    return fields


# Where an answer does not name its model, usage is counted by the model that was asked for.
_MODELS = word_set("model model_name")


def _is_harmless(name: str, value: object) -> bool:
    """Whether a field says how a call went, and nothing of its texts."""
    if isinstance(value, str):
        if name in _MODELS:
            return _is_offered(value)
        return value in _WORDS.get(name, ())
    if isinstance(value, bool):
        return False
    if name in _AMOUNTS:
        return isinstance(value, (int, float))
    return name in _COUNTS and isinstance(value, int)


def _table(value: Mapping[Any, Any], _: int = 0) -> dict[str, Any]:
    """The harmless fields of a table and of the tables in it, and nothing else."""
    fields: dict[str, Any] = {}
    for name, item in value.items():
        if isinstance(item, Mapping):
            if name in _TABLES:
                fields[name] = _table(item)
        elif _is_harmless(name, item):
            fields[name] = item
    return fields


def _metadata(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    """What stands beside an answer; a model's name only where the application offered it."""
    harmless = _table(value)
    others = {
        name: item
        for name, item in value.items()
        if name not in harmless and name not in _MODELS
    }
    return _mapping(others, depth) | harmless


def _text(value: object, _: int = 0) -> str:
    if not value:
        return ""
    if isinstance(value, str):
        return mask(value)
    return mask(repr(value))


def _tool_call(call: Mapping[str, Any]) -> dict[str, object]:
    # One mask for all arguments, since their names are the model's words too.
    args = _text(call["args"])
    fields: dict[str, object] = {
        "name": _name(call["name"]),
        "id": masked(call["id"]),
    }
    if "error" in call:
        fields["args"] = args
        fields["error"] = _text(call["error"])
        fields["type"] = "invalid_tool_call"
    else:
        fields["args"] = {"masked": args} if args else {}
        fields["type"] = "tool_call"
    return fields


def _tool_calls(calls: Iterable[Mapping[str, Any]], _: int) -> list[dict[str, object]]:
    return [*map(_tool_call, calls)]


def _name(value: object, _: int = 0) -> object:
    if _is_offered(value):
        return value
    return masked(value)


def _unchanged(value: object, _: int) -> object:
    return value


def _known_word(name: str, value: object, _: int) -> object:
    """A field's value, masked unless it is of the field's known words."""
    if _is_harmless(name, value):
        return value
    return masked(value)


# How each field of LangChain's messages and results is masked; those not listed are left out.
_FIELDS: dict[str, Callable[[Any, int], object]] = {
    "type": _unchanged,
    "chunk_position": _unchanged,
    "run": _unchanged,
    "id": masked,
    "tool_call_id": masked,
    "artifact": masked,
    "text": masked,
    "page_content": masked,
    "messages": masked,
    "message": masked,
    "generations": masked,
    "response_metadata": _metadata,
    "generation_info": _metadata,
    "llm_output": _metadata,
    "tool_calls": _tool_calls,
    "invalid_tool_calls": _tool_calls,
    "content": _text,
    "additional_kwargs": _mapping,
    "usage_metadata": _table,
    "name": _name,
    "status": partial(_known_word, "status"),
    "role": partial(_known_word, "role"),
}


def _record(value: BaseModel, depth: int) -> BaseModel:
    """An object of the same kind, with the same counts, and without its texts."""
    fields: dict[str, Any] = {}
    for name in type(value).model_fields:
        if name in _FIELDS:
            item = getattr(value, name)
            fields[name] = None if item is None else _FIELDS[name](item, depth)
    return value.model_construct(**fields)


def _items(values: Iterable[object], depth: int) -> list[object]:
    return [masked(value, depth + 1) for value in islice(values, _MOST_ITEMS)]


class MaskedError(Exception):
    """Stands for an error whose text may hold anything; it says the error's class."""


_TEXTS_OF_ERRORS = word_set("partial raw llm_output problems")


def masked_error(error: BaseException, _: int = 0) -> BaseException:
    """An error as records may hold it: without texts of prompt or answer, and without frames.

    A traceback's frames hold the prompt in their variables, so it has none.
    """
    if isinstance(error, SvcError):
        # This package wrote its message, which is safe. The values that it holds may not be.
        copied = type(error).__new__(type(error), *error.args)
        copied.__dict__.update(vars(error))
        for name in _TEXTS_OF_ERRORS & vars(error).keys():
            copied.__dict__[name] = masked(vars(error)[name])
        return copied
    if not isinstance(error, Exception):
        return type(
            error
        )()  # KeyboardInterrupt and its like: a run is ended from outside
    return MaskedError(f"{type(error).__name__}: {mask(str(error))}")


_MASKS: tuple[
    tuple[type[Any] | tuple[type[Any], ...], Callable[[Any, int], object]], ...
] = (
    (str, lambda text, _: mask(text)),
    (bool, lambda _, __: "[a boolean]"),
    ((int, float, complex), lambda _, __: "[a number]"),
    ((BaseMessage, Generation, LLMResult, PromptValue, Document), _record),
    (Mapping, _mapping),
    ((list, tuple, set, frozenset), _items),
    (BaseException, masked_error),
)
