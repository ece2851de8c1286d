"""What a prompt offers, asks and tells, read from its text alone, as a model would read it.

Every message is cut into parts, each of one kind. The inspector shows them; `read` makes of them
what the rules answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

Schema = dict[str, Any]
Part = tuple[str, str]  # where it comes from, and the text
Span = tuple[int, int]
_Cut = tuple[int, int, str]  # where a part begins and ends, and its kind


# -- parts ----------------------------------------------------------------------------------------

_KINDS = {"system_message": "system", "tool_response": "results", "image": "image"}
_ELEMENT = re.compile(r"<(system_message|user_message|tool_response|image)\b[^<>]*>")
_TAGGED = re.compile(r"<(documents?|context|sources?|passages?)\b[^<>]*>")
_HEADED = re.compile(
    r"(?m)^(?:Context|Documents?|Sources?|Passages?|Excerpts?)\b[^\n:]{0,40}:"
    r"(?s:.*?)(?=^(?:Question|Query|Answer|Helpful Answer)\b[^\n:]{0,40}:|\Z)"
)
# The marks around a call: a tag, a fence or a bracket, on a line of its own or beside it.
_MARK = 60  # characters
_OPENS = re.compile(r"(?:<[^<>\n]{1,40}>|```\w*|\[)\s*\Z")
_CLOSES = re.compile(r"\s*(?:</[^<>\n]{1,40}>|```|\])")


def cut_messages(messages: Iterable[Mapping[str, Any]]) -> list[tuple[str, list[Part]]]:
    """Each message's role and its parts, whose texts make up the message."""
    said = [(str(m.get("role")), str(m.get("content") or "")) for m in messages]
    found = [(role, list(_parts(role, text))) for role, text in said]
    asked = [
        index
        for index, (role, parts) in enumerate(found)
        if role == "user"
        and any(kind == "question" and text.strip() for kind, text in parts)
    ]
    for _, parts in found[: asked[-1] if asked else 0]:
        parts[:] = [
            ("history" if kind == "question" else kind, text) for kind, text in parts
        ]
    return found


def _parts(role: str, text: str) -> Iterator[Part]:
    if role == "assistant":
        yield from _cut(text, _calls(text), "history")
        return
    if role == "system":
        yield from _cut(text, _instructions(text), "system")
        return
    done = 0
    for opening, end in _elements(text, _ELEMENT):
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
        yield from _cut(part, _documents(part) if kind == "question" else [], kind)


def _cut(text: str, spans: Iterable[_Cut], rest: str) -> Iterator[Part]:
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


def _elements(
    text: str, openings: re.Pattern[str]
) -> Iterator[tuple[re.Match[str], int]]:
    """The opening tag of each element that is closed, and where the element ends."""
    done, unclosed = 0, set()
    for found in openings.finditer(text):
        kind = found[1]
        if found.start() < done or kind in unclosed:
            continue
        closes = text.find(f"</{kind}>", found.end())
        if closes < 0:
            unclosed.add(kind)
            continue
        done = closes + len(kind) + 3
        yield found, done


def _instructions(text: str) -> Iterator[_Cut]:
    """The paragraphs that describe functions, or the form of the answer."""
    done = 0
    for value, (start, end) in values_in(text):
        if start < done:
            continue  # in the same paragraph
        kind = "tools" if tool_of(value) or is_call(value) else "schema"
        if kind == "schema" and schema_of(value) is None:
            continue
        above, below = text.rfind("\n\n", done, start), text.find("\n\n", end)
        begin, done = (
            (above + 2 if above >= 0 else done),
            (below if below >= 0 else len(text)),
        )
        yield begin, done, kind


def _calls(text: str) -> Iterator[_Cut]:
    for value, span in values_in(text):
        if is_call(value):
            yield *_framed(text, *span), "calls"


def _framed(text: str, start: int, end: int) -> Span:
    """Where the marks around a call begin and end."""
    before = _OPENS.search(text, max(0, start - _MARK), start)
    after = _CLOSES.match(text, end)
    return before.start() if before else start, after.end() if after else end


def _documents(text: str) -> list[_Cut]:
    spans = [(*found.span(), "documents") for found in _HEADED.finditer(text)]
    spans += [
        (opening.start(), end, "documents") for opening, end in _elements(text, _TAGGED)
    ]
    return sorted(spans)


# -- JSON in a text -------------------------------------------------------------------------------

_DECODER = json.JSONDecoder()
_OBJECT = re.compile(r'\{\s*"')


class OfferedTool(NamedTuple):
    """A function that the prompt offers, and all the words that describe it."""

    name: str
    about: str
    parameters: Schema


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
        except RecursionError:
            patience -= len(text) // 10
        else:
            yield value, (found.start(), done)


def is_call(value: Mapping[str, Any]) -> bool:
    """Whether an object is a call of a function."""
    return isinstance(value.get("name"), str) and isinstance(
        value.get("arguments"), dict
    )


def tool_of(value: Mapping[str, Any]) -> OfferedTool | None:
    """The function that an object describes, or None."""
    function = value.get("function", value)
    if not isinstance(function, dict) or not isinstance(
        name := function.get("name"), str
    ):
        return None
    schema = function.get("parameters", function.get("input_schema"))
    if "arguments" in function or (schema is None and "description" not in function):
        return None
    schema = schema if isinstance(schema, dict) else {}
    held = schema.get("properties")
    found = held.items() if isinstance(held, dict) else ()
    properties = {key: part for key, part in found if isinstance(part, dict)}
    fields = (
        f"{key} {part.get('description', '')}" for key, part in properties.items()
    )
    about = " ".join([name, str(function.get("description", "")), *fields])
    return OfferedTool(
        name, about, {**schema, "type": "object", "properties": properties}
    )


