"""The tools on offer, and what a value or a text that was written as a call comes to.

A call is readable if it has a name and its arguments are a JSON object. They are coerced where the
tool's schema makes the intent plain, and else stay as they were written: the tool says what is
wrong. Syntax is repaired, values are never made up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from .._json import (
    SchemaMismatch,
    fit_schema,
    has_surrogates,
    read_json,
    whole_characters,
)
from .calls import CUT_OFF, MISSING, BadCall, Call, Raw, Tool

_NAMESPACES = (
    "functions.",
    "functions:",
    "function.",
    "tools.",
    "tool.",
    "default_api.",
)
_LONGEST_TREE = 20_000  # characters: each level reads all that is inside it
_EDGES = " \t\r\n\"'`*"
_CALLED = ".call"  # Llama's built-in tools: brave_search.call(query="…")

# fmt: off
NAME_KEYS = (
    "name", "tool", "tool_name", "function", "function_name", "action", "recipient_name",
)
_LOOSE_KEYS = ("input", "action_input", "tool_input")  # a plain text is a fair value of these
ARGUMENT_KEYS = (
    "arguments", "parameters", "params", "args", "kwargs", "inputs", "argument", "parameter",
    "tool_args", "tool_arguments", "tool_parameters", "function_args", "function_arguments",
    *_LOOSE_KEYS,
)
CONTAINER_KEYS = (
    "tool_calls", "tool_call", "function_calls", "function_call", "calls", "tool_uses",
)
# What may stand in a call beside its name and arguments, also before them.
SIDE_KEYS = (
    "type", "id", "index", "call_id", "tool_call_id", "thought", "thoughts", "reasoning", "role",
    "content",
)
# fmt: on


class Judge:
    """The offered tools by name."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self.names = tuple(self._tools)

    def named_in(self, text: str) -> str | None:
        """The offered name that stands in a text as a word; None if none does."""
        return next(
            (name for name in re.findall(r"[\w.-]+", text) if self.find(name)), None
        )

    def meant_in(self, text: str) -> str | None:
        """The tool that a text may call in a form that nobody knows; None if there is none.

        Its name stands nearly alone between two marks or line ends, and behind it one of its
        parameters as a key.
        """
        last: dict[str, int] = {}
        for match in _NAME_LIKE.finditer(text):
            tool = self.find(match[0])
            if tool is None or not _stands_alone(text, match):
                continue
            if tool.name not in last:
                last[tool.name] = _last_key(text, tool)
            if last[tool.name] > match.end():
                return tool.name
        return None

    def find(self, name: object) -> Tool | None:
        """The tool that `name` means; models put spaces, quotes and namespaces around names."""
        if not isinstance(name, str) or name in self._tools:
            return self._tools.get(name) if isinstance(name, str) else None
        bare = name.strip(_EDGES).removesuffix(_CALLED)
        for space in _NAMESPACES:
            bare = bare.removeprefix(space)
        return self._tools.get(bare)

    def may_begin(self, start: str) -> bool:
        """Whether an offered name may begin so."""
        start = start.strip(_EDGES)
        spellings = (
            space + name + _CALLED
            for space in ("", *_NAMESPACES)
            for name in self._tools
        )
        return any(spelling.startswith(start) for spelling in spellings)

    def fits(self, raw: Raw) -> bool:
        """Whether a call is one of an offered tool, with arguments that fit."""
        call = self.judge(raw)
        return isinstance(call, Call) and not call.problems and call.name in self._tools

    def doubt(self, raw: Raw) -> str:
        """Why this reading of a call may not be the right one; "" where nothing is left over.

        A repair may end a value too early and take the rest of it for keys, so a repaired call has
        the tool's own keys only.
        """
        if raw.fault:
            return ""
        tool = self.find(raw.name)
        if raw.spare or not (raw.repaired and tool and isinstance(raw.arguments, dict)):
            return raw.spare
        return _strange_key(raw.arguments, tool)

    def judge(self, raw: Raw, **written: Any) -> Call | BadCall:
        """The call, or what makes it unreadable; `written` says how it was written."""
        tool = self.find(raw.name) or Tool(raw.name or "", {})
        fault = raw.fault or ("" if tool.name else "the call has no name")
        try:
            if not fault:
                given = _arguments(raw, tool)
                problems = ""
                try:
                    given = fit_schema(given, tool.schema)[0]
                except SchemaMismatch as mismatch:  # they stay as they are
                    problems = "; ".join(mismatch.problems) or "arguments do not fit"
                if has_surrogates(arguments_json(given)):
                    given = whole_characters(given)
                return Call(tool.name, given, problems, **written)
        except SchemaMismatch as mismatch:
            fault = "; ".join(mismatch.problems)
        except ValueError as error:
            fault = f"the arguments are not JSON: {error}"
        return BadCall(tool.name or None, fault, fault == CUT_OFF, **written)


# -- calls in a form that nobody knows ------------------------------------------------------------

