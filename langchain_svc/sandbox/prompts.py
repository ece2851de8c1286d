"""What a prompt offers, asks and tells, read from its text alone, as a model would read it.

Every message is cut into parts, each of one kind. The inspector shows the parts, and `ReadPrompt`
makes of them what the rules need. A form that is to be filled becomes the schema it stands for.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..prompt_tags import CALL, IMAGE, RESPONSE, SYSTEM, TURN, USER

Messages = Sequence[Mapping[str, str]]
Schema = dict[str, Any]
Part = tuple[str, str]  # its kind and its text
Span = tuple[int, int]
CutMessage = tuple[str, list[Part]]  # its role and its parts
_PartSpan = tuple[int, int, str]  # where a part begins and ends, and its kind

# -- parts ----------------------------------------------------------------------------------------

_KINDS = {SYSTEM: "system", RESPONSE: "results", IMAGE: "image"}
_NAMES = f"{SYSTEM}|{USER}|{RESPONSE}|{IMAGE}"
_ELEMENT = re.compile(rf"<({_NAMES})\b[^<>]*>")
_TAGGED = re.compile(r"<(documents?|context|sources?|passages?)\b[^<>]*>")
_HEADED = re.compile(
    r"(?m)^(?:Context|Documents?|Sources?|Passages?|Excerpts?)\b[^\n:]{0,40}:"
    r"(?s:.*?)(?=^(?:Question|Query|Answer|Helpful Answer)\b[^\n:]{0,40}:|\Z)"
)
# The marks around a call: a tag, a fence or a bracket, on a line of its own or beside it.
_MARK = 60  # characters
_OPENS = re.compile(r"(?:<[^<>\n]{1,40}>|```\w*|\[)\s*\Z")
_CLOSES = re.compile(r"\s*(?:</[^<>\n]{1,40}>|```|\])")


def cut_messages(messages: Iterable[Mapping[str, Any]]) -> list[CutMessage]:
    """Each message's role and its parts, whose texts make up the message."""
    cut = []
    for message in messages:
        role = str(message.get("role"))
        text = str(message.get("content") or "")
        cut.append((role, list(_parts(role, text))))
    # The last message with a question holds the question; those before it are history.
    last = 0
    for number, (role, parts) in enumerate(cut):
        if role == "user" and _has_question(parts):
            last = number
    for _, parts in cut[:last]:
        for number, (kind, text) in enumerate(parts):
            if kind == "question":
                parts[number] = ("history", text)
    return cut


_TURN = re.compile(
    rf'(?s)<{TURN} role="(user|assistant|system)">\n(.*?)\n</{TURN}>(?:\n|\Z)'
)


def _turns_in(messages: Messages) -> Messages:
    """The turns of a conversation, also of one that stands in a single message."""
    if len(messages) != 1:
        return messages
    whole = str(messages[0].get("content") or "")
    matches = [*_TURN.finditer(whole)]
    if not matches:
        return messages
    # The first turn may stand before the tags; the paragraph between explains them.
    first, _, _ = whole[: matches[0].start()].rpartition("\n\n")
    turns = [{"role": "user", "content": first}] if first else []
    return turns + [{"role": match[1], "content": match[2]} for match in matches]


def _has_question(parts: Sequence[Part]) -> bool:
    return any(kind == "question" and text.strip() for kind, text in parts)


def _parts(role: str, text: str) -> Iterator[Part]:
    if role == "assistant":
        yield from _split(text, _call_spans(text), "history")
    elif role == "system":
        yield from _split(text, _instruction_spans(text), "system")
    else:
        yield from _user_parts(text)


def _user_parts(text: str) -> Iterator[Part]:
    done = 0
    for opening, closed in _elements(text, _ELEMENT):
        start, end = opening.start(), closed
        kind = _KINDS.get(opening[1])
        if kind == "results":
            start, end = _paragraph(text, start, end, done)
        if end <= done:
            continue  # in the same paragraph
        yield from _question_parts(text[done:start])
        element = text[start:end]
        if kind is None:
            yield from _question_parts(element)
        elif kind == "system":
            yield from _split(element, _instruction_spans(element), kind)
        else:
            yield kind, element
        done = end
    yield from _question_parts(text[done:])


def _paragraph(text: str, start: int, end: int, done: int) -> Span:
    """The paragraph around an element, such as the words around results."""
    begin = text.rfind("\n\n", done, start) + 2
    below = text.find("\n\n", end)
    if begin < 2:
        begin = done
    if below < 0:
        below = len(text)
    return begin, below


