"""The answers of the sandbox to chats: those that a test wrote, or else a few fixed rules.

No model runs here, and the rules say so. A prompt with tools gets a call for each step of its
question that shares words with a tool. One that asks for JSON gets its schema filled from its own
words. Any other is answered with the sentence of the prompt that shares most words with the
question. A test that needs another answer scripts it: `Sandbox(answers=[...])`.
"""

from __future__ import annotations

import json
import operator
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from .faults import Fault
from .log import Received
from .prompts import (
    Call,
    Messages,
    OfferedTool,
    ReadPrompt,
    Schema,
    count_tokens,
    split_tokens,
)
from .wire import ChatAnswer

_FRAME = 3  # tokens that the role and the borders of a message cost


def cut_answer(
    text: str, messages: Messages, model: str, max_tokens: int | None
) -> ChatAnswer:
    """A text as the answer to a chat, counted, and cut after `max_tokens` tokens."""
    tokens = split_tokens(text)
    finish_reason = "stop"
    if max_tokens is not None and len(tokens) > max_tokens:
        tokens = tokens[:max_tokens]
        finish_reason = "length"
    prompt_tokens = sum(
        count_tokens(message["content"]) + _FRAME for message in messages
    )
    return ChatAnswer(
        model=model,
        text="".join(tokens),
        finish_reason=finish_reason,
        prompt_tokens=prompt_tokens,
        completion_tokens=len(tokens),
        pieces=tuple(tokens),
    )


# -- what a test wrote: it is played in order, before the rules answer -----------------------------

_GO_ON = re.compile(
    r"Your answer was cut off behind these words:\n(.*)\nWrite these words again,",
    re.DOTALL,
)
_MOST_CUT = 100  # answers that were cut and are remembered


