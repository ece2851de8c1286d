"""The answers of the sandbox: a few fixed rules, and they say so. No model runs here.

A prompt with tools gets a call for each step of its question that shares words with a tool; one
that wants JSON gets its schema filled from its own words; any other is answered with the sentence
of the prompt that shares most words with the question. Whoever wants another answer scripts it:
`Sandbox(answers=[...])`.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import Any

from langchain_svc.sandbox.prompts import (
    OfferedTool,
    PromptCall,
    ReadPrompt,
    Schema,
    count_tokens,
    read,
    split_tokens,
)

_FRAME = 3  # tokens that the role and the borders of a message cost


@dataclass
class ChatAnswer:
    """One answer; `pieces` are its tokens as a stream delivers them, some perhaps later."""

    model: str
    text: str = ""
    finish_reason: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    pieces: tuple[str, ...] | AsyncIterator[str] = ()

    @property
    def total_tokens(self) -> int:
        """The tokens of the prompt and of the answer."""
        return self.prompt_tokens + self.completion_tokens


def cut(
    text: str, messages: Sequence[Mapping[str, str]], model: str, max_tokens: int | None
) -> ChatAnswer:
    """A text as the answer to a chat, counted, and cut after `max_tokens` tokens."""
    pieces = split_tokens(text)
    kept = pieces[:max_tokens]
    return ChatAnswer(
        model=model,
        text="".join(kept),
        finish_reason="length" if len(kept) < len(pieces) else "stop",
        prompt_tokens=sum(count_tokens(message["content"]) + _FRAME for message in messages),
        completion_tokens=len(kept),
        pieces=tuple(kept),
    )


def calls_in_form(
    calls: Sequence[tuple[str, dict[str, Any]]], messages: Sequence[Mapping[str, str]]
) -> str:
    """Calls, each a name and arguments, in the form that the messages ask for."""
    return _rendered([PromptCall(*call) for call in calls], read(messages))


def _rendered(calls: Sequence[PromptCall], prompt: ReadPrompt) -> str:
    bodies = [{"name": call.name, "arguments": call.arguments} for call in calls]
    written = [json.dumps(body, ensure_ascii=False) for body in bodies]
    return "\n".join(f"{prompt.opening}{body}{prompt.closing}" for body in written)


def composed(messages: Sequence[Mapping[str, str]], model: str) -> str:
    """The text that answers a chat by the rules."""
    prompt = read(messages)
    if calls := _planned(prompt):
        return _rendered(calls, prompt)
    schema = prompt.schema
    if schema is None and (prompt.keys or prompt.wants_json):
        keys = prompt.keys or ["answer"]
        schema = {"properties": {key: {"type": "string"} for key in keys}, "required": keys}
    if schema is None:
        return _in_words(prompt, model)
    text = "\n".join([prompt.question, *(result.text for result in prompt.results)])
    reply = partial(_in_words, prompt, model)
    return json.dumps(_Filler(schema, text, reply).fill(schema), ensure_ascii=False)


# -- words ----------------------------------------------------------------------------------------

_SMALL_WORDS = (
    "a about am an and any are as at be been but by can could did do does for from get give had "
    "has have how i if in into is it its many me much my now of on or our out please say should so "
    "tell than that the their them then there these they this those to us use using was we were "
    "what when where which who why will with would you your"
)
_SMALL = frozenset(_SMALL_WORDS.split())
_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ed", "es", "s", "e", "y")
_SHORTEST = 3
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            return word[: -len(ending)]
    return word


def _stems(text: str) -> list[str]:
    """The stems of the words that say something, `getWeather` and `get_weather` being two."""
    words = _WORD.findall(_CAMEL.sub(" ", text).lower())
    return [_stem(word) for word in words if word not in _SMALL]


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
    for found in _SUM.finditer(text[:2_000]):
        work, _ = _OPERATORS[found[2]]
        if found[2] != "/" or float(found[3]):
            value = work(Fraction(found[1]), Fraction(found[3]))
            yield f"{found[0]} = {value if value.denominator == 1 else f'{float(value):.10g}'}"


# -- calls ----------------------------------------------------------------------------------------

_STEPS = re.compile(
    r"(?<=[.?!])\s+(?=[A-Z\"'])|;\s|\n+|,?\s(?:and\s)?then\s|,?\sand\s(?=[a-z]+\s|\d)"
)
_REFERS = re.compile(
    r"(?i)\b(?:it|that|this|these|those|the (?:image|picture|description|result|answer|text))\b"
)
_MOST_STEPS = 50
_MOST_CALLS = 8  # of one step
_ENOUGH = 1.0  # what the shared words must be worth for a call


def _planned(prompt: ReadPrompt) -> list[PromptCall]:
    """The calls that are due now; none where words are."""
    if not prompt.tools or (prompt.results and prompt.results[-1].failed and not prompt.required):
        return []
    tools = [tool for tool in prompt.tools if tool.name == prompt.named] or prompt.tools
    planned = _steps(prompt, tools)
    done = Counter(call.name for call in prompt.calls)
    wanted = Counter(call.name for call in planned)
    # What was not called yet: neither so, nor as often as it is planned.
    due = [c for c in planned if c not in prompt.calls and done[c.name] < wanted[c.name]]
    due = [call for at, call in enumerate(due) if call not in due[:at]]
    left = [tool for tool in tools if tool.name not in done]
    if not due and prompt.required and left:
        text = "\n".join([prompt.question, *(result.text for result in prompt.results)])
        due = _calls(_best_tool(left, text)[0], text, [])[:1]
    return due[:1] if prompt.single else due


def _steps(prompt: ReadPrompt, tools: Sequence[OfferedTool]) -> list[PromptCall]:
    """A call or more for each step of the question, up to one that needs a result not there yet."""
    previous = [result.text for result in prompt.results if not result.failed]
    steps: list[str] = []
    for step in islice(filter(str.strip, _STEPS.split(prompt.question)), _MOST_STEPS):
        if steps and _best_tool(tools, step)[1] < _ENOUGH:
            steps[-1] += f", {step}"  # no step of its own: "in Paris", "and in Rome"
        else:
            steps.append(step.strip())
    planned: list[PromptCall] = []
    for step in steps:
        refers = bool(planned and _REFERS.search(step))
        used = {call.name for call in planned} if refers else set()
        tool, worth = _best_tool([t for t in tools if t.name not in used] or tools, step)
        if worth < _ENOUGH:
            continue
        if refers and len(previous) < len(planned):
            break
        planned += _calls(tool, step, previous[: len(planned)] if refers else [])
    return planned


def _best_tool(tools: Sequence[OfferedTool], text: str) -> tuple[OfferedTool, float]:
    """The tool with the most words of a text, rare ones counting more, and what they are worth."""
    counts = Counter(word for tool in tools for word in set(_stems(tool.about)))
    signs = [f"{_OPERATORS[found[2]][1]} calculate math" for found in _SUM.finditer(text)]
    said = set(_stems(" ".join([text, *signs])))

    def worth(tool: OfferedTool) -> float:
        if re.search(rf"(?<!\w){re.escape(tool.name)}(?!\w)", text):
            return math.inf
        named, shared = set(_stems(tool.name)), set(_stems(tool.about)) & said
        return sum((2.0 if w in named else 0.7) / (1 + math.log(counts[w])) for w in shared)

    best = max(tools, key=worth)
    return best, worth(best)


def _calls(tool: OfferedTool, step: str, previous: Sequence[str]) -> list[PromptCall]:
    """The calls of one step: one for each of several values of a single required parameter."""
    schema = tool.parameters
    told = previous[-1] if previous else step
    filler = _Filler(schema, step, lambda: told, previous=previous, about=tool.about)
    calls = [PromptCall(tool.name, filler.fill(schema))]
    names = schema.get("required") or list(schema["properties"])
    kinds = set(filler.kinds)
    if len(names) != 1 or len(kinds) != 1 or not kinds <= {"quoted", "name", "number"}:
        return calls
    filler.only = kinds
    while len(calls) < _MOST_CALLS:
        value = filler.fill(schema["properties"].get(names[0], {}), names[0], required=False)
        if value is None or len(filler.kinds) == len(calls):
            break
        calls.append(PromptCall(tool.name, {**calls[0].arguments, names[0]: value}))
    return calls


# -- values for a schema --------------------------------------------------------------------------

_DEEPEST = 8
_MOST_ITEMS = 8
_MOST_FIELDS = 1_000
_LONGEST = 4_000  # characters of a string
_MOST_STRETCHES = 300  # so that the time stays linear
_NUMBER = re.compile(r"(?<![\w.])(?:(?<![\w)])-)?\d{1,20}(?:,\d{3})*(?:\.\d+)?(?![\d_]|[.-]\d)")
_DATE = re.compile(r"\b\d{4}-\d{2}-\d{2}\b")
_STRETCHES = re.compile(
    r"(?P<date>\b\d{4}-\d{2}-\d{2}\b)"
    r"|(?P<email>\b[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+)"
    r"|(?P<url>\bhttps?://[^\s\"'<>)]+)"
    r"|(?P<image>\bimg_\w+)"
    r"|(?P<expression>(?<![\w.])\d[\d.]{0,30}(?:\s?[-+*/]\s?\(?\d[\d.]{0,30}\)?){1,30})"
    r"|(?<!\w)(?:'(?P<quoted>[^'\n]{1,300})'(?!\w)|\"(?P<quoted2>[^\"\n]{1,2000})\")"
    r"|(?P<name>(?:(?<=[^.!?\n] )|(?<=[(\[])|(?=[A-Z]\w+ (?:is|was|has|lives|works|wants)\b))"
    r"[A-Z][\w'-]*(?: [A-Z][\w'-]*)*(?:, [A-Z]{2}\b)?)"
)
_FORMATS = {
    "date": "2024-01-01",
    "date-time": "2024-01-01T00:00:00Z",
    "time": "00:00:00",
    "email": "nobody@example.com",
    "uri": "https://example.com",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
# A field of such a name takes words: a quotation, or the whole text.
_FREE = re.compile(
    r"query|question|request|message|prompt|input|text|content|answer|summary|repl|reason|expl"
)
_SPECIAL = ("date", "email", "url", "image", "expression")
_BOUNDS = {"minimum": 1, "exclusiveMinimum": 1, "maximum": -1, "exclusiveMaximum": -1}


class _Filler:
    """Fills a schema from a text, each stretch of the text used once.

    Args:
        root: The schema that `$ref` refers to.
        text: Where values are looked for.
        reply: Words for a field about which the text says nothing.
        previous: Results of earlier calls, for what the text only refers to.
        about: The words of a tool; what the text says beyond them are arguments.
    """

    def __init__(
        self,
        root: Schema,
        text: str,
        reply: Callable[[], str],
        *,
        previous: Sequence[str] = (),
        about: str = "",
    ) -> None:
        self._root = root
        self._text = text
        self._reply = reply
        self._previous = previous
        self._guesses = ("words", "number") if about else ()
        self._fields = 0
        self._left = list(islice(_stretches(text, about), _MOST_STRETCHES))
        self.kinds: list[str] = []  # of the stretches that were used
        self.only: set[str] = set()  # the only kinds to use from now on; empty: all

    def fill(self, schema: Schema, name: str = "", *, required: bool = True, depth: int = 0) -> Any:
        """A value for a schema; None where the text has none and none is required."""
        self._fields += 1
        schema, nullable = self._resolved(schema)
        required = required and not nullable
        if depth > _DEEPEST or self._fields > _MOST_FIELDS:
            return None
        if "const" in schema:
            return schema["const"]
        if isinstance(options := schema.get("enum"), list) and options:
            said = (o for o in options if _says(self._text, str(o).replace("_", " ")))
            return next(said, schema.get("default", options[0] if required else None))
        kind = schema.get("type", "object" if "properties" in schema else "string")
        kinds = kind if isinstance(kind, list) else [kind]
        match next((k for k in kinds if isinstance(k, str) and k != "null"), "null"):
            case "null":
                return None
            case "object":
                return self._object(schema, depth) if required or depth < _DEEPEST // 2 else None
            case "array":
                return self._array(schema, name, depth, required=required)
            case "boolean":
                return _says(self._text, name) or schema.get("default", False if required else None)
            case "integer" | "number" as kind:
                return self._number(schema, name, whole=kind == "integer", required=required)
        return self._string(schema, name, required=required)

    def _resolved(self, schema: Any) -> tuple[Schema, bool]:
        """A schema without references and unions, and whether null would do."""
        nullable = False
        for _ in range(_DEEPEST):
            schema = schema if isinstance(schema, dict) else {}
            rest = {k: v for k, v in schema.items() if k not in {"$ref", "allOf", "anyOf", "oneOf"}}
            union = schema.get("anyOf") or schema.get("oneOf")
            if isinstance(reference := schema.get("$ref"), str):
                schema = {**self._referred(reference), **rest}
            elif isinstance(every := schema.get("allOf"), list):
                parts = [part for part in every if isinstance(part, dict)]
                schema = {k: v for part in [*parts, rest] for k, v in part.items()}
            elif isinstance(union, list) and union:
                chosen = [s for s in union if isinstance(s, dict) and s.get("type") != "null"]
                nullable |= len(chosen) < len(union)
                schema = {**rest, **(chosen[0] if chosen else {"type": "null"})}
            else:
                break
        return schema, nullable

    def _referred(self, reference: str) -> Schema:
        node: Any = self._root
        for part in reference.removeprefix("#").strip("/").split("/"):
            node = node.get(part, {}) if part and isinstance(node, dict) else node
        return node if isinstance(node, dict) else {}

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        properties, wanted = schema.get("properties"), schema.get("required")
        properties = properties if isinstance(properties, dict) else {}
        wanted = wanted if isinstance(wanted, list) else []
        # What is required takes its stretch first.
        first = sorted(properties, key=lambda key: key not in wanted)
        made = {
            k: self.fill(properties[k], k, required=k in wanted, depth=depth + 1) for k in first
        }
        return {k: made[k] for k in properties if made[k] is not None or k in wanted}

    def _array(self, schema: Schema, name: str, depth: int, *, required: bool) -> list[Any] | None:
        if isinstance(places := schema.get("prefixItems"), list):
            return [self.fill(each, name, depth=depth + 1) for each in places]
        low = max(_bound(schema, "minItems", 0), int(required and depth < _DEEPEST // 2))
        high = min(_bound(schema, "maxItems", _MOST_ITEMS), _MOST_ITEMS)
        made: list[Any] = []
        while len(made) < max(low, high) and depth < _DEEPEST:
            before = len(self.kinds)
            value = self.fill(
                schema.get("items", {}), name, required=len(made) < low, depth=depth + 1
            )
            repeats = value in made and self.kinds[-1:] == ["explicit"]  # it is said once
            if len(made) >= low and (value is None or repeats or len(self.kinds) == before):
                break
            made.append(value)
        return made if made or required else None

    def _take(self, kinds: Sequence[str], near: str) -> str | None:
        """An unused stretch of the first kind there is, the nearest to the words of a field."""
        kind = next((k for k in kinds if any(each[0] == k for each in self._left)), "")
        if not kind or (self.only and kind not in self.only):
            return None
        hints = [
            hint.span()
            for each in set(_stems(near))
            for hint in islice(re.finditer(rf"(?i)\b{re.escape(each)}", self._text), 20)
        ]

        def distance(stretch: _Stretch) -> int:
            _, start, end, _ = stretch
            return min((max(start - b, a - end) for a, b in hints), default=0)

        taken = min((each for each in self._left if each[0] == kind), key=distance)
        _, start, end, value = taken
        self._left = [each for each in self._left if each[2] <= start or end <= each[1]]
        self.kinds.append(kind)
        return value

    def _number(
        self, schema: Schema, name: str, *, whole: bool, required: bool
    ) -> int | float | None:
        text = self._take(["number"], f"{name} {schema.get('description', '')}")
        if text is None and (not required or "default" in schema):
            default: float | None = schema.get("default")
            return default
        value = float(text or 1)
        step = schema.get("multipleOf")
        step = step if isinstance(step, (int, float)) and step > 0 else int(whole)
        for bound, sign in _BOUNDS.items():
            if isinstance(limit := schema.get(bound), (int, float)):
                room = (step or 0.5) * sign if bound.startswith("exclusive") else 0
                value = sign * max(sign * value, sign * (limit + room))
        value = math.ceil(value / step) * step if step and math.isfinite(value) else value
        return int(value) if whole or float(value).is_integer() else value

    def _string(self, schema: Schema, name: str, *, required: bool) -> str | None:
        words, form = name.replace("_", " ").lower(), str(schema.get("format"))
        near = f"{words} {schema.get('description', '')}".lower()
        value = self._explicit(words)
        if not value and (special := [k for k in _SPECIAL if k in f"{near} {form}"]):
            value = self._take(special, near)
            if not value and "image" in special:
                value = next(reversed(re.findall(r"\bimg_\w+", "\n".join(self._previous))), None)
        free = _FREE.search(words)
        if not value and not (free and self._previous) and form not in _FORMATS:
            other = ("name", "expression", *self._guesses) if required else ()
            value = self._take([*self.only] or ["quoted", *(() if free else other)], near)
        if not value and (not required or "default" in schema):
            default: str | None = schema.get("default")
            return default
        value = value or _FORMATS.get(form) or self._reply()
        least = min(_bound(schema, "minLength", 0), _LONGEST)
        return value[: _bound(schema, "maxLength", _LONGEST)].ljust(least, ".")

    def _explicit(self, words: str) -> str | None:
        """The value of `name=value` or `name: value`."""
        name = re.escape(words).replace(r"\ ", "[ _]")
        value = r"(\"[^\"\n]*\"|'[^'\n]*'|[^\s,;().?!][^,;()\n]*)"
        found = words and re.search(rf"(?i)\b{name}\s?[=:]\s?{value}", self._text)
        if not found or self.only:
            return None
        start, end = found.span()
        self._left = [each for each in self._left if each[2] <= start or end <= each[1]]
        self.kinds.append("explicit")
        return found[1].strip("\"' .")


_Stretch = tuple[str, int, int, str]  # its kind, where it begins and ends, and what it says


def _stretches(text: str, about: str) -> Iterator[_Stretch]:
    """What can be a value; where a tool is called, last its words beyond those of the tool."""
    for found in _STRETCHES.finditer(text):
        kind = str(found.lastgroup).rstrip("2")
        if kind != "name" or _stems(found[0]):
            yield kind, *found.span(), found[found.lastgroup or 0]
    dateless = _DATE.sub(lambda date: "_" * len(date[0]), text)  # a date is not three numbers
    for found in _NUMBER.finditer(dateless):
        yield "number", *found.span(), found[0].replace(",", "")
    known = set(_stems(about)) if about else None
    for found in re.finditer(r"[^\W\d_][\w'-]*(?: [^\W\d_][\w'-]*)*", text if about else ""):
        for run in _runs(found[0], known or set()):
            at = text.index(run, found.start())
            yield "words", at, at + len(run), run


def _runs(text: str, known: set[str]) -> Iterator[str]:
    run: list[str] = []
    for word in [*text.split(" "), ""]:
        if word and set(_stems(word)) - known:
            run.append(word)
        elif run:
            yield " ".join(run)
            run = []


def _says(text: str, words: str) -> bool:
    return bool(words and re.search(rf"(?i)(?<!\w){re.escape(words)}(?!\w)", text))


def _bound(schema: Schema, name: str, default: int) -> int:
    """A bound of a schema, which may hold anything."""
    found = schema.get(name)
    return found if isinstance(found, int) and found >= 0 else default


# -- answers in words -----------------------------------------------------------------------------

_LABEL = re.compile(r"\s*(?:\[\d+\]\s*)?(?i:source|document|title|file)\s*:\s*(.{1,200})")
_NUMBERED = re.compile(r"\s*(\[\d+\])\s*(.*)")
_PERSONA = re.compile(
    r"(?i)(?:you(?:'re| are)|your|answer|respond|reply|use|always|never|do not|if you|be|given|keep"
    r"|please)\b"
)


def _in_words(prompt: ReadPrompt, model: str) -> str:
    """The answer where neither calls nor JSON are due."""
    if prompt.results:
        return "\n".join(_told(prompt))
    if prompt.images:
        return f'The description of the image says: "{prompt.images[0][:_LONGEST]}"'
    lines = [line for line in prompt.question.splitlines() if line.strip()] or [""]
    asked = next((line for line in reversed(lines) if line.rstrip().endswith("?")), lines[-1])
    beside = "\n".join(line for line in lines if line != asked)
    if told := "; ".join(_sums(asked)) or _quoted(asked, [*prompt.material, beside]):
        return told
    return (
        f"This is the sandbox, not {model}: fixed rules answer. They call tools, fill schemas, and "
        f"quote what they are given. You asked: {prompt.question[:500]}"
    )


def _told(prompt: ReadPrompt) -> Iterator[str]:
    """What each of the functions returned."""
    for number, result in enumerate(prompt.results):
        called = prompt.calls[number].name if number < len(prompt.calls) else ""
        done = "failed" if result.failed else "answered"
        told = f"{done}: {result.text[:_LONGEST]}"
        yield " ".join(["The tool", *filter(None, [result.name or called]), told])


def _quoted(asked: str, texts: Sequence[str]) -> str | None:
    """The sentence that has most words of the question, rare ones counting more, and its source."""
    passages: list[tuple[str, str]] = []
    for text in texts:
        label = ""
        for line in text.split("\n"):
            if named := _LABEL.fullmatch(line):
                label = named[1].strip()
                continue
            numbered = _NUMBERED.match(line)
            source, said = numbered.groups() if numbered else (label, line)
            passages += [(source, each) for each in _sentences(said) if each not in asked]
    bags = [frozenset(_stems(sentence)) for _, sentence in passages]
    common = Counter(word for bag in bags for word in bag)
    worth = {w: math.log(1 + len(bags) / common[w]) for w in set(_stems(asked)) if w in common}
    scores = [sum(worth.get(w, 0) for w in bag) / (1 + 0.02 * len(bag)) for bag in bags]
    if not any(scores):
        return None
    label, quote = passages[scores.index(max(scores))]
    return f'According to {label or "the text"}: "{quote}"'


def _sentences(line: str) -> Iterator[str]:
    for piece in re.split(r"(?<=[.!?])\s+(?=[A-Z`\"'\d])", line):
        if (said := piece.strip()) and not said.endswith("?") and not _PERSONA.match(said):
            yield said
