"""Which Observation becomes which reading: the newest final one, of one point in time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from ..errors import SvcRequestError
from .bundle import ElementError, Resource
from .concepts import LOINC, codes_of
from .fields import Codes, Field, order
from .report import FhirLeftOut, FhirTaken
from .times import OLDEST, days_before, to_datetime
from .units import UnitError, converted, unit_of

_FINAL = frozenset({"final", "amended", "corrected"})
_PRESSURES = ("vital_signs.systolic", "vital_signs.diastolic")


@dataclass(frozen=True)
class Measurement:
    """One number of an Observation, for a field."""

    field: Field
    code: str
    origin: Resource
    at: datetime | None
    issued: datetime
    quantity: Any

    @property
    def rank(self) -> tuple[datetime, datetime, int]:
        """The greater, the newer; of equal times the one issued later, then the later entry."""
        return (self.at or OLDEST, self.issued, self.origin.order)

    def days(self, today: date) -> int | None:
        """How many days before `today` it was made; None where it does not say when."""
        return days_before(self.at, today) if self.at else None

    def left_out(self, reason: str, today: date) -> FhirLeftOut:
        """The line of the report that it was not taken."""
        return FhirLeftOut(self.origin.entry, "Observation", reason, self.code, self.days(today))


def is_final(observation: Any) -> bool:
    """Whether an Observation's result is complete and not withdrawn."""
    return observation.status in _FINAL


def time_of(observation: Any) -> datetime | None:
    """When an observation was made; of a period its end. None where it does not say."""
    period = observation.effectivePeriod
    for told in (
        observation.effectiveDateTime,
        getattr(observation, "effectiveInstant", None),  # a report has none
        period and (period.end or period.start),
        observation.issued,
    ):
        if told:
            return to_datetime(told)
    return None


def measurements(resource: Resource, observation: Any, table: Codes) -> Iterator[Measurement]:
    """The numbers of an Observation and its components that are for a field."""
    at = time_of(observation)
    issued = to_datetime(observation.issued) if observation.issued else OLDEST
    for part in (observation, *(observation.component or ())):
        code = next((code for code in codes_of(part.code, LOINC) if code in table), None)
        if code is None or part.valueQuantity is None or part.valueQuantity.value is None:
            continue
        yield Measurement(table[code], code, resource, at, issued, part.valueQuantity)


@dataclass(frozen=True)
class Window:
    """How old a reading of a group may be; None for any age. `setting` names it in the report."""

    setting: str
    width: timedelta | None


@dataclass(frozen=True)
class NewestReadings:
    """The readings of one point in time by group and name, and where each came from."""

    today: date
    lenient: bool
    values: dict[str, dict[str, int | float]] = field(default_factory=dict)
    taken: list[FhirTaken] = field(default_factory=list)
    left_out: list[FhirLeftOut] = field(default_factory=list)

    def leave(self, one: Measurement, reason: str) -> None:
        """Say why a measurement was not taken."""
        self.left_out.append(one.left_out(reason, self.today))

    def problem(self, one: Measurement, error: ElementError) -> None:
        """Leave out what cannot be read, or raise."""
        if not self.lenient:
            raise SvcRequestError(str(error)) from None
        self.leave(one, error.reason)


def newest(
    found: Iterable[Measurement], today: date, windows: Mapping[str, Window], *, lenient: bool
) -> NewestReadings:
    """The newest measurement of each field in the field's unit, if it is of the same time.

    A measurement is of the same time where it lies within its group's window, seen from `today`
    (in whole days) and from the group's newest one.

    Raises:
        SvcRequestError: The newest one has no unit, or one that cannot be converted, unless
            `lenient` leaves it out.
    """
    readings = NewestReadings(today, lenient)
    chosen: dict[str, Measurement] = {}
    for one in sorted(found, key=lambda one: one.rank):
        if older := chosen.get(one.field.path):
            readings.leave(older, "a newer one was taken")
        chosen[one.field.path] = one
    _keep_one_time(chosen, windows, readings)
    _keep_one_pressure(chosen, readings)
    for path in order():  # in a fixed order, whatever the order of the bundle
        if path in chosen:
            _take(chosen.pop(path), readings)
    for one in chosen.values():
        _take(one, readings)
    return readings


def _keep_one_time(
    chosen: dict[str, Measurement], windows: Mapping[str, Window], readings: NewestReadings
) -> None:
    newest_at: dict[str, datetime] = {}
    for one in chosen.values():
        kind = one.field.window
        newest_at[kind] = max(newest_at.get(kind, OLDEST), one.at or OLDEST)
    for path, one in list(chosen.items()):
        window = windows[one.field.window]
        days = one.days(readings.today)
        if window.width is None:
            continue
        if one.at is None or days is None:
            readings.leave(chosen.pop(path), "it does not say when it was made")
        elif timedelta(days=days) > window.width:
            readings.leave(chosen.pop(path), f"older than {window.setting} allows")
        elif newest_at[one.field.window] - one.at > window.width:
            reason = f"further from the newest of its kind than {window.setting} allows"
            readings.leave(chosen.pop(path), reason)


def _keep_one_pressure(chosen: dict[str, Measurement], readings: NewestReadings) -> None:
    """A pressure is two numbers of one moment: without its pair, the older one says nothing."""
    pair = sorted((chosen[path] for path in _PRESSURES if path in chosen), key=lambda o: o.rank)
    if len(pair) == len(_PRESSURES) and pair[0].at != pair[1].at:
        readings.leave(chosen.pop(pair[0].field.path), "the other pressure was measured later")


def _take(one: Measurement, readings: NewestReadings) -> None:
    known, quantity = one.field, one.quantity
    if quantity.comparator:
        # An older number in its place would be a lie, and the bound is not what was measured.
        readings.leave(one, "it is a bound (such as <) and no number")
        return
    try:
        unit = unit_of(quantity)
        value = converted(quantity.value, unit, known.unit, known.substance)
    except UnitError as error:
        reason = f"LOINC {one.code}, for {known.path}: {error}; it is sent in {known.unit}"
        readings.problem(one, ElementError(one.origin.place, "Observation", reason))
        return
    readings.values.setdefault(known.group, {})[known.name] = value
    readings.taken.append(
        FhirTaken(
            known.path,
            one.origin.entry,
            "Observation",
            one.code,
            known.unit,
            unit if unit != known.unit else "",
            days=one.days(readings.today),
        )
    )
