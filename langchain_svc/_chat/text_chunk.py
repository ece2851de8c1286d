"""Chunks of plain text and of a call's arguments, as nearly all of a stream are, by copying.

LangChain's constructors check what is known to be right here: they take half of what a streamed
token costs. Of a piece of arguments they try each beginning as JSON, which costs 17 ms a kB. So a
chunk is copied from one that they made. Where the copy would differ from theirs in anything, since
pydantic or LangChain has changed, theirs is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessageChunk, ToolCallChunk
from langchain_core.messages.tool import invalid_tool_call, tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk

_new, _set = object.__new__, object.__setattr__


def constructed(text: str, calls: Sequence[ToolCallChunk] = ()) -> ChatGenerationChunk:
    """A chunk by LangChain's constructors."""
    fields: dict[str, Any] = {"tool_call_chunks": list(calls)} if calls else {}
    return ChatGenerationChunk(message=AIMessageChunk(content=text, **fields))


_GENERATION = constructed("")
_MESSAGE = _GENERATION.message
# What no two chunks may share.
_OWN = {name: type(value) for name, value in vars(_MESSAGE).items() if value in ([], {})}


def is_middle(call: ToolCallChunk) -> bool:
    """Whether it is arguments that are not the beginning of an object, and so none."""
    return (call["args"] or "").lstrip()[:1] not in ("", "{")


def copied(text: str, calls: Sequence[ToolCallChunk] = ()) -> ChatGenerationChunk:
    """The same by copying one; the calls are pieces of arguments (`is_middle`)."""
    fields = {**vars(_MESSAGE), "content": text}
    for name, empty in _OWN.items():
        fields[name] = empty()
    message = _like(_MESSAGE, fields, {})
    if calls:
        fields["tool_call_chunks"] = list(calls)
        fields["invalid_tool_calls"] = [
            invalid_tool_call(name=call["name"], args=call["args"], id=call["id"]) for call in calls
        ]
        set_: set[str] = message.__pydantic_fields_set__
        set_.update(("tool_call_chunks", "tool_calls", "invalid_tool_calls"))
    made: ChatGenerationChunk = _like(
        _GENERATION, {**vars(_GENERATION), "text": text, "message": message}, None
    )
    return made


def _like(made: Any, fields: dict[str, Any], extra: dict[str, Any] | None) -> Any:
    one = _new(type(made))
    _set(one, "__dict__", fields)
    _set(one, "__pydantic_fields_set__", set(made.__pydantic_fields_set__))
    _set(one, "__pydantic_extra__", extra)
    _set(one, "__pydantic_private__", None)
    return one


def _state(chunk: ChatGenerationChunk) -> list[Any]:
    """All that a chunk holds, and what is made of it."""
    message: Any = chunk.message
    states = [one.__getstate__() for one in (chunk, message)]
    return [*states, chunk.model_dump(), repr(chunk + chunk)]


def _is_exact() -> bool:
    calls = [tool_call_chunk(args='": 1', index=0)]
    try:
        one, other = copied("a").message, copied("a").message
        shared = any(getattr(one, name) is getattr(other, name) for name in _OWN)
        return not shared and all(
            _state(copied(*given)) == _state(constructed(*given)) for given in (("a",), ("", calls))
        )
    except Exception:  # noqa: BLE001  # whatever has changed
        return False


text_chunk = copied if _is_exact() else constructed
