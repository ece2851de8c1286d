"""A value and a JSON Schema: is it valid, and can it be made so without inventing anything.

One walk does both. Where a value is not what a schema asks for, each kind of schema knows a few
ways in which models miss it, each with a penalty; a union takes the member with the least. What
cannot be fitted is a `SchemaMismatch` that says all that is wrong. With `coerce=False` the same
walk only validates. An unknown keyword, a reference that leads nowhere, or a keyword whose value
makes no sense asserts nothing.
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cached_property, partial
from itertools import chain, groupby
from typing import Any
from urllib.parse import unquote

from . import scalars
from .lenient import read_json
from .patterns import matcher
from .scalars import SPELLED, fold, frozen, got, says_nothing, shortened, show

Schema = Mapping[str, Any]
Fitted = tuple[Any, int, list[str]]  # the value, its penalty, and what is wrong with it

SHAPED = 2  # the same value in another container
_ENOUGH = 20  # problems, for one list
_LONGEST_OPTION = (
    60  # characters that a problem shows of a value that the schema allows
)
_DEEP = "answer: nested too deeply"
_UNIONS = ("anyOf", "oneOf")
_COMBINED = frozenset(["$ref", "allOf", *_UNIONS])
# Wrappers that other keys may stand beside (a schema's skeleton, a tool call), those keys, and
# wrappers that hold no answer.
_HOLDS = frozenset(
    ["properties", "arguments", "parameters", "args", "input", "function"]
)
_BESIDE = frozenset(
    ["type", "title", "description", "required", "name", "id", "schema", "defs", "tool"]
)
_NO_ANSWER = frozenset(
    ["error", "errors", "example", "examples", "schema", "defs", "definitions"]
)
_SCHEMA_KEYS = frozenset(["type", "enum", "const", *_COMBINED])
_NOTES = frozenset(["type", "title", "description", "default", "examples"])
_FENCE = re.compile(r"\s*`{3,}[\w+-]*\s*")


class SchemaMismatch(ValueError):  # noqa: N818  # it says what there is: a mismatch
    """A value cannot be made to follow the schema, or a text holds none that does.

    Attributes:
        problems: What is wrong, one line for each place, such as
            "answer.age: expected integer, got string 'abc'". They may quote the answer.
    """

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


def problems(value: Any, schema: Schema | CompiledSchema) -> list[str]:
    """What is wrong with the value, strictly and without changing it; nothing if it is valid."""
    return _Fitter(CompiledSchema.of(schema), coerce=False).root(value)[2]


def fit_schema(
    value: Any,
    schema: Schema | CompiledSchema,
    *,
    coerce: bool = True,
    tidy: bool = False,
) -> tuple[Any, int]:
    """The value as the schema wants it, and a penalty: 0 if it was valid as it was.

    What is not understood of the schema allows anything. `coerce`: look for what a value means that
    is not valid. `tidy`: do so, too, where a valid one has fields that the schema does not know,
    but would know if they were spelled or wrapped otherwise.

    Raises:
        SchemaMismatch: The value does not fit. Its `problems` say why.
    """
    schema = CompiledSchema.of(schema)
    if any(_echoes(value, root.fields) for root in schema.roots):
        raise SchemaMismatch(
            ["answer: this is the schema itself, not a value that follows it"]
        )
    fitted, penalty, wrong = _Fitter(schema, coerce=coerce, tidy=tidy).root(value)
    roots = schema.roots if tidy and not wrong else ()
    if roots and all(_is_strange(fitted, one) for one in roots):
        names = ", ".join([*schema.fields][:8])
        wrong = [f"answer: has none of the fields {names}, {got(fitted)}"]
    if wrong:
        raise SchemaMismatch(wrong)
    return fitted, penalty


# -- what a schema says ---------------------------------------------------------------------------


class CompiledSchema:
    """A JSON Schema, each part of which is read once: when a value first comes to it."""

    def __init__(self, schema: Any) -> None:
        self.schema = schema
        self._parts: dict[int, _Part] = {}

    @classmethod
    def of(cls, schema: Any) -> CompiledSchema:
        """The schema, compiled if it is not."""
        return schema if isinstance(schema, cls) else cls(schema)

    def part(self, schema: Schema) -> _Part:
        """What a part of it asks for."""
        found = self._parts.get(id(schema))
        if found is None:
            found = self._parts[id(schema)] = _Part(schema, self._resolve)
        return found

    def __reduce__(
        self,
    ) -> tuple[Any, ...]:  # in a copy, and after a pickle, all ids are others
        return CompiledSchema, (self.schema,)

    @cached_property
    def roots(self) -> list[_Part]:
        """All that it says of the whole value, but for what only combines."""
        waiting, seen = [self.schema], dict[int, _Part]()
        while waiting:
            schema = waiting.pop(0)
            if isinstance(schema, Mapping) and id(schema) not in seen:
                seen[id(schema)] = part = self.part(schema)
                waiting += [*chain(*part.unions.values()), *part.all_of]
        combines = (part.schema.keys() & _COMBINED for part in seen.values())
        return [
            p
            for p, yes in zip(seen.values(), combines, strict=True)
            if not yes or "properties" in p.schema
        ]

    @cached_property
    def fields(self) -> dict[str, None]:
        """The fields that it names at its root."""
        return dict.fromkeys(chain(*(root.fields for root in self.roots)))

    def _resolve(self, reference: Any) -> Any:
        """The schema that a reference into this one points to; True, "anything", if none."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return True
        target = self.schema
        for word in unquote(reference[1:]).split("/")[1:]:
            name = word.replace("~1", "/").replace("~0", "~")
            if isinstance(target, Mapping) and name in target:
                target = target[name]
            elif (
                isinstance(target, list)
                and name.isdecimal()
                and int(name) < len(target)
            ):
                target = target[int(name)]
            else:
                return True
        return target


