"""A value and a JSON Schema: is it valid, and can it be made so without inventing anything.

One walk does both. Where a value is not what a schema asks for, each kind of schema knows a few
ways in which models miss it, each with a penalty; a union takes the member with the least. What
cannot be fitted is a `SchemaMismatch` that says all that is wrong. With `coerce=False` the same
walk only validates. An unknown keyword, a reference that leads nowhere, or a keyword whose value
makes no sense asserts nothing.
"""

from __future__ import annotations

import functools
import json
import math
import operator
import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import groupby
from typing import Any
from urllib.parse import unquote

from . import scalars
from .lenient import read_json
from .no_answer import NoAnswer
from .scalars import SPELLED, fold, frozen, got, says_nothing, show

Schema = Mapping[str, Any]
Fitted = tuple[Any, int, list[str]]  # the value, its penalty, and what is wrong with it

SHAPED = 2  # the same value in another container
_ENOUGH = 20  # problems, for one list
_DEEP = "answer: nested too deeply"
_UNIONS = ("anyOf", "oneOf")
_COMBINED = ("$ref", "allOf", *_UNIONS)
# Wrappers that other keys may stand beside (a schema's skeleton, a tool call), those keys, and
# wrappers that hold no answer.
_HOLDS = frozenset(["properties", "arguments", "parameters", "args", "input", "function"])
_BESIDE = frozenset(
    ["type", "title", "description", "required", "name", "id", "schema", "defs", "tool"]
)
_NO_ANSWER = frozenset(["error", "errors", "example", "examples", "schema", "defs", "definitions"])
_SCHEMA_KEYS = frozenset(["type", "$ref", "anyOf", "allOf", "oneOf", "enum", "const"])
_FENCE = re.compile(r"\s*`{3,}[\w+-]*\s*")


class SchemaMismatch(NoAnswer):
    """The value cannot be made to follow the schema.

    Attributes:
        problems: What is wrong, one line for each place, such as
            "answer.age: expected integer, got string 'abc'". They may quote the answer.
    """


