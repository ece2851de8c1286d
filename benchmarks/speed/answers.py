"""What the answers say: words of a stream, and the arguments of a large tool call."""

from __future__ import annotations

import json
from collections.abc import Iterator

EVENTS_A_CHUNK = 64
SERVICE_TIME = 0.02  # seconds that a call of many at once takes
TOKEN_TIME = (
    0.02  # seconds between the tokens of a live stream, which are 50 in a second
)
_TOKEN = 12  # characters of an event of a tool call

_SENTENCE = 'The quick brown fox said "no" to 17 lazy dogs, again and again. '

TOOL = {
    "type": "function",
    "function": {
        "name": "save",
        "description": "Save a report.",
        "parameters": {
            "type": "object",
            "properties": {
                "title": {"type": "string"},
                "rows": {"type": "array", "items": {"type": "string"}},
            },
            "required": ["title", "rows"],
        },
    },
}


def words(count: int) -> Iterator[str]:
    """Texts of `count` events."""
    return (f" word{at % 1000}" for at in range(count))


def arguments(size: int) -> str:
    """JSON of a call's arguments, of about `size` bytes."""
    rows = [_SENTENCE] * max(1, size // (len(_SENTENCE) + 6))
    return json.dumps({"title": "Report", "rows": rows})


def prompted(size: int) -> str:
    """The same call as our tool instructions have the model write it."""
    return (
        f'<tool_call>\n{{"name": "save", "arguments": {arguments(size)}}}\n</tool_call>'
    )


def pieces(text: str) -> Iterator[str]:
    """The text as the events of a stream have it."""
    return (text[at : at + _TOKEN] for at in range(0, len(text), _TOKEN))
