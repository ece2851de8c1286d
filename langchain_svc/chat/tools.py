"""Tools and choices in LangChain's various forms -> one `ToolRequest`; the schemas of users' types.

`bind_tools` makes the request once, and the binding carries it: its instructions are rendered
once, however many calls follow and however many tools there are.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property, lru_cache, reduce
from inspect import cleandoc, isclass, isfunction
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NotRequired,
    Required,
    TypeGuard,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from langchain_core.tools import BaseTool, BaseToolkit
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, Field, PydanticUserError, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic.v1 import BaseModel as BaseModelV1
from typing_extensions import ReadOnly, TypedDict, is_typeddict

from .._base.safe_errors import safe_repr
from .._calls import Format, PastCall, choice_text, offer_text, required_arguments
from .._calls.reading import Tool
from .._json import TYPE_NAMES, CompiledSchema, check_schema
from .._settings import did_you_mean
from ..errors import SvcRequestError
from .readers import ToolLike

# -- schemas ---------------------------------------------------------------------------------------
# Types that users write -> the JSON Schemas of their values, all of them by Pydantic.
#
# TypedDicts are read by LangChain's convention, too: `Annotated[int, 3, "how many"]` is a field
# that may be left out, with its default and its description; `...` stands for no default.

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


# -- tools -----------------------------------------------------------------------------------------


class ToolChoice(NamedTuple):
    """What a model is to do with the tools on offer."""

    mode: Literal["auto", "any", "none"]
    name: str | None = None  # of the tool that must be called


_AUTO = ToolChoice("auto")
_ANY = ToolChoice("any")
_CHOICES: Mapping[object, ToolChoice] = {
    None: _AUTO,
    False: _AUTO,
    True: _ANY,
    "auto": _AUTO,
    "any": _ANY,
    "required": _ANY,
    "none": ToolChoice("none"),
}


class ToolList(list[dict[str, Any]]):
    """Tools in the form that LangChain traces, with their instructions once rendered."""

    def __init__(self, tools: Sequence[ToolLike] = ()) -> None:
        _refuse_toolkit(tools)
        if isinstance(tools, (str, Mapping, BaseTool)) or not isinstance(
            tools, Iterable
        ):
            raise SvcRequestError(
                f"tools must be a list, not {safe_repr(tools)}: write [...] around a single tool"
            )
        super().__init__(map(_to_openai, tools))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The functions' names, in order."""
        return tuple(tool["function"]["name"] for tool in self)

    @cached_property
    def parsed(self) -> tuple[Tool, ...]:
        """The functions as the parser of calls takes them.

        Raises:
            SvcRequestError: Two of them have one name.
        """
        _refuse_twins(self.names)
        functions = [tool["function"] for tool in self]
        return tuple(
            Tool(function["name"], function.get("parameters") or {})
            for function in functions
        )

    @cached_property
    def descriptions(self) -> str:
        """All descriptions in the tools and their parameters, which the model reads, too."""
        return "\n".join(_descriptions(self))

    @cached_property
    def offer(self) -> str:
        """The instructions that offer these tools."""
        return offer_text([tool["function"] for tool in self])

    def form(self, name: str | None, format_: Format) -> str:
        """A call of the tool of that name, or of the first, with a placeholder for each value."""
        at = 0 if name is None else self.names.index(name)
        function = self[at]["function"]
        return format_.call(PastCall(function["name"], required_arguments(function)))


def _refuse_twins(names: Sequence[str]) -> None:
    """Raise if two tools have one name: nobody could tell which of them a call means."""
    seen = set[str]()
    for name in names:
        if name in seen:
            raise SvcRequestError(
                f"two tools are called {safe_repr(name)}: a model could not say which one it "
                "means, so give one of them another name"
            )
        seen.add(name)


def _descriptions(schema: object) -> Iterator[str]:
    if isinstance(schema, Mapping):
        description = schema.get("description")
        if isinstance(description, str):
            yield description
        schema = [*schema.values()]
    if isinstance(schema, list):
        for inner in schema:
            yield from _descriptions(inner)


def _refuse_toolkit(tools: object) -> None:
    """Raise if a toolkit stands where its tools belong."""
    if isinstance(tools, BaseToolkit):
        raise SvcRequestError(
            f"{safe_repr(tools)} is not a tool but has some: pass toolkit.get_tools()"
        )


def _to_openai(tool: ToolLike) -> dict[str, Any]:
    if not isinstance(tool, dict):
        return _converted(tool)
    _refuse_foreign(tool)
    function = read_function(tool)
    if not isinstance(function["name"], str):
        raise SvcRequestError(
            f"{safe_repr(tool)} is not a tool, since it has no name: write 'name', or the 'title' "
            "of a schema"
        )
    types = CompiledSchema(function.get("parameters")).types
    if types and "object" not in types:
        raise SvcRequestError(
            f"The parameters of the function {function['name']!r} are not an object, as arguments "
            'are: write {"type": "object", "properties": {...}} around them'
        )
    if "function" in tool and tool.get("type") == "function":
        return tool
    return {"type": "function", "function": function}


def _refuse_foreign(tool: dict[str, Any]) -> None:
    """Raise if a tool runs on the server of another provider."""
    kind = tool.get("type")
    has_parameters = "name" in tool and tool.keys() & {"parameters", "input_schema"}
    if isinstance(kind, str) and kind not in _TYPES_OF_TOOLS and not has_parameters:
        raise SvcRequestError(
            f"bind_tools cannot offer {safe_repr(kind)}: it is a tool that runs on the server of "
            "another provider, and this service has none. Pass a function or a BaseTool that does "
            "the same"
        )


