"""What readers of answers yield: parts of a message.

The same reading serves whole answers and streams, so both give the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from langchain_core.messages import ToolCallChunk
from typing_extensions import TypeAliasType

from .._text import ALL_WAS_REASONING, CONTENT, Segment

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

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
