"""What a prompt offers, asks and tells, read from its text alone, as a model would read it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Schema = dict[str, Any]


@dataclass(frozen=True)
class OfferedTool:
    """A function that the prompt offers."""

    name: str
    about: str
    parameters: Schema


@dataclass(frozen=True)
class PromptCall:
    """A call of a function, made or to be made."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class PromptResult:
    """What a function returned."""

    text: str
    name: str = ""
    failed: bool = False


@dataclass
class ReadPrompt:
    """A conversation as the rules see it.

    `material` is all that was said beside the question, `calls` and `results` those since it,
    `images` what descriptions say.
    """

    question: str = ""
    material: list[str] = field(default_factory=list)
    tools: list[OfferedTool] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    schema: Schema | None = None
    keys: list[str] = field(default_factory=list)
    wants_json: bool = False
    opening: str = "<tool_call>\n"
    closing: str = "\n</tool_call>"
    required: bool = False
    named: str = ""
    single: bool = False
    calls: list[PromptCall] = field(default_factory=list)
    results: list[PromptResult] = field(default_factory=list)


def read(messages: Sequence[Mapping[str, str]]) -> ReadPrompt:
    """Read a conversation."""
    prompt = ReadPrompt()
    unconfirmed: list[PromptCall] = []  # what the last turn of the assistant called
    for message in messages:
        text = str(message.get("content") or "")
        if message.get("role") == "assistant":
            unconfirmed = [
                PromptCall(v["name"], v["arguments"]) for v, _ in values_in(text) if is_call(v)
            ]
            continue
        turn = _turn(text)
        joint = " " if turn.images else "\n\n"  # a handle belongs to the words beside it
        said = joint.join(filter(None, turn.said))
        if message.get("role") == "system":
            turn.system, said = [*turn.system, said], ""
        for each in turn.system:
            prompt.wants_json |= bool(_WANTS_JSON.search(each))
            prompt.material += [_instructed(prompt, each)]
        question = _instructed(prompt, said)
        if turn.results:
            prompt.calls += unconfirmed
            prompt.results += turn.results
        if _COMPLAINT.match(question):
            _demand(prompt, question)
        elif question or not prompt.question:
            _ask(prompt, question)
            prompt.images = turn.images
    prompt.material = [text for text in prompt.material if text]
    if not prompt.question and prompt.material and not prompt.results:
        prompt.question = prompt.material.pop()
    _keys(prompt)
    return prompt


def _ask(prompt: ReadPrompt, question: str) -> None:
    prompt.material += [prompt.question] if prompt.question else []
    prompt.material += [result.text for result in prompt.results]
    prompt.question, prompt.calls, prompt.results = question, [], []


# -- the elements of a turn -----------------------------------------------------------------------

_OPENING = re.compile(r"<(system_message|user_message|tool_response|image)\b([^<>]*)>")
_ATTRIBUTE = re.compile(r'\b(name|handle)="([^"]*)"')


@dataclass
class _UserTurn:
    """The elements of a turn of the user."""

    system: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    results: list[PromptResult] = field(default_factory=list)
    images: list[str] = field(default_factory=list)

    def add(self, kind: str, attributes: str, body: str) -> None:
        """Take an element in; of an image only the handle is said."""
        named: dict[str, str] = dict(_ATTRIBUTE.findall(attributes))
        if kind == "system_message":
            self.system.append(body)
        elif kind == "user_message":
            self.said.append(body)
        elif kind == "image":
            self.images.append(body)
            self.said.append(named.get("handle", named.get("name", "")))
        else:
            failed = 'status="error"' in attributes or body.startswith("Error")
            self.results.append(PromptResult(body, named.get("name", ""), failed))


def _turn(text: str) -> _UserTurn:
    turn = _UserTurn()
    done = 0
    for opening, body_end, end in elements(text):
        kind, attributes = opening.groups()
        turn.said.append(text[done : opening.start()].strip())
        turn.add(kind, attributes, text[opening.end() : body_end].strip())
        done = end
    turn.said.append(text[done:].strip())
    return turn


def elements(
    text: str, openings: re.Pattern[str] = _OPENING
) -> Iterator[tuple[re.Match[str], int, int]]:
    """The elements of a turn: the opening tag, where the body ends, and where the element does."""
    done, unclosed = 0, set()
    for found in openings.finditer(text):
        kind = found[1]
        if found.start() < done or kind in unclosed:
            continue
        body_end = text.find(f"</{kind}>", found.end())
        if body_end < 0:
            unclosed.add(kind)
            continue
        done = body_end + len(kind) + 3
        yield found, body_end, done


# -- JSON in a text -------------------------------------------------------------------------------

_DECODER = json.JSONDecoder()
_OBJECT = re.compile(r'\{\s*"')
Span = tuple[int, int]


def values_in(text: str) -> Iterator[tuple[dict[str, Any], Span]]:
    """Every JSON object in a text and where it stands, none inside another."""
    done, patience = 0, 4 * len(text) + 10_000  # for what only begins like one
    for found in _OBJECT.finditer(text):
        if found.start() < done or patience < 0:
            continue
        try:
            value, done = _DECODER.raw_decode(text, found.start())
        except json.JSONDecodeError as error:
            patience -= error.pos - found.start()
            continue
        except RecursionError:
            patience -= len(text) // 10
            continue
        yield value, (found.start(), done)


