"""What a JSON Schema asks for, each part of it read once.

An unknown keyword, a reference that leads nowhere, or a keyword whose value makes no sense asserts
nothing.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from fractions import Fraction
from functools import cached_property, partial
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import unquote

from .parser import read_json
from .scalars import SPELLED, fold, frozen, got

# -- patterns --------------------------------------------------------------------------------------
# A schema's own `pattern`, read as JSON Schema means it, and searched for a moment only.
#
# The pattern comes from a tool server's schema and the text from a model, so neither is
# trusted. The standard library's `re` may try for hours; `regex`, on which tiktoken rests too,
# stops in time.

# Of the process's own time, so that a busy machine refuses nothing. Patterns that do not explode
# take a tenth of a microsecond for a character.
_SECONDS = 0.01
_SECONDS_A_CHARACTER = 0.000_001
_MOST_STEPS = 100_000  # some thirty megabytes

# JSON Schema's patterns are JavaScript's. Letters stay those of all languages, as in Pydantic's.
_MEANINGS = {
    "$": r"$(?!\n\Z)",  # the end of the text, and not the line end before it
    r"\d": r"\p{posix_digit}",
    r"\D": r"\P{posix_digit}",
}
_ESCAPE = re.compile(r"\\.", re.DOTALL)
_PIECE = re.compile(
    r"\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\\\]])*\]?|\{\d{1,9}|.", re.DOTALL
)
# JavaScript has no comments in patterns, and brackets in one would mislead `_steps`.
_MAY_HOLD_COMMENTS = re.compile(r"\(\?(?:#|\w*x)")


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a text has a match of the pattern; one that is searched for too long has none.

    Every text has one if the pattern was written for another engine.
    """
    compiled = _compiled(pattern)
    if compiled is None:
        return lambda _: True

    def matches(text: str) -> bool:
        seconds = _SECONDS + _SECONDS_A_CHARACTER * len(text)
        try:
            return compiled.search(text, timeout=seconds) is not None
        except TimeoutError:
            return False

    return matches


def is_pattern(value: object) -> bool:
    """Whether a value is a pattern that texts are searched for."""
    return isinstance(value, str) and _compiled(value) is not None


def _compiled(pattern: str) -> Any:
    """The pattern for `regex`; None where it has none for it."""
    import regex  # noqa: PLC0415  # it takes 20 ms, and few schemas have patterns

    if _MAY_HOLD_COMMENTS.search(pattern):
        return None
    try:
        if _steps(pattern) > _MOST_STEPS:
            return None
        return regex.compile(_PIECE.sub(_meaning, pattern), regex.V0)
    except (regex.error, LookupError, ValueError, RecursionError, OverflowError):
        return None


def _meaning(piece: re.Match[str]) -> str:
    text = piece[0]
    if text[0] == "[":
        return _ESCAPE.sub(_meaning, text)
    return _MEANINGS.get(text, text)


def _steps(pattern: str) -> int:
    """About how many steps `regex` makes of a pattern: it writes out what has to be repeated.

    Raises:
        IndexError: A bracket is closed that was not opened.
    """
    steps = [0]  # of each group that is open
    last = 0  # of what a repeat would be about
    for piece in _PIECE.findall(pattern):
        if piece == "(":
            steps.append(0)
        elif piece == ")":
            last = steps.pop()
            steps[-1] += last
        elif piece[0] == "{" and len(piece) > 1:
            times = max(1, int(piece[1:]))
            steps[-1] += last * (times - 1)
            last *= times
        else:
            last = len(piece)
            steps[-1] += last
    return sum(steps)


# -- schema ----------------------------------------------------------------------------------------

Schema = Mapping[str, Any]

UNIONS = ("anyOf", "oneOf")
COMBINED = frozenset(["$ref", "allOf", *UNIONS])
_NOTES = frozenset(["type", "title", "description", "default", "examples"])


