"""The result of a row, as the journal keeps it.

An answer is whole or it was cut. A row whose answer was cut is a failed row of its own kind:
its text is kept, and it is asked again as other failed rows are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage
from pydantic_core import to_jsonable_python

from .._wire import is_cut
from ..errors import SvcError, SvcOutputError
from ..observe.usage import RunHandler, SvcUsageCallbackHandler

CUT = "cut"
# Where the integrations of LangChain say why an answer ended.
_REASONS = ("finish_reason", "stop_reason", "done_reason")
_LONGEST_MESSAGE = 500  # the text of foreign errors may hold anything, and be as long


def to_json(value: object) -> str:
    """A value as JSON text; ValueError where it holds NaN or an infinity, or refers to itself."""
    return json_line(to_jsonable_python(value, fallback=str))


def json_line(plain: object) -> str:
    """The same for a value that JSON has. Letters stay readable where UTF-8 can encode them."""
    text = json.dumps(plain, ensure_ascii=False, allow_nan=False)
    try:
        text.encode()
    except UnicodeEncodeError:  # half a character, as models write now and then
        return json.dumps(plain)
    return text


class AnswerWatch(RunHandler[None]):
    """Records why the answers of a row's models ended.

    A text or an object that a chain makes of an answer does not say whether the answer was cut.

    Attributes:
        reasons: Of the answers so far. A cut answer that is a whole JSON object or array is left
            out: the cut took nothing of it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reasons: list[str] = []

    def _start_model_run(
        self,
        run_id: UUID,
        prompt: list[BaseMessage],
        details: dict[str, Any],
    ) -> None: ...

    def _end_model_run(
        self, run_id: UUID, answer: AIMessage | None, error: BaseException | None = None
    ) -> None:
        if answer is None or error is not None:
            return
        reason = _reason(answer)
        if reason is not None and not (is_cut(reason) and _is_whole_json(answer.text)):
            self.reasons.append(reason)

    def reason(self) -> str | None:
        """Why the row's answers ended: the first cut, or else the reason of the last answer."""
        for reason in self.reasons:
            if is_cut(reason):
                return reason
        return self.reasons[-1] if self.reasons else None


@dataclass
class RowResult:
    """A row's answer or error as JSON texts, "null" for neither, and its usage where known."""

    cut: bool = False
    content: str = "null"
    error: str = "null"
    finish_reason: str | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    tokens: int | None = None
    cost: float | None = None
    currency: str | None = None

    @property
    def failed(self) -> bool:
        return self.error != "null"

    @classmethod
    def of_answer(cls, answer: object, watch: AnswerWatch) -> Self:
        """ValueError where the answer cannot be written as JSON."""
        message = _message(answer)
        reason = None
        if message is not None:
            reason = _reason(message)
        return cls._of_text(to_json(_content(answer)), reason or watch.reason())

    @classmethod
    def of_error(cls, error: Exception) -> Self:
        """The row's error; a cut answer where it failed its check because it was cut."""
        if isinstance(error, SvcOutputError) and is_cut(error.finish_reason):
            return cls._of_text(to_json(error.raw or None), error.finish_reason)
        return cls(
            error=to_json({"type": type(error).__name__, "message": error_text(error)})
        )

    @classmethod
    def _of_text(cls, content: str, reason: str | None) -> Self:
        if not is_cut(reason):
            return cls(content=content, finish_reason=reason)
        message = (
            f"The answer was cut off (finish_reason {reason!r}); content has what came. A higher "
            "max_tokens lets it end, unless a filter cut it"
        )
        error = to_json({"type": CUT, "message": message})
        return cls(cut=True, content=content, error=error, finish_reason=reason)

    def add_usage(self, usage: SvcUsageCallbackHandler) -> Self:
        """The same result with the tokens and the cost of all models that the row asked."""
        models = usage.models.values()
        costs = [cost for model in models for cost in model.cost.items()]
        if costs:
            self.cost = sum(amount for _, amount in costs)
            self.currency = costs[0][0]
        self.tokens = sum(model.total_tokens for model in models) or None
        if self.tokens:
            self.tokens_in = sum(
                model.input_tokens + model.estimated_input_tokens for model in models
            )
            self.tokens_out = self.tokens - self.tokens_in
        return self


def error_kind(error: str) -> str:
    """The type in a row's error, which is JSON text; "unknown" where it has none."""
    try:
        kind = json.loads(error)["type"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return "unknown"
    return str(kind)


def error_text(error: BaseException) -> str:
    """The text of an error; only the beginning where the error is not this package's."""
    text = str(error)
    if isinstance(error, SvcError):
        return text
    return text[:_LONGEST_MESSAGE]


def _reason(message: BaseMessage) -> str | None:
    """Why a message's answer ended, as its model says."""
    for name in _REASONS:
        reason = message.response_metadata.get(name)
        if isinstance(reason, str):
            return reason
    return None


def _is_whole_json(text: str) -> bool:
    """Whether a text is an object or an array whose last bracket came."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict | list)


def _message(answer: object) -> BaseMessage | None:
    """The answer itself if it is a message, or the last message of an agent's state."""
    if isinstance(answer, BaseMessage):
        return answer
    if not isinstance(answer, Mapping):
        return None
    turns = answer.get("messages")
    if isinstance(turns, list) and turns and isinstance(turns[-1], BaseMessage):
        return turns[-1]
    return None


def _content(answer: object) -> object:
    """The text of a message, the last message of an agent's state, or the value itself."""
    message = _message(answer)
    if message is None:
        return answer
    if isinstance(answer, Mapping):
        structured = answer.get("structured_response")
        if structured is not None:
            return structured
    calls: dict[str, object] = {}
    for name in ("tool_calls", "invalid_tool_calls"):
        value = getattr(message, name, None)
        if value:
            calls[name] = value
    if calls:
        return {"text": message.text, **calls}
    return message.text