def problems(value: Any, schema: Schema) -> list[str]:
    """What is wrong with the value, strictly and without changing it; nothing if it is valid."""
    try:
        return _Fitter(schema, coerce=False).fit(value, schema, "answer")[2]
    except RecursionError:
        return [_DEEP]


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
        SchemaMismatch: The value does not fit. Its `problems` say why.
    """
    roots = _roots(schema)
    if any(_echoes(value, root) for root in roots):
        raise SchemaMismatch(["answer: this is the schema itself, not a value that follows it"])
    try:
        fitted, penalty, wrong = _Fitter(schema, coerce=coerce, tidy=tidy).fit(
            value, schema, "answer"
        )
    except RecursionError:
        raise SchemaMismatch([_DEEP]) from None
    if not wrong and tidy and roots and all(_is_strange(fitted, one) for one in roots):
        names = ", ".join(fields(schema)[:8])
        wrong = [f"answer: has none of the fields {names}, {got(fitted)}"]
    if wrong:
        raise SchemaMismatch(wrong)
    return fitted, penalty


def wants(schema: Any, name: str) -> bool:
    """Whether the schema allows values of a type at its root."""
    return any(
        name in _names(root.get("type"))
        or any(_has_type(option, name) for option in _options(root) or ())
        for root in _roots(schema)
    )


def fields(schema: Any) -> list[str]:
    """The fields that the schema names at its root."""
    return list(dict.fromkeys(name for root in _roots(schema) for name in _fields(root)))


# -- the walk -------------------------------------------------------------------------------------


class _Fitter:
    def __init__(self, root: Any, *, coerce: bool, tidy: bool = False) -> None:
        self._root, self._coerce, self._tidy = root, coerce, tidy
        # Holds the objects themselves, so that no id is used again.
        self._known: dict[tuple[int, int], tuple[Any, Any, Fitted]] = {}
        self._active: set[tuple[int, int]] = set()

    def fit(self, value: Any, schema: Any, path: str) -> Fitted:
        """The value as a schema wants it."""
        if schema is False:
            return value, 0, [f"{path}: not allowed here"]
        if not isinstance(schema, Mapping) or (value is None and schema.get("nullable") is True):
            return value, 0, []
        key = (id(schema), id(value))
        if key in self._known:
            return self._known[key][2]
        if key in self._active:  # a reference that leads back to itself
            return value, 0, []
        self._active.add(key)
        try:
            found = self._fit(value, schema, path)
        finally:
            self._active.remove(key)
        if isinstance(value, (dict, list)):
            self._known[key] = (schema, value, found)
        return found

    def _fit(self, value: Any, schema: Schema, path: str) -> Fitted:
        """Its references and unions one after another, and then the schema's own keywords."""
        types = _names(schema.get("type"))
        right = [name for name in types if _has_type(value, name, strictly=self._coerce)]
        if len(types) > 1 and not right and self._coerce:
            one_of = {"anyOf": [{**schema, "type": name} for name in types]}
            return self._union(value, "anyOf", one_of, path)
        if types and not right and not self._coerce:
            return value, 0, [f"{path}: expected {' or '.join(types)}, {got(value)}"]
        fitted, penalty, wrong = value, 0, list[str]()
        members = schema.get("allOf")
        parts = [self.resolve(schema["$ref"])] if "$ref" in schema else []
        parts += members if isinstance(members, (list, tuple)) else []
        for part in parts:
            fitted, more, faults = self.fit(fitted, part, path)
            penalty, wrong = penalty + more, wrong + faults
        for word in _UNIONS:
            if word in schema:
                fitted, more, faults = self._union(fitted, word, schema, path)
                penalty, wrong = penalty + more, wrong + faults
        fitted, more, faults = self._plain(fitted, schema, right[:1] or types, path)
        return fitted, penalty + more, wrong + faults

    def _union(self, value: Any, word: str, schema: Schema, path: str) -> Fitted:
        members = schema[word]
        if not isinstance(members, (list, tuple)) or not members:
            return value, 0, []
        tries = [self.fit(value, member, path) for member in members]
        good = [found for found in tries if not found[2]]
        if word == "oneOf" and len(good) > 1 and not self._coerce:
            count = f"exactly one of {len(tries)} alternatives, fits {len(good)}"
            return value, 0, [f"{path}: expected {count}"]
        if good:
            return min(good, key=operator.itemgetter(1))
        types = [_names(one.get("type")) if isinstance(one, Mapping) else [] for one in members]
        near = [f[2] for f, names in zip(tries, types, strict=True) if _is_any(value, names)]
        if all(types) and not near:
            names = " or ".join(dict.fromkeys(name for one in types for name in one))
            return value, 0, [f"{path}: expected {names}, {got(value)}"]
        return value, 0, min(near or [found[2] for found in tries], key=len)

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

    def _plain(self, value: Any, schema: Schema, types: list[str], path: str) -> Fitted:
        """Fit to the keywords of a schema itself, and else the first reading that does fit."""
        name = types[0] if types else _implied(schema)
        found = self._as_it_is(value, schema, name if types else "", path)
        if not self._coerce or (not found[1] and not found[2] and not self._tidy):
            return found
        for candidate, cost in self._readings(value, schema, name, untidy=not found[2]):
            if isinstance(candidate, (dict, list)) and candidate is not value:
                other = self.fit(candidate, schema, path)
            else:
                other = self._as_it_is(candidate, schema, name, path)
            if not other[2]:
                return other[0], other[1] + cost, []
        return found

    def _as_it_is(self, value: Any, schema: Schema, name: str, path: str) -> Fitted:
        """The value with its parts fitted."""
        if name and not _has_type(value, name, strictly=False):
            return value, 0, [f"{path}: expected {name}, {got(value)}"]
        if self._coerce and name == "integer" and isinstance(value, float):
            value = int(value)
        penalty, wrong = 0, list[str]()
        options = _options(schema)
        if options is not None and not any(frozen(value) == frozen(one) for one in options):
            names = ", ".join(map(show, options[:8]))
            names = names if "const" in schema else f"one of {names}"
            return value, 0, [f"{path}: expected {names}, {got(value)}"]
        if isinstance(value, dict):
            value, penalty, wrong = self._object(value, schema, path)
        elif isinstance(value, list):
            value, penalty, wrong = self._array(value, schema, path)
        return value, penalty, wrong + [f"{path}: expected {one}" for one in _missed(value, schema)]

    def _readings(
        self, value: Any, schema: Schema, name: str, *, untidy: bool
    ) -> Iterator[tuple[Any, int]]:
        """What a value may mean that does not fit, in the order in which to try it."""
        if name == "object" and isinstance(value, dict):
            respelled, cost = _respelled(value, schema)
            if cost:
                yield respelled, cost
            if not untidy or _is_strange(value, schema):
                yield from ((one, SHAPED) for one in _unwrapped(value, schema))
        elif name == "array" and isinstance(value, list):
            rows = _rows(value, schema)
            if rows is not value:
                yield rows, SHAPED
        elif untidy:
            return
        elif name == "object":
            yield from ((one, SHAPED) for one in _objects(value, schema))
        elif name == "array":
            yield from ((one, SHAPED) for one in _arrays(value))
        else:
            yield from self._scalars(value, schema, name)

    def _scalars(self, value: Any, schema: Schema, name: str) -> Iterator[tuple[Any, int]]:
        options = _options(schema)
        one = scalars.coerce(value, name) if options is None else scalars.choose(value, options)
        if one:
            yield one
        if _is_wrapped(value):
            fitted, cost, wrong = self.fit(value[0], schema, "")
            if not wrong:
                yield fitted, cost + SHAPED

    def _object(self, value: dict[str, Any], schema: Schema, path: str) -> Fitted:
        fitted: dict[str, Any] = {}
        required = _names(schema.get("required"))
        penalty = 0
        wrong = [f"{_below(path, n)}: required, but missing" for n in required if n not in value]
        for name, item in value.items():
            at, fault, held = _below(path, name), [], item
            for part in _parts_for(name, schema):
                if part is False:
                    fault = [f"{at}: no such field"]
                    held, more = item, 0
                else:
                    held, more, faults = self.fit(held, part, at)
                    fault = fault + faults
                penalty += more
            closed = fault == [f"{at}: no such field"]
            if self._coerce and fault and (closed or (says_nothing(item) and name not in required)):
                penalty += SPELLED
                continue
            fitted[name] = held
            wrong += fault
        return fitted, penalty, wrong

    def _array(self, value: list[Any], schema: Schema, path: str) -> Fitted:
        fitted, penalty, wrong = [], 0, []
        first, rest = schema.get("prefixItems"), schema.get("items", True)
        if isinstance(rest, list):  # the old way of writing tuples
            first, rest = rest, True
        first = first if isinstance(first, list) else []
        for at, item in enumerate(value):
            part = first[at] if at < len(first) else rest
            held, more, faults = self.fit(item, part, _below(path, at))
            fitted.append(held)
            penalty += more
            wrong += faults
            if len(wrong) >= _ENOUGH and self._coerce:
                break
        if schema.get("uniqueItems") is True:
            once = list({frozen(item): item for item in fitted}.values())
            repeated = len(fitted) - len(once)
            if repeated and not self._coerce:
                wrong.append(f"{path}: expected no item twice, got {repeated} again")
            elif repeated:
                fitted, penalty = once, penalty + SPELLED * repeated
        return fitted, penalty, wrong


