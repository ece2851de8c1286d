"""Whether broken JSON is read without a rest: each word and string of it is one key or one value.

A repair may add brackets, commas and quotes. Where it joins words, splits strings or passes some
over, another reading may be the right one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .._json import read_json

STRAY_TEXT = "it holds text that is neither a key nor a value"
_PART = re.compile(
    r"//[^\r\n]*|#(?=\s)[^\r\n]*|/\*.*?(?:\*/|\Z)|(?:\\[nrt])+"  # as `_json` passes over them
    r"|(?P<token>(?P<quote>\"\"\"|'''|[\"'])(?:(?!(?P=quote))[^\\]|\\.?)*(?:(?P=quote)|\Z)"
    r"|[^\s\"'{}\[\](),;:=]+)"
    r"|.",
    re.DOTALL,
)
_NONE = object()


def accounts_for(text: str, value: object) -> bool:
    """Whether the words and strings of a text are just the keys and values of what was read."""
    leaves = _leaves(value)
    for part in _PART.finditer(text):
        token = part["token"]
        if token is None:
            continue
        leaf, is_key = next(leaves, (_NONE, False))
        # Where a value without quotes ends, nobody knows.
        is_read = is_key if token == leaf else _reads_as(token, leaf)
        if not is_read:
            return False
    return next(leaves, None) is None


def _leaves(value: object) -> Iterator[tuple[object, bool]]:
    """The keys and scalars of a value, in order, and whether each is a key."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key, True
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value, False


def _reads_as(token: str, leaf: object) -> bool:
    parsed = read_json(f"[{token}]")
    return parsed is not None and parsed.value == [leaf]
