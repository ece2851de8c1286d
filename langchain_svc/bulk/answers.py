"""What became of a row, as the journal keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import BaseMessage
from pydantic_core import to_jsonable_python
from typing_extensions import Self

from ..callbacks import SvcUsageCallbackHandler
from ..errors import SvcError

_LONGEST_MESSAGE = 500  # the text of foreign errors may hold anything, and be as long


def to_json(value: Any) -> str:
    """A value as JSON text; ValueError where it holds NaN or an infinity, or refers to itself."""
    return json_line(to_jsonable_python(value, fallback=str))


def json_line(plain: Any) -> str:
    """The same for a value that JSON has: letters stay readable, where UTF-8 can hold them."""
    text = json.dumps(plain, ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a character, as models write now and then
        return json.dumps(plain)
    return text


@dataclass
class RowResult:
    """What became of a row: JSON texts, "null" where there is none, and what it took if known."""

    content: str = "null"
    error: str = "null"
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens: int | None = None
    cost: float | None = None

    @property
    def failed(self) -> bool:
        return self.error != "null"

    @classmethod
    def of_answer(cls, answer: Any) -> Self:
        """ValueError where the answer cannot be written as JSON."""
        return cls(content=to_json(_content(answer)))

    @classmethod
    def of_error(cls, error: Exception) -> Self:
        text = str(error) if isinstance(error, SvcError) else str(error)[:_LONGEST_MESSAGE]
        return cls(error=to_json({"type": type(error).__name__, "message": text}))

    def count(self, usage: SvcUsageCallbackHandler) -> Self:
        """The same with the tokens of all models that were asked for it."""
        models = usage.models.values()
        costs = [amount for model in models for amount in model.cost.values()]
        self.cost = sum(costs) if costs else None
        self.tokens = sum(model.total_tokens for model in models) or None
        if self.tokens and not any(model.unsplit_tokens for model in models):
            self.tokens_in = sum(m.input_tokens + m.estimated_input_tokens for m in models)
            self.tokens_out = self.tokens - self.tokens_in
        return self


def _content(answer: Any) -> Any:
    """The text of a message, the last message of an agent's state, or the value itself."""
    if isinstance(answer, BaseMessage):
        calls = getattr(answer, "tool_calls", None)
        return {"text": answer.text, "tool_calls": calls} if calls else answer.text
    if isinstance(answer, Mapping):
        turns = answer.get("messages")
        if isinstance(turns, list) and turns and isinstance(turns[-1], BaseMessage):
            found = answer.get("structured_response")
            return _content(turns[-1]) if found is None else found
    return answer