# -- what a schema says ---------------------------------------------------------------------------


def _names(asserted: Any) -> list[str]:
    """The names in a list of names, or the one name, whatever else it may be."""
    names = [asserted] if isinstance(asserted, str) else asserted
    return [n for n in names if isinstance(n, str)] if isinstance(names, (list, tuple)) else []


def _fields(schema: Schema) -> Mapping[str, Any]:
    named = schema.get("properties")
    return named if isinstance(named, Mapping) else {}


def _patterns(name: str, schema: Schema) -> list[Any]:
    patterns = schema.get("patternProperties")
    patterns = patterns if isinstance(patterns, Mapping) else {}
    return [part for pattern, part in patterns.items() if _matches(pattern, name)]


def _parts_for(name: str, schema: Schema) -> list[Any]:
    """The schemas of a field; False if the object is closed and has no such field."""
    known = _fields(schema)
    parts = [known[name]] if name in known else []
    return parts + _patterns(name, schema) or [schema.get("additionalProperties", True)]


def _options(schema: Schema) -> list[Any] | None:
    """The values that an enumeration or a constant allows; None if the schema is neither."""
    if isinstance(schema.get("enum"), (list, tuple)):
        options = list(schema["enum"])
        if "const" in schema:
            options = [one for one in options if frozen(one) == frozen(schema["const"])]
        return options
    return [schema["const"]] if "const" in schema else None


