"""Calls as JSON with nothing around them, or only a fence.

An answer may be made of JSON, too. Whether it can be a call shows in its first keys; text that
cannot is given back as soon as that is seen.
"""

from __future__ import annotations

import re

from .cursor import Cursor
from .formats.python import python_call, pythonic_list
from .formats.tags import json_calls, opened
from .judge import Raw
from .pending import More
from .values import ARGUMENT_KEYS, CONTAINER_KEYS, NAME_KEYS, SIDE_KEYS

_SPACE = r"(?:\s|//[^\n]*\n|\#\s[^\n]*\n|/\*.{0,300}?\*/)*"
_QUOTE = "\"'“”‘’`"
_OPENING = re.compile(rf"(?:\[{_SPACE})?\{{{_SPACE}(?:\{{{_SPACE})?", re.DOTALL)
_HALF_OPENING = re.compile(r"\[\s*(?:/.*|\#(?:\s.*)?)?", re.DOTALL)
_KEY = re.compile(rf"[{_QUOTE}]?\s*([\w-]+)\s*[{_QUOTE}]?\s*:\s*")
_HALF_KEY = re.compile(rf"[{_QUOTE}]?\s*[\w-]*\s*[{_QUOTE}]?\s*|/.*|\#(?:\s.*)?", re.DOTALL)
_SIDE_VALUE = re.compile(rf"(?:\"(?:[^\"\\]|\\.)*\"|\d+|null)\s*,{_SPACE}", re.DOTALL)
_HALF_SIDE_VALUE = re.compile(r"(?:\"(?:[^\"\\]|\\.)*\\?\"?|\d*|n?u?l?l?)\s*", re.DOTALL)
_NAME = re.compile(rf"(?:[{_QUOTE}]|(?![{_QUOTE}]))([^{_QUOTE}\n,}}]{{0,80}})[{_QUOTE},}}]")
_SURE_KEYS = frozenset((*ARGUMENT_KEYS, *CONTAINER_KEYS))
_HEAD = 4000  # characters in which a call must show what it is


def bare(c: Cursor) -> list[Raw] | None:
    """`{"name": …, "arguments": …}`, a list of these, or `{"tool_calls": […]}`."""
    begin = c.at
    if c.text[begin] == "[":
        found = pythonic_list(c)
        if found is not None:
            return found
        c.at = begin
    if not _may_be_call(c):
        return None
    return json_calls(c, tagged=False)


def _may_be_call(c: Cursor) -> bool:
    """Whether the first keys and the name are those of a call; the cursor stays."""
    end = min(len(c.text), c.at + _HEAD)
    opening = _OPENING.match(c.text, c.at, end)
    if not opening:
        return _wait(c, _HALF_OPENING.fullmatch(c.text, c.at, end))
    at = opening.end()
    c.cost += at - c.at
    while True:
        key = _KEY.match(c.text, at, end)
        if not key:
            return _wait(c, _HALF_KEY.fullmatch(c.text, at, end))
        at = key.end()
        word = key[1].lower()
        if word in NAME_KEYS:
            return _is_offered(c, at, end)
        if word not in SIDE_KEYS:
            return word in _SURE_KEYS
        side = _SIDE_VALUE.match(c.text, at, end)
        if not side:
            return _wait(c, _HALF_SIDE_VALUE.fullmatch(c.text, at, end))
        c.cost += side.end() - key.start()
        at = side.end()


def _is_offered(c: Cursor, at: int, end: int) -> bool:
    """Whether the value of a key for names is an offered name, or an object with one."""
    if c.text[at : at + 1] in ("{", "["):
        return True
    name = _NAME.match(c.text, at, end)
    if name:
        return c.judge.find(name[1]) is not None
    return _wait(c, c.judge.may_begin(c.text[at:end]))


def _wait(c: Cursor, half: object) -> bool:
    """No call is seen yet; if it is half seen, more text is waited for."""
    if half and not c.final and len(c.text) - c.at < _HEAD:
        raise More
    return False


_TICKS = re.compile(r"`{3,}|~{3,}")
_LABEL = re.compile(r"([\w+-]*)[ \t]*(?=[\n\r{[])")
_CODE_LABELS = frozenset({"tool_code", "tool_call", "tool_calls"})
_SURE_LABELS = _CODE_LABELS.union(
    ("json", "jsonc", "json5", "javascript", "python", "tool", "tool_use", "function_call")
)
_LABELS = _SURE_LABELS.union(("", "xml", "text", "plaintext"))
_MAX_NESTED = 3


def fenced(c: Cursor, *, after_prose: bool = False) -> list[Raw] | None:
    """A fence whose text begins with a call in any format; the cursor is left inside of it.

    Fences show examples, too: without an offered name in it, a fence holds no call, and nor does
    one that stands after prose, unless its label is one for calls or data.
    """
    raws = _in_fence(c, _SURE_LABELS if after_prose else _LABELS)
    return raws if raws and any(c.judge.find(raw.name) for raw in raws) else None


def _in_fence(c: Cursor, labels: frozenset[str]) -> list[Raw] | None:
    c.skip(_TICKS)
    label = _label(c)
    if label not in labels:
        return None
    for _ in range(_MAX_NESTED):
        c.space()
        found = opened(c) if c.char() in ("<", "[") else None
        if found or found is None:
            break
    if found:
        return found
    if c.char() in ("{", "["):
        return bare(c)
    return python_call(c) if label in _CODE_LABELS else None


def _label(c: Cursor) -> str | None:
    """The word after the backticks; None if no call is to be expected after it."""
    label = c.match(_LABEL, 40)
    return label[1].lower() if label else None