class CompiledSchema:
    """A JSON Schema, each part of which is read once: when a value first comes to it."""

    def __init__(self, schema: object) -> None:
        self.schema = schema
        self._parts: dict[int, SchemaPart] = {}

    @classmethod
    def of(cls, schema: object) -> CompiledSchema:
        """The schema, compiled if it is not."""
        if isinstance(schema, cls):
            return schema
        return cls(schema)

    def part(self, schema: Schema) -> SchemaPart:
        """What a part of it asks for."""
        part = self._parts.get(id(schema))
        if part is None:
            part = SchemaPart(schema, self._resolve)
            self._parts[id(schema)] = part
        return part

    def __reduce__(self) -> tuple[type[CompiledSchema], tuple[object]]:
        # In a copy, and after a pickle, all ids are others: its parts are read anew.
        return CompiledSchema, (self.schema,)

    @cached_property
    def roots(self) -> list[SchemaPart]:
        """All that it says of the whole value, except for parts that only combine others."""
        return self.roots_of(self.schema)

    def roots_of(self, schema: object) -> list[SchemaPart]:
        """All that one of its schemas says of a whole value."""
        waiting: list[object] = [schema]
        parts: dict[int, SchemaPart] = {}
        while waiting:
            schema = waiting.pop(0)
            if not isinstance(schema, Mapping) or id(schema) in parts:
                continue
            part = self.part(schema)
            parts[id(schema)] = part
            for members in part.unions.values():
                waiting += members
            waiting += part.all_of
        roots: list[SchemaPart] = []
        for part in parts.values():
            combines = part.schema.keys() & COMBINED
            if not combines or "properties" in part.schema:
                roots.append(part)
        return roots

    @cached_property
    def fields(self) -> dict[str, None]:
        """The fields that it names at its root."""
        names: dict[str, None] = {}
        for root in self.roots:
            names |= dict.fromkeys(root.fields)
        return names

    @cached_property
    def types(self) -> list[str]:
        """The types of a whole value, named or implied; none where they differ by alternative."""
        waiting: list[object] = [self.schema]
        visited: set[int] = set()
        while waiting:
            schema = waiting.pop(0)
            if not isinstance(schema, Mapping) or id(schema) in visited:
                continue
            visited.add(id(schema))
            part = self.part(schema)
            if part.types or part.implied_type:
                return part.types or [part.implied_type]
            waiting += part.all_of
        return []

    def _resolve(self, reference: object) -> object:
        """The schema that a reference into this one points to; True, "anything", if none."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return True
        try:
            return target_of(self.schema, reference)
        except LookupError:
            return True


def target_of(schema: object, reference: str) -> object:
    """What a reference into the schema points to.

    Raises:
        LookupError: It leads nowhere.
    """
    target = schema
    for word in unquote(reference[1:]).split("/")[1:]:
        name = word.replace("~1", "/").replace("~0", "~")
        if isinstance(target, Mapping) and name in target:
            target = target[name]
        elif isinstance(target, list) and _is_index(name, target):
            target = target[int(name)]
        else:
            raise LookupError(name)
    return target


def _is_index(name: str, items: list[object]) -> bool:
    return name.isdecimal() and int(name) < len(items)


class SchemaPart:
    """What one mapping of a schema asks for."""

    def __init__(self, schema: Schema, resolve: Callable[[object], object]) -> None:
        self.schema = schema  # as long as it lives, no other has its id
        self.types = names_in(schema.get("type"))
        self.certain_types: set[type] = set()
        """Python's types of values that need no look at the rest."""
        if schema.keys() <= _NOTES:
            self.certain_types |= {
                _EXACT_TYPES[name] for name in self.types if name in _EXACT_TYPES
            }
        if schema.get("nullable") is True:
            self.certain_types.add(type(None))
        self.all_of = list_of(schema.get("allOf"))
        if "$ref" in schema:
            self.all_of.insert(0, resolve(schema["$ref"]))
        self.unions = {word: list_of(schema.get(word)) for word in UNIONS}
        self.options = _options(schema)
        self.allowed: set[Hashable] | None = None
        if self.options is not None:
            self.allowed = {frozen(option) for option in self.options}
        self._bounds = list(_bounds(schema))
        self.fields = mapping_of(schema.get("properties"))
        self.required = names_in(schema.get("required"))
        patterns = mapping_of(schema.get("patternProperties"))
        self._patterns = [(matcher(name), part) for name, part in patterns.items()]
        self._additional = schema.get("additionalProperties", True)
        self.items = schema.get("items", True)
        self.first_items = list_of(schema.get("prefixItems"))
        if isinstance(self.items, list):  # the old way of writing tuples
            self.first_items = self.items
            self.items = True
        self.implied_type = implied_type(schema)

    @cached_property
    def by_type(self) -> list[Schema]:
        """The same schema once for each of its types."""
        return [{**self.schema, "type": name} for name in self.types]

    def pattern_schemas(self, name: str) -> list[object]:
        """The schemas of a field by the pattern of its name."""
        return [schema for matches, schema in self._patterns if matches(name)]

    def field_schemas(self, name: str, *, exact: bool = False) -> list[object]:
        """The schemas of a field; False if the object is closed and has no such field.

        `exact`: an object that names its fields, and says nothing of others, is closed, too.
        """
        schemas: list[object] = []
        if name in self.fields:
            schemas.append(self.fields[name])
        if self._patterns:
            schemas += self.pattern_schemas(name)
        if not schemas and exact and self.fields:
            return [self.schema.get("additionalProperties", False)]
        return schemas or [self._additional]

    def broken_bounds(self, value: object) -> Iterator[str]:
        """What the keywords ask for that bound a value and do not hold."""
        for bound in self._bounds:
            if not has_type(value, bound.type_name):
                continue
            if bound.measure is None:
                if not bound.holds(value):
                    yield f"{bound.words}, {got(value)}"
                continue
            size = bound.measure(value)
            if not bound.holds(size):
                yield f"{bound.words}, got {size}"