def _implied(schema: Schema) -> str:
    return "object" if "properties" in schema else "array" if "items" in schema else ""


def _is_any(value: Any, names: list[str]) -> bool:
    return any(_has_type(value, name) for name in names)


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

# A keyword: what it bounds, how, and the words for it.
_BOUNDS: dict[str, tuple[Any, Any, str]] = {
    "minimum": (float, operator.ge, "at least {}"),
    "maximum": (float, operator.le, "at most {}"),
    "exclusiveMinimum": (float, operator.gt, "more than {}"),
    "exclusiveMaximum": (float, operator.lt, "less than {}"),
    "minLength": (str, operator.ge, "at least {} characters"),
    "maxLength": (str, operator.le, "at most {} characters"),
    "minItems": (list, operator.ge, "at least {} items"),
    "maxItems": (list, operator.le, "at most {} items"),
    "minProperties": (dict, operator.ge, "at least {} fields"),
    "maxProperties": (dict, operator.le, "at most {} fields"),
}


def _missed(value: Any, schema: Schema) -> Iterator[str]:
    """What the keywords ask for that bound a value and do not hold."""
    number = _has_type(value, "number") and value is not None and not isinstance(value, str)
    for word in _BOUNDS.keys() & schema.keys():
        kind, holds, words = _BOUNDS[word]
        bound, size = schema[word], value
        if not (number if kind is float else isinstance(value, kind)):
            continue
        if kind is not float:
            size = len(value)
        if _has_type(bound, "number") and not holds(size, bound):
            shown = got(value) if kind is float else f"got {size}"
            yield f"{words.format(bound)}, {shown}"
    step, pattern = schema.get("multipleOf"), schema.get("pattern")
    steps = number and isinstance(step, (int, float)) and step > 0
    if steps and Fraction(str(value)) % Fraction(str(step)):
        yield f"a multiple of {step}, {got(value)}"
    if isinstance(value, str) and isinstance(pattern, str) and not _matches(pattern, value):
        yield f"text that matches {pattern}, {got(value)}"


def _matches(pattern: str, text: str) -> bool:
    """Whether a pattern is found; patterns that cannot be used, or not safely, match anything.

    A repeat inside a repeat can take time exponential in the length of the text, and the text is
    a model's: such patterns are tried on short texts only.
    """
    compiled, longest = _compiled(pattern)
    return compiled is None or len(text) > longest or compiled.search(text) is not None


@functools.lru_cache(maxsize=256)
def _compiled(pattern: str) -> tuple[re.Pattern[str] | None, int]:
    rest, groups = re.subn(r"\)[+*{]", ")", pattern)
    explodes = groups > 1 or (groups == 1 and re.search(r"[+*|]", rest) is not None)
    try:
        return re.compile(pattern), 20 if explodes else 2_000
    except (re.error, RecursionError, OverflowError):  # written for another engine
        return None, 0


