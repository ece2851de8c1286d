"""What Observations say in words: tobacco and alcohol, pregnancy and breastfeeding, by LOINC.

The newest answer to each question counts, however old it is; a pregnancy and breastfeeding only as
long as they can last. Dates do not go into the record: ages of answers and weeks do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from .bundle import Resource
from .concepts import LOINC, codes_of
from .observations import is_final, time_of
from .report import NEWER, FhirLeftOut, FhirTaken, Settled
from .times import OLDEST, day, days_before, to_datetime
from .units import UnitError, unit_of

HISTORY, RISKS = "medical_history", "risk_factors"
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
_BREASTFEEDING = frozenset({"LA29252-6", "169741004", "true", "Y", "LA33-6", "373066001"})


def _smoking(observation: Any, _: date) -> str:
    answers = codes_of(observation.valueCodeableConcept)
    return next((_SMOKERS[code] for code in answers if code in _SMOKERS), "")


def _pack_years(observation: Any, _: date) -> str:
    number, unit = _number(observation)
    # UCUM has no pack: it is a note, or the unit is said to be the year alone.
    return f"tobacco: {number} pack-years" if unit == "a" or "pack" in unit.lower() else ""


def _alcohol(observation: Any, _: date) -> str:
    number, unit = _number(observation)
    bare = re.sub(r"\{[^{}]*\}", "", unit)  # {drinks}/d and {drink}/day
    return f"alcohol: {number} drinks a day" if bare == "/d" else ""


def _number(observation: Any) -> tuple[str, str]:
    """A number above 0 and its unit; neither where there is none, or only a bound."""
    quantity = observation.valueQuantity
    if quantity is None or quantity.comparator or not quantity.value or quantity.value <= 0:
        return "", ""
    with suppress(UnitError):
        return f"{float(quantity.value):g}", unit_of(quantity)
    return "", ""


def _pregnancy(observation: Any, today: date) -> str:
    answers = codes_of(observation.valueCodeableConcept)
    told = next((_PREGNANCIES[code] for code in answers if code in _PREGNANCIES), "")
    return told and f"observation: {told}{as_of(observation, today)}"


def _due_date(observation: Any, today: date) -> str:
    due = observation.valueDateTime
    days = (day(due) - today).days if due else None
    if days is None or not -_OVERDUE <= days <= _TERM:
        return ""
    told = f"in {days}" if days >= 0 else f"passed by {-days}"
    return f"observation: estimated date of delivery {told} days"


def _breastfeeding(observation: Any, today: date) -> str:
    answers = codes_of(observation.valueCodeableConcept)
    feeds = observation.valueBoolean is True or _BREASTFEEDING.intersection(answers)
    return f"observation: breastfeeding{as_of(observation, today)}" if feeds else ""


def as_of(observation: Any, today: date) -> str:
    """How old an observation is, for a line of text; empty where it is of the day."""
    made = time_of(observation)
    days = days_before(made, today) if made else 0
    return f" (as of {days} day{'s'[: days > 1]} ago)" if days else ""


_TERM, _OVERDUE, _TWO_YEARS = 294, 21, 730  # days


@dataclass(frozen=True)
class _Question:
    """A question, where its answer goes, how it is read, and for how many days it can be true."""

    field: str
    codes: str
    read: Callable[[Any, date], str]
    lasts: int | None = None


_PREGNANCY = _Question(HISTORY, "82810-3", _pregnancy, _TERM)
_DUE_DATE = _Question(HISTORY, "11778-8 11779-6 11780-4", _due_date, _TERM)
_QUESTIONS = (
    _PREGNANCY,
    _DUE_DATE,
    _Question(HISTORY, "63895-7", _breastfeeding, _TWO_YEARS),
    _Question(RISKS, "72166-2", _smoking),
    _Question(RISKS, "8664-5", _pack_years),  # cigarettes smoked total (pack per year), reported
    _Question(RISKS, "74013-4", _alcohol),  # alcoholic drinks per day
)
_BY_CODE = {code: question for question in _QUESTIONS for code in question.codes.split()}
CODES = frozenset(_BY_CODE)


@dataclass(frozen=True)
class FhirAnswer:
    """An answer to a question; of those of the greatest rank is the newest."""

    question: _Question
    rank: tuple[datetime, datetime, int]
    code: str
    entry: int | str
    text: str  # empty where it says nothing to send
    denied: bool

    def left_out(self, reason: str) -> FhirLeftOut:
        """The line of the report that it was not taken."""
        return FhirLeftOut(self.entry, "Observation", reason, self.code)


def answer_of(resource: Resource, observation: Any, today: date) -> FhirAnswer | None:
    """The answer of an Observation; None where it answers none of the questions."""
    code = next((code for code in codes_of(observation.code, LOINC) if code in CODES), None)
    if code is None:
        return None
    question = _BY_CODE[code]
    made = time_of(observation) or OLDEST
    issued = to_datetime(observation.issued) if observation.issued else OLDEST
    lasts = question.lasts is None or 0 <= days_before(made, today) <= question.lasts
    text = question.read(observation, today) if is_final(observation) and lasts else ""
    denied = bool(_NOT_PREGNANT.intersection(codes_of(observation.valueCodeableConcept)))
    rank = (made, issued, resource.order)
    return FhirAnswer(question, rank, code, resource.entry, text, denied)


def answers_taken(
    answers: Iterable[FhirAnswer],
) -> tuple[list[tuple[str, FhirTaken]], list[FhirLeftOut]]:
    """The newest answers as texts, also where the newest says that there is nothing to tell."""
    last: dict[_Question, FhirAnswer] = {}
    left_out: list[FhirLeftOut] = []
    for one in sorted(answers, key=lambda one: one.rank):
        if older := last.get(one.question):
            left_out.append(older.left_out(NEWER))
        last[one.question] = one
    status, due = last.get(_PREGNANCY), last.get(_DUE_DATE)
    if status and due and status.denied and status.rank >= due.rank:
        left_out.append(last.pop(_DUE_DATE).left_out(NEWER))
    taken = []
    for question in (question for question in _QUESTIONS if question in last):
        one = last[question]
        if one.text:
            told = FhirTaken(question.field, one.entry, "Observation", one.code)
            taken.append((one.text, told))
        else:
            reason = Settled(
                "it tells nothing that is sent: no, unknown, not final, or too long ago"
            )
            left_out.append(one.left_out(reason))
    return taken, left_out
