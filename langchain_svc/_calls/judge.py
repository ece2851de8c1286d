"""The tools on offer, and whether something written as a call can be read as one of theirs.

A call is readable if it has a name and its arguments are a JSON object. The judge coerces them
where the tool's schema makes the intent plain. Otherwise they stay as the model wrote them, and the
tool says what is wrong. Syntax is repaired; values are never made up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .._json import (
    SchemaMismatch,
    fit_schema,
    has_surrogates,
    lone_backslash,
    read_json,
    whole_characters,
)
from .._text import Pseudonymizer, restored
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
    """The offered tools by name; `pseudonyms` restores arguments once they are parsed."""

    def __init__(
        self, tools: Sequence[Tool], pseudonyms: Pseudonymizer | None = None
    ) -> None:
        self._pseudonyms = pseudonyms
        self.tools = {tool.name: tool for tool in tools}
        self.names = tuple(self.tools)

    def named_in(self, text: str) -> str | None:
        """The offered name that stands in a text as a word; None if none does."""
        words: list[str] = re.findall(r"[\w.-]+", text)
        return next(filter(self.tool_named, words), None)

    def tool_named(self, name: object) -> Tool | None:
        """The tool that `name` means; models put spaces, quotes and namespaces around names."""
        if not isinstance(name, str):
            return None
        if name in self.tools:
            return self.tools[name]
        bare = name.strip(_EDGES).removesuffix(_CALLED)
        for space in _NAMESPACES:
            bare = bare.removeprefix(space)
        return self.tools.get(bare)

    def may_begin(self, start: str) -> bool:
        """Whether an offered name may begin so."""
        start = start.strip(_EDGES)
        spellings = (
            space + name + _CALLED
            for space in ("", *_NAMESPACES)
            for name in self.tools
        )
        return any(spelling.startswith(start) for spelling in spellings)

    def fits(self, raw: Raw) -> bool:
        """Whether a call is one of an offered tool, with arguments that fit."""
        call = self.judge(raw)
        return isinstance(call, Call) and not call.problems and call.name in self.tools

    def judge(
        self,
        raw: Raw,
        *,
        source: str = "",
        text: str = "",
        asked: bool = False,
        loose: bool = False,
    ) -> Call | BadCall:
        """The call, or what makes it unreadable; the keywords say how it was written."""
        tool = self.tool_named(raw.name) or Tool(raw.name or "", {})
        fault = raw.fault
        if not fault and not tool.name:
            fault = "the call has no name"
        if not fault:
            try:
                arguments, problems = self._fitted_arguments(raw, tool)
            except SchemaMismatch as mismatch:
                fault = "; ".join(mismatch.problems)
            except ValueError as error:
                fault = f"the arguments are not JSON: {error}"
            else:
                return Call(
                    tool.name,
                    arguments,
                    problems,
                    source=source,
                    text=text,
                    asked=asked,
                    loose=loose,
                )
        return BadCall(
            tool.name or None,
            fault,
            fault == CUT_OFF,
            source=source,
            text=text,
            asked=asked,
            loose=loose,
        )

    def _fitted_arguments(self, raw: Raw, tool: Tool) -> tuple[dict[str, Any], str]:
        """The arguments, and what is wrong with them by the tool's schema.

        Raises:
            SchemaMismatch: Something of them would be lost, or is not what was meant.
        """
        written = restored(_arguments(raw, tool), self._pseudonyms)
        arguments = written
        problems = ""
        try:
            arguments = fit_schema(written, tool.schema)[0]
        except SchemaMismatch as mismatch:  # they stay as they are
            problems = "; ".join(mismatch.problems) or "arguments do not fit"
        kept = {_KEY_SIGNS.sub("", key).lower() for key in arguments}
        for key in written:
            if _KEY_SIGNS.sub("", key).lower() not in kept:
                raise SchemaMismatch([f"{key[:40]!r} is no parameter of {tool.name}"])
        text = arguments_json(arguments)
        if has_surrogates(text):
            arguments = whole_characters(arguments)
        if word := lone_backslash(text, 0, len(text)):
            raise SchemaMismatch([f"{word} in it is a backslash that is not escaped"])
        return arguments, problems


def arguments_json(arguments: Mapping[str, Any]) -> str:
    """The arguments as JSON; ValueError where JSON cannot hold them."""
    return json.dumps(arguments, ensure_ascii=False, allow_nan=False)


# -- arguments ------------------------------------------------------------------------------------


_KEY_SIGNS = re.compile(r"[\W_]+")


def _arguments(raw: Raw, tool: Tool) -> dict[str, Any]:
    arguments = raw.arguments
    if raw.texts and isinstance(arguments, dict):
        return {key: _typed_field(text, key, tool) for key, text in arguments.items()}
    # Some models encode them as JSON twice.
    for _ in range(2):
        if isinstance(arguments, str):
            arguments = _decoded(arguments.strip(), tool, raw)
    if isinstance(arguments, dict):
        return arguments
    if arguments is MISSING or arguments is None or arguments == []:
        return {}
    raise _no_object(arguments)


def _strange_key(arguments: Mapping[str, Any], tool: Tool) -> str:
    """What is wrong if a key is no parameter of the tool."""
    for key in arguments if tool.properties else ():
        if key not in tool.properties:
            return f"{key[:40]!r} is no parameter of {tool.name}"
    return ""


def _typed_field(text: object, key: str, tool: Tool) -> object:
    """A parameter's value; a list is one that was written several times."""
    schema = tool.properties.get(key)
    if not isinstance(text, list):
        return _typed(text, schema, tool.parameters)
    items = schema.get("items") if isinstance(schema, Mapping) else None
    return [_branch(item, items, tool.parameters) for item in text]


