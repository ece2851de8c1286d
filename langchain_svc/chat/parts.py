"""What readers of answers yield: parts of a message.

The same reading serves whole answers and streams, so both give the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from langchain_core.messages import ToolCallChunk
from langchain_core.tools import BaseTool

from .._base.threads import LONG
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
    failed: tuple[str, str] | None = None  # the id of a call that must not run, and why
    checked: str | None = None  # the answer to use instead of the content
    parsed: Any = None  # what was made of it
    all_was_reasoning: bool = (
        False  # the content so far, though it looked like an answer
    )

    @property
    def is_content(self) -> bool:
        """Whether it is content and nothing else."""
        return self[1:] == _NOTHING_ELSE


_NOTHING_ELSE = ContentPart()[1:]


class TextReader:
    """Reads the answers of one turn: for each try `begin`, then `feed`, then `finish`.

    Here any text will do; other readers want calls of tools, or JSON.
    """

    long = LONG
    """Characters of an answer from which on it is not read on an event loop."""

    repair_prompt: str | None = None
    """What the model is told when the answer will not do."""

    failure: str | None = None
    """Why the turn failed, where the model may not be asked any more."""

    malformed = False
    """Whether a call came that cannot be read."""

    called = False
    """Whether calls that can run were yielded."""

    ended = False
    """Whether nothing that follows can count, as after a result that the model invents."""

    is_inside = False
    """Whether the answer was cut inside a call or an object, as `wants_rest` has found."""

    def __init__(self, *, split: bool = True) -> None:
        self._split = split
        self.begin()

    def begin(self) -> None:
        """Another try begins."""
        self._thoughts = Thoughts() if self._split else None

    def wants_rest(self, text: str, *, out_of_room: bool) -> bool:
        """Whether the answer so far is a part of a call or an object, of which the rest is wanted.

        `out_of_room`: the service says that it was cut off.
        """
        del text, out_of_room
        return False

    def restart(self, *, streaming: bool) -> bool:
        """The model begins its answer anew; False where what was yielded cannot be taken back."""
        if not streaming:
            self.begin()
        return not streaming

    def feed(self, text: str) -> Iterable[ContentPart]:
        if self._thoughts is None:
            return [ContentPart(text)]
        return split_parts(self._thoughts.feed(text))

    def finish(self, *, cut: bool, last: bool) -> Iterable[ContentPart]:
        """The end: whether the answer was cut off, and whether the model cannot be asked again."""
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