def _converted(tool: ToolLike) -> dict[str, Any]:
    _refuse_toolkit(tool)
    refuse_plain_class(tool)
    try:
        if is_typeddict(tool):
            tool = schema_of_type(tool)
        converted = convert_to_openai_tool(tool)
    except NO_SCHEMA as error:
        refuse_unwritable(tool)
        raise SvcRequestError(
            f"{safe_repr(tool)} is not a tool: pass a function with a docstring, a Pydantic class, "
            "a TypedDict, a BaseTool, or a dict with name, description and parameters"
        ) from error
    # Python 3.13 unindents docstrings and older ones do not: the prompt is to be the same.
    function = converted["function"]
    if isinstance(function.get("description"), str):
        function["description"] = cleandoc(function["description"])
    if isfunction(tool) and not function.get("description"):
        _warn_of_missing_docstring(function["name"])
    return converted


@lru_cache(maxsize=1000)
def _warn_of_missing_docstring(name: str) -> None:
    """Warn once of each function."""
    warnings.warn(
        f"The function {name} has no docstring: the model knows only its name and parameters",
        stacklevel=2,
    )


_TYPES_OF_TOOLS = frozenset({"function", *TYPE_NAMES})
_HEAD = ("name", "title", "description")
# The keys of a function that takes nothing.
_FUNCTION = frozenset({"name", "description", "strict", "parameters", "input_schema"})
# What parameters are called in MCP's listings, in LangChain's tools and by people.
_PARAMETERS_ELSEWHERE = frozenset(
    {
        "args",
        "args_schema",
        "arguments",
        "inputSchema",
        "params",
        "properties",
        "schema",
    }
)


def read_function(written: Mapping[str, Any]) -> dict[str, Any]:
    """The name, the description and the parameters of what somebody wrote as a dict.

    A schema is the parameters of the function that its title names, if it has one. A function may
    have no parameters.

    Raises:
        SvcRequestError: It is neither, or constrains nothing somewhere.
    """
    if "toolSpec" in written:  # Bedrock's form
        written = _converted(written)
    function = written.get("function", written)
    if not isinstance(function, Mapping):
        raise SvcRequestError(f"{safe_repr(function)} is not a function: pass a dict")
    name = function.get("name")
    schema = function.get("parameters") or function.get("input_schema")
    if schema:
        check_schema(schema, f"the function {name!r}")
    elif not (isinstance(name, str) and function.keys() <= _FUNCTION):
        _refuse_other_name(function)
        check_schema(function, f"the schema {function.get('title', 'answer')!r}")
        schema = {key: function[key] for key in function if key not in _HEAD}
        name = function.get("title", name)
    read = {"name": name}
    if isinstance(function.get("description"), str):
        read["description"] = cleandoc(function["description"])
    if schema:
        read["parameters"] = schema
    return read


def _refuse_other_name(function: Mapping[str, Any]) -> None:
    """Raise if the parameters of a function stand under another name."""
    if not isinstance(function.get("name"), str):
        return
    near = get_close_matches("parameters", [*function], n=1, cutoff=0.8)
    for slip in [*near, *function.keys() & _PARAMETERS_ELSEWHERE]:
        if slip != "parameters" and function[slip]:
            raise SvcRequestError(
                f"{slip!r} of the function {function['name']!r} constrains nothing: write "
                "'parameters', a schema of type object"
            )


class ToolRequest:
    """The functions that a call offers to the model, and what it is to do with them.

    Attributes:
        required: Whether the answer must hold a call.
        required_name: The name of the function that must be called, if it must be a certain one.
    """

    def __init__(
        self,
        tools: Sequence[ToolLike],
        choice: object = None,
        *,
        parallel: bool | None = None,
    ) -> None:
        self.tools: ToolList = tools if isinstance(tools, ToolList) else ToolList(tools)
        self.choice: ToolChoice = _read_choice(choice, self.tools.names)
        self.required: bool = self.choice.mode == "any"
        self.required_name: str | None = self.choice.name
        self.parallel: bool = parallel is not False

    def preamble(self, format_: Format) -> str:
        """The instructions before the conversation, which end with the form of a call."""
        return f"{self.tools.offer}\n{self.instruction(format_)}"

    def instruction(self, format_: Format) -> str:
        """What to do with the tools, and the form of a call."""
        return choice_text(
            self.tools.form(self.required_name, format_),
            format_,
            name=self.required_name,
            required=self.required,
            parallel=self.parallel,
        )


def _read_choice(choice: object, names: Sequence[str]) -> ToolChoice:
    """A choice as LangChain's users write it; a text that names a tool means that tool first."""
    if isinstance(choice, Mapping):
        function = choice.get("function", choice)
        name = function.get("name") if isinstance(function, Mapping) else None
        if name is None:
            names = ()  # Anthropic's {"type": "none"} names no tool, whatever the tools' names are
            name = choice.get("type")
        choice = name
    if isinstance(choice, str) and choice in names:
        return ToolChoice("any", choice)
    if isinstance(choice, (str, bool, type(None))) and choice in _CHOICES:
        return _CHOICES[choice]
    suggestion = did_you_mean(str(choice), ["auto", "any", "none", *names])
    raise SvcRequestError(
        f"tool_choice {safe_repr(choice)} is neither a choice nor a tool; {suggestion}"
    )


def tool_request(options: Mapping[str, Any]) -> ToolRequest | None:
    """The request of a call's `tools`, `tool_choice` and `parallel_tool_calls`, if it has tools."""
    if not options.get("tools"):
        return None
    request = ToolRequest(
        options["tools"],
        options.get("tool_choice"),
        parallel=options.get("parallel_tool_calls"),
    )
    return None if request.choice.mode == "none" else request
