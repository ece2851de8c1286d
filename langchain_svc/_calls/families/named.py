"""A name and its arguments, as models write a call of their own: JSON, Python, ReAct, Gemma."""

from __future__ import annotations

import re
from dataclasses import replace
from json import dumps

from ..._json import read_json
from ..calls import CUT_OFF, MISSING, Raw
from ..cursor import Cursor, More, split_commas
from ..judge import STRAY_TEXT, Judge, accounts_for
from ..marks import ANY_MARK
from .elements import with_json

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


# -- python ----------------------------------------------------------------------------------------
# Calls in Python's syntax: `name(key=value)`.

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


# -- gemma -----------------------------------------------------------------------------------------
# Gemma's and FunctionGemma's own syntax of calls.

_GEMMA_HEAD = re.compile(r"\s*call:\s*(?P<name>[\w.:/-]+)\s*(?=\{)")
_GEMMA_QUOTE = re.compile(r"<\|\"\|>|<escape>")
_GEMMA_END = re.compile(
    r"<tool_call\|>|<end_function_call>|<turn\|>|(?=<\|tool_call>|<start_function_call>)"
)


def gemma(cursor: Cursor) -> list[Raw] | None:
    """`<|tool_call>call:name{…}<tool_call|>`, and FunctionGemma's `<start_function_call>`."""
    head = cursor.match(_GEMMA_HEAD)
    if not head:
        return None
    parts = _GEMMA_QUOTE.split(cursor.until(_GEMMA_END)[0])
    # Every second part stood between two marks, so it is a string.
    parts[1::2] = map(dumps, parts[1::2])
    text = "".join(parts)
    parsed = read_json(text)
    if parsed is None:
        return [Raw(head["name"], fault="unreadable arguments")]
    is_open = len(parts) % 2 == 0
    fault = CUT_OFF if is_open or parsed.cut_in_value else parsed.spare
    is_all = accounts_for(text, parsed.value)
    return [
        Raw(
            head["name"],
            parsed.value,
            fault,
            whole=parsed.complete,
            leftover="" if is_all else STRAY_TEXT,
        )
    ]


# -- react -----------------------------------------------------------------------------------------
# Steps of ReAct: `Action:` with a name, `Action Input:` with its arguments.

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