def _question_parts(text: str) -> Iterator[Part]:
    for kind, part in _split(text, _instruction_spans(text), "question"):
        if kind == "question":
            yield from _split(part, _document_spans(part), kind)
        else:
            yield kind, part


def _split(text: str, spans: Iterable[_PartSpan], rest: str) -> Iterator[Part]:
    """The spans of a text as parts of their kinds, and what lies between as parts of the rest."""
    done = 0
    for start, end, kind in spans:
        if end <= done:
            continue
        if done < start:
            yield rest, text[done:start]
        yield kind, text[max(start, done) : end]
        done = end
    if done < len(text):
        yield rest, text[done:]


def _elements(
    text: str, openings: re.Pattern[str]
) -> Iterator[tuple[re.Match[str], int]]:
    """The opening tag of each element that is closed, and where the element ends."""
    done = 0
    unclosed = set()
    for opening in openings.finditer(text):
        tag = opening[1]
        if opening.start() < done or tag in unclosed:
            continue
        closing = f"</{tag}>"
        start = text.find(closing, opening.end())
        if start < 0:
            unclosed.add(tag)
            continue
        done = start + len(closing)
        yield opening, done


def _instruction_spans(text: str) -> Iterator[_PartSpan]:
    """The paragraphs that describe functions, or the form of the answer."""
    done = 0
    for start, end, kind in _instructions(text):
        if start < done:
            continue  # in the same paragraph
        begin = done
        above = text.rfind("\n\n", done, start)
        if above >= 0:
            begin = above + 2
        done = text.find("\n\n", end)
        if done < 0:
            done = len(text)
        yield begin, done, kind


def _instructions(text: str) -> list[_PartSpan]:
    """Where functions, calls, schemas and forms stand."""
    spans = [(start, end, "schema") for _, start, end in forms_in(text)]
    for value, (start, end) in values_in(text):
        if tool_of(value) or is_call(value):
            spans.append((start, end, "tools"))
        elif schema_of(value) is not None:
            spans.append((start, end, "schema"))
    return sorted(spans)


def _call_spans(text: str) -> Iterator[_PartSpan]:
    for value, span in values_in(text):
        if is_call(value):
            start, end = _with_marks(text, *span)
            yield start, end, "calls"


def _with_marks(text: str, start: int, end: int) -> Span:
    """Where the marks around a call begin and end."""
    before = _OPENS.search(text, max(0, start - _MARK), start)
    if before:
        start = before.start()
    after = _CLOSES.match(text, end)
    if after:
        end = after.end()
    return start, end


def _document_spans(text: str) -> list[_PartSpan]:
    spans = [match.span() for match in _HEADED.finditer(text)]
    for opening, end in _elements(text, _TAGGED):
        spans.append((opening.start(), end))
    return [(start, end, "documents") for start, end in sorted(spans)]


# -- JSON in a text -------------------------------------------------------------------------------

_DECODER = json.JSONDecoder()
_OBJECT = re.compile(r'\{\s*"')
_SCHEMA_KEYS = {"properties", "$ref", "anyOf", "oneOf", "allOf", "$defs", "enum"}


class OfferedTool(NamedTuple):
    """A function that the prompt offers, and all the words that describe it."""

    name: str
    about: str
    parameters: Schema


def values_in(text: str) -> Iterator[tuple[dict[str, Any], Span]]:
    """Every JSON object in a text and where it stands, none inside another."""
    done = 0
    # Bounds the characters that are read of texts that only begin like an object.
    patience = 4 * len(text) + 10_000
    for match in _OBJECT.finditer(text):
        start = match.start()
        if start < done or patience < 0:
            continue
        try:
            value, done = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            patience -= error.pos - start
        except RecursionError:
            patience -= len(text) // 10
        else:
            yield value, (start, done)


def is_call(value: Mapping[str, Any]) -> bool:
    """Whether an object is a call of a function."""
    name = value.get("name")
    arguments = value.get("arguments")
    return isinstance(name, str) and isinstance(arguments, dict)


def tool_of(value: Mapping[str, Any]) -> OfferedTool | None:
    """The function that an object describes, or None."""
    function = value.get("function", value)
    if not isinstance(function, dict) or "arguments" in function:
        return None
    name = function.get("name")
    if not isinstance(name, str):
        return None
    if not function.keys() & {"description", "parameters", "input_schema"}:
        return None
    schema = _dict(function, "parameters") or _dict(function, "input_schema")
    about = [name, str(function.get("description", ""))]
    properties = {}
    for key, part in _dict(schema, "properties").items():
        if isinstance(part, dict):
            properties[key] = part
            about.append(f"{key} {part.get('description', '')}")
    parameters = {**schema, "type": "object", "properties": properties}
    return OfferedTool(name, " ".join(about), parameters)


