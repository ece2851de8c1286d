"""Scalars that say what the schema asks for in another way: "1,234.50", "Yes", "**2**".

A function returns the value and a penalty, or None where the text does not clearly say one value.
"""

# ruff: noqa: RUF001 - what models write has such characters

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Hashable, Sequence
from decimal import Decimal

Scalar = str | int | float | None

# -- words and numbers ----------------------------------------------------------------------------

# NaN and the infinities are not JSON; "no value" is the nearest that JSON can say.
_LITERALS: dict[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL", "None", "NaN", "nan", "undefined")),
    **dict.fromkeys(("Infinity", "+Infinity", "-Infinity")),
}
_STRICT = re.compile(
    r"-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?|true|false|null", re.ASCII
)
_SURE = 15  # digits that every float has
_DIGITS = r"\d+(?:_\d+)*"
_LOOSE = re.compile(
    rf"[-+]?(?:(?!0\d){_DIGITS}(\.(?:{_DIGITS})?)?|(\.{_DIGITS}))([eE][+-]?\d+)?",
    re.ASCII,
)


class LongNumber(float):
    """The float nearest to a number that has more digits than a float can hold."""

    def __init__(self, digits: str) -> None:
        self.exact = Decimal(digits)

    def __reduce__(self) -> tuple[type[LongNumber], tuple[str]]:
        return LongNumber, (str(self),)

    def is_integer(self) -> bool:
        """Whether the number is, and not the float."""
        return self.exact == self.exact.to_integral_value()

    def __int__(self) -> int:
        return int(self.exact)

    def __str__(self) -> str:
        return str(self.exact)


def fraction(digits: str) -> float:
    """The number as a float, or as a `LongNumber` where that would be another number."""
    value = float(digits)
    if len(digits) <= _SURE or not math.isfinite(value):
        return value
    if Decimal(digits) == Decimal(repr(value)):
        return value
    return LongNumber(digits)


def dump(value: object) -> str:
    """A value as JSON, in which each number has all of its digits."""
    if isinstance(value, dict):
        fields = [f"{dump(key)}: {dump(item)}" for key, item in value.items()]
        return f"{{{', '.join(fields)}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(dump, value))}]"
    if isinstance(value, LongNumber):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def with_decimals(value: object) -> object:
    """The same value with a Decimal for each `LongNumber`; itself if it has none."""
    if isinstance(value, LongNumber):
        return value.exact
    if isinstance(value, dict):
        items = [*map(with_decimals, value.values())]
        if any(map(operator.is_not, items, value.values())):
            return dict(zip(value, items, strict=True))
    elif isinstance(value, list):
        items = [*map(with_decimals, value)]
        if any(map(operator.is_not, items, value)):
            return items
    return value


def number(word: str) -> int | float | None:
    """The number that a word is, also as other languages write it; None if it is no number."""
    match = _LOOSE.fullmatch(word)
    if match is None:
        return None
    digits = word.replace("_", "")
    has_fraction = any(match.groups())
    try:
        if has_fraction:
            return fraction(digits)
        return int(digits)
    except ValueError:  # more digits than this Python reads
        return None


def literal(word: str) -> tuple[Scalar, int]:
    """What a word without quotes stands for, and how many repairs that took.

    A word that is neither a number nor a literal stands for itself. Numbers with leading zeros
    are such words: they are codes more often than numbers, and a schema that asks for a number
    can still make one of them.
    """
    value: Scalar
    if word in _LITERALS:
        value = _LITERALS[word]
    else:
        value = number(word)
        if value is None:
            return word, 1
        if isinstance(value, float) and not math.isfinite(value):  # 1e999
            return None, 1
    if _STRICT.fullmatch(word):
        return value, 0
    return value, 1


# -- coercion --------------------------------------------------------------------------------------

Coerced = tuple[object, int]

SPELLED = 1  # the same value, written otherwise

# Thousands and decimals both: which is which is clear.
_GROUPED = re.compile(r"-?\d{1,3}(?:(?:,\d{3})+\.\d+|(?:\.\d{3})+,\d+)", re.ASCII)
_TRUE = {"true", "yes", "y", "on", "1"}
_FALSE = {"false", "no", "n", "off", "0"}
_AROUND = " \t\r\n*_`\"'“”‘’.,;:!?()[]<>"
_NOTHING = frozenset({"", "null", "none", "nil", "n/a", "na", "undefined"})
_LONGEST_NUMBER = 60