def _no_object(arguments: object) -> SchemaMismatch:
    text = repr(arguments)
    if len(text) > 40:  # enough to recognise it
        text = f"{text[:37]}..."
    return SchemaMismatch([f"the arguments are not an object but {text}"])


def _decoded(text: str, tool: Tool, raw: Raw) -> object:
    """Arguments that were encoded as a string, or the one text that a tool wants."""
    if not text:
        return {}
    if text[0] in "{[\"“'":
        parsed = read_json(text)
        if parsed is not None:
            if parsed.cut_in_value:
                raise SchemaMismatch([CUT_OFF])
            if parsed.repairs or parsed.end != len(text):
                # A backslash too few may be anywhere.
                raise SchemaMismatch(["the arguments are a text that is not JSON"])
            if parsed.spare:
                raise SchemaMismatch([parsed.spare])
            if isinstance(parsed.value, (dict, list, str)):
                return parsed.value
    key = _only_text_parameter(tool) if raw.loose else None
    if key is not None:
        return {key: text}
    raise _no_object(text)


def _only_text_parameter(tool: Tool) -> str | None:
    """The one parameter that a tool requires, or has at all, if it may be a text."""
    keys = list(tool.parameters.get("required") or tool.properties)
    if len(keys) != 1:
        return None
    schema = tool.properties.get(keys[0])
    if not isinstance(schema, Mapping) or "string" not in schema.get("type", "string"):
        return None
    return str(keys[0])


def _typed(text: object, schema: object, root: Mapping[str, Any]) -> object:
    """A value of a format that knows only text, in the type that the tool's schema wants."""
    if not isinstance(text, str) or not isinstance(schema, Mapping):
        return text
    source = text.strip()
    if not source or source[0] == "<":
        return _tree(text, schema, root)
    value, exact = _json_in(source)
    kind = schema.get("type")
    wants_brackets = kind in ("array", "object")
    is_text = kind == "string" or (value is None and not wants_brackets)
    if source[0] in "{[" and not (exact or is_text):
        raise SchemaMismatch([f"{source[:40]!r} is not quite JSON"])
    # What is no JSON, or is a string of JSON, is meant as the text that it is.
    if not exact or isinstance(value, str):
        return text
    definitions = {key: root[key] for key in ("$defs", "definitions") if key in root}
    try:
        return fit_schema(value, {**definitions, **schema}, coerce=False)[0]
    except SchemaMismatch:
        return text


