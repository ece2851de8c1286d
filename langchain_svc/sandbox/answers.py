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
from itertools import islice
from typing import Any

from langchain_svc.sandbox.prompts import (
    Call,
    OfferedTool,
    ReadPrompt,
    Schema,
    count_tokens,
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
        prompt_tokens=sum(
            count_tokens(message["content"]) + _FRAME for message in messages
        ),
        completion_tokens=len(kept),
        pieces=tuple(kept),
    )


def calls_in_form(calls: Sequence[Call], messages: Sequence[Mapping[str, str]]) -> str:
    """Calls in the form that the messages ask for."""
    return _rendered(calls, ReadPrompt(messages))


def _rendered(calls: Sequence[Call], prompt: ReadPrompt) -> str:
    bodies = [{"name": name, "arguments": arguments} for name, arguments in calls]
    written = [json.dumps(body, ensure_ascii=False) for body in bodies]
    return "\n".join(f"{prompt.opening}{body}{prompt.closing}" for body in written)


def composed(messages: Sequence[Mapping[str, str]], model: str) -> str:
    """The text that answers a chat by the rules."""
    prompt = ReadPrompt(messages)
    if calls := _due(prompt):
        return _rendered(calls, prompt)
    if prompt.schema is None:
        return _in_words(prompt, model)
    filler = _Filler(prompt.schema, prompt.text, lambda: _in_words(prompt, model))
    return json.dumps(filler.fill(prompt.schema), ensure_ascii=False)


# -- words ----------------------------------------------------------------------------------------

_SMALL_WORDS = (
    "a about am an and any are as at be been but by can could did do does for from get give had "
    "has have how i if in into is it its many me much my now of on or our out please say should so "
    "tell than that the their them then there these they this those to us use using was we were "
    "what when where which who why will with would you your"
)
_SMALL = frozenset(_SMALL_WORDS.split())
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ENDING = re.compile(r"(?<=\w{3})(?:ations?|ings?|ies|ed|es|s|e|y)$")


def _stems(text: str) -> list[str]:
    """The stems of the words that say something, `getWeather` and `get_weather` being two."""
    words = _WORD.findall(_CAMEL.sub(" ", text).lower())
    return [_ENDING.sub("", word) for word in words if word not in _SMALL]


def _says(text: str, words: str) -> bool:
    return bool(words and re.search(rf"(?i)(?<!\w){re.escape(words)}(?!\w)", text))


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
_ENOUGH = 2  # a word of the tool's name, or two of its description


def _due(prompt: ReadPrompt) -> list[Call]:
    """The calls to make now: of those that the question needs, the ones that were not made yet."""
    if not prompt.tools or (
        prompt.results and prompt.results[-1].failed and not prompt.required
    ):
        return []
    tools = [tool for tool in prompt.tools if tool.name == prompt.named] or prompt.tools
    due = _planned(prompt, tools)[len(prompt.calls) :]
    made = {name for name, _ in prompt.calls}
    left = [tool for tool in tools if tool.name not in made]
    if not due and prompt.required and left:
        due = _calls(_best(left, prompt.text)[0], prompt.text, [])[:1]
    return due[:1] if prompt.single else due


def _planned(prompt: ReadPrompt, tools: Sequence[OfferedTool]) -> list[Call]:
    """A call or more for each step of the question, up to one that needs a result not there yet."""
    previous = [result.text for result in prompt.results if not result.failed]
    steps: list[tuple[OfferedTool, str]] = []
    for said in islice(filter(str.strip, _STEPS.split(prompt.question)), _MOST_STEPS):
        used = [tool for tool, _ in steps] if _REFERS.search(said) else []
        tool, worth = _best([each for each in tools if each not in used] or tools, said)
        if worth >= _ENOUGH:
            steps.append((tool, said.strip()))
        elif steps:  # no step of its own: "in Paris", "and in Rome"
            steps[-1] = (steps[-1][0], f"{steps[-1][1]}, {said}")
    planned: list[Call] = []
    for tool, said in steps:
        refers = bool(planned and _REFERS.search(said))
        if refers and len(previous) < len(planned):
            break
        calls = _calls(tool, said, previous[: len(planned)] if refers else [])
        planned += [call for call in calls if call not in planned]
    return planned


def _best(tools: Sequence[OfferedTool], text: str) -> tuple[OfferedTool, float]:
    """The tool with the most words of a text, and what they are worth."""
    signs = (
        f"{_OPERATORS[found[2]][1]} calculate math" for found in _SUM.finditer(text)
    )
    said = set(_stems(" ".join([text, *signs])))

    def worth(tool: OfferedTool) -> float:
        if _says(text, tool.name):
            return math.inf
        named, about = set(_stems(tool.name)), set(_stems(tool.about))
        return len(said & about) + len(said & named)

    best = max(tools, key=worth)
    return best, worth(best)


