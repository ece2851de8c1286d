"""Which Observation becomes which reading: LOINC codes, the newest final one, and its unit.

The units of vital signs are those of `VitalSigns`. The documents name no unit for laboratory
results; those here are the usual ones of the United States, where the names `troponin`, `bnp` and
`creatinine` come with ng/mL, pg/mL and mg/dL. docs/medical.md has the table for people.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from ..errors import SvcRequestError
from .bundle import Resource
from .concepts import LOINC, codes_of
from .report import FhirLeftOut, FhirTaken
from .times import OLDEST, days_before, instant
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
    (Field(_VITAL, "heart_rate", "/min"), "8867-4 8889-8 8893-0"),
    (
        Field(_VITAL, "temperature", "Cel"),
        "8310-5 8331-1 8332-9 8333-7 8328-7 8329-5 75539-7",
    ),
    (Field(_VITAL, "respiratory_rate", "/min"), "9279-1"),
    (Field(_VITAL, "oxygenSaturation", "%"), "2708-6 59408-5"),
    # Assays with limits of their own: none may pass for another, or take its place.
    (Field(_LAB, "troponin", "ng/mL"), "10839-9 42757-5 49563-0"),  # I, the usual one
    (Field(_LAB, "troponinT", "ng/mL"), "6598-7 48425-3"),
    (Field(_LAB, "hsTroponinI", "ng/L"), "89579-7"),
    (Field(_LAB, "hsTroponinT", "ng/L"), "67151-1"),
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
    known = {one.name: one for one, _ in FIELDS}
    table = {code: one for one, listed in FIELDS for code in listed.split()}
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
                + ", ".join(one.name for one in known.values() if one.group == _LAB)
            )
    return {
        code: Field(one.group, one.name, units.get(one.name, one.unit), one.molar_mass)
        for code, one in table.items()
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

    def days(self, today: date) -> int | None:
        """How many days before `today` it was made; None where it does not say when."""
        return days_before(self.at, today) if self.at else None

    def left_out(self, reason: str, today: date) -> FhirLeftOut:
        """The line of the report that it was not taken."""
        return FhirLeftOut(self.entry, "Observation", reason, self.code, self.days(today))


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
class Window:
    """How old a reading of a group may be; None for any age. `setting` names it in the report."""

    setting: str
    width: timedelta | None


@dataclass(frozen=True)
class Readings:
    """The readings of one point in time by group and name, and where each came from."""

    today: date
    values: dict[str, dict[str, int | float]] = field(default_factory=dict)
    taken: list[FhirTaken] = field(default_factory=list)
    left_out: list[FhirLeftOut] = field(default_factory=list)

    def leave(self, one: Measurement, reason: str) -> None:
        """Say why a measurement was not taken."""
        self.left_out.append(one.left_out(reason, self.today))


def newest(found: Iterable[Measurement], today: date, windows: Mapping[str, Window]) -> Readings:
    """The newest measurement of each field in the field's unit, if it is of the same time.

    A measurement is of the same time where it lies within its group's window, seen from `today`
    (in whole days) and from the group's newest one.

    Raises:
        SvcRequestError: The newest one has no unit, or one that cannot be converted.
    """
    readings = Readings(today)
    chosen: dict[str, Measurement] = {}
    for one in sorted(found, key=lambda one: one.rank):
        if older := chosen.get(one.field.path):
            readings.leave(older, "a newer one was taken")
        chosen[one.field.path] = one
    _keep_one_time(chosen, windows, readings)
    _keep_one_pressure(chosen, readings)
    for known, _ in FIELDS:  # in a fixed order, whatever the order of the bundle
        if known.path in chosen:
            _take(chosen.pop(known.path), readings)
    for one in chosen.values():
        _take(one, readings)
    return readings


def _keep_one_time(
    chosen: dict[str, Measurement], windows: Mapping[str, Window], readings: Readings
) -> None:
    newest_at: dict[str, datetime] = {}
    for one in chosen.values():
        group = one.field.group
        newest_at[group] = max(newest_at.get(group, OLDEST), one.at or OLDEST)
    for path, one in list(chosen.items()):
        window = windows[one.field.group]
        days = one.days(readings.today)
        if window.width is None:
            continue
        if one.at is None or days is None:
            readings.leave(chosen.pop(path), "it does not say when it was made")
        elif timedelta(days=days) > window.width:
            readings.leave(chosen.pop(path), f"older than {window.setting} allows")
        elif newest_at[one.field.group] - one.at > window.width:
            reason = f"further from the newest of its kind than {window.setting} allows"
            readings.leave(chosen.pop(path), reason)


def _keep_one_pressure(chosen: dict[str, Measurement], readings: Readings) -> None:
    """A pressure is two numbers of one moment: without its pair, the older one says nothing."""
    pair = sorted((chosen[path] for path in _PRESSURES if path in chosen), key=lambda o: o.rank)
    if len(pair) == len(_PRESSURES) and pair[0].at != pair[1].at:
        readings.leave(chosen.pop(pair[0].field.path), "the other pressure was measured later")


def _take(one: Measurement, readings: Readings) -> None:
    known, quantity = one.field, one.quantity
    if quantity.comparator:
        # An older number in its place would be a lie, and the bound is not what was measured.
        readings.leave(one, "it is a bound (such as <) and no number")
        return
    try:
        unit = unit_of(quantity)
        value = converted(quantity.value, unit, known.unit, known.molar_mass)
    except UnitError as error:
        raise SvcRequestError(
            f"Bundle.entry[{one.entry}].resource (Observation), LOINC {one.code}, for "
            f"{known.path}: {error}; it is sent in {known.unit}"
        ) from None
    readings.values.setdefault(known.group, {})[known.name] = value
    readings.taken.append(
        FhirTaken(
            known.path,
            one.entry,
            "Observation",
            one.code,
            known.unit,
            unit if unit != known.unit else "",
            days=one.days(readings.today),
        )
    )
