"""Readers of the text of an answer: the parts of a message that it becomes, as they come."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Protocol

from .._text import ReasoningSplitter
from .parts import ContentPart, split_parts

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
