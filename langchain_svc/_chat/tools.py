"""LangChain's ways of naming tools and choices -> one `ToolRequest` of functions to the model.

An offer is made once, by `bind_tools`, and rides on the binding: its instructions are rendered
once however many calls follow, and however many tools there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from inspect import cleandoc
from typing import Any

from langchain_core.utils.function_calling import convert_to_openai_tool

from .._safe_errors import safe_repr
from .._service import did_you_mean
from .._toolcalls import FORMATS, Tool, ToolFormat, choice_line, marks_line, tools_block
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

    def with_object_arguments(self) -> ToolList:
        """The same, where anything but an object (a list, a number) is an argument of its own."""
        for tool in self:
            schema = tool["function"].get("parameters") or {}
            if schema.get("type", "object") != "object":
                defs = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
                wrapped = {
                    "type": "object",
                    "properties": {"answer": schema},
                    "required": ["answer"],
                }
                tool["function"] = {**tool["function"], "parameters": wrapped | defs}
        return self

    @cached_property
    def _blocks(self) -> dict[ToolFormat, str]:
        return {}

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
        value = value.values()
    elif not isinstance(value, list):
        return
    for one in value:
        yield from _descriptions(one)


def _format(tool: ToolLike) -> dict[str, Any]:
    if isinstance(tool, dict) and isinstance(tool.get("type"), str):
        if tool["type"] == "function" and "function" in tool:
            return tool
        if "name" in tool and tool.keys() & {"parameters", "input_schema"}:
            # The flat forms of OpenAI's newer interface and of Anthropic's.
            tool = {key: value for key, value in tool.items() if key not in {"type", "strict"}}
        elif tool["type"] != "object":
            raise SvcRequestError(
                f"bind_tools cannot offer {safe_repr(tool['type'])}: it is a tool that runs on the "
                "server of another provider, and this service has none. Pass a function or a "
                "BaseTool that does the same"
            )
    try:
        made = convert_to_openai_tool(tool)
    except (ValueError, TypeError, KeyError) as error:
        raise SvcRequestError(
            f"{safe_repr(tool)} is not a tool: pass a function with a docstring, a Pydantic class, "
            "a TypedDict, a BaseTool, or a dict with name, description and parameters"
        ) from error
    # Python 3.13 unindents docstrings and older ones do not: the prompt is to be the same.
    function = made["function"]
    if isinstance(function.get("description"), str):
        function["description"] = cleandoc(function["description"])
    return made


class ToolRequest:
    """The functions that a call offers to the model, and what it is to do with them."""

    def __init__(
        self, tools: Sequence[ToolLike], choice: Any = None, *, parallel: bool | None = None
    ) -> None:
        self.tools = tools if isinstance(tools, ToolList) else ToolList(tools)
        self.choice = read_choice(choice, self.tools.names)
        self.parallel = parallel is not False

    @property
    def required(self) -> bool:
        """Whether an answer without a call is none."""
        return self.choice not in {"auto", "none"}

    @property
    def wanted(self) -> str | None:
        """The one function that must be called, if one is named."""
        return self.choice if self.required and self.choice != "any" else None

    def preamble(self, tool_format: ToolFormat, mark: str) -> str:
        """The instructions that stand before the conversation, whose results carry the mark."""
        line = choice_line(self.choice, parallel=self.parallel)
        return f"{self.tools.block(tool_format)}\n{line}\n{marks_line(mark)}"


def read_choice(choice: Any, names: Sequence[str]) -> str:
    """A choice as LangChain's users write it: auto, any, none or the name of a tool.

    Raises:
        SvcRequestError: It is none of these; the error lists them.
    """
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


def tool_request(tools: Any, choice: Any, *, parallel: bool | None) -> ToolRequest | None:
    """The offer of a call's `tools`, `tool_choice` and `parallel_tool_calls`, if it makes one."""
    if not tools:
        return None
    made = ToolRequest(tools, choice, parallel=parallel)
    return None if made.choice == "none" else made
