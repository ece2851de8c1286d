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


def react(c: Cursor) -> list[Raw] | None:
    """`Action: name`, `Action Input: …` as JSON or a plain text; `Action: search[Oslo]`."""
    c.skip(_EDGE)
    begin = c.at
    name = c.word()
    if c.judge.find(name) and c.char() == "[":
        text = c.until(_LINE_END, need="\n")[0].strip("*`'\" \t\r")
        if not text.endswith("]"):
            return None
        return [Raw(name, text[1:-1], loose=True)]
    c.skip(_EDGE)
    if not c.judge.find(name) or c.char() not in ("\n", ""):
        c.at = begin
        return unmarked(c)
    c.space()
    if not c.sees(*_INPUT_WORDS):
        return [Raw(name)] if c.sees("Observation:") else None
    c.skip(_INPUT)
    begin = c.at
    c.space()
    raw = with_json(c, name, loose=True)
    if raw.arguments is MISSING:
        c.at = begin
        text = c.until(_NEXT_STEP, need=":")[0].strip()
        raw = Raw(name, text, loose=True)
        if text[:3] in ("`", "``", "```"):  # a fence that was to hold JSON
            raw = Raw(name, text, CUT_OFF, loose=True)
    return [raw]