_NAME_LIKE = re.compile(r"[A-Za-z_][\w.-]*")
_BORDER = re.compile(r"\n|<[|｜/]?|[|｜]?>")
_LETTERS = re.compile(r"[^\W\d_]+")
_NEAR = 120  # characters around a name in which its borders stand
_MOST_WORDS = 3  # beside the name


def _stands_alone(text: str, name: re.Match[str]) -> bool:
    """Whether at most three other words stand between the borders around a name."""
    before = _BORDER.split(text[max(0, name.start() - _NEAR) : name.start()])[-1]
    after = _BORDER.split(text[name.end() : name.end() + _NEAR], maxsplit=1)[0]
    return len(_LETTERS.findall(before)) + len(_LETTERS.findall(after)) <= _MOST_WORDS


def _last_key(text: str, tool: Tool) -> int:
    """Where the last parameter of a tool stands as a key; -1 if none does."""
    names = "|".join(map(re.escape, tool.properties or ARGUMENT_KEYS))
    # A key has a mark of its own on one side: city=, "city", <city>, : city.
    key = re.compile(
        rf"(?<![\w.-])(?:(?<=[<\"'`=:])|(?<=[:=] ))(?:{names})(?![\w-])"
        rf"|(?<![\w.-])(?:{names})[\"'`*]{{0,3}} ?[:=>]",
        re.IGNORECASE,
    )
    return max((match.start() for match in key.finditer(text)), default=-1)


def arguments_json(arguments: Mapping[str, Any]) -> str:
    """The arguments as JSON; ValueError where JSON cannot hold them."""
    return json.dumps(arguments, ensure_ascii=False, allow_nan=False)


# -- arguments ------------------------------------------------------------------------------------


def _arguments(raw: Raw, tool: Tool) -> dict[str, Any]:
    given = raw.arguments
    if raw.texts and isinstance(given, dict):
        return {key: _typed_field(text, key, tool) for key, text in given.items()}
    for _ in range(2):  # how many times over they may be encoded as JSON
        given = _decoded(given.strip(), tool, raw) if isinstance(given, str) else given
    if given is MISSING or given is None or given == []:
        return {}
    return given if isinstance(given, dict) else _no_object(given)


def _strange_key(arguments: Mapping[str, Any], tool: Tool) -> str:
    strange = [key for key in arguments if key not in tool.properties]
    if tool.properties and strange:
        return f"{strange[0][:40]!r} is no parameter of {tool.name}"
    return ""


def _typed_field(text: Any, key: str, tool: Tool) -> Any:
    """A parameter's value; a list is one that was written several times."""
    schema = tool.properties.get(key)
    if isinstance(text, list):
        items = schema.get("items") if isinstance(schema, Mapping) else None
        return [_branch(item, items, tool.parameters) for item in text]
    return _typed(text, schema, tool.parameters)


def _no_object(given: Any) -> Any:
    text = repr(given)
    text = text if len(text) <= 40 else f"{text[:37]}..."  # enough to recognise it
    raise SchemaMismatch([f"the arguments are not an object but {text}"])


def _decoded(text: str, tool: Tool, raw: Raw) -> Any:
    """Arguments that were encoded as a string, or the one text that a tool wants."""
    if not text:
        return {}
    found = read_json(text) if text[0] in "{[\"“'" else None
    if found is not None and found.cut_in_value:
        raise SchemaMismatch([CUT_OFF])
    if found is not None and found.repairs:  # a backslash too few may be anywhere
        raise SchemaMismatch(["the arguments are a text that is not JSON"])
    if found is not None and isinstance(found.value, (dict, list, str)):
        return found.value
    wanted = list(tool.parameters.get("required") or tool.properties)
    only = tool.properties.get(wanted[0]) if len(wanted) == 1 else None
    kind = only.get("type", "string") if isinstance(only, Mapping) else ()
    return {wanted[0]: text} if raw.loose and "string" in kind else _no_object(text)


def _typed(text: Any, schema: Any, root: Mapping[str, Any]) -> Any:
    """A value of a format that knows only text, as its schema in that of the tool wants it."""
    if not isinstance(text, str) or not isinstance(schema, Mapping):
        return text
    source = text.strip()
    if not source or source[0] == "<":
        return _tree(text, schema, root)
    listed = (
        source[0] not in "{["
    )  # a list makes a value of its own of a bare word or number
    source = f"[{source}]" if listed else source
    found = read_json(source)
    items = [found.value] if found and not listed else found.value if found else []
    whole = found and found.complete and found.end == len(source) and len(items) == 1
    if whole and not isinstance(items[0], str):
        rooted = {key: root[key] for key in ("$defs", "definitions") if key in root}
        with suppress(SchemaMismatch):
            return fit_schema(items[0], {**rooted, **schema}, coerce=False)[0]
    return text


_BRANCH = re.compile(
    r"\s*<(?P<tag>[^<>/\s]{1,80})>(?P<inside>.*?)</(?P=tag)>", re.DOTALL
)


