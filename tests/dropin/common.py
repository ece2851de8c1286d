"""What many scripts use: a tool, a schema, a question, and what stands in a state."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import tool
from pydantic import BaseModel


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Meeting(BaseModel):
    """A meeting."""

    city: str
    people: int


GOOD = {"city": "Rome", "people": 3}
ASK: Any = {"messages": [("user", "x")]}
ONE_TWO = ("add", {"a": 1, "b": 2})


def shape(state: Any) -> list[Any]:
    """What stands in the messages of a state, without ids."""
    return [
        (m.type, m.text.strip(), [(c["name"], c["args"]) for c in getattr(m, "tool_calls", [])])
        for m in state["messages"]
    ]