def coerce(value: object, name: str) -> Coerced | None:
    """The value as one of a type, if it clearly says one."""
    if name == "null" and says_nothing(value):
        return None, SPELLED
    if name == "boolean":
        return _boolean(value)
    if name == "string" and isinstance(value, (int, float)):
        return _text(value), SPELLED
    if name == "number" and isinstance(value, str):
        amount = _amount(value)
        if amount is not None:
            return amount, SPELLED
    if name == "integer" and isinstance(value, str):
        amount = _amount(value)
        if amount is not None and not amount % 1:
            return int(amount), SPELLED
    return None


def _amount(value: str) -> int | float | None:
    """The number that a text is; "5,000" may mean two numbers, and so means none."""
    if len(value) > _LONGEST_NUMBER:
        return None
    text = value.strip().strip("*`").replace("\u2212", "-")  # the minus of typography
    if "_" in text:
        return None
    if _GROUPED.fullmatch(text):
        # The last sign is the decimal one; those before it separate thousands.
        text = re.sub(r"[.,](?=.*[.,])", "", text).replace(",", ".")
    without_zeros = re.sub(r"^(-?)0+(?=\d)", r"\1", text)  # 007
    return number(without_zeros)


def _boolean(value: object) -> Coerced | None:
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value), SPELLED
    if not isinstance(value, str):
        return None
    word = value.strip(_AROUND).casefold()
    if word in _TRUE:
        return True, SPELLED
    if word in _FALSE:
        return False, SPELLED
    return None


def choose(value: object, options: Sequence[object]) -> Coerced | None:
    """The one option that a value means."""
    if not isinstance(value, (str, int, float)):
        return None
    text = _text(value)
    # From what ignores the least to what ignores the most: the first that matches decides.
    for simplify in (str.strip, str.casefold, fold):
        simple = simplify(text)
        matches = [option for option in options if simplify(_text(option)) == simple]
        if not matches or not simple:
            continue
        first = matches[0]
        if any(frozen(option) != frozen(first) for option in matches):
            return None  # "ab" may mean "Ab" or "AB"
        return first, SPELLED
    return None


# -- comparing and showing ------------------------------------------------------------------------


def says_nothing(value: object) -> bool:
    """Whether a value is a way of writing null."""
    if isinstance(value, str):
        return value.strip().casefold() in _NOTHING
    return value is None


def fold(text: str) -> str:
    """A text without case, spaces and punctuation."""
    return re.sub(r"[\W_]+", "", text).casefold()


def frozen(value: object) -> Hashable:
    """A key that is equal for equal JSON values: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        fields = [(key, frozen(item)) for key, item in value.items()]
        return "object", frozenset(fields)
    if isinstance(value, (list, tuple)):
        return "array", tuple(frozen(item) for item in value)
    if isinstance(value, bool):
        return "boolean", value  # in Python, 1 == True
    if isinstance(value, LongNumber):
        return value.exact
    try:
        hash(value)
    except TypeError:
        return repr(value)
    return value


MOST_QUOTED = 40
"""Characters of a model's text that a problem quotes: enough to find the place again."""


def shortened(text: str, longest: int = MOST_QUOTED) -> str:
    """The text, or its beginning and a sign that more follows."""
    if len(text) <= longest:
        return text
    return f"{text[: longest - 1]}…"


def show(value: object, longest: int = MOST_QUOTED) -> str:
    """A value, short enough for one line."""
    if isinstance(value, str):
        return repr(shortened(value, longest))
    if isinstance(value, (list, tuple)):
        return f"{len(value)} items"
    if not isinstance(value, dict):
        return shortened(json.dumps(value), longest)
    if not value:
        return "no keys"
    first_names = [str(name) for name in [*value][:_MOST_NAMES]]
    names = shortened(", ".join(first_names), longest)
    more = len(value) - _MOST_NAMES
    if more > 0:
        return f"{names} and {more} more"
    return names


_MOST_NAMES = 8


def got(value: object) -> str:
    """The second half of a problem: "got string 'abc'", "got null", "got object with a, b"."""
    if value is None:
        return "got null"
    kind = _KINDS.get(type(value), type(value).__name__)
    if isinstance(value, (dict, list, tuple)):
        return f"got {kind} with {show(value)}"
    return f"got {kind} {show(value)}"


_KINDS = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    dict: "object",
    list: "array",
    tuple: "array",
}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
