"""Scalars that say what the schema wants in another way: "1,234.50", "Yes", "**two**".

A function returns the value and a penalty, or None where the text does not clearly say one value.
"""

# ruff: noqa: RUF001 - what models write has such characters

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from .values import same
from .words import number

Coerced = tuple[Any, int]

# How far a value is from what was asked for.
SPELLED = 1  # the same value, written otherwise
SHAPED = 2  # the same value in another container
FOUND = 3  # a value found in a longer text

_CURRENCY = r"(?:[$€£¥₹₽₩]|USD|EUR|GBP|JPY|CHF)"
_AMOUNT = re.compile(
    rf"(?P<sign>[-+−]?)\s*{_CURRENCY}?\s*(?P<inner>[-−]?)(?P<digits>\d[\d.,'_\s]*)(?P<exp>[eE][-+]?\d+)?"
    rf"\s*(?:%|{_CURRENCY})?\.?"
)
_ENGLISH = re.compile(r"\d{1,3}(?:[,'_\s]\d{3})+(?:\.\d*)?|\d+(?:\.\d*)?")
_CONTINENTAL = re.compile(r"\d{1,3}(?:\.\d{3})+,\d*|\d{1,3}(?:\.\d{3}){2,}|\d+,(?:\d{1,2}|\d{4,})")
_LONGEST_NUMBER = 60
_LONGEST_SENTENCE = 2_000

_TRUE = frozenset({"true", "yes", "y", "on", "1"})
_FALSE = frozenset({"false", "no", "n", "off", "0"})
_NOTHING = frozenset({"", "null", "none", "nil", "n/a", "na", "undefined"})
_TRUTH = re.compile(r"\b(true|false)\b", re.IGNORECASE)
_DENIAL = re.compile(
    r"\b(?:not|no|never|neither|nor|cannot|isn|aren|wasn|n't|non|un)\b", re.IGNORECASE
)
_MARKS = " \t\r\n*_`\"'“”‘’.,;:!?()[]<>"
_FOLDED = re.compile(r"[\W_]+")


def says_nothing(value: Any) -> bool:
    """Whether a value is a way of writing null."""
    return value is None or (isinstance(value, str) and value.strip().casefold() in _NOTHING)


def fold(text: str) -> str:
    """A text without case, spaces and punctuation."""
    return _FOLDED.sub("", text).casefold()


def coerce(value: Any, name: str) -> Coerced | None:
    """The value as one of a type, if it clearly says one."""
    return _TYPES[name](value) if name in _TYPES else None


# -- types ----------------------------------------------------------------------------------------


def to_null(value: Any) -> Coerced | None:
    """Null, for words that say so."""
    return (None, SPELLED) if says_nothing(value) else None


def to_integer(value: Any) -> Coerced | None:
    """An integer, if the value is a whole number."""
    if isinstance(value, float) and value.is_integer():
        return int(value), 0
    found = to_number(value)
    if found is None or found[0] != found[0] // 1:
        return None
    return int(found[0]), found[1]


def to_number(value: Any) -> Coerced | None:
    """A number, if the text is one and nothing else."""
    if not isinstance(value, str) or len(value) > _LONGEST_NUMBER:
        return None
    text = value.strip().strip("*`")
    plain = number(text)
    return _amount(text) if plain is None else (plain, SPELLED)


def _amount(text: str) -> Coerced | None:
    found = _AMOUNT.fullmatch(text)
    if found is None:
        return None
    digits = _plain_digits(found["digits"].strip())
    if digits is None:
        return None
    value = number(re.sub(r"^0+(?=\d)", "", digits) + (found["exp"] or ""))  # 007
    if value is None:
        return None
    return (-value if (found["sign"] + found["inner"]).strip("+") else value), SPELLED


def _plain_digits(digits: str) -> str | None:
    """Digits with a point, out of the English or the continental way to group them."""
    if _ENGLISH.fullmatch(digits):
        return re.sub(r"[,'_\s]", "", digits)
    if _CONTINENTAL.fullmatch(digits):
        return digits.replace(".", "").replace(",", ".")
    return None


def to_boolean(value: Any) -> Coerced | None:
    """True or false, if the value says exactly one of them."""
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value), SPELLED
    if not isinstance(value, str) or len(value) > _LONGEST_SENTENCE:
        return None
    word = value.strip(_MARKS).casefold()
    if word in _TRUE or word in _FALSE:
        return word in _TRUE, SPELLED
    said = {one.casefold() for one in _TRUTH.findall(value)}
    if len(said) != 1 or _DENIAL.search(value):
        return None
    return "true" in said, FOUND


def to_string(value: Any) -> Coerced | None:
    """The text of a number or a boolean."""
    if isinstance(value, bool):
        return str(value).lower(), SPELLED
    return (str(value), SPELLED) if isinstance(value, (int, float)) else None


_TYPES: dict[str, Callable[[Any], Coerced | None]] = {
    "null": to_null,
    "boolean": to_boolean,
    "integer": to_integer,
    "number": to_number,
    "string": to_string,
}


# -- enumerations ---------------------------------------------------------------------------------


def choose(value: Any, options: Sequence[Any]) -> Coerced | None:
    """The one option that a value means."""
    if isinstance(value, (int, float)):
        value = _text(value)
    if not isinstance(value, str):
        return None
    texts = [_text(option) for option in options]
    for look in (str.strip, str.casefold, fold):
        hits = [at for at, text in enumerate(texts) if look(text) == look(value)]
        if hits and look(value):
            return _only(options, hits, SPELLED)
    if len(options) < 2 or len(value) > _LONGEST_SENTENCE:  # noqa: PLR2004 - one is named anywhere
        return None
    return _only(options, _mentioned(value, texts), FOUND)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _only(options: Sequence[Any], hits: list[int], penalty: int) -> Coerced | None:
    if not hits or any(not same(options[at], options[hits[0]]) for at in hits):
        return None
    return options[hits[0]], penalty


def _mentioned(value: str, texts: list[str]) -> list[int]:
    """The options that a text names, as they are written or else in any case.

    A text that denies something names none: it may say which option it is not.
    """
    longest_first = sorted(range(len(texts)), key=lambda at: -len(texts[at]))
    names = [(at, r"[\W_]+".join(re.findall(r"[^\W_]+", texts[at]))) for at in longest_first]
    named = "|".join(f"(?P<_{at}>{name})" for at, name in names if name) or r"\Z."
    for flags in (0, re.IGNORECASE):
        pattern = re.compile(rf"(?<![^\W_])(?:{named})(?![^\W_])", flags)
        hits = [int(str(found.lastgroup)[1:]) for found in pattern.finditer(value)]
        if hits:
            return [] if _DENIAL.search(pattern.sub(" ", value)) else hits
    return []
