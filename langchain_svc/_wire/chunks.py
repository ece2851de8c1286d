"""Reads one JSON object of an answer: a stream's chunk or a whole answer.

The documents show the whole answers (v1 API and general API, section 2) but not a stream's
pieces. `read_object` takes every plausible shape of both and says what it found; what it cannot
place it leaves alone, so the caller can tell a chunk from text that merely looks like JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Keys that hold a piece of text where there are no `choices`, in the order of trust.
_TEXT_KEYS = ("response", "delta", "content", "text", "token", "answer", "output", "message")
_DONE_TYPES = frozenset({"done", "end", "finish", "stop", "complete", "completed", "message_stop"})


@dataclass(frozen=True)
class Found:
    """What one JSON object says.

    Attributes:
        text: Its text; None where it has none (a role, a usage or an end chunk).
        whole: Whether that text is a whole answer and not a piece.
        finish_reason: Why the answer ended, if this object ends it.
        usage: Token counts, by the names of the v1 API, or `{"total_tokens": n}`.
        error: The error object or text it carries.
        completion: Whether it is completion-shaped (it has `choices`, or says that it is one).
        last: Whether it says that nothing follows.
    """

    text: str | None = None
    whole: bool = False
    finish_reason: str | None = None
    usage: dict[str, int] | None = None
    model: str | None = None
    id: str | None = None
    created: int | None = None
    error: Any = None
    completion: bool = False
    last: bool = False


def read_object(found: Mapping[str, Any]) -> Found | None:
    """What the object says; None if it is not part of an answer."""
    if _carries_error(found):
        return Found(error=found.get("error") or found)
    if isinstance(found.get("choices"), list):
        return _read_completion(found)
    return _read_plain(found) or _read_envelope(found)


def _carries_error(found: Mapping[str, Any]) -> bool:
    error = found.get("error")
    if isinstance(error, dict):
        return True
    if isinstance(error, str) and error:
        return "choices" not in found
    return found.get("type") == "error" or found.get("success") is False


def _read_completion(found: Mapping[str, Any]) -> Found | None:
    choice = _first_choice(found["choices"])
    message = choice.get("message")
    source = message if isinstance(message, dict) else choice.get("delta")
    text = read_content(source.get("content")) if isinstance(source, dict) else None
    if text is None and isinstance(choice.get("text"), str):
        text = choice["text"]
    return Found(
        text=text,
        whole=isinstance(message, dict),
        finish_reason=_word(choice.get("finish_reason")),
        usage=read_usage(found.get("usage")),
        model=_word(found.get("model")),
        id=_word(found.get("id")),
        created=_whole_number(found.get("created")),
        completion=True,
    )


def _first_choice(choices: list[Any]) -> Mapping[str, Any]:
    """The choice with index 0: we ask for one answer, and others would garble it."""
    for choice in choices:
        if isinstance(choice, dict) and choice.get("index", 0) in (0, None):
            return choice
    return {}


def _read_plain(found: Mapping[str, Any]) -> Found | None:
    text = next((t for key in _TEXT_KEYS if (t := read_content(found.get(key))) is not None), None)
    usage = read_usage(found.get("usage")) or read_usage(found)
    reason = _word(found.get("finish_reason")) or _word(found.get("done_reason"))
    if found.get("done") is True or found.get("type") in _DONE_TYPES:
        reason = reason or "stop"
    if text is None and usage is None and reason is None:
        return None
    return Found(
        text=text,
        whole=text is not None and isinstance(found.get("success"), bool),
        finish_reason=reason,
        last=found.get("done") is True,
        usage=usage,
        model=_word(found.get("model")),
        id=_word(found.get("id")),
    )


def _read_envelope(found: Mapping[str, Any]) -> Found | None:
    """An object that calls itself a completion and holds none."""
    kind = found.get("object")
    if not isinstance(kind, str) or not kind.startswith("chat.completion"):
        return None
    return Found(model=_word(found.get("model")), id=_word(found.get("id")), completion=True)


def read_content(content: Any) -> str | None:
    """Text of a content field: a string, a list of text blocks or an object around one."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return next(
            (content[key] for key in ("content", "text") if isinstance(content.get(key), str)),
            None,
        )
    if isinstance(content, list):
        texts = [block if isinstance(block, str) else read_content(block) for block in content]
        known = [text for text in texts if text is not None]
        return "".join(known) if known else None
    return None


def read_usage(usage: Any) -> dict[str, int] | None:
    """Token counts as whole numbers; odd ones are left out, and nothing readable is None.

    Zeros alone are what some gateways send that count nothing: no prompt has no tokens. The counts
    of `prompt_tokens_details` and `completion_tokens_details`, which other services send,
    are read, too.
    """
    if not isinstance(usage, dict):
        return None
    names = {
        "prompt_tokens": ("prompt_tokens", "input_tokens"),
        "completion_tokens": ("completion_tokens", "output_tokens"),
        "total_tokens": ("total_tokens", "tokens"),
    }
    counts = {
        name: count
        for name, keys in names.items()
        if (
            count := next((n for k in keys if (n := _whole_number(usage.get(k))) is not None), None)
        )
        is not None
    }
    for inner, name in _DETAILS.items():
        details = usage.get(inner)
        count = _whole_number(details.get(name)) if isinstance(details, dict) else None
        if count is not None:
            counts[name] = count
    return counts if any(counts.values()) else None


_DETAILS = {
    "prompt_tokens_details": "cached_tokens",
    "input_tokens_details": "cached_tokens",
    "completion_tokens_details": "reasoning_tokens",
    "output_tokens_details": "reasoning_tokens",
}


def _whole_number(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if value >= 0 and value == value // 1 and value < 2**53 else None


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
