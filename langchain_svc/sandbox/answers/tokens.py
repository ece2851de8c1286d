"""Tokens by a rule of the sandbox's own: counts and pieces always agree, and no model counts so.

A word of up to six letters is one token; from a longer word, fours are cut until six or fewer are
left. Every other visible character is a token. White space rides on the token after it, or on the
last one.
"""

from __future__ import annotations

import re

# White space is an alternative of its own: a leading `\s*` would try again from every blank of a
# long run of blanks, and a megabyte of them would take hours.
_PIECE = re.compile(r"\s+|\w{1,6}(?!\w)|\w{1,4}|[^\w\s]")


def split_tokens(text: str) -> list[str]:
    """Cut `text` into its tokens; joined together they are `text` again."""
    tokens: list[str] = []
    blank = ""
    for piece in _PIECE.findall(text):
        if piece.isspace():
            blank += piece
        else:
            tokens.append(blank + piece)
            blank = ""
    if blank:
        tokens[-1:] = [(tokens[-1] if tokens else "") + blank]
    return tokens


def count_tokens(text: str) -> int:
    """Return how many tokens `text` has, always `len(split_tokens(text))`."""
    visible = sum(1 for found in _PIECE.finditer(text) if not found[0].isspace())
    return visible or int(bool(text))
