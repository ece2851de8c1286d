"""Values for a schema, taken from a text where it has them.

Two manners: a call takes optional values only when the text mentions them and otherwise leaves
them out; a form fills every field, inventing plausible values. In both, what is required is
always there, and of the right type.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from langchain_svc.sandbox.engine._assign import assign
from langchain_svc.sandbox.engine._facts import facts_of
from langchain_svc.sandbox.engine._fields import Field, field_of, fields_of
from langchain_svc.sandbox.engine._makers import DEEP_FORM, MAKERS
from langchain_svc.sandbox.engine._mentions import (
    chosen_option,
    excluded,
    literal,
    outright,
)
from langchain_svc.sandbox.engine._schema import (
    DEEPEST,
    Schema,
    alternatives,
    bend_number,
    bend_text,
    count_of,
    items_of,
    kind_of,
    resolve,
)
from langchain_svc.sandbox.engine._source import (
    MISSING,
    Inventor,
    Missing,
    Source,
)

if TYPE_CHECKING:
    from langchain_svc.sandbox.engine._jsontext import Json

    Value: TypeAlias = "Json | Missing"

_NUMERIC = {"integer", "number"}
_SIMPLE = {"string", "number", "integer", "boolean"}
_PLAIN_KEYS = {"type", "description", "title"}
_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


def _is_a(value: Json, kind: str) -> bool:
    """Tell whether a value has a JSON type; a boolean is no number."""
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _PYTHON_TYPES.get(kind, ()))


def _number_in(text: str) -> Json:
    """Return the first number that a text tells, or the text."""
    numbers = [fact.value for fact in facts_of(text) if fact.kind in {"number", "percent"}]
    return numbers[0] if numbers else text


@dataclass
class Filler:
    """Fills the fields of one schema.

    `form` asks for optional values, too; `brief` says that the text is one item of a list, whose
    words are values and nothing else.
    """

    root: Schema
    source: Source
    inventor: Inventor
    form: bool = False
    brief: bool = False

    def object(self, schema: Schema, depth: int = 0) -> dict[str, Json]:
        """Return an object for an object schema."""
        fields = fields_of(schema, self.root)
        values: dict[str, Value] = {one.name: self._outright(one) for one in fields}
        self._take_lists([one for one in fields if values[one.name] is MISSING], values)
        rest = [one for one in fields if values[one.name] is MISSING]
        dealt = assign(rest, self.source, form=self.form)
        for one in rest:
            found = dealt.get(one.name)
            if self.form and not one.required and excluded(one.name, self.source.text):
                continue
            values[one.name] = self.value(one, depth) if found is None else found
        return {name: value for name, value in values.items() if not isinstance(value, Missing)}

    # --- What the text says outright -------------------------------------------------------

    def _outright(self, one: Field) -> Value:
        written = self.source.given.get(one.name)
        if written is None and len(one.name) > 1:
            written = outright(one.name, self.source.text)
        value = MISSING if written is None else self._bent(literal(written), written, one)
        if value is not MISSING:
            self.source.found.add(one.name)
        return value

    def _bent(self, value: Json, written: str, one: Field) -> Value:
        """Return a written value in the type of the field, or nothing if it has another type."""
        if one.is_chosen:
            return value if value in items_of(one.schema.get("enum")) else MISSING
        if one.kind == "string":
            return bend_text(value if isinstance(value, str) else written, one.schema)
        if one.kind in _NUMERIC:
            number = _number_in(value) if isinstance(value, str) else value
            if isinstance(number, bool) or not isinstance(number, (int, float)):
                return MISSING
            return bend_number(number, one.schema, whole=one.kind == "integer")
        if not _is_a(value, one.kind):
            return MISSING
        return value if one.kind == "boolean" or self._items_fit(one, value) else MISSING

    def _items_fit(self, one: Field, value: Json) -> bool:
        """Tell whether a written list or object can be taken as it stands."""
        if one.kind == "object":
            return not {"properties", "minProperties"} & set(one.schema)
        items, size = resolve(one.schema.get("items"), self.root), len(items_of(value))
        least, most = count_of(one.schema, "minItems", 0), count_of(one.schema, "maxItems", 50)
        if not least <= size <= most:
            return False
        wanted = kind_of(items)
        plain = set(items) <= _PLAIN_KEYS and "prefixItems" not in one.schema
        fits = all(_is_a(item, wanted) for item in items_of(value))
        return plain and ("type" not in items or (wanted in _SIMPLE and fits))

    def _take_lists(self, fields: list[Field], values: dict[str, Value]) -> None:
        """Give bracketed lists and objects to the fields that can hold them."""
        for one in fields:
            wanted = {"array": "list", "object": "object"}.get(one.kind)
            for fact in self.source.free():
                if fact.kind == wanted and self._items_fit(one, fact.value):
                    values[one.name] = fact.value
                    self.source.take(one, fact)
                    break

    # --- Any value -------------------------------------------------------------------------

    def value(self, one: Field, depth: int) -> Value:
        """Return the value of one field, or `MISSING` where it is best left out."""
        if "const" in one.schema:
            return one.schema["const"] if self.wants(one, depth) else MISSING
        if "enum" in one.schema:
            return self._option(one, items_of(one.schema["enum"]), depth)
        choices, nullable = alternatives(one.schema, self.root)
        if len(choices) > 1:
            return self._alternative(one, choices, depth)
        if not choices:
            return None if nullable and self.wants(one, depth) else MISSING
        if one.nullable and depth >= (DEEP_FORM if self.form else DEEPEST):
            return None
        return MAKERS.get(one.kind, MAKERS["string"])(self, one, depth)

    def wants(self, one: Field, depth: int) -> bool:
        """Tell whether a value must be made up for the field."""
        return one.required or (self.form and depth < DEEP_FORM)

    def default(self, one: Field) -> Value:
        """Return the default of the schema, if it has the right type."""
        default = one.schema.get("default", MISSING)
        if isinstance(default, Missing) or not _is_a(default, one.kind):
            return MISSING
        return default

    def _option(self, one: Field, options: list[Json], depth: int) -> Value:
        for text in (self.source.text, self.source.background):
            chosen = chosen_option(options, text)
            if chosen is not None:
                self.source.found.add(one.name)
                return chosen
        if not self.wants(one, depth):
            return MISSING
        default = one.schema.get("default")
        return default if default in options else self.inventor.option(one, options, self.source)

    def _alternative(self, one: Field, choices: list[Schema], depth: int) -> Value:
        """Choose between alternatives: constants by mention, else the first that finds a value."""
        if all("const" in choice for choice in choices):
            return self._constant(one, choices, depth)
        before = len(self.source.found)
        for choice in choices if depth < DEEPEST else ():
            trial = field_of(one.name, choice, self.root, required=False)
            value = assign([trial], self.source, form=False).get(one.name)
            made = replace(self, form=False).value(trial, depth + 1)
            if (value is not None or made is not MISSING) and len(self.source.found) > before:
                return made if value is None else value
        if not self.wants(one, depth):
            return MISSING
        return self.value(field_of(one.name, choices[0], self.root, required=True), depth + 1)

    def _constant(self, one: Field, choices: list[Schema], depth: int) -> Value:
        constants = [choice["const"] for choice in choices]
        chosen = chosen_option(constants, self.source.text)
        if chosen is not None or not self.wants(one, depth):
            return MISSING if chosen is None else chosen
        described = [f"{c['const']} {c.get('description', '')}" for c in choices]
        return constants[self.inventor.closest(described, self.source)]
