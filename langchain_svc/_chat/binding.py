"""Tools and structured output on a chat model: what `bind_tools` and its relatives bind.

Nothing is sent here. What a binding carries is read again at each call (`_chat/options.py`),
rendered into the prompt (`_toolcalls/render.py`) and looked for in the answer (`_chat/expect.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableMap, RunnablePassthrough

from .._safe_errors import safe_repr
from ..errors import SvcRequestError
from .options import read_answer_options
from .parts import ToolLike
from .structured import StructuredParser, format_for
from .tools import ToolList


def tool_parameters(
    tools: Sequence[ToolLike],
    *,
    tool_choice: str | bool | dict[str, Any] | None,
    parallel_tool_calls: bool | None,
) -> dict[str, Any]:
    """The parameters of a call that offers tools; refused now, and not at the call."""
    parameters: dict[str, Any] = {"tools": ToolList(tools), "tool_choice": tool_choice}
    read_answer_options(parameters)
    parameters["parallel_tool_calls"] = parallel_tool_calls
    return {name: value for name, value in parameters.items() if value is not None}


def structured_output(
    model: BaseChatModel,
    schema: dict[str, Any] | type | None,
    parameters: dict[str, Any],
    *,
    include_raw: bool,
    method: str,
    strict: bool | None,
) -> Runnable[LanguageModelInput, Any]:
    """A model that is asked for objects, and the parser behind it."""
    if method not in {"json_schema", "function_calling", "json_mode"}:
        raise SvcRequestError(
            f"method must be json_schema, function_calling or json_mode, not {safe_repr(method)}"
        )
    if schema is None and method != "json_mode":
        raise SvcRequestError(f"The method {method} needs a schema")
    form = format_for(schema, json_mode=method == "json_mode")
    if schema is not None:
        parameters["ls_structured_output_format"] = {
            "kwargs": {"method": method, "strict": strict},
            "schema": schema,
        }
    parser = StructuredParser(response_format=form)
    if method == "function_calling":
        tools = ToolList([schema]).with_object_arguments()  # type: ignore[list-item]  # checked above
        parser = StructuredParser(response_format=form, tool=tools.names[0])
        parameters |= {"tools": tools, "tool_choice": tools.names[0]}
    return _parsed(model.bind(response_format=form, **parameters), parser, include_raw=include_raw)


def _parsed(
    model: Runnable[LanguageModelInput, AIMessage], parser: StructuredParser, *, include_raw: bool
) -> Runnable[LanguageModelInput, Any]:
    """A model's answers as objects, or as the raw message beside them."""
    if not include_raw:
        return model | parser
    parsed = RunnablePassthrough.assign(
        parsed=itemgetter("raw") | parser, parsing_error=lambda _: None
    )
    unparsed = RunnablePassthrough.assign(parsed=lambda _: None, parsing_error=_parsing_error)
    return RunnableMap(raw=model) | parsed.with_fallbacks([unparsed], exception_key="parsing_error")


def _parsing_error(found: dict[str, Any]) -> BaseException:
    """The error to give back, without frames: they would hold the conversation while it is kept."""
    error: BaseException = found["parsing_error"]
    behind: BaseException | None = error
    while behind is not None:
        behind.__traceback__ = None
        behind = behind.__cause__ or behind.__context__
    return error
