"""A value and a JSON Schema: is it valid, and can it be made so without inventing anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .check import Checker, Schema, fields_of, has_type, type_names
from .fitter import Fitter, Misfit
from .shapes import is_skeleton

__all__ = ["Misfit", "fit", "problems"]

_TOO_DEEP = "answer: nested too deeply"


def problems(value: Any, schema: Schema) -> list[str]:
    """What is wrong with the value, strictly and without changing it; nothing if it is valid."""
    try:
        return Checker(schema).check(value, schema)
    except RecursionError:
        return [_TOO_DEEP]


def fit(value: Any, schema: Schema, *, coerce: bool = True, tidy: bool = False) -> tuple[Any, int]:
    """The value as the schema wants it, and a penalty: 0 if it was valid as it was.

    Args:
        value: JSON, as read from a text.
        schema: A JSON Schema; parts of it that are not understood allow anything.
        coerce: Whether to look for what the value means if it is not valid.
        tidy: Whether to do so, too, where a valid value has fields that the schema does not
            know, but would know if they were spelled or wrapped otherwise.

    Raises:
        Misfit: The value does not fit. Its `problems` say why.
    """
    if echoes(value, schema):
        raise Misfit(["answer: this is the schema itself, not a value that follows it"])
    try:
        if coerce:
            return Fitter(schema, tidy=tidy).fit(value, schema)
    except RecursionError:
        raise Misfit([_TOO_DEEP]) from None
    wrong = problems(value, schema)
    if wrong:
        raise Misfit(wrong)
    return value, 0


def wants(schema: Any, name: str) -> bool:
    """Whether the schema allows values of a type at its root."""
    checker = Checker(schema)
    seen: list[Any] = []
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if not isinstance(part, Mapping) or any(part is one for one in seen):
            continue
        seen.append(part)
        options = [*_listed(part.get("enum")), *([part["const"]] if "const" in part else [])]
        if name in type_names(part.get("type")) or any(has_type(one, name) for one in options):
            return True
        waiting += [member for word in _UNIONS for member in _listed(part.get(word))]
        waiting += [checker.resolve(part["$ref"])] if "$ref" in part else []
    return False


_UNIONS = ("anyOf", "oneOf", "allOf")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def echoes(value: Any, schema: Schema) -> bool:
    """Whether the value is the schema, or its fields, handed back unfilled."""
    fields = fields_of(schema)
    if not isinstance(value, dict) or not fields:
        return False
    if value == fields:
        return True
    shown = value.get("properties", ())
    return "properties" not in fields and is_skeleton(shown) and set(shown) <= set(fields)
