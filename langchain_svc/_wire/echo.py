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

from .sentences import sentences

WITHHELD = (
    "[a sentence that repeats the patient's record was withheld; the program's artifact has it]"
)
ALL_WITHHELD = "[the answer repeats the patient's record and was withheld; the program's artifact has it]"


def without_echo(text: str, repeats: Callable[[str, str], bool]) -> str:
    """The text with a note in place of each sentence that repeats the record.

    Where none does, it is the same text. Sentences withheld in a row leave one note a line.
    """
    shown: list[str] = []
    lead = ""  # what a list stands under
    begins = True  # whether a piece begins a line
    for piece in sentences(text):
        body = piece.rstrip()
        mark = _ITEM.match(body) if begins else None
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
            lead = body
    return "".join(shown)


_ITEM = re.compile(r"\s*(?:[-*•–]|\d{1,2}[.)])\s+")


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


def _phrases(texts: Iterable[str]) -> dict[Words, bool]:
    """Every phrase that repeats one of the texts, and whether it does so untied to the patient."""
    found: dict[Words, bool] = {}
    for text in texts:
        for words in _variants(text):
            if len("".join(words)) < 2 or _EMPTY.issuperset(words):  # noqa: PLR2004  # a letter
                continue
            for at in range(max(1, len(words) - _LONGEST_PHRASE + 1)):
                part = words[at : at + _LONGEST_PHRASE]
                found[part] = len(part) >= _TYPED_ONLY
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
    """The numbers by which a value is quoted: as it is, rounded, and cut off."""
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
        texts = [
            text
            for name in ("medicalHistory", "currentMedications", "riskFactors")
            for text in record.get(name, ())
        ]
        sex = str(record.get("sex", ""))
        self._sex = _words(sex)
        if sex.casefold() not in _SEXES:
            texts.append(sex)
        self._phrases = _phrases(texts)
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
        names = {_words(name) for name in _NAMES.get(key, "").split("|")} | {_name_words(key)}
        for shown in _quoted_as(value) if value else ():
            held = self._readings.setdefault(shown, _Reading())
            held.names |= names - {()}
            held.units |= {unit for unit in _UNITS.get(key, "").split("|") if unit}
        if _is_rare(value):
            self._rare.add(float(value))

    def _forget(self, sentence: str) -> None:
        """What the model wrote itself is no news to it."""
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
            if self._sex and token.word == self._sex[0] and _SEX_LABEL.search(sentence[: token.start][-20:]):
                return True
            for words in self._parts(tokens, at):
                before = f"{lead} {sentence[max(0, token.start - _BEFORE) : token.start]}"
                end = tokens[at + len(words) - 1].end
                if _is_tied(before[-_BEFORE:], sentence[end : end + _AFTER]):
                    return True
                if self._phrases[words] and not _GENERAL.search(before) and not _ADVISED.search(before):
                    return True
        return False

    # -- numbers -------------------------------------------------------------------------------

    def _is_age(self, sentence: str, token: _Token, value: float) -> bool:
        if value not in self._ages and value not in self._months:
            return False
        before, after = _around(sentence, token)
        if value in self._months and _MONTHS_OLD.match(after):
            return not _LIMIT_BEFORE.search(before)
        if value not in self._ages or _LIMIT_AFTER.match(after):
            return False
        if _AGED.search(before):
            return not _AGE_LIMIT.search(before)
        if _WHO_IS.search(before) and _NO_UNIT.match(after):
            return True
        if _YEARS_OLD.match(after):
            return not _LIMIT_BEFORE.search(before)
        if not _YEARS.match(after) or _DURATION.search(before):
            return False
        return bool(_PERSON.search(before[-25:]) or _PERSON.search(after[:30]))

    def _is_reading(self, sentence: str, tokens: list[_Token], at: int, value: float) -> bool:
        held = self._readings[value]
        before, after = _around(sentence, tokens[at])
        if self._is_pair(before, after, value):
            return True
        before = _OTHER_HALF.sub("", before)
        if _LIMIT_BEFORE.search(before) or _LIMIT_AFTER.match(after):
            return False
        tied = bool(_OF_PATIENT.search(before))
        if not tied and _IF.search(before):
            return False
        unit = _unit(after)
        if unit in held.units:
            near = _named(tokens[max(0, at - 10) : at], held.names)
            near = near or _named(tokens[at + 1 : at + 7], held.names)
            return near or tied or not _is_round(value)
        concentration = "/" in unit and unit.partition("/")[2] in _VOLUMES
        if not concentration and unit.partition("/")[0] in _OTHER_UNITS:
            return False
        return _named(tokens[max(0, at - 6) : at], held.names)

    def _is_pair(self, before: str, after: str, value: float) -> bool:
        """Whether a number is the first of a blood pressure as 150/95."""
        low = re.match(r"\s?/\s?(\d{2,3})\b", after)
        if not low or (value, float(low[1])) not in self._pairs:
            return False
        return not _LIMIT_BEFORE.search(before)


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
        around = sentence[max(0, token.start - 1) : token.start]
        if around.isalpha() or around == "_" or _RATIO.search(sentence[: token.start][-3:]):
            continue  # B12, 1:1000
        for value in dict.fromkeys(_values(token.word)):
            yield at, value


