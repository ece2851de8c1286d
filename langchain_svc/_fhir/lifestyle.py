"""Habits that are risk factors: tobacco and alcohol, by LOINC.

The newest answer to each question counts, however old it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .bundle import Resource
from .concepts import LOINC, codes_of
from .observations import time_of
from .report import FhirLeftOut, FhirTaken
from .times import OLDEST, to_datetime
from .ucum import UnknownUnitError, read_unit
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


def _smoking(observation: Any) -> str:
    answers = codes_of(observation.valueCodeableConcept)
    return next((_SMOKERS[code] for code in answers if code in _SMOKERS), "")


def _pack_years(observation: Any) -> str:
    number, unit = _number(observation)
    # UCUM has no pack: it is a note, or the unit is said to be the year alone.
    return f"tobacco: {number} pack-years" if unit == "a" or "pack" in unit.lower() else ""


def _alcohol(observation: Any) -> str:
    number, unit = _number(observation)
    try:
        read = read_unit(unit)
    except UnknownUnitError:
        return ""
    per_day = read.powers == read_unit("/d").powers and read.factor == read_unit("/d").factor
    return f"alcohol: {number} drinks a day" if per_day else ""


def _number(observation: Any) -> tuple[str, str]:
    """A number above 0 and its unit; neither where there is none, or only a bound."""
    quantity = observation.valueQuantity
    if quantity is None or quantity.comparator or not quantity.value or quantity.value <= 0:
        return "", ""
    try:
        return f"{float(quantity.value):g}", unit_of(quantity)
    except UnitError:
        return "", ""


_QUESTIONS: Mapping[str, Callable[[Any], str]] = {
    "72166-2": _smoking,  # tobacco smoking status
    "8664-5": _pack_years,  # cigarettes smoked total (pack per year), reported
    "74013-4": _alcohol,  # alcoholic drinks per day
}
CODES = frozenset(_QUESTIONS)


@dataclass(frozen=True, order=True)
class Answer:
    """An answer to a question about a habit; the greatest is the newest."""

    at: datetime
    issued: datetime
    order: int
    entry: int | str
    code: str
    text: str  # empty where it is not a risk factor, or an unknown answer

    def left_out(self, reason: str) -> FhirLeftOut:
        """The line of the report that it was not taken."""
        return FhirLeftOut(self.entry, "Observation", reason, self.code)


def answer_of(resource: Resource, observation: Any) -> Answer | None:
    """The answer of an Observation; None where it answers none of the questions."""
    code = next((code for code in codes_of(observation.code, LOINC) if code in CODES), None)
    if code is None:
        return None
    made = time_of(observation) or OLDEST
    issued = to_datetime(observation.issued) if observation.issued else OLDEST
    text = _QUESTIONS[code](observation)
    return Answer(made, issued, resource.order, resource.entry, code, text)


def risks_of(
    answers: Iterable[Answer],
) -> tuple[list[tuple[str, FhirTaken]], list[FhirLeftOut]]:
    """The newest answers as risk factors, also where the newest says that there is no risk."""
    last: dict[str, Answer] = {}
    left_out: list[FhirLeftOut] = []
    for one in sorted(answers):
        if older := last.get(one.code):
            left_out.append(older.left_out("a newer one was taken"))
        last[one.code] = one
    left_out += [
        one.left_out("it is not a risk factor, or an unknown answer")
        for one in last.values()
        if not one.text
    ]
    taken = [
        (last[code].text, FhirTaken("risk_factors", last[code].entry, "Observation", code))
        for code in _QUESTIONS
        if code in last and last[code].text
    ]
    return taken, left_out
