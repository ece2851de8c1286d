"""LangChain messages -> the wire's list of `{"role", "content"}` (v1-api.md, section 2).

The documents show the roles user and assistant, and a content that is one string. So system text
becomes user text where it stands, neighbours of one role become one turn, a person's `name` is
written before what they said, and content blocks are reduced to their text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
)

from .errors import SvcRequestError

SystemRole = Literal["user", "system"]

_JOINT = "\n\n"
# Blocks that say nothing to a model that only reads text.
_SILENT_BLOCKS = frozenset(
    {"reasoning", "thinking", "redacted_thinking", "tool_use", "tool_call", "tool_call_chunk"}
)
_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}


def to_wire(
    messages: Sequence[BaseMessage], *, system_role: SystemRole = "user"
) -> list[dict[str, str]]:
    """The conversation as the chat endpoint takes it.

    Args:
        messages: The conversation.
        system_role: "user" folds system text into the user turns, since a system role is not
            documented; "system" sends it as it is.

    Raises:
        SvcRequestError: A message cannot be said in text, or nothing is left to send.
    """
    turns: list[tuple[str, list[str]]] = []
    for message in messages:
        text = _text(message)
        if not text:
            continue
        role = _role(message, system_role)
        if turns and turns[-1][0] == role:
            turns[-1][1].append(text)
        else:
            turns.append((role, [text]))
    if not turns:
        raise SvcRequestError("There is nothing to send: no message holds any text")
    return [{"role": role, "content": _JOINT.join(texts)} for role, texts in turns]


def _role(message: BaseMessage, system_role: SystemRole) -> str:
    if isinstance(message, AIMessage):
        return "assistant"
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
        "assistant said. Pass HumanMessage, AIMessage, SystemMessage or ChatMessage"
    )


def _text(message: BaseMessage) -> str:
    content = message.content
    text = content if isinstance(content, str) else "".join(_block_texts(content))
    if text and message.name and isinstance(message, HumanMessage):
        return f"{message.name}: {text}"
    return text


def _block_texts(content: Iterable[str | dict[str, object]]) -> Iterable[str]:
    for block in content:
        if isinstance(block, str):
            yield block
            continue
        kind = block.get("type", "text")
        text = block.get("text")
        if isinstance(text, str):
            yield text
        elif kind not in _SILENT_BLOCKS:
            raise _unsendable(kind)


def _unsendable(kind: object) -> SvcRequestError:
    if isinstance(kind, str) and "image" in kind:
        return SvcRequestError(
            f"A message holds an image (a block of type {kind!r}), and the chat endpoint takes "
            "text only. Have the image described first (POST /api/vision takes base64 or a URL, "
            "with the task describe) and send the description as text"
        )
    return SvcRequestError(
        f"A message holds a content block of type {kind!r}; the chat endpoint takes text only. "
        "Send its content as a text block"
    )
