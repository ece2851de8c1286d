"""What Observations say: readings, and topics such as smoking or pregnancy in words.

The newest Observation for a field decides, whatever it says: an older number is never sent in place
of a newer text, a newer bound or a lost sample. Two kinds decide nothing: one that was entered in
error, and one that is only registered and has no result yet. A result that is preliminary,
cancelled or of unknown status does decide, but it is not a number to act upon.

A number means what its whole means: the systolic pressure of a ventricle has the same code as that
of an arm. So a component counts only in a panel that is known for it, and a vital sign of an
unusual body site is left out. All numbers are of one point in time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from .concepts import LOINC, Wording, codes_of, nothing_said, typed_words, words_of
from .fields import (
    HISTORY,
    NOT_BELOW,
    ORDER,
    RISKS,
    Codes,
    Field,
    is_of_panel,
    is_usual_concept,
    is_usual_site,
)
from .report import NEWER, SAME, FhirTaken, ImportLog
from .resources import Resource, Subject, is_loinc, objects, text
from .times import (
    OLDEST,
    Clock,
    as_of,
    day,
    days_before,
    rough_day,
    time_of,
    to_datetime,
)
from .units import UnitError, unit_in_words

if TYPE_CHECKING:
    from fhir.resources.R4B.observation import Observation, ObservationComponent
    from fhir.resources.R4B.quantity import Quantity

    Part: TypeAlias = Observation | ObservationComponent


# -- in words --------------------------------------------------------------------------------------
# The newest answer on each topic counts, however old it is; a pregnancy and breastfeeding only as
# long as they can last. An answer whose code is not known here is given in its own words. Dates do
# not go into the record: ages of answers and days do.

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
_NOT_PREGNANT = "not pregnant"
# Those of the International Patient Summary and of LOINC.
_PREGNANCIES: Mapping[str, str] = {
    "77386006": "pregnant", "LA15173-0": "pregnant",
    "146799005": "possibly pregnant", "152231000119106": "possibly pregnant",
    "60001007": _NOT_PREGNANT, "LA26683-5": _NOT_PREGNANT,
}  # fmt: skip
_BREASTFEEDING = dict.fromkeys(
    ("LA29252-6", "169741004", "true", "Y", "LA33-6", "373066001"), "breastfeeding"
)
_FINAL = frozenset({"final", "amended", "corrected"})
_NOT_FINAL = "its status is not final, amended or corrected"
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
        if observation.status not in _FINAL:
            return None, _NOT_FINAL
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


_PREGNANCY = Topic("pregnancy", HISTORY, "82810-3", _pregnancy, _TERM)
_DUE_DATE = Topic("due date", HISTORY, "11778-8 11779-6 11780-4", _due_date, _TERM)
_TOPICS = (
    _PREGNANCY,
    _DUE_DATE,
    Topic("breastfeeding", HISTORY, "63895-7", _breastfeeding, _TWO_YEARS),
    Topic("smoking", RISKS, "72166-2", _smoking),
)
TOPICS_BY_CODE: Mapping[str, Topic] = {
    code: topic for topic in _TOPICS for code in topic.codes.split()
}


# -- readings --------------------------------------------------------------------------------------

_PRESSURES = ("vital_signs.systolic", "vital_signs.diastolic")


@dataclass(frozen=True)
class _Observed:
    """What an Observation says, or the `problem` for which it says nothing."""

    code: str
    origin: Resource
    at: datetime | None
    issued: datetime = OLDEST
    problem: str = ""

    @property
    def rank(self) -> tuple[datetime, datetime, bool]:
        """What orders Observations: the time, then the issue, then a final one."""
        return (self.at or OLDEST, self.issued, self.problem != _NOT_FINAL)


@dataclass(frozen=True, kw_only=True)
class Measurement(_Observed):
    """What an Observation, or a component of one, says of a field."""

    field: Field
    quantity: Quantity | None = None

    @property
    def path(self) -> str:
        return self.field.path

    @property
    def said(self) -> object:
        """What it says, to compare with another of the same moment."""
        if self.problem or self.quantity is None or self.quantity.value is None:
            return self.problem
        try:
            return self.field.number(self.quantity)
        except UnitError as error:
            return str(error)


@dataclass(frozen=True, kw_only=True)
class Answer(_Observed):
    """What an Observation says on a topic."""

    topic: Topic
    words: Wording | None = None

    @property
    def path(self) -> str:
        return self.topic.path

    @property
    def said(self) -> object:
        """What it says, to compare with another of the same moment."""
        return self.words or self.problem


def read_observation(
    log: ImportLog,
    table: Codes,
    resource: Resource,
    observation: Observation,
    not_of_blood: str = "",
) -> list[Measurement | Answer]:
    """What an Observation and its components say of fields, or on a topic.

    `not_of_blood` says why it is no result of blood, where that is known.
    """
    at = time_of(observation)
    issued = to_datetime(observation.issued) if observation.issued else OLDEST
    if code := _code_in(TOPICS_BY_CODE, observation):
        topic = TOPICS_BY_CODE[code]
        words, problem = topic.read_answer(observation, log.clock.today)
        return [Answer(code, resource, at, issued, problem, topic=topic, words=words)]
    readings: dict[str, Measurement] = {}
    for part, raw in _parts(log, table, resource, observation):
        code = _code_in(table, part)
        field = table[code]
        if not is_usual_site(field, observation.bodySite):
            log.leave_out(resource, "its body site is not the usual one", code, at)
        elif field.path in readings:
            several = "it has several values, perhaps of several postures"
            readings[field.path] = replace(readings[field.path], problem=several)
        else:
            problem = _NOT_FINAL
            if observation.status in _FINAL:
                problem = _no_number(raw, part)
            if field.of_blood and not_of_blood:
                problem = not_of_blood
            readings[field.path] = Measurement(
                code,
                resource,
                at,
                issued,
                problem,
                field=field,
                quantity=part.valueQuantity,
            )
    return list(readings.values())


def _parts(
    log: ImportLog, table: Codes, resource: Resource, observation: Observation
) -> Iterator[tuple[Part, Mapping[str, Any]]]:
    """The Observation and its components whose codes are known and count, with their JSON.

    The log records the components that are left out: one of a panel that is not known for it, and
    one whose code is not read.
    """
    if _code_in(table, observation) and not _is_panel(resource.raw):
        if reason := _ambiguous(table, observation):
            name = _code_in(table, observation)
            log.leave_out(resource, reason, name, time_of(observation))
        else:
            yield observation, resource.raw
    panels = codes_of(observation.code)
    components = observation.component or ()
    for component, raw in zip(
        components, objects(resource.raw.get("component")), strict=False
    ):
        codes = codes_of(component.code, LOINC)
        name = next(filter(is_loinc, codes), "without a LOINC code")
        if not _code_in(table, component):
            log.add_aside(resource, "component", f"a component is not read: {name}")
        elif reason := _ambiguous(table, component):
            log.leave_out(resource, reason, name, part="component")
        elif not is_of_panel(table[codes[0]], panels):
            reason = (
                f"it is a part of something that is not known for it: {resource.name}"
            )
            log.leave_out(resource, reason, name, part="component")
        else:
            yield component, raw


def _ambiguous(table: Codes, part: Part) -> str:
    """Why it is not clear what a part with a known code is a number of; empty if it is."""
    codes = codes_of(part.code, LOINC)
    fields = {table[code].path: table[code] for code in codes if code in table}
    if len(fields) > 1 or any(code not in table for code in codes):
        return "its codes mean more than one thing"
    for field in fields.values():
        if not is_usual_concept(field, part.code):
            return "its code of SNOMED CT is not one that is known for it"
    return ""


def _code_in(table: Mapping[str, object], part: Part) -> str:
    """The first of a part's LOINC codes that a table has; empty if it has none."""
    for code in codes_of(part.code, LOINC):
        if code in table:
            return code
    return ""


