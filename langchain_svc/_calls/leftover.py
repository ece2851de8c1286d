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
from .marks import BEFORE, MARK_FOLLOWS

SPILL = re.compile(r"[\s}\])]*")  # closers too many
_NEXT = re.compile(
    rf"{MARK_FOLLOWS.pattern}|<[|｜][^<>{{}}\s\"=]{{1,60}}>|\[/?[A-Z_]{{2,30}}\]|✿|</?tool_res|</?think"
)
_NO_CLOSER = "its closing tag is missing, and text follows"
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


def account(cursor: Cursor, raws: list[Raw]) -> None:
    """Note in the last call that text follows it which belongs to no part of it."""
    begin = cursor.at
    cursor.skip(SPILL)
    pass_blanks_or_end(cursor)
    has_reason = raws[-1].fault or raws[-1].leftover
    is_alone = not cursor.char() or has_reason or is_next(cursor)
    cursor.at = begin
    if not is_alone:
        raws[-1] = replace(raws[-1], leftover=_NO_CLOSER)


def is_next(cursor: Cursor) -> bool:
    """Whether another call begins here, or the turn ends; the cursor stays."""
    if cursor.char() == "{":
        return may_be_call(cursor)
    if cursor.char() not in ("<", "[", "✿"):
        return False
    begin = cursor.at
    match = cursor.match(_NEXT, 120)
    cursor.at = begin
    if match:
        return True
    return cursor.sees(*(f"<{name}>" for name in cursor.judge.names))


def pass_blanks(cursor: Cursor) -> None:
    """Pass over white space, and what a family writes before each tag."""
    pass_blanks_or_end(cursor)
    if cursor.open:
        raise More


def pass_blanks_or_end(cursor: Cursor) -> None:
    """Pass over the same, where the text may end behind it."""
    cursor.skip(_BLANKS)
    if not cursor.final and _HALF_BEFORE.match(cursor.text, cursor.at):
        raise More


# -- JSON that may be a call -----------------------------------------------------------------------
# An answer may be JSON, too: if its first keys are not those of a call, it is prose at once.


def may_be_call(cursor: Cursor) -> bool:
    """Whether the first keys and the name are those of a call; the cursor stays."""
    begin = cursor.at
    end = min(len(cursor.text), begin + _MOST)
    try:
        return _has_first_keys(cursor, end)
    finally:
        cursor.cost += cursor.at - begin
        cursor.at = begin


def _has_first_keys(cursor: Cursor, end: int) -> bool:
    """Read keys up to the one that decides: what names an offered tool, or holds arguments."""
    for bracket in "[{{":  # braces may be doubled, as templates want them
        if cursor.text.startswith(bracket, cursor.at, end):
            cursor.at += 1
            _gap(cursor, end)
    while True:
        match = _KEY_TOKEN.match(cursor.text, cursor.at, end)
        if match is None:
            return _wait(
                cursor, end, _HALF_KEY_TOKEN.match(cursor.text, cursor.at, end)
            )
        key = fold_key(match["key"])
        cursor.at = match.end()
        _gap(cursor, end)
        if cursor.at == end:
            return _wait(cursor, end, half=True)
        decided = _decides(cursor, key, end)
        if decided is not None:
            return decided
        # The next key decides.
        value = _SIDE_VALUE.match(cursor.text, cursor.at, end)
        if value is None:
            return _wait(
                cursor, end, _HALF_SIDE_VALUE.match(cursor.text, cursor.at, end)
            )
        cursor.at = value.end()
        _gap(cursor, end)
        if not cursor.text.startswith(",", cursor.at, end):
            return _wait(cursor, end, half=cursor.at == end)
        cursor.at += 1
        _gap(cursor, end)


def _decides(cursor: Cursor, key: str, end: int) -> bool | None:
    """Whether a key with the value here is one of a call; None if any JSON may have it."""
    if cursor.text[cursor.at] in "{[":
        return key in _SURE_KEYS or key in NAME_KEYS
    if key in SIDE_KEYS:
        return None
    if key not in NAME_KEYS:
        return key in _SURE_KEYS
    name = _BARE_NAME.match(cursor.text, cursor.at, end)
    if name is None and cursor.judge.may_begin(cursor.text[cursor.at : end]):
        return _wait(cursor, end, half=True)
    if name and cursor.judge.find(name[1]):
        return True
    return None


def _gap(cursor: Cursor, end: int) -> None:
    """Pass over white space and comments, a token at a time."""
    while match := _COMMENT_OR_BLANK.match(cursor.text, cursor.at, end):
        cursor.at = match.end()


def _wait(cursor: Cursor, end: int, half: object) -> bool:
    """It is no call, unless half of a token stands here: then more text is needed."""
    is_half = half or _HALF_COMMENT.match(cursor.text, cursor.at, end)
    if is_half and not cursor.final and end == len(cursor.text):
        raise More
    return False
