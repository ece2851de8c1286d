"""How problems are worded: for a person who debugs and for a model that is asked again."""

from __future__ import annotations

import json
from typing import Any

_LONGEST = 60
_MOST = 8


def kind(value: Any) -> str:
    """JSON's name for what a value is."""
    for types, name in _KINDS:
        if isinstance(value, types):
            return name
    return type(value).__name__


_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (type(None), "null"),
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (dict, "object"),
    ((list, tuple), "array"),
)


def show(value: Any) -> str:
    """A value, short enough for one line."""
    if isinstance(value, str):
        return repr(value if len(value) <= _LONGEST else value[: _LONGEST - 1] + "…")
    if isinstance(value, dict):
        return listed([str(key) for key in value], none="no keys")
    if isinstance(value, (list, tuple)):
        return f"{len(value)} items"
    return json.dumps(value)[:_LONGEST]


def got(value: Any) -> str:
    """The second half of a problem: "got string 'abc'", "got null", "got object with a, b"."""
    if value is None:
        return "got null"
    joint = "with " if isinstance(value, (dict, list, tuple)) else ""
    return f"got {kind(value)} {joint}{show(value)}"


def listed(names: list[str], *, none: str = "nothing") -> str:
    """Names as a list of limited length."""
    if len(names) > _MOST:
        return ", ".join(names[:_MOST]) + f" and {len(names) - _MOST} more"
    return ", ".join(names) or none


def below(path: str, key: str | int) -> str:
    """The path of an item or a field."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if key.isidentifier() else f"{path}[{json.dumps(key)[:_LONGEST]}]"
