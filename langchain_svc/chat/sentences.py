"""Where sentences end, in an answer and in a document. Pure.

A full stop ends none behind an initial, an abbreviation or the number of an item, nor where a small
letter follows. What follows decides, so an end is known only when the next word has begun.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# Longer runs of signs end no sentence.
_STOP = r"(?<![.!?…])[.!?…]{1,20}[\"'”’»)\]*_]{0,20}(?=\s)|[。！？][」』”’）]{0,20}"
LONGEST_STOP = 41  # signs, with what stands behind them
_IN_AN_ANSWER = re.compile(rf"(?:{_STOP}|(?=\n))\s*")
# A document's line may end within a sentence.
_IN_A_DOCUMENT = re.compile(
    rf"(?:{_STOP}|(?=\n\s*\n|\n\s*(?:[-*+•#|]|\d{{1,3}}[.)])\s))\s*"
)
_LINE = re.compile(r"\n")
_PARAGRAPH = re.compile(r"\n\s*\n")
_LAST_WORD = re.compile(r"\S+\Z")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+")
_ITEM_NUMBER = re.compile(r"(?:\A|\n)[ \t>*_#]*(?:\d{1,3}|[a-z])\.[*_]*\Z")
_ABBREVIATIONS = frozenset(
    """
    al approx bzw ca cf dr eq est etc evtl fig figs frau ggf hr inkl jr mme mr mrs ms mt nr pp prof
    ref resp sr sra st tab usw vgl vol vs
    """.split()  # noqa: SIM905  # a list of so many quoted words reads worse
)
# Only before a number: "No. 5", and "No. It is not."
_BEFORE_A_NUMBER = frozenset(
    """
    abb apr art aug bd ch dec feb jan jul jun mar no nov oct p s sec sep sept
    """.split()  # noqa: SIM905  # the same
)
_LONGEST_WORD = 60  # characters that are looked at before a full stop


def sentence_ends(text: str, begin: int = 0, *, wrapped: bool = False) -> Iterator[int]:
    """The places at which sentences end, behind their white space, save at the text's end.

    `wrapped`: whether a line may end within a sentence, as in a document.
    """
    pattern = _IN_A_DOCUMENT if wrapped else _IN_AN_ANSWER
    breaks = _PARAGRAPH if wrapped else _LINE
    for match in pattern.finditer(text, begin):
        end = match.end()
        if begin < end < len(text) and (
            breaks.search(text, match.start(), end) or _ends(text, match.start(), end)
        ):
            yield end


def _ends(text: str, stop: int, end: int) -> bool:
    """Whether a sentence ends with the sign at a place, behind which the next word begins."""
    if text[stop] in "。！？\n":
        return True
    following = text[end]
    if following.islower():
        return False
    if text[stop] != ".":
        return True
    first = max(0, stop - _LONGEST_WORD)
    if _ITEM_NUMBER.search(text, first, stop + 1):
        return False
    before = _LAST_WORD.search(text, first, stop + 1)
    word = before[0].lstrip("\"'“„«([*_") if before is not None else ""
    if _INITIALS.fullmatch(word):
        return False
    name = word.rstrip(".").casefold()
    if name in _ABBREVIATIONS:
        return False
    return not (following.isdigit() and name in _BEFORE_A_NUMBER)
