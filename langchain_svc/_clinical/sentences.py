"""Splits clinical text into sentences and lines, without losing or moving a character."""

from __future__ import annotations

import re

LIST_MARK = re.compile(r"\s*(?:[-*•–]|\d{1,2}[.)])\s+")
"""What an item of a list begins with."""

_BREAK = re.compile(
    r"\n\s*"  # a line is never joined with the next one
    r"|(?<![.!?])[.!?]+[\"'”’)\]]{0,3}[ \t]+(?=\S)"
    r"|[。！？]"
)
_ABBREVIATIONS = frozenset(
    """
    dr mr mrs ms prof st vs approx ca cf eg ie incl resp fig dept tab tabs cap caps inj sol susp
    max min sr jr bzw ggf evtl usw zb dh etc pat no nr vol
    """.split()  # noqa: SIM905  # a list of quoted words reads worse
)
_LAST_WORD = re.compile(r"[^\s(\[]*$")
_LONGEST_WORD = 24
_LONGEST_ABBREVIATION = 5


def sentences(text: str) -> list[str]:
    """The sentences and lines of a text, each with the white space behind it.

    Joined they are the text. Decimals ("1.5"), abbreviations ("Dr.", "e.g.", "p.o."), initials
    and the numbers of a list ("1. Rest") end no sentence.
    """
    pieces: list[str] = []
    start = 0
    for found in _BREAK.finditer(text):
        if "\n" in found[0] or found[0][0] in "。！？" or _ends(text, start, found):
            pieces.append(text[start : found.end()])
            start = found.end()
    pieces.append(text[start:])
    return [piece for piece in pieces if piece]


def within(text: str, most: int) -> str:
    """The whole sentences of a text that have at most so many characters, with a note of the rest.

    A sentence is told whole or not at all: half of a dose is another dose.
    """
    if len(text) <= most:
        return text
    end = 0
    for piece in sentences(text):
        if end + len(piece.rstrip()) > most:
            break
        end += len(piece)
    note = f"[{len(text) - end:,} more characters of this result are left out here]"
    return f"{text[:end].rstrip()}\n{note}".lstrip()


def _ends(text: str, start: int, found: re.Match[str]) -> bool:
    if found[0].rstrip() != ".":
        return not text[found.end()].islower()
    word = _LAST_WORD.search(text, max(start, found.start() - _LONGEST_WORD), found.start())
    last = word[0] if word else ""
    if last.isdigit() and not text[start : found.start() - len(last)].strip():
        return False  # the number of a list
    if text[found.end()].islower() and len(last) < _LONGEST_ABBREVIATION:
        return False
    initial = len(last) == 1 and last.isalpha()
    return not (initial or "." in last.strip("0123456789") or last.lower() in _ABBREVIATIONS)