def _dict(schema: Schema, name: str) -> Schema:
    """A dict that a schema holds, which may hold anything."""
    value = schema.get(name)
    return value if isinstance(value, dict) else {}


def schema_of(value: Schema) -> Schema | None:
    """The schema that an object is or holds, or None."""
    schema = value.get("schema", value)
    if not isinstance(schema, dict):
        return None
    if _SCHEMA_KEYS & schema.keys() or schema.get("type") == "array":
        return schema
    return None


# -- the form that a prompt asks for --------------------------------------------------------------
# ... of this form ... in the place of each <...>:
# {"title": "<string>", "stars": <integer or null, 1 to 5>, "people": ["<string: who>", ...]}
#
# A placeholder stands for each value; the lines before the form say how many items a list has, and
# which keys may be left out.

_ASKED = re.compile(r"\bof this form\b[^\n]*<\.\.\.>:\n")
_LEFT_OUT = re.compile(r"(?m)^These keys may be left out: (.*)\.$")
_ABOUT = re.compile(r"(?m)^About (.*?): (.*)$")
_STEP = re.compile(r'[\w-]+|"(?:[^"\\]|\\.)*"?|\[\]|\{\}|(,)')
_NUMBER = r"-?(?:0|[1-9]\d{0,99})(?:\.\d{1,99})?(?:[eE][+-]?\d{1,3})?"
_FACT = re.compile(
    rf"(?:(at least|at most|above|below|a multiple of) )?({_NUMBER})(?: to ({_NUMBER}))?"
    r"(?: (character|item)s?)?"
)
_FORMAT = re.compile(r"[a-z][a-z0-9-]*")
_TYPES = {
    "string": "string",
    "integer": "integer",
    "number": "number",
    "true or false": "boolean",
}
_OTHER_BOUNDS = {
    "above": "exclusiveMinimum",
    "below": "exclusiveMaximum",
    "a multiple of": "multipleOf",
}
_BOUNDED = {
    "": ("minimum", "maximum"),
    "character": ("minLength", "maxLength"),
    "item": ("minItems", "maxItems"),
}
_NONE: Schema = {"const": None}
_NULL: Schema = {"type": "null"}
_Path = tuple[str, ...]


def forms_in(text: str) -> Iterator[tuple[Schema, int, int]]:
    """The schema of each form that a text asks for, and where the form stands."""
    done = 0
    for asked in _ASKED.finditer(text):
        notes = text[done : asked.start()]
        done = asked.end()
        try:
            reader = _Reader(text, done, notes)
            schema = reader.value(())
        except (ValueError, RecursionError):
            continue
        yield schema, done, reader.at


class _Reader:
    """Reads one form; a ValueError says that it is none."""

    def __init__(self, text: str, start: int, notes: str) -> None:
        self._text = text
        self.at = start
        self._optional: set[_Path] = set()
        for names in _LEFT_OUT.findall(notes):
            self._optional.update(_paths(names))
        self._counts: dict[_Path, Schema] = {}
        for name, said in _ABOUT.findall(notes):
            path = () if name == "the answer" else next(_paths(name))
            self._counts[path] = _bounds(said.partition(";")[0])

    def value(self, path: _Path) -> Schema:
        """The value here, whose alternatives are joined by "or"."""
        alternatives = [self._alternative(path)]
        while self._passes(" or "):
            alternatives.append(self._alternative(path))
        if len(alternatives) == 1:
            return alternatives[0]
        return {"anyOf": [_NULL if one == _NONE else one for one in alternatives]}

    def _alternative(self, path: _Path) -> Schema:
        if self._passes("{"):
            return self._object(path)
        if self._passes("["):
            item = self.value((*path, "[]"))
            self._expect(", ...]")
            return {"type": "array", "items": item, **self._counts.get(path, {})}
        if self._passes("<"):
            return _placeholder(self._until(">"), json.loads)
        if self._passes('"<'):
            return _placeholder(self._until('>"'), str)
        value, self.at = _DECODER.raw_decode(self._text, self.at)
        return {"const": value}

    def _object(self, path: _Path) -> Schema:
        fields: dict[str, Schema] = {}
        required: list[str] = []
        others: Schema | bool = False
        while not self._passes("}"):
            if fields:
                self._expect(", ")
            if self._passes('"<key>": '):
                others = self.value((*path, "{}"))
                self._expect(", ...}")
                break
            name, self.at = _DECODER.raw_decode(self._text, self.at)
            self._expect(": ")
            place = (*path, str(name))
            fields[str(name)] = self.value(place)
            if place not in self._optional:
                required.append(str(name))
        return {
            "type": "object",
            "properties": fields,
            "required": required,
            "additionalProperties": others,
        }

    def _passes(self, sign: str) -> bool:
        found = self._text.startswith(sign, self.at)
        if found:
            self.at += len(sign)
        return found

    def _expect(self, sign: str) -> None:
        if not self._passes(sign):
            raise ValueError(sign)

    def _until(self, sign: str) -> str:
        """What stands before a sign, with its escapes undone."""
        end = self._text.index(sign, self.at)
        words, self.at = self._text[self.at : end], end + len(sign)
        return str(json.loads(f'"{words}"'))


