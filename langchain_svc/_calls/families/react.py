"""Steps of ReAct: `Action:` with a name, `Action Input:` with its arguments."""

from __future__ import annotations

import re

from ..calls import CUT_OFF, MISSING, Raw
from ..cursor import Cursor
from .elements import with_json
from .named import unmarked

_EDGE = re.compile(r"[*`'\" \t\r]*")
_INPUT = re.compile(r"\*{0,3}Action Input\s{0,20}\*{0,3}:?[ \t*]*", re.IGNORECASE)
_INPUT_WORDS = ("Action Input", "**Action Input", "Action input", "action input")
_NEXT_STEP = re.compile(r"(?=\n[ \t*]*(?:Observation|Thought|Action|Final Answer)\**:)")
_LINE_END = re.compile(r"(?=\n)")


def react(cursor: Cursor) -> list[Raw] | None:
    """`Action: name`, `Action Input: …` as JSON or a plain text; `Action: search[Oslo]`."""
    cursor.skip(_EDGE)
    begin = cursor.at
    name = cursor.word()
    if cursor.judge.find(name) and cursor.char() == "[":
        text = cursor.until(_LINE_END, need="\n")[0].strip("*`'\" \t\r")
        if not text.endswith("]"):
            return None
        return [Raw(name, text[1:-1], loose=True, whole=True)]
    cursor.skip(_EDGE)
    if not cursor.judge.find(name) or cursor.char() not in ("\n", ""):
        cursor.at = begin
        return unmarked(cursor)
    cursor.space()
    if not cursor.sees(*_INPUT_WORDS):
        return [Raw(name)] if cursor.sees("Observation:") else None
    cursor.skip(_INPUT)
    begin = cursor.at
    cursor.space()
    raw = with_json(cursor, name, loose=True)
    if raw.arguments is MISSING:
        cursor.at = begin
        text = cursor.until(_NEXT_STEP, need=":")[0].strip()
        raw = Raw(name, text, loose=True)
        if text[:3] in ("`", "``", "```"):  # a fence that was to hold JSON
            raw = Raw(name, text, CUT_OFF, loose=True)
    return [raw]
