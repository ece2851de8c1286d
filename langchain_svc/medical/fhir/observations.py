"""Which Observation becomes which reading: the newest decides, and all are of one point in time.

The newest of a field's observations decides, whatever it says: an older number is never sent in
place of a newer text, a newer bound or a sample that was lost. Two kinds decide nothing: what was
entered in error never was, and what is only registered has no result yet. A result that is
preliminary, was cancelled or is of unknown status decides, but is not a number to act upon.

A number means what its whole means: the systolic pressure of a ventricle has the code of that of an
arm. So a part counts only below a panel that is known for it, and a vital sign of an unusual site
is none of the patient's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias

from .bundle import Resource, objects
from .concepts import LOINC, Words, codes_of
from .fields import HISTORY, ORDER, RISKS, Codes, is_of_panel, is_usual_site
from .report import NEWER, FhirTaken, ImportLog
from .statements import ALL, DUE_DATE, FINAL, NOT_PREGNANT, PREGNANCY, QUESTIONS
from .times import OLDEST, Clock, as_of, rough_day, time_of, to_datetime
from .units import UnitError, unit_of

_PRESSURES = ("vital_signs.systolic", "vital_signs.diastolic")
_NOT_BELOW = (
    "diastolic must be below systolic: they are probably exchanged or not in mmHg"
)
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
    words: Words | None = None
    untold: str = ""

    @property
    def rank(self) -> tuple[datetime, datetime, bool, int]:
        """The greater, the newer; of equal times the one issued later, a final one, the later."""
        return (
            self.at or OLDEST,
            self.issued,
            self.untold != _NOT_FINAL,
            self.origin.order,
        )


def measurements(
    log: ImportLog, table: Codes, resource: Resource, observation: Any
) -> Iterator[Measurement]:
    """What an Observation and its components say of fields, or of a question."""
    at = time_of(observation)
    issued = to_datetime(observation.issued) if observation.issued else OLDEST
    measured = partial(Measurement, origin=resource, at=at, issued=issued)
    if code := _known(observation, QUESTIONS):
        words, untold = QUESTIONS[code].answered(observation, log.clock.today)
        yield measured(QUESTIONS[code], code, words=words, untold=untold)
        return
    read: dict[str, Measurement] = {}
    for part, raw in _parts(log, table, resource, observation):
        code = _known(part, table)
        about = table[code]
        if not is_usual_site(
            about, codes_of(observation.bodySite), observation.bodySite
        ):
            log.leave(resource, "its body site is not the usual one", code, at)
        elif about.path in read:
            several = "it has several values, perhaps of several postures"
            read[about.path] = replace(read[about.path], untold=several)
        else:
            untold = (
                _no_number(raw, part) if observation.status in FINAL else _NOT_FINAL
            )
            read[about.path] = measured(
                about, code, quantity=part.valueQuantity, untold=untold
            )
    yield from read.values()


def _parts(
    log: ImportLog, table: Codes, resource: Resource, observation: Any
) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """An Observation and its components as far as their codes are known and count, with their JSON.

    The others are told of: a component of a panel that is not known for it, and one that stands
    unread beside a value.
    """
    if _known(observation, table) and not _is_panel(resource.raw):
        yield observation, resource.raw
    panels = codes_of(observation.code)
    components = observation.component or ()
    for part, raw in zip(
        components, objects(resource.raw.get("component")), strict=False
    ):
        codes = codes_of(part.code, LOINC)
        known = {table[code].path for code in codes if code in table}
        name = next(iter(codes), "without a LOINC code")
        if not known:
            log.beside(resource, "component", f"a component is not read: {name}")
        elif len(known) > 1 or any(code not in table for code in codes):
            log.leave(
                resource, "its codes mean more than one thing", name, part="component"
            )
        elif not is_of_panel(table[_known(part, table)], panels):
            reason = (
                f"it is a part of something that is not known for it: {resource.name}"
            )
            log.leave(resource, reason, name, part="component")
        else:
            yield part, raw


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
    return (
        "it is a bound (such as <) and not a number"
        if part.valueQuantity.comparator
        else ""
    )


def unread(resource: Resource, reason: str, table: Codes) -> Iterator[Measurement]:
    """An Observation that cannot be read, as what it is about: it may still be the newest."""
    period = resource.raw.get("effectivePeriod")
    told = (
        *(resource.raw.get(name) for name in ("effectiveDateTime", "effectiveInstant")),
        *(
            (period.get("end"), period.get("start"))
            if isinstance(period, Mapping)
            else ()
        ),
        resource.raw.get("issued"),
    )
    at = next(filter(None, map(rough_day, filter(None, told))), None)
    whole = resource.own_codes()
    for code in sorted(filter(None, (str(code) for code in resource.codes() or ()))):
        if code in table and (code in whole or is_of_panel(table[code], whole)):
            yield Measurement(table[code], code, resource, at, untold=reason)


# -- one point in time -----------------------------------------------------------------------------

Number: TypeAlias = "int | float"
Statements: TypeAlias = "list[tuple[Measurement, Statement]]"


@dataclass(frozen=True)
class Statement:
    """What a measurement becomes in words, and in which field."""

    field: str
    words: Words


def newest(
    found: Iterable[Measurement], log: ImportLog
) -> tuple[dict[str, dict[str, Number]], Statements]:
    """The newest numbers in their fields' units by group and name, and what is told in words.

    A number is of the time of the record where it lies within its field's window, seen from that
    day or moment and from the newest number of its kind.
    """
    chosen: dict[str, Measurement] = {}
    for one in sorted(found, key=lambda one: one.rank):
        if older := chosen.get(one.about.path):
            log.leave(older.origin, NEWER, older.code, older.at)
        chosen[one.about.path] = one
    statements = _answers(chosen, log)
    _keep_one_time(chosen, log)
    _keep_one_pressure(chosen, log)
    readings: dict[str, tuple[Number, FhirTaken]] = {}
    for path in dict.fromkeys(
        (*ORDER, *chosen)
    ):  # in one order, whatever that of the bundle
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
            words = Words(form.format(value, as_of(line.days)))
            statements.append((chosen[path], Statement(name, words)))
    return values, statements


_BODY = {
    "vital_signs.weight": (HISTORY, "observation: weight {:g} kg{}"),
    "vital_signs.bmi": (RISKS, "body mass index {:.3g} kg/m2"),
}


def _answers(chosen: dict[str, Measurement], log: ImportLog) -> Statements:
    """The answers in words; a date of delivery is over where there is no pregnancy any more."""
    status = chosen.get(PREGNANCY.path)
    due = chosen.get(DUE_DATE.path)
    denied = status is not None and status.words and NOT_PREGNANT in status.words.text
    if status and due and denied and status.rank >= due.rank:
        log.leave(due.origin, NEWER, due.code, due.at)
        del chosen[DUE_DATE.path]
    statements = []
    for answer in [
        chosen.pop(question.path) for question in ALL if question.path in chosen
    ]:
        if answer.words:
            statements.append((answer, Statement(answer.about.field, answer.words)))
        else:
            log.leave(answer.origin, answer.untold, answer.code, answer.at)
    return statements


def _keep_one_time(chosen: dict[str, Measurement], log: ImportLog) -> None:
    newest_at: dict[str, datetime] = {}
    for one in chosen.values():
        newest_at[one.about.kind] = max(
            newest_at.get(one.about.kind, OLDEST), one.at or OLDEST
        )
    for path, one in list(chosen.items()):
        reason = one.untold or _out_of_time(one, newest_at[one.about.kind], log.clock)
        if reason:
            log.leave(chosen.pop(path).origin, reason, one.code, one.at)


def _out_of_time(one: Measurement, newest_at: datetime, clock: Clock) -> str:
    """Why a number is not of the time of the record; empty where it is."""
    width = one.about.window
    if width is None:
        return ""
    if one.at is None:
        return "it does not say when it was made"
    told = (
        f"{width.days} days"
        if width.days > 1
        else f"{width.total_seconds() / 3600:g} hours"
    )
    if clock.age_of(one.at) > width:
        return f"older than its window of {told}"
    if newest_at - one.at > width:
        return f"further from the newest of its kind than its window of {told}"
    return ""


def _keep_one_pressure(chosen: dict[str, Measurement], log: ImportLog) -> None:
    """A pressure is two numbers of one moment: without its pair, the older one says nothing."""
    pair = sorted(
        (chosen[path] for path in _PRESSURES if path in chosen), key=lambda o: o.rank
    )
    if len(pair) == len(_PRESSURES) and pair[0].at != pair[1].at:
        older = chosen.pop(pair[0].about.path)
        log.leave(
            older.origin, "the other pressure was measured later", older.code, older.at
        )


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
    return value, replace(
        line, unit=wanted, converted_from=unit if unit != wanted else ""
    )


def _are_exchanged(systolic: Number | None, diastolic: Number | None) -> bool:
    return systolic is not None and diastolic is not None and diastolic >= systolic
