"""LangChain messages -> the wire's list of `{"role", "content"}` (v1-api.md, section 2).

The documents show the roles user and assistant, and a content that is one string. So system text
becomes user text where it stands, neighbours of one role become one turn, a person's `name` is
written before what they said, and content blocks are reduced to their text. Calls and results of
tools are written as the tool instructions ask for them (`_toolcalls/render.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Literal

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from ._toolcalls.render import TAGS, Format, PastCall, Result, calls_text, results_text
from .errors import SvcRequestError

SystemRole = Literal["user", "system"]
Turns = list[dict[str, str]]

_JOINT = "\n\n"
# Blocks that say nothing to a model that only reads text; calls are read from `tool_calls`.
_SILENT_BLOCKS = frozenset(
    {"reasoning", "thinking", "redacted_thinking", "tool_use", "tool_call", "tool_call_chunk"}
)
_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}


def to_wire(
    messages: Sequence[BaseMessage],
    *,
    system_role: SystemRole = "user",
    preamble: str = "",
    tool_format: Format = TAGS,
) -> Turns:
    """The conversation as the chat endpoint takes it.

    Args:
        messages: The conversation.
        system_role: "user" folds system text into the user turns, since a system role is not
            documented; "system" sends it as it is.
        preamble: Instructions that stand after the leading system text.
        tool_format: How calls of tools are written.

    Raises:
        SvcRequestError: A message cannot be said in text, or nothing is left to send.
    """
    parts = list(_said(messages, system_role, tool_format))
    if not any(text for _, text in parts):
        raise SvcRequestError("There is nothing to send: no message holds any text")
    if preamble:
        leading = sum(1 for _ in takewhile(lambda m: isinstance(m, SystemMessage), messages))
        parts.insert(leading, (system_role, preamble))
    turns: list[tuple[str, list[str]]] = []
    for role, text in parts:
        if not text:
            continue
        if turns and turns[-1][0] == role:
            turns[-1][1].append(text)
        else:
            turns.append((role, [text]))
    return [{"role": role, "content": _JOINT.join(texts)} for role, texts in turns]


def _said(
    messages: Sequence[BaseMessage], system_role: SystemRole, tool_format: Format
) -> Iterator[tuple[str, str]]:
    """Role and text of each message; the results of one round of calls are said together."""
    names: dict[str, str] = {}
    results: list[Result] = []
    for message in messages:
        if isinstance(message, (ToolMessage, FunctionMessage)):
            results.append(_result(message, names))
            continue
        if results:
            yield "user", results_text(results)
            results = []
        if isinstance(message, AIMessage):
            names.update({call["id"]: call["name"] for call in message.tool_calls if call["id"]})
            yield "assistant", calls_text(_text(message), _past_calls(message), tool_format)
        else:
            yield _role(message, system_role), _text(message)
    if results:
        yield "user", results_text(results)


def _result(message: ToolMessage | FunctionMessage, names: Mapping[str, str]) -> Result:
    id_ = message.tool_call_id if isinstance(message, ToolMessage) else ""
    return Result(
        content=_text(message),
        name=message.name or names.get(id_, ""),
        id=id_,
        failed=isinstance(message, ToolMessage) and message.status == "error",
    )


def _past_calls(message: AIMessage) -> list[PastCall]:
    calls = [PastCall(call["name"], call["args"]) for call in message.tool_calls]
    # The model sees what it wrote wrongly, so that the error which follows makes sense to it.
    calls += [
        PastCall(bad.get("name") or "", bad.get("args") or "") for bad in message.invalid_tool_calls
    ]
    if calls or isinstance(message.content, str):
        return calls
    return list(_foreign_calls(message.content))


def _foreign_calls(content: Iterable[str | dict[str, Any]]) -> Iterator[PastCall]:
    """Calls in content blocks of other providers, where a message has no `tool_calls`."""
    for block in content:
        if isinstance(block, dict) and block.get("type") in {"tool_use", "tool_call"}:
            arguments = block.get("input", block.get("args"))
            yield PastCall(str(block.get("name", "")), arguments or {})


def _role(message: BaseMessage, system_role: SystemRole) -> str:
    if isinstance(message, HumanMessage):
        return "user"
    if isinstance(message, SystemMessage):
        return system_role
    if isinstance(message, ChatMessage):
        role = message.role.lower()
        if role in {"system", "developer"}:
            return system_role
        if role in _ROLES:
            return _ROLES[role]
        raise SvcRequestError(
            f"A ChatMessage has the role {message.role!r}; the chat endpoint knows "
            f"{sorted(_ROLES)} and, folded into a user turn, system"
        )
    raise SvcRequestError(
        f"A {type(message).__name__} cannot be sent: the chat endpoint takes what a user and an "
        "assistant said. Pass HumanMessage, AIMessage, SystemMessage, ToolMessage or ChatMessage"
    )


def _text(message: BaseMessage) -> str:
    content = message.content
    text = content if isinstance(content, str) else "".join(_block_texts(content))
    if text and message.name and isinstance(message, HumanMessage):
        return f"{message.name}: {text}"
    return text


def _block_texts(content: Iterable[str | dict[str, Any]]) -> Iterator[str]:
    for block in content:
        if isinstance(block, str):
            yield block
            continue
        kind = block.get("type", "text")
        text = block.get("text")
        if isinstance(text, str):
            yield text
        elif not isinstance(kind, str) or kind not in _SILENT_BLOCKS:
            raise _unsendable(kind if isinstance(kind, str) else type(kind).__name__)


def _unsendable(kind: str) -> SvcRequestError:
    if "image" in kind:
        return SvcRequestError(
            f"A message holds an image (a block of type {kind!r}), and the chat endpoint takes "
            'text only. Have the image described first: ChatSvc(image_inputs="describe") does it '
            "for each image of a message, through POST /api/vision, which needs base_url "
            "(SVC_BASE_URL)"
        )
    return SvcRequestError(
        f"A message holds a content block of type {kind!r}; the chat endpoint takes text only. "
        "Send its content as a text block"
    )
