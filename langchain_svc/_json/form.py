"""A JSON Schema as a form: an answer with a placeholder for each value.

    {"title": "<string>", "stars": <integer, 1 to 5>, "people": ["<string: who came>", ...]}

A model copies what it is shown, and a form that is copied and filled in is an answer. A form says
all that its schema asks for, or there is none: each keyword below is written down, and any other
makes the form impossible. What belongs to no placeholder is a note: what is said of an object or a
list, how many items a list has, and which keys may be left out.

No text of a schema can leave its placeholder: within a form, `<` and `>` are those around one.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from .fit import below
from .scalars import shortened
from .schema import (
    COMBINED,
    Schema,
    has_type,
    implied_type,
    list_of,
    names_in,
    target_of,
)

# A schema that refers to the same parts again and again has a form without end.
_MOST_PARTS = 1_000
_SILENT = frozenset(
    {
        *("$schema", "$id", "$comment", "$defs", "definitions"),
        *("title", "discriminator", "writeOnly"),
    }
)  # fmt: skip
_ABOUT = frozenset({"description", "default", "examples", "example"})
_NUMERIC = frozenset(
    {
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
        *("multipleOf", "format"),
    }
)  # fmt: skip
_OF_TYPE: dict[str, frozenset[str]] = {
    "null": frozenset(),
    "boolean": frozenset(),
    "integer": _NUMERIC,
    "number": _NUMERIC,
    "string": frozenset({"minLength", "maxLength", "pattern", "format"}),
    "array": frozenset({"items", "minItems", "maxItems", "uniqueItems"}),
    "object": frozenset({"properties", "required", "additionalProperties"}),
}
_NULL = {"type": "null"}

_PLACEHOLDER = re.compile(r"<[^<>]*>")
_WORD = re.compile(r"[a-z][a-z0-9-]*")
# An option that a list of options can hold; another one is written as JSON.
_PLAIN = re.compile(r'[^\s,;<>"\\]+(?: [^\s,;<>"\\]+)*')
_NULLABLE = re.compile(r"<(?:integer|number|true or false)(?=[,:>])")
_ALTERNATIVES = re.compile('"? or "?')
_SURE = len("<string,")  # characters with which no value begins
_PLAIN_KEY = re.compile(r"[\w-]+")


class Form(NamedTuple):
    """What a model is shown of a schema."""

    text: str
    notes: tuple[str, ...]
    placeholders: frozenset[str]
    """The texts that stand in the place of values, unless the schema allows them as values."""


class _Unsayable(Exception):  # noqa: N818  # no error: the schema is shown as it is
    """The form cannot say all of the schema."""


def form_of(schema: object, write: Callable[[object], str] = json.dumps) -> Form | None:
    """The form of a schema; None where a form cannot say all of it.

    `write`: JSON as the prompt is to show it.
    """
    writer = _Writer(schema, write)
    try:
        text = writer.value(schema, "")
        notes = tuple(writer.notes())
    except (_Unsayable, RecursionError):
        return None
    return Form(text, notes, frozenset(_placeholders(text)) - writer.options)


def _placeholders(text: str) -> Iterator[str]:
    for placeholder in _PLACEHOLDER.findall(text):
        yield placeholder
        yield json.loads(f'"{placeholder}"')  # where it stands in quotes


def left_standing(
    value: object, placeholders: Collection[str], path: str = "answer"
) -> Iterator[str]:
    """What is wrong with a value in which placeholders stand."""
    if isinstance(value, str):
        for text in _copied(value, placeholders):
            yield f"{path}: {shortened(text)} is a placeholder, and no value"
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from left_standing(item, placeholders, below(path, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from left_standing(key, placeholders, path)
            yield from left_standing(item, placeholders, below(path, key))


def _copied(text: str, placeholders: Collection[str]) -> Iterator[str]:
    """The placeholders in a text that is one, or a copy of several alternatives.

    The beginning of one will do: a bracket in its words may have ended it.
    """
    if "<" not in text:
        return
    for part in _ALTERNATIVES.split(text.strip()):
        is_begun = len(part) >= _SURE and any(
            placeholder.startswith(part) for placeholder in placeholders
        )
        if is_begun or part in placeholders:
            yield part


def without_copies(text: str, form: Form) -> str:
    """The text with blanks in the place of the form, also where the text ends inside it."""
    if not form.placeholders:  # a copy may be the answer
        return text
    text = text.replace(form.text, " " * len(form.text))
    begin = text.rfind(form.text[: form.text.index("<") + 1])
    if begin >= 0 and form.text.startswith(text[begin:].rstrip()):
        return text[:begin].ljust(len(text))
    return text


class _Writer:
    """Writes the form of a schema, and keeps what has no place in it."""

    def __init__(self, root: object, write: Callable[[object], str]) -> None:
        self._root = root
        self._dump = write
        self._parts = 0
        self._open: set[int] = set()  # the parts of the schema around this one
        self._about: dict[str, list[str]] = {}  # by path, what no placeholder holds
        self._counts: dict[str, str] = {}  # of the items of each list
        self._required: dict[str, bool] = {}  # whether each key is
        self.options: set[str] = set()  # texts that the schema allows as such

    def notes(self) -> Iterator[str]:
        """What stands before the form, each on a line of its own."""
        for path in dict.fromkeys([*self._about, *self._counts]):
            said = _joined([self._counts.get(path, ""), *self._about.get(path, [])])
            if said:
                yield f"About {path or 'the answer'}: {said}"
        optional = [path for path, required in self._required.items() if not required]
        if optional:
            yield f"These keys may be left out: {', '.join(optional)}."

    def value(self, schema: object, path: str, about: str = "") -> str:
        """What stands in the place of a value: its alternatives."""
        texts = [*dict.fromkeys(self._alternatives(schema, path, about))]
        if "null" in texts:
            texts.remove("null")
            if len(texts) == 1 and (kind := _NULLABLE.match(texts[0])):
                return f"{kind[0]} or null{texts[0][kind.end() :]}"
            texts.append("null")
        return " or ".join(texts)

    def _alternatives(self, schema: object, path: str, about: str) -> Iterator[str]:
        if schema is True:
            schema = {}
        self._parts += 1
        is_recursive = id(schema) in self._open
        if not isinstance(schema, Mapping) or is_recursive or self._parts > _MOST_PARTS:
            raise _Unsayable
        self._open.add(id(schema))
        keywords = schema.keys() - _SILENT - _ABOUT - {"nullable"}
        about = _joined([about, *self._said_about(schema)])
        if keywords & COMBINED:
            yield from self._combined(schema, keywords, path, about)
        elif keywords & {"enum", "const"}:
            yield from self._options(schema, keywords, path, about)
        else:
            yield from self._typed(schema, keywords, path, about)
        if schema.get("nullable") is True:
            yield "null"
        self._open.remove(id(schema))

    def _said_about(self, schema: Schema) -> Iterator[str]:
        """What a schema says of its values that binds none."""
        yield self._shown(schema.get("description", ""))
        default = schema.get("default")
        if default not in (None, "", [], {}):
            yield f"default {self._shown(default)}"
        examples = [*list_of(schema.get("examples"))]
        if "example" in schema:
            examples.append(schema["example"])
        if examples:
            yield f"for example {', '.join(map(self._shown, examples))}"

    def _shown(self, value: object) -> str:
        """A value in words, on one line."""
        if not isinstance(value, str):
            value = self._dump(value)
        return " ".join(value.split())

    # -- what a schema may be ---------------------------------------------------------------------

    def _combined(
        self, schema: Schema, keywords: AbstractSet[str], path: str, about: str
    ) -> Iterator[str]:
        """A reference or a union: no other keyword may stand beside it."""
        if len(keywords) > 1:
            raise _Unsayable
        (keyword,) = keywords
        members = list_of(schema[keyword])
        if keyword == "$ref":
            members = [self._referred(schema["$ref"])]
        if not members or (keyword == "allOf" and len(members) > 1):
            raise _Unsayable
        # Not null, since it has no placeholder for what is said about all of them.
        for member in sorted(members, key=lambda member: member == _NULL):
            yield from self._alternatives(member, path, about)
            about = ""

    def _referred(self, reference: object) -> object:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise _Unsayable
        try:
            return target_of(self._root, reference)
        except LookupError:
            raise _Unsayable from None

    def _options(
        self, schema: Schema, keywords: AbstractSet[str], path: str, about: str
    ) -> Iterator[str]:
        options = list_of(schema.get("enum", [schema.get("const")]))
        types = _types(schema)
        if types:
            options = [
                option
                for option in options
                if any(has_type(option, name) for name in types)
            ]
        if not options or not all(map(_is_scalar, options)):
            raise _Unsayable
        if keywords - {"type"} not in ({"enum"}, {"const"}):
            raise _Unsayable
        texts = [option for option in options if isinstance(option, str)]
        numbers = [option for option in options if _is_number(option)]
        self.options.update(texts)
        listed: list[object] = []
        if len(texts) > 1 and all(map(_PLAIN.fullmatch, texts)):
            listed += texts
            yield f'"{self._placeholder(["one of: " + ", ".join(texts)], about, "; ")}"'
            about = ""
        if len(numbers) > 1:
            listed += numbers
            words = ", ".join(map(self._dump, numbers))
            yield self._placeholder([f"one of: {words}"], about, "; ")
            about = ""
        self._note(path, about)
        for option in options:
            is_listed = any(option is other for other in listed)
            if not is_listed:
                yield self._json(option)

    def _typed(
        self, schema: Schema, keywords: AbstractSet[str], path: str, about: str
    ) -> Iterator[str]:
        types = _types(schema)
        if not keywords:
            yield self._placeholder(["any value"], about)
            return
        if not types:  # it need not be said
            types = [name for name in [implied_type(schema)] if name]
        said = {"type"}.union(*(_OF_TYPE[name] for name in types))
        if not types or not said >= {*keywords}:
            raise _Unsayable
        for name in types:
            match name:
                case "null":
                    self._note(path, about)
                    yield "null"
                case "boolean":
                    yield self._placeholder(["true or false"], about)
                case "integer" | "number":
                    words = [name, *_format(schema), *self._bounds(schema)]
                    yield self._placeholder(words, about)
                case "string":
                    yield self._string(schema, about)
                case "array":
                    yield self._array(schema, path, about)
                case _:
                    yield self._object(schema, path, about)
            about = ""

    def _string(self, schema: Schema, about: str) -> str:
        words = ["string", *_format(schema)]
        words += _count(schema, "Length", "characters")
        if "pattern" in schema:
            words.append(f"pattern {_text(schema['pattern'])}")
        return f'"{self._placeholder(words, about)}"'

    def _bounds(self, schema: Schema) -> Iterator[str]:
        limits = {
            word: self._dump(_number(schema[word]))
            for word in _NUMERIC - {"format"}
            if word in schema
        }
        if "minimum" in limits and "maximum" in limits:
            yield f"{limits.pop('minimum')} to {limits.pop('maximum')}"
        for word, words in _BOUNDS.items():
            if word in limits:
                yield f"{words} {limits[word]}"

    def _array(self, schema: Schema, path: str, about: str) -> str:
        counts = [*_count(schema, "Items", "items")]
        match schema.get("uniqueItems", False):
            case True:
                counts.append("no item twice")
            case False:
                pass
            case _:
                raise _Unsayable
        said = ", ".join(counts)
        if self._counts.setdefault(path, said) != said:  # of another list in its place
            raise _Unsayable
        self._note(path, about)
        return f"[{self.value(schema.get('items', True), f'{path}[]')}, ...]"

    def _object(self, schema: Schema, path: str, about: str) -> str:
        self._note(path, about)
        fields = schema.get("properties", {})
        required = names_in(schema.get("required"))
        if not isinstance(fields, Mapping) or not fields.keys() >= {*required}:
            raise _Unsayable
        texts = []
        for name, part in fields.items():
            place = self._place(path, name)
            is_required = name in required
            if self._required.setdefault(place, is_required) != is_required:
                raise _Unsayable
            texts.append(f"{self._json(name)}: {self.value(part, place)}")
        more = schema.get("additionalProperties", not fields)
        if more is not False:
            texts.append(f'"<key>": {self.value(more, f"{path}{{}}")}, ...')
        return f"{{{', '.join(texts)}}}"

    # -- how it is written ------------------------------------------------------------------------

    def _json(self, value: object) -> str:
        """A value as it is to be written."""
        return _escaped(self._dump(value))

    def _placeholder(self, words: Iterable[str], about: str, sep: str = ": ") -> str:
        said = ", ".join(words)
        if about:
            said += f"{sep}{about}"
        return f"<{self._json(said)[1:-1]}>"

    def _note(self, path: str, about: str) -> None:
        known = self._about.setdefault(path, [])
        if about not in known:
            known.append(about)

    def _place(self, path: str, key: object) -> str:
        """The path of a field, as a note names it."""
        name = _text(key)
        if not _PLAIN_KEY.fullmatch(name):
            name = self._json(name)
        return f"{path}.{name}" if path else name


_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
    "multipleOf": "a multiple of",
}


def _types(schema: Schema) -> list[str]:
    """The types that a schema names, null as the last of them."""
    types = names_in(schema.get("type"))
    if "type" in schema and not types:
        raise _Unsayable
    if not {*types} <= _OF_TYPE.keys():
        raise _Unsayable
    return sorted(types, key=lambda name: name == "null")


def _count(schema: Schema, what: str, unit: str) -> Iterator[str]:
    """How many characters or items there are."""
    least = schema.get(f"min{what}")
    most = schema.get(f"max{what}")
    for bound in (least, most):
        if bound is not None and not has_type(bound, "integer"):
            raise _Unsayable
    if 1 in (least, most) and most in (None, 1):
        unit = unit.removesuffix("s")
    if least is None and most is None:
        return
    if least is None:
        yield f"at most {most} {unit}"
    elif most is None:
        yield f"at least {least} {unit}"
    elif least == most:
        yield f"{most} {unit}"
    else:
        yield f"{least} to {most} {unit}"


def _format(schema: Schema) -> Iterator[str]:
    if "format" in schema:
        word = _text(schema["format"])
        if not _WORD.fullmatch(word):
            raise _Unsayable
        yield word


def _number(value: object) -> object:
    if not _is_number(value):
        raise _Unsayable
    return value


def _is_number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return math.isfinite(value)


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, (str, bool)) or _is_number(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise _Unsayable
    return value


def _joined(texts: Iterable[str]) -> str:
    return "; ".join(text for text in dict.fromkeys(texts) if text)


def _escaped(text: str) -> str:
    return text.replace("<", "\\u003c").replace(">", "\\u003e")
