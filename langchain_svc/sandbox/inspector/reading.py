"""What a prompt consists of and what an answer says, read from their text alone.

The service takes a conversation as plain text, so where a part of it comes from shows in its form
only: by the forms that `prompts` knows, and those of common prompts. It may be mistaken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from langchain_svc.sandbox.answers import count_tokens
from langchain_svc.sandbox.prompts import elements, is_call, schema_of, tool_of, values_in

Part = tuple[str, str]  # where it comes from, and the text
_Span = tuple[int, int, str]

_KINDS = {"system_message": "system", "tool_response": "results", "image": "image"}
_TAGGED = re.compile(r"<(documents?|context|sources?|passages?)\b[^<>]*>")
# The marks around a call: a tag, a fence or a bracket, on a line of its own or beside it.
_MARK = 60  # characters
_OPENS = re.compile(r"(?:<[^<>\n]{1,40}>|```\w*|\[)\s*\Z")
_CLOSES = re.compile(r"\s*(?:</[^<>\n]{1,40}>|```|\])")
_HEADED = re.compile(
    r"(?m)^(?:Context|Documents?|Sources?|Passages?|Excerpts?)\b[^\n:]{0,40}:"
    r"(?s:.*?)(?=^(?:Question|Query|Answer|Helpful Answer)\b[^\n:]{0,40}:|\Z)"
)


def read_prompt(body: object) -> list[tuple[str, list[Part]]]:
    """The messages of a chat's body, each a role and its parts; none where it is not a chat."""
    if not isinstance(body, dict):
        return []
    messages = body.get("messages")
    if not isinstance(messages, list):
        message = body.get("message")
        messages = [{"role": "user", "content": message}] if isinstance(message, str) else []
    said = [(str(m.get("role")), str(m.get("content"))) for m in messages if isinstance(m, dict)]
    return _read_messages(said)


def _read_messages(said: list[tuple[str, str]]) -> list[tuple[str, list[Part]]]:
    read = [(role, list(_parts(role, text))) for role, text in said]
    asked = [
        index
        for index, (role, parts) in enumerate(read)
        if role == "user" and any(kind == "question" and text.strip() for kind, text in parts)
    ]
    for role, parts in read[: asked[-1] if asked else 0]:
        del role
        parts[:] = [("history" if kind == "question" else kind, text) for kind, text in parts]
    return read


def tokens_by_kind(messages: Iterable[tuple[str, list[Part]]]) -> dict[str, int]:
    """About how many tokens come from where, by the sandbox's own rule."""
    counts: dict[str, int] = {}
    for _, parts in messages:
        for kind, text in parts:
            counts[kind] = counts.get(kind, 0) + count_tokens(text)
    return counts


def _parts(role: str, text: str) -> Iterator[Part]:
    if role == "assistant":
        yield from _cut(text, _calls(text), "history")
        return
    if role == "system":
        yield from _cut(text, _instructions(text), "system")
        return
    done = 0
    for opening, _, end in elements(text):
        yield from _said(text[done : opening.start()])
        kind, whole = _KINDS.get(opening[1]), text[opening.start() : end]
        if kind is None:
            yield from _said(whole)
        elif kind == "system":
            yield from _cut(whole, _instructions(whole), kind)
        else:
            yield kind, whole
        done = end
    yield from _said(text[done:])


def _said(text: str) -> Iterator[Part]:
    for kind, part in _cut(text, _instructions(text), "question"):
        spans = _documents(part) if kind == "question" else []
        yield from _cut(part, spans, kind)


def _cut(text: str, spans: Iterable[_Span], rest: str) -> Iterator[Part]:
    done = 0
    for start, end, kind in spans:
        if end <= done:
            continue
        if text[done:start]:
            yield rest, text[done:start]
        yield kind, text[max(start, done) : end]
        done = end
    if text[done:]:
        yield rest, text[done:]


def _instructions(text: str) -> Iterator[_Span]:
    """The paragraphs that describe functions, or the form of the answer."""
    done = 0
    for value, (start, end) in values_in(text):
        if start < done:
            continue  # in the same paragraph
        if tool_of(value) or is_call(value):
            kind = "tools"
        elif schema_of(value) is not None:
            kind = "schema"
        else:
            continue
        above, below = text.rfind("\n\n", done, start), text.find("\n\n", end)
        begin, done = (above + 2 if above >= 0 else done), (below if below >= 0 else len(text))
        yield begin, done, kind


def _calls(text: str) -> Iterator[_Span]:
    """The calls, with the marks around them."""
    for value, (start, end) in values_in(text):
        if not is_call(value):
            continue
        before = _OPENS.search(text, max(0, start - _MARK), start)
        after = _CLOSES.match(text, end)
        yield before.start() if before else start, after.end() if after else end, "calls"


def _documents(text: str) -> list[_Span]:
    spans = [(*found.span(), "documents") for found in _HEADED.finditer(text)]
    spans += [(opening.start(), end, "documents") for opening, _, end in elements(text, _TAGGED)]
    return sorted(spans)


# -- answers --------------------------------------------------------------------------------------


def text_of(content_type: str, sent: bytes) -> str:
    """The text that an answer to a chat says, as far as it was sent; "" where it is none."""
    text = sent.decode(errors="replace")
    if content_type.startswith("text/plain"):
        return text
    if content_type.startswith("text/event-stream"):
        events = re.split(r"\n\n", text)
        data = ["\n".join(re.findall(r"(?m)^data: ?(.*)$", event)) for event in events]
        data = [each for each in data if each and each != "[DONE]"]
        return "".join(_delta(each, plain=not each.startswith("{")) for each in data)
    return "".join(_delta(line) for line in text.splitlines())


def _delta(line: str, *, plain: bool = False) -> str:
    if plain:
        return line
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(value, dict):
        return ""
    match value.get("choices"):
        case [{"delta": {"content": str(said)}}, *_] | [{"message": {"content": str(said)}}, *_]:
            return said
    response = value.get("response")
    return response if isinstance(response, str) else ""


def calls_of(text: str) -> list[Mapping[str, Any]]:
    """The calls of functions in an answer, in the form that prompts ask for."""
    return [value for value, _ in values_in(text) if is_call(value)]
