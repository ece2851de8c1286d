"""What stands for a text in records: its length, and a hash that only this process can compute.

    [412 characters, hash 1f3a9c2b7d04]

The hash is keyed with bytes that never leave the process: nobody can find a short text (an age, a
name) by hashing all candidates, as they could with a plain hash.

`masked` masks every text, number, boolean and name of a field that is not LangChain's own. What
says how a run went is kept only under a parent that is known for it, such as `usage_metadata`, and
of words only a known set: a patient's record has a `status` and a `temperature`, too.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

from langchain_core.documents import Document
from langchain_core.messages import BaseMessage
from langchain_core.outputs import Generation, LLMResult
from langchain_core.prompt_values import PromptValue
from pydantic import BaseModel

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
    digest = blake2b(
        text.encode("utf-8", "surrogatepass"), key=_KEY, digest_size=6
    ).hexdigest()
    return _Mask(
        f"[{len(text):,} character{'' if len(text) == 1 else 's'}, hash {digest}]"
    )


def words(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.split())


# Names of fields that LangChain, LangGraph and this package use. Any other may be a model's word.
_NAMES = words("""
    additional_kwargs agent_outcome answer args arguments artifact chat_history content context
    documents error event generations goto graph input inputs id index intermediate_steps invalid
    jump_to kwargs lc llm_output message messages metadata model name options output outputs
    page_content parsed parsing_error prompt prompts query question raw reason reasoning_content
    response resume role status stop structured_response text title token tool tool_call tool_calls
    tools type update usage masked request_id system_role own_stop timestamp tool_format
    extra_body finish_reason model_name rate_limit response_metadata usage_metadata
""")
# What is told of a message beside its content: counts, words of a known set, and tables of both.
_TABLES = words("""
    token_usage usage usage_metadata input_token_details output_token_details
    prompt_tokens_details completion_tokens_details rate_limit
""")
_COUNTS = words("""
    input_tokens output_tokens total_tokens prompt_tokens completion_tokens audio cache_read
    cache_creation reasoning cached cached_tokens reasoning_tokens created retries limit remaining
""")
_AMOUNTS = words("total_cost waited reset_after")
_WORDS: Mapping[str, frozenset[str]] = {
    "finish_reason": words("""
        stop length tool_calls content_filter malformed_tool_call max_tokens model_length
        function_call end_turn stop_sequence tool_use error
    """),
    "usage_source": words("service estimated"),
    "model_provider": words("svc"),
    "role": words("user assistant system developer tool function"),
    "status": words("success error"),
    "system_role": words("user system"),
    "tool_format": words("tags fenced"),
    "on_cut": words("continue mark error"),
}
# What is told of a call's settings.
_NUMBERS_OF_CALLS = words("""
    temperature max_tokens n timeout deadline max_retries max_repairs
    max_continuations continuations seed stream parallel_tool_calls
