"""What readers of answers hand on: parts of a message.

Each expectation reads the answer's text as
it comes, hands on parts, and at the end says what is missing, in words for the model, so that the
turn can ask once more. The same reading serves whole answers and streams, so both give the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from langchain_core.messages import InvalidToolCall, ToolCallChunk


@dataclass(frozen=True)
class Part:
    """A piece of the message that an answer becomes."""

    content: str = ""
    reasoning: str = ""
    call: ToolCallChunk | None = None
    invalid: InvalidToolCall | None = None
    checked: str | None = None  # the answer to use instead of what was handed on


class Expectation(Protocol):
    """Reads one answer; a new one is made for every try."""

    complaint: str | None  # what the model is told when the answer will not do
    once: bool  # telling it more than once has no prospect

    @property
    def ended(self) -> bool:
        """Whether nothing that follows can count."""

    def feed(self, text: str) -> Iterator[Part]: ...

    def finish(self, *, cut: bool) -> Iterator[Part]: ...


class TextExpected:
    """Any text will do."""

    complaint: str | None = None
    once = False
    ended = False

    def feed(self, text: str) -> Iterator[Part]:
        if text:
            yield Part(text)

    def finish(self, *, cut: bool) -> Iterator[Part]:
        del cut
        yield from ()
