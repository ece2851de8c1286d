"""What readers of answers yield: parts of a message.

Each reader takes the text of an answer as it comes, yields parts, and at the end says what is
missing, in a text for the model, so that the turn can ask once more. One reader reads all the tries
of a turn. The same reading serves whole answers and streams, so both give the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from langchain_core.messages import InvalidToolCall, ToolCallChunk
from langchain_core.tools import BaseTool

from .._json import ALL_WAS_REASONING, CONTENT, Thoughts
from .._json import Piece as Thought

ToolLike = Mapping[str, Any] | type | Callable[..., Any] | BaseTool
"""What a tool may be given as."""
CHECKED = "svc_checked_answer"
"""In `additional_kwargs`: the answer that was checked, and is used instead of the content."""


class ContentPart(NamedTuple):
    """A piece of the message that an answer becomes."""

    content: str = ""
    reasoning: str = ""
    call: ToolCallChunk | None = None
    invalid: InvalidToolCall | None = None
    failed: tuple[str, str] | None = None  # the id of a call that must not run, and why
    checked: str | None = None  # the answer to use instead of the content
    parsed: Any = None  # what was made of it
    all_was_reasoning: bool = False  # the content so far, though it looked like an answer

    @property
    def is_content(self) -> bool:
        """Whether it is content and nothing else."""
        return self[1:] == _NOTHING_ELSE


_NOTHING_ELSE = ContentPart()[1:]


class OutputReader(Protocol):
    """Reads the answers of one turn: for each try `begin`, then `feed`, then `finish`."""

    repair_prompt: str | None
    """What the model is told when the answer will not do."""

    failure: str | None
    """Why the turn failed, where it may not be asked any more."""

    malformed: bool
    """Whether a call came that cannot be read."""

    @property
    def called(self) -> bool:
        """Whether calls that can run were yielded."""

    @property
    def ended(self) -> bool:
        """Whether nothing that follows can count."""

    def begin(self) -> None:
        """Another try begins."""

    def feed(self, text: str) -> Iterable[ContentPart]: ...

    def finish(self, *, cut: bool, last: bool) -> Iterable[ContentPart]:
        """The end of an answer.

        Args:
            cut: Whether it was cut off, as by max_tokens.
            last: Whether the model cannot be asked once more.
        """


@dataclass(frozen=True)
class OutputSpec:
    """How the answer of a call is read.

    Attributes:
        calls_before: Whether calls stand in the conversation though no tool is offered now.
        fences: Whether calls are asked for in fences, and not in tags.
        streaming: Whether the answer is a stream.
        stream_tool_args: Whether arguments are yielded while they are written.
        split: Whether reasoning is split from the content.
        thinks: Whether the model may think without saying where that begins.
        read: Gives what the model has read: who said it, and the text.
    """

    calls_before: bool
    fences: bool
    streaming: bool
    stream_tool_args: bool
    split: bool
    thinks: bool
    read: Callable[[], Iterable[tuple[str, str]]]


class TextReader:
    """Any text will do."""

    repair_prompt: str | None = None
    failure: str | None = None
    malformed = False
    called = False
    ended = False

    def __init__(self, *, split: bool = True) -> None:
        self._thoughts = Thoughts() if split else None

    def begin(self) -> None:
        """There is one try."""

    def feed(self, text: str) -> list[ContentPart]:
        return (
            [ContentPart(text)]
            if self._thoughts is None
            else split_parts(self._thoughts.feed(text))
        )

    def finish(self, *, cut: bool, last: bool) -> list[ContentPart]:
        del cut, last
        return [] if self._thoughts is None else split_parts(self._thoughts.finish())


def split_parts(pieces: Iterable[Thought]) -> list[ContentPart]:
    """Content and reasoning as parts."""
    parts: list[ContentPart] = []
    for kind, text in pieces:
        if kind == CONTENT:
            parts.append(ContentPart(text))
        elif kind == ALL_WAS_REASONING:
            parts.append(ContentPart(all_was_reasoning=True))
        else:
            parts.append(ContentPart(reasoning=text))
    return parts