class _Part:
    """What one mapping of a schema asks for."""

    def __init__(self, schema: Schema, resolve: Callable[[Any], Any]) -> None:
        self.schema = schema  # held, so that no other gets its id
        self.types = _names(schema.get("type"))
        self.sure = {_EXACTLY[name] for name in self.types if name in _EXACTLY}
        """Types of values that need no look at the rest."""
        if not schema.keys() <= _NOTES:
            self.sure = set()
        if schema.get("nullable") is True:
            self.sure.add(type(None))
        self.all_of = [resolve(schema["$ref"])] if "$ref" in schema else []
        self.all_of += _list(schema.get("allOf"))
        self.unions = {word: _list(schema.get(word)) for word in _UNIONS}
        self.options = _options(schema)
        self.allowed = self.options and {frozen(one) for one in self.options}
        self._bounds = list(_bounds(schema))
        self.fields = _mapping(schema.get("properties"))
        self.required = _names(schema.get("required"))
        patterns = _mapping(schema.get("patternProperties")).items()
        self._patterns = [(matcher(pattern), part) for pattern, part in patterns]
        self._rest = schema.get("additionalProperties", True)
        self.items, self.first = (
            schema.get("items", True),
            _list(schema.get("prefixItems")),
        )
        if isinstance(self.items, list):  # the old way of writing tuples
            self.items, self.first = True, self.items
        self.implied = (
            "object" if "properties" in schema else "array" if "items" in schema else ""
        )

    @cached_property
    def by_type(self) -> list[Schema]:
        """It once for each of its types."""
        return [{**self.schema, "type": name} for name in self.types]

    def patterns(self, name: str) -> list[Any]:
        """The schemas of a field by the pattern of its name."""
        return [part for matches, part in self._patterns if matches(name)]

    def of_field(self, name: str) -> list[Any]:
        """The schemas of a field; False if the object is closed and has no such field."""
        parts = [self.fields[name]] if name in self.fields else []
        return (parts + self.patterns(name) if self._patterns else parts) or [
            self._rest
        ]

    def missed(self, value: Any) -> Iterator[str]:
        """What the keywords ask for that bound a value and do not hold."""
        for kind, measure, holds, words in self._bounds:
            if _has_type(value, kind) and not holds(
                measure(value) if measure else value
            ):
                yield f"{words}, " + (
                    f"got {measure(value)}" if measure else got(value)
                )