@dataclass(frozen=True)
class ToolCall:
    """A call that the answer makes, in the form that the request's prompt asks for.

    It is written whether or not the request offers such a tool and the arguments fit, as a model
    might do.

    Raises:
        TypeError: The arguments are no mapping.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.arguments, Mapping):
            raise TypeError(
                f"arguments: expected a mapping, such as {{'city': 'Paris'}}, "
                f"got {type(self.arguments).__name__}."
            )


PlayedAnswer = str | ToolCall | Sequence[ToolCall]
Scripted = PlayedAnswer | Fault | Callable[[Received], PlayedAnswer]
Answers = Iterable[Scripted] | Callable[[Received], PlayedAnswer]


class Script:
    """The answers that chat requests have yet to get; safe from any thread."""

    def __init__(self, answers: Answers) -> None:
        self._lock = threading.Lock()
        self._cut_texts: deque[str] = deque(maxlen=_MOST_CUT)
        self.replace(answers)

    def replace(self, answers: Answers) -> None:
        """Play these from now on; a function alone answers every chat.

        Raises:
            TypeError: One of them cannot be played.
            ValueError: A fault says which requests it is for: here, its place in the list does.
        """
        if isinstance(answers, (str, ToolCall, Fault)) or callable(answers):
            queue: deque[Scripted] = deque([answers])
        else:
            queue = deque(answers)
        for answer in queue:
            if isinstance(answer, Fault):
                _require_unconditional(answer)
            elif not callable(answer):
                _require_playable(answer)
        with self._lock:
            self._queue = queue
            self._endless = callable(answers)

    @property
    def remaining(self) -> tuple[Scripted, ...]:
        with self._lock:
            return tuple(self._queue)

    def next_fault(self) -> Fault | None:
        """Take the fault that is next in the queue, if one is."""
        with self._lock:
            if self._queue and isinstance(self._queue[0], Fault):
                fault = self._queue[0]
                self._queue.popleft()
                return fault
            return None

    def remember_cut(self, text: str) -> None:
        """Keep an answer that `max_tokens` cut, in case a request asks for its rest."""
        with self._lock:
            self._cut_texts.append(text)

    def rest_of_cut(self, messages: Messages) -> str | None:
        """The rest of an answer that was cut off, where the messages ask to go on with it.

        It begins with the words that the request wants to see again; where the answer is itself the
        last turn, it has none. None where a function answers every chat: it answers this one, too.
        """
        if self._endless or len(messages) < 2:
            return None
        *_, turn, last = messages
        request = _GO_ON.match(last["content"])
        if last["role"] == "assistant":
            turn = last
        elif not request:
            return None
        beginning = turn["content"]
        end = len(beginning)
        if request:
            end = max(beginning.rfind(request[1]), 0)
        with self._lock:
            for text in reversed(self._cut_texts):
                if text.startswith(beginning):
                    return text[end:]
        return None

    def next_text(self, request: Received, messages: Messages) -> str | None:
        """Take the next answer, as text; None where the rules are to answer."""
        with self._lock:
            if not self._queue:
                return None
            answer = self._queue[0]
            if isinstance(answer, Fault):
                return None
            if not self._endless:
                self._queue.popleft()
        if callable(answer):
            answer = answer(request)
        _require_playable(answer)
        if isinstance(answer, str):
            return answer
        calls = [answer] if isinstance(answer, ToolCall) else answer
        pairs = [(call.name, dict(call.arguments)) for call in calls]
        return _render(pairs, ReadPrompt(messages))


def _require_unconditional(fault: Fault) -> None:
    if fault.path is None and fault.rate == 1 and fault.times is None:
        return
    raise ValueError(
        f"answers: {fault} happens once, to the next chat, so path, rate and times do nothing "
        "here. Leave them out and write the Fault as often as it is to happen, or pass it as "
        "faults=."
    )


def _require_playable(answer: object) -> None:
    if isinstance(answer, (str, ToolCall)):
        return
    calls = answer if isinstance(answer, Sequence) else ()
    if not calls or not all(isinstance(call, ToolCall) for call in calls):
        raise TypeError(
            "answers: expected a text, a ToolCall, a list of ToolCalls, a Fault, or a function of "
            f"the request, got {type(answer).__name__}."
        )


# -- the rules -------------------------------------------------------------------------------------


def compose(messages: Messages, model: str) -> str:
    """The text that answers a chat by the rules."""
    prompt = ReadPrompt(messages)
    calls = _due_calls(prompt)
    if calls:
        return _render(calls, prompt)
    if prompt.schema is None:
        return _in_words(prompt, model)
    filler = _Filler(prompt.schema, prompt.text, lambda: _in_words(prompt, model))
    return json.dumps(filler.fill(prompt.schema), ensure_ascii=False)


def _render(calls: Sequence[Call], prompt: ReadPrompt) -> str:
    lines = []
    for name, arguments in calls:
        body = {"name": name, "arguments": arguments}
        text = json.dumps(body, ensure_ascii=False)
        lines.append(f"{prompt.opening}{text}{prompt.closing}")
    return "\n".join(lines)


# -- words ----------------------------------------------------------------------------------------

_SMALL_WORDS = (
    "a about am an and any are as at be been but by can could did do does for from get give had "
    "has have how i if in into is it its many me much my now of on or our out please say should so "
    "tell than that the their them then there these they this those to us use using was we were "
    "what when where which who why will with would you your"
)
_SMALL = frozenset(_SMALL_WORDS.split())
_WORD = re.compile(r"[^\W_]+")
_ENDING = re.compile(r"(?<=\w{3})(?:ations?|ings?|ies|ed|es|s|e|y)$")


def _stems(text: str) -> set[str]:
    """The stems of the words in a text that say something."""
    words = _WORD.findall(text.lower())
    return {_ENDING.sub("", word) for word in words if word not in _SMALL}


def _says(text: str, words: str) -> bool:
    pattern = rf"(?i)(?<!\w){re.escape(words)}(?!\w)"
    return words != "" and re.search(pattern, text) is not None


_OPERATORS: dict[str, tuple[Callable[[Fraction, Fraction], Fraction], str]] = {
    "+": (operator.add, "add"),
    "-": (operator.sub, "subtract"),
    "*": (operator.mul, "multiply"),
    "/": (operator.truediv, "divide"),
}
_SUM = re.compile(
    r"(?<![\w.-])(\d{1,30}(?:\.\d{1,30})?)\s?([-+*/])\s?(\d{1,30}(?:\.\d{1,30})?)(?![\w-])"
)


def _sums(text: str) -> Iterator[str]:
    """Every sum of two numbers in a text, with its value."""
    for match in _SUM.finditer(text[:2_000]):
        first, sign, second = match.groups()
        if sign == "/" and float(second) == 0:
            continue
        calculate, _ = _OPERATORS[sign]
        value = calculate(Fraction(first), Fraction(second))
        if value.denominator == 1:
            yield f"{match[0]} = {value}"
        else:
            yield f"{match[0]} = {float(value):.10g}"


# -- calls ----------------------------------------------------------------------------------------

_STEPS = re.compile(
    r"(?<=[.?!])\s+(?=[A-Z\"'])|;\s|\n+|,?\s(?:and\s)?then\s|,?\sand\s(?=[a-z]+\s|\d)"
)
_REFERS = re.compile(
    r"(?i)\b(?:it|that|this|these|those|the (?:image|picture|description|result|answer|text))\b"
)
_MOST_STEPS = 50
_MOST_CALLS = 8  # of one step
_ENOUGH = 2  # a word of the tool's name, or two of its description


def _due_calls(prompt: ReadPrompt) -> list[Call]:
    """The calls to make now: of those that the question needs, the ones that were not made yet."""
    tools = prompt.tools
    if prompt.required_tool:
        tools = [tool for tool in tools if tool.name == prompt.required_tool]
    if not tools:
        return []
    due = _planned_calls(prompt, tools)[len(prompt.calls) :]
    if not due and prompt.required:
        called = {name for name, _ in prompt.calls}
        uncalled = [tool for tool in tools if tool.name not in called]
        if uncalled:
            tool, _ = _best_tool(uncalled, prompt.text)
            due = _calls_of_step(tool, prompt.text, [])[:1]
    if prompt.single:
        return due[:1]
    return due


def _planned_calls(prompt: ReadPrompt, tools: Sequence[OfferedTool]) -> list[Call]:
    """A call or more for each step of the question, up to one that lacks a result it refers to."""
    results = [result.text for result in prompt.results if not result.failed]
    planned: list[Call] = []
    for tool, step in _steps(prompt.question, tools):
        previous: list[str] = []
        if planned and _REFERS.search(step):
            previous = results[: len(planned)]
            if len(previous) < len(planned):
                break
        for call in _calls_of_step(tool, step, previous):
            if call not in planned:
                planned.append(call)
    return planned


def _steps(
    question: str, tools: Sequence[OfferedTool]
) -> list[tuple[OfferedTool, str]]:
    """The steps of a question, each with the tool that it needs."""
    steps: list[tuple[OfferedTool, str]] = []
    parts = [part for part in _STEPS.split(question) if part.strip()]
    for part in parts[:_MOST_STEPS]:
        candidates = tools
        if _REFERS.search(part):
            # "then describe it" is about the result of another tool.
            used = {tool.name for tool, _ in steps}
            candidates = [tool for tool in tools if tool.name not in used] or tools
        tool, score = _best_tool(candidates, part)
        if score >= _ENOUGH:
            steps.append((tool, part.strip()))
        elif steps:  # it goes on with the step before: "in Paris", "and in Rome"
            tool, step = steps[-1]
            steps[-1] = (tool, f"{step}, {part}")
    return steps


def _best_tool(tools: Sequence[OfferedTool], text: str) -> tuple[OfferedTool, int]:
    """The tool with the most words of a text, and its score: words of its name count twice."""
    signs = [_OPERATORS[match[2]][1] for match in _SUM.finditer(text)]
    if signs:
        signs.append("calculate math")
    words = _stems(" ".join([text, *signs]))
    scores = []
    for tool in tools:
        score = len(words & _stems(tool.about))
        score += len(words & _stems(tool.name))
        scores.append(score)
    most = max(scores)
    return tools[scores.index(most)], most


def _calls_of_step(tool: OfferedTool, step: str, previous: Sequence[str]) -> list[Call]:
    """The calls of one step: one for each of several values of a single required parameter."""
    schema = tool.parameters
    reply = previous[-1] if previous else step
    filler = _Filler(schema, step, lambda: reply, previous=previous)
    filler.values["words"] = _words_beyond(step, tool)
    arguments = filler.fill_object(schema)
    calls = [(tool.name, arguments)]
    properties = schema["properties"]
    parameters = _list(schema, "required") or list(properties)
    kinds = set(filler.used_kinds)
    if len(parameters) != 1 or len(kinds) != 1 or not kinds <= _REPEATED_KINDS:
        return calls
    (parameter,) = parameters
    (kind,) = kinds
    for value in filler.values[kind][: _MOST_CALLS - 1]:
        filler.values = {kind: [value]}
        argument = filler.fill(properties.get(parameter, {}), parameter)
        calls.append((tool.name, {**arguments, parameter: argument}))
    return calls


def _words_beyond(text: str, tool: OfferedTool) -> list[str]:
    """The runs of words in a text that say more than the description of the tool."""
    known = _stems(tool.about)
    runs: list[list[str]] = [[]]
    for word in re.findall(r"[^\W\d_][\w'-]*|\S", text):
        if word[0].isalpha() and _stems(word) - known:
            runs[-1].append(word)
        else:
            runs.append([])
    return [" ".join(run) for run in runs if run]


# -- values for a schema --------------------------------------------------------------------------

_DEEPEST = 8
_MOST_ITEMS = 8
_MOST_FIELDS = 1_000
_LONGEST = 4_000  # characters of a string
# What in a text can be a value, by its kind.
_VALUES = {
    "date": r"\b\d{4}-\d{2}-\d{2}\b",
    "email": r"\b[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+",
    "url": r"\bhttps?://[^\s\"'<>)]+",
    "image": r"\bimg_\w+",
    "expression": r"(?<![\w.])\d[\d.]{0,30}(?:\s?[-+*/]\s?\(?\d[\d.]{0,30}\)?){1,30}",
    "quoted": r"(?<!\w)(?:'[^'\n]{1,300}'(?!\w)|\"[^\"\n]{1,2000}\")",
    "name": r"(?:(?<=[^.!?\n] )|(?<=[(\[])|(?=[A-Z]\w+ (?:is|was|has|lives|works|wants)\b))"
    r"[A-Z][\w'-]*(?: [A-Z][\w'-]*)*(?:, [A-Z]{2}\b)?",
    "number": r"(?<![\w.-])-?\d{1,20}(?:,\d{3})*(?:\.\d+)?(?![\d_]|[.-]\d)",
}
# A string takes these first, if its name, description or format names the kind.
_SPECIAL_KINDS = ("date", "email", "url", "image", "expression")
# A single required parameter that took a value of these kinds gets a call for each further one.
_REPEATED_KINDS = {"quoted", "name", "number"}
_FORMATS = {
    "date": "2024-01-01",
    "date-time": "2024-01-01T00:00:00Z",
    "time": "00:00:00",
    "email": "nobody@example.com",
    "uri": "https://example.com",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
# A field of such a name takes free text: a quotation, or the whole answer.
_FREE = re.compile(
    r"query|question|request|message|prompt|input|text|content|answer|summary|repl|reason|expl"
)


class _Filler:
    """Fills a schema from a text, each value in it used once.

    `root` is what `$ref` refers to, `reply` gives words for a field about which the text says
    nothing, and `previous` are results of earlier calls, to which the text may refer.
    """

    def __init__(
        self,
        root: Schema,
        text: str,
        reply: Callable[[], str],
        previous: Sequence[str] = (),
    ) -> None:
        self._root = root
        self._text = text
        self._reply = reply
        self._previous = "\n".join(previous)
        self._fields = 0
        self.values: dict[str, list[str]] = {}  # by kind, those that were not used yet
        for kind, pattern in _VALUES.items():
            matches = re.findall(pattern, text)
            self.values[kind] = [match.strip("'\"") for match in matches]
        names = self.values["name"]
        self.values["name"] = [name for name in names if _stems(name)]
        self.used_kinds: list[str] = []

    def fill(
        self, schema: object, name: str = "", depth: int = 0, *, required: bool = True
    ) -> object:
        """A value for a schema; None where the text has none and none is required."""
        resolved, required = self._resolve(schema, required=required)
        if depth > _DEEPEST or self._fields > _MOST_FIELDS:
            return None
        if "const" in resolved:
            return resolved["const"]
        options = _list(resolved, "enum")
        if options:
            return self._option(options, resolved, required=required)
        match _type_of(resolved):
            case "object":
                return self.fill_object(resolved, depth)
            case "array":
                return self._array(resolved, name, depth, required=required)
            case "boolean":
                if _says(self._text, name):
                    return True
                default = False if required else None
                return resolved.get("default", default)
            case "integer" | "number":
                return self._number(resolved, name, required=required)
        return self._string(resolved, name, required=required)

    def _resolve(self, schema: object, *, required: bool) -> tuple[Schema, bool]:
        """A schema without references and alternatives, and whether it needs more than null.

        Of several alternatives the first counts that is not null.
        """
        while isinstance(schema, dict) and self._fields <= _MOST_FIELDS:
            self._fields += 1
            union = _list(schema, "anyOf") or _list(schema, "oneOf")
            alternatives = [item for item in union if item != {"type": "null"}]
            if len(alternatives) < len(union):
                required = False
            parts = alternatives[:1]
            if "$ref" in schema:
                parts.append(self._referred(schema["$ref"]))
            parts += _list(schema, "allOf")
            if not parts:
                return schema, required
            merged: Schema = {}
            for part in parts:
                if isinstance(part, dict):
                    merged.update(part)
            for key, value in schema.items():
                if key not in {"$ref", "allOf", "anyOf", "oneOf"}:
                    merged[key] = value
            schema = merged
        return {}, required

    def _referred(self, reference: object) -> object:
        section, _, name = str(reference).removeprefix("#/").partition("/")
        definitions = self._root.get(section) if name else self._root
        if not isinstance(definitions, dict):
            return {}
        return definitions.get(name, definitions)

    def _option(
        self, options: list[object], schema: Schema, *, required: bool
    ) -> object:
        """The first option that the text names."""
        for option in options:
            if _says(self._text, str(option).replace("_", " ")):
                return option
        return schema.get("default", options[0] if required else None)

    def fill_object(self, schema: Schema, depth: int = 0) -> dict[str, object]:
        properties = schema.get("properties")
        if not isinstance(properties, dict):
            return {}
        required_names = _list(schema, "required")
        values = {}
        for name, part in properties.items():
            required = name in required_names
            value = self.fill(part, name, depth + 1, required=required)
            if required or value is not None:
                values[name] = value
        return values

    def _array(
        self, schema: Schema, name: str, depth: int, *, required: bool
    ) -> list[object] | None:
        least = max(_bound(schema, "minItems", 0), int(required))
        most = min(_bound(schema, "maxItems", _MOST_ITEMS), _MOST_ITEMS)
        items: list[object] = []
        while len(items) < max(least, most) and depth < _DEEPEST:
            is_needed = len(items) < least
            used_before = len(self.used_kinds)
            item = self.fill(schema.get("items"), name, depth + 1, required=is_needed)
            # A further item must hold something of the text.
            if not is_needed and (item is None or len(self.used_kinds) == used_before):
                break
            items.append(item)
        if not items and not required:
            return None
        return items

    def _number(self, schema: Schema, name: str, *, required: bool) -> float | None:
        words = re.escape(name.replace("_", " "))
        beside_name = re.findall(
            rf"(?i)\b{words}\b[^\d\n]{{0,12}}({_VALUES['number']})", self._text
        )
        text = self._use_value(["number"], preferred=beside_name)
        if text is None and (not required or "default" in schema):
            default: float | None = schema.get("default")
            return default
        value = float((text or "1").replace(",", ""))
        if isinstance(schema.get("minimum"), (int, float)):
            value = max(value, float(schema["minimum"]))
        if isinstance(schema.get("maximum"), (int, float)):
            value = min(value, float(schema["maximum"]))
        if value.is_integer() or _type_of(schema) == "integer":
            return int(value)
        return value

    def _string(self, schema: Schema, name: str, *, required: bool) -> str | None:
        words = name.replace("_", " ").lower()
        format_ = str(schema.get("format"))
        hints = f"{words} {schema.get('description', '')} {format_}".lower()
        value = self._explicit_value(words) or self._special_value(hints)
        if not value and format_ not in _FORMATS:
            value = self._any_value(words, required=required)
        if not value and (not required or "default" in schema):
            default: str | None = schema.get("default")
            return default
        text = value or _FORMATS.get(format_) or self._reply()
        shortest = min(_bound(schema, "minLength", 0), _LONGEST)
        longest = _bound(schema, "maxLength", _LONGEST)
        return text[:longest].ljust(shortest, ".")

    def _explicit_value(self, words: str) -> str | None:
        """The value of `name=value` or `name: value`, which no other field gets then."""
        if not words:
            return None
        name = re.escape(words).replace(r"\ ", "[ _]")
        pattern = r"(\"[^\"\n]*\"|'[^'\n]*'|[^\s,;().?!][^,;()\n]*)"
        match = re.search(rf"(?i)\b{name}\s?[=:]\s?{pattern}", self._text)
        if match is None:
            return None
        value = match[1].strip("\"' .")
        for kind, values in self.values.items():
            self.values[kind] = [other for other in values if other != value]
        return value

    def _special_value(self, hints: str) -> str | None:
        """A value of a kind that the hints name; an image may be of an earlier result."""
        kinds = [kind for kind in _SPECIAL_KINDS if kind in hints]
        value = self._use_value(kinds)
        if not value and "image" in kinds:
            images = re.findall(_VALUES["image"], self._previous)
            return images[-1] if images else None
        return value

    def _any_value(self, words: str, *, required: bool) -> str | None:
        if _FREE.search(words):
            if self._previous:  # the reply is the earlier result
                return None
            return self._use_value(["quoted"])
        if not required:
            return self._use_value(["quoted"])
        return self._use_value(["quoted", "name", "expression", "words", "number"])

    def _use_value(
        self, kinds: Sequence[str], preferred: Sequence[str] = ()
    ) -> str | None:
        """A value of the first kind that there is: one of the preferred, or else the next."""
        for kind in kinds:
            values = self.values.get(kind)
            if values:
                matches = [value for value in values if value in preferred]
                value = matches[0] if matches else values[0]
                values.remove(value)
                self.used_kinds.append(kind)
                return value
        return None


def _type_of(schema: Schema) -> object:
    """The type of a schema's values, the first of several that is not null."""
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        return next((item for item in kind if item != "null"), "")
    return kind