def _calls(tool: OfferedTool, step: str, previous: Sequence[str]) -> list[Call]:
    """The calls of one step: one for each of several values of a single required parameter."""
    schema = tool.parameters
    told = previous[-1] if previous else step
    filler = _Filler(schema, step, lambda: told, previous=previous)
    known = set(_stems(tool.about))
    found = re.findall(r"[^\W\d_][\w'-]*|\S", step)
    said = (word[0].isalpha() and set(_stems(word)) - known for word in found)
    beyond = " ".join(
        word if new else "\n" for word, new in zip(found, said, strict=True)
    )
    filler.left["words"] = [run.strip() for run in beyond.split("\n") if run.strip()]
    arguments = filler.fill(schema)
    calls = [(tool.name, arguments)]
    names, kinds = (
        schema.get("required") or list(schema["properties"]),
        set(filler.used),
    )
    if len(names) == 1 and len(kinds) == 1 and kinds <= {"quoted", "name", "number"}:
        (kind,) = kinds
        for value in filler.left[kind][: _MOST_CALLS - 1]:
            filler.left = {kind: [value]}
            again = filler.fill(schema["properties"].get(names[0], {}), names[0])
            calls.append((tool.name, {**arguments, names[0]: again}))
    return calls


# -- values for a schema --------------------------------------------------------------------------

_DEEPEST = 8
_MOST_NESTED = 4  # objects that nothing requires
_MOST_ITEMS = 8
_MOST_FIELDS = 1_000
_LONGEST = 4_000  # characters of a string
# What in a text can be a value; strings take those named in a field's name or description first.
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


class _Filler:
    """Fills a schema from a text, each value in it used once.

    `root` is what `$ref` refers to, `reply` gives words for a field about which the text says
    nothing, and `previous` are results of earlier calls, for what the text only refers to.
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
        found = {kind: re.findall(pattern, text) for kind, pattern in _VALUES.items()}
        found["name"] = [name for name in found["name"] if _stems(name)]
        self.left: dict[str, list[str]] = {
            kind: [value.strip("'\"") for value in held] for kind, held in found.items()
        }
        self.used: list[str] = []  # the kinds of the values that were taken

    def fill(
        self, schema: Any, name: str = "", depth: int = 0, *, required: bool = True
    ) -> Any:
        """A value for a schema; None where the text has none and none is required."""
        schema, required = self._resolved(schema, required=required)
        if depth > _DEEPEST or self._fields > _MOST_FIELDS:
            return None
        if "const" in schema:
            return schema["const"]
        if options := _list(schema, "enum"):
            default = schema.get("default", options[0] if required else None)
            return self._option(options, default)
        kind = _type_of(schema)
        match kind:
            case "object":
                return (
                    self._object(schema, depth)
                    if required or depth < _MOST_NESTED
                    else None
                )
            case "array":
                return self._array(schema, name, depth, required=required)
            case "boolean":
                return _says(self._text, name) or schema.get(
                    "default", False if required else None
                )
            case "integer" | "number":
                value = self._number(schema, name, required=required)
                return int(value) if value is not None and kind == "integer" else value
        return self._string(schema, name, required=required)

    def _option(self, options: list[Any], default: Any) -> Any:
        """The first option that the text names."""
        for option in options:
            if _says(self._text, str(option).replace("_", " ")):
                return option
        return default

    def _resolved(self, schema: Any, *, required: bool) -> tuple[Schema, bool]:
        """A schema without references and alternatives, and whether it needs more than null."""
        while isinstance(schema, dict) and self._fields <= _MOST_FIELDS:
            self._fields += 1
            union = _list(schema, "anyOf") or _list(schema, "oneOf")
            required &= {"type": "null"} not in union
            inner = [each for each in union if each != {"type": "null"}][:1]
            inner += [self._referred(schema["$ref"])] if "$ref" in schema else []
            inner += _list(schema, "allOf")
            if not inner:
                return schema, required
            rest = {
                k: v
                for k, v in schema.items()
                if k not in {"$ref", "allOf", "anyOf", "oneOf"}
            }
            parts = [part for part in inner if isinstance(part, dict)]
            schema = {
                key: value for part in [*parts, rest] for key, value in part.items()
            }
        return {}, required

    def _referred(self, reference: object) -> object:
        held, _, name = str(reference).removeprefix("#/").partition("/")
        found = self._root.get(held) if name else self._root
        return found.get(name, found) if isinstance(found, dict) else {}

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        properties, wanted = schema.get("properties"), _list(schema, "required")
        properties = properties if isinstance(properties, dict) else {}
        # What is required takes its value first.
        made = {
            key: self.fill(properties[key], key, depth + 1, required=key in wanted)
            for key in sorted(properties, key=lambda key: key not in wanted)
        }
        return {k: made[k] for k in properties if made[k] is not None or k in wanted}

    def _array(
        self, schema: Schema, name: str, depth: int, *, required: bool
    ) -> list[Any] | None:
        least = max(_bound(schema, "minItems", 0), int(required))
        most = min(_bound(schema, "maxItems", _MOST_ITEMS), _MOST_ITEMS)
        made: list[Any] = []
        while len(made) < max(least, most) and depth < _DEEPEST:
            before, needed = len(self.used), len(made) < least
            value = self.fill(schema.get("items"), name, depth + 1, required=needed)
            if not needed and (value is None or len(self.used) == before):
                break
            made.append(value)
        return made if made or required else None

    def _number(self, schema: Schema, name: str, *, required: bool) -> float | None:
        words = re.escape(name.replace("_", " "))
        beside = re.findall(
            rf"(?i)\b{words}\b[^\d\n]{{0,12}}({_VALUES['number']})", self._text
        )
        text = self._take(["number"], beside)
        if text is None and (not required or "default" in schema):
            default: float | None = schema.get("default")
            return default
        value = float((text or "1").replace(",", ""))
        for limit, bounded in (("minimum", max), ("maximum", min)):
            if isinstance(schema.get(limit), (int, float)):
                value = float(bounded(value, schema[limit]))
        return int(value) if value.is_integer() else value

    def _string(self, schema: Schema, name: str, *, required: bool) -> str | None:
        words, form = name.replace("_", " ").lower(), str(schema.get("format"))
        near = f"{words} {schema.get('description', '')} {form}".lower()
        special = [kind for kind in list(_VALUES)[:5] if kind in near]
        value = self._explicit(words) or self._special(special)
        free = _FREE.search(words) is not None
        if not value and not (free and self._previous) and form not in _FORMATS:
            other = (
                ["name", "expression", "words", "number"]
                if required and not free
                else []
            )
            value = self._take(["quoted", *other])
        if not value and (not required or "default" in schema):
            default: str | None = schema.get("default")
            return default
        said: str = value or _FORMATS.get(form) or self._reply()
        least = min(_bound(schema, "minLength", 0), _LONGEST)
        return said[: _bound(schema, "maxLength", _LONGEST)].ljust(least, ".")

    def _special(self, kinds: Sequence[str]) -> str | None:
        """A value of a kind that can be told by its form; an image also from an earlier result."""
        value = self._take(kinds)
        if not value and "image" in kinds:
            return next(reversed(re.findall(_VALUES["image"], self._previous)), None)
        return value

    def _explicit(self, words: str) -> str | None:
        """The value of `name=value` or `name: value`, which no other field gets then."""
        name = re.escape(words).replace(r"\ ", "[ _]")
        value = r"(\"[^\"\n]*\"|'[^'\n]*'|[^\s,;().?!][^,;()\n]*)"
        found = words and re.search(rf"(?i)\b{name}\s?[=:]\s?{value}", self._text)
        if not found:
            return None
        said: str = found[1].strip("\"' .")
        for held in self.left.values():
            held[:] = [each for each in held if each != said]
        return said

    def _take(self, kinds: Sequence[str], wanted: Sequence[str] = ()) -> str | None:
        """A value of the first kind there is: one of the wanted, or else the next."""
        kind = next((kind for kind in kinds if self.left.get(kind)), "")
        if not kind:
            return None
        taken = next(
            (each for each in self.left[kind] if each in wanted), self.left[kind][0]
        )
        self.left[kind].remove(taken)
        self.used.append(kind)
        return taken


def _type_of(schema: Schema) -> Any:
    """The type of a schema's values, the first of several that is not null."""
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        return next((name for name in kind if name != "null"), "")
    return kind