def _names(asserted: Any) -> list[str]:
    """The names in a list of names, or the one name, whatever else it may be."""
    return [
        n
        for n in ([asserted] if isinstance(asserted, str) else _list(asserted))
        if isinstance(n, str)
    ]


def _list(asserted: Any) -> list[Any]:
    return list(asserted) if isinstance(asserted, (list, tuple)) else []


def _mapping(asserted: Any) -> Mapping[str, Any]:
    return asserted if isinstance(asserted, Mapping) else {}


def _options(schema: Schema) -> list[Any] | None:
    """The values that an enumeration or a constant allows; None if the schema is neither."""
    if isinstance(schema.get("enum"), (list, tuple)):
        options = list(schema["enum"])
        if "const" in schema:
            options = [one for one in options if frozen(one) == frozen(schema["const"])]
        return options
    return [schema["const"]] if "const" in schema else None


def _has_type(value: Any, name: str, *, strictly: bool = False) -> bool:
    """Whether a value is of a type; `strictly`: 5.0 is not written as an integer is."""
    if name not in _TYPES:
        return True
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        is_type = isinstance(value, _TYPES[name])
        return is_type and (name == "boolean" or not isinstance(value, bool))
    if name == "number":
        return isinstance(value, int) or math.isfinite(value)
    whole = isinstance(value, int) or (value.is_integer() and not strictly)
    return name == "integer" and whole


_TYPES: dict[str, type | tuple[type, ...]] = {
    "null": type(None), "boolean": bool, "integer": int, "number": (int, float),
    "string": str, "object": dict, "array": (list, tuple),
}  # fmt: skip
# Python's types whose values are of a type without another look; a float may be no number.
_EXACTLY = {
    "null": type(None),
    "boolean": bool,
    "integer": int,
    "number": int,
    "string": str,
}


def _is_multiple(step: float, value: float) -> bool:
    return step <= 0 or not Fraction(str(value)) % Fraction(str(step))


# A keyword: the type that it bounds, what of it is measured, how, and the words for it.
_Bound = tuple[str, Callable[[Any], int] | None, Callable[..., bool], str]
_BOUNDS: dict[str, _Bound] = {
    "minimum": ("number", None, operator.le, "at least {}"),
    "maximum": ("number", None, operator.ge, "at most {}"),
    "exclusiveMinimum": ("number", None, operator.lt, "more than {}"),
    "exclusiveMaximum": ("number", None, operator.gt, "less than {}"),
    "multipleOf": ("number", None, _is_multiple, "a multiple of {}"),
    "minLength": ("string", len, operator.le, "at least {} characters"),
    "maxLength": ("string", len, operator.ge, "at most {} characters"),
    "minItems": ("array", len, operator.le, "at least {} items"),
    "maxItems": ("array", len, operator.ge, "at most {} items"),
    "minProperties": ("object", len, operator.le, "at least {} fields"),
    "maxProperties": ("object", len, operator.ge, "at most {} fields"),
}


def _bounds(schema: Schema) -> Iterator[_Bound]:
    for word in _BOUNDS.keys() & schema.keys():
        kind, measure, holds, words = _BOUNDS[word]
        if _has_type(bound := schema[word], "number"):
            yield kind, measure, partial(holds, bound), words.format(bound)
    if isinstance(pattern := schema.get("pattern"), str):
        yield "string", None, matcher(pattern), f"text that matches {pattern}"


# -- the walk -------------------------------------------------------------------------------------


