"""The parser of tool calls behind the corpus scorer's interface.

python <corpora>/score.py tools benchmarks.corpus_tools:parse -vv
python <corpora>/score.py stream benchmarks.corpus_tools:parse_chunks -vv
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langchain_svc._calls.reading import Call, Doubt, Prose, StreamParser, Tool

Found = tuple[str, list[dict[str, Any]]]


def tools_of(rows: Iterable[dict[str, Any]]) -> list[Tool]:
    """The corpus' tools in our type."""
    return [Tool(row["name"], row["parameters"]) for row in rows]


def parse(text: str, tools: list[dict[str, Any]]) -> Found:
    """The content and the calls of a whole answer."""
    return parse_chunks([text], tools)


def parse_chunks(chunks: Iterable[str], tools: list[dict[str, Any]]) -> Found:
    """The same, of an answer that comes in pieces."""
    stream = StreamParser(tools_of(tools))
    pieces = [piece for chunk in chunks for piece in stream.parse_chunk(chunk)] + [
        *stream.close()
    ]
    content = "".join(
        piece.text for piece in pieces if isinstance(piece, (Prose, Doubt))
    )
    calls = [piece for piece in pieces if isinstance(piece, Call)]
    return content, [{"name": call.name, "args": call.arguments} for call in calls]