def _json_in(source: str) -> tuple[object, bool]:
    """The one value of JSON that is the whole text, and whether that is all of the text."""
    is_container = source[0] in "{["
    if not is_container:
        # A bare word or number is a value only within a list.
        source = f"[{source}]"
    parsed = read_json(source)
    if parsed is None or not parsed.complete or parsed.end != len(source):
        return None, False
    if is_container:
        exact = not parsed.spare and accounts_for(source, parsed.value)
        return parsed.value, exact
    if len(parsed.value) != 1:
        return None, False
    return parsed.value[0], True


_BRANCH = re.compile(
    r"\s*<(?P<tag>[^<>/\s]{1,80})>(?P<inside>.*?)</(?P=tag)>", re.DOTALL
)


def _tree(text: str, schema: Mapping[str, Any], root: Mapping[str, Any]) -> object:
    """Elements where a list or an object is wanted: `<item>` for each item, or one for each key."""
    kind = schema.get("type")
    if kind not in ("array", "object"):
        return text
    branches: list[tuple[str, str]] = []
    at = 0
    while branch := _BRANCH.match(text, at):
        branches.append((branch["tag"], branch["inside"]))
        at = branch.end()
    if text[at:].strip() or at > _LONGEST_TREE:
        return text
    if kind == "array":
        items = schema.get("items")
        return [_branch(inside, items, root) for _, inside in branches]
    properties = schema.get("properties") or {}
    return {tag: _branch(inside, properties.get(tag), root) for tag, inside in branches}


def _branch(text: str, schema: object, root: Mapping[str, Any]) -> object:
    """One item or value; where the schema says nothing of it, elements in it are an object."""
    if not isinstance(schema, Mapping):
        schema = {}
    if "type" not in schema and _BRANCH.match(text):
        is_list = text.lstrip().startswith("<item>")
        schema = {"type": "array" if is_list else "object"}
    return _typed(text, schema, root)


# -- JSON values that are calls -------------------------------------------------------------------


def fold_key(key: object) -> str:
    """A key as the tables above have it: `toolName`, `tool-name` and `tool_name` are one."""
    text = _CAMEL.sub("_", str(key).strip())
    return text.replace("-", "_").lower()


_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")


def calls_in(
    value: object, judge: Judge, *, tagged: bool = False, wrappings: int = 5
) -> list[Raw] | None:
    """The calls that a value is, in a few lists and objects at most; None where it is none.

    `tagged`: it stood where nothing but a call may stand, so that all in it is reported. Elsewhere
    it is a call only with an offered name and a key for arguments.
    """
    if not wrappings:
        return None
    if isinstance(value, list):
        return _calls_in_list(value, judge, tagged=tagged, wrappings=wrappings - 1)
    if not isinstance(value, dict):
        return [Raw(None, fault="this is not a JSON object")] if tagged else None
    fields = {fold_key(key): field for key, field in value.items()}
    for key in (*CONTAINER_KEYS, *NAME_KEYS):
        if isinstance(fields.get(key), (dict, list)):
            inner = calls_in(fields[key], judge, tagged=tagged, wrappings=wrappings - 1)
            if inner:
                strange = _beside(other for other in value if fold_key(other) != key)
                inner[-1] = replace(inner[-1], leftover=inner[-1].leftover or strange)
            if inner is not None:
                return inner
    raw = _call(value, fields, judge, tagged=tagged)
    return None if raw is None else [raw]


