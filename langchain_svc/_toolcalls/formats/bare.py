"""Calls as JSON with nothing around them, or only a fence.

An answer may be made of JSON, too. Whether it can be a call shows in its first keys; text that
cannot is given back as soon as that is seen.
"""

from __future__ import annotations

import re

from ..cursor import Cursor, More
from ..offer import Offer, Raw
from ..values import ARGUMENT_KEYS, CONTAINER_KEYS, NAME_KEYS, SIDE_KEYS
from .python import pythonic_list
from .tags import json_calls

_SPACE = r"(?:\s|//[^\n]*\n|#[^\n]*\n|/\*.*?\*/)*"
_OPENING = re.compile(rf"(?:\[{_SPACE})?\{{{_SPACE}(?:\{{{_SPACE})?", re.DOTALL)
_STRING = r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'"
_SIDE = re.compile(
    rf"[\"']?(?:{'|'.join(SIDE_KEYS)})[\"']?\s*:\s*(?:{_STRING}|\d+|null)\s*,{_SPACE}", re.DOTALL
)
_KEY = re.compile(r"[\"'“”‘’`]?\s*([\w-]+)\s*[\"'“”‘’`]?\s*:\s*")
_NAME = re.compile(r"[\"'“”‘’`]([^\"'“”‘’`\n]{0,80})([\"'“”‘’`]?)")
_HALF_KEY = re.compile(r"[\"'“”‘’`]?\s*[\w-]*\s*[\"'“”‘’`]?\s*:?\s*|/.*|#.*", re.DOTALL)
_SURE_KEYS = frozenset((*ARGUMENT_KEYS, *CONTAINER_KEYS))
_HEAD = 2000  # characters in which a call must show what it is


def bare(c: Cursor) -> list[Raw] | None:
    """`{"name": …, "arguments": …}`, a list of these, or `{"tool_calls": […]}`."""
    begin = c.at
    if c.text[begin] == "[":
        found = pythonic_list(c)
        if found is not None:
            return found
        c.at = begin
    if not _may_be_call(c):
        c.at = begin
        return None
    return json_calls(c, tagged=False)


def _may_be_call(c: Cursor) -> bool:
    """Whether the first keys and the name are those of a call; the cursor stays."""
    head = c.text[c.at : c.at + _HEAD]
    whole = c.final or len(head) == _HEAD
    opening = _OPENING.match(head)
    if not opening:
        return _wait(whole, half=not head[1:].strip() or head.lstrip("[ \t\r\n")[:1] in "/#")
    at = opening.end()
    while side := _SIDE.match(head, at):
        at = side.end()
    key = _KEY.match(head, at)
    if not key:
        return _wait(whole, half=bool(_HALF_KEY.fullmatch(head, at)))
    word = key[1].lower()
    if word in NAME_KEYS:
        return _is_name(head, key.end(), c.offer, whole=whole)
    if word in SIDE_KEYS:
        return _wait(whole, half=True)
    return word in _SURE_KEYS


def _is_name(head: str, at: int, offer: Offer, *, whole: bool) -> bool:
    if at == len(head):
        return _wait(whole, half=True)
    if head[at] in "{[":
        return True
    name = _NAME.match(head, at)
    if not name:
        return False
    if name[2]:
        return offer.find(name[1]) is not None
    return _wait(whole, half=name.end() == len(head) and offer.may_begin(name[1]))


def _wait(whole: bool, *, half: bool) -> bool:  # noqa: FBT001 - reads as a clause at the calls
    """Nothing more is seen yet: more text is waited for, if it can come and can help."""
    if half and not whole:
        raise More
    return False