def _list(schema: Schema, name: str) -> list[Any]:
    """A list that a schema holds, which may hold anything."""
    found = schema.get(name)
    return found if isinstance(found, list) else []


def _bound(schema: Schema, name: str, default: int) -> int:
    """A bound of a schema, which may hold anything."""
    found = schema.get(name)
    return found if isinstance(found, int) and found >= 0 else default


# -- answers in words -----------------------------------------------------------------------------

_LABEL = re.compile(
    r"\s*(?:\[\d+\]\s*)?(?i:source|document|title|file)\s*:\s*(.{1,200})"
)
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
    asked = next(
        (line for line in reversed(lines) if line.rstrip().endswith("?")), lines[-1]
    )
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
        called = prompt.calls[number][0] if number < len(prompt.calls) else ""
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
            passages += [
                (source, each) for each in _sentences(said) if each not in asked
            ]
    bags = [frozenset(_stems(sentence)) for _, sentence in passages]
    common = Counter(word for bag in bags for word in bag)
    worth = {
        w: math.log(1 + len(bags) / common[w])
        for w in set(_stems(asked))
        if w in common
    }
    scores = [sum(worth.get(w, 0) for w in bag) / (1 + 0.02 * len(bag)) for bag in bags]
    if not any(scores):
        return None
    label, quote = passages[scores.index(max(scores))]
    return f'According to {label or "the text"}: "{quote}"'


def _sentences(line: str) -> Iterator[str]:
    for piece in re.split(r"(?<=[.!?])\s+(?=[A-Z`\"'\d])", line):
        if (
            (said := piece.strip())
            and not said.endswith("?")
            and not _PERSONA.match(said)
        ):
            yield said
