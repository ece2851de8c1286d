"""The marks of calls: what opens and closes one, and what may follow it.

`_calls` reads a text at the speed of `re` up to the next mark, and only there looks closer.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from .._json import More
from .._text import HALF_MARK, NATIVE, NATIVE_ENDS, SPOKEN, Markers
from .calls import Raw
from .cursor import Cursor
from .judge import ARGUMENT_KEYS, CONTAINER_KEYS, NAME_KEYS, SIDE_KEYS, fold_key

_N = r"[\w:▁.-]"
_WORD = r"(?:[Tt]ool|TOOL|[Ff]unc|FUNC|[Cc]all|CALL|[Aa]ction|ACTION|[Pp]lugin|[Ii]nvoke|recipient|python_(?:tag|start|end))"  # noqa: E501
_NAMED = rf"{_N}{{0,30}}?{_WORD}{_N}{{0,30}}"
# What DeepSeek writes into each tag, and MiniMax before it; it means nothing.
_DSML = r"[|｜]{1,3} ?DSML ?[|｜]{1,3} ?"
BEFORE = r"\]<\][\w-]{1,20}\[>\[(?=<)"
# The one grammar of an element that calls: a prefix, a word, a suffix, and the name by `=` or an
# attribute.
PREFIX = rf"(?:[a-z]{{1,20}}:|{_DSML})?"
SUFFIX = r"(?::[\w-]{1,40})?"
_NOUN = r"(?:[_-]?(?:call|use|request|record|invocation))?"
CALL = rf"(?:(?:tool|function|action|call|invoke){_NOUN}{SUFFIX})"
PARAM = rf"(?:(?:param|parameter|arg|argument){SUFFIX})"
_ELEMENT = rf"<{PREFIX}{CALL}"
# An element up to the name of the tool that it calls.
NAMED_ELEMENT = re.compile(
    rf"{_ELEMENT}(?:=|\s{{1,20}}(?:name|tool|function)\s{{0,20}}=\s{{0,20}})"
)
# The marks of calls by their first character, so that the search for all of them stays fast: the
# mark, and what may still become one at the end of a text that goes on.
_CALL_MARKS = {
    "<": (
        rf"<(?:/?{_DSML}|[|｜]?/?[|｜]?){_NAMED}[|｜]?(?:>|(?=\n[ \t]{{0,20}}<))",
        (
            r"<[|｜]{0,3}/?[|｜]{0,3}[\w:▁.|｜-]{0,60}(?:\n[ \t]{0,20})?\Z"
            r"|</?[|｜]{1,3} ?(?:D?S?M?|DSML ?[|｜]{0,3} ?[\w:-]{0,40})\Z"
            rf"|{_ELEMENT}\s{{1,20}}\w{{0,8}}\s{{0,20}}\Z"
        ),
    ),
    "[": (
        (
            r"\[/?[A-Z_]{0,20}(?:TOOL|CALL|FUNCTION|ACTION)[A-Z_]{0,20}\]"
            r"|\[/?(?:tool|function)_calls?\]"
        ),
        r"\[/?(?:[A-Z_]{0,40}|[a-z_]{0,14})\Z",
    ),
    "✿": (r"✿[A-Z]{2,12}✿", r"✿[A-Z]{0,12}\Z"),
}
FIRST_CHARACTERS = tuple(_CALL_MARKS)
CALL_MARK = re.compile("|".join(mark for mark, _ in _CALL_MARKS.values()))
_HALF_CALL_MARK = "|".join(half for _, half in _CALL_MARKS.values())
_HALF_BEFORE = r"\]<?\]?[\w-]{0,20}\[?>?\[?"
# Any special token, between a name and its arguments, and the beginning of one.
ANY_MARK = r"<[|｜][^<>{}\s\"'=]{1,60}>|\[[A-Z_]{2,30}\]|✿[A-Z]{2,12}✿"
HALF_ANY_MARK = r"<[|｜][^<>{}\n]{0,60}|<|\[[A-Z_]{0,30}|✿[A-Z]{0,12}"
CLOSING = re.compile(
    r"/|<\|call\|>|(?:\b|[_▁|｜])(?:end|END|suffix|stop)(?:\b|[_▁|｜])"
)
# A result that the model made up, or another's turn that it began: nothing after it counts.
RESULT = re.compile(
    r"(?i)response|result|output|observation|<\|(?:im_start|start_header)"
)
LT = rf"(?:{BEFORE})?<"
MARK_FOLLOWS = re.compile(f"{CALL_MARK.pattern}|{NAMED_ELEMENT.pattern}")

# -- the search for all of it ---------------------------------------------------------------------

# Only if a call came before: other texts have observations, too.
OBSERVATION = "Observation:"
_LINE_STARTS = {"Action:", OBSERVATION}  # markup at the beginning of a line only
# fmt: off
# Ends of turns and the like, which say nothing.
NOISE = frozenset({
    "</tool_call>", "</parameter>", "<|start|>assistant", "<|channel|>final<|message|>",
    "<|channel|>commentary<|message|>", "<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|im_end|>",
    "<|eot_id|>", "<|eom_id|>", "<|eom|>", "<|from|>assistant", "<|from|> assistant", "<|content|>",
    "<|recipient|>all", "<|recipient|> all", "<|end|>", "[BEGIN FINAL RESPONSE]",
    "[END FINAL RESPONSE]",
})
ENDINGS = frozenset({"<tool_response", "<tool_result", "<|im_start|>", "<|start_header_id|>"})
# fmt: on

_HALF_OPENER = re.compile(
    rf"{_HALF_CALL_MARK}|~{{1,2}}\Z|{_HALF_BEFORE}<?\Z|{HALF_MARK.pattern}"
)
# An object whose first key may follow, or whose brace is doubled.
_OBJECT = r"\{(?=\s*(?:\{\s*)?(?:[\"'“”‘’`/#\w]|\Z))"
_OTHERS = (
    rf"(?P<before>{BEFORE})"
    rf"|(?P<thinks>{NATIVE})|(?P<thought>{NATIVE_ENDS})|(?P<spoken>{SPOKEN})"
    rf"|(?P<mark>{CALL_MARK.pattern})"
    r"|(?P<ticks>`+|~{3,})"
    rf"|(?P<json>{_OBJECT}|\[(?=\s*(?:{_OBJECT}|[/#A-Za-z_]|\Z)))"
    rf"|(?P<named>{NAMED_ELEMENT.pattern})"
    rf"|<(?P<prefix>{PREFIX})(?P<element>[A-Za-z_][\w.-]*)>"
)


@lru_cache(maxsize=4)
def openers(opening_marks: frozenset[str]) -> Markers:
    """What may concern the parser in prose; a match has one of the groups of `_OTHERS`."""
    markers = {*opening_marks, *NOISE, *ENDINGS}
    plain = sorted(markers - _LINE_STARTS, reverse=True)  # the longer one of two first
    return Markers(plain, _LINE_STARTS, _OTHERS, _HALF_OPENER)


@lru_cache(maxsize=32)
def ends(closer: str) -> Markers:
    """What ends a thought; or, with "", a fence of code, which a thought may leave open."""
    if closer:
        return Markers([closer])
    return Markers(others=rf"(?P<ticks>`+|~{{3,}})|{NATIVE_ENDS}", half=HALF_MARK)


# -- leftover --------------------------------------------------------------------------------------
# What may follow a call: its closer, another call, or the end. Anything else is left over.
#
# A call is certain only if every character of it is opener, key, value, closer or blank. Text
# that is left over may belong to it. So another reading may be the right one, and the model is
# asked.

SPILL = re.compile(r"[\s}\])]*")  # closers too many
_NEXT = re.compile(
    rf"{MARK_FOLLOWS.pattern}|<[|｜][^<>{{}}\s\"=]{{1,60}}>|\[/?[A-Z_]{{2,30}}\]|✿|</?tool_res|</?think"
)
_NO_CLOSER = "its closing tag is missing, and text follows"
_BLANKS = re.compile(rf"(?:\s|{BEFORE})*")
_HALF_BLANK = re.compile(rf"{_HALF_BEFORE}\Z")
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
    if cursor.char() not in FIRST_CHARACTERS:
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
    if not cursor.final and _HALF_BLANK.match(cursor.text, cursor.at):
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
    if name and cursor.judge.tool_named(name[1]):
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
