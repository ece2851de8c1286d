"""What tools answered, as a prompt tells it: in tags, in turns of their own, or as a headline."""

from __future__ import annotations

import re
from dataclasses import dataclass

from langchain_svc.sandbox.engine._jsontext import Json, json_values

# Results stand in lines of their own; a tag within a line is talk about tags.
_OPEN = re.compile(
    r"^[ \t]{0,8}<(tool_response|tool_result|function_response|function_result|observation)\b"
    r"([^<>]{0,300})>",
    re.IGNORECASE | re.MULTILINE,
)
_ATTRIBUTE = re.compile(r"([\w-]{1,40})\s?=\s?[\"']([^\"'<>]{0,200})[\"']")
_HEADLINE = re.compile(
    r"\s*(?:the )?(?:tool|function) (?:results?|responses?|outputs?)\b|\s*(?:results?|output) of\b"
    r"|\s*observation:",
    re.IGNORECASE,
)
_ERROR_WORDS = re.compile(
    r"\s*(?:the tool failed|error|exception|traceback|failed)\b", re.IGNORECASE
)
_BODY_KEYS = ("content", "result", "output", "response")
_ENVELOPE = {*_BODY_KEYS, "name", "id", "tool_call_id", "status", "error", "is_error", "tool"}


@dataclass(frozen=True)
class Result:
    """One tool result; `name` is empty where the prompt does not tell it."""

    name: str
    text: str
    failed: bool


def _envelope(body: str) -> dict[str, Json]:
    """Return the JSON object that wraps a result, or nothing where the body is the result."""
    if not body.startswith("{"):
        return {}
    found = next(json_values(body), None)
    value = found.value if found and found.end == len(body) else None
    if not isinstance(value, dict) or not set(value) <= _ENVELOPE:
        return {}
    return value if any(key in value for key in _BODY_KEYS) and len(value) > 1 else {}


def _result(body: str, facts: dict[str, Json]) -> Result:
    body = body.strip()
    envelope = _envelope(body)
    facts = {**facts, **{key: v for key, v in envelope.items() if key not in _BODY_KEYS}}
    inner = next((envelope[key] for key in _BODY_KEYS if key in envelope), body)
    text = inner if isinstance(inner, str) else body
    marked = str(facts.get("status", "")).lower() in {"error", "failed"}
    flagged = any(str(facts.get(key, "")).lower() in {"true", "1"} for key in ("error", "is_error"))
    failed = marked or flagged or bool(_ERROR_WORDS.match(text)) or text.startswith('{"error"')
    return Result(str(facts.get("name") or facts.get("tool") or ""), text, failed)


def take_results(text: str) -> tuple[list[Result], str]:
    """Split a turn into the tool results in it and the text that remains."""
    results: list[Result] = []
    rest: list[str] = []
    done = 0
    while opening := _OPEN.search(text, done):
        rest.append(text[done : opening.start()])
        closer = f"</{opening[1]}>"
        end = text.find(closer, opening.end())
        body = text[opening.end() : end if end >= 0 else len(text)]
        facts: dict[str, Json] = dict(_ATTRIBUTE.findall(opening[2]))
        results.append(_result(body, facts))
        done = end + len(closer) if end >= 0 else len(text)
    rest.append(text[done:])
    return results, "\n\n".join(part.strip() for part in rest if part.strip())


def whole_turn_result(text: str) -> Result:
    """Read a turn that consists of one result, such as one in the role of a tool."""
    return _result(text, {})


def is_headline(text: str) -> bool:
    """Tell whether an untagged turn announces itself as the result of a tool."""
    return bool(_HEADLINE.match(text))
