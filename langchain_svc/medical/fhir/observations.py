"""Which Observation becomes which reading: the newest decides, and all are of one point in time.

The newest of a field's observations decides, whatever it says: an older number is never sent in
place of a newer text, a newer bound or a sample that was lost. Two kinds decide nothing: what was
entered in error never was, and what is only registered has no result yet. A result that is
preliminary, was cancelled or is of unknown status decides, but is not a number to act upon.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any, TypeAlias

from .bundle import Resource, objects
from .concepts import LOINC, codes_of
from .fields import HISTORY, ORDER, RISKS, Codes
from .report import NEWER, FhirTaken, ImportLog
from .statements import ALL, DENIED, DUE_DATE, FINAL, PREGNANCY, QUESTIONS
from .times import OLDEST, as_of, days_before, rough_day, time_of, to_datetime
from .units import UnitError, unit_of

NO_RESULT = frozenset({"entered-in-error", "registered"})
_PRESSURES = ("vital_signs.systolic", "vital_signs.diastolic")
_NOT_BELOW = "diastolic must be below systolic: they are probably exchanged or not in mmHg"
_NOT_FINAL = "its status is not final, amended or corrected"


@dataclass(frozen=True)
class Measurement:
    """What an Observation says of a field or a question, or why it says nothing."""

    about: Any  # a Field or a Question
    code: str
    origin: Resource
    at: datetime | None
    issued: datetime = OLDEST
    quantity: Any = None
    text: str = ""
    untold: str = ""

    @property
    def rank(self) -> tuple[datetime, datetime, bool, int]:
        """The greater, the newer; of equal times the one issued later, a final one, the later."""
        return (self.at or OLDEST, self.issued, self.untold != _NOT_FINAL, self.origin.order)


def measurements(
    resource: Resource, observation: Any, table: Codes, today: date
) -> Iterator[Measurement]:
    """What an Observation and its components say of fields, or of a question."""
    at = time_of(observation)
    issued = to_datetime(observation.issued) if observation.issued else OLDEST
    made = partial(Measurement, origin=resource, at=at, issued=issued)
    if code := _known(observation, QUESTIONS):
        text, untold = QUESTIONS[code].answered(observation, today)
        yield made(QUESTIONS[code], code, text=text, untold=untold)
        return
    components = (observation.component or (), objects(resource.raw.get("component")))
    for part, raw in ((observation, resource.raw), *zip(*components, strict=False)):
        code = _known(part, table)
        if code and not (part is observation and _is_panel(raw)):
            untold = _no_number(raw, part) if observation.status in FINAL else _NOT_FINAL
            yield made(table[code], code, quantity=part.valueQuantity, untold=untold)


def _known(part: Any, table: Mapping[str, Any]) -> str:
    return next((code for code in codes_of(part.code, LOINC) if code in table), "")


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
            return f"it is not a number with a unit ({name})"
    if part.valueQuantity is None or part.valueQuantity.value is None:
        return "it has no value"
    return "it is a bound (such as <) and not a number" if part.valueQuantity.comparator else ""


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
            yield Measurement(table[code], code, resource, at, untold=reason)


# -- one point in time -----------------------------------------------------------------------------

Number: TypeAlias = "int | float"
Texts: TypeAlias = "list[tuple[str, FhirTaken]]"


def newest(
    found: Iterable[Measurement], log: ImportLog
) -> tuple[dict[str, dict[str, Number]], Texts]:
    """The newest numbers in their fields' units by group and name, and what is told in words.

    A number is of the time of the record where it lies within its field's window, seen from that
    day (in whole days) and from the newest number of its kind.
    """
    chosen: dict[str, Measurement] = {}
    for one in sorted(found, key=lambda one: one.rank):
        if older := chosen.get(one.about.path):
            log.leave(older.origin, NEWER, older.code, older.at)
        chosen[one.about.path] = one
    texts = _answers(chosen, log)
    _keep_one_time(chosen, log)
    _keep_one_pressure(chosen, log)
    readings: dict[str, tuple[Number, FhirTaken]] = {}
    for path in dict.fromkeys((*ORDER, *chosen)):  # in one order, whatever that of the bundle
        if path in chosen and (made := _in_its_unit(chosen[path], log)):
            readings[path] = made
    if _are_exchanged(*(readings.get(path, (None,))[0] for path in _PRESSURES)):
        for path in _PRESSURES:
            one = chosen[path]
            log.leave(one.origin, _NOT_BELOW, one.code, one.at)
            del readings[path]
    values: dict[str, dict[str, Number]] = {}
    for path, (value, line) in readings.items():
        values.setdefault(chosen[path].about.group, {})[chosen[path].about.name] = value
        log.taken.append(line)
        if path in _BODY:  # for the requests that have no vital signs
            name, form = _BODY[path]
            told = replace(line, field=name, unit="", converted_from="")
            texts.append((form.format(value, as_of(line.days)), told))
    return values, texts


_BODY = {
    "vital_signs.weight": (HISTORY, "observation: weight {:g} kg{}"),
    "vital_signs.bmi": (RISKS, "body mass index {:.3g} kg/m2"),
}


def _answers(chosen: dict[str, Measurement], log: ImportLog) -> Texts:
    """The answers in words, also where the newest says that there is nothing to tell."""
    status, due = chosen.get(PREGNANCY.path), chosen.get(DUE_DATE.path)
    if status and due and status.untold == DENIED and status.rank >= due.rank:
        log.leave(due.origin, NEWER, due.code, due.at)
        del chosen[DUE_DATE.path]
    texts = []
    for one in [chosen.pop(each.path) for each in ALL if each.path in chosen]:
        if one.text:
            texts.append((one.text, log.line(one.origin, one.about.field, one.code, one.at)))
        else:
            log.leave(one.origin, one.untold, one.code, one.at)
    return texts


def _keep_one_time(chosen: dict[str, Measurement], log: ImportLog) -> None:
    newest_at: dict[str, datetime] = {}
    for one in chosen.values():
        newest_at[one.about.kind] = max(newest_at.get(one.about.kind, OLDEST), one.at or OLDEST)
    for path, one in list(chosen.items()):
        reason = one.untold or _out_of_time(one, newest_at[one.about.kind], log.today)
        if reason:
            log.leave(chosen.pop(path).origin, reason, one.code, one.at)


def _out_of_time(one: Measurement, newest_at: datetime, today: date) -> str:
    """Why a number is not of the time of the record; empty where it is."""
    width: timedelta | None = one.about.window
    if width is None:
        return ""
    if one.at is None:
        return "it does not say when it was made"
    told = f"{width.days} days" if width.days > 1 else f"{width.total_seconds() / 3600:g} hours"
    if timedelta(days=days_before(one.at, today)) > width:
        return f"older than its window of {told}"
    if newest_at - one.at > width:
        return f"further from the newest of its kind than its window of {told}"
    return ""


def _keep_one_pressure(chosen: dict[str, Measurement], log: ImportLog) -> None:
    """A pressure is two numbers of one moment: without its pair, the older one says nothing."""
    pair = sorted((chosen[path] for path in _PRESSURES if path in chosen), key=lambda o: o.rank)
    if len(pair) == len(_PRESSURES) and pair[0].at != pair[1].at:
        older = chosen.pop(pair[0].about.path)
        log.leave(older.origin, "the other pressure was measured later", older.code, older.at)


def _in_its_unit(one: Measurement, log: ImportLog) -> tuple[Number, FhirTaken] | None:
    """A number in the unit of its field, with its line of the report; None where it has none."""
    known, wanted = one.about, one.about.sent or one.about.unit
    try:
        unit = unit_of(one.quantity, known.substance)
        value = known.accepted(one.quantity.value, unit)
    except UnitError as error:
        reason = f"LOINC {one.code}, for {known.path}: {error}; it is sent in {wanted}"
        log.leave(one.origin, reason, one.code, one.at)
        return None
    line = log.line(one.origin, known.path, one.code, one.at)
    return value, replace(line, unit=wanted, converted_from=unit if unit != wanted else "")


def _are_exchanged(systolic: Number | None, diastolic: Number | None) -> bool:
    return systolic is not None and diastolic is not None and diastolic >= systolic
