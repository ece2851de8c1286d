"""What a prompt offers, asks and tells, read from its text alone, as a model would read it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    done, timeouts = 0, 4 * len(text) + 10_000  # for what only begins like one
    for found in _OBJECT.finditer(text):
        if found.start() < done or timeouts < 0:
            continue
        try:
            value, done = _DECODER.raw_decode(text, found.start())
        except json.JSONDecodeError as error:
            timeouts -= error.pos - found.start()
            continue
        except RecursionError:
            timeouts -= len(text) // 10
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


# -- tokens: counts and pieces always agree, and no model counts so -------------------------------
# A word of up to six letters is one token; from a longer word, fours are cut until six or fewer are
# left. Every other visible character is a token. White space rides on the token after it, or on the
# last one; it is an alternative of its own in the pattern, as a leading `\s*` would try again from
# every blank of a long run of blanks, and a megabyte of them would take hours.

_PIECE = re.compile(r"\s+|\w{1,6}(?!\w)|\w{1,4}|[^\w\s]")


def split_tokens(text: str) -> list[str]:
    """Cut `text` into its tokens; joined together they are `text` again."""
    tokens: list[str] = []
    blank = ""
    for piece in _PIECE.findall(text):
        if piece.isspace():
            blank += piece
        else:
            tokens.append(blank + piece)
            blank = ""
    if blank:
        tokens[-1:] = [(tokens[-1] if tokens else "") + blank]
    return tokens


def count_tokens(text: str) -> int:
    """Return how many tokens `text` has."""
    return len(split_tokens(text))