_OTHER_HALF = re.compile(r"\d{2,3}\s?/\s?$")  # of a blood pressure
_RATIO = re.compile(r"\d\s?:$")


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


# -- the words around ------------------------------------------------------------------------------


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_FILLERS = (
    r"(?:[\s,=:]+(?:of|a|an|the|or|equal|to|is|are|about|approximately|around|rate|pressure|systolic"
    r"|diastolic|value|level|mean|arterial|resting|age|ages|aged)){0,5}[\s=:]*$"
)
_LIMIT_BEFORE = _any(
    r"[<>≤≥]\s?=?\s?$",
    r"\b(?:under|over|below|above|than|least|most|exceed(?:s|ed|ing)?|until|reach(?:es|ing)?"
    r"|targets?|targeting|goals?|aim|aiming|keep|maintain(?:ed|ing)?|thresholds?|limits?|cut-?off"
    r"|maximum|max|minimum|min|between|from|within|every|normal|normally|falls?|drops?|rises?"
    r"|up|mean|map|cvp|peep|children|infants|adults|per|each|after|before|by)\b" + _FILLERS,
    r"\b(?:at|or)\s+(?:an?\s+)?(?:(?:systolic|diastolic|blood|heart|pressure|rate|temperature|sbp|dbp|bp|hr"
    r"|spo2|saturation|of)[\s()]+)+$",
    r"\d\s?(?:mmhg|bpm|%|°c|/min|years?)?\s?(?:-|–|—|\bto\b|\bbis\b|\band\b)\s?$",
)
_LIMIT_AFTER = _any(
    r"\+",
    r"\s?(?:[^\W\d_%°]+(?:/[^\W\d_]+)?|%|°\s?[cf]|/\s?min)?(?:\s+(?:of age|old))?\s*"
    r"(?:\bor\b|\band\b)\s+(?:more|less|above|below|over|under|higher|lower|greater|older|younger|up)\b",
    r"\s?(?:[^\W\d_%°]+|%|°\s?[cf]|/\s?min)?\s?(?:-|–|—|\bto\b|\bbis\b)\s?\d",
    r"\s?,\s?\d",  # one of several
)
_AGED = _any(
    r"\b(?:aged|age[sd]?|alter|edad|âge|età|idade|leeftijd|wiek|возраст)\s*(?:of|is|was|:|=)?\s*$",
    r"(?:年龄|年齢|나이)[:：]?\s*$",
)
_WHO_IS = _any(r"\b(?:you(?:['’]re| are)|(?:s?he|patient) is)\s*$")
_NO_UNIT = _any(r"\s*(?:[,.;:)]|$)|\s+(?:and|with|now)\b")
_AGE_LIMIT = _any(
    r"\b(?:from|after|before|by|until|at|over|under|above|below|since|to|than|children|patients"
    r"|adults|people|women|men|infants|those|persons|individuals|population|anyone|every)\s+(?:the\s+)?"
    r"age[sd]?\s*(?:of)?\s*$"
)
_YEARS_OLD = _any(
    r"[\s-]*(?:years?|yrs?)[\s-]*old\b",
    r"[\s-]*years?\s+of\s+age\b",
    r"\s?y/?o\b",
    r"-?j(?:ä|ae)hrig|\s*jahre\s+alt\b|-?årig|-?jarige?\b|-?letni",
    r"\s?(?:岁|歳|세|살)",
    r"\s*(?:ans|años|anni|anos|лет|года?|yaşında)\b",
    r"\s?y?/?[MFWmfw]\b(?!\s*\.)(?=[\s,;)]|$)",
)
_MONTHS_OLD = _any(r"[\s-]*months?[\s-]*old\b", r"[\s-]*months?\s+of\s+age\b")
_YEARS = _any(r"\s*(?:years?|yrs?|jahre|y)\b(?!\s+(?:ago|later|earlier|history|of))")
_DURATION = _any(
    r"\b(?:for|over|every|last|past|within|in|than|after|before|during|since|least|under|up to)"
    r"(?:\s+(?:the|at|about|next|last))*\s*$",
    r"\d\s?(?:-|–|to)\s?$",
)
_PERSON = _any(r"\b(?:female|male|woman|man|lady|gentleman|patient|sex|boy|girl)\b")
_SEX_LABEL = _any(r"\b(?:sex|gender)\W{1,3}(?:(?:is|was)\s+)?$")
_IF = _any(r"\b(?:if|when|unless|once|whenever|should the)\b")
_OF_PATIENT = _any(
    r"\b(?:your|his|her|(?:this|the) patient(?:'s|’s)?|patient'?s|measured|recorded|reported"
    r"|observed|presenting|current(?:ly)?|today|admission|given (?:the|a|your))\b"
)

