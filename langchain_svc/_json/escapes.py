r"""Backslashes in strings: what JSON says, and what a model meant where JSON says nothing.

A valid escape means what JSON says it means. An invalid one is kept as it stands (`\d`, `\(`, a
backslash before a line end: patterns, formulas and shell lines), save those that other languages
have: `\'`, `\x41`, `\u{1F600}`, and Markdown's `\_`. A string with an invalid escape was written
by someone who does not escape backslashes, so in it `C:\Users\new` and `\frac` are taken as
they stand, too.
"""

from __future__ import annotations

import re
from typing import Any

_ESCAPE = re.compile(
    r"\\(u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\}|x[0-9a-fA-F]{2}|U000[0-9a-fA-F]{5}|[\s\S])"
)
_CUT_ESCAPE = re.compile(  # also between the two halves of one character
    r"(?:\\u[dD][89abAB][0-9a-fA-F]{2})?\\(?:u[0-9a-fA-F]{0,3})?$|\\u[dD][89abAB][0-9a-fA-F]{2}$"
)
_JSON = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_FOREIGN = {"'": "'", "`": "`", "_": "_", "“": "“", "”": "”"}
_FORMULA = re.compile(
    r"(?:begin|beta|bar|binom|bf|big|boldsymbol|bullet|forall|frac|flat|nabla|ne|neg|neq|ni|nu|not|"
    r"right|rightarrow|rho|rm|rangle|tan|tanh|tau|text\w*|theta|tfrac|tilde|times|to|top|triangle)"
    r"(?![a-z])"
)
_DRIVE = re.compile(r"(?<![A-Za-z])[A-Za-z]:(?:\\[^\\\s]*)*$")
_PATH_TAIL = 300
_LONGEST_ESCAPE = 14
_SURROGATE = re.compile("[\ud800-\udfff]")


def unescape(raw: str, *, cut: bool = False) -> tuple[str, int]:
    """The text that the inside of a string stands for, and how many escapes were repaired.

    Args:
        raw: The string without its quotes.
        cut: The text ended inside the string, perhaps inside an escape.
    """
    if cut:
        raw = _drop_cut_escape(raw)
    if "\\" not in raw:
        return raw, 0
    odd = sum(_kind(found[1]) is _FOREIGN for found in _ESCAPE.finditer(raw))
    text = _ESCAPE.sub(_as_they_stand if odd else _as_json, raw)
    whole: str = whole_characters(text)
    return whole, odd + ("\ufffd" in whole and "\ufffd" not in text)


def has_surrogates(text: str) -> bool:
    """Whether a text holds halves of characters."""
    return _SURROGATE.search(text) is not None


def whole_characters(value: Any) -> Any:
    """The value with halves of characters joined, or replaced where the other half is missing."""
    if isinstance(value, str):
        if _SURROGATE.search(value) is None:
            return value
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [whole_characters(item) for item in value]
    if isinstance(value, dict):
        return {whole_characters(key): whole_characters(item) for key, item in value.items()}
    return value


def _kind(code: str) -> dict[str, str]:
    valid = code in _JSON or (code[0] == "u" and len(code) == 5 and code[1] != "{")  # noqa: PLR2004
    return _JSON if valid else _FOREIGN


def _as_json(found: re.Match[str]) -> str:
    code = found[1]
    if code in _JSON:
        return _JSON[code]
    if len(code) > 1:
        number = int(code[1:].strip("{}"), 16)
        return chr(number) if number <= 0x10FFFF else found[0]  # noqa: PLR2004
    return _FOREIGN.get(code, found[0])


def _as_they_stand(found: re.Match[str]) -> str:
    code = found[1]
    if code in "bfnrt" and (_FORMULA.match(found.string, found.start(1)) or _in_path(found)):
        return found[0]
    return _as_json(found)


def _in_path(found: re.Match[str]) -> bool:
    before = found.string[max(0, found.start() - _PATH_TAIL) : found.start()]
    return _DRIVE.search(before) is not None


def _drop_cut_escape(raw: str) -> str:
    at = max(0, len(raw) - _LONGEST_ESCAPE)
    while found := _CUT_ESCAPE.search(raw, at):
        head = raw[: found.start()]
        # An odd number of backslashes before it: this one is no escape but escaped itself.
        if (len(head) - len(head.rstrip("\\"))) % 2 == 0:
            return head
        at = found.start() + 1
    return raw
