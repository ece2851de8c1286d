"""Tokens by a rule of the sandbox's own, so that counts and pieces always agree.

A word of up to six characters is one token; from a longer word, fours are cut until six or fewer
are left. Every other visible character is a token by itself. White space costs nothing: it rides
on the token after it, or on the last one. It is no real model's count, only a plausible and
repeatable one.
"""

from __future__ import annotations

import re

# White space is an alternative of its own: a leading `\s*` would try again from every blank of a
# long run of blanks, and a megabyte of them would take hours.
_PIECE = re.compile(r"\s+|\w{1,6}(?!\w)|\w{1,4}|[^\w\s]")


def split_tokens(text: str) -> list[str]:
    """Cut `text` into its tokens; joined together they are `text` again."""
    tokens: list[str] = []
    waiting = ""
    for piece in _PIECE.findall(text):
        if piece.isspace():
            waiting += piece
        else:
            tokens.append(waiting + piece)
            waiting = ""
    if waiting and tokens:
        tokens[-1] += waiting
    elif waiting:
        tokens.append(waiting)
    return tokens


def count_tokens(text: str) -> int:
    """Return how many tokens `text` has, always `len(split_tokens(text))`."""
    visible = sum(1 for found in _PIECE.finditer(text) if not found[0].isspace())
    return visible or int(bool(text))