# -- keywords whose values may be anything --------------------------------------------------------


def names_in(asserted: object) -> list[str]:
    """The names in a list of names, or the one name, whatever else it may be."""
    if isinstance(asserted, str):
        return [asserted]
    return [name for name in list_of(asserted) if isinstance(name, str)]


def list_of(asserted: object) -> list[object]:
    """The items of a list; none if it is no list."""
    if isinstance(asserted, (list, tuple)):
        return list(asserted)
    return []


def mapping_of(asserted: object) -> Mapping[str, object]:
    """The fields of a mapping; none if it is no mapping."""
    if isinstance(asserted, Mapping):
        return asserted
    return {}


def _options(schema: Schema) -> list[object] | None:
    """The values that an enumeration or a constant allows; None if the schema is neither."""
    has_constant = "const" in schema
    enumeration = schema.get("enum")
    if not isinstance(enumeration, (list, tuple)):
        if has_constant:
            return [schema["const"]]
        return None
    if not has_constant:
        return list(enumeration)
    constant = frozen(schema["const"])
    return [option for option in enumeration if frozen(option) == constant]


# -- types ----------------------------------------------------------------------------------------

_TYPES: dict[str, type | tuple[type, ...]] = {
    "null": type(None),
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "string": str,
    "object": dict,
    "array": (list, tuple),
}
TYPE_NAMES = tuple(sorted(_TYPES))
"""The types that JSON Schema has."""
# Python's types whose values are of a type without another look; a float may be no number.
_EXACT_TYPES: dict[str, type] = {
    "null": type(None),
    "boolean": bool,
    "integer": int,
    "number": int,
    "string": str,
}


def has_type(value: object, name: str, *, strictly: bool = False) -> bool:
    """Whether a value is of a type; `strictly`: 5.0 is not written as an integer is."""
    if name not in _TYPES:  # asserts nothing
        return True
    if isinstance(value, bool):  # in Python an int, too
        return name == "boolean"
    if not isinstance(value, (int, float)):
        return isinstance(value, _TYPES[name])
    if name == "number":
        return isinstance(value, int) or math.isfinite(value)
    if name != "integer":
        return False
    if isinstance(value, int):
        return True
    return value.is_integer() and not strictly


def implied_type(schema: Schema) -> str:
    """The container of which the keywords speak where no type is named; "" if of none."""
    if not schema.keys().isdisjoint({"properties", "additionalProperties"}):
        return "object"
    if not schema.keys().isdisjoint({"items", "prefixItems"}):
        return "array"
    return ""


def type_names(schema: object) -> list[str]:
    """The types that a schema names."""
    return names_in(mapping_of(schema).get("type"))


def has_any_type(value: object, schema: object) -> bool:
    """Whether a value is of a type that a schema names."""
    return any(has_type(value, name) for name in type_names(schema))


# -- bounds ---------------------------------------------------------------------------------------


class _Bound(NamedTuple):
    """A keyword that bounds values of one type."""

    type_name: str
    measure: Callable[[Any], int] | None  # what of the value is bounded; None: itself
    holds: Callable[..., bool]
    words: str


def _is_multiple(step: float, value: float) -> bool:
    return step <= 0 or not Fraction(str(value)) % Fraction(str(step))


_BOUNDS = {
    "minimum": _Bound("number", None, operator.le, "at least {}"),
    "maximum": _Bound("number", None, operator.ge, "at most {}"),
    "exclusiveMinimum": _Bound("number", None, operator.lt, "more than {}"),
    "exclusiveMaximum": _Bound("number", None, operator.gt, "less than {}"),
    "multipleOf": _Bound("number", None, _is_multiple, "a multiple of {}"),
    "minLength": _Bound("string", len, operator.le, "at least {} characters"),
    "maxLength": _Bound("string", len, operator.ge, "at most {} characters"),
    "minItems": _Bound("array", len, operator.le, "at least {} items"),
    "maxItems": _Bound("array", len, operator.ge, "at most {} items"),
    "minProperties": _Bound("object", len, operator.le, "at least {} fields"),
    "maxProperties": _Bound("object", len, operator.ge, "at most {} fields"),
}


def _bounds(schema: Schema) -> Iterator[_Bound]:
    for word in _BOUNDS.keys() & schema.keys():
        bound = _BOUNDS[word]
        limit = schema[word]
        if has_type(limit, "number"):
            yield bound._replace(
                holds=partial(bound.holds, limit), words=bound.words.format(limit)
            )
    pattern = schema.get("pattern")
    if isinstance(pattern, str):
        yield _Bound("string", None, matcher(pattern), f"text that matches {pattern}")


# -- shapes ----------------------------------------------------------------------------------------
# The shapes in which models miss a schema's objects and arrays, and the values meant by them.

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