def _paths(names: str) -> Iterator[_Path]:
    """The paths in a list of them: "nights, start.country, lines[].note"."""
    path: list[str] = []
    for step in _STEP.finditer(names):
        if step[1]:
            yield tuple(path)
            path = []
        elif step[0].startswith('"'):
            path.append(str(json.loads(step[0])))
        else:
            path.append(step[0])
    yield tuple(path)


def _placeholder(words: str, option: Callable[[str], object]) -> Schema:
    """What a placeholder stands for; `option` reads one of those that it lists."""
    kind, _, about = words.partition(": ")
    if kind == "any value":
        return {}
    if kind == "one of":
        return {"enum": [option(word) for word in about.split("; ")[0].split(", ")]}
    kind = kind.partition(", pattern ")[0]
    kind, _, facts = kind.partition(", ")
    or_null = kind.endswith(" or null")
    kind = kind.removesuffix(" or null")
    if kind not in _TYPES:
        raise ValueError(kind)
    schema: Schema = {"type": _TYPES[kind], **_bounds(facts)}
    if about:
        schema["description"] = about
    return {"anyOf": [schema, _NULL]} if or_null else schema


def _bounds(facts: str) -> Schema:
    """The bounds that are said of a value, and its format."""
    schema: Schema = {}
    for fact in facts.split(", "):
        bound = _FACT.fullmatch(fact)
        if bound is None:
            if _FORMAT.fullmatch(fact):
                schema["format"] = fact
            continue
        words, first, last, unit = bound.groups(default="")
        if words in _OTHER_BOUNDS:
            schema[_OTHER_BOUNDS[words]] = json.loads(first)
        else:
            lowest, highest = _BOUNDED[unit]
            if words != "at most":
                schema[lowest] = json.loads(first)
            if words != "at least":
                schema[highest] = json.loads(last or first)
    return schema


# -- what the rules read of it --------------------------------------------------------------------

Call = tuple[str, dict[str, Any]]  # a function's name and its arguments