def _is_panel(raw: Mapping[str, Any]) -> bool:
    """Whether an Observation has no value of its own, but its parts do."""
    if "component" not in raw and "hasMember" not in raw:
        return False
    return not any(
        name.startswith("value") or name == "dataAbsentReason" for name in raw
    )


def _no_number(raw: Mapping[str, Any], part: Part) -> str:
    """Why a value is not a number; empty if it is one."""
    if "dataAbsentReason" in raw:
        return "its value is absent (dataAbsentReason)"
    if "modifierExtension" in raw:
        return "a component has a modifierExtension, which may change it"
    for name in part.elements_sequence():
        if name.startswith("value") and name != "valueQuantity" and name in raw:
            return f"it is not a number with a unit ({name})"
    if part.valueQuantity is None or part.valueQuantity.value is None:
        return "it has no value"
    if part.valueQuantity.comparator:
        return "it is a bound (such as <) and not a number"
    return ""


def unread(resource: Resource, reason: str, table: Codes) -> Iterator[Measurement]:
    """The readings that an Observation would have been: it may still be the newest."""
    at = _rough_time(resource.raw)
    own_codes = resource.own_codes()
    codes = [str(code) for code in resource.codes() or () if code]
    for code in sorted(codes):
        if code not in table:
            continue
        if code in own_codes or is_of_panel(table[code], own_codes):
            yield Measurement(code, resource, at, problem=reason, field=table[code])