class _Fitter:
    def __init__(
        self, schema: CompiledSchema, *, coerce: bool, tidy: bool = False
    ) -> None:
        self._schema, self._coerce, self._tidy = schema, coerce, tidy
        # Holds the values themselves, so that no id is used again.
        self._known: dict[tuple[int, int], tuple[Any, Fitted]] = {}
        self._active: set[tuple[int, int]] = set()

    def root(self, value: Any) -> Fitted:
        """The whole value as the whole schema wants it."""
        try:
            return self.fit(value, self._schema.schema, "answer")
        except RecursionError:
            return value, 0, [_DEEP]

    def fit(self, value: Any, schema: Any, path: str) -> Fitted:
        """The value as a schema wants it."""
        if schema is False:
            return value, 0, [f"{path}: not allowed here"]
        if not isinstance(schema, Mapping):
            return value, 0, []
        part = self._schema.part(schema)
        if type(value) in part.sure:
            return value, 0, []
        key = (id(schema), id(value))
        if key in self._known:
            return self._known[key][1]
        if key in self._active:  # a reference that leads back to itself
            return value, 0, []
        self._active.add(key)
        try:
            found = self._fit(value, part, path)
        finally:
            self._active.remove(key)
        if isinstance(value, (dict, list)):
            self._known[key] = (value, found)
        return found

    def _fit(self, value: Any, part: _Part, path: str) -> Fitted:
        """Its references and unions one after another, and then the schema's own keywords."""
        types = part.types
        right = [
            name for name in types if _has_type(value, name, strictly=self._coerce)
        ]
        if types and not right and not self._coerce:
            return value, 0, [f"{path}: expected {' or '.join(types)}, {got(value)}"]
        if len(types) > 1 and not right:
            return self._union(value, part.by_type, path)
        fitted, penalty, wrong = value, 0, list[str]()
        for inner in part.all_of:
            fitted, more, faults = self.fit(fitted, inner, path)
            penalty, wrong = penalty + more, wrong + faults
        for word, members in part.unions.items():
            if members:
                once = word == "oneOf" and not self._coerce
                fitted, more, faults = self._union(fitted, members, path, once=once)
                penalty, wrong = penalty + more, wrong + faults
        fitted, more, faults = self._plain(fitted, part, right[:1] or types, path)
        return fitted, penalty + more, wrong + faults

    def _union(
        self, value: Any, members: list[Any], path: str, *, once: bool = False
    ) -> Fitted:
        tries = [self.fit(value, member, path) for member in members]
        good = [found for found in tries if not found[2]]
        if once and len(good) > 1:
            count = f"exactly one of {len(tries)} alternatives, fits {len(good)}"
            return value, 0, [f"{path}: expected {count}"]
        if good:
            return min(good, key=operator.itemgetter(1))
        types = [_names(_mapping(member).get("type")) for member in members]
        near = [
            f[2] for f, names in zip(tries, types, strict=True) if _is_any(value, names)
        ]
        if all(types) and not near:
            names = " or ".join(dict.fromkeys(chain(*types)))
            return value, 0, [f"{path}: expected {names}, {got(value)}"]
        return value, 0, min(near or [found[2] for found in tries], key=len)

    def _plain(self, value: Any, part: _Part, types: list[str], path: str) -> Fitted:
        """Fit to the keywords of a schema itself, and else the first reading that does fit."""
        name = types[0] if types else part.implied
        found = self._as_it_is(value, part, name if types else "", path)
        if not self._coerce or (not found[1] and not found[2] and not self._tidy):
            return found
        for candidate, cost in self._readings(value, part, name, untidy=not found[2]):
            if isinstance(candidate, (dict, list)) and candidate is not value:
                other = self.fit(candidate, part.schema, path)
            else:
                other = self._as_it_is(candidate, part, name, path)
            if not other[2]:
                return other[0], other[1] + cost, []
        return found

    def _as_it_is(self, value: Any, part: _Part, name: str, path: str) -> Fitted:
        """The value with its parts fitted."""
        if name and not _has_type(value, name):
            return value, 0, [f"{path}: expected {name}, {got(value)}"]
        if self._coerce and name == "integer" and isinstance(value, float):
            value = int(value)
        if part.allowed is not None and frozen(value) not in part.allowed:
            options = (part.options or [])[:8]
            names = ", ".join(show(option, _LONGEST_OPTION) for option in options)
            names = names if "const" in part.schema else f"one of {names}"
            return value, 0, [f"{path}: expected {names}, {got(value)}"]
        penalty, wrong = 0, list[str]()
        if isinstance(value, dict):
            value, penalty, wrong = self._object(value, part, path)
        elif isinstance(value, list):
            value, penalty, wrong = self._array(value, part, path)
        return (
            value,
            penalty,
            wrong + [f"{path}: expected {one}" for one in part.missed(value)],
        )

    def _readings(
        self, value: Any, part: _Part, name: str, *, untidy: bool
    ) -> Iterator[tuple[Any, int]]:
        """What a value may mean that does not fit, in the order in which to try it."""
        shapes: Iterable[Any] = ()
        if name == "object" and isinstance(value, dict):
            respelled, cost = _respelled(value, part)
            if cost:
                yield respelled, cost
            if not untidy or _is_strange(value, part):
                shapes = _unwrapped(value, part)
        elif name == "array" and isinstance(value, list):
            shapes = _rows(value, part)
        elif name in ("object", "array") and not untidy:
            shapes = _objects(value, part) if name == "object" else _arrays(value)
        elif not untidy:
            options = part.options
            one = (
                scalars.coerce(value, name)
                if options is None
                else scalars.choose(value, options)
            )
            if one:
                yield one
        for shape in shapes:
            yield shape, SHAPED

    def _object(self, value: dict[str, Any], part: _Part, path: str) -> Fitted:
        fitted: dict[str, Any] = {}
        penalty = 0
        lost = [name for name in part.required if name not in value]
        wrong = [f"{_below(path, name)}: required, but missing" for name in lost]
        for name, item in value.items():
            at, fault, held = _below(path, name), [], item
            for schema in part.of_field(name):
                if schema is False:
                    fault = [f"{at}: no such field"]
                    held, more = item, 0
                else:
                    held, more, faults = self.fit(held, schema, at)
                    fault = fault + faults
                penalty += more
            closed = fault == [f"{at}: no such field"]
            if (
                self._coerce
                and fault
                and (closed or (says_nothing(item) and name not in part.required))
            ):
                penalty += SPELLED
                continue
            fitted[name] = held
            wrong += fault
        return fitted, penalty, wrong

    def _array(self, value: list[Any], part: _Part, path: str) -> Fitted:
        fitted, penalty, wrong = [], 0, []
        for at, item in enumerate(value):
            schema = part.first[at] if at < len(part.first) else part.items
            held, more, faults = self.fit(item, schema, _below(path, at))
            fitted.append(held)
            penalty += more
            wrong += faults
            if len(wrong) >= _ENOUGH and self._coerce:
                break
        if part.schema.get("uniqueItems") is True:
            once = list({frozen(item): item for item in fitted}.values())
            repeated = len(fitted) - len(once)
            if repeated and not self._coerce:
                wrong.append(f"{path}: expected no item twice, got {repeated} again")
            elif repeated:
                fitted, penalty = once, penalty + SPELLED * repeated
        return fitted, penalty, wrong


