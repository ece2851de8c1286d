"""Tells which sentences of an answer repeat the patient's record, and withholds them whole.

Guidance is about the conditions and medicines that a patient has, and full of numbers. So a word
or a number that the record holds too repeats nothing by itself. A sentence repeats the record

- with the age next to a word for age ("61-year-old", "aged 61"),
- with a reading's value next to its name or its unit ("SpO2 80 %", "150/95"),
- with a number of so many digits that it can come from nowhere else,
- with the text of a condition, medicine or risk factor that is tied to the patient ("a history
  of asthma", "taking salbutamol"), or that is as long as such texts are in records only,

and not with a limit ("below 90 mmHg"), a range ("60 to 100"), a dose or a duration.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .cues import (
    ADVISED,
    AGE_LIMIT,
    AGED,
    DURATION,
    GENERAL,
    IF,
    LIMIT_AFTER,
    LIMIT_BEFORE,
    MONTHS_OLD,
    NO_UNIT,
    OF_PATIENT,
    PERSON,
    SEX_LABEL,
    SOMEBODY,
    WHO_IS,
    YEARS,
    YEARS_OLD,
    is_remark,
    is_tied,
)
from .sentences import LIST_MARK, sentences

WITHHELD = (
    "[a sentence that repeats the patient's record was withheld; the program's artifact has it]"
)
ALL_WITHHELD = (
    "[the answer repeats the patient's record and was withheld; the program's artifact has it]"
)


def without_echo(text: str, repeats: Callable[[str, str], bool]) -> str:
    """The text with a note in place of each sentence that repeats the record.

    Where none does, it is the same text. Sentences withheld in a row leave one note a line.
    """
    shown: list[str] = []
    lead = ""  # what a list stands under
    begins = True  # whether a piece begins a line
    for piece in sentences(text):
        body = piece.rstrip()
        mark = LIST_MARK.match(body) if begins else None
        if begins and not mark:
            lead = ""
        begins = "\n" in piece
        if body and repeats(body, lead if mark else ""):
            note = (mark[0] if mark else "") + WITHHELD + piece[len(body) :]
            if shown and not mark and shown[-1].endswith(WITHHELD + " "):
                shown[-1] = shown[-1].rstrip() + piece[len(body) :]
            else:
                shown.append(note)
            continue
        shown.append(piece)
        if body.endswith(":"):
            lead = body[-_BEFORE:]
    return "".join(shown)


# -- what a record would be quoted by --------------------------------------------------------------

_TOKEN = re.compile(
    r"\d+(?:[.,]\d+)*"
    r"|[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"  # written without spaces
    r"|[^\W\d_]+"
)


class _Token(NamedTuple):
    word: str
    start: int
    end: int


Words = tuple[str, ...]


def _tokens(text: str) -> list[_Token]:
    return [_Token(found[0].casefold(), *found.span()) for found in _TOKEN.finditer(text)]


def _words(text: str) -> Words:
    return tuple(token.word for token in _tokens(text))


_LONGEST_PHRASE = 6  # of a longer text, any so many words in a row count
_TYPED_ONLY = 5  # words from which on a text is a record's, and no term of medicine
_EMPTY = frozenset({"none", "no", "yes", "unknown", "other", "nil", "healthy", "na", "normal"})
_DOSE = frozenset("mg mcg µg μg ug g ml iu units meq mmol".split())  # noqa: SIM905
_SEXES = frozenset("female male woman man f m w other unknown divers intersex".split())  # noqa: SIM905


def _variants(text: str) -> Iterator[Words]:
    """A typed text in the ways in which it may be repeated."""
    bare = re.sub(r"[(\[][^()\[\]]*[)\]]", " ", text)
    for form in (text, bare, bare.rpartition(":")[2], bare.partition(",")[0]):
        words = _words(form)
        yield words
        at = next((i for i, word in enumerate(words) if word[0].isdigit()), 0)
        if at and words[at + 1 : at + 2] and words[at + 1] in _DOSE:
            yield words[:at]  # the medicine
            yield words[: at + 2]  # with its dose, without its form


def _phrases(texts: Iterable[str], *, terms: bool) -> dict[Words, str]:
    """Every phrase that repeats one of the texts, and how much it says by itself.

    "typed" is what only a record holds so, "term" a condition of several words, "word" all else.
    """
    found: dict[Words, str] = {}
    for text in texts:
        for words in _variants(text):
            if len("".join(words)) < 2 or _EMPTY.issuperset(words):  # noqa: PLR2004  # a letter
                continue
            for at in range(max(1, len(words) - _LONGEST_PHRASE + 1)):
                part = words[at : at + _LONGEST_PHRASE]
                named = terms and sum(word.isalpha() for word in part) > 1
                found[part] = "typed" if len(part) >= _TYPED_ONLY else "term" if named else "word"
    return found


@dataclass
class _Reading:
    """All that the record measured with one value."""

    names: set[Words] = field(default_factory=set)
    units: set[str] = field(default_factory=set)


_NAMES: Mapping[str, str] = {
    "systolic": "blood pressure|bp|sbp|pressure|systolic",
    "diastolic": "blood pressure|bp|dbp|pressure|diastolic",
    "heartRate": "heart rate|pulse|hr|pulse rate",
    "temperature": "temp|fever|temperature",
    "respiratoryRate": "respiratory rate|rr|breathing rate|respirations",
    "oxygenSaturation": "oxygen saturation|saturation|spo2|sao2|sats|o2 sat",
    "troponin": "troponin|troponin i|troponin t|ctni|ctnt|hs ctn",
    "bnp": "bnp|natriuretic peptide",
    "ntProBnp": "nt probnp|probnp|nt pro bnp|natriuretic peptide",
    "creatinine": "creatinine|creat|scr",
}
_UNITS: Mapping[str, str] = {
    "systolic": "mmhg",
    "diastolic": "mmhg",
    "heartRate": "bpm|/min|beats|beats/min|beats/minute|/minute",
    "temperature": "°c|celsius|degrees|c",
    "respiratoryRate": "/min|breaths|breaths/min|/minute",
    "troponin": "ng/ml|ng/l|µg/l|μg/l|ug/l",
    "bnp": "pg/ml|ng/l",
    "ntProBnp": "pg/ml|ng/l",
    "creatinine": "mg/dl|µmol/l|μmol/l|umol/l",
}


def _name_words(key: str) -> Words:
    return _words(re.sub(r"(?<=[a-z\d])(?=[A-Z])|_", " ", key))


def _quoted_as(value: float) -> set[float]:
    """The numbers by which a value is quoted: exact, rounded, and cut off."""
    shown = {float(value)}
    if value >= 10:  # noqa: PLR2004  # two digits are left
        shown |= {float(round(value)), float(math.floor(value))}
    for digits in (1, 2, 3):
        rounded = round(value, digits)
        if abs(rounded) * 10**digits >= 10:  # noqa: PLR2004  # the same
            shown.add(rounded)
    return shown


class Echo:
    """Recognises a patient's record in sentences, in time that grows with their length alone.

    Args:
        record: What was sent of the patient, by the documented names.
        asked: What the model itself wrote; it may read that again.
    """

    def __init__(self, record: Mapping[str, Any], asked: Iterable[str] = ()) -> None:
        sex = str(record.get("sex", ""))
        self._sex = _words(sex)
        terms = [*record.get("medicalHistory", ()), *record.get("riskFactors", ())]
        terms += [] if sex.casefold() in _SEXES else [sex]
        medicines = _phrases(record.get("currentMedications", ()), terms=False)
        self._phrases = _phrases(terms, terms=True) | medicines
        self._lengths = sorted({len(words) for words in self._phrases})
        age = record.get("age")
        self._ages = set() if age is None else {float(age), *map(float, _whole(age))}
        self._months = set() if age is None or age >= 3 else set(_whole(age * 12))  # noqa: PLR2004
        self._readings: dict[float, _Reading] = {}
        self._rare: set[float] = set()
        readings = {**record.get("vitalSigns", {}), **record.get("labResults", {})}
        for key, value in readings.items():
            self._add(key, value)
        if age is not None and _is_rare(age):
            self._rare.add(float(age))
        self._pairs = _pairs(readings)
        for text in asked:
            for sentence in sentences(text):
                self._forget(sentence)

    def _add(self, key: str, value: float) -> None:
        names = {*map(_words, _NAMES.get(key, "").split("|")), _words(key), _name_words(key)}
        for shown in _quoted_as(value) if value else ():
            held = self._readings.setdefault(shown, _Reading())
            held.names |= names - {()}
            held.units |= {unit for unit in _UNITS.get(key, "").split("|") if unit}
        if _is_rare(value):
            self._rare.add(float(value))

    def _forget(self, sentence: str) -> None:
        """What the model wrote itself is not new to it."""
        tokens = _tokens(sentence)
        for at in range(len(tokens)):
            for words in self._parts(tokens, at):
                self._phrases.pop(words, None)
        for token, value in _numbers(sentence, tokens):
            if self._is_age(sentence, tokens[token], value):
                self._ages, self._months = set(), set()
            if value in self._readings and self._is_reading(sentence, tokens, token, value):
                del self._readings[value]
            self._rare.discard(value)

    def __call__(self, sentence: str, lead: str = "") -> bool:
        """Whether a sentence repeats the record. `lead` is the line that its list stands under."""
        tokens = _tokens(sentence)
        return self._has_text(sentence, tokens, lead) or any(
            value in self._rare
            or self._is_age(sentence, tokens[at], value)
            or (value in self._readings and self._is_reading(sentence, tokens, at, value))
            for at, value in _numbers(sentence, tokens)
        )

    # -- texts ---------------------------------------------------------------------------------

    def _parts(self, tokens: list[_Token], at: int) -> list[Words]:
        """The phrases of the record that begin at a token."""
        found = []
        for length in self._lengths:
            words = tuple(token.word for token in tokens[at : at + length])
            if len(words) == length and words in self._phrases:
                found.append(words)
        return found

    def _has_text(self, sentence: str, tokens: list[_Token], lead: str) -> bool:
        for at, token in enumerate(tokens):
            if (
                self._sex
                and token.word == self._sex[0]
                and SEX_LABEL.search(sentence[max(0, token.start - 20) : token.start])
            ):
                return True
            for words in self._parts(tokens, at):
                before = f"{lead} {sentence[max(0, token.start - _BEFORE) : token.start]}"
                end = tokens[at + len(words) - 1].end
                before, after = before[-_BEFORE:], sentence[end : end + _AFTER]
                if is_tied(before, after):
                    return True
                kind = self._phrases[words]
                if kind == "term" and is_remark(before, after):
                    return True
                if kind == "typed" and not GENERAL.search(before) and not ADVISED.search(before):
                    return True
        return False

    # -- numbers -------------------------------------------------------------------------------

    def _is_age(self, sentence: str, token: _Token, value: float) -> bool:
        if value not in self._ages and value not in self._months:
            return False
        before, after = _around(sentence, token)
        if value in self._months and MONTHS_OLD.match(after):
            return not LIMIT_BEFORE.search(before)
        if value not in self._ages or LIMIT_AFTER.match(after):
            return False
        if AGED.search(before[-30:]):
            return not AGE_LIMIT.search(before)
        if NO_UNIT.match(after) and (
            WHO_IS.search(before) or SOMEBODY.search(before[-15:]) or SOMEBODY.search(after[:15])
        ):
            return not LIMIT_BEFORE.search(before)
        if YEARS_OLD.match(after):
            return not LIMIT_BEFORE.search(before)
        if not YEARS.match(after) or DURATION.search(before):
            return False
        return bool(PERSON.search(before[-25:]) or PERSON.search(after[:30]))

    def _is_reading(self, sentence: str, tokens: list[_Token], at: int, value: float) -> bool:
        before, after = _around(sentence, tokens[at])
        if self._is_pair(before, after, value):
            return True
        held, unit = self._readings[value], _unit(after)
        own = unit in held.units
        named = _named(tokens[max(0, at - (10 if own else 6)) : at], held.names)
        named = named or (own and _named(tokens[at + 1 : at + 7], held.names))
        concentration = unit.partition("/")[2] in _VOLUMES
        if not own and not concentration and unit.partition("/")[0] in _OTHER_UNITS:
            return False
        if not named and not own:
            return False
        before = _OTHER_HALF.sub("", before)
        if LIMIT_BEFORE.search(before) or LIMIT_AFTER.match(after):
            return False
        tied = bool(OF_PATIENT.search(before) or OF_PATIENT.search(after[:25]))
        return (named or tied or not _is_round(value)) and (tied or not IF.search(before))

    def _is_pair(self, before: str, after: str, value: float) -> bool:
        """Whether a number is the first of a blood pressure as 150/95."""
        low = re.match(r"\s?/\s?(\d{2,3})\b", after)
        if not low or (value, float(low[1])) not in self._pairs:
            return False
        return not LIMIT_BEFORE.search(before)


def _whole(value: float) -> set[int]:
    return {round(value), math.floor(value)} - {0}


def _pairs(readings: Mapping[str, float]) -> set[tuple[float, float]]:
    high, low = readings.get("systolic"), readings.get("diastolic")
    if high is None or low is None:
        return set()
    return {(one, other) for one in _quoted_as(high) for other in _quoted_as(low)}


def _is_rare(value: float) -> bool:
    """Whether a number has so many digits that guidance does not hold it by chance."""
    digits = f"{value:.15g}".replace(".", "").strip("-0")
    return len(digits) >= (5 if value == int(value) else 4)


def _is_round(value: float) -> bool:
    return value == int(value) and (value % 5 == 0 or value < _BODY)


_BODY = 43  # degrees Celsius, and whatever else is small and whole


def _numbers(sentence: str, tokens: list[_Token]) -> Iterator[tuple[int, float]]:
    """The numbers of a sentence with their places; "9,418" may be two of them."""
    for at, token in enumerate(tokens):
        if not token.word[0].isdigit():
            continue
        if _PART_OF.search(sentence[max(0, token.start - 3) : token.start]):
            continue
        for value in dict.fromkeys(_values(token.word)):
            yield at, value


_OTHER_HALF = re.compile(r"\d{2,3}\s?/\s?$")  # of a blood pressure
_PART_OF = re.compile(r"[A-Za-z_]$|\d\s?:$")  # B12, 1:1000


def _values(text: str) -> Iterator[float]:
    parts = re.split(r"[.,]", text)
    if len(text) > 30:  # noqa: PLR2004  # no measurement
        return
    if len(parts) == 1:
        yield float(text)
        return
    yield float("".join(parts[:-1]) + "." + parts[-1])
    if all(len(part) == 3 for part in parts[1:]):  # noqa: PLR2004  # thousands
        yield float("".join(parts))


_BEFORE, _AFTER = 90, 60


def _around(sentence: str, token: _Token) -> tuple[str, str]:
    return (
        sentence[max(0, token.start - _BEFORE) : token.start],
        sentence[token.end : token.end + _AFTER],
    )


def _named(tokens: list[_Token], names: set[Words]) -> bool:
    words = tuple(token.word for token in tokens)
    return any(
        words[at : at + length] in names for at in range(len(words)) for length in (1, 2, 3, 4)
    )


_UNIT = re.compile(
    r"\s?(?:%|mm\s?\[?hg\]?|°\s?[cf]\b|[^\W\d_]+(?:\s?/\s?[^\W\d_]+)*|/\s?[^\W\d_]+)", re.IGNORECASE
)
_VOLUMES = frozenset({"l", "dl", "ml", "µl", "μl", "ul"})
_OTHER_UNITS = frozenset(
    """
    mg g mcg µg μg ug ng kg ml l iu unit units u tablet tablets puff puffs dose doses drop drops
    min mins minute minutes h hr hrs hour hours d day days week weeks month months year years s
    sec second seconds time times x cm mm m point points joule joules j fr french gauge patients
    people cases lead leads step steps mmol mol meq
    """.split()  # noqa: SIM905  # a list of quoted words reads worse
)


def _unit(after: str) -> str:
    found = _UNIT.match(after)
    return "".join(found[0].split()).casefold().replace("[", "").replace("]", "") if found else ""
