"""One maker of values for each JSON type: from the text where it can, invented where it must."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from langchain_svc.sandbox.engine._assign import assign, from_background, scalar
from langchain_svc.sandbox.engine._fields import Field, field_of, suits
from langchain_svc.sandbox.engine._mentions import (
    beside_words,
    leftover,
    listed,
    mentioned_flag,
    mentioned_options,
    request_text,
    said_words,
)
from langchain_svc.sandbox.engine._schema import (
    DEEPEST,
    bend_number,
    bend_text,
    count_of,
    items_of,
)
from langchain_svc.sandbox.engine._source import (
    MISSING,
    Missing,
    points_back,
    previous_handle,
    previous_text,
)
from langchain_svc.sandbox.engine._words import sentences

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_svc.sandbox.engine._fill import Filler
    from langchain_svc.sandbox.engine._jsontext import Json

    Value: TypeAlias = "Json | Missing"

# A form leaves optional parts out below this level, or recursion would not end.
DEEP_FORM = 3
_MOST_ITEMS = 50
_NUMERIC = {"integer", "number"}


def _numeric(filler: Filler, one: Field, depth: int) -> Value:
    found = from_background(one, filler.source)
    if found is not None:
        return found
    if not filler.wants(one, depth):
        return MISSING
    default = filler.default(one)
    if default is not MISSING:
        return default
    made = filler.inventor.number(one, filler.source)
    return bend_number(made, one.schema, whole=one.kind == "integer")


def _boolean(filler: Filler, one: Field, depth: int) -> Value:
    said = mentioned_flag(one.name, filler.source.text)
    if said is not None:
        filler.source.found.add(one.name)
        return said
    if not filler.wants(one, depth):
        return MISSING
    default = filler.default(one)
    return False if default is MISSING else default


def _null(filler: Filler, one: Field, depth: int) -> Value:
    return None if filler.wants(one, depth) else MISSING


def _text(filler: Filler, one: Field, depth: int) -> Value:
    found = _meant_text(filler, one)
    if found:
        filler.source.found.add(one.name)
        return bend_text(found, one.schema)
    if not filler.wants(one, depth):
        return MISSING
    made = None if filler.form else _fallback_text(filler, one)
    return bend_text(made or filler.inventor.text(one, filler.source), one.schema)


def _meant_text(filler: Filler, one: Field) -> str | None:
    """Return a text that was meant for the field: an earlier result, or what is said of it."""
    source = filler.source
    if source.previous and "handle" in one.kinds:
        handle = previous_handle(source)
        if handle:
            return handle
    if source.previous and one.is_free_text and points_back(source.text):
        return previous_text(source)
    if one.is_free_text:
        return None
    said = said_words(one.name, source.text)
    return leftover(source.text, source.known) if filler.brief and not said else said


def _fallback_text(filler: Filler, one: Field) -> str | None:
    """Return the next best text for a required argument of a call."""
    source = filler.source
    told = source.text if source.text.strip() else source.background
    if one.is_free_text:
        return request_text(one.name, told, tuple(str(fact.value) for fact in source.taken))
    found = from_background(one, source)
    if isinstance(found, str):
        return found
    default = filler.default(one)
    if isinstance(default, str) and default:
        return default
    return None if one.is_formal else beside_words(one.name, told) or leftover(told, source.known)


def _array(filler: Filler, one: Field, depth: int) -> Value:
    element = field_of(one.name, one.schema.get("items"), filler.root, required=True)
    leading = items_of(one.schema.get("prefixItems"))
    if leading and filler.wants(one, depth) and depth < DEEPEST:
        return _tuple(filler, one, leading, depth)
    values = _elements(filler, one, element, depth) if depth < DEEPEST else []
    if values:
        filler.source.found.add(one.name)
    elif not filler.wants(one, depth):
        return MISSING
    values = _padded(values or _invented(filler, one, element), filler, one, element, depth)
    if one.schema.get("uniqueItems"):
        values = _distinct(values)
    return values[: count_of(one.schema, "maxItems", _MOST_ITEMS)]


def _invented(filler: Filler, one: Field, element: Field) -> list[Json]:
    """Return texts that a form may hold where its text lists none."""
    if not filler.form or element.kind != "string" or element.is_chosen:
        return []
    return [bend_text(text, element.schema) for text in filler.inventor.items(one)]


def _padded(
    values: list[Json], filler: Filler, one: Field, element: Field, depth: int
) -> list[Json]:
    """Return the values, and made ones up to the least number of items."""
    usual = 1 if depth < DEEP_FORM else 0
    least = max(count_of(one.schema, "minItems", 0), usual) if depth < DEEPEST else 0
    padded = list(values)
    while len(padded) < min(least, _MOST_ITEMS):
        made = filler.value(element, depth + 1)
        padded.append(None if isinstance(made, Missing) else made)
    return padded


def _distinct(values: list[Json]) -> list[Json]:
    """Return the values with a number behind each text that was there before."""
    return [
        f"{value} {n}" if isinstance(value, str) and value in values[:n] else value
        for n, value in enumerate(values)
    ]


def _tuple(filler: Filler, one: Field, leading: list[Json], depth: int) -> list[Json]:
    """Return an array whose places have schemas of their own."""
    made: list[Json] = []
    for place in leading:
        element = field_of(one.name, place, filler.root, required=True)
        dealt = assign([element], filler.source, form=filler.form).get(one.name)
        value = filler.value(element, depth + 1) if dealt is None else dealt
        made.append(None if isinstance(value, Missing) else value)
    return made


def _elements(filler: Filler, one: Field, element: Field, depth: int) -> list[Json]:
    """Return what the text lists for an array."""
    source = filler.source
    if element.is_chosen:
        return mentioned_options(items_of(element.schema.get("enum")), source.text)
    if element.kind in _NUMERIC:
        facts = [f for f in source.free() if suits(element, f) is not None and one.required]
        for fact in facts:
            source.take(one, fact)
        return [scalar(element, fact, source.text) for fact in facts]
    if element.kind == "object":
        return _records(filler, element, depth)
    texts = _listed_texts(filler, one, element) if element.kind == "string" else []
    return [bend_text(text, element.schema) for text in texts]


def _listed_texts(filler: Filler, one: Field, element: Field) -> list[str]:
    source = filler.source
    if filler.form and filler.inventor.writes(one):
        return []
    spoken_of = any(part in source.text.lower() for part in one.name.lower().split("_"))
    if not (one.required or filler.form or spoken_of):
        return []
    quoted = [fact for fact in source.free() if fact.kind == "quoted"]
    suited = [fact for fact in source.free() if suits(element, fact) is not None]
    items = listed(source.text)
    named = [str(fact.value) for fact in (quoted or suited)]
    return items if len(items) > len(named) and not quoted else list(dict.fromkeys(named))


def _records(filler: Filler, element: Field, depth: int) -> list[Json]:
    """Return one object for each part of the text that tells the first value of one."""
    records: list[Json] = []
    for part, brief in _parts(filler.source.text) if not filler.brief else ():
        source = replace(filler.source, text=part, taken=[], found=set())
        inner = replace(filler, source=source, brief=brief)
        record = inner.object(element.schema, depth + 1)
        required = set(map(str, items_of(element.schema.get("required"))))
        if required <= source.found and source.found:
            records.append(record)
    return records[:_MOST_ITEMS]


def _parts(text: str) -> list[tuple[str, bool]]:
    """Return the items of enumerations, marked as such, and the sentences without one."""
    parts: list[tuple[str, bool]] = []
    for sentence in sentences(text):
        items = listed(sentence)
        parts += [(item, True) for item in items] if len(items) > 1 else [(sentence, False)]
    return parts[:_MOST_ITEMS]


def _mapping(filler: Filler, one: Field, depth: int) -> Value:
    if depth >= DEEPEST:
        return {} if one.required else MISSING
    before = set(filler.source.found)
    value = filler.object(one.schema, depth + 1)
    grew = filler.source.found - before
    return value if grew or filler.wants(one, depth) else MISSING


MAKERS: dict[str, Callable[[Filler, Field, int], Value]] = {
    "string": _text,
    "integer": _numeric,
    "number": _numeric,
    "boolean": _boolean,
    "null": _null,
    "array": _array,
    "object": _mapping,
}
