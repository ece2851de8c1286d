"""What a runnable answered, as a row of the journal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langchain_core.messages import BaseMessage

from ..callbacks import SvcUsageCallbackHandler
from ..errors import SvcError
from .journal import Answer
from .rows import to_json

_LONGEST_MESSAGE = 500


def answered(result: Any, usage: SvcUsageCallbackHandler) -> Answer:
    """The row of a result.

    Raises:
        ValueError: It cannot be written as JSON.
    """
    return _counted(Answer(content=to_json(_content(result))), usage)


def failed(error: Exception, usage: SvcUsageCallbackHandler) -> Answer:
    """The row of an error."""
    return _counted(Answer(error=to_json(_told(error))), usage)


def unreadable(problem: str) -> Answer:
    """The row of an input that cannot be asked."""
    return Answer(error=to_json({"type": "BadRow", "message": f"The row is not asked: {problem}"}))


def _content(result: Any) -> Any:
    """The text of a message, the last message of an agent's state, or the value itself."""
    if isinstance(result, BaseMessage):
        calls = getattr(result, "tool_calls", None)
        return {"text": result.text, "tool_calls": calls} if calls else result.text
    if isinstance(result, Mapping):
        turns = result.get("messages")
        if isinstance(turns, list) and turns and isinstance(turns[-1], BaseMessage):
            found = result.get("structured_response")
            return _content(turns[-1]) if found is None else found
    return result


def _told(error: Exception) -> dict[str, str]:
    # The text of foreign errors may hold anything, and be as long.
    text = str(error) if isinstance(error, SvcError) else str(error)[:_LONGEST_MESSAGE]
    return {"type": type(error).__name__, "message": text}


def _counted(answer: Answer, usage: SvcUsageCallbackHandler) -> Answer:
    """The same with the tokens of all models that were asked for it."""
    models = usage.models.values()
    costs = [amount for model in models for amount in model.cost.values()]
    answer.cost = sum(costs) if costs else None
    tokens = sum(model.total_tokens for model in models)
    if tokens:
        unsplit = any(model.unsplit_tokens for model in models)
        tokens_in = sum(model.input_tokens + model.estimated_input_tokens for model in models)
        split = (None, None) if unsplit else (tokens_in, tokens - tokens_in)
        answer.usage = (*split, tokens)
    return answer
