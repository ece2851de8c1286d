"""The tools on offer, and the judgement whether something written as a call may run.

Readers of formats only say what stands there (`Raw`). Here it is asked whether the name is on
offer and the arguments fit the tool's schema. Syntax is repaired, values are never made up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .._json.lenient import read
from .._json.schema import Misfit, fit
from .calls import BadCall, Call, Tool

MISSING: Final = object()  # a call that says nothing of arguments
CUT_OFF: Final = "the call is cut off inside a value"

_NAMESPACES = ("functions.", "functions:", "function.", "tools.", "tool.", "default_api.")
_EDGES = " \t\r\n\"'`*"
_SURROGATE = re.compile("[\ud800-\udfff]")
_ENCODINGS = 2  # how many times over arguments may be encoded as JSON


@dataclass(frozen=True)
class Raw:
    """A call as it was written.

    Attributes:
        name: The name of the tool; None if it cannot be told.
        arguments: What the arguments were, MISSING if nothing was said of them.
        fault: Why the call must not run, if that is known already.
        texts: Whether the format knows only text, so that the schema decides the types.
        loose: Whether a text is a fair argument: it becomes the only argument of the tool.
    """

    name: str | None
    arguments: Any = MISSING
    fault: str = ""
    texts: bool = False
    loose: bool = False


class Offer:
    """The offered tools by name."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    @property
    def names(self) -> tuple[str, ...]:
        """The offered names, in order."""
        return tuple(self._tools)

    def find(self, name: object) -> Tool | None:
        """The tool that `name` means; models put spaces, quotes and namespaces around names."""
        if not isinstance(name, str):
            return None
        if name in self._tools:
            return self._tools[name]
        bare = name.strip(_EDGES)
        for space in _NAMESPACES:
            bare = bare.removeprefix(space)
        return self._tools.get(bare)

    def may_begin(self, start: str) -> bool:
        """Whether an offered name may begin so."""
        start = start.lstrip(_EDGES)
        for space in _NAMESPACES:
            if space.startswith(start):
                return True
            start = start.removeprefix(space)
        start = start.rstrip(_EDGES)
        return any(name.startswith(start) for name in self._tools)

    def judge(self, raw: Raw, source: str) -> Call | BadCall:
        """The call, if it may run; else what is wrong with it, and the text it came from."""
        tool = self.find(raw.name)
        if tool is None:
            return BadCall(raw.name, source, raw.fault or self._unknown(raw.name))
        if raw.fault:
            return BadCall(tool.name, source, raw.fault)
        try:
            fitted, _ = fit(_arguments(raw, tool), tool.parameters)
            arguments_json(fitted)
        except Misfit as misfit:
            return BadCall(tool.name, source, "; ".join(misfit.problems) or "arguments do not fit")
        except ValueError as error:
            return BadCall(tool.name, source, f"the arguments are no JSON: {error}")
        return Call(tool.name, fitted)

    def _unknown(self, name: str | None) -> str:
        offered = ", ".join(self._tools)
        if name is None:
            return f"no tool is named; offered are: {offered}"
        return f"no tool is named {name!r}; offered are: {offered}"


def arguments_json(arguments: Mapping[str, Any]) -> str:
    """The arguments as JSON; ValueError where JSON cannot hold them."""
    text = json.dumps(arguments, ensure_ascii=False, allow_nan=False)
    # Half of a surrogate pair cannot be encoded as UTF-8, but JSON can name it.
    return json.dumps(arguments) if _SURROGATE.search(text) else text


def _arguments(raw: Raw, tool: Tool) -> dict[str, Any]:
    given = raw.arguments
    if raw.texts and isinstance(given, dict):
        return {key: typed(text, key, tool) for key, text in given.items()}
    for _ in range(_ENCODINGS):
        if isinstance(given, str):
            given = _decoded(given, tool, loose=raw.loose)
    if isinstance(given, list) and len(given) == 1 and isinstance(given[0], dict):
        given = given[0]
    if given is MISSING or given is None or given == []:
        return {}
    if not isinstance(given, dict):
        raise Misfit([f"the arguments are no object but {_shown(given)}"])
    return given


def _decoded(text: str, tool: Tool, *, loose: bool) -> Any:
    """Arguments that were encoded as a string."""
    text = text.strip()
    if not text:
        return {}
    if text[0] in "{[\"“'":
        found = read(text)
        if found is not None and found.cut_in_value:
            raise Misfit(["the arguments are cut off inside a value"])
        if found is not None and isinstance(found.value, (dict, list, str)):
            return found.value
    only = _only_text(tool) if loose else None
    if only is None:
        raise Misfit([f"the arguments are no object but {_shown(text)}"])
    return {only: text}


def _only_text(tool: Tool) -> str | None:
    """The one parameter of a tool that wants nothing but one text."""
    properties = tool.parameters.get("properties") or {}
    wanted = list(tool.parameters.get("required") or properties)
    if len(wanted) != 1 or not isinstance(properties.get(wanted[0]), Mapping):
        return None
    kind = properties[wanted[0]].get("type", "string")
    return wanted[0] if kind == "string" or "string" in kind else None


def typed(text: Any, key: str, tool: Tool) -> Any:
    """A value of a format that knows only text, as the tool's schema wants it."""
    if not isinstance(text, str):
        return text
    schema = (tool.parameters.get("properties") or {}).get(key)
    if not isinstance(schema, Mapping):
        return text
    # References lead out of the property into the definitions of the whole schema.
    rooted = {**{k: tool.parameters[k] for k in ("$defs", "definitions") if k in tool.parameters}}
    rooted.update(schema)
    value = _json_of(text.strip())
    if value is not MISSING and not isinstance(value, str):
        try:
            return fit(value, rooted, coerce=False)[0]
        except Misfit:
            pass
    return text


def _json_of(text: str) -> Any:
    """The JSON value that the whole text is; MISSING where it is none, or only a repaired one."""
    if not text:
        return MISSING
    listed = text[0] not in "{["
    # A list around it makes a value of its own of a bare word or number.
    source = f"[{text}]" if listed else text
    found = read(source)
    if found is None or not found.complete or found.end != len(source):
        return MISSING
    if not listed:
        return found.value
    return found.value[0] if isinstance(found.value, list) and len(found.value) == 1 else MISSING


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - enough to recognise it
