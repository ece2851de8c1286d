"""What Observations say in words: tobacco, pregnancy and breastfeeding, by LOINC.

The newest answer to each question counts, however old it is; a pregnancy and breastfeeding only as
long as they can last. An answer whose code is not known here is told in its own words. Dates do not
go into the record: ages of answers and weeks do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from .concepts import NOTHING, Words, codes_of, says_nothing, typed_words, words_of
from .fields import HISTORY, RISKS
from .times import as_of, day, days_before, time_of

# The answers to 72166-2 of SNOMED CT and of LOINC's own list.
_SMOKERS: Mapping[str, str] = {
    "449868002": "daily smoker", "LA18976-3": "daily smoker",
    "428041000124106": "occasional smoker", "LA18977-1": "occasional smoker",
    "428071000124103": "heavy smoker", "LA18981-3": "heavy smoker",
    "428061000124105": "light smoker", "LA18982-1": "light smoker",
    "77176002": "smoker", "LA18979-7": "smoker", "65568007": "smoker",
    "8517006": "former smoker", "LA15920-4": "former smoker",
    "266919005": "never smoked", "LA18978-9": "never smoked",
}  # fmt: skip
NOT_PREGNANT = "not pregnant"
# Those of the International Patient Summary and of LOINC.
_PREGNANCIES: Mapping[str, str] = {
    "77386006": "pregnant", "LA15173-0": "pregnant",
    "146799005": "possibly pregnant", "152231000119106": "possibly pregnant",
    "60001007": NOT_PREGNANT, "LA26683-5": NOT_PREGNANT,
}  # fmt: skip
_BREASTFEEDING = dict.fromkeys(
    ("LA29252-6", "169741004", "true", "Y", "LA33-6", "373066001"), "breastfeeding"
)
FINAL = frozenset({"final", "amended", "corrected"})
_TERM, _OVERDUE, _TWO_YEARS = 294, 21, 730  # days


def _answer(observation: Any, known: Mapping[str, str], label: str) -> Words | None:
    """The words for a known code of an answer, or behind a label its own."""
    value = observation.valueCodeableConcept
    for code in codes_of(value):
        if code in known:
            return Words(known[code])
    words = words_of(value) or tuple(
        filter(None, [typed_words(observation.valueString)])
    )
    if not words:
        return None
    text = "; ".join(part.text for part in words)
    return Words(f"{label}: {text}", any(part.typed for part in words))


def _smoking(observation: Any, _: date) -> Words | None:
    return _answer(observation, _SMOKERS, "tobacco smoking status")


def _pregnancy(observation: Any, today: date) -> Words | None:
    return _dated(
        _answer(observation, _PREGNANCIES, "pregnancy status"), observation, today
    )


def _breastfeeding(observation: Any, today: date) -> Words | None:
    words = _answer(observation, _BREASTFEEDING, "breastfeeding status")
    if observation.valueBoolean is not None:
        words = Words(
            "breastfeeding" if observation.valueBoolean else "not breastfeeding"
        )
    return _dated(words, observation, today)


def _dated(words: Words | None, observation: Any, today: date) -> Words | None:
    if words is None:
        return None
    at = time_of(observation)
    age = as_of(days_before(at, today) if at else 0)
    return Words(f"observation: {words.text}{age}", words.typed)


def _due_date(observation: Any, today: date) -> Words | None:
    due = observation.valueDateTime
    days = (day(due) - today).days if due else None
    if days is None or not -_OVERDUE <= days <= _TERM:
        return None
    distance = f"in {days}" if days >= 0 else f"passed by {-days}"
    return Words(f"observation: estimated date of delivery {distance} days")


@dataclass(frozen=True)
class Question:
    """A question, where its answer goes, how it is read, and for how many days it can be true."""

    path: str
    field: str
    codes: str
    read: Callable[[Any, date], Words | None]
    lasts: int | None = None

    def answered(self, observation: Any, today: date) -> tuple[Words | None, str]:
        """The answer in words, or why there is nothing to tell."""
        if observation.status not in FINAL:
            return None, "its status is not final, amended or corrected"
        if says_nothing(observation.valueCodeableConcept):
            return None, NOTHING
        at = time_of(observation)
        lasts = self.lasts is None or (at and 0 <= days_before(at, today) <= self.lasts)
        if not lasts:
            return None, f"it is not known to be of the last {self.lasts} days"
        return self.read(observation, today), "its answer is not one that is read"


PREGNANCY = Question("pregnancy", HISTORY, "82810-3", _pregnancy, _TERM)
DUE_DATE = Question("due date", HISTORY, "11778-8 11779-6 11780-4", _due_date, _TERM)
ALL = (
    PREGNANCY,
    DUE_DATE,
    Question("breastfeeding", HISTORY, "63895-7", _breastfeeding, _TWO_YEARS),
    Question("smoking", RISKS, "72166-2", _smoking),
)
QUESTIONS: Mapping[str, Question] = {
    code: question for question in ALL for code in question.codes.split()
}