def _tree(text: str, schema: Mapping[str, Any], root: Mapping[str, Any]) -> Any:
    """Elements where a list or an object is wanted: `<item>` for each item, or one for each key."""
    kind = schema.get("type")
    if kind not in ("array", "object"):
        return text
    found, at = list[tuple[str, str]](), 0
    while branch := _BRANCH.match(text, at):
        found.append((branch["tag"], branch["inside"]))
        at = branch.end()
    if text[at:].strip() or at > _LONGEST_TREE:
        return text
    if kind == "array":
        return [_branch(inside, schema.get("items"), root) for _, inside in found]
    known = schema.get("properties") or {}
    return {tag: _branch(inside, known.get(tag), root) for tag, inside in found}


def _branch(text: str, schema: Any, root: Mapping[str, Any]) -> Any:
    """One item or value; where the schema says nothing of it, elements in it are an object."""
    schema = schema if isinstance(schema, Mapping) else {}
    if "type" not in schema and _BRANCH.match(text):
        schema = {"type": "array" if text.lstrip().startswith("<item>") else "object"}
    return _typed(text, schema, root)


# -- JSON values that are calls -------------------------------------------------------------------


def fold_key(key: object) -> str:
    """A key as the tables above have it: `toolName`, `tool-name` and `tool_name` are one."""
    text = _CAMEL.sub("_", str(key).strip())
    return text.replace("-", "_").lower()


_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def calls_in(
    value: Any, judge: Judge, *, tagged: bool = False, wrappings: int = 5
) -> list[Raw] | None:
    """The calls that a value is, in a few lists and objects at most; None where it is none.

    `tagged`: it stood where nothing but a call may stand, so that all in it is reported. Elsewhere
    it is a call only with an offered name and a key for arguments.
    """
    if not wrappings:
        return None
    if isinstance(value, list):
        return _listed(value, judge, tagged=tagged, wrappings=wrappings - 1)
    if not isinstance(value, dict):
        return [Raw(None, fault="this is not a JSON object")] if tagged else None
    fields = {fold_key(key): field for key, field in value.items()}
    for key in (*CONTAINER_KEYS, *NAME_KEYS):
        if isinstance(fields.get(key), (dict, list)):
            inner = calls_in(fields[key], judge, tagged=tagged, wrappings=wrappings - 1)
            if inner is not None:
                return inner
    raw = _call(value, fields, judge, tagged=tagged)
    return [raw] if raw is not None else None


def _listed(
    items: list[Any], judge: Judge, *, tagged: bool, wrappings: int
) -> list[Raw] | None:
    """Beside a call the other items were meant as calls, too: their author must hear of them."""
    found = [
        calls_in(item, judge, tagged=tagged, wrappings=wrappings) for item in items
    ]
    if not tagged and any(found):
        return _listed(items, judge, tagged=True, wrappings=wrappings)
    return [raw for raws in found for raw in raws or ()] or None


def _call(
    value: dict[str, Any], fields: dict[str, Any], judge: Judge, *, tagged: bool
) -> Raw | None:
    names = [key for key in NAME_KEYS if isinstance(fields.get(key), str)]
    names.sort(key=lambda key: judge.find(fields[key]) is None)  # those on offer first
    name = fields[names[0]] if names else None
    holders = [key for key in ARGUMENT_KEYS if key in fields]
    holders.sort(key=lambda key: not isinstance(fields[key], dict))
    if not tagged and (not holders or not judge.find(name) or _describes(fields)):
        return None
    if name is None:
        return _by_its_name(value, judge)
    own = (names[0], *holders[:1], *SIDE_KEYS)
    others = {key: item for key, item in value.items() if fold_key(key) not in own}
    if not holders:
        return Raw(name, others or MISSING)
    arguments = fields[holders[0]]
    spare = _outside(others, arguments, judge.find(name))
    return Raw(name, arguments, loose=holders[0] in _LOOSE_KEYS, spare=spare)


def _outside(others: Mapping[str, Any], arguments: Any, tool: Tool | None) -> str:
    """What is wrong if a parameter stands beside the arguments: it would be lost."""
    taken = arguments if isinstance(arguments, dict) else {}
    astray = [
        key for key in others if tool and key in tool.properties and key not in taken
    ]
    return f"{astray[0][:40]!r} stands outside of the arguments" if astray else ""


def _by_its_name(value: dict[str, Any], judge: Judge) -> Raw:
    """`{"get_weather": {"city": "Oslo"}}`."""
    for name, arguments in value.items() if len(value) == 1 else ():
        if judge.find(name) and (arguments is None or isinstance(arguments, dict)):
            return Raw(name, arguments)
    return Raw(None, fault="the call has no name")


def _describes(fields: dict[str, Any]) -> bool:
    """Whether this describes a tool, as the prompt does, instead of calling it."""
    schema = fields.get("parameters")
    schema = schema if isinstance(schema, dict) else {}
    return schema.get("type") == "object" and isinstance(schema.get("properties"), dict)
