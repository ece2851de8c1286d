"""Which Observation becomes which reading: LOINC codes, the newest final one, and its unit.

The units of vital signs are those of `VitalSigns`. The documents name no unit for laboratory
results; those here are the usual ones of the United States, where the names `troponin`, `bnp` and
`creatinine` come with ng/mL, pg/mL and mg/dL. docs/medical.md has the table for people.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..errors import SvcRequestError
from .bundle import Resource
from .concepts import LOINC, codes_of
from .report import FhirLeftOut, FhirTaken
from .times import OLDEST, instant
from .units import UnitError, converted, unit_of


@dataclass(frozen=True)
class Field:
    """Where a reading goes: its group, its name, its UCUM unit and grams a mole if it has any."""

    group: str
    name: str
    unit: str
    molar_mass: float | None = None

    @property
    def path(self) -> str:
        """Its name within a patient, such as `vital_signs.temperature`."""
        return f"{self.group}.{self.name}"


_VITAL = "vital_signs"
_LAB = "lab_results"
FIELDS: tuple[tuple[Field, str], ...] = (
    (Field(_VITAL, "systolic", "mm[Hg]"), "8480-6 8459-0 8460-8 8461-6 76534-7"),
    (Field(_VITAL, "diastolic", "mm[Hg]"), "8462-4 8453-3 8454-1 8455-8 76535-4"),
    (Field(_VITAL, "heart_rate", "/min"), "8867-4 8889-8"),
    (
        Field(_VITAL, "temperature", "Cel"),
        "8310-5 8331-1 8332-9 8333-7 8328-7 8329-5 75539-7",
    ),
    (Field(_VITAL, "respiratory_rate", "/min"), "9279-1"),
    (Field(_VITAL, "oxygenSaturation", "%"), "2708-6 59408-5"),
    # Troponin I and T, ordinary and of high sensitivity.
    (
        Field(_LAB, "troponin", "ng/mL"),
        "10839-9 42757-5 49563-0 89579-7 6598-7 48425-3 67151-1",
    ),
    (Field(_LAB, "bnp", "pg/mL", 3464.0), "30934-4 42637-9"),
    # Several times as high as BNP in the same blood, so never sent under its name.
    (Field(_LAB, "ntProBnp", "pg/mL", 8457.0), "33762-6 33763-4 71425-3 83107-3"),
    (Field(_LAB, "creatinine", "mg/dL", 113.12), "2160-0 38483-4 14682-9 77140-2 59826-8"),
)
_FINAL = frozenset({"final", "amended", "corrected"})
_PRESSURES = ("vital_signs.systolic", "vital_signs.diastolic")
_CODE = re.compile(r"[0-9]{1,7}-[0-9]")

Codes = Mapping[str, Field]


def codes(lab_codes: Mapping[str, str], units: Mapping[str, str]) -> Codes:
    """The fields of all LOINC codes, with what the application adds or changes.

    Args:
        lab_codes: Further LOINC codes and the names of their laboratory results.
        units: Units in UCUM by name of a laboratory result.

    Raises:
        SvcRequestError: A code is none, or a unit is missing or for something else.
    """
    known = {field.name: field for field, _ in FIELDS}
    table = {code: field for field, listed in FIELDS for code in listed.split()}
    for code, name in lab_codes.items():
        if not _CODE.fullmatch(code):
            raise SvcRequestError("lab_codes must have LOINC codes such as 2345-7 as its keys")
        if name not in known:
            if name not in units:
                raise SvcRequestError(
                    f"lab_codes has the name {name!r}, for which units must have a UCUM unit"
                )
            known[name] = Field(_LAB, name, units[name])
        table[code] = known[name]
    for name in units:
        if name not in known or known[name].group != _LAB:
            raise SvcRequestError(
                f"units has {name!r}; it takes names of laboratory results: "
                + ", ".join(field.name for field in known.values() if field.group == _LAB)
            )
    return {
        code: Field(field.group, field.name, units.get(field.name, field.unit), field.molar_mass)
        for code, field in table.items()
    }


@dataclass(frozen=True)
class Measurement:
    """One number of an Observation, for a field."""

    field: Field
    code: str
    entry: int
    at: datetime | None
    issued: datetime
    quantity: Any

    @property
    def rank(self) -> tuple[datetime, datetime, int]:
        """The greater, the newer; of equal times the one issued later, then the later entry."""
        return (self.at or OLDEST, self.issued, self.entry)

    def left_out(self, reason: str) -> FhirLeftOut:
        """The word of the report that it was not taken."""
        return FhirLeftOut(self.entry, "Observation", reason, self.code)


def is_final(observation: Any) -> bool:
    """Whether an Observation's result is complete and not withdrawn."""
    return observation.status in _FINAL


