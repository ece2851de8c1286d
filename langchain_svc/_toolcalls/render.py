"""Tools, calls and results -> the text that a model without native tools reads.

Two formats, behind one small seam: `TAGS`, the wording family that most open models were trained
on, and `FENCED`, JSON in a fence, which some models follow better. A conversation is rendered as
it was asked for: past calls stand in the very form that the instructions demand, and results in
one turn of the user. What a tool returned is data, so delimiters inside it are defused.

The text of a given tool list never changes, and it stands before all that does, so the beginning
of a conversation's prompt is the same in every turn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

ToolFormat = Literal["tags", "fenced"]


@dataclass(frozen=True)
class PastCall:
    """A call that the model made in an earlier turn; `arguments` is text where it was broken."""

    name: str
    arguments: Mapping[str, Any] | str


@dataclass(frozen=True)
class Result:
    """What a tool returned."""

    content: str
    name: str = ""
    id: str = ""
    failed: bool = False


@dataclass(frozen=True)
class Format:
    """How calls are written: the instructions and the two marks around a call's JSON."""

    how: str
    opening: str
    closing: str

    def call(self, call: PastCall) -> str:
        """One call as the model should have written it."""
        arguments = call.arguments
        if isinstance(arguments, str):
            return f"{self.opening}\n{arguments}\n{self.closing}"
        body = dump({"name": call.name, "arguments": arguments})
        return f"{self.opening}\n{body}\n{self.closing}"


_EXAMPLE = '{"name": "<function name>", "arguments": {"<argument name>": "<value>"}}'

TAGS = Format(
    how=(
        "To call a function, write a block of this form, with nothing but JSON inside:\n"
        f"<tool_call>\n{_EXAMPLE}\n</tool_call>"
    ),
    opening="<tool_call>",
    closing="</tool_call>",
)
FENCED = Format(
    how=(
        "To call a function, write a fenced block of this form, with nothing but JSON inside:\n"
        f"```json\n{_EXAMPLE}\n```"
    ),
    opening="```json",
    closing="```",
)
FORMATS: dict[ToolFormat, Format] = {"tags": TAGS, "fenced": FENCED}

_AFTER = (
    "End your turn after the last block: the results come back in <tool_response> blocks, which "
    "only the functions write."
)


def dump(value: Any) -> str:
    """JSON as a prompt shows it: letters stay letters."""
    return json.dumps(value, ensure_ascii=False, default=str)


def tools_block(functions: Sequence[Mapping[str, Any]], format_: Format = TAGS) -> str:
    """The instructions that offer the functions, each `{"name", "description", "parameters"}`."""
    lines = [dump({"type": "function", "function": function}) for function in functions]
    return "\n".join(
        [
            "You can call functions. Each line between the tools tags describes one in JSON:",
            "<tools>",
            *lines,
            "</tools>",
            format_.how,
            _AFTER,
        ]
    )


def choice_line(choice: str, *, parallel: bool = True) -> str:
    """What the model is to do with the functions: `choice` is auto, any or a function's name."""
    if choice == "auto":
        line = "Call a function only where it is needed; otherwise answer in plain text."
    elif choice == "any":
        line = "You must call at least one function now; do not answer in plain text."
    else:
        line = f"You must call the function {choice} now; do not answer in plain text."
    count = (
        "Write one block for each call if you need several."
        if parallel
        else "Call at most one function in a turn."
    )
    return f"{line} {count}"


def calls_text(content: str, calls: Sequence[PastCall], format_: Format = TAGS) -> str:
    """An earlier turn of the assistant: its prose and its calls."""
    return "\n".join([*([content] if content else []), *map(format_.call, calls)])


def results_text(results: Sequence[Result]) -> str:
    """The results of one round of calls, for one turn of the user."""
    several = len(results) > 1
    return "\n".join(_result(result, several=several) for result in results)


def _result(result: Result, *, several: bool) -> str:
    words = ""
    if several:
        words = "".join(
            f' {name}="{_attribute(value)}"'
            for name, value in (("name", result.name), ("id", result.id))
            if value
        )
    if result.failed:
        words += ' status="error"'
    return f"<tool_response{words}>\n{defuse(result.content)}\n</tool_response>"


def _attribute(value: str) -> str:
    return re.sub(r'[<>"\s]+', "_", value)


_DELIMITER = re.compile(r"<(?=/?(?:tool_response|tool_call|tools)\b)", re.IGNORECASE)


def defuse(text: str) -> str:
    """Text with our delimiters made harmless: what a tool returns must not speak as a turn."""
    return _DELIMITER.sub("&lt;", text)