def is_call(value: Mapping[str, Any]) -> bool:
    """Whether an object is a call of a function."""
    return isinstance(value.get("name"), str) and isinstance(value.get("arguments"), dict)


def tool_of(value: Mapping[str, Any]) -> OfferedTool | None:
    """The function that an object describes, or None."""
    function = value.get("function", value)
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        return None
    schema = function.get("parameters", function.get("input_schema"))
    if "arguments" in function or (schema is None and "description" not in function):
        return None
    schema = schema if isinstance(schema, dict) else {}
    properties = _properties(schema)
    fields = " ".join(f"{k} {v.get('description', '')}" for k, v in properties.items())
    return OfferedTool(
        function["name"],
        f"{function['name']} {function.get('description', '')} {fields}",
        {**schema, "type": "object", "properties": properties},
    )


def _properties(schema: Mapping[str, Any]) -> dict[str, Schema]:
    found = schema.get("properties")
    found = found if isinstance(found, dict) else {}
    return {name: part for name, part in found.items() if isinstance(part, dict)}


def schema_of(value: dict[str, Any]) -> Schema | None:
    """The schema that an object is or holds, or None."""
    held = value.get("schema", value)
    marks = {"properties", "$ref", "anyOf", "oneOf", "allOf", "$defs", "enum"}
    if not isinstance(held, dict):
        return None
    return held if marks & held.keys() or held.get("type") == "array" else None


# -- instructions ---------------------------------------------------------------------------------

_REQUIRED = re.compile(r"(?i)\bmust (?:now )?(?:call|be called|use)\b")
_SINGLE = re.compile(r"(?i)\bat most one (?:function|tool|call)")
_WANTS_JSON = re.compile(
    r"(?i)\b(?:answer|return|respond|reply|output|write|give|formatted|produce)\b"
    r"(?![^.\n]{0,80}\bblock\b)[^.\n]{0,80}\bJSON\b"  # calls are written in blocks of JSON
)
_COMPLAINT = re.compile(r"That (?:answer|call) ")
_ABOUT_FORM = re.compile(r"\bJSON\b|^```|\bschema\b")


def _instructed(prompt: ReadPrompt, text: str) -> str:
    """Take the instructions on form out of a text, and return what else it says."""
    spans = []
    for value, span in values_in(text):
        if tool := tool_of(value):
            prompt.tools = [t for t in prompt.tools if t.name != tool.name] + [tool]
        elif is_call(value):
            before = text[: span[0]].rstrip("\n").rpartition("\n")[2]
            after = text[span[1] :].lstrip("\n").partition("\n")[0]
            framed = before.startswith(("<", "`", "["))
            prompt.opening, prompt.closing = (f"{before}\n", f"\n{after}") if framed else ("", "")
        elif (schema := schema_of(value)) is not None:
            prompt.schema = schema
        else:
            continue
        spans.append(span)
    if not spans:
        return text
    told = _without(text, spans)
    _demand(prompt, told)
    paragraphs = re.split(r"\n\s*\n", _without(text, spans, "\0"))
    return "\n\n".join(p for p in paragraphs if "\0" not in p and not _ABOUT_FORM.search(p)).strip()


def _demand(prompt: ReadPrompt, told: str) -> None:
    """Take note of which calls a text wants."""
    if not prompt.tools:
        return
    prompt.single |= bool(_SINGLE.search(told))
    for sentence in re.split(r"\n|\. ", told):
        if _REQUIRED.search(sentence):
            prompt.required = True
            # "That answer calls this, but that must be called": the last name counts.
            at = {tool.name: sentence.rfind(tool.name) for tool in prompt.tools}
            last = max(at, key=lambda name: at[name])
            prompt.named = last if at[last] >= 0 else prompt.named


def _without(text: str, spans: Sequence[Span], mark: str = "") -> str:
    kept, done = [], 0
    for start, end in spans:
        kept += [text[done:start], mark]
        done = end
    return "".join([*kept, text[done:]]).strip()


def _keys(prompt: ReadPrompt) -> None:
    """Find the keys that a question wants of a JSON object, and take what it says of JSON out."""
    prompt.wants_json |= bool(_WANTS_JSON.search(prompt.question))
    if not prompt.wants_json:
        return
    every = re.split(r"(?<=[.!?])\s+|\n", prompt.question)
    for sentence in every:
        if re.search(r"(?i)\b(?:keys?|fields?)\b", sentence):
            quoted = re.findall(r"[`'\"](\w+)[`'\"]", sentence)
            listed = re.search(r"(?i)\b(?:keys|fields)\b:?((?:,? (?:and )?\w+)+)", sentence)
            prompt.keys = quoted or (re.findall(r"\b(?!and\b)\w+", listed[1]) if listed else [])
    rest = " ".join(each for each in every if "JSON" not in each)
    prompt.question = rest.strip() or prompt.question
