"""The tools that a prompt offers, the wrapper it wants calls in, and how much it insists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from langchain_svc.sandbox.engine._jsontext import Found, Json, dump, json_values, without
from langchain_svc.sandbox.engine._words import any_of, sentences

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SCHEMA_KEYS = ("parameters", "input_schema", "args_schema", "inputSchema")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "input")
_BETWEEN_TOOLS = re.compile(r"[\s,*-]*(?:\d+\.\s*)?")
_WIDEST_GAP = 12
_ASKS_FOR_CALLS = re.compile(r"\b(?:calls?|calling|invoke|tool_calls?)\b|<tools?\b", re.IGNORECASE)


@dataclass(frozen=True)
class Tool:
    """One offered tool, with its parameters as a JSON schema."""

    name: str
    description: str
    parameters: dict[str, Json]


@dataclass(frozen=True)
class Call:
    """One call of a tool, made before or about to be made."""

    name: str
    arguments: dict[str, Json]


@dataclass(frozen=True)
class Wrapper:
    """How the prompt wants a call written: in a tag, or (with no tag) in a fence."""

    tag: str = "tool_call"
    arguments_key: str = "arguments"
    as_list: bool = False


@dataclass(frozen=True)
class Demand:
    """What the instructions say about calling: must, must not, which one, how many.

    A question may require a call too ("Use the tool."), but only the instructions insist on one
    in every turn.
    """

    required: bool = False
    insists: bool = False
    forbidden: bool = False
    name: str = ""
    single: bool = False


# --- Tools ---------------------------------------------------------------------------------


def _tool(value: Json) -> Tool | None:
    """Read one tool definition in either of the usual shapes."""
    if not isinstance(value, dict):
        return None
    wrapped = value.get("function")
    body = wrapped if isinstance(wrapped, dict) else value
    name = body.get("name")
    schema = next((body[key] for key in _SCHEMA_KEYS if isinstance(body.get(key), dict)), None)
    if not isinstance(name, str) or not name or (schema is None and body is value):
        return None
    description = body.get("description")
    return Tool(
        name,
        description if isinstance(description, str) else "",
        schema if isinstance(schema, dict) else {},
    )


def _tools(value: Json) -> list[Tool]:
    if isinstance(value, dict) and isinstance(value.get("tools"), list):
        value = value["tools"]
    items = value if isinstance(value, list) else [value]
    tools = [tool for item in items if (tool := _tool(item))]
    return tools if len(tools) == len(items) else []


def tools_block(text: str, values: Iterable[Found]) -> tuple[list[Tool], int, int] | None:
    """Return the first run of tool definitions in `text` and its span.

    A run that is announced by `<tools>` goes before one that merely stands there, and nothing
    behind the run counts: a tool shown in a question is a quotation.
    """
    runs: list[tuple[list[Tool], int, int]] = []
    for found in values:
        tools = _tools(found.value)
        if not tools:
            continue
        gap = text[runs[-1][2] : found.start] if runs else ""
        if runs and len(gap) <= _WIDEST_GAP and _BETWEEN_TOOLS.fullmatch(gap):
            runs[-1] = (runs[-1][0] + tools, runs[-1][1], found.end)
        else:
            runs.append((tools, found.start, found.end))
    if runs and not _ASKS_FOR_CALLS.search(without(text, [run[1:] for run in runs])):
        return None  # definitions shown, not offered
    announced = [run for run in runs if text[max(0, run[1] - 20) : run[1]].rstrip().endswith(">")]
    return next(iter(announced or runs), None)


# --- The wrapper ---------------------------------------------------------------------------

_SHOWN_TAG = re.compile(r"<([A-Za-z_][\w-]{0,40})>\s{0,8}(?:```\w{0,8}\s{0,8})?([\[{])")
_SHOWN_FENCE = re.compile(r"```\w{0,12}\s{0,8}([\[{])")
_DEMONSTRATION = 300
_LIST_WANTED = re.compile(
    r"\b(?:json )?(?:list|array) of (?:calls|tool calls|function calls|(?:such|these) objects)\b"
    r"|\b(?:several|multiple|more than one) calls?\b[^.]{0,40}\b(?:as|in) an? (?:list|array)\b",
    re.IGNORECASE,
)


def _demonstrates(text: str, at: int) -> bool:
    shown = text[at : at + _DEMONSTRATION]
    return '"name"' in shown or "'name'" in shown


def read_wrapper(instructions: str) -> Wrapper:
    """Read the demanded form of a call out of what the instructions demonstrate."""
    for pattern in (_SHOWN_TAG, _SHOWN_FENCE):
        for shown in pattern.finditer(instructions):
            if not _demonstrates(instructions, shown.end()):
                continue
            example = instructions[shown.end() : shown.end() + _DEMONSTRATION]
            named = [key for key in _ARGUMENT_KEYS if f'"{key}"' in example]
            tag = shown[1] if pattern is _SHOWN_TAG else ""
            opening = shown[shown.lastindex or 1]
            as_list = opening == "[" or bool(_LIST_WANTED.search(instructions))
            return Wrapper(tag, named[0] if named else "arguments", as_list)
    return Wrapper()


def render_calls(calls: Sequence[Call], wrapper: Wrapper) -> str:
    """Write calls the way the prompt demonstrates."""
    bodies: list[object] = [
        {"name": call.name, wrapper.arguments_key: call.arguments} for call in calls
    ]
    shown = [bodies] if wrapper.as_list else bodies
    head, foot = (f"<{wrapper.tag}>", f"</{wrapper.tag}>") if wrapper.tag else ("```json", "```")
    return "\n".join(f"{head}\n{dump(body)}\n{foot}" for body in shown)


def _call(value: Json, names: frozenset[str]) -> Call | None:
    if not isinstance(value, dict):
        return None
    body = value["function"] if isinstance(value.get("function"), dict) else value
    name = body.get("name") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(name, str) or name not in names:
        return None
    arguments = next((body[key] for key in _ARGUMENT_KEYS if key in body), {})
    if isinstance(arguments, str):
        arguments = next((found.value for found in json_values(arguments)), {})
    return Call(name, arguments if isinstance(arguments, dict) else {})


def find_calls(text: str, names: frozenset[str]) -> list[Call]:
    """Return the calls of offered tools that an earlier answer contains."""
    calls: list[Call] = []
    for found in json_values(text) if names else ():
        items = found.value if isinstance(found.value, list) else [found.value]
        calls += [call for item in items if (call := _call(item, names))]
    return calls


# --- How much the instructions insist ------------------------------------------------------

_A_TOOL = r"(?:tools?|functions?|tool[ _]calls?|<tool_call>)"
_REQUIRED = re.compile(
    rf"\b(?:must|have to|required|always|need to)\b.{{0,60}}\b(?:call|use|invoke|tool_call)"
    r".{0,80}"
    rf"|\bat least one\b.{{0,40}}(?:call|tool|function)"
    rf"|\b{_A_TOOL}\b.{{0,30}}\b(?:is|are) (?:required|mandatory|needed now)\b"
    r"|\bonly (?:with|by) (?:a )?(?:tool|function) calls?\b",
    re.IGNORECASE,
)
_FORBIDDEN = re.compile(
    rf"\b(?:do not|don't|never|must not|may not|cannot|can't)\b.{{0,20}}\b(?:call|use|invoke)\b"
    rf"(?!.{{0,60}}\b(?:other|not|again|more|invent|same|unless|which)\b).{{0,30}}\b{_A_TOOL}\b"
    rf"|\bwithout (?:calling|using|any) .{{0,20}}\b{_A_TOOL}\b"
    rf"|\bno {_A_TOOL} (?:is|are|may be) (?:allowed|permitted|called|used)",
    re.IGNORECASE,
)
_CONDITIONAL = re.compile(
    r"^\W{0,4}(?:if|when|whenever|unless|once|to|for|each|every|after|where|inside|in|you may)\b"
    r"|\b(?:if|when|whenever|unless)\b",
    re.IGNORECASE,
)
# What must hold for a call says nothing about whether one must be made.
_ABOUT_FORM = any_of(
    "JSON", "arguments", "schema", "names?", "format", "tags?", "quotes?", "keys?", "valid"
)
_SINGLE = re.compile(
    r"\b(?:at most|only|exactly|no more than|just|a single) (?:one|1|a single)\b.{0,20}"
    r"(?:call|tool|function)|\bone (?:tool |function )?call (?:only|at a time|per)"
    r"|\ba single (?:tool |function )?call\b",
    re.IGNORECASE,
)
_USE_IT = any_of(
    r"(?:use|using|call|with) (?:the |a |your |this |that )?(?:available |given )?"
    r"(?:tools?|functions?)\b(?! (?:shed|box|kit|of))"
)


def _named_tool(sentence: str, names: Iterable[str]) -> str:
    named = [name for name in names if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sentence)]
    return max(named, key=len, default="")


def read_demand(instructions: str, question: str, names: Sequence[str]) -> Demand:
    """Read from single sentences whether a call is required, forbidden or limited to one."""
    told = sentences(instructions)
    firm = [sentence for sentence in told if not _CONDITIONAL.search(sentence)]
    musts = [sentence for sentence in firm if _asks_for_a_call(sentence, names)]
    forbidden = any(map(_FORBIDDEN.search, firm))
    insists = any(_named_tool(one, names) or not _ABOUT_FORM.search(one) for one in musts)
    required = insists or bool(_USE_IT.search(question))
    return Demand(
        required and not forbidden,
        insists and not forbidden,
        forbidden,
        next(filter(None, (_named_tool(one, names) for one in musts)), ""),
        any(map(_SINGLE.search, told)),
    )


def _asks_for_a_call(sentence: str, names: Sequence[str]) -> bool:
    must = _REQUIRED.search(sentence)
    if must is None:
        return False
    return bool(_named_tool(sentence, names) or re.search(_A_TOOL, must[0], re.IGNORECASE))
