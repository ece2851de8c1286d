"""The characters that JSON, and what passes for JSON, is built from.

Positions are looked at in two ways. `skip` moves a reader on, over any amount of white space and
comments. `peek` only looks ahead of a quote or a bracket, and never further than a few hundred
characters past a comment's beginning: that is what keeps reading linear, whatever the text.
"""

# ruff: noqa: RUF001 - confusable characters are what this file is about

from __future__ import annotations

import re

# Models write invisible characters around tokens: a byte order mark, zero-width spaces.
_SPACE_CLASS = "\\s\ufeff\u200b-\u200f\u2060"
SPACE = re.compile(f"[{_SPACE_CLASS}]*")
BLANK_LINE = re.compile(r"\n[ \t\r]*\n")

# An opening quote -> the characters that may close it.
QUOTES = {
    '"': '"',
    "'": "'",
    "`": "`",
    "“": '”“"',
    "”": '”"',
    "„": '“”"',
    "＂": '＂"',
    "‘": "’'",
    "’": "’'",
    "«": "»",
    "「": "」",
}
OPENERS = {"{": "}", "[": "]", "(": ")", "｛": "}", "［": "]", "【": "]"}
CLOSERS = {"}": "}", "]": "]", ")": ")", "｝": "}", "］": "]", "】": "]"}
COMMAS = frozenset(",;，、")
COLONS = frozenset(":=：")

# Where the text around a value goes on: a fence, a tag, a chat template's own marker.
STOP = re.compile(r"```|</[A-Za-z]|<[|｜]")
ELLIPSIS = re.compile(r"\.{3,}|…")

# A `#` begins a comment only before white space: #ff0000 is a value.
_COMMENT = re.compile(r"//[^\n]*|#(?=\s)[^\n]*|/\*[\s\S]*?(?:\*/|\Z)|<!--[\s\S]*?(?:-->|\Z)")
_SHORT_COMMENT = re.compile(
    r"//[^\n]{0,200}(?:\n|\Z)|#(?=\s)[^\n]{0,200}(?:\n|\Z)|/\*[\s\S]{0,200}?\*/"
)
_ESCAPED_SPACE = re.compile(r"(?:\\[nrt])+")

_VALUE = r"(?:[\"'“`\[{(\d]|-\d|\.\d|true\b|false\b|null\b|True\b|False\b|None\b)"
_QUOTED = (
    r"(?:\"(?:[^\"\\\n]|\\[^\n]){0,200}\"|\\\"[^\"\n]{0,120}\\\"|'(?:[^'\\\n]|\\[^\n]){0,120}'"
    r"|`[^`\n]{0,120}`"
    r"|[“”„][^“”\"\n]{0,120}[“”\"]|[‘’][^‘’'\n]{0,120}[’']|«[^»\n]{0,120}»|「[^」\n]{0,120}」)"
)
_COLON = r"\s{0,40}(?:[:：]|=>?(?!=))"
QUOTED_KEY = re.compile(rf"{_QUOTED}{_COLON}")
# A word is a key only if a value visibly follows: prose has words with colons, too.
WORD_KEY = re.compile(
    rf"[^\W\d][\w$-]{{0,60}}[\"']?\s{{0,40}}[:：]\s{{0,40}}{_VALUE}"
    rf"|\d{{1,9}}\s{{0,40}}[:：]\s{{0,40}}[\"{{\[]"
)
_BROKEN_KEY = re.compile(r"\"[\w-]{1,60}\s?:\s{0,3}(?=\"[^\s,:}\]])")  # no quote before its colon
ANY_WORD_KEY = re.compile(r"[^\W\d][\w$-]{0,60}\s{0,40}[:：]")
VALUE_START = re.compile(_VALUE)
BARE_KEY = re.compile(r"[\w$@][\w$@./-]{0,80}(?: [\w$-]{1,40}){0,3}")
ARROW = re.compile(r":=|=>|->|[:：]+|=")
WHOLE_STRING = re.compile(r"\"(?:[^\"\\\n]|\\[^\n]){0,200}\"|'(?:[^'\\\n]|\\[^\n]){0,200}'")


def skip(text: str, at: int) -> int:
    """The first position from `at` on that is neither white space nor part of a comment."""
    while True:
        at = _end_of(SPACE, text, at)
        found = _COMMENT.match(text, at) or _ESCAPED_SPACE.match(text, at)
        if found is None:
            return at
        at = found.end()


def peek(text: str, at: int) -> int:
    """Like `skip`, but looks past at most three short comments."""
    for _ in range(3):
        at = _end_of(SPACE, text, at)
        found = _SHORT_COMMENT.match(text, at)
        if found is None:
            return at
        at = found.end()
    return _end_of(SPACE, text, at)


def is_key(text: str, at: int, *, words: bool = False) -> bool:
    """Whether a key and its colon stand at `at`; `words`: unquoted keys are this object's habit."""
    return bool(
        QUOTED_KEY.match(text, at)
        or WORD_KEY.match(text, at)
        or _BROKEN_KEY.match(text, at)
        or (words and ANY_WORD_KEY.match(text, at))
    )


def stops(text: str, at: int) -> bool:
    """Whether the text, or the part of it that can hold JSON, ends at `at`."""
    return at >= len(text) or STOP.match(text, at) is not None


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
