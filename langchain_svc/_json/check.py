"""Strict validation: JSON Schema as Pydantic, TypedDicts and people write it.

Each keyword has one small function in a table; an unknown keyword, a reference that leads
nowhere, or a keyword whose value makes no sense asserts nothing. Nor do `format`, `not`,
`propertyNames` and the conditional keywords.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from urllib.parse import unquote

from .values import frozen, same
from .wording import below, got, kind, listed, show

Schema = Mapping[str, Any]
_Keyword = Callable[["_Asked"], Iterable[str]]

_LONGEST_FOR_PATTERN = 2_000
_LONGEST_FOR_NESTED = 20
_REPEATED_GROUP = re.compile(r"\)[+*{]")
_CHOICE = re.compile(r"[+*|]")
ENOUGH = 20  # problems, for one value
MISSING = "required, but missing"


@dataclass(frozen=True)
class _Asked:
    """One keyword of a schema and the value it speaks about."""

    checker: Checker
    asserted: Any
    value: Any
    schema: Schema
    path: str


class Checker:
    """Checks values against one schema and the parts of it.

    Args:
        root: The schema that references point into.
        fitting: Check as `fit` does: an integer must not be written as 5.0, and a value that
            more than one member of oneOf allows is as good as one.
    """

    def __init__(self, root: Any, *, fitting: bool = False) -> None:
        self.fitting = fitting
        self._root = root
        # Both hold the objects themselves, so that no id is used again.
        self._known: dict[tuple[int, int], tuple[Any, Any, list[str]]] = {}
        self._active: set[tuple[int, int]] = set()

    def check(self, value: Any, schema: Any, path: str = "answer") -> list[str]:
        """What is wrong with the value; nothing if it is valid."""
        if schema is False:
            return [f"{path}: not allowed here"]
        if not isinstance(schema, Mapping) or (value is None and schema.get("nullable") is True):
            return []
        key = (id(schema), id(value))
        if key in self._known:
            return self._known[key][2]
        if key in self._active:  # a reference that leads back to itself
            return []
        self._active.add(key)
        try:
            found = self._check(value, schema, path)
        finally:
            self._active.remove(key)
        if isinstance(value, (dict, list)):
            self._known[key] = (schema, value, found)
        return found

    def _check(self, value: Any, schema: Schema, path: str) -> list[str]:
        if "type" in schema and (wrong := self._check_type(value, schema["type"], path)):
            return wrong  # the other keywords would only say the same in more words
        found: list[str] = []
        for keyword, asserted in schema.items():
            types, function = _KEYWORDS.get(keyword, _UNKNOWN)
            if isinstance(value, types):
                found += function(_Asked(self, asserted, value, schema, path))
        return found

    def _check_type(self, value: Any, asserted: Any, path: str) -> list[str]:
        names = type_names(asserted)
        if not names or any(has_type(value, name, written_as=self.fitting) for name in names):
            return []
        return [f"{path}: expected {' or '.join(names)}, {got(value)}"]

    def resolve(self, reference: Any) -> Any:
        """The schema that a reference into this one points to; True, "anything", if none."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return True
        target = self._root
        for part in unquote(reference[1:]).split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(target, Mapping) and name in target:
                target = target[name]
            elif isinstance(target, list) and name.isdecimal() and int(name) < len(target):
                target = target[int(name)]
            else:
                return True
        return target


def type_names(asserted: Any) -> list[str]:
    """The types that a `type` keyword names."""
    return [asserted] if isinstance(asserted, str) else names_in(asserted)


def names_in(asserted: Any) -> list[str]:
    """The names in a list of names, whatever else it may be."""
    names = asserted if isinstance(asserted, (list, tuple)) else ()
    return [name for name in names if isinstance(name, str)]


def has_type(value: Any, name: str, *, written_as: bool = False) -> bool:
    """Whether a value is of a type; `written_as`: 5.0 is not written as an integer is."""
    if name == "number":
        return kind(value) in ("integer", "number") and _finite(value)
    if name == "integer":
        whole = isinstance(value, float) and value.is_integer() and not written_as
        return kind(value) == "integer" or whole
    return name not in _TYPES or kind(value) == name


_TYPES = frozenset({"null", "boolean", "string", "object", "array"})


def _finite(value: float) -> bool:
    return isinstance(value, int) or math.isfinite(value)


