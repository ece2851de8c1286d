"""What a field of a schema wants, judged by its name, its description and its type."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from langchain_svc.sandbox.engine._schema import (
    Schema,
    alternatives,
    items_of,
    kind_of,
    mapping,
    resolve,
)
from langchain_svc.sandbox.engine._words import (
    STOP_WORDS,
    name_words,
    stem,
    terms,
    words,
)

if TYPE_CHECKING:
    from langchain_svc.sandbox.engine._facts import Fact
    from langchain_svc.sandbox.engine._jsontext import Json

# The words of a field name, and the kinds of facts that suit it, best first. The last word of a
# name counts most: `customer_email` is an address, `email_subject` a text.
_TEXT = ("quoted",)
_KINDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("email mail", ("email",)),
    ("url link website uri href webpage", ("url",)),
    ("phone telephone mobile", ("phone",)),
    ("date day birthday deadline dob when checkin checkout", ("date", "day")),
    ("time hour clock", ("time", "date", "day")),
    ("expression expr formula equation calculation", ("expr", "variable_expr", "quoted")),
    ("function polynomial", ("variable_expr", "quoted", "expr")),
    ("handle image img picture photo attachment file ref", ("handle", "url", "quoted")),
    ("language lang locale", ("language",)),
    ("currency currencies", ("currency",)),
    ("style tone mood genre", ("quoted", "name")),
    ("color colour", ("colour", "quoted")),
    ("unit units metric", ("unit",)),
    (
        (
            "location city place country state destination origin town address region area capital "
            "street venue airport neighborhood station port county province museum"
        ),
        ("place", "name", "plain_place", "quoted"),
    ),
    (
        (
            "name person author company player team artist customer user title book movie film "
            "song album brand organization organisation actor singer composer president hotel "
            "restaurant stock firm employee patient owner sender recipient species product item"
        ),
        ("quoted", "name", "place"),
    ),
    (
        (
            "text query prompt message sentence question content description topic input task "
            "instruction instructions body keyword keywords search term subject note caption "
            "reason summary answer response reply explanation reasoning rationale thought "
            "conclusion setup punchline comment feedback advice review opinion verdict"
        ),
        _TEXT,
    ),
    ("id identifier code sku isbn ticker symbol key token", ("handle", "code", "quoted", "number")),
    ("number year amount count zip zipcode", ("number", "code", "quoted")),
)
_KIND_OF_WORD = {word: kinds for line, kinds in _KINDS for word in line.split()}
_DEFAULT_KINDS = ("quoted", "name", "place")
_FORMATS: dict[str, tuple[str, ...]] = {
    "date": ("date", "day"),
    "date-time": ("date", "day"),
    "time": ("time",),
    "email": ("email",),
    "uri": ("url",),
    "url": ("url",),
}
# Words in which free text is expected: the request itself may be the value.
FREE_TEXT = frozenset(_KINDS[-3][0].split())
_CERTAIN = frozenset({"email", "url", "date", "language", "currency", "handle", "expr", "unit"})
_CODE_EXAMPLE = re.compile(r"\be\.g\.?,? ['\"`]?[a-z]{2}\b|\bISO[ -]?639", re.IGNORECASE)
_FORMAL = _CERTAIN | {"time", "phone"}
_GENERIC = frozenset(
    stem(word)
    for word in terms("name value number string type id the input field parameter specific given")
)


@dataclass(frozen=True, eq=False)
class Field:
    """One property of an object schema."""

    name: str
    schema: Schema
    required: bool
    nullable: bool
    stems: frozenset[str]
    hints: frozenset[str]
    kinds: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The JSON type of the field."""
        return kind_of(self.schema)

    @property
    def is_chosen(self) -> bool:
        """Whether the value is one of several that the schema tells, or several schemas."""
        return bool({"enum", "const", "anyOf", "oneOf"} & set(self.schema))

    @property
    def wants_code(self) -> bool:
        """Whether a language is meant by its code: "fr"."""
        described = str(self.schema.get("description", ""))
        return stem("code") in self.stems | self.hints or bool(_CODE_EXAMPLE.search(described))

    @property
    def is_formal(self) -> bool:
        """Whether the field takes values of a certain form only, such as an address."""
        return self.kinds[0] in _FORMAL

    @property
    def is_free_text(self) -> bool:
        """Whether the field takes a text as it was said, and no single value."""
        known = [word for word in reversed(name_words(self.name)) if word in _KIND_OF_WORD]
        return self.kind == "string" and bool(FREE_TEXT.intersection(known[:1]))


