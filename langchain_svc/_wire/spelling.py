"""Undoes the ways in which a server may write a text that it quotes."""

from __future__ import annotations

import html
import re
import unicodedata
from urllib.parse import unquote

_LAYERS = 2  # a text may be escaped for JSON and then for a URL
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([nrt])|([\"'/]))")
# Python makes no number of thousands of digits, and there is no letter of eight.
_PADDED = re.compile(r"&#([xX]?)0+(?=[0-9a-fA-F])")
_NO_LETTER = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{7,});?")
_TERMINAL = re.compile(r"\x1b\[[\d;]*[A-Za-z]?")
# Format characters part a name where no eye sees it; what is not assigned shows as nothing.
_UNSEEN = frozenset({"Cf", "Cn", "Co", "Cs"})


def spelled_out(text: str) -> str:
    """A text without escapes of JSON, of URLs and of HTML, and with printable characters only."""
    for _ in range(_LAYERS):
        if "\\" in text:
            text = _ESCAPE.sub(_letter, text)
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        if "&#" in text:
            text = _NO_LETTER.sub("\ufffd", _PADDED.sub(r"&#\1", text))
        text = unquote(html.unescape(text))
    text = _TERMINAL.sub(" ", text)
    return text if text.isprintable() else "".join(map(_printable, text))


def _letter(found: re.Match[str]) -> str:
    code, space, itself = found[1] or found[2], found[3], found[4]
    return chr(int(code, 16)) if code else " " if space else itself


def _printable(letter: str) -> str:
    if letter.isprintable():
        return letter
    return "" if unicodedata.category(letter) in _UNSEEN else " "
