"""What Observations say in words: tobacco, pregnancy and breastfeeding, by LOINC.

The newest answer on each topic counts, however old it is; a pregnancy and breastfeeding only as
long as they can last. An answer whose code is not known here is given in its own words. Dates do
not go into the record: ages of answers and days do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from .concepts import Wording, codes_of, nothing_said, typed_words, words_of
from .fields import HISTORY, RISKS
from .times import as_of, day, days_before, time_of

if TYPE_CHECKING:
    from fhir.resources.R4B.observation import Observation

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
NOT_FINAL = "its status is not final, amended or corrected"
_TERM = 294  # days, the longest that a pregnancy lasts
_OVERDUE = 21  # days after the estimated date of delivery
_TWO_YEARS = 730  # days


def _answer(
    observation: Observation, words_by_code: Mapping[str, str], label: str
) -> Wording | None:
    """The words for a known code of an answer; for another its own words behind a label."""
    value = observation.valueCodeableConcept
    for code in codes_of(value):
        if code in words_by_code:
            return Wording(words_by_code[code])
    words = words_of(value)
    typed = typed_words(observation.valueString)
    if not words and typed:
        words = (typed,)
    if not words:
        return None
    text = "; ".join(part.text for part in words)
    return Wording(f"{label}: {text}", any(part.typed for part in words))


def _smoking(observation: Observation, _: date) -> Wording | None:
    return _answer(observation, _SMOKERS, "tobacco smoking status")


def _pregnancy(observation: Observation, today: date) -> Wording | None:
    words = _answer(observation, _PREGNANCIES, "pregnancy status")
    return _dated(words, observation, today)


def _breastfeeding(observation: Observation, today: date) -> Wording | None:
    if observation.valueBoolean is None:
        words = _answer(observation, _BREASTFEEDING, "breastfeeding status")
    elif observation.valueBoolean:
        words = Wording("breastfeeding")
    else:
        words = Wording("not breastfeeding")
    return _dated(words, observation, today)


def _dated(
    words: Wording | None, observation: Observation, today: date
) -> Wording | None:
    if words is None:
        return None
    at = time_of(observation)
    age = as_of(days_before(at, today)) if at else ""
    return Wording(f"observation: {words.text}{age}", words.typed)


def _due_date(observation: Observation, today: date) -> Wording | None:
    due = observation.valueDateTime
    if not due:
        return None
    days = (day(due) - today).days
    if not -_OVERDUE <= days <= _TERM:
        return None
    distance = f"in {days}" if days >= 0 else f"passed by {-days}"
    return Wording(f"observation: estimated date of delivery {distance} days")


@dataclass(frozen=True)
class Topic:
    """What Observations of some codes answer in words: where it goes, and how it is read.

    `lasts` is for how many days an answer can be true; None where that has no end.
    """

    path: str
    field: str
    codes: str
    read_words: Callable[[Observation, date], Wording | None]
    lasts: int | None = None

    def read_answer(
        self, observation: Observation, today: date
    ) -> tuple[Wording | None, str]:
        """The answer in words, or None and the reason."""
        if observation.status not in FINAL:
            return None, NOT_FINAL
        if nothing := nothing_said(observation.valueCodeableConcept):
            return None, nothing
        if not self._is_current(observation, today):
            return None, f"it is not known to be of the last {self.lasts} days"
        words = self.read_words(observation, today)
        return words, "" if words else "its answer is not one that is read"

    def _is_current(self, observation: Observation, today: date) -> bool:
        if self.lasts is None:
            return True
        at = time_of(observation)
        return at is not None and 0 <= days_before(at, today) <= self.lasts


PREGNANCY = Topic("pregnancy", HISTORY, "82810-3", _pregnancy, _TERM)
DUE_DATE = Topic("due date", HISTORY, "11778-8 11779-6 11780-4", _due_date, _TERM)
TOPICS = (
    PREGNANCY,
    DUE_DATE,
    Topic("breastfeeding", HISTORY, "63895-7", _breastfeeding, _TWO_YEARS),
    Topic("smoking", RISKS, "72166-2", _smoking),
)
TOPICS_BY_CODE: Mapping[str, Topic] = {
    code: topic for topic in TOPICS for code in topic.codes.split()
}
