"""What may follow a call: its closer, another call, or the end. Anything else is left over.

A call is certain only if every character of it is opener, key, value, closer or blank. Text that is
left over may belong to it. So another reading may be the right one, and the model is asked.
"""

from __future__ import annotations

import re
from dataclasses import replace

from .calls import Raw
from .cursor import Cursor, More
from .judge import ARGUMENT_KEYS, CONTAINER_KEYS, NAME_KEYS, SIDE_KEYS, fold_key
from .marks import BEFORE, CALL, MARK_FOLLOWS, PREFIX

SPILL = re.compile(r"[\s}\])]*")  # closers too many
_NEXT = re.compile(
    rf"{MARK_FOLLOWS.pattern}|<[|｜][^<>{{}}\s\"=]{{1,60}}>|\[/?[A-Z_]{{2,30}}\]|✿|</?tool_res|</?think"
)
_CLOSER = re.compile(rf"</{PREFIX}(?:{CALL})s?>")
STRAY_TEXT = "it holds text that is neither a key nor a value"
_NO_CLOSER = "its closing tag is missing, and text follows"
_FARTHEST_CLOSER = 4_000  # characters behind what is left over
_BLANKS = re.compile(rf"(?:\s|{BEFORE})*")
_HALF_BEFORE = re.compile(r"\]<?\]?[\w-]{0,20}\[?>?\[?\Z")
_Q = "\"'“”‘’`"
_COMMENT_OR_BLANK = re.compile(
    r"\s+|//[^\n]*(?:\n|\Z)|\#(?=\s)[^\n]*(?:\n|\Z)|/\*(?:(?!\*/)[^\0]){0,300}\*/"
)
_KEY_TOKEN = re.compile(
    rf"[{_Q}]?\s{{0,20}}(?P<key>[\w-]+)\s{{0,20}}[{_Q}]?\s{{0,20}}:"
)
_HALF_KEY_TOKEN = re.compile(rf"[{_Q}]?\s{{0,20}}[\w-]*\s{{0,20}}[{_Q}]?\s{{0,20}}\Z")
_SIDE_VALUE = re.compile(r"\"(?:[^\"\\]|\\[^\0])*\"|\d+\b|null\b")
_HALF_SIDE_VALUE = re.compile(r"(?:\"(?:[^\"\\]|\\[^\0])*\\?|\d*|n?u?l?l?)\Z")
_HALF_COMMENT = re.compile(r"/(?:\*[^\0]{0,300})?\Z|\#\Z")
_BARE_NAME = re.compile(rf"(?:[{_Q}]|(?![{_Q}]))([^{_Q}\n,}}]{{0,80}})[{_Q},}}]")
_SURE_KEYS = frozenset((*ARGUMENT_KEYS, *CONTAINER_KEYS))
_MOST = 4000  # characters in which a call must show what it is


def account(c: Cursor, raws: list[Raw]) -> None:
    """Note in the last call that text follows it which belongs to no part of it."""
    begin = c.at
    c.skip(SPILL)
    space_or_end(c)
    has_reason = raws[-1].fault or raws[-1].leftover
    is_alone = not c.char() or has_reason or is_next(c)
    c.at = begin
    if not is_alone:
        raws[-1] = replace(raws[-1], leftover=_NO_CLOSER)
        _pass_closer(c)


def is_next(c: Cursor) -> bool:
    """Whether another call begins here, or the turn ends; the cursor stays."""
    if c.char() == "{":
        return may_be_call(c)
    if c.char() not in ("<", "[", "✿"):
        return False
    begin = c.at
    match = c.match(_NEXT, 120)
    c.at = begin
    if match:
        return True
    return c.sees(*(f"<{name}>" for name in c.judge.names))


def _pass_closer(c: Cursor) -> None:
    """Go behind the closing tag of a call that holds text which nobody reads, if one comes soon."""
    match = _CLOSER.search(c.text, c.at, c.at + _FARTHEST_CLOSER)
    if match is None and not c.final and len(c.text) - c.at < _FARTHEST_CLOSER:
        raise More(">")
    if match and not MARK_FOLLOWS.search(c.text, c.at, match.start()):
        c.at = match.end()


def space(c: Cursor) -> None:
    """Pass over white space, and what a family writes before each tag."""
    space_or_end(c)
    if c.open:
        raise More


def space_or_end(c: Cursor) -> None:
    """Pass over the same, where the text may end behind it."""
    c.skip(_BLANKS)
    if not c.final and _HALF_BEFORE.match(c.text, c.at):
        raise More


# -- JSON that may be a call -----------------------------------------------------------------------
# An answer may be JSON, too: if its first keys are not those of a call, it is prose at once.


def may_be_call(c: Cursor) -> bool:
    """Whether the first keys and the name are those of a call; the cursor stays."""
    begin = c.at
    end = min(len(c.text), begin + _MOST)
    try:
        return _has_first_keys(c, end)
    finally:
        c.cost += c.at - begin
        c.at = begin


def _has_first_keys(c: Cursor, end: int) -> bool:
    """Read keys up to the one that decides: what names an offered tool, or holds arguments."""
    for bracket in "[{{":  # braces may be doubled, as templates want them
        if c.text.startswith(bracket, c.at, end):
            c.at += 1
            _gap(c, end)
    while True:
        match = _KEY_TOKEN.match(c.text, c.at, end)
        if match is None:
            return _wait(c, end, _HALF_KEY_TOKEN.match(c.text, c.at, end))
        key = fold_key(match["key"])
        c.at = match.end()
        _gap(c, end)
        if c.at == end:
            return _wait(c, end, half=True)
        decided = _decides(c, key, end)
        if decided is not None:
            return decided
        # The next key decides.
        value = _SIDE_VALUE.match(c.text, c.at, end)
        if value is None:
            return _wait(c, end, _HALF_SIDE_VALUE.match(c.text, c.at, end))
        c.at = value.end()
        _gap(c, end)
        if not c.text.startswith(",", c.at, end):
            return _wait(c, end, half=c.at == end)
        c.at += 1
        _gap(c, end)


def _decides(c: Cursor, key: str, end: int) -> bool | None:
    """Whether a key with the value here is one of a call; None if any JSON may have it."""
    if c.text[c.at] in "{[":
        return key in _SURE_KEYS or key in NAME_KEYS
    if key in SIDE_KEYS:
        return None
    if key not in NAME_KEYS:
        return key in _SURE_KEYS
    name = _BARE_NAME.match(c.text, c.at, end)
    if name is None and c.judge.may_begin(c.text[c.at : end]):
        return _wait(c, end, half=True)
    if name and c.judge.find(name[1]):
        return True
    return None


def _gap(c: Cursor, end: int) -> None:
    """Pass over white space and comments, a token at a time."""
    while match := _COMMENT_OR_BLANK.match(c.text, c.at, end):
        c.at = match.end()


def _wait(c: Cursor, end: int, half: object) -> bool:
    """It is no call, unless half of a token stands here: then more text is needed."""
    is_half = half or _HALF_COMMENT.match(c.text, c.at, end)
    if is_half and not c.final and end == len(c.text):
        raise More
    return False
