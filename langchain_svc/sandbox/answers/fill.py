"""Values for a JSON schema out of a text: one walk, each stretch of the text used once."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from langchain_svc.sandbox.answers.read import Schema
from langchain_svc.sandbox.answers.text import DATE, stems, subject, sums, topic

_DEEPEST = 8
_MOST_ITEMS = 8
_MOST_FIELDS = 1_000
_LONGEST = 4_000  # characters of a string
_MOST_STRETCHES = 300  # of one kind, so that the time stays linear
_FEW = 4  # words of a text that is the value itself

# -- stretches of a text, by kind -----------------------------------------------------------------

Stretch = tuple[int, int, str]
_SPOKEN = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS = {word: str(number) for number, word in enumerate(_SPOKEN, 2)}
_NUMBER = re.compile(
    r"(?<![\w.])(?<![A-Za-z]-)(?:(?<![\w)])-)?\d{1,20}(?:,\d{3})*(?:\.\d+)?(?![\d_]|[.-]\d)"
    rf"|\b(?:{'|'.join(_NUMBERS)})\b"
)
_CAPITALISED = r"[A-Z][\w'-]+(?: [A-Z][\w'-]+)*"
_PLACES = re.compile(
    rf"\b(?:in|to|from|for|at|of|near)\s+({_CAPITALISED}(?:, {_CAPITALISED})*"
    rf"(?:,? (?:and|or) (?:in |for |at )?{_CAPITALISED}(?:, [A-Z]{{2}}\b)?)*)"
)
_LIST = re.compile(r",\s+(?:and\s+)?|\s+and\s+")
_AND = re.compile(r",? (?:and|or) (in |for |at )?")
_FIRST = r"(?:^|(?<=[.!?] ))[A-Z]\w+(?= (?:is|was|has|and|lives|works|wants)\b)"
_LANGUAGES = {
    "arabic": "ar", "chinese": "zh", "dutch": "nl", "english": "en", "french": "fr",
    "german": "de", "greek": "el", "italian": "it", "japanese": "ja", "korean": "ko",
    "polish": "pl", "portuguese": "pt", "russian": "ru", "spanish": "es", "turkish": "tr",
}  # fmt: skip
_PATTERNS = {
    "number": _NUMBER,
    "place": _PLACES,
    "language": re.compile(rf"(?i)\b(?:{'|'.join(_LANGUAGES)})\b"),
    "date": DATE,
    "time": re.compile(r"\b\d{1,2}:\d{2}(?::\d{2})?\b|\b\d{1,2} ?[ap]m\b"),
    "email": re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64})+"),
    "url": re.compile(r"\bhttps?://[^\s\"'<>)]+"),
    "handle": re.compile(r"\bimg_\w+|\bhttps?://[^\s\"'<>)]+|\b[\w-]{1,80}\.[a-z]{3,4}\b"),
    "quoted": re.compile(
        r"(?<!\w)'([^'\n]{1,300})'(?!\w)|\"([^\"\n]{1,2000})\"|\u00ab([^\u00bb]{1,300})\u00bb"
    ),
    "name": re.compile(rf"(?<=[^.!?\n] ){_CAPITALISED}|{_FIRST}"),
    "counted": re.compile(r"(?i)(?:(?<=\bhow (?:many|much) )|(?<=\d )|(?<=\d of ))[a-z]{3,}\b"),
    "aside": re.compile(r" - (an? [^.\n]{1,200})"),
}


def _bound(schema: Schema, name: str, default: int) -> int:
    """A bound of a schema, which may hold anything."""
    found = schema.get(name)
    return found if isinstance(found, int) and found >= 0 else default


def _kinds(words: str) -> tuple[str, ...]:
    return next((kinds for pattern, kinds in _KINDS if re.search(pattern, words)), ())


def _found(kind: str, text: str) -> Iterator[Stretch]:
    """Every stretch of a kind."""
    if kind == "sum":
        yield from ((at, at + len(s), s) for s, _ in sums(text) if (at := text.find(s[0])) >= 0)
        return
    # A date is not three numbers.
    masked = DATE.sub(lambda date: "_" * len(date[0]), text) if kind == "number" else text
    for found in _PATTERNS[kind].finditer(masked):
        value = next(filter(None, found.groups()), found[0])
        if kind == "place":
            yield from _listed(value, found.start(1))
        elif kind == "number":
            yield *found.span(), _NUMBERS.get(value, value.replace(",", ""))
        elif kind == "language":
            yield *found.span(), _LANGUAGES[value.lower()]
        elif kind not in {"name", "counted"} or stems(value):  # "What" is not a name
            yield *found.span(), value


def _listed(places: str, start: int) -> Iterator[Stretch]:
    """The places of a list; where no "and" parts them, commas do not either: Nice, France."""
    several = _AND.search(places)
    parts = [part for part in _AND.split(places) if part not in {None, "in ", "for ", "at "}]
    if several and not several[1]:
        parts = [each for part in parts for each in re.split(r", (?![A-Z]{2}\b)", part)]
    at = 0
    for part in parts:
        at = places.index(part, at)
        yield start + at, start + at + len(part), part
        at += len(part)


# What the name of a field, or else its description, says about its value.
_KINDS = (
    (r"e-?mail", ("email",)),
    (r"url|link|website", ("url",)),
    (r"image|picture|photo|handle|file|path", ("handle",)),
    (r"date|day|when|deadline", ("date",)),
    (r"time|hour", ("time",)),
    (r"expr|formula|equation|calculation", ("sum",)),
    (r"lang|target|^to$|^source$", ("language",)),
    (r"desc", ("quoted", "aside")),
    (r"city|place|locat|country|town|where|destin|region|capital", ("place", "quoted", "name")),
    (r"name|person|author|who|customer|speaker|style", ("quoted", "name", "place")),
)
_TOPICS = re.compile(r"topic|subject|title|theme|prompt|about|query|search|term|keyword|symptom")
_WHOLE = re.compile(r"query|question|request|message|prompt|input|text|content")
_REPLY = re.compile(r"answer|summary|response|reply|reason|expla|comment|conclusion|report")
_FORMATS = {
    "date": "2024-01-01",
    "date-time": "2024-01-01T00:00:00Z",
    "time": "00:00:00",
    "email": "nobody@example.com",
    "uri": "https://example.com",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_FORMAT_KINDS = {"date": "date", "date-time": "date", "email": "email", "uri": "url"}
_BOUNDS = {"minimum": 1, "exclusiveMinimum": 1, "maximum": -1, "exclusiveMaximum": -1}
_JOKE = {
    "setup": "Why did {} never get lost?",
    "punchline": "Because {} always followed the rules.",
}


class Filler:
    """Fills schemas from a text.

    Args:
        root: The schema that `$ref` refers to.
        text: Where values are looked for.
        previous: Results of earlier calls, for what the text only refers to.
        reply: Words for a field that wants an answer.
    """

    def __init__(
        self,
        root: Schema,
        text: str,
        previous: Sequence[str] = (),
        reply: Callable[[], str] | None = None,
    ) -> None:
        self._root = root
        self._text = text
        self._previous = previous
        self._reply = reply
        self._stretches: dict[str, list[Stretch]] = {}
        self._fields = 0
        self.used: list[tuple[int, int]] = []
        self.kinds: list[str] = []  # of the stretches that were used
        self.only: str | None = None  # the only kind to use from now on

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
            return self._option(options, schema, required=required)
        kind = schema.get("type", "object" if "properties" in schema else "string")
        kinds = kind if isinstance(kind, list) else [kind]
        kind = next((k for k in kinds if isinstance(k, str) and k != "null"), "null")
        if kind == "null":
            return None
        if kind == "object":
            return self._object(schema, depth) if required or depth < _DEEPEST // 2 else None
        if kind == "array":
            return self._array(schema, name, depth, required=required)
        if kind == "boolean":
            return self._boolean(schema, name, required=required)
        if kind in {"integer", "number"}:
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

    # -- values with parts ------------------------------------------------------------------------

    def _object(self, schema: Schema, depth: int) -> dict[str, Any]:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, dict) else {}
        wanted = schema.get("required")
        wanted = set(wanted) if isinstance(wanted, list) else set()
        made = {}
        # What is required, and what is one value, takes its stretch first.
        order = {key: (key not in wanted, self._many(properties[key])) for key in properties}
        for key in sorted(properties, key=lambda key: order[key]):
            value = self.fill(properties[key], key, required=key in wanted, depth=depth + 1)
            if value is not None or key in wanted:
                made[key] = value
        return {key: made[key] for key in properties if key in made}

    def _many(self, schema: Schema) -> bool:
        return self._resolved(schema)[0].get("type") == "array"

    def _array(self, schema: Schema, name: str, depth: int, *, required: bool) -> list[Any] | None:
        if isinstance(places := schema.get("prefixItems"), list):
            return [self.fill(each, name, depth=depth + 1) for each in places]
        item = {**schema.get("items", {})} if isinstance(schema.get("items"), dict) else {}
        item.setdefault("description", schema.get("description", ""))
        low = max(_bound(schema, "minItems", 0), int(required and depth < _DEEPEST // 2))
        high = min(_bound(schema, "maxItems", _MOST_ITEMS), _MOST_ITEMS)
        made: list[Any] = []
        while len(made) < max(low, high) and depth < _DEEPEST:
            before = len(self.used)
            value = self.fill(item, name, required=len(made) < low, depth=depth + 1)
            if value is None or (len(self.used) == before and len(made) >= low):
                break
            several = _LIST.split(value) if isinstance(value, str) else [value]
            made += [each for each in several if each not in made] or [value]
        return made if made or required else None

    # -- single values ----------------------------------------------------------------------------

    def _take(self, kind: str, near: str) -> str | None:
        """The unused stretch of a kind that is nearest to the words of a field."""
        if self.only not in {None, kind}:
            return None
        if kind not in self._stretches:
            self._stretches[kind] = list(islice(_found(kind, self._text), _MOST_STRETCHES))
        free = [
            (start, end, value)
            for start, end, value in self._stretches[kind]
            if not any(a < end and start < b for a, b in self.used)
        ]
        if not free:
            return None
        hints = [
            hint.span()
            for each in set(stems(near))
            for hint in islice(re.finditer(rf"(?i)\b{re.escape(each)}", self._text), 20)
        ]

        def distance(stretch: Stretch) -> int:
            gaps = (max(stretch[0] - end, start - stretch[1]) for start, end in hints)
            return min(gaps, default=0)

        start, end, value = min(free, key=distance)
        self.used.append((start, end))
        self.kinds.append(kind)
        return value

    def _option(self, options: list[Any], schema: Schema, *, required: bool) -> Any:
        low = self._text.lower()
        for option in options:
            words = str(option).lower().replace("_", " ").replace("-", " ")
            if words and re.search(rf"(?<!\w){re.escape(words)}(?!\w)", low):
                return option
        said = set(stems(self._text))
        return next(
            (option for option in options if said & set(stems(str(option)))),
            schema.get("default", options[0] if required else None),
        )

    def _boolean(self, schema: Schema, name: str, *, required: bool) -> bool | None:
        if set(stems(name)) & set(stems(self._text)):
            return not re.search(r"(?i)\b(?:no|not|without|never|false)\b|n't\b", self._text)
        default: bool | None = schema.get("default", False if required else None)
        return default

    def _number(
        self, schema: Schema, name: str, *, whole: bool, required: bool
    ) -> int | float | None:
        text = self._take("number", f"{name} {schema.get('description', '')}")
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
        value = self._from_text(schema, name, required=required)
        if value is None and (not required or "default" in schema):
            default: str | None = schema.get("default")
            return default
        if value is None:
            value = _FORMATS.get(str(schema.get("format"))) or self._phrase(name)
        least = min(_bound(schema, "minLength", 0), _LONGEST)
        return value[: _bound(schema, "maxLength", _LONGEST)].ljust(least, ".")

    def _from_text(self, schema: Schema, name: str, *, required: bool) -> str | None:
        """What the text, or a result that it refers to, says for a string."""
        words = name.replace("_", " ").lower()
        near = f"{words} {schema.get('description', '')}".lower()
        if name in _JOKE:
            return None
        if explicit := self._explicit(words, "[=:]"):
            return explicit
        if kind := _FORMAT_KINDS.get(str(schema.get("format"))):
            return self._take(kind, near)
        if self._previous and _WHOLE.search(words):
            return self._previous[-1]
        return self._stretch_for(words, near, required=required)

    def _stretch_for(self, words: str, near: str, *, required: bool) -> str | None:
        """A stretch of a kind that a field's name calls for, or else its description."""
        free = _WHOLE.search(words) or _REPLY.search(words)  # the answerer's own words will do
        kinds = _kinds(words) or (() if free else _kinds(near))
        # The last kind is a guess, for what is required.
        tried = (kinds if required else kinds[:2]) or ("quoted",)
        found = next(filter(None, (self._take(kind, near) for kind in tried)), None)
        if not found and "handle" in kinds:
            shown = re.findall(r"\bimg_\w+", "\n".join(self._previous))
            return shown[-1] if shown else None
        if not found and _TOPICS.search(near):
            found = self._topic()
        if not found and required and not kinds and not free:
            found = self._explicit(words, "(?=[ ])") or self._take("name", near)
            found = found or self._take("counted", near)
        return found

    def _topic(self) -> str | None:
        about = topic(self._text)
        start = self._text.find(about)
        if (
            not about
            or self.only
            or any(a < start + len(about) and start < b for a, b in self.used)
        ):
            return None
        self.used.append((start, start + len(about)))
        return about

    def _explicit(self, words: str, sign: str) -> str | None:
        """The value of `name=value` or `name: value`."""
        name = re.escape(words).replace(r"\ ", "[ _]")
        value = r"(\"[^\"\n]*\"|'[^'\n]*'|[^\s,;().?!][^,;()\n]*)"
        found = words and re.search(rf"(?i)\b{name}\s?{sign}\s?{value}", self._text)
        if not found or self.only is not None:
            return None
        self.used.append(found.span())
        return found[1].strip("\"' .")

    def _phrase(self, name: str) -> str:
        """Words for a field about which the text says nothing."""
        about = subject(self._text)
        if name in _JOKE:
            return _JOKE[name].format(about)
        if self._reply is not None and (_REPLY.search(name) or not name):
            return self._reply()
        if _WHOLE.search(name) or len(self._text.split()) <= _FEW:
            return self._text.strip()
        return f"{name.replace('_', ' ')} of {about}"


def fill(root: Schema, text: str, *, reply: Callable[[], str]) -> Any:
    """A value for a whole schema."""
    return Filler(root, text, reply=reply).fill(root)


def fill_keys(keys: Sequence[str], text: str, *, reply: Callable[[], str]) -> Mapping[str, Any]:
    """An object with the keys that words asked for."""
    filler = Filler({}, text, reply=reply)
    return {key: filler.fill({"type": "string"}, key) for key in keys or ["answer"]}
