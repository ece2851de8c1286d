"""LangChain messages -> the wire's list of `{"role", "content"}` (v1 API, section 2).

The documents show the roles user and assistant, and a content that is one string. Whoever reads the
wire finds the very messages that LangChain had, whatever was said in them (`_toolcalls/render.py`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, takewhile
from operator import attrgetter, itemgetter
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
from langchain_core.utils.json import parse_partial_json

from .._calls import (
    TAGS,
    Format,
    PastCall,
    Result,
    calls_text,
    defuse,
    image_text,
    render_json,
    results_text,
    system_text,
    user_text,
)
from ..errors import SvcRequestError

SystemRole = Literal["user", "system"]
WireMessages = list[dict[str, str]]

THINKS_AHEAD = "svc_thinks_ahead"
"""In `additional_kwargs`: the model thinks without saying where that begins."""

DESCRIBED_IMAGE = "svc_described_image"
"""A content block of ours: an image as a vision model described it."""

_JOINT = "\n\n"
_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}
_ROLES |= {"system": "system", "developer": "system"}
_NO_TEXT = "[a message without text]"
_IMAGE_LEFT_OUT = "[image left out: this model takes text only]"


_A_MESSAGE = 30  # the cost of one, in characters of text


def prompt_size(messages: Sequence[BaseMessage]) -> int:
    """About how many characters have to be read for a conversation; images count as their links."""
    blocks = (
        block if isinstance(block, str) else str(block.get("text") or "")
        for message in messages
        for block in (
            message.content if isinstance(message.content, list) else [message.content]
        )
    )
    return _A_MESSAGE * len(messages) + sum(map(len, blocks))


def to_wire(
    messages: Sequence[BaseMessage],
    *,
    system_role: SystemRole = "user",
    preamble: str = "",
    tool_format: Format = TAGS,
    nonce: str = "",
    omit_images: bool = False,
) -> WireMessages:
    """The conversation as the chat endpoint takes it.

    The preamble stands after the leading system text; the nonce is what real results carry.

    Raises:
        SvcRequestError: A message cannot be said in text, or nothing is left to send.
    """
    parts = [*_rendered(messages, tool_format, nonce, omit_images=omit_images)]
    if not any(map(itemgetter(1), parts)):
        raise SvcRequestError("There is nothing to send: no message holds any text")
    if preamble:
        leading = sum(
            1 for _ in takewhile(lambda one: isinstance(one, SystemMessage), messages)
        )
        parts.insert(leading, ("system", preamble))
    turns = _joined(parts)
    if system_role == "user":
        turns = _joined(
            [
                ("user", system_text(text)) if role == "system" else (role, text)
                for role, text in turns
            ]
        )
    return [{"role": role, "content": text} for role, text in turns]


def _joined(parts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Neighbours of one role as one."""
    groups = groupby(filter(itemgetter(1), parts), itemgetter(0))
    return [(role, _JOINT.join(map(itemgetter(1), group))) for role, group in groups]


def conversation_nonce(messages: Sequence[BaseMessage], secret: str) -> str:
    """What real results of a conversation carry, so that no text can imitate one.

    It follows from a secret, the first turn, and the ids of that turn and of the first answer. Ids
    are random, so that nobody learns it from another conversation that begins with the same words;
    and it is the same in every process that goes on with this one.
    """
    state = hashlib.blake2b(digest_size=5, key=hashlib.sha256(secret.encode()).digest())

    def add(*texts: Any) -> None:
        state.update(
            "\0".join(map(str, texts)).encode("utf-8", "surrogatepass") + b"\0"
        )

    asked = False
    for message in messages:
        if isinstance(message, AIMessage) and (message.id or message.tool_calls):
            add(message.id or "", *(call["id"] for call in message.tool_calls))
            break
        if not asked:
            add(message.type, message.content, *filter(None, [message.id]))
        asked = asked or isinstance(message, HumanMessage)
    return state.hexdigest()


PERSON = "what was said to you"


def texts_read(messages: Iterable[BaseMessage]) -> Iterator[tuple[str, str]]:
    """What the model reads beside its own calls: who said it, and the text.

    A call that it made before is none of it, since it may make it again; the texts in that call's
    arguments are.
    """
    for message in messages:
        text = _text(message, omit_images=True)
        if isinstance(message, _RESULTS):
            yield "the result of a function", text
        elif isinstance(message, AIMessage):
            yield "an earlier answer", text
            for call in message.tool_calls:
                for value in call["args"].values():
                    yield (
                        "an earlier call",
                        value if isinstance(value, str) else render_json(value),
                    )
        else:
            yield PERSON, f"{message.name or ''}\n{text}"


