"""What Observations say in words: tobacco and alcohol, pregnancy and breastfeeding, by LOINC.

The newest answer to each question counts, however old it is; a pregnancy and breastfeeding only as
long as they can last. Dates do not go into the record: ages of answers and weeks do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Any

from .concepts import codes_of
from .fields import HISTORY, RISKS
from .report import Settled
from .times import as_of, day, days_before, time_of
from .units import UnitError, unit_of

# The answers to 72166-2 of SNOMED CT and of LOINC's own list.
_SMOKERS: Mapping[str, str] = {
    "449868002": "daily smoker", "LA18976-3": "daily smoker",
    "428041000124106": "occasional smoker", "LA18977-1": "occasional smoker",
    "428071000124103": "heavy smoker", "LA18981-3": "heavy smoker",
    "428061000124105": "light smoker", "LA18982-1": "light smoker",
    "77176002": "smoker", "LA18979-7": "smoker", "65568007": "smoker",
    "8517006": "former smoker", "LA15920-4": "former smoker",
}  # fmt: skip
# Those of the International Patient Summary and of LOINC.
_PREGNANCIES: Mapping[str, str] = {
    "77386006": "pregnant", "LA15173-0": "pregnant",
    "146799005": "possibly pregnant", "152231000119106": "possibly pregnant",
}  # fmt: skip
_NOT_PREGNANT = frozenset({"60001007", "LA26683-5"})
_BREASTFEEDING = dict.fromkeys(
    ("LA29252-6", "169741004", "true", "Y", "LA33-6", "373066001"), "breastfeeding"
)
DENIED = Settled("it says that there is no pregnancy")
_NOTHING_SENT = Settled("it tells nothing that is sent: no, unknown, not final, or too long ago")
FINAL = frozenset({"final", "amended", "corrected"})
_TERM, _OVERDUE, _TWO_YEARS = 294, 21, 730  # days


def _coded(observation: Any, known: Mapping[str, str]) -> str:
    """The words for the first known code of an answer; empty where there is none."""
    answers = codes_of(observation.valueCodeableConcept)
    return next((known[code] for code in answers if code in known), "")


def _number(observation: Any) -> tuple[str, str]:
    """A number above 0 and its unit; neither where there is none, or only a bound."""
    quantity = observation.valueQuantity
    if quantity is None or quantity.comparator or not quantity.value or quantity.value <= 0:
        return "", ""
    with suppress(UnitError):
        return f"{float(quantity.value):g}", unit_of(quantity)
    return "", ""


def _smoking(observation: Any, _: date) -> str:
    return _coded(observation, _SMOKERS)


def _pack_years(observation: Any, _: date) -> str:
    number, unit = _number(observation)
    # UCUM has no pack: it is a note, or the unit is said to be the year alone.
    return f"tobacco: {number} pack-years" if unit == "a" or "pack" in unit.lower() else ""


def _alcohol(observation: Any, _: date) -> str:
    number, unit = _number(observation)
    bare = re.sub(r"\{[^{}]*\}", "", unit)  # {drinks}/d and {drink}/day
    return f"alcohol: {number} drinks a day" if bare == "/d" else ""


def _pregnancy(observation: Any, today: date) -> str:
    return _dated(_coded(observation, _PREGNANCIES), observation, today)


def _breastfeeding(observation: Any, today: date) -> str:
    told = "breastfeeding" if observation.valueBoolean else _coded(observation, _BREASTFEEDING)
    return _dated(told, observation, today)


def _dated(told: str, observation: Any, today: date) -> str:
    made = time_of(observation)
    return told and f"observation: {told}{as_of(days_before(made, today) if made else 0)}"


def _due_date(observation: Any, today: date) -> str:
    due = observation.valueDateTime
    days = (day(due) - today).days if due else None
    if days is None or not -_OVERDUE <= days <= _TERM:
        return ""
    told = f"in {days}" if days >= 0 else f"passed by {-days}"
    return f"observation: estimated date of delivery {told} days"


@dataclass(frozen=True)
class Question:
    """A question, where its answer goes, how it is read, and for how many days it can be true."""

    path: str
    field: str
    codes: str
    read: Callable[[Any, date], str]
    lasts: int | None = None

    def answered(self, observation: Any, today: date) -> tuple[str, str]:
        """The answer in words, or why there is nothing to tell."""
        made = time_of(observation)
        lasts = self.lasts is None or (made and 0 <= days_before(made, today) <= self.lasts)
        if lasts and observation.status in FINAL and (text := self.read(observation, today)):
            return text, ""
        denied = _NOT_PREGNANT.intersection(codes_of(observation.valueCodeableConcept))
        return "", DENIED if denied else _NOTHING_SENT


PREGNANCY = Question("pregnancy", HISTORY, "82810-3", _pregnancy, _TERM)
DUE_DATE = Question("due date", HISTORY, "11778-8 11779-6 11780-4", _due_date, _TERM)
ALL = (
    PREGNANCY,
    DUE_DATE,
    Question("breastfeeding", HISTORY, "63895-7", _breastfeeding, _TWO_YEARS),
    Question("smoking", RISKS, "72166-2", _smoking),
    Question("pack-years", RISKS, "8664-5", _pack_years),  # cigarettes smoked total, reported
    Question("alcohol", RISKS, "74013-4", _alcohol),  # alcoholic drinks per day
)
QUESTIONS: Mapping[str, Question] = {code: one for one in ALL for code in one.codes.split()}
