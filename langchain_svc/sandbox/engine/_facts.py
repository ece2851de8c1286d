"""The values that stand in a text: numbers, dates, names, quotations, places, lists.

Each is a `Fact` with its span, so that a field can look at the words around it and no value is
used twice.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from langchain_svc.sandbox.engine._gazetteer import (
    COLOUR_WORDS,
    CURRENCIES,
    LANGUAGES,
    MONTHS,
    NUMBER_WORDS,
    REGIONS,
    STARTERS,
    UNITS,
)
from langchain_svc.sandbox.engine._jsontext import Json, json_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LONGEST = 8_000  # characters of a question that are searched for values
_MOST_FACTS = 400


@dataclass(frozen=True)
class Fact:
    """One value of one kind, and where it stands."""

    kind: str
    value: Json
    start: int
    end: int


# --- Numbers -------------------------------------------------------------------------------

_NUMBER = re.compile(
    r"(?<![\w.])(?P<sign>[-\u2212+]?)(?P<money>[$€£¥]\s?)?"
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)"
    r"(?:[eE](?P<exponent>[+-]?\d{1,2})(?!\w))?"
    r"(?P<scale>\s?(?:k|K|M|bn|B|million|billion|thousand|hundred|trillion)\b)?"
    r"(?P<percent>\s?(?:%|percent\b|per cent\b))?"
    r"(?P<ordinal>st|nd|rd|th)?(?![A-Z]{2}|_|[A-Za-z]{0,3}\d)"
)
_SCALES = {
    "k": 10**3,
    "thousand": 10**3,
    "hundred": 100,
    "m": 10**6,
    "million": 10**6,
    "bn": 10**9,
    "b": 10**9,
    "billion": 10**9,
    "trillion": 10**12,
}
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(NUMBER_WORDS)})\b", re.IGNORECASE)


def _shrink(number: float) -> int | float:
    return int(number) if number == int(number) and abs(number) < 2**53 else number


def _number_value(found: re.Match[str]) -> int | float:
    digits = found["digits"].replace(",", "")[:40]
    if digits.isdigit() and not found["scale"] and not found["exponent"]:
        return -int(digits) if found["sign"] in {"-", "\u2212"} else int(digits)
    number = float(digits) * float(f"1e{found['exponent'] or 0}")
    number *= _SCALES.get((found["scale"] or "").strip().lower(), 1)
    value = _shrink(round(number, 10))
    return -value if found["sign"] in {"-", "\u2212"} else value


def _numbers(text: str) -> Iterator[Fact]:
    for found in _NUMBER.finditer(text):
        kind = "percent" if found["percent"] else "number"
        start = found.start("digits") if found["sign"] in {"", "+"} else found.start()
        yield Fact(kind, _number_value(found), start, found.end())
    for found in _NUMBER_WORD.finditer(text):
        yield Fact("number_word", NUMBER_WORDS[found[0].lower()], *found.span())


# --- Text with a form of its own ------------------------------------------------------------

_MONTH = "|".join(f"{month}|{month[:3]}" for month in MONTHS)
_FORMS: dict[str, re.Pattern[str]] = {
    "email": re.compile(r"\b[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,6}"),
    "url": re.compile(r"\bhttps?://[^\s<>\"')\]]{1,2000}"),
    "phone": re.compile(r"(?<![\w.])\+?\(?\d{2,4}\)?[-\s.]\d{3,4}[-\s.]\d{3,4}\b"),
    "date": re.compile(
        rf"\b(?:\d{{4}}-\d{{1,2}}-\d{{1,2}}|\d{{1,2}}[/.-]\d{{1,2}}[/.-]\d{{2,4}}"
        rf"|(?:{_MONTH})\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?"
        rf"|\d{{1,2}}(?:st|nd|rd|th)?(?: of)? (?:{_MONTH})(?:,? \d{{4}})?)\b",
        re.IGNORECASE,
    ),
    "day": re.compile(
        r"\b(?:today|tomorrow|yesterday|tonight|(?:next |this |last )?"
        r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|week|month|year))\b",
        re.IGNORECASE,
    ),
    "time": re.compile(
        r"\b(?:[01]?\d|2[0-3]):[0-5]\d(?: ?[ap]m)?\b|\b\d{1,2} ?[ap]m\b", re.IGNORECASE
    ),
    "handle": re.compile(r"\b[a-z]{2,20}_\d{1,9}[a-z]{0,8}\b"),
    "code": re.compile(r"\b(?=[\w-]{0,30}\d)(?=[\w-]{0,30}[A-Za-z])[A-Za-z0-9][\w-]{1,40}\b"),
    "variable_expr": re.compile(
        r"(?<![\w.])[\d.]{0,12}[a-z](?:\^|\*\*)\d{1,3}(?:\s?[-+*/]\s?[\w^.]{1,12}){0,12}"
    ),
    "expr": re.compile(
        r"(?<![\w.])-?\(?\d[\d.]{0,20}\)?"
        r"(?:\s{0,2}(?:\*\*|[-+*/^%\u00d7\u00f7])\s{0,2}\(?-?\d[\d.]{0,20}\)?){1,40}"
    ),
}


def _forms(text: str) -> Iterator[Fact]:
    for kind, pattern in _FORMS.items():
        for found in pattern.finditer(text):
            yield Fact(kind, found[0].rstrip(".,;"), *found.span())


_QUOTES = re.compile(
    r"\"([^\"\n]{1,2000})\"|\u201c([^\u201d\n]{1,2000})\u201d|«([^»\n]{1,2000})»"
    r"|「([^」\n]{1,2000})」|`([^`\n]{1,2000})`|(?<!\w)'([^'\n]{1,2000})'(?!\w)"
    r"|(?<!\w)\u2018([^\u2019\n]{1,2000})\u2019(?!\w)"
)


def _quotations(text: str) -> Iterator[Fact]:
    for found in _QUOTES.finditer(text):
        inner = found[found.lastindex or 0].strip()
        if inner:
            yield Fact("quoted", inner, *found.span())


# --- Vocabularies --------------------------------------------------------------------------


def _vocabulary(kind: str, entries: dict[str, str]) -> Callable[[str], Iterator[Fact]]:
    pattern = re.compile(
        rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(entries, key=len, reverse=True)))})(?!\w)",
        re.IGNORECASE,
    )

    def find(text: str) -> Iterator[Fact]:
        for found in pattern.finditer(text):
            yield Fact(kind, entries[found[0].lower()], *found.span())

    return find


# --- Names ---------------------------------------------------------------------------------

_TOKEN = re.compile(r"[^\W_](?:[\w'\u2019&+#.-]{0,60}[\w+#])?")
_LINKS = frozenset(
    [
        "of",
        "the",
        "de",
        "la",
        "le",
        "da",
        "di",
        "du",
        "van",
        "von",
        "der",
        "den",
        "and",
        "&",
        "y",
        "e",
    ]
)
_SENTENCE_END = re.compile(r"[.!?:\n\"“(\[]\s*$")
_PLACE_BEFORE = re.compile(
    r"\b(?:in|at|from|to|near|around|for|of|visiting|between|within)\s(?:the\s)?$", re.IGNORECASE
)


_POSSESSIVE = re.compile(r"['\u2019]s$")


def _capitalised(word: str) -> bool:
    return word[0].isupper() or (word[0].isdigit() and word[-1].isupper())


def _opens(text: str, start: int) -> bool:
    """Tell whether a word opens a sentence."""
    return start == 0 or bool(_SENTENCE_END.search(text[max(0, start - 3) : start]))


def _name_starts(text: str, token: re.Match[str]) -> bool:
    """Tell whether a name begins here: not every word that opens a sentence is one."""
    word = token[0]
    if not _capitalised(word) or word in {"I", "I'm", "I'd", "I've", "I'll"}:
        return False
    known = word.lower() in STARTERS
    return not known if _opens(text, token.start()) else not (known and word.istitle())


def _name_end(text: str, tokens: list[re.Match[str]], at: int) -> int:
    """Return the index behind the last word of the name that begins at `at`."""
    end = at + 1
    while end < len(tokens):
        gap = text[tokens[end - 1].end() : tokens[end].start()]
        if gap not in {" ", "-"}:
            break
        word = tokens[end][0]
        linked = word in _LINKS and word not in {"and", "y", "e"} and end + 1 < len(tokens)
        follows = linked and _capitalised(tokens[end + 1][0])
        if follows and text[tokens[end].end() : tokens[end + 1].start()] == " ":
            end += 2
        elif _capitalised(word) and not (word.istitle() and word.lower() in STARTERS):
            end += 1
        else:
            break
    return end


_REGION = re.compile(r", ?([A-Z](?:\.[A-Z]\.?|\w{1,20}(?: [A-Z]\w{1,20})?))")


def _with_region(text: str, end: int) -> int:
    """Take ", CA" or ", France" into a place."""
    found = _REGION.match(text, end)
    if found and (
        found[1].lower() in REGIONS or re.fullmatch(r"[A-Z]{2}|[A-Z]\.[A-Z]\.?", found[1])
    ):
        return found.end()
    first = found[1].split(" ")[0] if found else ""
    return end + 2 + len(first) if first.lower() in REGIONS and text[end + 1] == " " else end


def _name_at(text: str, start: int, end: int, place_end: int) -> Iterator[Fact]:
    name = _POSSESSIVE.sub("", text[start:end])
    if len(name) == 1 or name.lower() in UNITS:
        return
    # A single word in front of a sentence may be capital for that reason alone.
    lonely = " " not in name and text[end : end + 2].islower() and _opens(text, start)
    yield Fact("opener" if lonely and not name.isupper() else "name", name, start, end)
    if place_end != end or _PLACE_BEFORE.search(text[max(0, start - 14) : start]):
        yield Fact("place", _POSSESSIVE.sub("", text[start:place_end]), start, place_end)


def _names(text: str) -> Iterator[Fact]:
    tokens = list(_TOKEN.finditer(text))
    at = 0
    while at < len(tokens):
        if not _name_starts(text, tokens[at]):
            at += 1
            continue
        start, end = tokens[at].start(), tokens[_name_end(text, tokens, at) - 1].end()
        place_end = _with_region(text, end)
        yield from _name_at(text, start, end, place_end)
        while at < len(tokens) and tokens[at].start() < place_end:
            at += 1


_LOWER_PLACE = re.compile(
    r"\b(?:in|at|near|around|to|from)\s((?!the\b|a\b|an\b|my\b|me\b|this\b|it\b|one\b)[a-z]{3,20})(?=\s*(?:[?.!,]|$|and\b|or\b|to\b))"
)


def _plain_places(text: str) -> Iterator[Fact]:
    for found in _LOWER_PLACE.finditer(text):
        yield Fact("plain_place", found[1], *found.span(1))


# --- Lists and assignments -----------------------------------------------------------------


def _lists(text: str) -> Iterator[Fact]:
    for value in json_values(text):
        kind = "list" if isinstance(value.value, list) else "object"
        yield Fact(kind, value.value, value.start, value.end)
    for found in re.finditer(r"[\[(]\s*([^\[\]()\"\n]{1,400}?,[^\[\]()\"\n]{1,400})[\])]", text):
        parts = [part.strip(" '") for part in found[1].split(",")]
        yield Fact("list", [_scalar(part) for part in parts if part], *found.span())


def _scalar(text: str) -> Json:
    number = _NUMBER.fullmatch(text)
    return _number_value(number) if number and not number["percent"] else text


_FINDERS: tuple[Callable[[str], Iterator[Fact]], ...] = (
    _numbers,
    _forms,
    _quotations,
    _vocabulary("language", LANGUAGES),
    _vocabulary("colour", COLOUR_WORDS),
    _vocabulary("currency", CURRENCIES),
    _vocabulary("unit", UNITS),
    _names,
    _plain_places,
    _lists,
)


def facts_of(text: str) -> tuple[Fact, ...]:
    """Return the facts in the first `LONGEST` characters of `text`, in order."""
    return _facts_of(text[:LONGEST])


@lru_cache(maxsize=256)
def _facts_of(text: str) -> tuple[Fact, ...]:
    found = [fact for finder in _FINDERS for fact in finder(text)]
    return tuple(sorted(found, key=lambda fact: (fact.start, -fact.end))[:_MOST_FACTS])
