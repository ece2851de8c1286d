"""LangChain messages -> the wire's list of `{"role", "content"}` (v1 API, section 2).

The documents show the roles user and assistant, and a content that is one string. Foreign text is
escaped (`_calls/render.py`), so that the turns on the wire are the messages that LangChain had,
whatever these say.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, takewhile
from operator import attrgetter, itemgetter
from typing import Literal

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
from langchain_core.utils.utils import LC_AUTO_PREFIX

from .._calls import (
    TAGS,
    Format,
    PastCall,
    Result,
    calls_text,
    render_json,
    results_text,
)
from .._text import (
    base64_note,
    defuse,
    image_text,
    system_text,
    user_text,
    without_base64,
)
from ..errors import SvcRequestError

# -- blocks ----------------------------------------------------------------------------------------
# A content block -> the text that stands for it, which says all that the block says but bytes.

_TEXTS = frozenset({"text", "input_text", "output_text", "text-plain", "refusal"})
_MEDIA = frozenset(
    {
        "audio",
        "input_audio",
        "video",
        "video_url",
        "file",
        "input_file",
        "document",
        "media",
        "text-plain",  # a file of text, where no text stands in it
    }
)
# What other services and streams note beside a text.
_BOOKKEEPING = frozenset({"type", "cache_control", "index", "id"})
# Values that say nothing beside a text. That it is plain is said of each text of LangChain's.
_NOTHING: tuple[object, ...] = (None, "", [], {}, "text/plain")

# The keys under which media have their base64: LangChain's, and those of four providers.
_BYTES = frozenset({"base64", "data", "file_data", "bytes"})
_BASE64 = re.compile(r"[A-Za-z0-9+/_=\r\n-]+")
_DATA_OF_URI = re.compile(r"(?<=;base64,)[A-Za-z0-9+/_=%-]+", re.IGNORECASE)


def kind_of(block: Mapping[str, object]) -> str:
    """The type of a block; Bedrock's blocks have none, and are named by their key."""
    kind = block.get("type") or next(iter(block), "unknown")
    return kind if isinstance(kind, str) else type(kind).__name__


def text_of(block: Mapping[str, object]) -> str | None:
    """The text in a block, if it has one."""
    for key in ("text", "refusal"):
        text = block.get(key)
        if isinstance(text, str):
            return text
    return None


def is_medium(block: Mapping[str, object]) -> bool:
    """Whether a block stands for bytes and not for text."""
    kind = kind_of(block)
    if "image" not in kind and kind not in _MEDIA:
        return False
    if "type" not in block and len(block) > 1:
        return False  # the key that names it is one of several
    source = block.get("source")
    if isinstance(source, Mapping) and source.get("type") in {"text", "content"}:
        return False  # a document in text
    return text_of(block) is None


def block_text(block: Mapping[str, object]) -> str:
    """The text of a block, or the whole block as JSON where it says more than its text.

    Raises:
        SvcRequestError: JSON cannot hold the block.
    """
    text = text_of(block)
    if text is None or not (kind_of(block) in _TEXTS or len(block) == 1):
        return _as_json(block)
    for key, value in block.items():
        if key not in _BOOKKEEPING and value != text and value not in _NOTHING:
            return _as_json(block)
    return text


def medium_note(block: Mapping[str, object]) -> str:
    """What stands for a medium, which the model cannot take: all of its block but the bytes."""
    kind = kind_of(block)
    if "image" in kind:
        kind = "image"
    return f"[{kind} left out: this model takes text only] {_as_json(block)}"


def _as_json(block: Mapping[str, object]) -> str:
    # LangChain numbers some blocks anew in every call: their prompts are to be the same.
    stable = {
        key: value
        for key, value in block.items()
        if key != "id" or not str(value).startswith(LC_AUTO_PREFIX)
    }
    try:
        readable = _without_bytes(stable)
    except RecursionError:
        raise SvcRequestError(
            f"A content block of type {kind_of(block)!r} holds itself, or is nested too deep: "
            "send what it says as a text block"
        ) from None
    return render_json(readable)