# -- the shapes that models miss ------------------------------------------------------------------


def parsed(value: Any, wanted: type | tuple[type, ...]) -> Any:
    """What a string that holds JSON holds, if it is of the wanted type."""
    if not isinstance(value, str):
        return None
    fence = _FENCE.match(value)
    found = read_json(value, fence.end() if fence else 0)
    if found is None or value[found.end :].strip(" \t\r\n`;"):
        return None
    return found.value if isinstance(found.value, wanted) else None


def _objects(value: Any, part: _Part) -> Iterator[Any]:
    """What an object may have been written as."""
    inner = parsed(value, dict)
    if inner is not None:
        yield inner
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        yield value[0]
    if len(part.fields) == 1 and not isinstance(value, str):  # text may be anything
        ((name, only),) = part.fields.items()
        if _is_any(value, _names(_mapping(only).get("type"))):
            yield {name: value}


def _arrays(value: Any) -> Iterator[Any]:
    """What an array may have been written as."""
    inside = parsed(value, (list, dict))
    if isinstance(inside, list):
        yield inside
        return
    held = value if inside is None else inside
    # An object may hold the list that is wanted, so it is no item of it: the model is asked.
    has_list = isinstance(held, dict) and any(
        isinstance(one, list) for one in held.values()
    )
    if held is not None and not has_list:
        yield [held]