def _roots(schema: Any) -> list[Schema]:
    """The schema and all that it refers to for the whole value, but for what only combines."""
    fitter, waiting = _Fitter(schema, coerce=False), [schema]
    seen: list[Schema] = []
    while waiting:
        part = waiting.pop(0)
        if not isinstance(part, Mapping) or any(part is one for one in seen):
            continue
        seen.append(part)
        for word in ("anyOf", "oneOf", "allOf"):
            members = part.get(word)
            waiting += members if isinstance(members, list) else []
        if "$ref" in part:
            waiting.append(fitter.resolve(part["$ref"]))
    return [one for one in seen if not one.keys() & set(_COMBINED) or "properties" in one]


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


def _objects(value: Any, schema: Schema) -> Iterator[Any]:
    """What an object may have been written as."""
    inner = parsed(value, dict)
    if inner is not None:
        yield inner
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        yield value[0]
    known = _fields(schema)
    if len(known) == 1 and not isinstance(value, str):  # text may be anything
        ((name, only),) = known.items()
        if isinstance(only, Mapping) and _is_any(value, _names(only.get("type"))):
            yield {name: value}


def _arrays(value: Any) -> Iterator[Any]:
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


def _rows(value: list[Any], schema: Schema) -> list[Any]:
    """A list of rows in which a run of single values is a row whose brackets were lost."""
    items = schema.get("items")
    if not isinstance(items, Mapping) or "array" not in _names(items.get("type")):
        return value
    if not any(isinstance(item, (str, int, float)) for item in value):
        return value
    rows: list[Any] = []
    for single, run in groupby(value, key=lambda item: not isinstance(item, list)):
        held = list(run)
        rows += [held] if single else held
    return rows


def _respelled(value: dict[str, Any], schema: Schema) -> tuple[dict[str, Any], int]:
    """The object with fields that are only spelled otherwise under their own names."""
    known = _fields(schema)
    absent: dict[str, list[str]] = {}
    for name in known:
        if name not in value:
            absent.setdefault(fold(name), []).append(name)
    names: dict[str, str] = {}
    for name in value:
        if name not in known and not _patterns(name, schema):
            wanted = absent.pop(fold(name), [])
            names |= {name: wanted[0]} if len(wanted) == 1 else {}
    return {names.get(name, name): item for name, item in value.items()}, SPELLED * len(names)


def _unwrapped(value: dict[str, Any], schema: Schema) -> Iterator[Any]:
    """What is inside a wrapper: {"answer": {...}}, {"type": "object", "properties": {...}}."""
    folded = {fold(name) for name in _fields(schema)}
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


def _is_strange(value: Any, schema: Schema) -> bool:
    """Whether an object has fields, but none that the schema knows, where it knows some."""
    known = _fields(schema)
    closed = isinstance(value, dict) and not schema.get("additionalProperties")
    return bool(closed and value and known) and not any(name in known for name in value)


def _is_skeleton(value: Any) -> bool:
    """Whether all fields of an object are schemas: the form was handed back, not filled in."""
    held = value.values() if isinstance(value, dict) else ()
    return bool(held) and all(isinstance(one, dict) and _SCHEMA_KEYS & one.keys() for one in held)


def _echoes(value: Any, schema: Schema) -> bool:
    """Whether the value is the schema, or its fields, handed back unfilled."""
    known = _fields(schema)
    if not isinstance(value, dict) or not known:
        return False
    shown = value.get("properties", ())
    unfilled = "properties" not in known and _is_skeleton(shown) and set(shown) <= set(known)
    return value == known or unfilled


def _is_wrapped(value: Any) -> bool:
    """Whether a value is a list of one value, and that perhaps in a list again."""
    for wrappings in range(4):
        if not isinstance(value, list) or len(value) != 1:
            return wrappings > 0
        value = value[0]
    return False  # deeper nesting is a text of brackets: nobody means its middle


def _below(path: str, key: str | int) -> str:
    """The path of an item or a field."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if key.isidentifier() else f"{path}[{json.dumps(key)[:60]}]"
