"""From messages to what they mean: instructions, offer, history, the newest question.

Past calls and results belong to the newest question only when they follow it; a complaint about
the form of an answer is no question at all, it sends the engine back to the one before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from langchain_svc.sandbox.engine._jsontext import Json, json_values, without
from langchain_svc.sandbox.engine._offer import (
    Call,
    Demand,
    Tool,
    Wrapper,
    find_calls,
    read_demand,
    read_wrapper,
    tools_block,
)
from langchain_svc.sandbox.engine._results import (
    Result,
    is_headline,
    take_results,
    whole_turn_result,
)
from langchain_svc.sandbox.engine._split import drop_format, split_request
from langchain_svc.sandbox.engine._words import any_of, paragraphs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Splitter = Callable[[str], tuple[str, str]]


@dataclass(frozen=True)
class Turn:
    """One turn without the parts that are no conversation."""

    role: str
    text: str
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()


@dataclass(frozen=True)
class Reading:
    """A whole prompt, understood as far as rules can.

    `calls` and `results` are those since the question, `complaint` is what was found wrong with
    an answer to it.
    """

    instructions: str
    question: str
    history: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    wrapper: Wrapper = field(default_factory=Wrapper)
    demand: Demand = field(default_factory=Demand)
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    schema: dict[str, Json] | None = None
    complaint: str = ""


# --- Turns ---------------------------------------------------------------------------------

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "tool": "tool",
    "function": "tool",
}
_LABEL = re.compile(r"^(System|Human|User|AI|Assistant|Tool|Function): ?", re.MULTILINE)


def _transcript(text: str) -> list[tuple[str, str]]:
    """Split a text that is a whole conversation written down with labels."""
    labels = list(_LABEL.finditer(text))
    spoken = {_ROLES[label[1].lower()] for label in labels}
    if not labels or labels[0].start() != 0 or "user" not in spoken:
        return [("user", text)]
    ends = [label.start() for label in labels[1:]] + [len(text)]
    turns = [
        (_ROLES[label[1].lower()], text[label.end() : end].strip())
        for label, end in zip(labels, ends, strict=True)
    ]
    # Completion prompts end with the label of the one who is to speak.
    return turns if turns[-1][1] else turns[:-1]


_SYSTEM = re.compile(r"<system_message>\n(.*?)\n</system_message>\s*", re.DOTALL)
_SPEAKER = re.compile(r'<user_message name="([^"]*)">\n(.*?)\n</user_message>', re.DOTALL)


def _turns(messages: Sequence[Mapping[str, str]]) -> list[tuple[str, str]]:
    turns: list[tuple[str, str]] = []
    for message in messages:
        role = _ROLES.get(str(message.get("role", "user")).lower(), "user")
        text = str(message.get("content") or "")
        if role == "user":  # elements that tell who speaks in a turn of the user
            turns += [("system", found[1]) for found in _SYSTEM.finditer(text)]
            text = _SPEAKER.sub(r"\1: \2", _SYSTEM.sub("", text))
            if not text:
                continue
        turns += _transcript(text) if role == "user" and len(messages) == 1 else [(role, text)]
    return turns


# --- The whole prompt ----------------------------------------------------------------------

_JSON_TYPES = {"object", "array", "string", "integer", "number", "boolean", "null"}
_SCHEMA_MARKS = ("properties", "$defs", "definitions", "anyOf", "oneOf", "allOf", "$ref", "enum")
_COMPLAINT = re.compile(
    r"\b(?:not|no|n't|invalid|failed|errors?|missing|required|wrong|could|broken)\b",
    re.IGNORECASE,
)
_RETRY = any_of(
    "again", "fix(?:ed)?", "correct(?:ed)?", "valid", "instead", "retry", "must", "only"
)
_ONWARD = any_of(
    "continue", "go on", "proceed", "(?:use|using|based on) (?:the|these|this|that)", "now answer"
)
_SHORT_REMARK = 160


def as_schema(value: Json) -> dict[str, Json] | None:
    """Return `value` when it is a JSON schema, out of the envelopes schemas travel in."""
    for key in ("json_schema", "schema"):
        if isinstance(value, dict) and isinstance(value.get(key), dict):
            value = value[key]
    if not isinstance(value, dict):
        return None
    kind = value.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    typed = bool(kinds) and all(isinstance(k, str) and k in _JSON_TYPES for k in kinds)
    marked = any(isinstance(value.get(key), (dict, list)) for key in _SCHEMA_MARKS)
    return value if marked or typed or isinstance(value.get("$ref"), str) else None


def _lift(turns: list[tuple[str, str]]) -> tuple[list[tuple[str, str]], list[Tool], list[Json]]:
    """Take the tool definitions and the schemas out of the turns that give instructions."""
    rest: list[tuple[str, str]] = []
    tools: list[Tool] = []
    schemas: list[Json] = []
    for role, text in turns:
        spans: list[tuple[int, int]] = []
        if role in {"system", "user"}:
            values = list(json_values(text))
            block = None if tools else tools_block(text, values)
            if block:
                tools = block[0]
                spans.append(block[1:])
            found = [value for value in values if as_schema(value.value)]
            found = [v for v in found if not block or v.end <= block[1] or v.start >= block[2]]
            schemas += [value.value for value in found]
            spans += [(value.start, value.end) for value in found]
        rest.append((role, without(text, sorted(spans))))
    return rest, tools, schemas


def _user_turn(
    text: str, splitter: Splitter, *, answered: bool, after_calls: bool
) -> tuple[Turn, str]:
    """Return a user turn and the instructions that stood in it."""
    results, rest = take_results(text) if answered else ([], text)
    if after_calls and not results and is_headline(rest):
        return Turn("user", "", results=(whole_turn_result(rest),)), ""
    instructions, request = splitter(rest)
    if results and len(request) < _SHORT_REMARK and _ONWARD.match(request):
        request = ""
    return Turn("user", request, results=tuple(results)), instructions


@dataclass
class _Parts:
    """The turns of a prompt as they are being understood, with the text each came from."""

    turns: list[Turn]
    raws: list[str]
    instructions: list[str]


def _understand(turns: list[tuple[str, str]], splitter: Splitter, names: frozenset[str]) -> _Parts:
    parts = _Parts([], [], [])
    for role, text in turns:
        if role == "system":
            parts.instructions.append(text)
            continue
        if role == "assistant":
            turn = Turn(role, text, calls=tuple(find_calls(text, names)))
        elif role == "tool":
            turn = Turn("user", "", results=(whole_turn_result(text),))
        else:
            after_calls = bool(parts.turns and parts.turns[-1].calls)
            answered = any(turn.role == "assistant" for turn in parts.turns)
            turn, instructions = _user_turn(
                text, splitter, answered=answered, after_calls=after_calls
            )
            parts.instructions += [instructions] if instructions else []
        parts.turns.append(turn)
        parts.raws.append(text)
    return parts


def _newest_request(parts: _Parts, *, formal: bool) -> tuple[int, str]:
    """Return which turn asks, and the complaint about the form of an answer made since."""
    asking = [n for n, turn in enumerate(parts.turns) if turn.role == "user" and turn.text]
    complaint = ""
    for at in reversed(asking):
        raw = parts.raws[at]
        complains = _COMPLAINT.search(raw) and _RETRY.search(raw)
        if formal and at != asking[0] and complains and parts.turns[at - 1].role == "assistant":
            complaint = complaint or raw
            continue
        return at, complaint
    return -1, complaint


def _last_words(parts: _Parts) -> str:
    """Return the last paragraph anyone asked with, where everything looks like instructions."""
    asked = [raw for turn, raw in zip(parts.turns, parts.raws, strict=True) if turn.role == "user"]
    asked = [paragraphs(raw)[-1] for raw in asked if paragraphs(raw)]
    return asked[0] if asked else ""


def _unquoted(question: str) -> str:
    """Take off quotation marks around the whole of a question: it is said, not quoted."""
    text = question.strip()
    whole = text[:1] == text[-1:] == '"' and text.count('"') == len('""')
    return text[1:-1] if whole and any(mark in text for mark in ".?!") else question


def _bare_complaint(parts: _Parts, at: int) -> str:
    """Return a later turn of nothing but instructions, such as "Answer with JSON only."."""
    for turn, raw in zip(parts.turns[at + 1 :], parts.raws[at + 1 :], strict=True):
        if turn.role == "user" and not turn.results and raw.strip():
            return raw
    return ""


def _plain_splitter(text: str) -> tuple[str, str]:
    return "", text


def read(messages: Sequence[Mapping[str, str]]) -> Reading:
    """Read a whole prompt."""
    turns, tools, schemas = _lift(_turns(messages))
    splitter = split_request if tools else drop_format if schemas else _plain_splitter
    names = frozenset(tool.name for tool in tools)
    parts = _understand(turns, splitter, names)
    at, complaint = _newest_request(parts, formal=bool(tools or schemas))
    since = parts.turns[at + 1 :]
    question = _unquoted(parts.turns[at].text if at >= 0 else _last_words(parts))
    complaint = complaint or (_bare_complaint(parts, at) if at >= 0 else "")
    instructions = "\n\n".join(parts.instructions)
    return Reading(
        instructions=instructions,
        question=question,
        history=tuple(parts.turns[: max(at, 0)]),
        tools=tuple({tool.name: tool for tool in reversed(tools)}.values())[::-1],
        wrapper=read_wrapper(instructions),
        demand=read_demand(f"{instructions}\n{complaint}", question, sorted(names)),
        calls=tuple(call for turn in since for call in turn.calls),
        results=tuple(result for turn in since for result in turn.results),
        schema=as_schema(schemas[-1]) if schemas else None,
        complaint=complaint,
    )