def _rows(value: list[Any], part: _Part) -> Iterator[Any]:
    """A list of rows in which a run of single values is a row whose brackets were lost."""
    wanted = "array" in _names(_mapping(part.items).get("type"))
    if wanted and any(isinstance(item, (str, int, float)) for item in value):
        rows: list[Any] = []
        for single, run in groupby(value, key=lambda item: not isinstance(item, list)):
            held = list(run)
            rows += [held] if single else held
        yield rows


def _respelled(value: dict[str, Any], part: _Part) -> tuple[dict[str, Any], int]:
    """The object with fields that are only spelled otherwise under their own names."""
    known = part.fields
    absent: dict[str, list[str]] = {}
    for name in known:
        if name not in value:
            absent.setdefault(fold(name), []).append(name)
    names: dict[str, str] = {}
    for name in value:
        if name not in known and not part.patterns(name):
            wanted = absent.pop(fold(name), [])
            names |= {name: wanted[0]} if len(wanted) == 1 else {}
    return {names.get(name, name): item for name, item in value.items()}, SPELLED * len(
        names
    )


def _unwrapped(value: dict[str, Any], part: _Part) -> Iterator[Any]:
    """What is inside a wrapper: {"answer": {...}}, {"type": "object", "properties": {...}}."""
    folded = {fold(name) for name in part.fields}
    inner = [name for name in value if fold(name) not in _BESIDE]
    if len(inner) != 1 or fold(inner[0]) in folded | _NO_ANSWER:
        return
    if len(value) > 1 and fold(inner[0]) not in _HOLDS:
        return
    held = value[inner[0]]
    inside = parsed(held, (dict, list))
    held = held if inside is None else inside
    if isinstance(held, (dict, list)) and not _is_skeleton(held):
        yield held


def _is_strange(value: Any, part: _Part) -> bool:
    """Whether an object has fields, but none that the schema knows, where it knows some."""
    known = part.fields
    closed = isinstance(value, dict) and not part.schema.get("additionalProperties")
    return bool(closed and value and known) and not any(name in known for name in value)


def _is_skeleton(value: Any) -> bool:
    """Whether all fields of an object are schemas: the form was handed back, not filled in."""
    held = value.values() if isinstance(value, dict) else ()
    return bool(held) and all(
        isinstance(one, dict) and _SCHEMA_KEYS & one.keys() for one in held
    )


def _echoes(value: Any, known: Mapping[str, Any]) -> bool:
    """Whether the value is the schema, or its fields, handed back unfilled."""
    if not isinstance(value, dict) or not known:
        return False
    shown = value.get("properties", ())
    unfilled = (
        "properties" not in known and _is_skeleton(shown) and set(shown) <= set(known)
    )
    return value == known or unfilled


def _below(path: str, key: str | int) -> str:
    """The path of an item or a field."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    key = shortened(key)
    if key.isidentifier():
        return f"{path}.{key}"
    return f"{path}[{json.dumps(key, ensure_ascii=False)}]"


def _is_any(value: Any, names: list[str]) -> bool:
    return any(_has_type(value, name) for name in names)
