"""Scalars that say what the schema wants in another way: "1,234.50", "Yes", "**2**".

A function returns the value and a penalty, or None where the text does not clearly say one value.
"""

# ruff: noqa: RUF001 - what models write has such characters

from __future__ import annotations

import json
import math
import re
from collections.abc import Hashable, Sequence
from typing import Any

Scalar = str | int | float | None

# -- words and numbers ----------------------------------------------------------------------------

# NaN and the infinities are not JSON; "no value" is the nearest that JSON can say.
_LITERALS: dict[str, Any] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "None", "NaN", "nan", "undefined")),
    **dict.fromkeys(("Infinity", "+Infinity", "-Infinity")),
}
_STRICT = re.compile(
    r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|true|false|null", re.ASCII
)
_DIGITS = r"\d+(?:_\d+)*"
_LOOSE = re.compile(
    rf"[-+]?(?:(?!0\d){_DIGITS}(\.(?:{_DIGITS})?)?|(\.{_DIGITS}))([eE][+-]?\d+)?",
    re.ASCII,
)


def number(word: str) -> int | float | None:
    """The number a word is, also in the ways of writing of other languages; None if it is none."""
    found = _LOOSE.fullmatch(word)
    if found is None:
        return None
    plain = word.replace("_", "")
    try:
        return float(plain) if any(found.groups()) else int(plain)
    except ValueError:  # more digits than this Python reads
        return None


def literal(word: str) -> tuple[Scalar, int]:
    """What a word without quotes stands for, and how many repairs that took.

    A word that is neither a number nor a literal stands for itself. Numbers with leading zeros
    are such words: they are codes more often than numbers, and a schema that wants a number can
    still make one of them.
    """
    value = _LITERALS[word] if word in _LITERALS else number(word)
    if value is None and word not in _LITERALS:
        return word, 1
    if isinstance(value, float) and not math.isfinite(value):  # 1e999
        return None, 1
    return value, int(not _STRICT.fullmatch(word))


# -- coercion --------------------------------------------------------------------------------------

Coerced = tuple[Any, int]

SPELLED = 1  # the same value, written otherwise

# Thousands and decimals both: which is which is clear.
_GROUPED = re.compile(r"-?\d{1,3}(?:(?:,\d{3})+\.\d+|(?:\.\d{3})+,\d+)", re.ASCII)
_TRUE, _FALSE = {"true", "yes", "y", "on", "1"}, {"false", "no", "n", "off", "0"}
_AROUND = " \t\r\n*_`\"'“”‘’.,;:!?()[]<>"
_NOTHING = frozenset({"", "null", "none", "nil", "n/a", "na", "undefined"})
_LONGEST_NUMBER = 60


def coerce(value: Any, name: str) -> Coerced | None:
    """The value as one of a type, if it clearly says one."""
    if name == "null":
        return (None, SPELLED) if says_nothing(value) else None
    if name == "boolean":
        return _boolean(value)
    if name == "string" and isinstance(value, (bool, int, float)):
        return (str(value).lower() if isinstance(value, bool) else str(value)), SPELLED
    if name not in ("integer", "number") or not isinstance(value, str):
        return None
    found = (
        _amount(value.strip().strip("*`")) if len(value) <= _LONGEST_NUMBER else None
    )
    if found is None or (name == "integer" and found % 1):
        return None
    return (int(found) if name == "integer" else found), SPELLED


def _amount(text: str) -> int | float | None:
    """The number that a text is; "5,000" may mean two numbers, and so means none."""
    text = text.replace("\u2212", "-")  # the minus sign of typography
    if _GROUPED.fullmatch(text):
        text = re.sub(r"[.,](?=.*[.,])", "", text).replace(",", ".")
    return (
        number(re.sub(r"^(-?)0+(?=\d)", r"\1", text)) if "_" not in text else None
    )  # 007


def _boolean(value: Any) -> Coerced | None:
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value), SPELLED
    word = value.strip(_AROUND).casefold() if isinstance(value, str) else ""
    return (word in _TRUE, SPELLED) if word in _TRUE | _FALSE else None


def choose(value: Any, options: Sequence[Any]) -> Coerced | None:
    """The one option that a value means."""
    value = _text(value) if isinstance(value, (int, float)) else value
    if not isinstance(value, str):
        return None
    for look in (str.strip, str.casefold, fold):
        hits = [one for one in options if look(_text(one)) == look(value)]
        if hits and look(value):
            clear = all(frozen(one) == frozen(hits[0]) for one in hits)
            return (hits[0], SPELLED) if clear else None
    return None


# -- comparing and showing ------------------------------------------------------------------------


def says_nothing(value: Any) -> bool:
    """Whether a value is a way of writing null."""
    return value is None or (
        isinstance(value, str) and value.strip().casefold() in _NOTHING
    )


def fold(text: str) -> str:
    """A text without case, spaces and punctuation."""
    return re.sub(r"[\W_]+", "", text).casefold()


def frozen(value: Any) -> Hashable:
    """A key that is equal for equal JSON values: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        return ("object", frozenset((key, frozen(item)) for key, item in value.items()))
    if isinstance(value, (list, tuple)):
        return ("array", tuple(frozen(item) for item in value))
    if isinstance(value, bool):
        return ("boolean", value)
    return value if isinstance(value, Hashable) else repr(value)


MOST_QUOTED = 40
"""Characters of a model's text that a problem quotes: enough to find the place again."""


def shortened(text: str, longest: int = MOST_QUOTED) -> str:
    """The text, or its beginning and a sign that more follows."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def show(value: Any, longest: int = MOST_QUOTED) -> str:
    """A value, short enough for one line."""
    if isinstance(value, str):
        return repr(shortened(value, longest))
    if isinstance(value, (list, tuple)):
        return f"{len(value)} items"
    if not isinstance(value, dict):
        return shortened(json.dumps(value), longest)
    if not value:
        return "no keys"
    names = shortened(", ".join(map(str, [*value][:_MOST_NAMES])), longest)
    more = len(value) - _MOST_NAMES
    return f"{names} and {more} more" if more > 0 else names


_MOST_NAMES = 8


def got(value: Any) -> str:
    """The second half of a problem: "got string 'abc'", "got null", "got object with a, b"."""
    if value is None:
        return "got null"
    joint = "with " if isinstance(value, (dict, list, tuple)) else ""
    return f"got {_KINDS.get(type(value), type(value).__name__)} {joint}{show(value)}"


_KINDS = {bool: "boolean", int: "integer", float: "number", str: "string", dict: "object",
          list: "array", tuple: "array"}  # fmt: skip


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
