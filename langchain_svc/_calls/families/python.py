"""Calls in Python's syntax: `name(key=value)`."""

from __future__ import annotations

import re

from ..._json import read_json
from ..calls import CUT_OFF, Raw
from ..cursor import Cursor, split_commas
from ..judge import Judge
from ..tokens import STRAY_TEXT, accounts_for

_BETWEEN = re.compile(r"[\s,;]*")
_KEYWORD = re.compile(r"(\w+)\s*=(?!=)\s*")


def python_list(cursor: Cursor) -> list[Raw] | None:
    """`[name(key=value), …]`: Llama 3.2 and 4, LFM2, BFCL's own prompt."""
    cursor.at += 1
    raws = python_calls(cursor, listed=True)
    cursor.skip(_BETWEEN)
    if raws and (cursor.accept("]") or not cursor.char()):
        return raws
    return None


def python_calls(cursor: Cursor, *, listed: bool = False) -> list[Raw] | None:
    """`name(key=value)`, one or several; in a list the first of them tells what it is."""
    raws: list[Raw] = []
    while True:
        begin = cursor.at
        cursor.skip(_BETWEEN)
        is_printed = cursor.accept("print(")
        name = cursor.word()
        is_name = cursor.judge.find(name) or (listed and raws)
        raw = _call(cursor, name) if is_name and cursor.char() == "(" else None
        if raw is None:
            cursor.at = begin
            return raws or None
        raws.append(raw)
        if is_printed:
            cursor.accept(")")


def _call(cursor: Cursor, name: str) -> Raw | None:
    """The call whose arguments stand in the parenthesis here."""
    text, is_closed = cursor.bracketed()
    body = text[1:-1] if is_closed else text[1:]
    keywords = _keywords(name, body, cursor.judge)
    if keywords is None:
        return None
    arguments, leftover = keywords
    fault = "" if is_closed else CUT_OFF
    return Raw(name, arguments, fault, whole=is_closed, leftover=leftover)


def _keywords(
    name: str, body: str, judge: Judge
) -> tuple[dict[str, object], str] | None:
    """The arguments, and what is left over; None if it is code with variables, and no call."""
    tool = judge.find(name)
    order = list(tool.properties) if tool else []
    arguments: dict[str, object] = {}
    leftover = ""
    for place, part in enumerate(split_commas(body)):
        keyword = _KEYWORD.match(part)
        text = part[keyword.end() :] if keyword else part
        value, is_literal, is_sure = _python_value(text)
        if keyword and (is_literal or "(" not in text):
            key = keyword[1]
        elif is_literal and place < len(order):
            key = order[place]
        else:
            return None
        if key in arguments:
            leftover = f"the parameter {key[:40]!r} stands twice"
        elif not is_sure:
            leftover = STRAY_TEXT
        arguments[key] = value
    return arguments, leftover


_MORE_THAN_A_WORD = re.compile(r"[\s'\"]")


def _python_value(text: str) -> tuple[object, bool, bool]:
    """An argument's value, whether it is a literal and not a word, and if nothing is left over."""
    source = f"[{text}]"  # a bare word or number is a value only within a list
    json = read_json(source)
    items = json.value if json and isinstance(json.value, list) else []
    if len(items) == 1 and (text[0] in "\"'" or items[0] != text):
        return items[0], True, accounts_for(source, items)
    return text, False, not _MORE_THAN_A_WORD.search(text)
