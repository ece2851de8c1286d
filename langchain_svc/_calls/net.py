"""The net below all forms: whether an answer in which no call was read may still mean one.

This is the specification, and the readers of forms are optimisations of it: what a person would
take for a call, and none of them reads exactly, makes a question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from .calls import Tool
from .judge import ARGUMENT_KEYS

# A line end or a bracket separates a name from what is no part of its call.
_BORDER = re.compile(r"[\n<>|｜{}\[\](),;]")
_QUOTED_LINE = re.compile(r"(?m)^[ \t]*(?:>(?!>)|\|).*$")
_LETTERS = re.compile(r"[^\W\d_]+")
_NEAR = 120  # characters before a name in which its border stands
_MOST_WORDS = 3  # beside the name
_FARTHEST_KEY = 400  # characters behind a name, with its ids and thoughts


def meant_in(text: str, tools: Mapping[str, Tool]) -> str | None:
    """The tool that a text may call in a form that nobody knows; None if there is none.

    Its name stands nearly alone between two borders, and behind it one of its parameters as a key.
    """
    text = _without_quotations(text)
    names = "|".join(map(re.escape, sorted(tools, reverse=True)))
    pattern = rf"(?<![A-Za-z0-9_-])(?:{names})(?![A-Za-z0-9_-])"
    for match in re.finditer(pattern, text) if tools else ():
        key = _key_behind(text, match.end(), tools[match[0]])
        if key is not None and _stands_alone(text, match, key):
            return match[0]
    return None


def _without_quotations(text: str) -> str:
    """The text without lines of quotations and tables, unless it has nothing else."""
    rest = _QUOTED_LINE.sub("", text)
    return rest if rest.strip() else text


def _key_behind(text: str, end: int, tool: Tool) -> int | None:
    """Where the first of a tool's parameters stands as a key behind its name."""
    keys = "|".join(map(re.escape, tool.properties or ARGUMENT_KEYS))
    # A key has a mark of its own on one side: city=, "city", <city>, --city, : city.
    pattern = (
        rf"(?<![\w.-])(?:--|(?<=[<\"'`=:])|(?<=[:=] ))(?:{keys})(?![\w-])"
        rf"|(?<![\w.-])(?:{keys})[\"'`*]{{0,3}} ?(?:[:=>→]|->)"
    )
    key = re.compile(pattern, re.IGNORECASE).search(text, end, end + _FARTHEST_KEY)
    return None if key is None else key.start()


def _stands_alone(text: str, name: re.Match[str], key: int) -> bool:
    """Whether few other words stand between the borders around a name; keys are one, too."""
    begin, end = name.span()
    before = _BORDER.split(text[max(0, begin - _NEAR) : begin])[-1]
    after = _BORDER.split(text[end:key], maxsplit=1)[0]
    words = _LETTERS.findall(before) + _LETTERS.findall(after)
    return len(words) <= _MOST_WORDS
