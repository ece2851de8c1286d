"""Tools and structured output on a chat model: what `bind_tools` and its relatives return.

Nothing is sent here. What a binding carries is read again at each call (`_chat/options.py`),
rendered into the prompt (`_toolcalls/render.py`) and looked for in the answer (`_chat/expect.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any, Literal

# At run time, too: RunnableWithFallbacks works out the type hints of what it passes on.
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable, RunnableMap, RunnablePassthrough

from .._privacy import PrivateChatModel, private, shown
from ..errors import SvcRequestError
from .options import answer_words
from .structured import StructuredParser, format_for
from .tools import ToolLike, ToolList


class Binding(PrivateChatModel):
    """A chat model that takes tools and schemas as one that knows them natively."""

    def bind_tools(
        self,
        tools: Sequence[ToolLike],
        *,
        tool_choice: str | bool | dict[str, Any] | None = None,
        parallel_tool_calls: bool | None = None,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """This model with tools to call, as a model that knows tools natively.

        The endpoint knows none: they are described in the prompt, and calls are read from the
        answer's text. What a model writes wrongly becomes `invalid_tool_calls`.

        Args:
            tools: Functions with docstrings, Pydantic classes, TypedDicts, `BaseTool`s or dicts.
            tool_choice: "auto" (also None and False), "any" (also "required" and True), "none",
                or the name of a tool. Where a call is required and none comes, the model is asked
                once more, within the same run.
            parallel_tool_calls: False keeps the first call of an answer.
            strict: Accepted for the sake of code written for other models; calls are always
                checked against their schemas.
            **kwargs: Settings for every call of the binding.

        Raises:
            SvcRequestError: A tool or the choice cannot be read.
            SvcOutputError: From a call, when a required call did not come.
        """
        del strict
        listed = ToolList(tools)
        answer_words({"tools": listed, "tool_choice": tool_choice})  # refused now, not later
        if tool_choice is not None:
            kwargs["tool_choice"] = tool_choice
        if parallel_tool_calls is not None:
            kwargs["parallel_tool_calls"] = parallel_tool_calls
        return self.bind(tools=listed, **kwargs)

    def with_structured_output(
        self,
        schema: dict[str, Any] | type | None = None,
        *,
        include_raw: bool = False,
        method: Literal["json_schema", "function_calling", "json_mode"] = "json_schema",
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, Any]:
        """This model with answers as objects: instances of a Pydantic class, or dicts.

        An answer is checked within the run, and asked for again with the exact problems at most
        `max_repairs` times.

        Args:
            schema: A Pydantic class (v2 or v1), a TypedDict, a JSON schema with a title or an
                OpenAI function. With "json_mode" it may be None: any JSON object will do.
            include_raw: Give `{"raw": message, "parsed": object, "parsing_error": error}` and
                raise nothing for an answer that does not fit.
            method: "json_schema" puts the schema into the prompt; "function_calling" has the
                model call a function with it; "json_mode" leaves the wording to your prompt.
            strict: Accepted for the sake of code written for other models; answers are always
                checked.
            **kwargs: Settings for every call.

        Raises:
            SvcRequestError: The schema or the method cannot be read.
            SvcOutputError: From a call, when no answer fits the schema.
        """
        if method not in {"json_schema", "function_calling", "json_mode"}:
            raise SvcRequestError(
                f"method must be json_schema, function_calling or json_mode, not {shown(method)}"
            )
        if schema is None and method != "json_mode":
            raise SvcRequestError(f"The method {method} needs a schema")
        form = format_for(schema, json_mode=method == "json_mode")
        if schema is not None:
            kwargs["ls_structured_output_format"] = {
                "kwargs": {"method": method, "strict": strict},
                "schema": schema,
            }
        parser = StructuredParser(response_format=form)
        if method == "function_calling":
            tools = ToolList([schema]).with_object_arguments()  # type: ignore[list-item]  # checked above
            parser = StructuredParser(response_format=form, tool=tools.names[0])
            kwargs |= {"tools": tools, "tool_choice": tools.names[0]}
        model = self.bind(response_format=form, **kwargs)
        chain = _parsed(model, parser, include_raw=include_raw)
        return chain if self.privacy is None else private(chain)


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
