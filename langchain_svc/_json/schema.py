"""A value and a JSON Schema: is it valid, and can it be made so without inventing anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .check import Checker, Schema, fields_of, has_type, type_names
from .fitter import Fitter, Misfit, accept
from .shapes import is_skeleton, is_strange, options_of
from .wording import got, listed

__all__ = ["Misfit", "fields", "fit_schema", "problems", "wants"]

_TOO_DEEP = "answer: nested too deeply"
_COMBINES = ("anyOf", "oneOf", "allOf")


def problems(value: Any, schema: Schema) -> list[str]:
    """What is wrong with the value, strictly and without changing it; nothing if it is valid."""
    try:
        return Checker(schema).check(value, schema)
    except RecursionError:
        return [_TOO_DEEP]


def fit_schema(
    value: Any, schema: Schema, *, coerce: bool = True, tidy: bool = False
) -> tuple[Any, int]:
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
    roots = _roots(schema)
    if any(_echoes(value, root) for root in roots):
        raise Misfit(["answer: this is the schema itself, not a value that follows it"])
    if not coerce:
        return accept(value, problems(value, schema))
    try:
        fitted, penalty = Fitter(schema, tidy=tidy).fit(value, schema)
    except RecursionError:
        raise Misfit([_TOO_DEEP]) from None
    if (
        tidy
        and isinstance(fitted, dict)
        and roots
        and all(is_strange(fitted, one) for one in roots)
    ):
        raise Misfit([f"answer: has none of the fields {listed(fields(schema))}, {got(fitted)}"])
    return fitted, penalty


def wants(schema: Any, name: str) -> bool:
    """Whether the schema allows values of a type at its root."""
    return any(
        name in type_names(root.get("type"))
        or any(has_type(option, name) for option in options_of(root) or ())
        for root in _roots(schema)
    )


def fields(schema: Any) -> list[str]:
    """The fields that the schema names at its root."""
    return list(dict.fromkeys(name for root in _roots(schema) for name in fields_of(root)))


def _roots(schema: Any) -> list[Schema]:
    """The schema and all that it refers to for the whole value, but for what only combines."""
    checker = Checker(schema)
    seen: list[Schema] = []
    waiting = [schema]
    while waiting:
        part = waiting.pop(0)
        if not isinstance(part, Mapping) or any(part is one for one in seen):
            continue
        seen.append(part)
        for word in _COMBINES:
            members = part.get(word)
            waiting += members if isinstance(members, list) else []
        if "$ref" in part:
            waiting.append(checker.resolve(part["$ref"]))
    return [part for part in seen if _says_something(part)]


def _says_something(part: Schema) -> bool:
    return not any(word in part for word in ("$ref", *_COMBINES)) or "properties" in part


def _echoes(value: Any, schema: Schema) -> bool:
    """Whether the value is the schema, or its fields, handed back unfilled."""
    known = fields_of(schema)
    if not isinstance(value, dict) or not known:
        return False
    if value == known:
        return True
    shown = value.get("properties", ())
    return "properties" not in known and is_skeleton(shown) and set(shown) <= set(known)
