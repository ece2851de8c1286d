"""Whether a JSON Schema says what its writer meant: what it cannot say is refused when it is given.

A schema that is written wrongly constrains nothing where it is wrong, and nobody would notice. The
keywords are those of 2020-12, draft-07 and OpenAPI 3.0. An unknown keyword is a note of somebody's
own, unless it nearly is one that constrains.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from ..errors import SvcRequestError
from .scalars import shortened
from .schema import TYPE_NAMES, Schema, is_pattern, list_of, mapping_of, target_of

# Where a schema has others: one, a list of them, or a mapping of names to them.
_SCHEMA = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_SCHEMAS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_NAMED = frozenset(
    {
        "$defs",
        "definitions",
        "dependencies",
        "dependentSchemas",
        "patternProperties",
        "properties",
    }
)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_number_or_flag(value: object) -> bool:
    return isinstance(value, (int, float))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_list(value: object) -> bool:
    return isinstance(value, (list, tuple))


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(map(_is_text, value))


def _is_type(value: object) -> bool:
    names = value
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, (list, tuple)):
        return False
    return len(names) > 0 and all(name in TYPE_NAMES for name in names)


_NUMBER = "a number"
_PATTERN = "a regular expression that Python's `regex` reads"
_SCHEMA_OR_FUNCTION = (
    'a schema, such as {"type": "object", "properties": {"age": {"type": "integer"}}}, '
    "or a function, which has 'name' and 'parameters'"
)
_COUNTS = [
    f"{bound}{what}"
    for bound in ("min", "max")
    for what in ("Contains", "Items", "Length", "Properties")
]
_VALUES: dict[str, tuple[Callable[[object], bool], str]] = {
    "type": (_is_type, f"one of {', '.join(TYPE_NAMES)}, or a list of them"),
    "required": (
        _is_list_of_texts,
        "a list of names, beside the properties it is about",
    ),
    "enum": (_is_list, "a list of values"),
    "pattern": (is_pattern, _PATTERN),
    "format": (_is_text, "a text"),
    "uniqueItems": (_is_flag, "true or false"),
    "nullable": (_is_flag, "true or false"),
    "minimum": (_is_number, _NUMBER),
    "maximum": (_is_number, _NUMBER),
    "multipleOf": (_is_number, _NUMBER),
    "exclusiveMinimum": (_is_number_or_flag, _NUMBER),  # a flag in OpenAPI 3.0
    "exclusiveMaximum": (_is_number_or_flag, _NUMBER),
    **dict.fromkeys(_COUNTS, (_is_number, _NUMBER)),
}
_CONSTRAINING = {
    *_SCHEMA,
    *_SCHEMAS,
    *_NAMED,
    *_VALUES,
    "$ref",
    "const",
    "dependentRequired",
}
# Words of other programs that resemble a keyword; the rest of them need not be listed.
_NOTES = frozenset({"allow", "constraints", "container", "form", "multiple", "note"})


def _plain(keyword: str) -> str:
    """A keyword as far as slips do not touch it: min_items and minItems are the same."""
    return re.sub(r"[^a-z0-9]", "", keyword.lower())


_BY_PLAIN_NAME = {
    _plain(keyword): keyword for keyword in [*_CONSTRAINING, "description", "default"]
}
_NEAR = 0.77  # by difflib: one letter of five, or "property" for "properties"


def check_schema(schema: Schema, owner: str) -> None:
    """Refuse a schema that would constrain nothing in one of its places.

    Args:
        schema: The schema as it was given.
        owner: How the error names it.

    Raises:
        SvcRequestError: It is malformed; the error names the place, and what to write there.
    """
    _check_top(schema, owner)
    waiting: list[tuple[str, object]] = [("", schema)]
    visited: set[int] = set()
    while waiting:
        place, part = waiting.pop()
        if isinstance(part, bool) or id(part) in visited:
            continue
        visited.add(id(part))
        if not isinstance(part, Mapping):
            raise _refusal(owner, place, part, 'a schema, such as {"type": "string"}')
        for keyword, value in part.items():
            inner_place = f"{place}.{keyword}".lstrip(".")
            _check_keyword(str(keyword), inner_place, owner)
            _check_value(keyword, value, inner_place, owner)
            waiting += _inner_schemas(keyword, value, inner_place)
        _check_required(part, place, owner)
        _check_reference(part, place, owner, schema)


def _check_top(schema: object, owner: str) -> None:
    """A dict without any keyword is no schema; fields may stand where keywords stand."""
    if not isinstance(schema, Mapping) or not _CONSTRAINING.isdisjoint(schema):
        return
    for name, value in schema.items():
        is_field = isinstance(value, Mapping) and "type" in value
        if is_field and not str(name).startswith("x-"):
            raise SvcRequestError(
                f"{name} of {owner} constrains nothing: it describes a field; write it into "
                'the properties of {"type": "object", "properties": {...}}'
            )
    raise _refusal(owner, "", {**schema}, _SCHEMA_OR_FUNCTION)


def _refusal(owner: str, place: str, value: object, expected: str) -> SvcRequestError:
    return SvcRequestError(
        f"{place or 'The whole'} of {owner} constrains nothing: it is "
        f"{shortened(repr(value))}, and must be {expected}"
    )


def _check_keyword(keyword: str, place: str, owner: str) -> None:
    meant = _meant(keyword)
    if meant != keyword:
        raise SvcRequestError(
            f"{place} of {owner} constrains nothing: {keyword!r} is no keyword of JSON Schema; "
            f"write {meant!r}, or 'x-{keyword}' for a note of your own"
        )


@lru_cache(maxsize=1000)
def _meant(keyword: str) -> str:
    """The keyword that a misspelt one was to be; itself, if it is none or a note."""
    if keyword in _CONSTRAINING or keyword in _NOTES or keyword.startswith("x-"):
        return keyword
    plain = _plain(keyword)
    # A slip rarely is in the first letter, and words with another one are other words.
    names = [name for name in _BY_PLAIN_NAME if name[0] == plain[:1]]
    near = [name for name in names if sorted(name) == sorted(plain)]
    near += difflib.get_close_matches(plain, names, n=1, cutoff=_NEAR)
    return _BY_PLAIN_NAME[near[0]] if near else keyword


def _check_value(keyword: str, value: object, place: str, owner: str) -> None:
    if keyword in _VALUES:
        is_valid, expected = _VALUES[keyword]
        if not is_valid(value):
            raise _refusal(owner, place, value, expected)
    elif keyword in _SCHEMAS and not _is_list(value):
        raise _refusal(owner, place, value, "a list of schemas")
    elif keyword in _NAMED and not isinstance(value, Mapping):
        raise _refusal(owner, place, value, "a mapping of names to schemas")
    elif keyword == "patternProperties":
        for name in mapping_of(value):
            if not is_pattern(name):
                raise _refusal(owner, place, name, _PATTERN)


def _inner_schemas(
    keyword: str, value: object, place: str
) -> Iterator[tuple[str, object]]:
    """The schemas that a keyword holds, with their places."""
    is_tuple = keyword == "items" and isinstance(value, (list, tuple))  # in draft-07
    if keyword in _SCHEMAS or is_tuple:
        for index, inner in enumerate(list_of(value)):
            yield f"{place}.{index}", inner
    elif keyword in _SCHEMA:
        yield place, value
    elif keyword in _NAMED:
        for name, inner in mapping_of(value).items():
            # In draft-07 a property may depend on names alone.
            if keyword != "dependencies" or not isinstance(inner, (list, tuple)):
                yield f"{place}.{name}", inner


def _check_required(part: Schema, place: str, owner: str) -> None:
    """A closed object must have a place for each field that it requires."""
    if part.get("additionalProperties") is not False or "patternProperties" in part:
        return
    names = part.get("properties", {})
    for name in part.get("required", ()):
        if name not in names:
            raise SvcRequestError(
                f"{f'{place}.required'.lstrip('.')} of {owner} names {name!r}, which "
                f"no object can have: properties has {[*names]} and additionalProperties is false. "
                "Describe it in properties, or do not require it"
            )


def _check_reference(part: Schema, place: str, owner: str, root: Schema) -> None:
    if "$ref" not in part:
        return
    reference = part["$ref"]
    place = f"{place}.$ref".lstrip(".")
    if not isinstance(reference, str):
        raise _refusal(owner, place, reference, "a text, such as '#/$defs/Name'")
    if not reference.startswith("#/"):
        return
    try:
        target_of(root, reference)
    except LookupError:
        definitions = [*root.get("$defs", {}), *root.get("definitions", {})]
        raise SvcRequestError(
            f"{place} of {owner} constrains nothing: {reference!r} leads nowhere. The schema "
            f"defines {definitions}; write '#/$defs/Name' and define Name there"
        ) from None
