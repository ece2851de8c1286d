"""Reads one JSON object of an answer: a stream's chunk or a whole answer.

The documents show the whole answers (v1 API and general API, section 2) but not a stream's
pieces. `read_object` takes the shapes of docs/assumptions.md; what it cannot place it leaves
alone, so that a chunk is told from text that merely looks like JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

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
class About:
    """What an answer or a piece of one says beside its text.

    Attributes:
        finish_reason: Why the answer ended, if it did.
        usage: Token counts, by the names of the v1 API, or `{"total_tokens": n}`.
    """

    model: str | None = None
    id: str | None = None
    created: int | None = None
    timestamp: str | None = None
    finish_reason: str | None = None
    usage: dict[str, int] | None = None

    def said(self) -> dict[str, Any]:
        """What it says of these."""
        return {name: value for name in _ABOUT if (value := getattr(self, name))}


_ABOUT = tuple(one.name for one in fields(About))


@dataclass(kw_only=True)
class Found(About):
    """What one JSON object says.

    Attributes:
        text: Its text; None where it has none (a role, a usage or an end chunk).
        whole: Whether that text is a whole answer and not a piece.
        error: The error object or text it carries.
        completion: Whether it is completion-shaped (it has `choices`, or says that it is one).
        last: Whether it says that nothing follows.
    """

    text: str | None = None
    whole: bool = False
    error: Any = None
    completion: bool = False
    last: bool = False


def read_object(found: Mapping[str, Any]) -> Found | None:
    """What the object says; None if it is not part of an answer."""
    if _carries_error(found):
        return Found(error=found.get("error") or found)
    choices = found.get("choices")
    completion = isinstance(choices, list)
    if isinstance(choices, list):
        choice = _first_choice(choices)
        message = choice.get("message")
        whole = isinstance(message, dict)
        held = message if whole else choice.get("delta")
        text = _content(held.get("content")) if isinstance(held, dict) else None
        text = _content(choice.get("text")) if text is None else text
        reason = word(choice.get("finish_reason"))
        usage = read_usage(found.get("usage"))
    else:
        text, whole, reason = _read_plain(found)
        usage = read_usage(found.get("usage")) or read_usage(found)
        # One that calls itself a completion is one, also where it holds nothing.
        completion = str(found.get("object")).startswith("chat.completion")
        if text is None and usage is None and reason is None and not completion:
            return None
    return Found(
        text=text,
        whole=whole,
        finish_reason=reason,
        usage=usage,
        model=word(found.get("model")),
        id=word(found.get("id")),
        created=whole_number(found.get("created")),
        timestamp=word(found.get("timestamp")),
        completion=completion,
        last=found.get("done") is True,
    )


def _read_plain(found: Mapping[str, Any]) -> tuple[str | None, bool, str | None]:
    """The text of an object without choices, whether it is whole, and why it ends."""
    texts = (_content(found.get(key)) for key in _TEXT_KEYS)
    text = next((text for text in texts if text is not None), None)
    reason = word(found.get("finish_reason")) or word(found.get("done_reason"))
    if found.get("done") is True or found.get("type") in _DONE_TYPES:
        reason = reason or "stop"
    return text, text is not None and isinstance(found.get("success"), bool), reason


def _carries_error(found: Mapping[str, Any]) -> bool:
    error = found.get("error")
    if isinstance(error, dict):
        return True
    if isinstance(error, str) and error:
        return "choices" not in found
    return found.get("type") == "error" or found.get("success") is False


def _first_choice(choices: list[Any]) -> Mapping[str, Any]:
    """The choice with index 0: we ask for one answer, and others would garble it."""
    for choice in choices:
        if isinstance(choice, dict) and choice.get("index", 0) in (0, None):
            return choice
    return {}


def _content(content: Any) -> str | None:
    """Text of a content field: a string, a list of text blocks or an object around one."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        texts = (content.get(key) for key in ("content", "text"))
        return next((text for text in texts if isinstance(text, str)), None)
    if isinstance(content, list):
        known = [text for block in content if (text := _content(block)) is not None]
        return "".join(known) if known else None
    return None


# Where counts stand, and their names in the v1 API; of two that name one, the last goes first.
_COUNTS = (
    ("", "input_tokens", "prompt_tokens"),
    ("", "prompt_tokens", "prompt_tokens"),
    ("", "output_tokens", "completion_tokens"),
    ("", "completion_tokens", "completion_tokens"),
    ("", "tokens", "total_tokens"),
    ("", "total_tokens", "total_tokens"),
    ("prompt_tokens_details", "cached_tokens", "cached_tokens"),
    ("input_tokens_details", "cached_tokens", "cached_tokens"),
    ("completion_tokens_details", "reasoning_tokens", "reasoning_tokens"),
    ("output_tokens_details", "reasoning_tokens", "reasoning_tokens"),
)


def read_usage(usage: Any) -> dict[str, int] | None:
    """Token counts as whole numbers; odd ones are left out, and nothing readable is None.

    Zeros alone are what some gateways send that count nothing: no prompt has no tokens.
    """
    if not isinstance(usage, dict):
        return None
    counts = {}
    for place, key, name in _COUNTS:
        held = usage.get(place) if place else usage
        count = whole_number(held.get(key)) if isinstance(held, dict) else None
        if count is not None:
            counts[name] = count
    return counts if any(counts.values()) else None


def whole_number(value: Any) -> int | None:
    """A count, also where it is written as 5.0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if value >= 0 and value == value // 1 and value < 2**53 else None


def word(value: Any) -> str | None:
    """A text that is not empty."""
    return value if isinstance(value, str) and value else None
