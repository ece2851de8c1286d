"""Types that users write -> the JSON Schemas of their values, all of them by Pydantic.

TypedDicts are read by LangChain's convention, too: `Annotated[int, 3, "how many"]` is a field that
may be left out, with its default and its description; `...` stands for no default.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from functools import reduce
from inspect import isclass
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    Required,
    TypeGuard,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import BaseModel, Field, PydanticUserError, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic.v1 import BaseModel as BaseModelV1
from typing_extensions import ReadOnly, TypedDict, is_typeddict

from ..errors import SvcRequestError

# What LangChain and Pydantic raise for something that has no schema.
NO_SCHEMA = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    NameError,
    RuntimeError,
)

_QUALIFIERS = (Required, NotRequired, ReadOnly)
_OF_CLASS = ("__doc__", "__module__", "__qualname__", "__pydantic_config__")

_Class = TypeVar("_Class")


class _WithoutTitles(GenerateJsonSchema):
    """Pydantic makes a title of each field's name, which says nothing more."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        del schema
        return False


def is_subclass(kind: object, base: type[_Class]) -> TypeGuard[type[_Class]]:
    """Whether it is a class, and one of these."""
    return isinstance(kind, type) and issubclass(kind, base)


def schema_of_type(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a type's values; raises what `NO_SCHEMA` lists where there is none."""
    if is_subclass(kind, BaseModelV1):
        return kind.schema()
    schema = TypeAdapter(readable(kind)).json_schema(schema_generator=_WithoutTitles)
    if "$ref" in schema:  # a class that refers to itself
        schema = {"title": getattr(kind, "__name__", "answer"), **schema}
    return schema


def readable(kind: Any) -> Any:
    """The type as Pydantic can read it: each TypedDict in it is one of `typing_extensions`.

    Before Python 3.12 Pydantic refuses those of `typing`.
    """
    return _readable(kind, {})


def _readable(kind: Any, copies: dict[Any, Any]) -> Any:
    if is_typeddict(kind):
        if kind not in copies:
            copies[kind] = TypedDict(kind.__name__, {})  # type: ignore[operator]  # made at run time
            _fill(copies[kind], kind, copies)
        return copies[kind]
    origin = get_origin(kind)
    parts = get_args(kind)
    if origin is Annotated:
        return Annotated[(_readable(parts[0], copies), *parts[1:])]
    if origin is None or origin is Literal:
        return kind
    read = tuple(_readable(part, copies) for part in parts)
    if all(map(operator.is_, read, parts)):
        return kind
    if origin is UnionType:
        return reduce(operator.or_, read)
    return origin[read]


def _fill(copy: Any, kind: Any, copies: dict[Any, Any]) -> None:
    """Give a TypedDict without fields all that another one has."""
    for name in _OF_CLASS:
        if hasattr(kind, name):
            setattr(copy, name, getattr(kind, name))
    copy.__annotations__ = {
        name: _field(hint, name in kind.__required_keys__, copies)
        for name, hint in get_type_hints(kind, include_extras=True).items()
    }


def _field(hint: Any, required: bool, copies: dict[Any, Any]) -> Any:  # noqa: FBT001  # one caller
    """The annotation of a field that says whether it is required, its default and description."""
    metadata: list[Any] = []
    while (origin := get_origin(hint)) in (Annotated, *_QUALIFIERS):
        hint, *around = get_args(hint)
        metadata = [*around, *metadata]
        if origin in (Required, NotRequired):
            required = origin is Required
    notes: dict[str, Any] = {}
    if metadata and _is_default(metadata[0]):
        default, *metadata = metadata
        if default is not ...:
            required = False
            notes["json_schema_extra"] = {"default": default}
        if metadata and isinstance(metadata[0], str):
            notes["description"], *metadata = metadata
    annotation = _readable(hint, copies)
    for note in [*metadata, Field(**notes)]:
        annotation = Annotated[annotation, note]
    return Required[annotation] if required else NotRequired[annotation]


def _is_default(value: object) -> bool:
    """Whether it can be the default of a JSON value; anything else is for Pydantic or others."""
    return value is ... or isinstance(value, (str, int, float, list, dict, type(None)))


# -- what has no schema ---------------------------------------------------------------------------


def refuse_unwritable(kind: object) -> None:
    """Raise if a class, a function or a tool has a field that no JSON Schema can describe."""
    for part in _parts(getattr(kind, "args_schema", None) or kind):
        part_name = getattr(part, "__name__", "")
        if not getattr(part, "__pydantic_complete__", True):
            raise SvcRequestError(
                f"A type is not defined yet: define it, then call {part_name}.model_rebuild()"
            ) from None
        hints = _hints(part)
        try:
            for name in hints:
                TypeAdapter(readable(hints[name])).json_schema()
        except PydanticUserError:  # which says the same in a hundred lines
            raise SvcRequestError(
                f"JSON cannot hold the field {name!r} of {part_name}: give it another type, "
                "or leave it out"
            ) from None
        refuse_plain_class(part)


def refuse_plain_class(kind: object) -> None:
    """Raise if a class declares fields that nobody can give it."""
    if not isclass(kind) or is_typeddict(kind) or not _hints(kind):
        return
    if (kind.__init__, kind.__new__) == (object.__init__, object.__new__):
        raise SvcRequestError(
            f"{kind.__name__} declares fields and cannot be made of them: write "
            f"class {kind.__name__}(BaseModel), with BaseModel from pydantic, or put @dataclass "
            "above it"
        ) from None


def _parts(kind: object) -> Iterator[object]:
    """The type, and all types that it is written with."""
    yield kind
    for part in get_args(kind):
        yield from _parts(part)


def _hints(kind: object) -> dict[str, Any]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {name: field.annotation for name, field in kind.model_fields.items()}
    name = getattr(kind, "__name__", None)
    if name is None:
        return {}
    try:
        return get_type_hints(kind)
    except NameError as error:
        raise SvcRequestError(f"{name} uses an undefined type: {error}") from None
    except TypeError:
        return {}
