"""Calls as JSON with nothing around them, or only a fence.

An answer may be made of JSON, too. Whether it can be a call shows in its first keys; text that
cannot is given back as soon as that is seen.
"""

from __future__ import annotations

import re

from .cursor import Cursor, More
from .formats import READERS
from .formats.python import python_call, pythonic_list
from .formats.tags import json_calls
from .offer import Offer, Raw
from .values import ARGUMENT_KEYS, CONTAINER_KEYS, NAME_KEYS, SIDE_KEYS

_SPACE = r"(?:\s|//[^\n]*\n|\#\s[^\n]*\n|/\*.*?\*/)*"
_QUOTE = "\"'“”‘’`"
_OPENING = re.compile(rf"(?:\[{_SPACE})?\{{{_SPACE}(?:\{{{_SPACE})?", re.DOTALL)
_HALF_OPENING = re.compile(r"\[\s*(?:/.*|\#\s.*)?", re.DOTALL)
_KEY = re.compile(rf"[{_QUOTE}]?\s*([\w-]+)\s*[{_QUOTE}]?\s*:\s*")
_HALF_KEY = re.compile(rf"[{_QUOTE}]?\s*[\w-]*\s*[{_QUOTE}]?\s*:?\s*|/.*|\#\s.*", re.DOTALL)
_SIDE_VALUE = re.compile(rf"(?:\"(?:[^\"\\]|\\.)*\"|\d+|null)\s*,{_SPACE}", re.DOTALL)
_HALF_SIDE_VALUE = re.compile(r"(?:\"(?:[^\"\\]|\\.)*\\?\"?|\d*|n?u?l?l?)\s*", re.DOTALL)
_NAME = re.compile(rf"[{_QUOTE}]?([^{_QUOTE}\n,}}]{{0,80}})([{_QUOTE},}}]?)")
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
    head = c.text[c.at : c.at + _HEAD]
    whole = c.final or len(head) == _HEAD
    opening = _OPENING.match(head)
    if not opening:
        return _wait(whole, half=bool(_HALF_OPENING.fullmatch(head)))
    at = opening.end()
    while True:
        key = _KEY.match(head, at)
        if not key:
            return _wait(whole, half=bool(_HALF_KEY.fullmatch(head, at)))
        if key[1].lower() not in SIDE_KEYS:
            break
        side = _SIDE_VALUE.match(head, key.end())
        if not side:
            return _wait(whole, half=bool(_HALF_SIDE_VALUE.fullmatch(head, key.end())))
        at = side.end()
    if key[1].lower() in NAME_KEYS:
        return _is_name(head, key.end(), c.offer, whole=whole)
    return key[1].lower() in _SURE_KEYS


def _is_name(head: str, at: int, offer: Offer, *, whole: bool) -> bool:
    if head[at : at + 1] in ("{", "["):
        return True  # `"function": {"name": …}`
    name = _NAME.match(head, at)
    if not name or name[2]:
        return name is not None and offer.find(name[1]) is not None
    return _wait(whole, half=name.end() == len(head) and offer.may_begin(name[1]))


def _wait(whole: bool, *, half: bool) -> bool:  # noqa: FBT001 - reads as a clause at the calls
    """No call is seen yet; more text is waited for, if it can come and can help."""
    if half and not whole:
        raise More
    return False


_TICKS = re.compile(r"`{3,}")
_LABELS = frozenset(
    ["", "json", "jsonc", "json5", "javascript", "python", "tool_code", "tool_call", "tool_calls"]
    + ["tool", "tool_use", "function_call", "xml", "text", "plaintext"]
)
_CODE_LABELS = frozenset({"tool_code", "tool_call", "tool_calls"})
_TAGS = tuple(opening for opening in READERS if opening[0] in "<[")
_MAX_NESTED = 3


def fenced(c: Cursor) -> list[Raw] | None:
    """A fence whose text begins with a call in any format; the cursor is left inside of it."""
    c.at = _TICKS.match(c.text, c.at).end()  # type: ignore[union-attr]
    label = _label(c)
    if label is None:
        return None
    begin = c.at
    for _ in range(_MAX_NESTED):
        c.space()
        if c.char() in ("{", "[") and not c.sees(*_TAGS):
            return bare(c)
        if not c.sees(*_TAGS):
            break
        found = _tagged(c)
        if found or found is None:
            return found
    return python_call(c) if label in _CODE_LABELS and c.at >= begin else None


def _label(c: Cursor) -> str | None:
    """The word after the backticks; None if no call is to be expected after it."""
    end = c.at
    while end < len(c.text) and (c.text[end].isalnum() or c.text[end] in "_+-"):
        end += 1
    label = c.text[c.at : end].lower()
    if end == len(c.text) and not c.final and any(x.startswith(label) for x in _LABELS):
        raise More
    c.at = end
    while c.char() in (" ", "\t"):
        c.at += 1
    return label if label in _LABELS and c.char() in ("\n", "\r", "{", "[") else None


def _tagged(c: Cursor) -> list[Raw] | None:
    opening = next(tag for tag in _TAGS if c.text.startswith(tag, c.at))
    c.at += len(opening)
    return READERS[opening](c)
