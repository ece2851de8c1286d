"""A name, some marks, and JSON: most families' own formats."""

from __future__ import annotations

import re

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


def headed(c: Cursor, *, offered: bool = True) -> list[Raw] | None:
    """A name and JSON, whatever marks stand around the name: most families' own formats."""
    begin = c.at
    name = _head(c)
    if name is None or (offered and not c.judge.find(name)):
        return None
    has_bracket = "(" in c.text[begin : c.at]
    raw = with_json(c, name)
    c.space()
    if has_bracket:
        c.accept("```", ")")
    else:
        c.accept("```")
    return [raw]


def _head(c: Cursor) -> str | None:
    """Pass over the one name before a brace, and what stands around it; None if there is none.

    A filler is the name only where there is no other word.
    """
    end = c.at + _LONGEST_HEAD
    filler: str | None = None
    name: str | None = None
    while c.char() != "{":
        match = _HEAD_TOKEN.match(c.text, c.at, end)
        may_grow = match is not None and match.end() == len(c.text)
        is_half = may_grow or _HALF_HEAD_TOKEN.match(c.text, c.at, end) is not None
        if is_half and not c.final and len(c.text) < end:
            raise More
        if match is None:
            return None
        c.at = match.end()
        word = match["word"]
        if word in _FILLERS:
            filler = filler or word
        elif word and name is not None:
            return None
        elif word:
            name = word
    return name or filler


def unmarked(c: Cursor) -> list[Raw] | None:
    """A call whose marks a server has taken away; prose may begin with a tool's name, too."""
    while match := _BEFORE_NAME.match(c.text, c.at):
        if match["word"] and match["word"] not in _FILLERS:
            break
        c.at = match.end()
    begin = c.at
    if not c.final and f" {c.text[begin:]}" in _FILLER_BEGINS:
        raise More
    c.accept("print(")
    if not c.judge.find(c.word()):
        return None
    c.at = begin
    raws = headed(c)
    if raws is None:
        c.at = begin
        raws = python_calls(c)
        if raws and c.char() not in ("", "\n"):
            return None
    if raws and all(map(c.judge.fits, raws)):
        return raws
    return None
