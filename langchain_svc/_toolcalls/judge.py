"""The tools on offer, and the judgement whether something written as a call can be read as one.

Readers of formats only say what stands there (`Raw`). A call is readable if it has a name and its
arguments are a JSON object. They are coerced where the tool's schema makes the intent plain; where
they do not fit, they stay as they were written, so that the tool itself can say what is wrong.
Syntax is repaired, values are never made up.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .._json import Misfit, fit_schema, has_surrogates, read_json, whole_characters
from .calls import BadCall, Call, Tool

MISSING: Final = object()  # a call that says nothing of arguments
CUT_OFF: Final = "the call is cut off inside a value"

_NAMESPACES = ("functions.", "functions:", "function.", "tools.", "tool.", "default_api.")
_EDGES = " \t\r\n\"'`*"
_CALLED = ".call"  # Llama's built-in tools: brave_search.call(query="…")
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
        whole: Whether its own end was seen: the last bracket, or the closing tag.
    """

    name: str | None
    arguments: Any = MISSING
    fault: str = ""
    texts: bool = False
    loose: bool = False
    whole: bool = False


class Judge:
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
        bare = name.strip(_EDGES).removesuffix(_CALLED)
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
        return any((name + _CALLED).startswith(start) for name in self._tools)

    def fits(self, raw: Raw) -> bool:
        """Whether a call is one of an offered tool, with arguments that fit."""
        call = self.judge(raw, "")
        return isinstance(call, Call) and not call.problems and call.name in self._tools

    def judge(
        self, raw: Raw, source: str, *, asked: bool = False, loose: bool = False
    ) -> Call | BadCall:
        """The call, or what makes it unreadable; `asked` and `loose` as they say of it."""
        tool = self.find(raw.name)
        name = tool.name if tool else raw.name
        fault = raw.fault or ("" if name else "the call has no name")
        if not fault:
            assert name is not None  # noqa: S101  # that would be a fault
            known = tool or Tool(name, {})
            try:
                fitted, problems = _fitted(_arguments(raw, known), known)
                if has_surrogates(arguments_json(fitted)):
                    fitted = whole_characters(fitted)
            except Misfit as misfit:
                fault = "; ".join(misfit.problems)
            except ValueError as error:
                fault = f"the arguments are not JSON: {error}"
            else:
                return Call(name, fitted, problems, source, asked, loose)
        return BadCall(name, source, fault, fault == CUT_OFF, asked, loose)


def _fitted(given: dict[str, Any], tool: Tool) -> tuple[dict[str, Any], str]:
    """The arguments as the schema wants them; or, with what is wrong, as they are."""
    try:
        fitted, _ = fit_schema(given, tool.parameters)
    except Misfit as misfit:
        return given, "; ".join(misfit.problems) or "arguments do not fit"
    return fitted, ""


def arguments_json(arguments: Mapping[str, Any]) -> str:
    """The arguments as JSON; ValueError where JSON cannot hold them."""
    return json.dumps(arguments, ensure_ascii=False, allow_nan=False)


def _arguments(raw: Raw, tool: Tool) -> dict[str, Any]:
    given = raw.arguments
    if raw.texts and isinstance(given, dict):
        return {key: typed(text, key, tool) for key, text in given.items()}
    for _ in range(_ENCODINGS):
        if isinstance(given, str):
            given = _decoded(given, tool, loose=raw.loose)
    if given is MISSING or given is None or given == []:
        return {}
    if isinstance(given, list):
        given = _as_only_argument(given, tool)
    if not isinstance(given, dict):
        raise Misfit([f"the arguments are not an object but {_shown(given)}"])
    return given


def _as_only_argument(given: list[Any], tool: Tool) -> Any:
    """A list as the one argument of a tool that has no other."""
    if len(tool.properties) == 1:
        try:
            return fit_schema(dict.fromkeys(tool.properties, given), tool.parameters)[0]
        except Misfit:
            pass
    return given


def _decoded(text: str, tool: Tool, *, loose: bool) -> Any:
    """Arguments that were encoded as a string."""
    text = text.strip()
    if not text:
        return {}
    if text[0] in "{[\"“'":
        found = read_json(text)
        if found is not None and found.cut_in_value:
            raise Misfit([CUT_OFF])
        if found is not None and isinstance(found.value, (dict, list, str)):
            return found.value
    only = _only_text(tool) if loose else None
    if only is None:
        raise Misfit([f"the arguments are not an object but {_shown(text)}"])
    return {only: text}


def _only_text(tool: Tool) -> str | None:
    """The one parameter of a tool that wants nothing but one text."""
    wanted = list(tool.parameters.get("required") or tool.properties)
    if len(wanted) != 1 or not isinstance(tool.properties.get(wanted[0]), Mapping):
        return None
    kind = tool.properties[wanted[0]].get("type", "string")
    return wanted[0] if kind == "string" or "string" in kind else None


def typed(text: Any, key: str, tool: Tool) -> Any:
    """A value of a format that knows only text, as the tool's schema wants it."""
    if not isinstance(text, str):
        return text
    schema = tool.properties.get(key)
    if not isinstance(schema, Mapping):
        return text
    # References lead out of the property into the definitions of the whole schema.
    rooted = {**{k: tool.parameters[k] for k in ("$defs", "definitions") if k in tool.parameters}}
    rooted.update(schema)
    value = _json_of(text.strip())
    if value is not MISSING and not isinstance(value, str):
        try:
            return fit_schema(value, rooted, coerce=False)[0]
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
    found = read_json(source)
    if found is None or not found.complete or found.end != len(source):
        return MISSING
    if not listed:
        return found.value
    return found.value[0] if isinstance(found.value, list) and len(found.value) == 1 else MISSING


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004 - enough to recognise it