def has_calls(messages: Iterable[BaseMessage]) -> bool:
    """Whether calls or results of tools stand in the conversation."""
    for message in messages:
        if isinstance(message, _RESULTS) or getattr(message, "tool_calls", None):
            return True
    return False


def answers_at_once(messages: Iterable[BaseMessage], model: str) -> bool:
    """Whether an earlier answer of the model shows that it does not think before each of them.

    A model whose thoughts begin in the prompt, and so without a nonce, has them in every answer.
    """
    for message in messages:
        known = message.response_metadata if isinstance(message, AIMessage) else {}
        if (
            known.get("model_provider") == "svc"
            and known.get("model_name") == model
            and known.get("finish_reason") in {"stop", "tool_calls"}
            and not message.additional_kwargs.keys()
            & {"reasoning_content", THINKS_AHEAD}
        ):
            return True
    return False


_RESULTS = (ToolMessage, FunctionMessage)


def _rendered(
    messages: Sequence[BaseMessage],
    tool_format: Format,
    nonce: str,
    *,
    omit_images: bool,
) -> Iterator[tuple[str, str]]:
    """Role and text of each message; the results of one round of calls are said together."""
    several = len({m.name for m in messages if isinstance(m, AIMessage)}) > 1
    names: dict[str | None, str] = {}  # of calls, by their ids
    for _, group in groupby(messages, attrgetter("type")):
        neighbours = list(group)
        if isinstance(neighbours[0], _RESULTS):
            yield (
                "user",
                results_text([_result(one, names) for one in neighbours], nonce),
            )
            continue
        for message in neighbours:
            if isinstance(message, AIMessage):
                for call in message.tool_calls:
                    names[call["id"]] = call["name"]
                yield "assistant", _assistant(message, tool_format, named=several)
            else:
                role, text = _role(message), _text(message, omit_images=omit_images)
                named = role == "user" and text and message.name
                yield role, user_text(text, message.name or "") if named else text


def _assistant(message: AIMessage, tool_format: Format, *, named: bool) -> str:
    content = message.content
    text = _text(message, joint="")  # blocks of an answer are pieces of one text
    if text and message.name and named:
        text = f"{message.name}: {text}"
    calls = (
        _past_calls(message) if message.tool_calls or message.invalid_tool_calls else []
    )
    if not text and not calls and content and not isinstance(content, str):
        text = _NO_TEXT
    return calls_text(text, calls, tool_format) if calls else text


def _result(message: BaseMessage, names: Mapping[str | None, str]) -> Result:
    id_ = message.tool_call_id if isinstance(message, ToolMessage) else ""
    return Result(
        content=_text(message, omit_images=True),
        name=message.name or names.get(id_, ""),
        failed=isinstance(message, ToolMessage) and message.status == "error",
    )


def _past_calls(message: AIMessage) -> list[PastCall]:
    if not (message.tool_calls or message.invalid_tool_calls):
        return []
    # The model sees what it wrote wrongly, so that the error which follows makes sense to it.
    bad = [
        PastCall(b["name"] or "", (b["args"] or "").removeprefix(_GUARD))
        for b in message.invalid_tool_calls
    ]
    return [PastCall(call["name"], call["args"]) for call in message.tool_calls] + bad


def guarded(written: str) -> str:
    """An unreadable call as it was written, so that LangChain does not read it as a whole one.

    LangChain closes what is open in the arguments of chunks, and takes a time for it that grows
    with their square. A bracket that closes nothing makes it give up at once.
    """
    if 0 < len(written) <= _SHORT:
        try:
            if not isinstance(parse_partial_json(written), dict):
                return written
        except ValueError:
            return written
    return _GUARD + written


_GUARD = "]"
_SHORT = 1000


def _role(message: BaseMessage) -> str:
    if isinstance(message, HumanMessage):
        return "user"
    if isinstance(message, SystemMessage):
        return "system"
    if not isinstance(message, ChatMessage):
        raise SvcRequestError(
            f"A {type(message).__name__} cannot be sent: the chat endpoint takes what a user and "
            "an assistant said. Pass HumanMessage, AIMessage, SystemMessage, ToolMessage or "
            "ChatMessage"
        )
    role = message.role.lower()
    if role not in _ROLES:
        raise SvcRequestError(
            f"A ChatMessage has the role {message.role!r}; the chat endpoint knows "
            "['ai', 'assistant', 'human', 'user'] and, folded into a user turn, system"
        )
    return _ROLES[role]