_GAP = r"(?:[\s,:(\"“]+[\w.'’-]+){0,%d}?[\s,:(\"“]*$"  # no character is in both classes
_TIED_CLOSELY = _any(
    r"(?:\b(?:your|his|her)|patient['’]s)\b" + _GAP % 2,
    r"\b(?:this|the) patient (?:has|had|is on|is taking|takes|with|suffers from|on)\b" + _GAP % 4,
    r"\byou (?:have|had|take|are on|are taking|suffer from)\b" + _GAP % 4,
)
_TIED = _any(
    r"\b(?:history|hx|pmhx?|h/o|known|diagnosed|diagnosis of|record of|background|comorbid\w*"
    r"|co-morbid\w*|underlying|pre-?existing|existing|documented|recorded|reported|noted"
    r"|(?:medications?|medicines|medicamentos|drugs|conditions|problems?|factors?)"
    r"(?:\s+(?:list|present|include|are|is))?\s*(?=[:(])|(?:current|regular|home|existing)\s+med\w+|current(?:ly)?|already|taking|takes"
    r"|prescribed|maintained on|uses|using|patient (?:has|had|with|on)|given (?:the|this|that)"
    r"|considering|in view of|because of|in light of|lives with|living with|suffers from|suffering from"
    r"|established|long-?standing|regular|home|vorerkrankung\w*|nimmt|bekannte[rsmn]?"
    r"|antécédents?|antecedentes?|anamnese|toma|prend)\b" + _GAP % 6,
    r"\b(?:is|was|are) on\b" + _GAP % 3,
    r"^\s*(?:[-*•]\s*)?(?:given|with|on|despite)\b" + _GAP % 4,
    r"year-old\b.*$",
)
_TIED_AFTER = _any(
    r"[\s,)\]\"']*(?:is|was|are|were|has been|have been)?\s*(?:also\s+|already\s+|currently\s+)?"
    r"(?:being\s+)?(?:noted|documented|recorded|mentioned|stated|listed|on record|on file|taken\b"
    r"|on (?:the|your|a) list|diagnosed|prescribed|\(?known\b(?!\s+(?:to|as|for)))",
    r"(?:\s+[\w-]+){0,3}\s+(?:in|of) (?:this|the|your|his|her) (?:patient|record|history|case|chart)\b",
)
_GENERAL = _any(
    r"\b(?:patients|people|persons|adults|children|infants|individuals|those|women|men|anyone"
    r"|everyone|such as|including|e\.g|like|if|unless|whether|when|any|ask|asking|exclude|rule out|risk of|suspected"
    r"|suspect|contraindicat\w+|cases of|every|each|all)\b"
)
_ADVISED = _any(
    r"\b(?:give|start|use|add|prescribe|administer|offer|consider|load with|switch to|then|or|plus"
    r"|initiate|begin|try|recommend(?:ed)?|with|in|for|against)\s+(?:a |an |oral |iv )?$"
)


def _is_tied(before: str, after: str) -> bool:
    """Whether the words around a text say that it is the patient's."""
    if _TIED_CLOSELY.search(before):
        return not _IF.search(before)
    if _TIED_AFTER.match(after):
        return not _GENERAL.search(before)
    return bool(_TIED.search(before)) and not _GENERAL.search(before)
