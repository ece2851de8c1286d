"""Calls as a name, some marks, and the arguments as JSON. One row or function for each family."""

from __future__ import annotations

import re
from json import dumps

from ..._json import read_json
from ..cursor import Cursor
from ..judge import CUT_OFF, Raw
from ..pending import More
from .marks import ANY_MARK
from .python import python_call, python_calls

_N = r"(?P<name>[A-Za-z_][\w./-]*)"
_WORDS = ("function", "functions", "assistant", "commentary", "code", "json", "call", "to",
          "recipient", "name", "tool", "tool_code")  # fmt: skip
_PLAIN = rf"\s|[:：(\[\].]|\d+\b|(?:{'|'.join(_WORDS)})\b"
_FILL = rf"(?:{_PLAIN}|{ANY_MARK})"
_BEGINNING = re.compile(rf"(?:{_PLAIN}|=)*(?:print\()?(?P<name>[\w./-]*)")
# A fence is all of its ticks and its whole label: read in parts, many of them would take for ever.
_HEAD = re.compile(rf"(?:{_FILL}|=)*?{_N}(?:{_FILL}|`{{3,}}(?!`)\w*(?!\w))*(?=\{{)")
_LONGEST_HEAD = 200


def headed(c: Cursor, *, offered: bool = True) -> list[Raw] | None:
    """A name and JSON, whatever marks stand around the name: most families' own formats.

    Args:
        c: Where the marks before the name begin.
        offered: Whether the name must be on offer.
    """
    head = c.match(_HEAD, _LONGEST_HEAD)
    if not head or (offered and not c.judge.find(head["name"])):
        return None
    raw = with_json(c, head["name"])
    c.space()
    c.take("```", ")")
    return [raw]


def with_json(c: Cursor, name: str) -> Raw:
    """The call whose arguments begin here as JSON."""
    json = c.json()
    if json is None:
        return Raw(name, fault="unreadable arguments")
    return Raw(name, json.value, json.fault, whole=json.whole)


def after_mark(c: Cursor) -> list[Raw]:
    """The same after a mark that is dropped where no call follows."""
    begin = c.at
    found = headed(c)
    c.at = c.at if found else begin
    return found or []


def arrows(c: Cursor) -> list[Raw] | None:
    """`>>>name`, then JSON on the next line, or `>>>all` before prose: Functionary 3.2."""
    return [] if c.take("all\n") else headed(c)


_ASSIGNED = re.compile(r"(?:tool_code|call)\s*[:=]\s*(?=\S)")


def unmarked(c: Cursor) -> list[Raw] | None:
    """A call at the very beginning of an answer, whose marks a server has taken away.

    Only what fits the tool's schema is one: prose may begin with the name of a tool, too.
    """
    begin = c.at
    if not _may_begin(c):
        return None
    found = headed(c)
    if found is None:
        c.at = begin
        c.match(_ASSIGNED, 20)
        found = python_call(c)
        if found and c.char() not in ("", "\n"):
            return None
    return found if found and all(c.judge.fits(raw) for raw in found) else None


def _may_begin(c: Cursor) -> bool:
    """Whether the text begins with the name of a tool, and nothing but marks before it."""
    found = _BEGINNING.match(c.text, c.at)
    name, end = (found["name"], found.end()) if found else ("", c.at)
    words = (*_WORDS, "print(")
    may_go_on = end == len(c.text) and not c.final
    if may_go_on and (c.judge.may_begin(name) or any(w.startswith(name) for w in words)):
        raise More
    return c.judge.find(name) is not None


_INPUT = re.compile(r"\**Action Input\s*\**:?[ \t*]*", re.IGNORECASE)
_INPUT_WORDS = ("Action Input", "**Action Input", "Action input", "action input")
_NEXT_STEP = re.compile(r"(?=\n[ \t*]*(?:Observation|Thought|Action|Final Answer)\**:)")
_FENCE = re.compile(r"`{3,}\w*\s*(?=[{\[])")
_STRAY = "*`'\" \t\r"
_BRACKETED = re.compile(r"([A-Za-z_][\w./-]*)\[(.*)\]")


def react(c: Cursor) -> list[Raw] | None:
    """`Action: name`, `Action Input: …`: the input is JSON or, for one text argument, plain."""
    begin = c.at
    name = _line(c)
    if name is None or not c.judge.find(name):
        found = _bracketed(c, name or "")
        c.at = c.at if found else begin
        return found or headed(c)
    c.space()
    if not c.sees(*_INPUT_WORDS):
        return [Raw(name)] if c.sees("Observation:") else None
    c.skip(_INPUT)
    return [_input(c, name)]


def _bracketed(c: Cursor, line: str) -> list[Raw] | None:
    """`Action: search[Oslo]`, as in the paper that named ReAct; `Action: search(query='Oslo')`."""
    found = _BRACKETED.fullmatch(line)
    if found:
        return [Raw(found[1], found[2], loose=True)] if c.judge.find(found[1]) else None
    calls = python_calls(line, c.judge)
    return calls if calls and c.judge.find(calls[0].name) else None


def _input(c: Cursor, name: str) -> Raw:
    begin = c.at
    c.space()
    fence = c.match(_FENCE, 40) if c.char() == "`" else None
    json = c.json() if c.char() in ("{", "[") else None
    if json is None:
        c.at = begin
        text = c.until(_NEXT_STEP, ":")[0].strip()
        cut = text[:3] in ("`", "``", "```")  # in a fence that was to hold JSON
        return Raw(name, text, CUT_OFF if cut else "", loose=True)
    if fence:
        c.space()
        c.take("```")
    return Raw(name, json.value, json.fault, loose=True, whole=json.whole)


def _line(c: Cursor) -> str | None:
    """The line, without what may surround a name; None if no offered name begins so."""
    end = c.text.find("\n", c.at)
    end = len(c.text) if end < 0 else end
    line = c.text[c.at : end].strip(_STRAY)
    if end == len(c.text) and not c.final:
        if not c.judge.may_begin(re.split(r"[\[(]", line, maxsplit=1)[0]):
            return None
        raise More
    c.at = end
    return line


_GEMMA_HEAD = re.compile(r"\s*call:\s*(?P<name>[\w.:/-]+)\s*(?=\{)")
_GEMMA_QUOTE = re.compile(r"<\|\"\|>|<escape>")
_GEMMA_END = re.compile(
    r"<tool_call\|>|<end_function_call>|(?=<\|tool_call>|<start_function_call>)"
)


def gemma(c: Cursor) -> list[Raw] | None:
    """`<|tool_call>call:name{…}<tool_call|>`, and FunctionGemma's `<start_function_call>`."""
    head = c.match(_GEMMA_HEAD)
    if not head:
        return None
    text, _ = c.until(_GEMMA_END)
    parts = _GEMMA_QUOTE.split(text)
    # Every second part stood between two marks.
    quoted = [dumps(part) if at % 2 else part for at, part in enumerate(parts)]
    found = read_json("".join(quoted))
    if found is None:
        return [Raw(head["name"], fault="unreadable arguments")]
    cut = len(parts) % 2 == 0 or found.cut_in_value
    return [Raw(head["name"], found.value, CUT_OFF if cut else "", whole=found.complete)]