def _text(message: BaseMessage, *, omit_images: bool = False, joint: str = "\n") -> str:
    """What a message says; the joint stands between its blocks, but for our own elements."""
    if isinstance(message.content, str):
        return _foreign([message.content])
    texts: list[str] = []
    for own, group in groupby(
        _block_texts(message, omit_images=omit_images), itemgetter(0)
    ):
        parts = [text for _, text in group]
        texts.append("\n".join(parts) if own else _foreign(parts, joint))
    return "\n".join(texts)


def _foreign(texts: Iterable[str], joint: str = "\n") -> str:
    """What others wrote, with what could pass for a turn made harmless.

    Only once it is joined, since two texts may make a delimiter that neither has; and where it
    could begin one at its end, which the text behind would complete.
    """
    return _BEGUN.sub("&lt;", defuse(joint.join(texts)))


_BEGUN = re.compile(r"<(?=[\s/]{0,32}\Z)")


def _block_texts(
    message: BaseMessage, *, omit_images: bool
) -> Iterator[tuple[bool, str]]:
    """The text of each block, and whether it is in our own elements.

    Everything but media is text, whatever its type. Of an assistant's message other blocks are
    another provider's business; a tool's result says which media it left out; and what a person
    sent is never left out unless that was asked for.
    """
    for block in message.content:
        kind = "text" if isinstance(block, str) else _kind(block)
        own = isinstance(block, Mapping) and kind == DESCRIBED_IMAGE
        text = block if isinstance(block, str) else _text_of(block)
        if own:
            yield True, image_text(block["handle"], block["text"])  # type: ignore[index]  # see own
        elif isinstance(message, AIMessage):
            if text is not None:
                yield False, text
        elif isinstance(block, str) or not _is_medium(kind, block):
            whole = text is not None and (kind in _TEXTS or len(block) == 1)
            yield False, str(text) if whole else render_json(block)
        else:
            yield False, _in_place_of(kind, message, omit_images=omit_images)


def _in_place_of(kind: str, message: BaseMessage, *, omit_images: bool) -> str:
    """The words for a medium that the model cannot take.

    Raises:
        SvcRequestError: A person sent the medium, and did not ask to leave it out.
    """
    if omit_images and "image" in kind:
        return _IMAGE_LEFT_OUT
    if isinstance(message, _RESULTS):
        return f"[{kind} left out: this model takes text only]"
    raise _unsendable(kind)


_TEXTS = frozenset({"text", "input_text", "output_text", "text-plain", "refusal"})
_MEDIA = {
    "audio",
    "input_audio",
    "video",
    "video_url",
    "file",
    "input_file",
    "document",
    "media",
}


def _text_of(block: Mapping[str, Any]) -> str | None:
    texts = (block.get(key) for key in ("text", "refusal"))
    return next((text for text in texts if isinstance(text, str)), None)


def _kind(block: Mapping[str, Any]) -> str:
    # Bedrock's blocks have no type and are named by their key.
    kind = block.get("type") or next(iter(block), "unknown")
    return kind if isinstance(kind, str) else type(kind).__name__


def _is_medium(kind: str, block: Mapping[str, Any]) -> bool:
    """Whether a block stands for bytes and not for text."""
    if "image" in kind or kind in _MEDIA:
        source = block.get("source")
        in_text = isinstance(source, Mapping) and source.get("type") in {
            "text",
            "content",
        }
        return (
            ("type" in block or len(block) == 1)
            and not in_text
            and _text_of(block) is None
        )
    return False


def _unsendable(kind: str) -> SvcRequestError:
    if "image" in kind:
        return SvcRequestError(
            f"A message holds an image (a block of type {kind!r}), and the chat endpoint takes "
            'text only. Have the image described: ChatSvc(image_inputs="describe") does it for '
            "each image of a message, through POST /api/vision, which needs base_url "
            '(SVC_BASE_URL). Or leave images out: image_inputs="omit"'
        )
    return SvcRequestError(
        f"A message holds a content block of type {kind!r}; the chat endpoint takes text only. "
        "Send its content as a text block"
    )
