"""A value and a JSON Schema: is it valid, and can it be made so without inventing anything.

One walk does both. Where a value is not what a schema asks for, each kind of schema has a few
other readings of it, for the ways in which models miss it, each with a penalty; a union takes the
member with the least. What cannot be fitted is a `SchemaMismatch` that says all that is wrong.
With `coerce=False` the same walk only validates.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from . import scalars
from .scalars import SPELLED, frozen, got, says_nothing, shortened, show
from .schema import (
    CompiledSchema,
    Schema,
    SchemaPart,
    array_shapes,
    echoes_schema,
    has_any_type,
    has_type,
    is_strange,
    join_rows,
    object_shapes,
    respell_fields,
    type_names,
    unwrap,
    wrap,
)

SHAPED = 2  # the same value in another container
_ENOUGH = 20  # problems, for one list
# Characters that a problem shows of a value that the schema allows.
_LONGEST_OPTION = 60
_MOST_OPTIONS = 8
IS_SCHEMA = "answer: this is the schema itself, not a value that follows it"
_DEEP = "answer: nested too deeply"


class SchemaMismatch(ValueError):  # noqa: N818  # it says what there is: a mismatch
    """A value cannot be made to follow the schema, or a text holds none that does.

    Attributes:
        problems: What is wrong, one line for each place, such as
            "answer.age: expected integer, got string 'abc'". They may quote the answer.
        is_copy: Whether the text only repeats what was shown of the schema.
    """

    def __init__(self, problems: list[str], *, is_copy: bool = False) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems
        self.is_copy = is_copy


class Fitted(NamedTuple):
    """A value as a schema asks for it, or as near as it could be made."""

    value: object
    penalty: int  # 0: valid as it was
    problems: list[str]


def _unexpected(value: object, path: str, expected: str) -> Fitted:
    return Fitted(value, 0, [f"{path}: expected {expected}, {got(value)}"])


def problems(value: object, schema: Schema | CompiledSchema) -> list[str]:
    """What is wrong with the value, strictly and without changing it; nothing if it is valid."""
    return _Fitter(CompiledSchema.of(schema), coerce=False).fit_root(value).problems


def fit_schema(
    value: object,
    schema: Schema | CompiledSchema,
    *,
    coerce: bool = True,
    tidy: bool = False,
    exact: bool = False,
) -> tuple[Any, int]:
    """The value as the schema asks for it, and a penalty: 0 if it was valid as it was.

    What is not understood of the schema allows anything. `coerce`: look for what a value means that
    is not valid. `tidy`: do so, too, where a valid one has fields that the schema does not know,
    but would know if they were spelled or wrapped otherwise. `exact`: a field that the schema does
    not know is a problem, since a repair may have ended a value too early and taken the rest of it
    for fields.

    Raises:
        SchemaMismatch: The value does not fit. Its `problems` say why.
    """
    schema = CompiledSchema.of(schema)
    if any(echoes_schema(value, root.fields) for root in schema.roots):
        raise SchemaMismatch([IS_SCHEMA], is_copy=True)
    fitted = _Fitter(schema, coerce=coerce, tidy=tidy, exact=exact).fit_root(value)
    if fitted.problems:
        raise SchemaMismatch(fitted.problems)
    if tidy and _knows_no_field(schema, fitted.value or value):
        names = ", ".join([*schema.fields][:8])
        problem = f"answer: has none of the fields {names}, {got(fitted.value)}"
        raise SchemaMismatch([problem])
    return fitted.value, fitted.penalty


def _knows_no_field(schema: CompiledSchema, value: object) -> bool:
    """Whether an object that nothing forbids has no field that the schema knows."""
    roots = schema.roots
    return bool(roots) and all(is_strange(value, root) for root in roots)


class _Fitter:
    """The walk through a value and its schema."""

    def __init__(
        self,
        schema: CompiledSchema,
        *,
        coerce: bool,
        tidy: bool = False,
        exact: bool = False,
    ) -> None:
        self._schema = schema
        self._coerce = coerce
        self._tidy = tidy
        self._exact = exact
        # With the values themselves: as long as they live, no other has their ids.
        self._results: dict[tuple[int, int], tuple[object, Fitted]] = {}
        self._active: set[tuple[int, int]] = set()

    def fit_root(self, value: object) -> Fitted:
        """The whole value as the whole schema asks for it."""
        try:
            return self.fit(value, self._schema.schema, "answer")
        except RecursionError:
            return Fitted(value, 0, [_DEEP])

    def fit(self, value: object, schema: object, path: str) -> Fitted:
        """The value as a schema asks for it."""
        if schema is False:
            return Fitted(value, 0, [f"{path}: not allowed here"])
        if not isinstance(schema, Mapping):
            return Fitted(value, 0, [])
        part = self._schema.part(schema)
        if type(value) in part.certain_types:
            return Fitted(value, 0, [])
        key = (id(schema), id(value))
        if key in self._results:
            return self._results[key][1]
        if key in self._active:  # a reference that leads back to itself
            return Fitted(value, 0, [])
        self._active.add(key)
        try:
            fitted = self._fit_part(value, part, path)
        finally:
            self._active.remove(key)
        if isinstance(value, (dict, list)):
            self._results[key] = (value, fitted)
        return fitted

    def _fit_part(self, value: object, part: SchemaPart, path: str) -> Fitted:
        """Fit to the references and unions one after another, then to the schema's own keywords."""
        types = part.types
        matching = [
            name for name in types if has_type(value, name, strictly=self._coerce)
        ]
        if types and not matching:
            if not self._coerce:
                return _unexpected(value, path, " or ".join(types))
            if len(types) > 1:
                return self._fit_union(value, part.by_type, path)
        penalty = 0
        problems: list[str] = []
        for inner in part.all_of:
            fitted = self.fit(value, inner, path)
            value = fitted.value
            penalty += fitted.penalty
            problems += fitted.problems
        for word, members in part.unions.items():
            if members:
                exclusive = word == "oneOf" and not self._coerce
                fitted = self._fit_union(value, members, path, exclusive=exclusive)
                value = fitted.value
                penalty += fitted.penalty
                problems += fitted.problems
        fitted = self._fit_plain(value, part, matching[:1] or types, path)
        return Fitted(
            fitted.value, penalty + fitted.penalty, problems + fitted.problems
        )

    def _fit_union(
        self,
        value: object,
        members: Iterable[object],
        path: str,
        *,
        exclusive: bool = False,
    ) -> Fitted:
        """Fit to the member that needs the least; `exclusive`: to one, and to no other."""
        attempts = [(member, self.fit(value, member, path)) for member in members]
        fits = [fitted for _, fitted in attempts if not fitted.problems]
        if exclusive and len(fits) > 1:
            count = f"exactly one of {len(attempts)} alternatives, fits {len(fits)}"
            return Fitted(value, 0, [f"{path}: expected {count}"])
        if fits:
            return min(fits, key=operator.attrgetter("penalty"))
        # None fits. A member of the value's own type says best what is wrong with it; if all
        # members name types, and it is of none, these are what was expected.
        near = [
            fitted.problems
            for member, fitted in attempts
            if has_any_type(value, member)
        ]
        if not near:
            types = [type_names(member) for member, _ in attempts]
            if all(types):
                expected = dict.fromkeys(chain.from_iterable(types))
                return _unexpected(value, path, " or ".join(expected))
            near = [fitted.problems for _, fitted in attempts]
        return Fitted(value, 0, min(near, key=len))

    def _fit_plain(
        self, value: object, part: SchemaPart, types: list[str], path: str
    ) -> Fitted:
        """Fit to the keywords of a schema itself; else take the first reading that does fit."""
        if types:
            type_name = types[0]
            fitted = self._fit_as_it_is(value, part, type_name, path)
        else:
            type_name = part.implied_type
            fitted = self._fit_as_it_is(value, part, "", path)
        if not self._coerce:
            return fitted
        if not fitted.penalty and not fitted.problems and not self._tidy:
            return fitted
        fits = not fitted.problems
        for reading, cost in self._readings(value, part, type_name, fits=fits):
            if isinstance(reading, (dict, list)) and reading is not value:
                other = self.fit(reading, part.schema, path)
            else:
                other = self._fit_as_it_is(reading, part, type_name, path)
            if not other.problems:
                return Fitted(other.value, other.penalty + cost, [])
        return fitted

    def _fit_as_it_is(
        self, value: object, part: SchemaPart, type_name: str, path: str
    ) -> Fitted:
        """The value with its parts fitted."""
        if type_name and not has_type(value, type_name):
            return _unexpected(value, path, type_name)
        if self._coerce and type_name == "integer" and isinstance(value, float):
            value = int(value)
        if part.allowed is not None and frozen(value) not in part.allowed:
            options = (part.options or [])[:_MOST_OPTIONS]
            expected = ", ".join(show(option, _LONGEST_OPTION) for option in options)
            if "const" not in part.schema:
                expected = f"one of {expected}"
            return _unexpected(value, path, expected)
        fitted = Fitted(value, 0, [])
        if isinstance(value, dict):
            fitted = self._fit_object(value, part, path)
        elif isinstance(value, list):
            fitted = self._fit_array(value, part, path)
        for bound in part.broken_bounds(fitted.value):
            fitted.problems.append(f"{path}: expected {bound}")
        return fitted

    def _readings(
        self, value: object, part: SchemaPart, type_name: str, *, fits: bool
    ) -> Iterator[tuple[object, int]]:
        """What a value may mean, with the penalty, in the order in which to try it.

        `fits`: it is valid, so only what would make it tidy is of interest.
        """
        shapes: Iterable[object] = ()
        if type_name == "object" and isinstance(value, dict):
            respelled, cost = respell_fields(value, part)
            if cost:
                yield respelled, cost
            if not fits or is_strange(value, part):
                shapes = self._around_or_inside(value, part)
        elif type_name == "array" and isinstance(value, list):
            shapes = join_rows(value, part)
        elif fits:
            return
        elif type_name == "object":
            shapes = object_shapes(value, part, self._schema)
        elif type_name == "array":
            shapes = array_shapes(value)
        else:
            reading = _read_scalar(value, part, type_name)
            if reading:
                yield reading
        for shape in shapes:
            yield shape, SHAPED

    def _around_or_inside(
        self, value: dict[str, object], part: SchemaPart
    ) -> Iterator[object]:
        """The object of which an object may be the only field, and what it may only wrap."""
        if self._tidy:  # an answer; among arguments, the object may be the call itself
            yield from wrap(value, part, self._schema)
        yield from unwrap(value, part)

    def _fit_object(
        self, value: dict[str, object], part: SchemaPart, path: str
    ) -> Fitted:
        fitted: dict[str, object] = {}
        penalty = 0
        problems = [
            f"{below(path, name)}: required, but missing"
            for name in part.required
            if name not in value
        ]
        for name, item in value.items():
            field_path = below(path, name)
            no_such_field = [f"{field_path}: no such field"]
            field_problems: list[str] = []
            field = item
            for schema in part.field_schemas(name, exact=self._exact):
                if schema is False:
                    field_problems = no_such_field
                    field = item
                    continue
                fitted_field = self.fit(field, schema, field_path)
                field = fitted_field.value
                field_problems = field_problems + fitted_field.problems
                penalty += fitted_field.penalty
            if field_problems and self._coerce:
                # An unknown field of a closed object is dropped, and so is "no value" for a field
                # that may be absent.
                is_dropped = says_nothing(item) and name not in part.required
                if field_problems == no_such_field:
                    is_dropped = not self._exact
                if is_dropped:
                    penalty += SPELLED
                    continue
            fitted[name] = field
            problems += field_problems
        return Fitted(fitted, penalty, problems)

    def _fit_array(self, value: list[object], part: SchemaPart, path: str) -> Fitted:
        items: list[object] = []
        penalty = 0
        problems: list[str] = []
        for index, item in enumerate(value):
            schema = part.items
            if index < len(part.first_items):
                schema = part.first_items[index]
            fitted = self.fit(item, schema, below(path, index))
            items.append(fitted.value)
            penalty += fitted.penalty
            problems += fitted.problems
            if len(problems) >= _ENOUGH and self._coerce:
                break
        if part.schema.get("uniqueItems") is True:
            unique = list({frozen(item): item for item in items}.values())
            repeated = len(items) - len(unique)
            if repeated and not self._coerce:
                problems.append(f"{path}: expected no item twice, got {repeated} again")
            elif repeated:
                items = unique
                penalty += SPELLED * repeated
        return Fitted(items, penalty, problems)


def _read_scalar(
    value: object, part: SchemaPart, type_name: str
) -> scalars.Coerced | None:
    if part.options is None:
        return scalars.coerce(value, type_name)
    return scalars.choose(value, part.options)


def below(path: str, key: str | int) -> str:
    """The path of an item or a field."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    key = shortened(key)
    if key.isidentifier():
        return f"{path}.{key}"
    return f"{path}[{json.dumps(key, ensure_ascii=False)}]"
