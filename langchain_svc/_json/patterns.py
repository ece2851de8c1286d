"""A schema's own `pattern`, read as JSON Schema means it, and searched for a moment only.

The pattern comes from a tool server's schema and the text from a model, so neither is trusted. The
standard library's `re` may try for hours; `regex`, on which tiktoken rests too, stops in time.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

# Of the process's own time, so that a busy machine refuses nothing. Patterns that do not explode
# take a tenth of a microsecond for a character.
_SECONDS = 0.01
_SECONDS_A_CHARACTER = 0.000_001
_MOST_STEPS = 100_000  # some thirty megabytes

# JSON Schema's patterns are JavaScript's. Letters stay those of all languages, as in Pydantic's.
_MEANINGS = {
    "$": r"$(?!\n\Z)",  # the end of the text, and not the line end before it
    r"\d": r"\p{posix_digit}",
    r"\D": r"\P{posix_digit}",
}
_ESCAPE = re.compile(r"\\.", re.DOTALL)
_PIECE = re.compile(
    r"\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\\\]])*\]?|\{\d{1,9}|.", re.DOTALL
)
# JavaScript has no comments in patterns, and brackets in one would mislead `_steps`.
_MAY_HOLD_COMMENTS = re.compile(r"\(\?(?:#|\w*x)")


def matcher(pattern: str) -> Callable[[str], bool]:
    """Whether a text has a match of the pattern; one that is searched for too long has none.

    Every text has one if the pattern was written for another engine.
    """
    compiled = _compiled(pattern)
    if compiled is None:
        return lambda _: True

    def matches(text: str) -> bool:
        seconds = _SECONDS + _SECONDS_A_CHARACTER * len(text)
        try:
            return compiled.search(text, timeout=seconds) is not None
        except TimeoutError:
            return False

    return matches


def is_pattern(value: object) -> bool:
    """Whether a value is a pattern that texts are searched for."""
    return isinstance(value, str) and _compiled(value) is not None


def _compiled(pattern: str) -> Any:
    """The pattern for `regex`; None where it has none for it."""
    import regex  # noqa: PLC0415  # it takes 20 ms, and few schemas have patterns

    if _MAY_HOLD_COMMENTS.search(pattern):
        return None
    try:
        if _steps(pattern) > _MOST_STEPS:
            return None
        return regex.compile(_PIECE.sub(_meaning, pattern), regex.V0)
    except (regex.error, LookupError, ValueError, RecursionError, OverflowError):
        return None


def _meaning(piece: re.Match[str]) -> str:
    text = piece[0]
    if text[0] == "[":
        return _ESCAPE.sub(_meaning, text)
    return _MEANINGS.get(text, text)


def _steps(pattern: str) -> int:
    """About how many steps `regex` makes of a pattern: it writes out what has to be repeated.

    Raises:
        IndexError: A bracket is closed that was not opened.
    """
    steps = [0]  # of each group that is open
    last = 0  # of what a repeat would be about
    for piece in _PIECE.findall(pattern):
        if piece == "(":
            steps.append(0)
        elif piece == ")":
            last = steps.pop()
            steps[-1] += last
        elif piece[0] == "{" and len(piece) > 1:
            times = max(1, int(piece[1:]))
            steps[-1] += last * (times - 1)
            last *= times
        else:
            last = len(piece)
            steps[-1] += last
    return sum(steps)