def schema_of(value: Schema) -> Schema | None:
    """The schema that an object is or holds, or None."""
    held = value.get("schema", value)
    marks = {"properties", "$ref", "anyOf", "oneOf", "allOf", "$defs", "enum"}
    if not isinstance(held, dict):
        return None
    return held if marks & held.keys() or held.get("type") == "array" else None


# -- what the rules read of it --------------------------------------------------------------------

Call = tuple[str, dict[str, Any]]  # a function's name and its arguments

_SAID = {"question", "history", "documents", "image"}
_TAGS = re.compile(r"</?(?:system_message|user_message|tool_response|image)\b[^<>]*>")
_NAMED = re.compile(r'<[^<>]*\b(?:name|handle)="([^"]*)"')
_COMPLAINT = re.compile(r"That (?:answer|call) ")
_REQUIRED = re.compile(r"(?i)\bmust (?:now )?(?:call|be called|use)\b")
_WANTS_JSON = re.compile(
    r"(?i)\b(?:answer|return|respond|reply|output|formatted)\b[^.\n]*\bJSON\b"
)
_ABOUT_FORM = re.compile(r"\bJSON\b|^```|\bschema\b")


class PromptResult(NamedTuple):
    """What a function returned."""

    text: str
    name: str
    failed: bool


class ReadPrompt:
    """A conversation as the rules see it.

    `material` is all that was said beside the question, `calls` and `results` those since it,
    `images` what descriptions say, `schema` also one for the JSON object that words ask for.
    """

    def __init__(self, messages: Iterable[Mapping[str, Any]]) -> None:
        self.question = ""
        self.material: list[str] = []
        self.images: list[str] = []
        self.tools: list[OfferedTool] = []
        self.schema: Schema | None = None
        self.opening, self.closing = "<tool_call>\n", "\n</tool_call>"
        self.calls: list[Call] = []
        self.results: list[PromptResult] = []
        self._demands = self._system = ""
        called: list[Call] = []
        for role, parts in cut_messages(messages):
            if role == "assistant":
                found = (value for kind, text in parts for value, _ in values_in(text))
                called = [(v["name"], v["arguments"]) for v in found if is_call(v)]
            else:
                self._hear(parts, called)
        self.material = [text for text in self.material if text]
        if not self.question and self.material and not self.results:
            self.question = self.material.pop()
        self._take_form()
        self.single = "at most one" in self._demands
        due = [
            line
            for line in re.split(r"\n|\. ", self._demands)
            if _REQUIRED.search(line)
        ]
        self.required = bool(self.tools and due)
        # "That answer calls this, but that must be called": the last name counts.
        at = {
            tool.name: line.rfind(tool.name) for line in due[-1:] for tool in self.tools
        }
        self.named = max(
            (name for name in at if at[name] >= 0), key=at.__getitem__, default=""
        )

    @property
    def text(self) -> str:
        """The question and what functions returned since."""
        return "\n".join([self.question, *(result.text for result in self.results)])

    def _hear(self, parts: Sequence[Part], called: Sequence[Call]) -> None:
        for kind, text in parts:
            if kind in {"tools", "schema"}:
                self._instruct(text)
        system = _bare(text for kind, text in parts if kind == "system")
        self.material.append(system)
        self._system += f"{system}\n"
        if results := [_result(text) for kind, text in parts if kind == "results"]:
            self.calls += called
            self.results += results
        said = ((kind, text) for kind, text in parts if kind in _SAID)
        question = _bare(
            _name(text) if kind == "image" else text for kind, text in said
        )
        if _COMPLAINT.match(question):
            self._demands += f"{question}\n"
        elif question or not self.question:
            self.material += [self.question, *(result.text for result in self.results)]
            self.images = [_bare([text]) for kind, text in parts if kind == "image"]
            self.question, self.calls, self.results = question, [], []

    def _instruct(self, text: str) -> None:
        """Take note of the functions, the form of calls and the schema that instructions hold."""
        done = 0
        for value, (start, end) in values_in(text):
            if tool := tool_of(value):
                self.tools = [each for each in self.tools if each.name != tool.name] + [
                    tool
                ]
            elif is_call(value):
                begin, stop = _framed(text, start, end)
                self.opening, self.closing = text[begin:start], text[end:stop]
            else:
                self.schema = schema_of(value) or self.schema
            self._demands += text[done:start]
            done = end
        self._demands += f"{text[done:]}\n"

    def _take_form(self) -> None:
        """Take what the question says of JSON out of it, and its keys where there is no schema."""
        if self.schema is None and not _WANTS_JSON.search(self._system + self.question):
            return
        sentences = re.split(r"(?<=[.!?])(?=\s)|(?<=\n)", self.question)
        about = [bool(_ABOUT_FORM.search(each)) for each in sentences]
        if self.schema is None:
            keys = re.findall(
                r"[`'\"](\w+)[`'\"]", "".join(compress(sentences, about))
            ) or ["answer"]
            fields = {key: {"type": "string"} for key in keys}
            self.schema = {"properties": fields, "required": keys}
        rest = "".join(
            each for each, of_form in zip(sentences, about, strict=True) if not of_form
        )
        self.question = rest.strip() or self.question


def _bare(texts: Iterable[str]) -> str:
    return _TAGS.sub("", "".join(texts)).strip()


def _name(element: str) -> str:
    named = _NAMED.match(element)
    return named[1] if named else ""


def _result(element: str) -> PromptResult:
    text = _bare([element])
    failed = 'status="error"' in element.partition(">")[0] or text.startswith("Error")
    return PromptResult(text, _name(element), failed)


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
