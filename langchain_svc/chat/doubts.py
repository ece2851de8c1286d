"""What in an answer may be a call, and the text beside it."""

from __future__ import annotations

from .._calls import placeholder
from .._calls.reading import BadCall, Call, Doubt, Event, Prose


def unfilled(call: Call) -> str | None:
    """What is wrong with a call in which an argument is still as the form shows it."""
    for name, value in call.arguments.items():
        if value == placeholder(name):
            return f"its argument {name} is still {value}, and no value"
    return None


def text_behind_calls(events: list[Event]) -> str:
    """The prose behind the last call."""
    texts: list[str] = []
    for event in events:
        if isinstance(event, Prose):
            texts.append(event.text)
        elif isinstance(event, (Call, BadCall, Doubt)):
            texts.clear()
    return "".join(texts)


def without(doubts: list[Doubt], pieces: list[Prose | Doubt]) -> list[Prose | Doubt]:
    """The pieces of an answer without these doubts, and without the ends of their fences."""
    remaining: list[Prose | Doubt] = []
    after_doubt = False
    for piece in pieces:
        is_doubt = any(piece is doubt for doubt in doubts)
        is_fence_end = after_doubt and not piece.text.strip(" \t\r\n`")
        after_doubt = is_doubt or is_fence_end
        if not after_doubt:
            remaining.append(piece)
    return remaining


def doubts_among(pieces: list[Prose | Doubt]) -> list[Doubt]:
    """The doubts of an answer."""
    return [piece for piece in pieces if isinstance(piece, Doubt)]


def call_of(doubt: Doubt | BadCall | Call) -> Call | BadCall | None:
    """What was read of a call, if anything was."""
    return doubt.call if isinstance(doubt, Doubt) else doubt


def is_loose(doubt: Doubt) -> bool:
    """Whether it is only a little like a call."""
    return doubt.call is None or doubt.call.loose
