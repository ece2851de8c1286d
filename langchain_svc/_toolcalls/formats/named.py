"""Calls as a name, some marks, and the arguments as JSON. One row or function for each family."""

from __future__ import annotations

import re

from ..cursor import Cursor
from ..hold import More
from ..offer import MISSING, Raw
from .python import python_calls

_N = r"(?P<name>[\w.:/-]+)"


def _head(c: Cursor, head: re.Pattern[str], *tails: str) -> list[Raw] | None:
    """A call whose name stands in `head`, and JSON right after it; `tails` may close it."""
    found = c.match(head)
    if not found:
        return None
    json = c.json()
    if json is None:
        return [Raw(found["name"], fault="unreadable arguments")]
    if tails:
        c.space()
        c.take(*tails)
    return [Raw(found["name"], json.value, json.fault)]


_MISTRAL = re.compile(rf"\s*{_N}\s*(?:\[CALL_ID\]\s*\w+\s*)?(?:\[ARGS\]\s*)?(?=\{{)")


def mistral(c: Cursor) -> list[Raw] | None:
    """`[TOOL_CALLS]name[CALL_ID]123[ARGS]{…}`, from Mistral's eleventh tokenizer on."""
    return _head(c, _MISTRAL)


_DEEPSEEK = re.compile(
    rf"(?:\s|<｜tool▁call▁begin｜>)*(?:\w+\s*<｜tool▁sep｜>)?\s*{_N}"
    r"\s*(?:<｜tool▁sep｜>)?\s*(?:```\w*\s*)?(?=\{)"
)


def deepseek(c: Cursor) -> list[Raw] | None:
    """`<｜tool▁call▁begin｜>function<｜tool▁sep｜>name`, then a fence (V3) or plain JSON (V3.1)."""
    found = _head(c, _DEEPSEEK, "```")
    if found:
        c.space()
        c.take("<｜tool▁call▁end｜>")
    return found


_KIMI = re.compile(r"\s*(?P<name>[\w./-]+)(?::\d+)?\s*<\|tool_call_argument_begin\|>\s*(?=\{)")


def kimi(c: Cursor) -> list[Raw] | None:
    """`<|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`."""
    return _head(c, _KIMI, "<|tool_call_end|>")


_HARMONY = re.compile(rf"[^{{}}\n]{{0,60}}?\bto={_N}[^{{}}]{{0,80}}?(?=\{{)")


def harmony(c: Cursor) -> list[Raw] | None:
    """`assistant to=functions.name json`, then JSON; with `<|message|>` and the like: gpt-oss."""
    return _head(c, _HARMONY, "<|call|>", "</tool_call>")


def harmony_start(c: Cursor) -> list[Raw]:
    """`<|start|>assistant`, which begins a call only if it is addressed to a function."""
    begin = c.at
    found = harmony(c) if c.sees(" to=") else None
    c.at = c.at if found else begin
    return found or []


_ARROWS = re.compile(rf"{_N}[ \t]*\n\s*(?=\{{)")


def arrows(c: Cursor) -> list[Raw] | None:
    """`>>>name`, then JSON on the next line, or `>>>all` before prose: Functionary 3.2."""
    if c.take("all\n"):
        return []
    begin = c.at
    if not c.offer.find(c.word()):
        return None
    c.at = begin
    return _head(c, _ARROWS)


_GLYPHS = re.compile(rf"[:：]\s*{_N}\s*✿ARGS✿\s*[:：]\s*(?=\{{)")


def glyphs(c: Cursor) -> list[Raw] | None:
    """`✿FUNCTION✿: name`, `✿ARGS✿: {…}`: the first Qwen agents."""
    return _head(c, _GLYPHS)


_RECIPIENT = re.compile(rf"\s*{_N}\s*<\|content\|>\s*(?=\{{)")


