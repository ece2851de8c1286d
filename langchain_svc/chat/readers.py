"""The parts of a message that the text of an answer becomes as it comes, and their readers."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from langchain_core.messages import ToolCallChunk
from typing_extensions import TypeAliasType

from .._text import ALL_WAS_REASONING, CONTENT, ReasoningSplitter, Segment

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool


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