""")
_DEEPEST = 12
_MOST = 200

# The names of models and tools that the application has given to a run of this process.
_OFFERED: dict[Any, None] = dict.fromkeys(WINDOWS)
_MOST_OFFERED = 2_000


def offered(event: str, serialized: Any, given: Mapping[str, Any]) -> None:
    """Takes note of the models and tools that a run begins with: their names may be told."""
    metadata, params = given.get("metadata") or {}, given.get("invocation_params")
    if not isinstance(params, Mapping):
        params = {}
    names = [metadata.get("ls_model_name"), metadata.get("ls_provider")]
    names += [params.get("model"), params.get("model_name")]
    tools = params.get("tools")
    for tool in tools if isinstance(tools, (list, tuple)) else ():
        inner = tool.get("function", tool) if isinstance(tool, Mapping) else None
        names.append(inner.get("name") if isinstance(inner, Mapping) else None)
    if event == "on_tool_start" and isinstance(serialized, Mapping):
        names.append(serialized.get("name"))
    _OFFERED.update(dict.fromkeys(name for name in names if isinstance(name, str)))
    if len(_OFFERED) > _MOST_OFFERED:
        for name in list(_OFFERED)[:-_MOST_OFFERED]:
            _OFFERED.pop(name, None)


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


def call_settings(params: Any) -> Any:
    """The parameters of a call: its settings unchanged, and the rest masked."""
    if not isinstance(params, Mapping):
        return masked(params)
    kept = {
        name: held
        for name, held in params.items()
        if _is_told(name, held)
        or name == "_type"  # of the model's class
        or (name in _NUMBERS_OF_CALLS and isinstance(held, (int, float)))
    }
    return _mapping({k: v for k, v in params.items() if k not in kept}, 0) | kept


def _mapping(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    return {
        (name if name in _NAMES else mask(str(name))): masked(held, depth + 1)
        for name, held in list(value.items())[:_MOST]
    }


# Where the model's name is not told, whoever counts goes by the one that was asked for.
_MODELS = words("model model_name")


def _is_told(name: str, value: Any) -> bool:
    if isinstance(value, str):
        return value in _WORDS.get(name, _OFFERED if name in _MODELS else ())
    kinds = (int, float) if name in _AMOUNTS else int
    return (
        name in _COUNTS | _AMOUNTS
        and isinstance(value, kinds)
        and not isinstance(value, bool)
    )


def _table(value: Mapping[Any, Any], _: int = 0) -> dict[str, Any]:
    """What may be told of a table, and nothing else of it."""
    return {
        name: _table(held) if isinstance(held, Mapping) else held
        for name, held in value.items()
        if (name in _TABLES if isinstance(held, Mapping) else _is_told(name, held))
    }


def _metadata(value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    """What stands beside an answer."""
    told = _table(value)
    rest = {
        name: held for name, held in value.items() if name not in told.keys() | _MODELS
    }
    return _mapping(rest, depth) | told


def _text(value: Any) -> str:
    return mask(value if isinstance(value, str) else repr(value)) if value else ""


def _tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    args = _text(
        call["args"]
    )  # one mask for all, since their names are the model's words too
    made = {"name": _name(call["name"]), "id": masked(call["id"])}
    if "error" in call:
        return made | {
            "args": args,
            "error": _text(call["error"]),
            "type": "invalid_tool_call",
        }
    return made | {"args": {"masked": args} if args else {}, "type": "tool_call"}


def _name(value: Any, _: int = 0) -> Any:
    return value if value in _OFFERED else masked(value)


# How each field of LangChain's messages and results is told; those not listed are left out.
_FIELDS: dict[str, Callable[[Any, int], Any]] = {
    **dict.fromkeys(("type", "chunk_position", "run"), lambda held, _: held),
    **dict.fromkeys(("id", "tool_call_id", "artifact", "text", "page_content"), masked),
    **dict.fromkeys(("messages", "message", "generations"), masked),
    **dict.fromkeys(("response_metadata", "generation_info", "llm_output"), _metadata),
    **dict.fromkeys(
        ("tool_calls", "invalid_tool_calls"), lambda held, _: [*map(_tool_call, held)]
    ),
    "content": lambda held, _: _text(held),
    "additional_kwargs": _mapping,
    "usage_metadata": _table,
    "name": _name,
    "status": lambda held, _: held if _is_told("status", held) else masked(held),
    "role": lambda held, _: held if _is_told("role", held) else masked(held),
}


def _record(value: BaseModel, depth: int) -> BaseModel:
    """An object of the same kind, with the same counts, and without its texts."""
    given = {
        name: getattr(value, name)
        for name in type(value).model_fields
        if name in _FIELDS
    }
    return value.model_construct(
        **{
            name: None if v is None else _FIELDS[name](v, depth)
            for name, v in given.items()
        }
    )


class MaskedError(Exception):
    """Stands for an error whose text may hold anything; it says the error's class."""


def masked_error(error: BaseException, _: int = 0) -> BaseException:
    """An error as records may hold it: without texts of prompt or answer, and without frames.

    A traceback's frames hold the prompt in their variables, so it has none.
    """
    if isinstance(
        error, SvcError
    ):  # its own text is ours, and safe; what it holds may not be
        made = type(error).__new__(type(error), *error.args)
        for name, held in vars(error).items():
            made.__dict__[name] = masked(held) if name in _TEXTS_OF_ERRORS else held
        return made
    if not isinstance(
        error, Exception
    ):  # the ways in which a run is ended from outside
        return type(error)()
    return MaskedError(f"{type(error).__name__}: {mask(str(error))}")


_TEXTS_OF_ERRORS = words("partial raw llm_output problems")
_KINDS: tuple[tuple[Any, Callable[[Any, int], Any]], ...] = (
    (str, lambda value, _: mask(value)),
    (bool, lambda _, __: "[a boolean]"),
    ((int, float, complex), lambda _, __: "[a number]"),
    ((BaseMessage, Generation, LLMResult, PromptValue, Document), _record),
    (Mapping, _mapping),
    (
        (list, tuple, set, frozenset),
        lambda v, depth: [masked(i, depth + 1) for i in [*v][:_MOST]],
    ),
    (BaseException, masked_error),
)
