"""The parts of a message that the text of an answer becomes as it comes, and their readers."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from langchain_core.messages import AIMessageChunk, ToolCallChunk
from langchain_core.messages.tool import invalid_tool_call, tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk
from pydantic import BaseModel
from typing_extensions import TypeAliasType

from .._text import ALL_WAS_REASONING, CONTENT, ReasoningSplitter, Segment

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool


# -- chunk copies ----------------------------------------------------------------------------------
# Streamed chunks that are copied from one of LangChain's, which is faster than making each.
#
# LangChain's constructors check what is known to be right here: they take half of what a
# streamed token costs. Of a piece of arguments they try each beginning as JSON, which costs 17
# ms a kB. So a chunk is copied from one that they made. A self-test at import compares a copy
# with what they make: where the two differ in anything, since pydantic or LangChain has
# changed, theirs is used.

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


# -- parts -----------------------------------------------------------------------------------------
# What readers of answers yield: parts of a message.
#
# The same reading serves whole answers and streams, so both give the same.

ToolLike = TypeAliasType(
    "ToolLike", "Mapping[str, Any] | type | Callable[..., Any] | BaseTool"
)
"""What a tool may be given as."""
FINAL = "svc_final_answer"
"""In `additional_kwargs`: the answer of a stream that has shown another, or another form of it."""


class ContentPart(NamedTuple):
    """A piece of the message that an answer becomes.

    `content` and `reasoning` are text as the service wrote it; the turn restores what pseudonyms
    hid in it. Everything else was restored by the reader, once it was parsed.
    """

    content: str = ""
    reasoning: str = ""
    call: ToolCallChunk | None = None
    failed: tuple[str, str] | None = None  # the id of a call that must not run, and why
    json: str = ""  # content that was made of a checked value
    final: str | None = None  # the answer to use instead of the content
    parsed: object = None  # what was made of it
    # The content so far was, though it looked like an answer.
    all_was_reasoning: bool = False

    @property
    def is_content(self) -> bool:
        """Whether it is content and nothing else."""
        return self[1:] == _NOTHING_ELSE


_NOTHING_ELSE = ContentPart()[1:]


def split_parts(segments: Iterable[Segment]) -> list[ContentPart]:
    """Content and reasoning as parts."""
    parts: list[ContentPart] = []
    for kind, text in segments:
        if kind == CONTENT:
            parts.append(ContentPart(text))
        elif kind == ALL_WAS_REASONING:
            parts.append(ContentPart(all_was_reasoning=True))
        else:
            parts.append(ContentPart(reasoning=text))
    return parts


# -- readers ---------------------------------------------------------------------------------------

LONG = 4_000
"""On an event loop, a text of more characters than this is read in a thread."""


class AnswerReader(Protocol):
    """Reads the answers of one turn, each by `start_answer`, `read_chunk` and `end_answer`.

    `TextReader` accepts any text, `JsonReader` (`structured.py`) a value that fits a schema, and
    `CallsReader` (`calls_reader.py`) calls of tools. After `end_answer` the attributes say whether
    the answer will do.
    """

    repair_prompt: str | None = None
    """What to tell the model when its answer will not do; None when it does."""

    failure: str | None = None
    """Why the turn fails when the model may not be asked again."""

    malformed: bool = False
    """Whether the answer holds a call that cannot be run."""

    called: bool = False
    """Whether the answer holds calls that can be run."""

    ended: bool = False
    """Whether the rest cannot count, as after a tool result that the model invents."""

    is_inside: bool = False
    """Whether the answer was cut inside a call or an object; `wants_rest` sets it."""

    is_copy: bool = False
    """Whether the answer only repeats what the prompt shows; `wants_rest` sets it."""

    def start_answer(self) -> None:
        """Forget the answer before this one: the model was asked again."""

    def read_chunk(self, text: str) -> Iterable[ContentPart]:
        """Read the next piece of the answer, and return what can be shown of it by now."""

    @property
    def held(self) -> int:
        """How many characters wait for what comes next, and are then read once more."""
        return 0

    def end_answer(self, *, cut: bool, last: bool) -> Iterable[ContentPart]:
        """Return the remaining parts of the answer, and judge the whole.

        `cut`: the answer was cut off. `last`: the model cannot be asked again.
        """

    def wants_rest(self, text: str, *, out_of_room: bool) -> bool:
        """Whether `text`, the answer so far, ends within something of which the rest is wanted.

        `out_of_room`: the service says that it cut the answer off.
        """
        del text, out_of_room
        return False

    def restart(self, *, streaming: bool) -> bool:
        """Let the model write its answer anew; False if the stream has already shown too much."""
        if not streaming:
            self.start_answer()
        return not streaming


class TextReader(AnswerReader):
    """Reads an answer of which any text will do."""

    def __init__(self, *, split: bool = True) -> None:
        self._split = split
        self.start_answer()

    def start_answer(self) -> None:
        self._splitter = ReasoningSplitter() if self._split else None

    def read_chunk(self, text: str) -> Iterable[ContentPart]:
        if self._splitter is None:
            return [ContentPart(text)]
        return split_parts(self._splitter.parse_chunk(text))

    def end_answer(self, *, cut: bool, last: bool) -> Iterable[ContentPart]:
        del cut, last
        if self._splitter is None:
            return []
        return split_parts(self._splitter.close())


def text_of(answer: str) -> str:
    """An answer without its reasoning, where nothing else is read in it."""
    reader = TextReader()
    parts = [*reader.read_chunk(answer), *reader.end_answer(cut=False, last=True)]
    text = ""
    for part in parts:
        text = "" if part.all_was_reasoning else text + part.content
    return text


def new_id() -> str:
    """An id for a call that no other call has, in whatever process or trimmed conversation."""
    return f"call_{uuid.uuid4().hex[:24]}"