def _enum(it: _Asked) -> Iterator[str]:
    options = it.asserted if isinstance(it.asserted, (list, tuple)) else [it.value]
    if not any(same(it.value, one) for one in options):
        names = listed([show(one) for one in options])
        yield f"{it.path}: expected one of {names}, {got(it.value)}"


def _const(it: _Asked) -> Iterator[str]:
    if not same(it.value, it.asserted):
        yield f"{it.path}: expected {show(it.asserted)}, {got(it.value)}"


def _ref(it: _Asked) -> list[str]:
    return it.checker.check(it.value, it.checker.resolve(it.asserted), it.path)


# -- unions ---------------------------------------------------------------------------------------


def _any_of(it: _Asked) -> list[str]:
    wrong = _each(it)
    return nearest(it.value, it.path, it.asserted, wrong) if wrong and all(wrong) else []


def _one_of(it: _Asked) -> list[str]:
    wrong = _each(it)
    right = sum(not one for one in wrong)
    if right == 1 or not wrong or (right and it.checker.fitting):
        return []
    if right:
        return [f"{it.path}: expected exactly one of {len(wrong)} alternatives, fits {right}"]
    return nearest(it.value, it.path, it.asserted, wrong)


def _all_of(it: _Asked) -> list[str]:
    return [problem for wrong in _each(it) for problem in wrong]


def _each(it: _Asked) -> list[list[str]]:
    members = it.asserted if isinstance(it.asserted, (list, tuple)) else ()
    return [it.checker.check(it.value, member, it.path) for member in members]


def nearest(value: Any, path: str, members: Any, wrong: list[list[str]]) -> list[str]:
    """The problems of the union's member that the value comes nearest to."""
    types = [_plain_type(member) for member in members]
    right = [found for found, name in zip(wrong, types, strict=True) if has_type(value, name)]
    if all(types) and not right:
        return [f"{path}: expected {' or '.join(dict.fromkeys(types))}, {got(value)}"]
    return min(right or wrong, key=len)


def _plain_type(member: Any) -> str:
    name = member.get("type") if isinstance(member, Mapping) else None
    return name if isinstance(name, str) else ""


# -- numbers and strings --------------------------------------------------------------------------


def _bound(word: str, holds: Callable[[Any, Any], bool]) -> _Keyword:
    def keyword(it: _Asked) -> Iterator[str]:
        both = _is_number(it.value) and _is_number(it.asserted)
        if both and not holds(it.value, it.asserted):
            yield f"{it.path}: expected {word} {it.asserted}, {got(it.value)}"

    return keyword


def _is_number(value: Any) -> bool:
    return kind(value) in ("integer", "number")


def _multiple(it: _Asked) -> Iterator[str]:
    numbers = has_type(it.value, "number") and has_type(it.asserted, "number")
    if numbers and it.asserted > 0 and Fraction(str(it.value)) % Fraction(str(it.asserted)):
        yield f"{it.path}: expected a multiple of {it.asserted}, {got(it.value)}"


def _size(word: str, holds: Callable[[int, Any], bool]) -> _Keyword:
    def keyword(it: _Asked) -> Iterator[str]:
        size = len(it.value)
        if _is_number(it.asserted) and not holds(size, it.asserted):
            yield f"{it.path}: expected {word.format(it.asserted)}, got {size}"

    return keyword


def _pattern(it: _Asked) -> Iterator[str]:
    if isinstance(it.asserted, str) and not matches(it.asserted, it.value):
        yield f"{it.path}: expected text that matches {it.asserted}, {got(it.value)}"


def matches(pattern: str, text: str) -> bool:
    """Whether a pattern is found; patterns that cannot be used, or not safely, match anything.

    A repeat inside a repeat can take time exponential in the length of the text, and the text is
    a model's: such patterns are tried on short texts only.
    """
    compiled = _compiled(pattern)
    longest = _LONGEST_FOR_NESTED if _may_explode(pattern) else _LONGEST_FOR_PATTERN
    return compiled is None or len(text) > longest or compiled.search(text) is not None


def _may_explode(pattern: str) -> bool:
    rest, groups = _REPEATED_GROUP.subn(")", pattern)
    return groups > 1 or (groups == 1 and _CHOICE.search(rest) is not None)


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern)
    except (re.error, RecursionError, OverflowError):  # written for another engine
        return None


# -- arrays and objects ---------------------------------------------------------------------------