def _calls_in_list(
    items: list[object], judge: Judge, *, tagged: bool, wrappings: int
) -> list[Raw] | None:
    """Beside a call the other items were meant as calls, too: the model has to know of them."""
    raws: list[Raw] = []
    for item in items:
        raws += calls_in(item, judge, tagged=tagged, wrappings=wrappings) or []
    if raws and not tagged:
        return _calls_in_list(items, judge, tagged=True, wrappings=wrappings)
    return raws or None


def _call(
    value: dict[str, Any], fields: dict[str, Any], judge: Judge, *, tagged: bool
) -> Raw | None:
    """The call that an object is; `fields` are its values by their folded keys."""
    name_keys = [key for key in NAME_KEYS if isinstance(fields.get(key), str)]
    # Names on offer first, and objects first.
    name_keys.sort(key=lambda key: judge.tool_named(fields[key]) is None)
    argument_keys = [key for key in ARGUMENT_KEYS if key in fields]
    argument_keys.sort(key=lambda key: not isinstance(fields[key], dict))
    name = fields[name_keys[0]] if name_keys else None
    tool = judge.tool_named(name)
    is_offered = bool(argument_keys) and tool is not None
    if not tagged and (not is_offered or _describes_tool(fields)):
        return None
    if name is None:
        return _by_its_name(value, judge)
    parameters = tool.properties.keys() if tool else frozenset()
    # A second name says what kind of thing this is: {"action": "call", "tool": ...}.
    own_keys = {*name_keys[:1], *argument_keys[:1], *(set(name_keys) - parameters)}
    others = {
        key: field for key, field in value.items() if fold_key(key) not in own_keys
    }
    if not argument_keys:
        return _flat_call(name, others, tool)
    arguments = fields[argument_keys[0]]
    if isinstance(arguments, dict):
        parameters = parameters - arguments.keys()
    return Raw(
        name,
        arguments,
        loose=argument_keys[0] in _LOOSE_KEYS,
        leftover=_beside(others, parameters),
    )


def _flat_call(name: str, others: Mapping[str, Any], tool: Tool | None) -> Raw:
    """A call whose arguments stand beside its name."""
    arguments = {
        key: field
        for key, field in others.items()
        if fold_key(key) not in SIDE_KEYS or (tool and key in tool.properties)
    }
    strange = _strange_key(arguments, tool) if tool else ""
    return Raw(name, arguments or MISSING, leftover=strange)


def _beside(others: Iterable[str], parameters: Collection[str] = ()) -> str:
    """What is wrong if a key stands beside those of a call, where it would be lost."""
    for key in others:
        if key in parameters or fold_key(key) not in SIDE_KEYS:
            return f"{key[:40]!r} stands beside the call and its arguments"
    return ""


def _by_its_name(value: dict[str, Any], judge: Judge) -> Raw:
    """`{"get_weather": {"city": "Oslo"}}`."""
    if len(value) == 1:
        ((name, arguments),) = value.items()
        if judge.tool_named(name) and (
            arguments is None or isinstance(arguments, dict)
        ):
            return Raw(name, arguments)
    return Raw(None, fault="the call has no name")


def _describes_tool(fields: dict[str, Any]) -> bool:
    """Whether this describes a tool, as the prompt does, instead of calling it."""
    schema = fields.get("parameters")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return False
    return isinstance(schema.get("properties"), dict)


# -- net -------------------------------------------------------------------------------------------
# The net below all forms: whether an answer in which no call was read may still mean one.
#
# This is the specification, and the readers of forms are optimisations of it: what a person
# would take for a call, and none of them reads exactly, makes a question.

# A line end or a bracket separates a name from what is no part of its call.
_BORDER = re.compile(r"[\n<>|｜{}\[\](),;]")
_QUOTED_LINE = re.compile(r"(?m)^[ \t]*(?:>(?!>)|\|).*$")
_LETTERS = re.compile(r"[^\W\d_]+")
_NEAR = 120  # characters before a name in which its border stands
_MOST_WORDS = 3  # beside the name
_FARTHEST_KEY = 400  # characters behind a name, with its ids and thoughts