_SAID_KINDS = {"question", "history", "documents"}
_TAGS = re.compile(rf"</?(?:{_NAMES})\b[^<>]*>")
_NAME_ATTRIBUTE = re.compile(r'<[^<>]*\b(?:name|handle)="([^"]*)"')
_COMPLAINT = re.compile(
    r"(?:\A|\n\n)(?:An answer to this could not be used:|Your answer was cut off behind)"
)
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

    Attributes:
        question: The last question of the user.
        material: All that the messages say beside the question.
        images: The descriptions of the question's images.
        tools: The functions that the prompt offers.
        schema: The schema of the JSON that the prompt asks for, or one made from its words.
        opening: The mark before a call, and `closing` the one after it.
        calls: The calls since the question, and `results` what they returned.
        single: Whether at most one function may be called.
        required: Whether a function must be called.
        required_tool: The function that must be called, if the prompt names it.
    """

    def __init__(self, messages: Messages) -> None:
        self.question: str = ""
        self.material: list[str] = []
        self.images: list[str] = []
        self.tools: list[OfferedTool] = []
        self.schema: Schema | None = None
        self.opening: str = f"<{CALL}>\n"
        self.closing: str = f"\n</{CALL}>"
        self.calls: list[Call] = []
        self.results: list[PromptResult] = []
        self._demands = ""
        self._system = ""
        calls: list[Call] = []
        for role, parts in cut_messages(_turns_in(messages)):
            if role == "assistant":
                calls = _calls_in(parts)
            else:
                self._read_parts(parts, calls)
        self.material = [text for text in self.material if text]
        if not self.question and self.material and not self.results:
            self.question = self.material.pop()
        self._take_form_from_question()
        self.single: bool = "at most one" in self._demands
        self.required: bool = False
        self.required_tool: str = ""
        for demand in re.split(r"\n|\. ", self._demands):
            if self.tools and _REQUIRED.search(demand):
                self.required = True
                self.required_tool = self._last_tool_in(demand)

    @property
    def text(self) -> str:
        """The question, and what functions returned since."""
        return "\n".join(self._texts())

    def _texts(self) -> list[str]:
        return [self.question, *(result.text for result in self.results)]

    def _read_parts(self, parts: Sequence[Part], calls: Sequence[Call]) -> None:
        """Read a message of the user or system; `calls` are those of the answer before it."""
        for kind, text in parts:
            if kind in {"tools", "schema"}:
                self._read_instructions(text)
        system = _untagged(text for kind, text in parts if kind == "system")
        self.material.append(system)
        self._system += f"{system}\n"
        results = [
            _result(text[opening.start() : end])
            for kind, text in parts
            if kind == "results"
            for opening, end in _elements(text, _ELEMENT)
        ]
        if results:
            self.calls += calls
            self.results += results
        question = _question_of(parts)
        complaint = _COMPLAINT.search(question)
        if complaint:
            self._demands += f"{question[complaint.start() :]}\n"
            question = question[: complaint.start()]
        if question or not self.question:
            self.material += self._texts()
            self.images = [_untagged([text]) for kind, text in parts if kind == "image"]
            self.question = question
            self.calls = []
            self.results = []

    def _read_instructions(self, text: str) -> None:
        """Read the functions, the form of calls and the schema that instructions hold."""
        for schema, start, end in [*forms_in(text)][::-1]:
            self.schema = self.schema or schema  # what is asked again is the same
            text = text[:start] + text[end:]
        done = 0
        for value, (start, end) in values_in(text):
            tool = tool_of(value)
            if tool:
                others = [other for other in self.tools if other.name != tool.name]
                self.tools = [*others, tool]
            elif is_call(value):
                begin, stop = _with_marks(text, start, end)
                self.opening = text[begin:start]
                self.closing = text[end:stop]
            else:
                self.schema = schema_of(value) or self.schema
            self._demands += text[done:start]
            done = end
        self._demands += f"{text[done:]}\n"

    def _take_form_from_question(self) -> None:
        """Remove from the question what it says of JSON; without a schema, use its keys."""
        wants_json = _WANTS_JSON.search(self._system + self.question)
        if self.schema is None and not wants_json:
            return
        about_form = ""
        rest = ""
        for sentence in re.split(r"(?<=[.!?])(?=\s)|(?<=\n)", self.question):
            if _ABOUT_FORM.search(sentence):
                about_form += sentence
            else:
                rest += sentence
        self.question = rest.strip() or self.question
        if self.schema is None:
            keys = re.findall(r"[`'\"](\w+)[`'\"]", about_form) or ["answer"]
            fields = {key: {"type": "string"} for key in keys}
            self.schema = {"properties": fields, "required": keys}

    def _last_tool_in(self, demand: str) -> str:
        """The last function that a demand names; "" where it names none.

        The last one counts in "it does not call this: you must call this now".
        """
        places = [(demand.rfind(tool.name), tool.name) for tool in self.tools]
        place, name = max(places, key=operator.itemgetter(0))
        return name if place >= 0 else ""


def _calls_in(parts: Sequence[Part]) -> list[Call]:
    return [
        (value["name"], value["arguments"])
        for _, text in parts
        for value, _ in values_in(text)
        if is_call(value)
    ]


def _question_of(parts: Sequence[Part]) -> str:
    """The words of a message, without instructions and results; an image counts as its name."""
    texts = []
    for kind, text in parts:
        if kind == "image":
            texts.append(_name_of(text))
        elif kind in _SAID_KINDS:
            texts.append(text)
    return _untagged(texts)


def _untagged(texts: Iterable[str]) -> str:
    return _TAGS.sub("", "".join(texts)).strip()


def _name_of(element: str) -> str:
    match = _NAME_ATTRIBUTE.match(element)
    return match[1] if match else ""


def _result(element: str) -> PromptResult:
    tag, _, _ = element.partition(">")
    text = _untagged([element])
    failed = 'status="error"' in tag or text.startswith("Error")
    return PromptResult(text, _name_of(element), failed)


# -- tokens: counts and pieces always agree, and no model counts so -------------------------------
# A word of up to six letters is one token. A longer word is cut into tokens of four letters, until
# six or fewer remain. Every other visible character is a token. White space belongs to the token
# after it, or to the last one. The pattern has an alternative of its own for it: a leading `\s*`
# would try again from every blank of a long run of blanks, and a megabyte of them would take hours.

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
    if blank and tokens:
        tokens[-1] += blank
    elif blank:
        tokens.append(blank)
    return tokens


def count_tokens(text: str) -> int:
    """Return how many tokens `text` has."""
    return len(split_tokens(text))