def _items(it: _Asked) -> list[str]:
    return [
        problem
        for at, item in enumerate(it.value)
        for problem in it.checker.check(item, item_schema(it.schema, at), below(it.path, at))
    ]


def item_schema(schema: Schema, at: int) -> Any:
    """The schema of an array's item, in the old and the new way of writing tuples."""
    first, rest = schema.get("prefixItems"), schema.get("items", True)
    if isinstance(rest, list):
        first, rest = rest, True
    if isinstance(first, list) and at < len(first):
        return first[at]
    return rest


def _prefix_items(it: _Asked) -> list[str]:
    return [] if "items" in it.schema else _items(it)


def _unique(it: _Asked) -> Iterator[str]:
    repeated = len(it.value) - len({frozen(item) for item in it.value})
    if it.asserted is True and repeated:
        yield f"{it.path}: expected no item twice, got {repeated} again"


def _required(it: _Asked) -> list[str]:
    names = names_in(it.asserted)
    return [f"{below(it.path, name)}: {MISSING}" for name in names if name not in it.value]


def _properties(it: _Asked) -> list[str]:
    parts = it.asserted if isinstance(it.asserted, Mapping) else {}
    return [
        problem
        for name, part in parts.items()
        if name in it.value
        for problem in it.checker.check(it.value[name], part, below(it.path, name))
    ]


def _pattern_properties(it: _Asked) -> list[str]:
    return [
        problem
        for name, item in it.value.items()
        for part in pattern_schemas(name, it.schema)
        for problem in it.checker.check(item, part, below(it.path, name))
    ]


def _additional(it: _Asked) -> list[str]:
    names = unknown_names(it.value, it.schema)
    if it.asserted is False:
        return [f"{below(it.path, name)}: no such field" for name in names]
    return [
        problem
        for name in names
        for problem in it.checker.check(it.value[name], it.asserted, below(it.path, name))
    ]


def fields_of(schema: Schema) -> Mapping[str, Any]:
    """The fields that a schema names."""
    named = schema.get("properties")
    return named if isinstance(named, Mapping) else {}


def pattern_schemas(name: str, schema: Schema) -> list[Any]:
    """The schemas of all patterns that a field's name matches."""
    patterns = schema.get("patternProperties")
    patterns = patterns if isinstance(patterns, Mapping) else {}
    return [part for pattern, part in patterns.items() if matches(pattern, name)]


def unknown_names(value: Mapping[str, Any], schema: Schema) -> list[str]:
    """The fields of a value that the schema does not speak of."""
    known = fields_of(schema)
    return [name for name in value if name not in known and not pattern_schemas(name, schema)]


_ANY: tuple[type, ...] = (object,)
_NUMBER = (int, float)
_UNKNOWN: tuple[tuple[type, ...], _Keyword] = ((), lambda _: ())
_KEYWORDS: dict[str, tuple[tuple[type, ...], _Keyword]] = {
    "$ref": (_ANY, _ref),
    "enum": (_ANY, _enum),
    "const": (_ANY, _const),
    "anyOf": (_ANY, _any_of),
    "oneOf": (_ANY, _one_of),
    "allOf": (_ANY, _all_of),
    "minimum": (_NUMBER, _bound("at least", operator.ge)),
    "maximum": (_NUMBER, _bound("at most", operator.le)),
    "exclusiveMinimum": (_NUMBER, _bound("more than", operator.gt)),
    "exclusiveMaximum": (_NUMBER, _bound("less than", operator.lt)),
    "multipleOf": (_NUMBER, _multiple),
    "minLength": ((str,), _size("at least {} characters", operator.ge)),
    "maxLength": ((str,), _size("at most {} characters", operator.le)),
    "pattern": ((str,), _pattern),
    "items": ((list,), _items),
    "prefixItems": ((list,), _prefix_items),
    "minItems": ((list,), _size("at least {} items", operator.ge)),
    "maxItems": ((list,), _size("at most {} items", operator.le)),
    "uniqueItems": ((list,), _unique),
    "properties": ((dict,), _properties),
    "patternProperties": ((dict,), _pattern_properties),
    "additionalProperties": ((dict,), _additional),
    "required": ((dict,), _required),
    "minProperties": ((dict,), _size("at least {} fields", operator.ge)),
    "maxProperties": ((dict,), _size("at most {} fields", operator.le)),
}