def time_of(observation: Any) -> datetime | None:
    """When an observation was made; of a period its end. None where it does not say."""
    period = observation.effectivePeriod
    for told in (
        observation.effectiveDateTime,
        observation.effectiveInstant,
        period and (period.end or period.start),
        observation.issued,
    ):
        if told:
            return instant(told)
    return None


def measurements(resource: Resource, observation: Any, table: Codes) -> Iterator[Measurement]:
    """The numbers of an Observation and its components that are for a field."""
    at = time_of(observation)
    issued = instant(observation.issued) if observation.issued else OLDEST
    for part in (observation, *(observation.component or ())):
        code = next((code for code in codes_of(part.code, LOINC) if code in table), None)
        if code is None or part.valueQuantity is None or part.valueQuantity.value is None:
            continue
        yield Measurement(table[code], code, resource.entry, at, issued, part.valueQuantity)


@dataclass(frozen=True)
class Readings:
    """The readings of a patient by group and name, and where each came from."""

    values: dict[str, dict[str, int | float]]
    taken: list[FhirTaken]
    left_out: list[FhirLeftOut]


def newest(found: Iterable[Measurement]) -> Readings:
    """The newest measurement of each field, in the field's unit.

    Raises:
        SvcRequestError: The newest one has no unit, or one that cannot be converted.
    """
    chosen: dict[str, Measurement] = {}
    readings = Readings({}, [], [])
    for one in sorted(found, key=lambda one: one.rank):
        if older := chosen.get(one.field.path):
            readings.left_out.append(older.left_out("a newer one was taken"))
        chosen[one.field.path] = one
    _keep_one_pressure(chosen, readings)
    for field, _ in FIELDS:  # in a fixed order, whatever the order of the bundle
        if field.path in chosen:
            _take(chosen.pop(field.path), readings)
    for one in chosen.values():
        _take(one, readings)
    return readings


def _keep_one_pressure(chosen: dict[str, Measurement], readings: Readings) -> None:
    """A pressure is two numbers of one moment: without its pair, the older one says nothing."""
    pair = sorted((chosen[path] for path in _PRESSURES if path in chosen), key=lambda o: o.rank)
    if len(pair) == len(_PRESSURES) and pair[0].at != pair[1].at:
        older = chosen.pop(pair[0].field.path)
        readings.left_out.append(older.left_out("the other pressure was measured later"))


def _take(one: Measurement, readings: Readings) -> None:
    field, quantity = one.field, one.quantity
    if quantity.comparator:
        # An older number in its place would be a lie, and the bound is not what was measured.
        readings.left_out.append(one.left_out("it is a bound (such as <) and no number"))
        return
    try:
        unit = unit_of(quantity)
        value = converted(quantity.value, unit, field.unit, field.molar_mass)
    except UnitError as error:
        raise SvcRequestError(
            f"Bundle.entry[{one.entry}].resource (Observation), LOINC {one.code}, for "
            f"{field.path}: {error}; it is sent in {field.unit}"
        ) from None
    readings.values.setdefault(field.group, {})[field.name] = value
    origin = unit if unit != field.unit else ""
    readings.taken.append(
        FhirTaken(field.path, one.entry, "Observation", one.code, field.unit, origin)
    )