def _list(schema: Schema, name: str) -> list[Any]:
    """A list that a schema holds, which may hold anything."""
    value = schema.get(name)
    return value if isinstance(value, list) else []


def _bound(schema: Schema, name: str, default: int) -> int:
    """A bound of a schema, which may hold anything."""
    value = schema.get(name)
    return value if isinstance(value, int) and value >= 0 else default


# -- answers in words -----------------------------------------------------------------------------

_LABEL = re.compile(
    r"\s*(?:\[\d+\]\s*)?(?i:source|document|title|file)\s*:\s*(.{1,200})"
)
_PASSAGES = re.compile(r"<passages>\n(.*?)\n</passages>\n", re.DOTALL)
_PASSAGE = re.compile(
    r'<passage id="([\w-]{1,40})"[^>\n]*>\n(.*?)\n</passage>', re.DOTALL
)
_ASKS_FOR_QUOTES = re.compile(r"These statements have quotes that stand in no passage")
_PERSONA = re.compile(
    r"(?i)(?:you(?:'re| are)|your|answer|respond|reply|use|always|never|do not|if you|be|given|keep"
    r"|please)\b"
)


def _in_words(prompt: ReadPrompt, model: str) -> str:
    """The answer where neither calls nor JSON are due."""
    if _ASKS_FOR_QUOTES.match(prompt.question):
        return "1. NONE"  # rules have no better quote
    cited = _cite(prompt.question)
    if cited:
        return cited
    if prompt.results:
        return _report_results(prompt)
    if prompt.images:
        return f'The description of the image says: "{prompt.images[0][:_LONGEST]}"'
    lines = [line for line in prompt.question.splitlines() if line.strip()] or [""]
    questions = [line for line in lines if line.rstrip().endswith("?")]
    question = questions[-1] if questions else lines[-1]
    sums = "; ".join(_sums(question))
    if sums:
        return sums
    beside = "\n".join(line for line in lines if line != question)
    quote = _quote(question, [*prompt.material, beside])
    if quote:
        return quote
    return (
        f"This is the sandbox, not {model}: fixed rules answer. They call tools, fill schemas, and "
        f"quote what they are given. You asked: {prompt.question[:500]}"
    )


