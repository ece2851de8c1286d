"""One pattern for all that may begin a call or otherwise concern the parser.

Prose is searched with it at the speed of `re`. At the end of a text that may go on, the pattern
also finds the beginning of a marker: that much of the text, and no more, is held back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from .formats import ENDINGS, LINE_STARTS, NOISE, OBSERVATION, READERS, REASONING, REASONING_ENDS

_MARKERS = (*READERS, *NOISE, *REASONING, *REASONING_ENDS, *ENDINGS, OBSERVATION)
_LINE_STARTS = LINE_STARTS | {OBSERVATION}


@lru_cache(maxsize=64)
def opener_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """The pattern, with an element for each offered tool.

    Its groups: `marker`, a marker or the beginning of one at the end of the text; `ticks`,
    backticks; `json`, a bracket that may begin JSON or a list of calls.
    """
    markers = [*_MARKERS, *(f"<{name}>" for name in names)]
    lines = [marker for marker in markers if marker in _LINE_STARTS]
    plain = [marker for marker in markers if marker not in _LINE_STARTS]
    return re.compile(
        f"(?P<marker>{_alternatives(plain)}|{_alternatives(lines, line_start=True)})"
        r"|(?P<ticks>`+)"
        r"|(?P<json>\{(?=\s*(?:[\"'“”‘’`{/#\w]|\Z))|\[(?=\s*(?:[{/#A-Za-z_]|\Z)))"
    )


@lru_cache(maxsize=16)
def ending_pattern(closer: str) -> re.Pattern[str]:
    """The pattern of one marker or the beginning of it at the end of the text."""
    return re.compile(_alternatives([closer]))


@lru_cache(maxsize=1)
def code_end_pattern() -> re.Pattern[str]:
    """The pattern of what may end a fence of code, or begin to do so at the end of the text."""
    return re.compile(f"`+|{_alternatives(REASONING_ENDS)}")


def _alternatives(words: Iterable[str], *, line_start: bool = False) -> str:
    """A pattern that matches each word, and each beginning of a word at the end of the text."""
    tree: dict[str, list[str]] = {}
    for word in words:
        tree.setdefault(word[0], []).append(word[1:])
    branches = []
    for char, rests in tree.items():
        first = re.escape(char)
        if line_start:  # looking back from after the character keeps the search fast
            first += rf"(?<![^\n]{first})"
        ends = [] if all(rests) else [""]
        longer = [rest for rest in rests if rest]
        if longer:
            first += f"(?:{_alternatives(longer)}|\\Z{'|' if ends else ''})"
        branches.append(first)
    return f"(?:{'|'.join(branches)})"