def meant_in(text: str, tools: Mapping[str, Tool]) -> str | None:
    """The tool that a text may call in a form that nobody knows; None if there is none.

    Its name stands nearly alone between two borders, and behind it one of its parameters as a key.
    """
    text = _without_quotations(text)
    names = "|".join(map(re.escape, sorted(tools, reverse=True)))
    pattern = rf"(?<![A-Za-z0-9_-])(?:{names})(?![A-Za-z0-9_-])"
    for match in re.finditer(pattern, text) if tools else ():
        key = _key_behind(text, match.end(), tools[match[0]])
        if key is not None and _stands_alone(text, match, key):
            return match[0]
    return None


def _without_quotations(text: str) -> str:
    """The text without lines of quotations and tables, unless it has nothing else."""
    rest = _QUOTED_LINE.sub("", text)
    return rest if rest.strip() else text


def _key_behind(text: str, end: int, tool: Tool) -> int | None:
    """Where the first of a tool's parameters stands as a key behind its name."""
    keys = "|".join(map(re.escape, tool.properties or ARGUMENT_KEYS))
    # A key has a mark of its own on one side: city=, "city", <city>, --city, : city.
    pattern = (
        rf"(?<![\w.-])(?:--|(?<=[<\"'`=:])|(?<=[:=] ))(?:{keys})(?![\w-])"
        rf"|(?<![\w.-])(?:{keys})[\"'`*]{{0,3}} ?(?:[:=>→]|->)"
    )
    key = re.compile(pattern, re.IGNORECASE).search(text, end, end + _FARTHEST_KEY)
    return None if key is None else key.start()


def _stands_alone(text: str, name: re.Match[str], key: int) -> bool:
    """Whether few other words stand between the borders around a name; keys are one, too."""
    begin, end = name.span()
    before = _BORDER.split(text[max(0, begin - _NEAR) : begin])[-1]
    after = _BORDER.split(text[end:key], maxsplit=1)[0]
    words = _LETTERS.findall(before) + _LETTERS.findall(after)
    return len(words) <= _MOST_WORDS


# -- tokens ----------------------------------------------------------------------------------------
# Whether broken JSON is read without a rest: each word and string of it is one key or one
# value.
#
# A repair may add brackets, commas and quotes. Where it joins words, splits strings or passes
# some over, another reading may be the right one.

STRAY_TEXT = "it holds text that is neither a key nor a value"
_PART = re.compile(
    r"//[^\r\n]*|#(?=\s)[^\r\n]*|/\*.*?(?:\*/|\Z)|(?:\\[nrt])+"  # as `_json` passes over them
    r"|(?P<token>(?P<quote>\"\"\"|'''|[\"'])(?:(?!(?P=quote))[^\\]|\\.?)*(?:(?P=quote)|\Z)"
    r"|[^\s\"'{}\[\](),;:=]+)"
    r"|.",
    re.DOTALL,
)
_NONE = object()


def accounts_for(text: str, value: object) -> bool:
    """Whether the words and strings of a text are just the keys and values of what was read."""
    leaves = _leaves(value)
    for part in _PART.finditer(text):
        token = part["token"]
        if token is None:
            continue
        leaf, is_key = next(leaves, (_NONE, False))
        # Where a value without quotes ends, nobody knows.
        is_read = is_key if token == leaf else _reads_as(token, leaf)
        if not is_read:
            return False
    return next(leaves, None) is None


def _leaves(value: object) -> Iterator[tuple[object, bool]]:
    """The keys and scalars of a value, in order, and whether each is a key."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key, True
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value, False


def _reads_as(token: str, leaf: object) -> bool:
    parsed = read_json(f"[{token}]")
    return parsed is not None and parsed.value == [leaf]
