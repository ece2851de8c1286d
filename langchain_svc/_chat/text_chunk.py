"""A chunk of plain text, as nearly every one of a stream is, in a quarter of the time.

LangChain's constructors check what is known to be right here: they take half of what a streamed
token costs. So a chunk is copied from one that they made. Where the copy would differ from theirs
in anything, since pydantic or LangChain has changed, theirs is used.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk

_new, _set = object.__new__, object.__setattr__


def constructed(text: str) -> ChatGenerationChunk:
    """A chunk by LangChain's constructors."""
    return ChatGenerationChunk(message=AIMessageChunk(content=text))


_GENERATION = constructed("")
_MESSAGE = _GENERATION.message
_LISTS = [name for name, value in vars(_MESSAGE).items() if value == []]
_DICTS = [name for name, value in vars(_MESSAGE).items() if value == {}]


def copied(text: str) -> ChatGenerationChunk:
    """The same by copying one."""
    fields = {**vars(_MESSAGE), "content": text}
    for name in _LISTS:
        fields[name] = []
    for name in _DICTS:
        fields[name] = {}
    message = _like(_MESSAGE, fields, {})
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
    try:
        one, other = copied("a"), copied("a")
        return _state(one) == _state(constructed("a")) and not _shared(one.message, other.message)
    except Exception:  # noqa: BLE001  # whatever has changed
        return False


def _shared(one: Any, other: Any) -> bool:
    return any(getattr(one, name) is getattr(other, name) for name in (*_LISTS, *_DICTS))


text_chunk = copied if _is_exact() else constructed