def recipient(c: Cursor) -> list[Raw] | None:
    """`<|recipient|>name<|content|>{…}`: Functionary 2."""
    return _head(c, _RECIPIENT)


_NAME_AND_KEYS = re.compile(
    rf"(?:name|function|tool)\s*[:=]\s*[\"'`]?{_N}[\"'`]?\s*,?\s*"
    r"(?:arguments|parameters|args|input)\s*[:=]\s*(?=\{)"
)
_NAME_THEN_JSON = re.compile(rf"{_N}\s*[:=(]?\s*(?:```\w*\s*)?(?=\{{)")


def first_line(c: Cursor) -> list[Raw] | None:
    """A name on the first line of the answer, JSON on the next: Functionary 3.2 without `>>>`."""
    name = c.text[: c.at].strip()
    c.space()
    json = c.json() if c.char() == "{" else None
    return [Raw(name, json.value, json.fault)] if json and isinstance(json.value, dict) else None


def name_lines(c: Cursor) -> list[Raw] | None:
    """`name: get_weather`, `arguments: {…}`: a call whose braces were left out."""
    return _head(c, _NAME_AND_KEYS)


def name_then_json(c: Cursor) -> list[Raw] | None:
    """`get_weather {…}`, the JSON perhaps in a fence."""
    begin = c.at
    if not c.offer.find(c.word()):
        return None
    c.at = begin
    return _head(c, _NAME_THEN_JSON, "```", ")")


_INPUT = re.compile(r"\**Action Input\s*\**:?[ \t*]*", re.IGNORECASE)
_INPUT_WORDS = ("Action Input", "**Action Input", "Action input", "action input")
_NEXT_STEP = re.compile(r"(?=\n[ \t*]*(?:Observation|Thought|Action|Final Answer)\**:)")
_FENCE = re.compile(r"`{3,}\w*\s*(?=[{\[])")
_STRAY = "*`'\" \t\r"


def react(c: Cursor) -> list[Raw] | None:
    """`Action: name`, `Action Input: …`: the input is JSON or, for one text argument, plain."""
    name = _line(c)
    if name is None or not c.offer.find(name):
        return _with_brackets(c, name or "")
    c.space()
    if not c.sees(*_INPUT_WORDS):
        ends = not c.char() or c.sees("Observation:")
        return [Raw(name, MISSING)] if ends else None
    c.at = _INPUT.match(c.text, c.at).end()  # type: ignore[union-attr]
    c.space()
    if c.sees("Observation:"):
        return [Raw(name, MISSING)]
    return [_input(c, name)]


def _with_brackets(c: Cursor, line: str) -> list[Raw] | None:
    """`Action: search[Oslo]`, `Action: search(query='Oslo')`."""
    found = re.fullmatch(rf"{_N}\[(.*)\]", line)
    if found and c.offer.find(found["name"]):
        return [Raw(found["name"], found[2], loose=True)]
    calls = python_calls(line, c.offer) if line.endswith(")") else None
    return calls if calls and c.offer.find(calls[0].name) else None


def _input(c: Cursor, name: str) -> Raw:
    begin = c.at
    fence = c.match(_FENCE, 40) if c.char() == "`" else None
    json = c.json() if c.char() in ("{", "[") else None
    if json is None:
        c.at = begin
        return Raw(name, c.until(_NEXT_STEP, ":")[0].strip(), loose=True)
    if fence:
        c.space()
        c.take("```")
    return Raw(name, json.value, json.fault, loose=True)


def _line(c: Cursor) -> str | None:
    """The line, without what may surround a name; None if no offered name begins so."""
    end = c.text.find("\n", c.at)
    line = (c.text[c.at :] if end < 0 else c.text[c.at : end]).strip(_STRAY)
    if end < 0 and not c.final:
        name = re.match(r"[\w.:/-]*", line)
        if not c.offer.may_begin(name[0] if name else line):
            return None
        raise More
    c.at = len(c.text) if end < 0 else end
    return line