def _rough_time(raw: Mapping[str, Any]) -> datetime | None:
    """The day of an unchecked Observation, as `effective` looks for it; None if it has none."""
    if "effectiveTiming" in raw:
        return None
    times = [raw.get("effectiveDateTime"), raw.get("effectiveInstant")]
    period = raw.get("effectivePeriod")
    if isinstance(period, Mapping):
        times += [period.get("end"), period.get("start")]
    times.append(raw.get("issued"))
    for moment in times:
        if moment and (at := rough_day(moment)):
            return at
    return None


# -- one point in time -----------------------------------------------------------------------------

Number: TypeAlias = "int | float"


@dataclass(frozen=True)
class Statement:
    """What a reading or an answer becomes in words, and in which field."""

    field: str
    words: Wording
    observed: Measurement | Answer


def newest(
    observed: Iterable[Measurement | Answer], log: ImportLog
) -> tuple[dict[str, dict[str, Number]], list[Statement]]:
    """The newest numbers in their fields' units by group and name, and what is sent in words.

    A number is of the time of the record if it lies within its field's window of that day or
    moment, and within the same window of the newest number of its kind.
    """
    readings, answers = _newest_by_path(observed, log)
    statements = _statements(answers, log)
    _keep_one_time(readings, log)
    _keep_one_pressure(readings, log)
    values: dict[str, dict[str, Number]] = {}
    for path, (value, line) in _numbers(readings, log).items():
        reading = readings[path]
        group = values.setdefault(reading.field.group, {})
        group[reading.field.name] = value
        log.lines.append(line)
        if path in _BODY:  # for the requests that have no vital signs
            field, form = _BODY[path]
            words = Wording(form.format(value, as_of(line.days)))
            statements.append(Statement(field, words, reading))
    return values, statements


_BODY = {
    "vital_signs.weight": (HISTORY, "observation: weight {:g} kg{}"),
    "vital_signs.bmi": (RISKS, "body mass index {:.3g} kg/m2"),
}


def _newest_by_path(
    observed: Iterable[Measurement | Answer], log: ImportLog
) -> tuple[dict[str, Measurement], dict[str, Answer]]:
    """The newest reading of each field, and the newest answer on each topic."""
    by_path: dict[str, list[Measurement | Answer]] = {}
    for item in sorted(observed, key=lambda item: item.origin.order):
        by_path.setdefault(item.path, []).append(item)
    readings = {}
    answers = {}
    for path, items in by_path.items():
        item = _newest(items, log)
        if isinstance(item, Measurement):
            readings[path] = item
        else:
            answers[path] = item
    return readings, answers


def _newest(items: list[Measurement | Answer], log: ImportLog) -> Measurement | Answer:
    """The newest of one path; where two of its moment differ, it says nothing."""
    rank = max(item.rank for item in items)
    newest = [item for item in items if item.rank == rank]
    *others, chosen = newest
    differs = any(item.said != chosen.said for item in others)
    for item in items:
        if item.rank != rank:
            log.leave_out(item.origin, NEWER, item.code, item.at)
    for item in others:
        log.leave_out(item.origin, _TIED if differs else SAME, item.code, item.at)
    return replace(chosen, problem=_TIED) if differs else chosen


_TIED = "there is another of the same moment, which says something else"


def _statements(answers: Mapping[str, Answer], log: ImportLog) -> list[Statement]:
    """The answers in words; the log records those that are left out."""
    statements = []
    for topic in _TOPICS:
        answer = answers.get(topic.path)
        if answer is None:
            continue
        if topic is _DUE_DATE and _has_ended(answer, answers.get(_PREGNANCY.path)):
            log.leave_out(answer.origin, NEWER, answer.code, answer.at)
        elif answer.words and not answer.problem:
            statements.append(Statement(topic.field, answer.words, answer))
        else:
            log.leave_out(answer.origin, answer.problem, answer.code, answer.at)
    return statements


def _has_ended(due_date: Answer, pregnancy: Answer | None) -> bool:
    """Whether a newer answer denies the pregnancy of a due date."""
    if pregnancy is None or pregnancy.words is None:
        return False
    return _NOT_PREGNANT in pregnancy.words.text and pregnancy.rank >= due_date.rank


def _keep_one_time(readings: dict[str, Measurement], log: ImportLog) -> None:
    """Leave out the readings that are no numbers, or not of the time of the record."""
    newest_by_kind: dict[str, datetime] = {}
    for reading in readings.values():
        kind = reading.field.kind
        at = reading.at or OLDEST
        newest_by_kind[kind] = max(newest_by_kind.get(kind, OLDEST), at)
    for path, reading in list(readings.items()):
        newest_at = newest_by_kind[reading.field.kind]
        reason = reading.problem or _out_of_time(reading, newest_at, log.clock)
        if reason:
            log.leave_out(reading.origin, reason, reading.code, reading.at)
            del readings[path]


