"""Calls between tags: our own, and the many wrappers that other models were taught.

What stands in a wrapper is told from its first character: JSON, a fence around JSON, a list of
calls in Python's syntax, or a name with its arguments in one of several ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from ..cursor import Cursor
from ..judge import CUT_OFF, Raw
from ..values import calls_in
from . import named, python, xml
from .marks import CALL_MARK, NAMED, closes, holds_calls

Reader = Callable[[Cursor], list[Raw] | None]

_FENCE = re.compile(r"`{3,}[ \t]*\w*\s*(?=[^\s`])")
_FENCE_END = re.compile(r"\s*`{3,}")
_SPILL = re.compile(r"[\s}\])]*")  # closers too many
_SPOKEN = re.compile(r"[^\n{}\[\]()<>=:\"]+(?:\Z|[;.,])")  # as in: <tool_call> and </tool_call>
_MARK_FOLLOWS = re.compile(f"{CALL_MARK}|{NAMED}")
_MARK = re.compile(CALL_MARK)
_NAMED = re.compile(NAMED)
_OWN_END = re.compile(r"</?tool_call>|\n[ \t]*\n|<tool_response")

# Calls that begin with a word, in the order in which they are tried.
WORDED: tuple[Reader, ...] = (
    xml.arg_keys,
    python.python_call,
    named.headed,
)


def own(c: Cursor) -> list[Raw] | None:
    """`<tool_call>{"name": …, "arguments": …}</tool_call>`, or whatever stands in these tags."""
    c.space()
    begin = c.at
    if c.take("</tool_call>"):
        return [Raw(None, fault="the block is empty", whole=True)]
    found = _inside(c, tagged=True)
    if found is None:
        c.at = begin
        return _unreadable(c)
    _close(c, "</tool_call>")
    return found


def _unreadable(c: Cursor) -> list[Raw] | None:
    """What is not a call in any format, if it is in tags; tags alone were only spoken of."""
    begin = c.at
    text, end = c.until(_OWN_END, ">\n")
    closed = end is not None and end[0] == "</tool_call>"
    if _SPOKEN.match(text) and not any(name in text for name in c.judge.names):
        return None
    if closed:
        fault = "this is not a JSON object with a name and arguments"
        return [Raw(None, fault=fault, whole=True)]
    c.at = begin
    return [] if text.strip() or end else [Raw(None, fault=CUT_OFF)]


def marked(c: Cursor, mark: str) -> list[Raw] | None:
    """What stands after the mark of any family; the mark alone is dropped before another one."""
    begin = c.at
    c.space()
    found = _inside(c, tagged=holds_calls(mark)) or None
    if found is None:
        c.at = begin
        found = named.headed(c, offered=not holds_calls(mark))
    if found is None:
        c.at = begin
        c.space()
        dropped = mark[1] in "|｜" or c.match(_MARK_FOLLOWS, 80)
        c.at = begin
        return [] if dropped else None
    end = c.at
    c.skip(_SPILL)
    closing = c.match(_MARK, 80) if c.char() == "<" else None
    if not closing or not closes(closing[0]):
        c.at = end
    return found


def opened(c: Cursor) -> list[Raw] | None:
    """The call whose mark begins here."""
    if mark := c.match(_MARK, 80):
        return marked(c, mark[0])
    return xml.named_element(c) if c.match(_NAMED, 80) else None


def in_xml(c: Cursor) -> list[Raw] | None:
    """`<xml>…</xml>`: xLAM; documents have this element, too."""
    c.space()
    found = _inside(c, tagged=False) or None
    if found:
        _close(c, "</xml>")
    return found


def _inside(c: Cursor, *, tagged: bool) -> list[Raw] | None:
    """The calls that begin here; empty if another opening tag stands here."""
    fence = c.match(_FENCE, 60) if c.char() == "`" else None
    char = c.char()
    if char in ("{", "["):
        begin = c.at
        found = python.pythonic_list(c) if char == "[" else None
        if found is None:
            c.at = begin
            found = json_calls(c, tagged=tagged)
    elif char == "<":
        return []
    else:
        found = _worded(c)
    if fence:
        c.space()
        c.take("```")
    return found


def _worded(c: Cursor) -> list[Raw] | None:
    begin = c.at
    for read_words in WORDED:
        c.at = begin
        found = read_words(c)
        if found:
            return found
    return None


def json_calls(c: Cursor, *, tagged: bool) -> list[Raw] | None:
    """The calls of the JSON value, or of several with commas or semicolons between them."""
    begin = c.at
    json = c.json(lines=not tagged)
    if json is None:
        return None
    raws = calls_in(json.value, c.judge, tagged=tagged)
    if raws is None and json.fault:
        c.at = begin  # other calls may stand in what was left open
    if raws:
        raws[-1] = replace(raws[-1], fault=raws[-1].fault or json.fault, whole=json.whole)
    return raws


def _close(c: Cursor, closer: str) -> None:
    """Pass over the closing tag and closing brackets too many, if they are here."""
    begin = c.at
    c.skip(_SPILL)
    if not c.take(closer):
        c.at = begin


def functools(c: Cursor) -> list[Raw] | None:
    """`functools[{…}, …]`: Phi-4 mini."""
    c.at -= 1
    return json_calls(c, tagged=True)
