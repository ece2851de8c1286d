"""Calls in Python's syntax: `name(key=value)`."""

from __future__ import annotations

import re

from ..._json import read_json
from ..calls import CUT_OFF, Raw
from ..cursor import Cursor, split_commas
from ..judge import Judge
from ..leftover import STRAY_TEXT

_BETWEEN = re.compile(r"[\s,;]*")
_KEYWORD = re.compile(r"(\w+)\s*=(?!=)\s*")


def python_list(c: Cursor) -> list[Raw] | None:
    """`[name(key=value), …]`: Llama 3.2 and 4, LFM2, BFCL's own prompt."""
    c.at += 1
    found = python_calls(c, listed=True)
    c.skip(_BETWEEN)
    return found if found and (c.accept("]") or not c.char()) else None


def python_calls(c: Cursor, *, listed: bool = False) -> list[Raw] | None:
    """`name(key=value)`, one or several; in a list the first of them tells what it is."""
    found: list[Raw] = []
    while True:
        begin = c.at
        c.skip(_BETWEEN)
        printed = c.accept("print(")
        name = c.word()
        offered = c.judge.find(name) or (listed and found)
        text, closed = c.bracketed() if offered and c.char() == "(" else ("", False)
        keywords = (
            _keywords(name, text[1:-1] if closed else text[1:], c.judge)
            if text
            else None
        )
        if keywords is None:
            c.at = begin
            return found or None
        arguments, spare = keywords
        fault = "" if closed else CUT_OFF
        found.append(Raw(name, arguments, fault, whole=closed, leftover=spare))
        if printed:
            c.accept(")")


def _keywords(
    name: str, body: str, judge: Judge
) -> tuple[dict[str, object], str] | None:
    """The arguments, and what is left over; None if code with variables calls, and no model."""
    tool = judge.find(name)
    order = list(tool.properties) if tool else []
    arguments: dict[str, object] = {}
    spare = ""
    for place, part in enumerate(split_commas(body)):
        keyword = _KEYWORD.match(part)
        text = part[keyword.end() :] if keyword else part
        value, is_literal = _python_value(text)
        if keyword and (is_literal or "(" not in text):
            key = keyword[1]
        elif is_literal and place < len(order):
            key = order[place]
        else:
            return None
        if key in arguments:
            spare = f"the parameter {key[:40]!r} stands twice"
        elif not is_literal and _QUOTE.search(text):
            spare = STRAY_TEXT
        arguments[key] = value
    return arguments, spare


_QUOTE = re.compile("['\"]")


def _python_value(text: str) -> tuple[object, bool]:
    """An argument's value, and whether it is a literal and not a word."""
    json = read_json(
        f"[{text}]"
    )  # a list makes a value of its own of a bare word or number
    items = json.value if json and isinstance(json.value, list) else []
    if len(items) != 1:
        return text, False
    return items[0], text[0] in "\"'" or items[0] != text
