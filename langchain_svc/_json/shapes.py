"""The ways in which models miss the shape of an object or an array, undone one at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from .check import Schema, fields_of, has_type, type_names, unknown_names
from .lenient import read_json
from .scalars import SPELLED, fold

# Wrappers that other keys may stand beside (a schema's skeleton, a tool call), those keys, and
# wrappers that hold no answer.
_HOLDS = frozenset({"properties", "arguments", "parameters", "args", "input", "function"})
_BESIDE = frozenset(
    {"type", "title", "description", "required", "name", "id", "schema", "defs", "tool"}
)
_NO_ANSWER = frozenset({"error", "errors", "example", "examples", "schema", "defs", "definitions"})
_SCHEMA_KEYS = frozenset({"type", "$ref", "anyOf", "allOf", "oneOf", "enum", "const"})
_FENCE = re.compile(r"\s*`{3,}[\w+-]*\s*")


def objects_of(value: Any, schema: Schema) -> Iterator[Any]:
    """What an object may have been written as."""
    inner = parsed(value, dict)
    if inner is not None:
        yield inner
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        yield value[0]
    fields = fields_of(schema)
    if len(fields) == 1:
        name, only = next(iter(fields.items()))
        types = type_names(only.get("type")) if isinstance(only, Mapping) else []
        # No text, for text may be anything.
        if not isinstance(value, str) and any(has_type(value, one) for one in types):
            yield {name: value}


def options_of(schema: Schema) -> list[Any] | None:
    """The values that an enumeration or a constant allows; None if the schema is neither."""
    if isinstance(schema.get("enum"), list):
        options: list[Any] = schema["enum"]
        return options
    return [schema["const"]] if "const" in schema else None


def type_of(schema: Schema) -> str:
    names = type_names(schema.get("type"))
    if names:
        return names[0]
    return "object" if "properties" in schema else "array" if "items" in schema else ""


def parsed(value: Any, wanted: type | tuple[type, ...]) -> Any:
    """What a string that holds JSON holds, if it is of the wanted type."""
    if not isinstance(value, str):
        return None
    fence = _FENCE.match(value)
    found = read_json(value, fence.end() if fence else 0)
    if found is None or value[found.end :].strip(" \t\r\n`;"):
        return None
    return found.value if isinstance(found.value, wanted) else None


def renamed(value: dict[str, Any], schema: Schema) -> tuple[dict[str, Any], int]:
    """The object with fields that are only spelled otherwise under their own names."""
    unknown = unknown_names(value, schema)
    if not unknown:
        return value, 0
    absent: dict[str, list[str]] = {}
    for name in fields_of(schema):
        if name not in value:
            absent.setdefault(fold(name), []).append(name)
    names = {}
    for name in unknown:
        wanted = absent.pop(fold(name), [])
        if len(wanted) == 1:
            names[name] = wanted[0]
    return {names.get(name, name): item for name, item in value.items()}, SPELLED * len(names)


def unwrapped(value: dict[str, Any], schema: Schema) -> Iterator[Any]:
    """What is inside a wrapper: {"answer": {...}}, {"type": "object", "properties": {...}}."""
    folded = {fold(name) for name in fields_of(schema)}
    inner = [name for name in value if fold(name) not in _BESIDE]
    if len(inner) != 1 or fold(inner[0]) in folded | _NO_ANSWER:
        return
    if len(value) > 1 and fold(inner[0]) not in _HOLDS:
        return
    held = value[inner[0]]
    inside = parsed(held, (dict, list))
    held = held if inside is None else inside
    if isinstance(held, (dict, list)) and not is_skeleton(held):
        yield held


def is_strange(value: dict[str, Any], schema: Schema) -> bool:
    """Whether an object has fields, but none that the schema knows, where it knows some."""
    known = fields_of(schema)
    open_ = bool(schema.get("additionalProperties"))
    return bool(value and known) and not open_ and not any(name in known for name in value)


def is_skeleton(value: Any) -> bool:
    """Whether all fields of an object are schemas: the form was handed back, not filled in."""
    return (
        isinstance(value, dict)
        and bool(value)
        and all(isinstance(item, dict) and _SCHEMA_KEYS & item.keys() for item in value.values())
    )


def arrays_of(value: Any) -> Iterator[Any]:
    """What an array may have been written as."""
    inside = parsed(value, (list, dict))
    if inside is not None:
        yield inside if isinstance(inside, list) else [inside]
    if isinstance(value, dict) and len(value) == 1:
        (held,) = value.values()
        if isinstance(held, list):
            yield held
    if value is not None:
        yield [value]


def as_rows(value: list[Any], schema: Schema) -> list[Any]:
    """A list of rows in which a run of single values is a row whose brackets were lost."""
    items = schema.get("items")
    if not isinstance(items, Mapping) or type_of(items) != "array":
        return value
    if all(isinstance(item, list) or not isinstance(item, (str, int, float)) for item in value):
        return value
    rows: list[Any] = []
    for single, run in groupby(value, key=lambda item: not isinstance(item, list)):
        items = list(run)
        rows += [items] if single else items
    return rows


_MOST_WRAPPINGS = 3


def is_wrapped(value: Any) -> bool:
    """Whether a value is a list of one value, and that perhaps in a list again.

    Deeper nesting is a text of brackets: nobody means its middle.
    """
    wrappings = 0
    while isinstance(value, list) and len(value) == 1 and wrappings <= _MOST_WRAPPINGS:
        value = value[0]
        wrappings += 1
    return 0 < wrappings <= _MOST_WRAPPINGS
