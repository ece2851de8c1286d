"""Whether broken JSON is read without a rest: each word and string of it is one key or one value.

A repair may add brackets, commas and quotes. Where it joins words, splits strings or passes some
over, another reading may be the right one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .._json import read_json

STRAY_TEXT = "it holds text that is neither a key nor a value"
_TOKEN = re.compile(
    r"(?P<string>(?P<q>\"\"\"|\'\'\'|[\"'])(?:(?!(?P=q))[^\\]|\\.)*(?P=q))"
    r"|(?P<word>[^\s\"'{}\[\](),;:=]+)"
    r"|(?P<space>\s+)",
    re.DOTALL,
)
# As `_json` passes over them.
_COMMENT = re.compile(r"//[^\r\n]*|#(?=\s)[^\r\n]*|/\*.*?\*/|(?:\\[nrt])+", re.DOTALL)
_NONE = object()


def accounts_for(text: str, value: object) -> bool:
    """Whether the words and strings of a text are just the keys and values of what was read."""
    leaves = _leaves(value)
    is_separate = True  # whether a sign stands between the last token and this one
    at = 0
    while at < len(text):
        match = _COMMENT.match(text, at) or _TOKEN.match(text, at)
        if match is None:
            is_separate = True
            at += 1
            continue
        at = match.end()
        if match.lastgroup not in ("string", "word"):
            continue
        leaf = next(leaves, _NONE)
        is_name = match[0] == leaf  # a word without quotes
        if not (is_name or _reads_as(match[0], leaf)) or (is_name and not is_separate):
            return False
        is_separate = not is_name
    return next(leaves, _NONE) is _NONE


def _leaves(value: object) -> Iterator[object]:
    """The keys and scalars of a value, in order."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _reads_as(token: str, leaf: object) -> bool:
    parsed = read_json(f"[{token}]")
    return parsed is not None and parsed.value == [leaf]
