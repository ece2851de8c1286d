"""Fitting a value to a schema: the same data, moved into the shape that was asked for.

Every part of the value that is valid as it is stays as it is. For the rest each kind of schema
knows a few ways in which models miss it (`shapes`, `scalars`), each with a penalty; a union takes
the member with the least. Nothing is made up: what cannot be fitted is a `Misfit` that says all
that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import scalars
from .check import (
    ENOUGH,
    MISSING,
    Checker,
    Schema,
    fields_of,
    item_schema,
    names_in,
    nearest,
    pattern_schemas,
    type_names,
)
from .scalars import SHAPED, SPELLED, says_nothing
from .shapes import (
    arrays_of,
    as_rows,
    is_strange,
    is_wrapped,
    objects_of,
    options_of,
    renamed,
    type_of,
    unwrapped,
)
from .values import frozen
from .wording import below, got

_COMBINED = ("$ref", "anyOf", "oneOf")


class Misfit(ValueError):  # noqa: N818 - it reads as what it is: fit or misfit
    """The value cannot be made to follow the schema.

    Attributes:
        problems: What is wrong, one line for each place, such as
            "answer.age: expected integer, got string 'abc'". They may quote the answer.
    """

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


class Fitter:
    """Fits values to one schema and the parts of it.

    Args:
        root: The schema that references point into.
        tidy: Also set right what is valid only because the schema is open: fields that are
            spelled otherwise or wrapped count as unknown fields there.
    """

    def __init__(self, root: Schema, *, tidy: bool = False) -> None:
        self._checker = Checker(root, fitting=True)
        self._tidy = tidy
        self._known: dict[tuple[int, int], tuple[Any, Any, Any]] = {}
        self._parts: dict[int, tuple[Any, list[tuple[str, Any]]]] = {}

    def fit(self, value: Any, schema: Any, path: str = "answer") -> tuple[Any, int]:
        """The fitted value and its penalty; raises Misfit."""
        wrong = self._checker.check(value, schema, path)
        container = isinstance(value, (dict, list))
        if not isinstance(schema, Mapping) or (not wrong and not (self._tidy and container)):
            return accept(value, wrong)
        key = (id(schema), id(value))
        if container and key in self._known:
            return _replay(self._known[key][2])
        try:
            result: Any = self._fit(value, schema, path)
        except Misfit as misfit:
            result = misfit if wrong else (value, 0)
        if container:
            self._known[key] = (schema, value, result)
        return _replay(result)

    def _fit(self, value: Any, schema: Schema, path: str) -> tuple[Any, int]:
        penalty = 0
        for word, asserted in self._split(schema):
            value, more = self._fit_part(value, word, asserted, path)
            penalty += more
        return accept(value, self._checker.check(value, schema, path), penalty)

    def _split(self, schema: Schema) -> list[tuple[str, Any]]:
        """The schema as parts that hold one by one: its references, unions and plain keywords."""
        if id(schema) not in self._parts:
            parts = [(word, schema[word]) for word in _COMBINED if word in schema]
            members = schema.get("allOf")
            parts += [("allOf", one) for one in members] if isinstance(members, list) else []
            beside = (*_COMBINED, "allOf")
            plain = {word: asserted for word, asserted in schema.items() if word not in beside}
            types = type_names(plain.get("type"))
            if len(types) > 1:
                parts.append(("anyOf", [{**plain, "type": name} for name in types]))
            else:
                parts.append(("", plain))
            self._parts[id(schema)] = (schema, parts)
        return self._parts[id(schema)][1]

    def _fit_part(self, value: Any, word: str, asserted: Any, path: str) -> tuple[Any, int]:
        if word == "$ref":
            return self.fit(value, self._checker.resolve(asserted), path)
        if word == "allOf":
            return self.fit(value, asserted, path)
        if word:
            return self._union(value, asserted, path)
        return self._plain(value, asserted, path)

    def _union(self, value: Any, members: Any, path: str) -> tuple[Any, int]:
        """The member that fits with the least penalty; the first of equals."""
        if not isinstance(members, (list, tuple)) or not members:
            return value, 0
        best: tuple[Any, int] | None = None
        wrong = []
        for member in members:
            try:
                found = self.fit(value, member, path)
            except Misfit as misfit:
                wrong.append(misfit.problems)
                continue
            if best is None or found[1] < best[1]:
                best = found
        if best is None:
            raise Misfit(nearest(value, path, members, wrong))
        return best

    def _plain(self, value: Any, schema: Schema, path: str) -> tuple[Any, int]:
        """Fit to a schema without unions, by its type or what tells its type."""
        name = type_of(schema)
        if name == "object":
            return self._object(value, schema, path)
        if name == "array":
            return self._array(value, schema, path)
        wrong = self._checker.check(value, schema, path)
        if not wrong:
            return value, 0
        options = options_of(schema)
        if options is not None:
            found = scalars.choose(value, options)
        else:
            found = scalars.coerce(value, name)
        if found is None and is_wrapped(value):
            inner, penalty = self.fit(value[0], schema, path)
            return inner, penalty + SHAPED
        if found is None:
            raise Misfit(wrong)
        return accept(found[0], self._checker.check(found[0], schema, path), found[1])

    # -- objects ----------------------------------------------------------------------------------

    def _object(self, value: Any, schema: Schema, path: str) -> tuple[Any, int]:
        if not isinstance(value, dict):
            return self._first(objects_of(value, schema), value, schema, path)
        try:
            return self._fields(value, schema, path)
        except Misfit as misfit:
            return self._first(unwrapped(value, schema), value, schema, path, misfit)

    def _first(
        self,
        candidates: Iterator[Any],
        value: Any,
        schema: Schema,
        path: str,
        misfit: Misfit | None = None,
    ) -> tuple[Any, int]:
        """The first of the readings of a value that fits."""
        for candidate in candidates:
            try:
                fitted, penalty = self.fit(candidate, schema, path)
            except Misfit as problem:
                misfit = misfit or problem
                continue
            return fitted, penalty + SHAPED
        raise misfit or Misfit(
            self._checker.check(value, schema, path) or [f"{path}: {got(value)}"]
        )

    def _fields(self, value: dict[str, Any], schema: Schema, path: str) -> tuple[Any, int]:
        value, penalty = renamed(value, schema)
        if self._tidy and is_strange(value, schema):
            # It may still be unwrapped.
            raise Misfit(self._checker.check(value, schema, path) or [f"{path}: {got(value)}"])
        fitted: dict[str, Any] = {}
        required = names_in(schema.get("required"))
        wrong = [f"{below(path, name)}: {MISSING}" for name in required if name not in value]
        for name, item in value.items():
            part = self._part_for(name, schema)
            problems: list[str] = []
            found = part is not False and self._part(item, part, below(path, name), problems)
            if found:
                fitted[name] = found[0]
                penalty += found[1]
            elif part is False or (says_nothing(item) and name not in required):
                penalty += SPELLED
            else:
                wrong += problems
        return accept(fitted, wrong or self._checker.check(fitted, schema, path), penalty)

    def _part(self, item: Any, schema: Any, path: str, wrong: list[str]) -> tuple[Any, int] | None:
        """Fit a field or an item; None if it does not fit, and then `wrong` says why."""
        try:
            return self.fit(item, schema, path)
        except Misfit as misfit:
            wrong += misfit.problems
            return None

    def _part_for(self, name: str, schema: Schema) -> Any:
        """The schema of a field; False if the object is closed and has no such field."""
        known = fields_of(schema)
        if name in known:
            return known[name]
        patterns = pattern_schemas(name, schema)
        return patterns[0] if patterns else schema.get("additionalProperties", True)

    # -- arrays -----------------------------------------------------------------------------------

    def _array(self, value: Any, schema: Schema, path: str) -> tuple[Any, int]:
        if not isinstance(value, list):
            return self._first(arrays_of(value), value, schema, path)
        rows = as_rows(value, schema)
        penalty = 0 if rows is value else SHAPED
        fitted = []
        wrong: list[str] = []
        for at, item in enumerate(rows):
            found = self._part(item, item_schema(schema, at), below(path, at), wrong)
            if found:
                fitted.append(found[0])
                penalty += found[1]
            elif len(wrong) >= ENOUGH:
                break
        if wrong:
            raise Misfit(wrong)
        if schema.get("uniqueItems") is True:
            once = list({frozen(item): item for item in fitted}.values())
            penalty += SPELLED * (len(fitted) - len(once))
            fitted = once
        return accept(fitted, self._checker.check(fitted, schema, path), penalty)


def accept(value: Any, wrong: list[str], penalty: int = 0) -> tuple[Any, int]:
    """The value and its penalty if nothing is wrong with it; raises Misfit."""
    if wrong:
        raise Misfit(wrong)
    return value, penalty


def _replay(result: Any) -> tuple[Any, int]:
    if isinstance(result, Misfit):
        raise Misfit(result.problems)
    found: tuple[Any, int] = result
    return found
