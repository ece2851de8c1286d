"""A name, some marks, and JSON: most families' own formats."""

from __future__ import annotations

import re
from dataclasses import replace

from ..calls import Raw
from ..cursor import Cursor, More
from ..marks import ANY_MARK
from .elements import with_json
from .python import python_calls

_FILLERS = frozenset(
    ("function", "functions", "assistant", "commentary", "code", "json", "call", "to", "recipient",
     "name", "tool", "tool_code")
)  # fmt: skip
_FILLER_BEGINS = f" {' '.join(sorted(_FILLERS))}"
_BEFORE_NAME = re.compile(r"[\s:：(\[\].=]+|\d+\b|(?P<word>[A-Za-z_]+)\b")
# What may stand around a name, a token at a time.
_HEAD_TOKEN = re.compile(
    rf"(?P<id>(?:\[[A-Z_]{{0,20}}ID\]|<[|｜]\w{{0,20}}id[|｜]>)[\w:-]{{1,80}})"
    rf"|(?P<mark>{ANY_MARK})|(?P<fence>`{{3,}}\w*)|(?P<word>[A-Za-z_][\w./-]*)"
    r"|(?P<plain>[\s:：(\[\].=]|\d+\b)"
)
_HALF_HEAD_TOKEN = re.compile(
    r"(?:<[|｜][^<>{}\n]{0,60}|<|\[[A-Z_]{0,30}|✿[A-Z]{0,12}|`{1,2})\Z"
)
_LONGEST_HEAD = 200
_NO_FIT = "nothing marks it as a call, and it does not fit the function"


def headed(cursor: Cursor, *, offered: bool = True) -> list[Raw] | None:
    """A name and JSON, whatever marks stand around the name: most families' own formats."""
    begin = cursor.at
    name = _head(cursor)
    if name is None or (offered and not cursor.judge.find(name)):
        return None
    has_bracket = "(" in cursor.text[begin : cursor.at]
    raw = with_json(cursor, name)
    cursor.space()
    if has_bracket:
        cursor.accept("```", ")")
    else:
        cursor.accept("```")
    return [raw]


def _head(cursor: Cursor) -> str | None:
    """Pass over the one name before a brace, and what stands around it; None if there is none.

    A filler is the name only where there is no other word.
    """
    end = cursor.at + _LONGEST_HEAD
    filler: str | None = None
    name: str | None = None
    while cursor.char() != "{":
        match = _HEAD_TOKEN.match(cursor.text, cursor.at, end)
        may_grow = match is not None and match.end() == len(cursor.text)
        is_half = (
            may_grow or _HALF_HEAD_TOKEN.match(cursor.text, cursor.at, end) is not None
        )
        if is_half and not cursor.final and len(cursor.text) < end:
            raise More
        if match is None:
            return None
        cursor.at = match.end()
        word = match["word"]
        if word in _FILLERS:
            filler = filler or word
        elif word and name is not None:
            return None
        elif word:
            name = word
    return name or filler


def unmarked(cursor: Cursor) -> list[Raw] | None:
    """A call whose marks a server has taken away; prose may begin with a tool's name, too."""
    while match := _BEFORE_NAME.match(cursor.text, cursor.at):
        if match["word"] and match["word"] not in _FILLERS:
            break
        cursor.at = match.end()
    begin = cursor.at
    if not cursor.final and f" {cursor.text[begin:]}" in _FILLER_BEGINS:
        raise More
    cursor.accept("print(")
    if not cursor.judge.find(cursor.word()):
        return None
    cursor.at = begin
    raws = headed(cursor)
    if raws is None:
        cursor.at = begin
        raws = python_calls(cursor)
        if raws and cursor.char() not in ("", "\n"):
            return None
    if raws and not all(map(cursor.judge.fits, raws)):
        raws[-1] = replace(raws[-1], leftover=raws[-1].leftover or _NO_FIT)
    return raws
