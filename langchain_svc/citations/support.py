"""Whether what a document says there supports a statement, by rules and without a model. Pure.

A quote that stands in a document may still be of another sentence, begin behind a "not", or have
another number than the statement. So each place is widened to its sentence, and the statement is
compared with it: its words, its numbers with units and comparators, its negations and opposites.
What finds nothing to doubt is no proof; each doubt is a reason that a reader can check.

Words are compared in every script. Negations, opposites and number words are known of the languages
of the tables below; of others, numbers and words alone speak.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .passages import Place, Word, words_of

# -- support words ---------------------------------------------------------------------------------
# The words that decide whether a source supports a statement: English, German, French, Spanish.

# What every text has, whatever it is about.
STOP_WORDS = frozenset(
    """
    a about also an and are as at be been being but by can could did do does for from had has
    have he her his how however i if in into is it its may might of on or our she should so such
    than that the their them then there these they this those to us was we were what when where
    which while who will with would you your
    aber als am auch auf aus bei bis das dass dem den der des die dies diese dieser dieses ein
    eine einem einen einer es für hat haben ich im ist man mit nach oder sein sich sie sind so
    über um und uns unter vom von war waren wie wird zu zum zur
    au aux avec ce ces cette comme dans de des du elle en est et il ils la le les leur mais ou
    par pour qu que qui sa se ses son sont sur un une
    al como con del el ella ellos en entre era es esta este fue las los más para pero por se ser
    su sus una y
    """.split()
)
NEGATORS = frozenset(
    """
    cannot fail failed fails hardly lack lacked lacking lacks neither never no nobody none not
    nothing nowhere rarely unable without
    kein keine keinem keinen keiner nicht nichts nie niemals ohne weder
    aucun aucune jamais ne ni pas sans
    jamás nadie ningún ninguna ninguno nunca sin
    без не нет ни
    """.split()
)
NOT_ONLY = frozenset(
    {"just", "nur", "only", "seulement", "solo"}
)  # "not only" denies nothing
OPPOSITES = """
    above/below absent/present after/before always/never avoid/use best/worst better/worse
    decline/rise decrease/increase decreased/increased down/up earlier/later early/late
    exclude/include fall/rise fewer/more first/last greater/less greater/lower greater/smaller
    high/low higher/lower highest/lowest improve/worsen improved/worsened larger/smaller
    least/most less/more long/short longer/shorter lower/raise many/few maximum/minimum
    men/women negative/positive postoperative/preoperative reduce/increase reduced/increased
    safe/unsafe start/stop strong/weak stronger/weaker
    höher/niedriger mehr/weniger nach/vor oberhalb/unterhalb besser/schlechter länger/kürzer
    größer/kleiner steigt/sinkt
    plus/moins avant/après
    más/menos antes/después mayor/menor
    """
_COMPARATORS = {
    "<": (
        "below|under|less than|fewer than|lower than|shorter than|younger than|"
        "weniger als|unter|moins de|menos de"
    ),
    ">": (
        "above|over|more than|greater than|higher than|exceeding|longer than|"
        "older than|mehr als|über|plus de|más de"
    ),
    "≤": (
        "at most|up to|no more than|not more than|höchstens|bis zu|au plus|"
        "como máximo|hasta"
    ),
    "≥": ("at least|no less than|not less than|mindestens|au moins|al menos"),
    "~": (
        "about|approximately|around|nearly|roughly|circa|ca|etwa|rund|"
        "ungefähr|environ|aproximadamente|unos"
    ),
}
COMPARATORS = {
    tuple(phrase.split()): sign
    for sign, phrases in _COMPARATORS.items()
    for phrase in phrases.split("|")
}
_UNITS = (
    "% percent pct prozent",
    "‰ permille",
    "mg milligram milligrams",
    "g gram grams gramm",
    "kg kilogram kilograms",
    "μg mcg microgram micrograms",
    "ng",
    "ml milliliter milliliters",
    "l liter liters litre litres",
    "dl",
    "mm",
    "cm",
    "m meter meters metre metres",
    "km",
    "nm",
    "mmol",
    "mol",
    "iu",
    "kcal",
    "kj",
    "mmhg",
    "hz",
    "°c",
    "°f",
    "h hr hrs hour hours stunde stunden",
    "min minute minutes minuten",
    "s sec second seconds sekunde sekunden",
    "d day days dayold tag tage tagen jours días",
    "week weeks woche wochen",
    "month months monthold monat monate monaten mois meses",
    "year years yearold yr yrs jahr jahre jahren ans años",
)
# Each way to write a unit, with the one in which it is compared.
UNITS = {name: names.split()[0] for names in _UNITS for name in names.split()}
NUMBER_WORDS = {
    word: str(number)
    for words in (
        "two three four five six seven eight nine ten eleven twelve",
        "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    )
    for number, word in enumerate(words.split(), 2)
}


# -- support ---------------------------------------------------------------------------------------

_LEAST_LETTERS = 6  # in the content words of a quote, if it has no number
_LETTERS_OF_A_SIGN = 3  # as much does a sign of Chinese say
_LEAST_SHARE = 0.35  # of the statement's content words that must be there
_LEAST_WORDS = 2  # of them, if the statement has twice as many
_SCOPE = 3  # content words behind a negator that it may deny
_STEM = 6  # letters by which forms of a word are known
_LONGEST_COMPARATOR = max(map(len, COMPARATORS))
_DENYING_PREFIXES = ("un", "non", "in", "im", "ir", "dis")
_SHORTEST_DENIED = 4  # letters behind such a prefix

_ENDING = re.compile(r"(?:ies|ing|est|ed|es|er|en|ly|s|e|y|n)\Z")
_NUMBER = re.compile(r"([<>≤≥~±≠]?)([-+]?)(.*?)([%‰]?)", re.DOTALL)
_RANGE = re.compile(r"(?<=\d)-(?=\d)")
_NOT_SAID = re.compile(r"^\s*(?:[-*+•#>]+|\d{1,3}[.)])\s+|\[\d{1,3}\]", re.MULTILINE)


def _stem(word: str) -> str:
    return _ENDING.sub("", word)[:_STEM] if len(word) > 3 else word


_OPPOSITE_STEMS = [
    (_stem(first), _stem(second))
    for pair in OPPOSITES.split()
    for one, other in [pair.split("/")]
    for first, second in ((one, other), (other, one))
]


class _Number(NamedTuple):
    """A number with what it is of: `unit` is one of the table, `noun` the word behind another."""

    comparator: str
    value: str
    unit: str
    noun: str

    def __str__(self) -> str:
        return f"{self.comparator}{self.value} {self.unit or self.noun}".strip()


@dataclass
class _Said:
    """What a text says, as far as it is compared."""

    words: Counter[str] = field(default_factory=Counter)  # the stems of all words
    forms: set[str] = field(default_factory=set)  # all words as they are
    names: set[str] = field(default_factory=set)  # of letters and digits, as B12
    content: list[str] = field(default_factory=list)  # stems, without the small words
    denied: Counter[str] = field(
        default_factory=Counter
    )  # stems within reach of a "not"
    first_denied: list[str] = field(
        default_factory=list
    )  # the nearest behind each "not"
    numbers: list[_Number] = field(default_factory=list)
    negators: int = 0


def doubt_of(statement: str, places: Sequence[Place]) -> str | None:
    """Why what stands at some places may not support a statement, in a few plain words.

    None: the rules found nothing to doubt.
    """
    if not any(map(_says_enough, places)):
        return "too little is quoted"
    said = _read(_NOT_SAID.sub(" ", statement))
    there = _read(" \n\n ".join(dict.fromkeys(place.sentences for place in places)))
    return next(_doubts(said, there), None)


def _says_enough(place: Place) -> bool:
    """Whether a quote has words of its own, or a number."""
    words = words_of(" ".join(part.text for part in place.parts)).words
    letters = sum(
        len(word.key) if len(word.key) > 1 else _LETTERS_OF_A_SIGN
        for word in words
        if _is_content(word.key)
    )
    return letters >= _LEAST_LETTERS or any(word.is_number for word in words)


def _doubts(said: _Said, there: _Said) -> Iterator[str]:
    for number in said.numbers:
        if not any(_is_same(number, other, said, there) for other in there.numbers):
            yield f"no number {number} there"
    for name in sorted(said.names - there.names):
        yield f"no {name} there"
    yield from _denials(said, there)
    yield from _opposites(said, there)
    if not said.content and not said.numbers:
        yield "it says too little to be compared"
    content = set(said.content)
    common = len(content & set(there.content))
    if common < max(min(_LEAST_WORDS, len(content) / 2), _LEAST_SHARE * len(content)):
        yield "few of its words are there"


def _is_same(number: _Number, other: _Number, said: _Said, there: _Said) -> bool:
    """Whether a number of a statement is one of the document."""
    if number.value != other.value or not _compare_alike(number, other):
        return False
    # Of "12 and 15 mg", the first has its unit from the second.
    if number.unit and other.unit:
        return number.unit == other.unit
    if number.unit:
        return any(number.unit == known.unit for known in there.numbers)
    if other.unit:
        return any(other.unit == known.unit for known in said.numbers)
    return not number.noun or not other.noun or _stem(number.noun) in there.words


def _compare_alike(number: _Number, other: _Number) -> bool:
    """Whether both are exact, or limits of one kind; an exact number is also about the same."""
    if number.comparator == "~":
        return other.comparator in {"", "~"}
    return number.comparator == other.comparator


def _denials(said: _Said, there: _Said) -> Iterator[str]:
    """What one denies and the other does not."""
    for word in there.first_denied:
        if (
            said.words[word] - said.denied[word]
            > there.words[word] - there.denied[word]
        ):
            yield "a 'not' is missing"
    for word in said.first_denied:
        if said.denied[word] > there.denied[word] and there.words[word]:
            yield "there is no such 'not' there"
    if said.negators > there.negators:
        yield "there is no such 'not' there"


def _opposites(said: _Said, there: _Said) -> Iterator[str]:
    for word, opposite in _OPPOSITE_STEMS:
        if (
            said.words[word] > there.words[word]
            and there.words[opposite] > said.words[opposite]
        ):
            yield "it says the opposite of a word there"
    for form in said.forms - there.forms:
        for prefix in _DENYING_PREFIXES:
            base = form.removeprefix(prefix)
            is_denied = prefix + form in there.forms and len(form) >= _SHORTEST_DENIED
            denies = (
                base != form and base in there.forms and len(base) >= _SHORTEST_DENIED
            )
            if is_denied or denies:
                yield "it says the opposite of a word there"


# -- reading ----------------------------------------------------------------------------------


def _is_content(key: str) -> bool:
    """Whether a word says what a sentence is about; of single signs, those that are no kana."""
    if len(key) == 1:
        return key >= "\u0e00" and not "\u3040" <= key <= "\u30ff"
    return len(key) > 2 and key not in STOP_WORDS and key not in NEGATORS


def _read(text: str) -> _Said:
    said = _Said()
    words = words_of(text).words
    keys = [NUMBER_WORDS.get(word.key, word.key) for word in words]
    reach = 0  # how many words a negator before still denies
    for at, key in enumerate(keys):
        if _denies(keys, at):
            reach = _SCOPE
            said.negators += 1
        elif words[at].is_number or key != words[at].key:
            said.numbers += _numbers(keys, words, at)
        else:
            stem = _stem(key)
            said.forms.add(key)
            if any(map(str.isdigit, key)):
                said.names.add(key)
            said.words[stem] += 1
            if _is_content(key) and not (
                at and words[at - 1].is_number and key in UNITS
            ):
                said.content.append(stem)
                if reach:
                    said.denied[stem] += 1
                    if reach == _SCOPE:
                        said.first_denied.append(stem)
                    reach -= 1
    return said


def _denies(keys: Sequence[str], at: int) -> bool:
    key = keys[at]
    if key == "t" and at and keys[at - 1].endswith("n"):  # don't
        return True
    following = keys[at + 1] if at + 1 < len(keys) else ""
    return key in NEGATORS and following not in NOT_ONLY


def _numbers(keys: Sequence[str], words: Sequence[Word], at: int) -> Iterator[_Number]:
    """The numbers of a word, two of a range, with what stands around it."""
    match = _NUMBER.fullmatch(keys[at])
    if match is None:
        return
    comparator, sign, digits, unit = match.groups()
    comparator = comparator or _comparator_before(keys, at)
    following, after = [*keys[at + 1 : at + 3], "", ""][:2]
    if following == "°" or (following == "per" and after in ("cent", "mille")):
        following += after  # as the table of units has it
    unit = unit or UNITS.get(following, "")
    is_noun = not unit and _is_content(following) and not words[at + 1].is_number
    noun = following if is_noun else ""
    for value in _RANGE.split(digits):
        yield _Number(comparator, sign + value.replace(",", "."), unit, noun)


def _comparator_before(keys: Sequence[str], at: int) -> str:
    for length in range(min(_LONGEST_COMPARATOR, at), 0, -1):
        sign = COMPARATORS.get(tuple(keys[at - length : at]))
        if sign is not None:
            return sign
    return ""
