"""Base64 in a text: a note takes its place, since nobody reads a file's bytes."""

from __future__ import annotations

import re

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{60,}(?:\r?\n[A-Za-z0-9+/_-]{60,})*={0,2}")
MOST_BASE64 = 1_000
"""The characters of base64 that may stand in a text: a cursor or a key is not a file."""


def without_base64(text: str) -> str:
    """The text with a note in place of each file in base64."""
    return _BASE64.sub(_without_file, text)


def base64_note(text: str) -> str:
    """The note that takes the place of base64."""
    return f"[{len(text):,} characters of base64]"


def _without_file(match: re.Match[str]) -> str:
    """A note in place of a file; not of a long word or a sequence of bases, which lack letters."""
    text = match[0]
    is_file = all(re.search(letters, text) for letters in ("[A-Z]", "[a-z]", "[0-9]"))
    if is_file and len(text) > MOST_BASE64:
        return base64_note(text)
    return text
