"""Calls in Python's syntax: `[get_weather(city='Oslo'), get_time()]`."""

from __future__ import annotations

import re
from typing import Any

from ..._json import read_json
from ..brackets import bracket_end, split_commas
from ..cursor import Cursor
from ..judge import CUT_OFF, Judge, Raw

_CALL = re.compile(r"[\s,;]*(?P<name>[A-Za-z_][\w.-]*)\(")
_KEYWORD = re.compile(r"(\w+)\s*=(?!=)\s*")


def pythonic_list(c: Cursor) -> list[Raw] | None:
    """`[name(key=value), …]`: Llama 3.2 and 4, LFM2, BFCL's own prompt."""
    begin = c.at
    c.at += 1
    c.space()
    if not c.judge.find(c.word()) or c.char() != "(":
        return None
    c.at = begin
    text, closed = c.bracketed()
    return python_calls(text[1:-1] if closed else text[1:], c.judge)


def python_call(c: Cursor) -> list[Raw] | None:
    """`name(key=value)` without a list around it; several on lines of their own."""
    found: list[Raw] = []
    while True:
        begin = c.at
        c.space()
        printed = c.take("print(")
        start = c.at
        if not c.judge.find(c.word()) or c.char() != "(":
            c.at = begin
            return found
        c.bracketed()
        found += python_calls(c.text[start : c.at], c.judge) or []
        if printed:
            c.take(")")


def python_calls(text: str, judge: Judge) -> list[Raw] | None:
    """The calls that a text consists of; None if it holds anything else."""
    raws: list[Raw] = []
    at = 0
    while found := _CALL.match(text, at):
        begin = found.end() - 1
        end = bracket_end(text, begin)
        body = text[begin + 1 : end - 1] if end else text[begin + 1 :]
        raw = _call(found["name"], body, judge, closed=end is not None)
        if raw is None:
            return None
        raws.append(raw)
        at = end or len(text)
    rest = text[at:].strip(" \t\r\n,;")
    return None if rest else raws


def _call(name: str, body: str, judge: Judge, *, closed: bool) -> Raw | None:
    tool = judge.find(name)
    order = list(tool.properties) if tool else []
    arguments: dict[str, Any] = {}
    for place, part in enumerate(split_commas(body)):
        keyword = _KEYWORD.match(part)
        text = part[keyword.end() :] if keyword else part
        value, literal = _value(text)
        if keyword and (literal or "(" not in text):
            arguments[keyword[1]] = value
        elif literal and place < len(order):
            arguments[order[place]] = value
        else:
            return None  # a call of code that has variables, not of a tool
    return Raw(name, arguments, "" if closed else CUT_OFF, whole=closed)


def _value(text: str) -> tuple[Any, bool]:
    """The value of a literal, and whether it is one."""
    # A list around it makes a value of its own of a bare word or number.
    found = read_json(f"[{text}]")
    if found is None or not isinstance(found.value, list) or len(found.value) != 1:
        return text, False
    return found.value[0], text[0] in "\"'" or found.value[0] != text
