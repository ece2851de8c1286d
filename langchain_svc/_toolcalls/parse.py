"""A whole answer -> its prose and its calls."""

from __future__ import annotations

from collections.abc import Sequence

from .calls import BadCall, Call, Parsed, Tool
from .scanner import Prose, Thought
from .stream import StreamParser

__all__ = ["BadCall", "Call", "Parsed", "Tool", "parse"]


def parse(text: str, tools: Sequence[Tool], *, cut: bool = False) -> Parsed:
    """The answer's prose and its calls of the tools; never raises, whatever the text."""
    parser = StreamParser(tools)
    pieces = [*parser.feed(text), *parser.finish(cut=cut)]
    return Parsed(
        content="".join(piece.text for piece in pieces if isinstance(piece, Prose)).strip(),
        calls=tuple(piece for piece in pieces if isinstance(piece, (Call, BadCall))),
        reasoning="".join(piece.text for piece in pieces if isinstance(piece, Thought)).strip(),
    )
