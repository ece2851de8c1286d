"""Streamed chunks that are copied from one of LangChain's, which is faster than making each.

LangChain's constructors check what is known to be right here: they take half of what a streamed
token costs. Of a piece of arguments they try each beginning as JSON, which costs 17 ms a kB. So a
chunk is copied from one that they made. A self-test at import compares a copy with what they make:
where the two differ in anything, since pydantic or LangChain has changed, theirs is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from langchain_core.messages import AIMessageChunk, ToolCallChunk
from langchain_core.messages.tool import invalid_tool_call, tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk
from pydantic import BaseModel

ModelT = TypeVar("ModelT", bound=BaseModel)


def construct_chunk(
    text: str, calls: Sequence[ToolCallChunk] = ()
) -> ChatGenerationChunk:
    """A chunk by LangChain's constructors."""
    fields: dict[str, Any] = {}
    if calls:
        fields["tool_call_chunks"] = list(calls)
    return ChatGenerationChunk(message=AIMessageChunk(content=text, **fields))


_CHUNK = construct_chunk("")
_MESSAGE = _CHUNK.message
# The lists and dicts of a message, which no two messages may share.
_EMPTY_FIELDS = {
    name: type(value) for name, value in vars(_MESSAGE).items() if value in ([], {})
}
_CALL_FIELDS = ("tool_call_chunks", "tool_calls", "invalid_tool_calls")


def is_middle(call: ToolCallChunk) -> bool:
    """Whether the arguments are no beginning of an object, so that LangChain reads none in them."""
    return (call["args"] or "").lstrip()[:1] not in ("", "{")


def copy_chunk(text: str, calls: Sequence[ToolCallChunk] = ()) -> ChatGenerationChunk:
    """The same chunk by copying one; the calls are pieces of arguments (`is_middle`)."""
    fields = vars(_MESSAGE).copy()
    for name, empty in _EMPTY_FIELDS.items():
        fields[name] = empty()
    fields["content"] = text
    message = _copy_model(_MESSAGE, fields, {})
    if calls:
        fields["tool_call_chunks"] = list(calls)
        fields["invalid_tool_calls"] = [
            invalid_tool_call(name=call["name"], args=call["args"], id=call["id"])
            for call in calls
        ]
        message.__pydantic_fields_set__.update(_CALL_FIELDS)
    chunk_fields = vars(_CHUNK).copy()
    chunk_fields["text"] = text
    chunk_fields["message"] = message
    return _copy_model(_CHUNK, chunk_fields, None)


def _copy_model(
    model: ModelT, fields: dict[str, Any], extra: dict[str, Any] | None
) -> ModelT:
    """An object of the model's class with these fields, without the checks of its constructor."""
    copied = object.__new__(type(model))
    set_attribute = object.__setattr__  # pydantic's own would check the names
    set_attribute(copied, "__dict__", fields)
    set_attribute(
        copied, "__pydantic_fields_set__", model.__pydantic_fields_set__.copy()
    )
    set_attribute(copied, "__pydantic_extra__", extra)
    set_attribute(copied, "__pydantic_private__", None)
    return copied


def _states(chunk: ChatGenerationChunk) -> list[dict[Any, Any]]:
    """Everything that a chunk and its message hold."""
    return [chunk.__getstate__(), chunk.message.__getstate__()]


def _is_exact() -> bool:
    """Whether copies are what the constructors make, and share nothing with each other."""
    arguments = [tool_call_chunk(args='": 1', index=0)]
    try:
        first = copy_chunk("a")
        second = copy_chunk("a")
        for name in _EMPTY_FIELDS:
            if getattr(first.message, name) is getattr(second.message, name):
                return False
        if _states(first) != _states(construct_chunk("a")):
            return False
        with_calls = copy_chunk("", arguments)
        return _states(with_calls) == _states(construct_chunk("", arguments))
    except Exception:  # noqa: BLE001  # whatever has changed
        return False


text_chunk = copy_chunk
if not _is_exact():
    text_chunk = construct_chunk
