"""Which Observation becomes which reading: the newest decides, and all are of one point in time.

The newest of a field's observations decides, whatever it says: an older number is never sent in
place of a newer text, a newer bound or a sample that was lost. Two kinds decide nothing: what was
entered in error never was, and what is only registered has no result yet. A result that is
preliminary, was cancelled or is of unknown status decides, but is not a number to act upon.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any

from ...errors import SvcRequestError
from .bundle import ElementError, Resource, objects
from .concepts import LOINC, codes_of
from .fields import ORDER, Codes, Field
from .report import NEWER, FhirLeftOut, FhirTaken
from .times import OLDEST, days_before, rough_day, to_datetime
from .units import UnitError, unit_of

_FINAL = frozenset({"final", "amended", "corrected"})
NO_RESULT = frozenset({"entered-in-error", "registered"})
_PRESSURES = ("vital_signs.systolic", "vital_signs.diastolic")
_NOT_FINAL = "its status is not final, amended or corrected"


@dataclass(frozen=True)
class Measurement:
    """What an Observation says of a field: a number, or why it is none."""

    field: Field
    code: str
    origin: Resource
    at: datetime | None
    issued: datetime = OLDEST
    quantity: Any = None
    no_number: str = ""

    @property
    def rank(self) -> tuple[datetime, datetime, bool, int]:
        """The greater, the newer; of equal times the one issued later, a final one, the later."""
        final = self.no_number != _NOT_FINAL
        return (self.at or OLDEST, self.issued, final, self.origin.order)

    def days(self, today: date) -> int | None:
        """How many days before `today` it was made; None where it does not say when."""
        return days_before(self.at, today) if self.at else None


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
            return to_datetime(told)
    return None


def measurements(resource: Resource, observation: Any, table: Codes) -> Iterator[Measurement]:
    """What an Observation and its components say of fields."""
    at = time_of(observation)
    issued = to_datetime(observation.issued) if observation.issued else OLDEST
    components = (observation.component or (), objects(resource.raw.get("component")))
    for part, raw in ((observation, resource.raw), *zip(*components, strict=False)):
        code = next((code for code in codes_of(part.code, LOINC) if code in table), None)
        if code is None or (part is observation and _is_panel(raw)):
            continue
        reason = "" if is_final(observation) else _NOT_FINAL
        reason = reason or _no_number(raw, part)
        yield Measurement(table[code], code, resource, at, issued, part.valueQuantity, reason)


def _is_panel(raw: Mapping[str, Any]) -> bool:
    """Whether an Observation has no value of its own, but its parts do."""
    return ("component" in raw or "hasMember" in raw) and not any(
        name.startswith("value") or name == "dataAbsentReason" for name in raw
    )


def _no_number(raw: Mapping[str, Any], part: Any) -> str:
    """Why a value is not a number; empty where it is one."""
    if "dataAbsentReason" in raw:
        return "its value is absent (dataAbsentReason)"
    if "modifierExtension" in raw:
        return "a component has a modifierExtension, which may change it"
    for name in part.elements_sequence():
        if name.startswith("value") and name != "valueQuantity" and name in raw:
            return f"it is no number with a unit ({name})"
    if part.valueQuantity is None or part.valueQuantity.value is None:
        return "it has no value"
    return "it is a bound (such as <) and no number" if part.valueQuantity.comparator else ""


def unread(resource: Resource, reason: str, table: Codes) -> Iterator[Measurement]:
    """An Observation that cannot be read, as what it is about: it may still be the newest."""
    period = resource.raw.get("effectivePeriod")
    told = (
        *(resource.raw.get(name) for name in ("effectiveDateTime", "effectiveInstant")),
        *((period.get("end"), period.get("start")) if isinstance(period, Mapping) else ()),
        resource.raw.get("issued"),
    )
    at = next(filter(None, map(rough_day, filter(None, told))), None)
    for code in sorted(filter(None, (str(code) for code in resource.codes() or ()))):
        if code in table:
            yield Measurement(table[code], code, resource, at, no_number=reason)


# -- one point in time -----------------------------------------------------------------------------


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
        days, entry = one.days(self.today), one.origin.entry
        self.left_out.append(FhirLeftOut(entry, "Observation", reason, one.code, days))

    def problem(self, one: Measurement, reason: str) -> None:
        """Leave out what cannot be taken, or raise."""
        if not self.lenient:
            raise SvcRequestError(
                str(ElementError(one.origin.place, "Observation", reason))
            ) from None
        self.leave(one, reason)

    def take(self, one: Measurement) -> None:
        """Take a measurement in the unit of its field."""
        known, sent = one.field, one.field.sent or one.field.unit
        try:
            unit = unit_of(one.quantity, known.substance)
            value = known.accepted(one.quantity.value, unit)
        except UnitError as error:
            reason = f"LOINC {one.code}, for {known.path}: {error}; it is sent in {sent}"
            self.problem(one, reason)
            return
        self.values.setdefault(known.group, {})[known.name] = value
        origin = unit if unit != sent else ""
        entry, days = one.origin.entry, one.days(self.today)
        self.taken.append(
            FhirTaken(known.path, entry, "Observation", one.code, sent, origin, days=days)
        )


def newest(found: Iterable[Measurement], today: date, *, lenient: bool) -> NewestReadings:
    """The newest measurement of each field in the field's unit, if it is of the same time.

    A measurement is of the same time where it lies within its field's window, seen from `today`
    (in whole days) and from the newest one of its kind.

    Raises:
        SvcRequestError: The newest one has a unit that cannot be converted, or is beyond the
            possible, unless `lenient` leaves it out.
    """
    readings = NewestReadings(today, lenient)
    chosen: dict[str, Measurement] = {}
    for one in sorted(found, key=lambda one: one.rank):
        if older := chosen.get(one.field.path):
            readings.leave(older, NEWER)
        chosen[one.field.path] = one
    _keep_one_time(chosen, readings)
    _keep_one_pressure(chosen, readings)
    known = [chosen.pop(path) for path in ORDER if path in chosen]
    for one in (*known, *chosen.values()):  # in a fixed order, whatever the order of the bundle
        readings.take(one)
    _keep_possible_pressure(readings)
    return readings


def _keep_one_time(chosen: dict[str, Measurement], readings: NewestReadings) -> None:
    newest_at: dict[str, datetime] = {}
    for one in chosen.values():
        newest_at[one.field.kind] = max(newest_at.get(one.field.kind, OLDEST), one.at or OLDEST)
    for path, one in list(chosen.items()):
        reason = one.no_number or _out_of_time(one, newest_at[one.field.kind], readings.today)
        if reason:
            readings.leave(chosen.pop(path), reason)


def _out_of_time(one: Measurement, newest_at: datetime, today: date) -> str:
    """Why a measurement is not of the time of the record; empty where it is."""
    width, days = one.field.window, one.days(today)
    if width is None:
        return ""
    if one.at is None or days is None:
        return "it does not say when it was made"
    told = f"{width.days} days" if width.days > 1 else f"{width.total_seconds() / 3600:g} hours"
    if timedelta(days=days) > width:
        return f"older than its window of {told}"
    if newest_at - one.at > width:
        return f"further from the newest of its kind than its window of {told}"
    return ""


def _keep_one_pressure(chosen: dict[str, Measurement], readings: NewestReadings) -> None:
    """A pressure is two numbers of one moment: without its pair, the older one says nothing."""
    pair = sorted((chosen[path] for path in _PRESSURES if path in chosen), key=lambda o: o.rank)
    if len(pair) == len(_PRESSURES) and pair[0].at != pair[1].at:
        readings.leave(chosen.pop(pair[0].field.path), "the other pressure was measured later")


def _keep_possible_pressure(readings: NewestReadings) -> None:
    held = readings.values.get("vital_signs", {})
    if "systolic" not in held or "diastolic" not in held or held["diastolic"] < held["systolic"]:
        return
    reason = "diastolic must be below systolic: they are probably exchanged or in two units"
    both = [one for one in readings.taken if one.field in _PRESSURES]
    if not readings.lenient:
        raise SvcRequestError(f"Observation entry[{both[0].entry}]: {reason}")
    for one in both:
        readings.taken.remove(one)
        readings.left_out.append(FhirLeftOut(one.entry, one.resource, reason, one.code, one.days))
    del held["systolic"], held["diastolic"]