def _report_results(prompt: ReadPrompt) -> str:
    lines = []
    for index, result in enumerate(prompt.results):
        name = result.name
        if not name and index < len(prompt.calls):
            name, _ = prompt.calls[index]
        subject = f"The tool {name}" if name else "The tool"
        verb = "failed" if result.failed else "answered"
        lines.append(f"{subject} {verb}: {result.text[:_LONGEST]}")
    return "\n".join(lines)


def _quote(question: str, texts: Sequence[str]) -> str:
    """The sentence with most words of the question, and its source; "" where none has any."""
    sentences = (
        (source, sentence)
        for text in texts
        for source, sentence in _sentences(text)
        if sentence not in question
    )
    source, sentence = _nearest(question, sentences)
    if not sentence:
        return ""
    return f'According to {source or "the text"}: "{sentence}"'


def _cite(prompt: str) -> str:
    """The sentence of the passages with most words of the question, and its mark.

    "" where the prompt has no passages, or none has a word of the question.
    """
    block = _PASSAGES.search(prompt)
    if block is None:
        return ""
    sentences = (
        (passage, sentence)
        for passage, text in _PASSAGE.findall(block[1])
        for _, sentence in _sentences(text)
    )
    passage, sentence = _nearest(prompt[: block.start()], sentences)
    if not sentence:
        return ""
    return f'{sentence} <cite id="{passage}">{sentence}</cite>'


def _nearest(question: str, sentences: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """The source and the sentence with most words of the question; empty where none has any."""
    words = _stems(question)
    most = 0
    nearest = ("", "")
    for source, sentence in sentences:
        count = len(words & _stems(sentence))
        if count > most:
            most = count
            nearest = (source, sentence)
    return nearest


def _sentences(text: str) -> Iterator[tuple[str, str]]:
    """The statements of a text, each with the source that a line above it names."""
    source = ""
    for line in text.split("\n"):
        label = _LABEL.fullmatch(line)
        if label:
            source = label[1].strip()
            continue
        for piece in re.split(r"(?<=[.!?])\s+(?=[A-Z`\"'\d])", line):
            sentence = piece.strip()
            if not sentence or sentence.endswith("?"):
                continue
            if not _PERSONA.match(sentence):  # that is an instruction, no statement
                yield source, sentence
