"""The shapes in which models miss a schema's objects and arrays, and the values meant by them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import groupby

from .lenient import read_json
from .scalars import SPELLED, fold
from .schema import (
    COMBINED,
    CompiledSchema,
    SchemaPart,
    has_any_type,
    mapping_of,
    type_names,
)

# Wrappers that other keys may stand beside (a schema's skeleton, a tool call), those keys, and
# wrappers that hold no answer.
_WRAPPERS = frozenset(
    ["properties", "arguments", "parameters", "args", "input", "function"]
)
_BESIDE_WRAPPERS = frozenset(
    ["type", "title", "description", "required", "name", "id", "schema", "defs", "tool"]
)
_NO_ANSWER = frozenset(
    ["error", "errors", "example", "examples", "schema", "defs", "definitions"]
)
_SCHEMA_KEYS = frozenset(["type", "enum", "const", *COMBINED])
_ROOT_KEYS = _SCHEMA_KEYS | {"$schema", "$defs", "title", "properties", "required"}
_FENCE = re.compile(r"\s*`{3,}[\w+-]*\s*")


def _parse_container(value: object) -> dict[str, object] | list[object] | None:
    """The object or the list that a string holds as JSON, alone or in a fence."""
    if not isinstance(value, str):
        return None
    start = 0
    fence = _FENCE.match(value)
    if fence:
        start = fence.end()
    parsed = read_json(value, start)
    if parsed is None or parsed.spare or value[parsed.end :].strip(" \t\r\n`;"):
        return None
    if isinstance(parsed.value, (dict, list)):
        return parsed.value
    return None


def object_shapes(
    value: object, part: SchemaPart, schema: CompiledSchema
) -> Iterator[object]:
    """The objects that a value which is none may stand for."""
    parsed = _parse_container(value)
    if isinstance(parsed, dict):
        yield parsed
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        yield value[0]
    if not isinstance(value, str):  # text may be anything
        yield from wrap(value, part, schema)


def array_shapes(value: object) -> Iterator[object]:
    """The lists that a value which is none may stand for."""
    parsed = _parse_container(value)
    if isinstance(parsed, list):
        yield parsed
        return
    item = value
    if parsed is not None:
        item = parsed
    if item is None:
        return
    # An object may hold the list that is asked for, so it is no item of it: the model is asked.
    has_list = isinstance(item, dict) and any(
        isinstance(field, list) for field in item.values()
    )
    if not has_list:
        yield [item]


def join_rows(value: list[object], part: SchemaPart) -> Iterator[object]:
    """A list of rows in which a run of single values is a row whose brackets were forgotten."""
    if "array" not in type_names(part.items):
        return
    if not any(isinstance(item, (str, int, float)) for item in value):
        return
    rows: list[object] = []
    for is_row, run in groupby(value, key=lambda item: isinstance(item, list)):
        items = list(run)
        if is_row:
            rows += items
        else:
            rows.append(items)
    yield rows


def respell_fields(
    value: dict[str, object], part: SchemaPart
) -> tuple[dict[str, object], int]:
    """The object with fields that are only spelled otherwise under their own names."""
    missing: dict[str, list[str]] = {}
    for name in part.fields:
        if name not in value:
            missing.setdefault(fold(name), []).append(name)
    respelled: dict[str, str] = {}
    for name in value:
        if name in part.fields or part.pattern_schemas(name):
            continue
        candidates = missing.pop(fold(name), [])
        if len(candidates) == 1:
            respelled[name] = candidates[0]
    fields = {respelled.get(name, name): item for name, item in value.items()}
    return fields, SPELLED * len(respelled)


def wrap(value: object, part: SchemaPart, schema: CompiledSchema) -> Iterator[object]:
    """The object around its only field, where a value is of this one's type.

    For an object, the type is its fields: it must have some of them, and no other.
    """
    if len(part.fields) != 1:
        return
    ((name, inner),) = part.fields.items()
    roots = schema.roots_of(inner)
    if isinstance(value, dict):
        is_inner = bool(value) and any(
            value.keys() <= root.fields.keys() for root in roots
        )
    else:
        is_inner = any(has_any_type(value, root.schema) for root in roots)
    if is_inner:
        yield {name: value}


def unwrap(value: dict[str, object], part: SchemaPart) -> Iterator[object]:
    """What is inside a wrapper: {"answer": {...}}, {"type": "object", "properties": {...}}."""
    wrappers = [name for name in value if fold(name) not in _BESIDE_WRAPPERS]
    if len(wrappers) != 1:
        return
    wrapper = fold(wrappers[0])
    if wrapper in _NO_ANSWER or wrapper in {fold(name) for name in part.fields}:
        return
    if len(value) > 1 and wrapper not in _WRAPPERS:
        return
    content = value[wrappers[0]]
    parsed = _parse_container(content)
    if parsed is not None:
        content = parsed
    if isinstance(content, list) or (
        isinstance(content, dict) and not _is_skeleton(content)
    ):
        yield content


def is_strange(value: object, part: SchemaPart) -> bool:
    """Whether an object has fields, but none that the schema knows, where it knows some."""
    if not isinstance(value, dict) or part.schema.get("additionalProperties"):
        return False
    if not value or not part.fields:
        return False
    return part.fields.keys().isdisjoint(value)


def _is_skeleton(value: dict[str, object]) -> bool:
    """Whether all fields of an object are schemas: the form was handed back, not filled in."""
    for field in value.values():
        if not isinstance(field, dict) or not _SCHEMA_KEYS & field.keys():
            return False
    return bool(value)


def echoes_schema(value: object, fields: Mapping[str, object]) -> bool:
    """Whether the value is the schema's fields, or the schema, handed back unfilled."""
    if not isinstance(value, dict) or not fields:
        return False
    if value == fields:
        return True
    if "properties" in fields:  # the schema has a field of this name
        return False
    properties = value.get("properties")
    if not isinstance(properties, dict) or not _is_skeleton(properties):
        return False
    return properties.keys() <= fields.keys()


def begins_schema(value: object, schema: CompiledSchema) -> bool:
    """Whether what there is of a value that was cut off are keywords of the schema."""
    if not isinstance(value, dict) or value.keys() <= schema.fields.keys():
        return False
    return value.keys() <= _ROOT_KEYS | mapping_of(schema.schema).keys()
