"""LangChain's ways of naming tools and choices -> one `ToolRequest` of functions to the model.

An offer is made once, by `bind_tools`, and rides on the binding: its instructions are rendered
once however many calls follow, and however many tools there are.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from inspect import cleandoc, isfunction
from typing import Any, get_args, get_type_hints

from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, PydanticUserError, TypeAdapter

from .._base.safe_errors import safe_repr
from .._calls import FORMATS, Tool, ToolFormat, choice_line, marks_line, tools_block
from .._service import did_you_mean
from ..errors import SvcRequestError
from .parts import ToolLike

_CHOICES = {None: "auto", False: "auto", True: "any", "auto": "auto", "any": "any"}
_CHOICES |= {"required": "any", "none": "none"}


class ToolList(list[dict[str, Any]]):
    """Tools in the form that LangChain traces, which remembers what was rendered from it."""

    def __init__(self, tools: Sequence[ToolLike] = ()) -> None:
        if isinstance(tools, (str, Mapping)) or not isinstance(tools, Iterable):
            raise SvcRequestError(f"tools must be a list, not {safe_repr(tools)}")
        super().__init__(map(_format, tools))
        self._blocks: dict[ToolFormat, str] = {}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The functions' names, in order."""
        return tuple(tool["function"]["name"] for tool in self)

    @cached_property
    def parsed(self) -> tuple[Tool, ...]:
        """The functions as the parser of calls wants them."""
        return tuple(
            Tool(tool["function"]["name"], tool["function"].get("parameters") or {})
            for tool in self
        )

    @cached_property
    def descriptions(self) -> str:
        """What their authors wrote to the model."""
        return "\n".join(_descriptions(self))

    def block(self, tool_format: ToolFormat) -> str:
        """The instructions that offer these tools; rendered at the first call."""
        if tool_format not in self._blocks:
            functions = [tool["function"] for tool in self]
            self._blocks[tool_format] = tools_block(functions, FORMATS[tool_format])
        return self._blocks[tool_format]


def _descriptions(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if isinstance(text := value.get("description"), str):
            yield text
        value = [*value.values()]
    if isinstance(value, list):
        for one in value:
            yield from _descriptions(one)


def _format(tool: ToolLike) -> dict[str, Any]:
    if isinstance(tool, dict) and isinstance(tool.get("type"), str):
        if tool["type"] == "function" and "function" in tool:
            return tool
        if "name" in tool and tool.keys() & {"parameters", "input_schema"}:
            # The flat forms of OpenAI's newer interface and of Anthropic's.
            tool = {
                key: value
                for key, value in tool.items()
                if key not in {"type", "strict"}
            }
        elif tool["type"] != "object":
            raise SvcRequestError(
                f"bind_tools cannot offer {safe_repr(tool['type'])}: it is a tool that runs on the "
                "server of another provider, and this service has none. Pass a function or a "
                "BaseTool that does the same"
            )
    try:
        made = convert_to_openai_tool(tool)
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        NameError,
        RuntimeError,
    ) as error:
        refuse_unwritable(tool)
        raise SvcRequestError(
            f"{safe_repr(tool)} is not a tool: pass a function with a docstring, a Pydantic class, "
            "a TypedDict, a BaseTool, or a dict with name, description and parameters"
        ) from error
    # Python 3.13 unindents docstrings and older ones do not: the prompt is to be the same.
    function = made["function"]
    if isinstance(function.get("description"), str):
        function["description"] = cleandoc(function["description"])
    if isfunction(tool) and not function.get("description"):
        _warn_of(function["name"])
    return made


@lru_cache(maxsize=1000)
def _warn_of(name: str) -> None:
    """Say once that a model is told nothing but a function's name."""
    warnings.warn(
        f"The function {name} has no docstring: the model knows only its name and parameters",
        stacklevel=2,
    )


def refuse_unwritable(kind: Any) -> None:
    """Raise if a class, a function or a tool has a field that no JSON Schema can describe."""
    for one in (getattr(kind, "args_schema", None) or kind, *get_args(kind)):
        if not getattr(one, "__pydantic_complete__", True):
            raise SvcRequestError(
                f"A type is not defined yet: define it, then call {one.__name__}.model_rebuild()"
            ) from None
        hints = _hints(one)
        try:
            for name in hints:
                TypeAdapter(hints[name]).json_schema()
        except PydanticUserError:  # which says the same in a hundred lines
            raise SvcRequestError(
                f"JSON cannot hold the field {name!r} of {one.__name__}: give it another type, "
                "or leave it out"
            ) from None


def _hints(kind: Any) -> dict[str, Any]:
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {name: field.annotation for name, field in kind.model_fields.items()}
    try:
        return get_type_hints(kind) if hasattr(kind, "__name__") else {}
    except NameError as error:
        raise SvcRequestError(
            f"{kind.__name__} uses an undefined type: {error}"
        ) from None
    except TypeError:
        return {}


class ToolRequest:
    """The functions that a call offers to the model, and what it is to do with them."""

    def __init__(
        self,
        tools: Sequence[ToolLike],
        choice: Any = None,
        *,
        parallel: bool | None = None,
    ) -> None:
        self.tools = tools if isinstance(tools, ToolList) else ToolList(tools)
        self.choice = _read_choice(choice, self.tools.names)
        self.parallel = parallel is not False

    @property
    def required(self) -> bool:
        """Whether an answer without a call is none."""
        return self.choice not in {"auto", "none"}

    @property
    def required_name(self) -> str | None:
        """The one function that must be called, if one is named."""
        return self.choice if self.required and self.choice != "any" else None

    def preamble(self, tool_format: ToolFormat, nonce: str) -> str:
        """The instructions that stand before the conversation, whose results carry the nonce."""
        line = choice_line(self.choice, parallel=self.parallel)
        return f"{self.tools.block(tool_format)}\n{line}\n{marks_line(nonce)}"


def _read_choice(choice: Any, names: Sequence[str]) -> str:
    """A choice as LangChain's users write it: auto, any, none or the name of a tool."""
    if isinstance(choice, Mapping):
        inner = choice.get("function", choice)
        named = inner.get("name") if isinstance(inner, Mapping) else None
        choice = named if named is not None else choice.get("type")
    if isinstance(choice, (str, bool, type(None))):
        if choice in names:
            return str(choice)
        if choice in _CHOICES:
            return _CHOICES[choice]
    suggestion = did_you_mean(str(choice), ["auto", "any", "none", *names])
    raise SvcRequestError(
        f"tool_choice {safe_repr(choice)} is neither a choice nor a tool; {suggestion}"
    )


def tool_request(given: Mapping[str, Any]) -> ToolRequest | None:
    """The offer of a call's `tools`, `tool_choice` and `parallel_tool_calls`, if it makes one."""
    if not given.get("tools"):
        return None
    parallel = given.get("parallel_tool_calls")
    made = ToolRequest(given["tools"], given.get("tool_choice"), parallel=parallel)
    return None if made.choice == "none" else made