def _without_bytes(
    value: object, key: object = None, *, in_medium: bool = False
) -> object:
    """The value with a note in place of bytes; `key` is its name in a block."""
    if isinstance(value, Mapping):
        in_medium = in_medium or is_medium(value)
        return {
            name: _without_bytes(inner, name, in_medium=in_medium)
            for name, inner in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_without_bytes(inner, key, in_medium=in_medium) for inner in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"[{len(value):,} bytes]"
    if not isinstance(value, str):
        return value
    # A medium says where its bytes are. Elsewhere only a length tells them from words and keys.
    if in_medium and key in _BYTES and _BASE64.fullmatch(value):
        return base64_note(value)
    return without_base64(_DATA_OF_URI.sub(lambda match: base64_note(match[0]), value))


# -- messages --------------------------------------------------------------------------------------

SystemRole = Literal["user", "system"]
WireMessages = list[dict[str, str]]

THINKS_AHEAD = "svc_thinks_ahead"
"""In `additional_kwargs`: the model thinks without saying where that begins."""

DESCRIBED_IMAGE = "svc_described_image"
"""The type of our own content block: an image as a vision model described it."""

_JOINT = "\n\n"
_ROLES = {"user": "user", "human": "user", "assistant": "assistant", "ai": "assistant"}
_ROLES |= {"system": "system", "developer": "system"}
_NO_TEXT = "[a message without text]"
_IMAGE_LEFT_OUT = "[image left out: this model takes text only]"


def to_wire(
    messages: Sequence[BaseMessage],
    *,
    system_role: SystemRole = "user",
    preamble: str = "",
    tool_format: Format = TAGS,
    nonce: str = "",
    can_call: bool = True,
    omit_images: bool = False,
) -> WireMessages:
    """The conversation as the chat endpoint takes it.

    The preamble stands between the leading system text and the first turn, in no element of its
    own: a model copies the tag that it read last. The nonce is what real results carry; `can_call`
    says whether functions are offered now.

    Raises:
        SvcRequestError: A message cannot be said in text, or nothing is left to send.
    """
    parts = _rendered(
        messages, tool_format, nonce, can_call=can_call, omit_images=omit_images
    )
    if not any(map(itemgetter(1), parts)):
        raise SvcRequestError("There is nothing to send: no message holds any text")
    if preamble:
        leading = [*takewhile(_is_system, messages)]
        parts.insert(len(leading), (_PREAMBLE, preamble))
    turns: WireMessages = []
    for kind, part in _joined(parts):
        role, text = _in_role(kind, part, system_role)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += _JOINT + text
        else:
            turns.append({"role": role, "content": text})
    return turns


_PREAMBLE = "preamble"


def _in_role(role: str, text: str, system_role: SystemRole) -> tuple[str, str]:
    """The role on the wire of a part, and its text there."""
    if role == _PREAMBLE:
        return system_role, text
    if role == "system" and system_role == "user":
        return "user", system_text(text)
    return role, text


def _is_system(message: BaseMessage) -> bool:
    return isinstance(message, SystemMessage)


def _joined(parts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The parts with text, neighbours of one role as one."""
    groups = groupby(filter(itemgetter(1), parts), itemgetter(0))
    return [(role, _JOINT.join(map(itemgetter(1), group))) for role, group in groups]


def conversation_nonce(messages: Sequence[BaseMessage], secret: str) -> str:
    """The mark that real results of a conversation carry, so that no text can imitate one.

    It follows from a secret, the first turn, and the ids of that turn and of the first answer. Ids
    are random, so nobody learns the mark from another conversation that begins with the same words.
    Every process that goes on with this conversation computes the same mark.
    """
    key = hashlib.sha256(secret.encode()).digest()
    state = hashlib.blake2b(digest_size=5, key=key)

    def add(*values: object) -> None:
        text = "\0".join(map(str, values)) + "\0"
        state.update(text.encode("utf-8", "surrogatepass"))

    in_first_turn = True
    for message in messages:
        if isinstance(message, AIMessage) and (message.id or message.tool_calls):
            add(message.id or "", *(call["id"] for call in message.tool_calls))
            break
        if in_first_turn:
            add(message.type, message.content, *filter(None, [message.id]))
        if isinstance(message, HumanMessage):
            in_first_turn = False
    return state.hexdigest()


PERSON = "what was said to you"


def texts_read(messages: Iterable[BaseMessage]) -> Iterator[tuple[str, str]]:
    """What the model reads beside its own calls: each text with its speaker.

    An earlier call is no such text, since the model may make it again; its arguments are.
    """
    for message in messages:
        text = _text(message, omit_images=True)
        if isinstance(message, _RESULTS):
            yield "the result of a function", text
        elif isinstance(message, AIMessage):
            yield "an earlier answer", text
            for call in message.tool_calls:
                for value in call["args"].values():
                    argument = value if isinstance(value, str) else render_json(value)
                    yield "an earlier call", argument
        else:
            yield PERSON, f"{message.name or ''}\n{text}"


def has_calls(messages: Iterable[BaseMessage]) -> bool:
    """Whether calls or results of tools stand in the conversation."""
    for message in messages:
        if isinstance(message, _RESULTS):
            return True
        if isinstance(message, AIMessage) and message.tool_calls:
            return True
    return False


def answers_at_once(messages: Iterable[BaseMessage], model: str | None) -> bool:
    """Whether an earlier answer of the model shows that it does not think before each answer.

    A model whose thoughts begin in the prompt, and so without a mark, has them in every answer.
    """
    marks = {"reasoning_content", THINKS_AHEAD}
    for message in messages:
        if not isinstance(message, AIMessage):
            continue
        metadata = message.response_metadata
        if metadata.get("finish_reason") not in {"stop", "tool_calls"}:
            continue
        author = (metadata.get("model_provider"), metadata.get("model_name"))
        if author == ("svc", model) and marks.isdisjoint(message.additional_kwargs):
            return True
    return False


_RESULTS = (ToolMessage, FunctionMessage)


def _rendered(
    messages: Sequence[BaseMessage],
    tool_format: Format,
    nonce: str,
    *,
    can_call: bool,
    omit_images: bool,
) -> list[tuple[str, str]]:
    """Role and text of each message; the results of one round of calls share a text."""
    parts: list[tuple[str, str]] = []
    authors = {m.name for m in messages if isinstance(m, AIMessage)}
    names: dict[str | None, str] = {}  # of calls, by their ids
    for _, group in groupby(messages, attrgetter("type")):
        neighbours = list(group)
        if isinstance(neighbours[0], _RESULTS):
            results = [_result(message, names) for message in neighbours]
            parts.append(("user", results_text(results, nonce, more=can_call)))
            continue
        for message in neighbours:
            if isinstance(message, AIMessage):
                for call in message.tool_calls:
                    names[call["id"]] = call["name"]
                text = _assistant(message, tool_format, named=len(authors) > 1)
                parts.append(("assistant", text))
                continue
            role = _role(message)
            text = _text(message, omit_images=omit_images)
            if role == "user" and text and message.name:
                text = user_text(text, message.name)
            parts.append((role, text))
    return parts


def _assistant(message: AIMessage, tool_format: Format, *, named: bool) -> str:
    text = _text(message, joint="")  # blocks of an answer are pieces of one text
    if text and message.name and named:
        text = f"{defuse(message.name)}: {text}"
    if message.tool_calls or message.invalid_tool_calls:
        return calls_text(text, _past_calls(message), tool_format)
    if not text and isinstance(message.content, list) and message.content:
        return _NO_TEXT
    return text


def _result(message: BaseMessage, names: Mapping[str | None, str]) -> Result:
    call_id = ""
    failed = False
    if isinstance(message, ToolMessage):
        call_id = message.tool_call_id
        failed = message.status == "error"
    return Result(
        content=_text(message, omit_images=True),
        name=message.name or names.get(call_id, ""),
        failed=failed,
    )


def _past_calls(message: AIMessage) -> list[PastCall]:
    calls = [PastCall(call["name"], call["args"]) for call in message.tool_calls]
    # The model sees what it wrote wrongly, so that the error which follows makes sense to it.
    for invalid in message.invalid_tool_calls:
        arguments = (invalid["args"] or "").removeprefix(_GUARD)
        calls.append(PastCall(invalid["name"] or "", arguments))
    return calls


def guarded(call: str) -> str:
    """The text of an unreadable call, changed if LangChain would read it as a whole one.

    LangChain closes what is open in the arguments of chunks, and the time for it grows with the
    square of their length. A bracket that closes nothing makes it give up at once.
    """
    if 0 < len(call) <= _SHORT:
        try:
            if not isinstance(parse_partial_json(call), dict):
                return call
        except ValueError:
            return call
    return _GUARD + call


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
    """The text of a message, with the joint between its blocks, except around our own elements."""
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
    """The texts of others as one, with its delimiters escaped.

    They are joined first, since two texts may make a delimiter that neither has. What could begin
    one at the end is escaped, too: the text behind could complete it.
    """
    return _HALF_DELIMITER.sub("&lt;", defuse(joint.join(texts)))


_HALF_DELIMITER = re.compile(r"<(?=[\s/]{0,32}\Z)")


def _block_texts(
    message: BaseMessage, *, omit_images: bool
) -> Iterator[tuple[bool, str]]:
    """The text of each block, and whether it is in our own elements.

    Every block but a medium is text, whatever its type. An assistant's other blocks are another
    provider's business, and left out. A tool's result says which media it left out. What a person
    sent is left out only on request.
    """
    for block in message.content:
        if isinstance(block, str):
            yield False, block
        elif block.get("type") == DESCRIBED_IMAGE:
            yield True, image_text(block["handle"], block["text"])
        elif isinstance(message, AIMessage):
            text = text_of(block)
            if text is not None:
                yield False, text
        elif not is_medium(block):
            yield False, block_text(block)
        elif isinstance(message, _RESULTS):
            yield False, medium_note(block)
        elif omit_images and "image" in kind_of(block):
            yield False, _IMAGE_LEFT_OUT
        else:
            raise _unsendable(kind_of(block))


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