def _out_of_time(reading: Measurement, newest_at: datetime, clock: Clock) -> str:
    """Why a number is not of the time of the record; empty if it is."""
    width = reading.field.window
    if width is None:
        return ""
    if reading.at is None:
        return "it does not say when it was made"
    if width.days > 1:
        window = f"window of {width.days} days"
    else:
        window = f"window of {width.total_seconds() / 3600:g} hours"
    if clock.age_of(reading.at) > width:
        return f"older than its {window}"
    if newest_at - reading.at > width:
        return f"further from the newest of its kind than its {window}"
    return ""


def _keep_one_pressure(readings: dict[str, Measurement], log: ImportLog) -> None:
    """Leave out the older pressure of two moments: without its pair, a number means nothing."""
    pair = [readings[path] for path in _PRESSURES if path in readings]
    if len(pair) < len(_PRESSURES):
        return
    older, newer = sorted(pair, key=lambda reading: reading.rank)
    if older.at != newer.at:
        reason = "the other pressure was measured later"
        log.leave_out(older.origin, reason, older.code, older.at)
        del readings[older.path]


def _numbers(
    readings: Mapping[str, Measurement], log: ImportLog
) -> dict[str, tuple[Number, FhirTaken]]:
    """The numbers in their fields' units, in one order whatever that of the bundle."""
    numbers = {}
    for path in dict.fromkeys((*ORDER, *readings)):
        if path not in readings:
            continue
        if number := _in_its_unit(readings[path], log):
            numbers[path] = number
    if _are_exchanged(numbers):
        for path in _PRESSURES:
            reading = readings[path]
            log.leave_out(reading.origin, NOT_BELOW, reading.code, reading.at)
            del numbers[path]
    return numbers


def _in_its_unit(
    reading: Measurement, log: ImportLog
) -> tuple[Number, FhirTaken] | None:
    """A number in the unit of its field, with its report line; None if it cannot be converted."""
    field = reading.field
    quantity = reading.quantity
    if quantity is None or quantity.value is None:
        return None  # never so here: without a number a reading has a problem
    sent_unit = field.sent_unit or field.unit
    try:
        value, unit = field.number(quantity)
    except UnitError as error:
        words = unit_in_words(sent_unit)
        problem = f"{error}; it is sent {f'in {words}' if words else 'without a unit'}"
        log.leave_out(reading.origin, problem, reading.code, reading.at)
        return None
    line = log.line(reading.origin, field.path, reading.code, reading.at)
    if unit == sent_unit:
        return value, replace(line, unit=sent_unit)
    return value, replace(line, unit=sent_unit, converted_from=unit)


def _are_exchanged(numbers: Mapping[str, tuple[Number, FhirTaken]]) -> bool:
    """Whether the diastolic pressure is not below the systolic one."""
    if any(path not in numbers for path in _PRESSURES):
        return False
    systolic, diastolic = (numbers[path][0] for path in _PRESSURES)
    return diastolic >= systolic


# -- specimens -------------------------------------------------------------------------------------
# What a specimen says of a result: whose it is, and whether it is of blood.
#
# The laboratory codes of the table are all of blood. The same substance in urine is another
# result.

# Kinds of blood, serum and plasma: of SNOMED CT and of HL7's table 0487.
_OF_BLOOD = frozenset({
    "119297000", "119364003", "119361006", "122555007", "122552005", "122554006", "119298005",
    "119300005", "258580003", "258450006", "258500001", "441510007", "258590006",
    "BLD", "BLDA", "BLDC", "BLDCAP", "BLDV", "BLDMV", "SER", "PLAS", "PPP", "PRP", "WB",
})  # fmt: skip
_BLOOD = re.compile(
    r"\b(?:whole ?|voll)?(?:blood|blut|bloed|sang|sangre|sangue|serum|siero|suero|s[ée]rum|"
    r"plasma|plasme)",
    re.IGNORECASE,
)


def problem_of_specimen(observation: Resource, subject: Subject) -> tuple[str, str]:
    """Why an Observation is not of this patient, and why it is not of blood; empty if it may be."""
    specimen = next(objects([observation.raw.get("specimen")]), None)
    if specimen is None:
        return "", ""
    whose = ""
    kinds: list[object] = [{"text": specimen.get("display")}]
    found = subject.resolved(text(specimen.get("reference")), observation)
    if found is not None:
        raw, holder = found
        kinds.append(raw.get("type"))
        if subject.is_another(raw, "Specimen", holder):
            whose = "its specimen is of somebody else"
    said = list(_said(kinds))
    if not said or any(word in _OF_BLOOD or _BLOOD.search(word) for word in said):
        return whose, ""
    return whose, "its specimen is not known to be of blood"


def _said(concepts: list[object]) -> Iterator[str]:
    """The codes and words of unchecked concepts."""
    for concept in objects(concepts):
        for part in (concept, *objects(concept.get("coding"))):
            for name in ("code", "display", "text"):
                if word := text(part.get(name)):
                    yield word
