"""The form of calls that our own prompt asks for: JSON in tags, in a fence, or alone.

A reader begins where the form does and returns the calls that it reads; an empty list if the text
is only noise around calls, None if this is no call. What stands in the tags and is no JSON is left
to the families, if there are any.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from .calls import CUT_OFF, Raw
from .cursor import Cursor
from .judge import calls_in
from .marks import (
    CALL_MARK,
    CLOSING,
    FIRST_CHARACTERS,
    NAMED_ELEMENT,
    SPILL,
    account,
    is_next,
    may_be_call,
    pass_blanks,
    pass_blanks_or_end,
)

FENCE = re.compile(r"`{3,9}[ \t]{0,9}\w{0,20}\s{0,40}(?=[^\s`])")
# As in: <tool_call> and </tool_call>.
_SPOKEN_OF = re.compile(r"[^\n{}\[\]()<>=:\"]+(?:\Z|[;.,])")
_OWN_END = re.compile(r"</?tool_call>|\n[ \t]*\n|<tool_response")
_CLOSED = re.compile(r"</[^<>\n]{1,60}>\s{0,10}\Z")


def read_tags(cursor: Cursor) -> list[Raw] | None:
    """`<tool_call>{"name": …, "arguments": …}</tool_call>`, or whatever stands in these tags."""
    pass_blanks(cursor)
    begin = cursor.at
    if cursor.accept("</tool_call>"):
        return [Raw(None, fault="the block is empty", whole=True)]
    raws = read_inside(cursor, tagged=True)
    if raws:
        close(cursor, raws, "tool_call", demanded=True)
        if cursor.text[begin : cursor.at].rstrip().endswith("</tool_call>"):
            # It was closed, so max_tokens did not cut it: the model can be told.
            raws[-1] = replace(raws[-1], whole=True)
            if raws[-1].fault == CUT_OFF:
                raws[-1] = replace(raws[-1], fault="a value in it does not end")
        return raws
    if raws is not None and is_next(cursor):
        return raws  # these tags stand around those of the next call
    return _unread(cursor, begin)


def _unread(cursor: Cursor, begin: int) -> list[Raw] | None:
    """What stands in our own tags and is a call in no form; prose may speak of the tags alone."""
    cursor.at = begin
    text, end = cursor.until(_OWN_END, need=">\n")
    name = cursor.judge.named_in(text)
    if _SPOKEN_OF.match(text) and not name:
        return None
    fault = "this is not a JSON object with a name and arguments"
    if end is not None and end[0] == "</tool_call>":
        return [Raw(None, fault=fault, whole=True)]
    if not text.strip() and end is None:
        return [Raw(None, fault=CUT_OFF)]
    cursor.at = begin
    if name is None:
        return None
    return [Raw(name, leftover=fault)]


def read_inside(cursor: Cursor, *, tagged: bool) -> list[Raw] | None:
    """The calls that begin here; empty if another opening tag stands here."""
    fence = cursor.match(FENCE, 60) if cursor.char() == "`" else None
    char = cursor.char()
    if char == "<":
        return cursor.families.inside(cursor) or []
    if char in ("{", "["):
        raws = read_bare(cursor, tagged=tagged)
    else:
        raws = cursor.families.inside(cursor)
    if fence:
        cursor.space()
        cursor.accept("```")
    return raws


def close(cursor: Cursor, raws: list[Raw], word: str, *, demanded: bool) -> None:
    """Pass over brackets too many and the closing tag; what stands before it is left over.

    `demanded`: the form has a closing tag, so without one the call ends only where the answer does
    or another call begins.
    """
    begin = cursor.at
    if _CLOSED.search(cursor.text, max(0, begin - 80), begin):
        return
    cursor.skip(SPILL)
    pass_blanks_or_end(cursor)
    if cursor.char() in FIRST_CHARACTERS:
        mark = cursor.match(CALL_MARK, 80)
        is_closed = CLOSING.search(mark[0]) if mark else cursor.accept(f"</{word}>")
        if is_closed:
            return
    cursor.at = begin
    if demanded or not raws[-1].whole:
        account(cursor, raws)


def json_calls(cursor: Cursor, *, tagged: bool) -> list[Raw] | None:
    """The calls that the JSON here is."""
    begin = cursor.at
    json = cursor.json()
    if json is None:
        return None
    raws = calls_in(json.value, cursor.judge, tagged=tagged)
    if not raws:
        if raws is None and json.fault:
            cursor.at = begin  # other calls may stand in what was left open
        return raws
    fault = raws[-1].fault or json.fault
    raws[-1] = replace(raws[-1], fault=fault, whole=json.whole)
    return raws


# -- JSON with nothing around it, or only a fence -------------------------------------------------
# An answer may be JSON, too: if its first keys are not those of a call, it is prose at once.

_TICKS = re.compile(r"`{3,}|~{3,}")
_FENCE_LINE = re.compile(r"\s*`{3,}(.*)")
_LABEL = re.compile(r"([\w+-]*)[ \t]*(?=[\n\r{[<])")
_CODE_LABELS = frozenset({"tool_code", "tool_call", "tool_calls"})
# fmt: off
_SURE_LABELS = _CODE_LABELS.union((
    "json", "jsonc", "json5", "tool", "tool_use", "function_call",
))
# fmt: on
_LABELS = _SURE_LABELS.union(("", "xml", "text", "plaintext"))


def read_bare(cursor: Cursor, *, tagged: bool = False) -> list[Raw] | None:
    """`{"name": …, "arguments": …}`, lists of these, `{"tool_calls": […]}`, `[name(key=value)]`."""
    begin = cursor.at
    if cursor.char() == "[":
        raws = cursor.families.listed(cursor)
        if raws is not None:
            return raws
        cursor.at = begin
    if tagged or may_be_call(cursor):
        return json_calls(cursor, tagged=tagged)
    return None


def read_fence(cursor: Cursor, *, after_prose: bool = False) -> list[Raw] | None:
    """A fence whose text begins with a call; the cursor is left inside of it.

    Fences show examples, too: it must name an offered tool, and after prose its label must be one
    for calls or data.
    """
    cursor.skip(_TICKS)
    match = cursor.match(_LABEL, 40)
    label = match[1].lower() if match else None
    if label not in (_SURE_LABELS if after_prose else _LABELS):
        return None
    raws = _in_fence(cursor, is_code=label in _CODE_LABELS)
    while raws == []:  # a mark before another one
        raws = _in_fence(cursor, is_code=label in _CODE_LABELS)
    if raws and any(cursor.judge.tool_named(raw.name) for raw in raws):
        return raws
    return None


def code_blocks(text: str) -> Iterator[str]:
    """The text between the lines of fences that may hold calls; an open fence holds nothing.

    A fence of another language shows what it holds.
    """
    block: list[str] | None = None
    label = ""
    for line in text.splitlines(keepends=True):
        fence = _FENCE_LINE.match(line)
        if fence is None:
            if block is not None:
                block.append(line)
        elif block is None:
            block = []
            label = fence[1].strip().lower()
        else:
            if label in _LABELS:
                yield "".join(block)
            block = None


def _in_fence(cursor: Cursor, *, is_code: bool) -> list[Raw] | None:
    cursor.space()
    char = cursor.char()
    mark = cursor.match(CALL_MARK, 80) if char in ("<", "[") else None
    if mark:
        return cursor.families.marked(cursor, mark[0])
    if char in ("{", "["):
        return read_bare(cursor)
    if char == "<":
        is_named = cursor.match(NAMED_ELEMENT, 80, peek=True)
        return cursor.families.named_element(cursor) if is_named else None
    return cursor.families.code(cursor) if is_code else None
