"""Reads one JSON object of an answer: a stream's chunk or a whole answer.

The documents show the whole answers (v1 API and general API, section 2) but not a stream's
pieces. `read_object` takes the shapes of docs/assumptions.md; what it cannot place it leaves
alone, so that a chunk is told from text that merely looks like JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# -- events ----------------------------------------------------------------------------------------
# What the bytes of an answer become on their way to a turn of a chat: typed events.
#
# A stream brings them read by read, and a whole answer all at once. Another kind of content
# than text, such as the pieces of a native tool call, would be one more class here:
# `read_object` reads it, `StreamState.add_object` and `EventParser` pass it on in its place
# among the texts, and a turn decides what it becomes.


@dataclass(slots=True)
class Text:
    """A piece of the answer's text."""

    text: str


@dataclass(slots=True)
class Metadata:
    """What the service says of the answer as a whole. It may say so again: the last one counts."""

    model: str | None = None
    id: str | None = None
    created: int | None = None
    timestamp: str | None = None


@dataclass(slots=True)
class Usage:
    """The tokens so far, as running totals: the last one counts.

    Their names are those of the v1 API; some services only send `{"total_tokens": n}`.
    """

    counts: dict[str, int]


@dataclass(slots=True)
class End:
    """The answer is over, and why (its finish_reason). Its usage may still follow."""

    reason: str


Event = Text | Metadata | Usage | End


@dataclass(kw_only=True)
class About:
    """What an answer, or a piece of one, says beside its text."""

    metadata: Metadata = field(default_factory=Metadata)
    finish_reason: str | None = None
    usage: dict[str, int] | None = None

    def note(self, event: Metadata | Usage | End) -> None:
        """Keep what an event of a stream says."""
        if isinstance(event, Metadata):
            self.metadata = event
        elif isinstance(event, Usage):
            self.usage = event.counts
        else:
            self.finish_reason = event.reason


# -- chunks ----------------------------------------------------------------------------------------

# Keys that hold a piece of text where there are no `choices`, in the order of trust.
_TEXT_KEYS = (
    "response",
    "delta",
    "content",
    "text",
    "token",
    "answer",
    "output",
    "message",
)
_DONE_TYPES = frozenset(
    {"done", "end", "finish", "stop", "complete", "completed", "message_stop"}
)


@dataclass(kw_only=True)
class AnswerObject(About):
    """What one JSON object of an answer says.

    Attributes:
        text: Its text; None where it has none (a role, a usage or an end chunk).
        whole: Whether that text is a whole answer and not a piece.
        error: The error object or text it carries.
        completion: Whether it is completion-shaped (it has `choices`, or says that it is one).
        last: Whether it says that nothing follows.
    """

    text: str | None = None
    whole: bool = False
    error: object = None
    completion: bool = False
    last: bool = False


def read_object(value: Mapping[str, object]) -> AnswerObject | None:
    """What the object says; None if it is not part of an answer."""
    if _carries_error(value):
        return AnswerObject(error=value.get("error") or value)
    choices = value.get("choices")
    if isinstance(choices, list):
        answer = _read_choice(_first_choice(choices))
        answer.usage = read_usage(value.get("usage"))
    else:
        answer = _read_plain(value)
        has_content = answer.text is not None or answer.usage is not None
        if not (has_content or answer.finish_reason or answer.completion):
            return None
    answer.metadata = Metadata(
        model=word(value.get("model")),
        id=word(value.get("id")),
        created=whole_number(value.get("created")),
        timestamp=word(value.get("timestamp")),
    )
    answer.last = value.get("done") is True
    return answer


def _carries_error(value: Mapping[str, object]) -> bool:
    error = value.get("error")
    if isinstance(error, dict):
        return True
    if isinstance(error, str) and error:
        return "choices" not in value
    return value.get("type") == "error" or value.get("success") is False


def _first_choice(choices: list[object]) -> Mapping[str, object]:
    """The choice with index 0: we ask for one answer, and others would garble it."""
    for choice in choices:
        if isinstance(choice, dict) and choice.get("index", 0) in (0, None):
            return choice
    return {}


def _read_choice(choice: Mapping[str, object]) -> AnswerObject:
    message = choice.get("message")
    whole = isinstance(message, dict)
    if not whole:
        message = choice.get("delta")
    text = None
    if isinstance(message, dict):
        text = _content(message.get("content"))
    if text is None:
        text = _content(choice.get("text"))
    return AnswerObject(
        text=text,
        whole=whole,
        finish_reason=word(choice.get("finish_reason")),
        completion=True,
    )


def _read_plain(value: Mapping[str, object]) -> AnswerObject:
    """What an object without choices says."""
    text = None
    for key in _TEXT_KEYS:
        text = _content(value.get(key))
        if text is not None:
            break
    reason = word(value.get("finish_reason")) or word(value.get("done_reason"))
    if value.get("done") is True or word(value.get("type")) in _DONE_TYPES:
        reason = reason or "stop"
    return AnswerObject(
        text=text,
        whole=text is not None and isinstance(value.get("success"), bool),
        finish_reason=reason,
        usage=read_usage(value.get("usage")) or read_usage(value),
        # One that calls itself a completion is one, also where it holds nothing.
        completion=str(value.get("object")).startswith("chat.completion"),
    )


def _content(content: object) -> str | None:
    """Text of a content field: a string, a list of text blocks or an object around one."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        for key in ("content", "text"):
            text = content.get(key)
            if isinstance(text, str):
                return text
    if isinstance(content, list):
        texts = [text for block in content if (text := _content(block)) is not None]
        if texts:
            return "".join(texts)
    return None


# The keys of counts, and their names in the v1 API; of two with one name the last goes first.
_COUNTS = (
    ("input_tokens", "prompt_tokens"),
    ("prompt_tokens", "prompt_tokens"),
    ("output_tokens", "completion_tokens"),
    ("completion_tokens", "completion_tokens"),
    ("tokens", "total_tokens"),
    ("total_tokens", "total_tokens"),
)
# Where the counts of parts stand.
_DETAILS = (
    ("prompt_tokens_details", "cached_tokens"),
    ("input_tokens_details", "cached_tokens"),
    ("completion_tokens_details", "reasoning_tokens"),
    ("output_tokens_details", "reasoning_tokens"),
)


def read_usage(usage: object) -> dict[str, int] | None:
    """Token counts as whole numbers; odd ones are left out, and nothing readable is None.

    Zeros alone are what some gateways send that count nothing: no prompt has no tokens.
    """
    if not isinstance(usage, dict):
        return None
    counts = {}
    for key, name in _COUNTS:
        if key in usage:
            count = whole_number(usage[key])
            if count is not None:
                counts[name] = count
    for place, name in _DETAILS:
        details = usage.get(place)
        if isinstance(details, dict):
            count = whole_number(details.get(name))
            if count is not None:
                counts[name] = count
    if not any(counts.values()):
        return None
    return counts


def whole_number(value: object) -> int | None:
    """A count, also where it is written as 5.0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if 0 <= value < 2**53 and value == value // 1:
        return int(value)
    return None


def word(value: object) -> str | None:
    """A text that is not empty."""
    if isinstance(value, str) and value:
        return value
    return None
