"""JSON values -> the calls that they are, whatever their keys are named.

In the tags a value was meant as a call, so everything in it is reported. Elsewhere JSON may be an
answer's data: there it is a call only if it names an offered tool and has a key for arguments.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .judge import MISSING, Judge, Raw

# fmt: off
NAME_KEYS = (
    "name", "tool", "tool_name", "function", "function_name", "action", "recipient_name",
)
LOOSE_KEYS = ("input", "action_input", "tool_input")  # a plain text is a fair value of these
ARGUMENT_KEYS = (
    "arguments", "parameters", "params", "args", "kwargs", "inputs", "argument", "parameter",
    "tool_args", "tool_arguments", "tool_parameters", "function_args", "function_arguments",
    *LOOSE_KEYS,
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
_WRAPPINGS = 5  # lists and objects around a call; nobody means more


def calls_in(
    value: Any, judge: Judge, *, tagged: bool = False, wrappings: int = _WRAPPINGS
) -> list[Raw] | None:
    """The calls that a value is; None where it is none.

    Args:
        value: What JSON said.
        judge: The tools on offer.
        tagged: Whether the value stood where nothing but a call may stand.
        wrappings: How many lists and objects may stand around a call.
    """
    if not wrappings:
        return None
    if isinstance(value, list):
        return _in_list(value, judge, tagged=tagged, wrappings=wrappings - 1)
    if not isinstance(value, dict):
        return [Raw(None, fault="this is not a JSON object")] if tagged else None
    fields = {str(key).strip().lower(): field for key, field in value.items()}
    for key in (*CONTAINER_KEYS, *NAME_KEYS):
        if isinstance(fields.get(key), (dict, list)):
            inner = calls_in(fields[key], judge, tagged=tagged, wrappings=wrappings - 1)
            if inner is not None:
                return inner
    if tagged:
        return [_tagged(value, fields, judge)]
    raw = _by_keys(fields, judge)
    return [raw] if raw is not None else None


def _in_list(items: list[Any], judge: Judge, *, tagged: bool, wrappings: int) -> list[Raw] | None:
    found = [calls_in(item, judge, tagged=tagged, wrappings=wrappings) for item in items]
    if not any(found):
        return None
    # Beside a call the other items were meant as calls, too: their author must hear of them.
    for at, item in enumerate(items):
        found[at] = found[at] or calls_in(item, judge, tagged=True, wrappings=wrappings)
    return [raw for raws in found for raw in raws or ()]


def _by_keys(fields: dict[str, Any], judge: Judge) -> Raw | None:
    names = [fields[key] for key in NAME_KEYS if judge.find(fields.get(key))]
    key = _first(ARGUMENT_KEYS, fields)
    if not names or key is None or _is_definition(fields):
        return None
    return Raw(names[0], fields[key], loose=key in LOOSE_KEYS)


def _tagged(value: dict[str, Any], fields: dict[str, Any], judge: Judge) -> Raw:
    raw = _by_keys(fields, judge)
    if raw is not None:
        return raw
    if len(value) == 1 and (by_name := _named_by_key(value, judge)):
        return by_name
    name_key = _first(NAME_KEYS, fields)
    name = fields[name_key] if name_key is not None else None
    if not isinstance(name, str):
        return Raw(None, fault="the call has no name")
    key = _first(ARGUMENT_KEYS, fields)
    if key is not None:
        return Raw(name, fields[key], loose=key in LOOSE_KEYS)
    others = (name_key, *SIDE_KEYS)
    beside = {key: field for key, field in value.items() if str(key).strip().lower() not in others}
    return Raw(name, beside or MISSING)


def _named_by_key(value: dict[str, Any], judge: Judge) -> Raw | None:
    """`{"get_weather": {"city": "Oslo"}}`."""
    ((name, arguments),) = value.items()
    if judge.find(name) and (arguments is None or isinstance(arguments, dict)):
        return Raw(str(name), arguments)
    return None


def _is_definition(fields: dict[str, Any]) -> bool:
    """Whether this describes a tool, as the prompt does, instead of calling it."""
    schema = fields.get("parameters")
    described = isinstance(schema, dict) and isinstance(schema.get("properties"), dict)
    return described and (schema or {}).get("type") == "object"


def _first(keys: Iterable[str], fields: dict[str, Any]) -> str | None:
    return next((key for key in keys if key in fields), None)