def _text_kinds(name: str, description: str, schema: Schema) -> tuple[str, ...]:
    told = schema.get("format")
    if isinstance(told, str) and told in _FORMATS:
        return _FORMATS[told]
    for word in reversed(name_words(name)):
        kinds = _KIND_OF_WORD.get(word) or _KIND_OF_WORD.get(word.removesuffix("s"))
        if kinds:
            return kinds
    for word in words(description)[:12]:
        kinds = _KIND_OF_WORD.get(word)
        if kinds and kinds not in (_TEXT, _DEFAULT_KINDS):
            return kinds
    return _DEFAULT_KINDS


_KINDS_OF_TYPE: dict[str, tuple[str, ...]] = {
    "integer": ("number", "number_word"),
    "number": ("number", "percent", "number_word"),
}


_MOST_LAYERS = 5  # alternatives within alternatives


def field_of(name: str, raw: Json, root: Schema, *, required: bool) -> Field:
    """Read one property."""
    schema = resolve(raw, root)
    described = schema.get("description")
    nullable = False
    for _ in range(_MOST_LAYERS):
        real, may_be_null = alternatives(schema, root)
        nullable = nullable or may_be_null
        if len(real) != 1 or real[0] is schema:
            break
        schema = real[0]
    description = described if isinstance(described, str) else ""
    named = frozenset(stem(word) for word in name_words(name) if word not in STOP_WORDS)
    hints = frozenset(stem(word) for word in words(description)[:40] if word not in STOP_WORDS)
    kinds = _KINDS_OF_TYPE.get(kind_of(schema)) or _text_kinds(name, description, schema)
    return Field(name, schema, required, nullable, named - _GENERIC, hints - named, kinds)


def fields_of(schema: Schema, root: Schema) -> list[Field]:
    """Return the properties of an object schema, and what it requires beyond them."""
    required = [name for name in items_of(schema.get("required")) if isinstance(name, str)]
    properties = mapping(schema.get("properties"))
    every = {**properties, **{name: {} for name in required if name not in properties}}
    return [field_of(name, raw, root, required=name in required) for name, raw in every.items()]


# --- Evidence ------------------------------------------------------------------------------

_WORD = re.compile(r"[^\W_]+|[=:+]")
_BEFORE, _AFTER = 60, 40  # characters in which a word belongs to a value
_ORIGIN = frozenset(map(stem, terms("from source origin start departure begin initial first")))
_TARGET = frozenset(map(stem, terms("to target destination end arrival until final finish")))


@lru_cache(maxsize=4_096)
def _around(text: str, start: int, end: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words before a span, nearest first, and those after it."""
    before = re.split(r"[.!?;]\s", text[max(0, start - _BEFORE) : start])[-1]
    after = re.split(r"[.!?;](?:\s|$)", text[end : end + _AFTER])[0]
    return (
        tuple(reversed([word.lower() for word in _WORD.findall(before)])),
        tuple(word.lower() for word in _WORD.findall(after)),
    )


def _direction(field: Field, nearest: str) -> float:
    words_of_field = {stem(word) for word in name_words(field.name)}
    origin, target = words_of_field & _ORIGIN, words_of_field & _TARGET
    if bool(origin) == bool(target):
        return 0.0
    if nearest in {"from", "between"}:
        return 2.0 if origin else -2.0
    if nearest in {"to", "into", "until", "and"}:
        return 2.0 if target else -2.0
    return 0.0


def evidence(field: Field, fact: Fact, text: str) -> float:
    """Return how much the words around a fact speak for the field; 0 is none."""
    before, after = _around(text, fact.start, fact.end)
    score = _direction(field, before[0] if before else "")
    for side, worth in ((before, 1.0), (after, 0.8)):
        for distance, word in enumerate(side[:7], 1):
            cut = stem(word)
            named = cut in field.stems or any(_extends(cut, own) for own in field.stems)
            weight = 2.0 if named else 0.4 if cut in field.hints else 0.0
            score += worth * weight / distance
    return score


_LEAST_SHARED = 4


def _extends(word: str, own: str) -> bool:
    """Tell whether a word goes on where the field's own ends, as `hostname` does for `host`."""
    return len(own) >= _LEAST_SHARED and word.startswith(own)


def suits(field: Field, fact: Fact) -> float | None:
    """Return how well the kind of a fact suits the field, or `None` when it does not."""
    if fact.kind == "opener" and "name" in field.kinds:
        return 1.0 - 0.2 * len(field.kinds)
    if fact.kind not in field.kinds or str(fact.value).lower() in field.name.lower().split("_"):
        return None
    return 1.0 - 0.2 * field.kinds.index(fact.kind)


def is_certain(field: Field, fact: Fact) -> bool:
    """Tell whether the kind alone proves that the fact belongs to the field."""
    return fact.kind in _CERTAIN | {"place"} and field.kinds[0] == fact.kind
