"""What a result says of its request: the names and counts of its fields, and its values.

Names and counts stand in texts and receipts. The values, each with its unit, source and age, are
for the reader of the answer alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic.alias_generators import to_camel

from .fhir.fields import known_reading, reading_in_words, usual_unit
from .fhir.report import (
    ADMINISTRATIVE,
    OF_OTHERS,
    FhirReport,
    FhirTaken,
    counted,
    kind_in_words,
    spaced,
)
from .fhir.units import unit_in_words
from .patient import Demographics, LabResults, Record, VitalSigns
from .wire import Fields

_READINGS: Mapping[str, type[VitalSigns | LabResults]] = {
    "vitalSigns": VitalSigns,
    "labResults": LabResults,
}
# The fields of a request that are objects, by their names there.
_GROUPS: Mapping[str, type[Record]] = {"patientContext": Demographics, **_READINGS}


@dataclass(frozen=True, kw_only=True)
class SentValue:
    """One value that was sent.

    Attributes:
        name: Where it stood in the request, such as `vitalSigns.systolic`.
        value: The value itself: a number, a text or an image in base64.
        unit: Its unit in UCUM; "" where it has none or none is known.
        source: Where it is from: the resource of the FHIR record, "the record" where the
            application gave it, or "the tool call".
        code: The LOINC code by which it was known in a FHIR record; "" for others.
        days: How many days before the day of the record it was measured; None if nobody says.
    """

    name: str
    value: Any = field(repr=False)
    unit: str = ""
    source: str
    code: str = ""
    days: int | None = None

    def __str__(self) -> str:
        value = "a picture" if self.name == "images" else str(self.value)
        parts = filter(None, (value, unit_in_words(self.unit)))
        return f"{_name_in_words(self.name)}: {' '.join(parts)} ({self.source})"


def sent_values(
    arguments: Fields,
    record: Fields,
    names: Mapping[str, str],
    report: FhirReport | None,
) -> tuple[SentValue, ...]:
    """Every value of a request, those of the record last.

    Args:
        arguments: Of the tool call.
        record: The record's values by their names on the wire.
        names: Which fields of the record the endpoint takes, and their names in the request.
        report: What the record's import says of each value.
    """
    values: list[SentValue] = []
    paths_of_record = {path for name, path in names.items() if name in record}
    for path, argument in arguments.items():
        if path in paths_of_record:  # the record goes before the model's arguments
            continue
        for name, _, value in _leaves(path, argument):
            unit = _unit_of(name)
            values.append(
                SentValue(name=name, value=value, unit=unit, source="the tool call")
            )
    lines = _lines_by_place(report)
    for field_name, path in names.items():
        for place, index, value in _leaves(field_name, record.get(field_name, ())):
            name = path + place.removeprefix(field_name)
            values.append(_value_of_record(name, value, lines.get((place, index))))
    return tuple(values)


def _value_of_record(name: str, value: object, line: FhirTaken | None) -> SentValue:
    if line is None:
        return SentValue(
            name=name, value=value, unit=_unit_of(name), source="the record"
        )
    return SentValue(
        name=name,
        value=value,
        unit=line.unit,
        source=f"{kind_in_words(line.resource)}, entry {line.place}",
        code=line.code,
        days=line.days,
    )


def _leaves(path: str, value: object) -> Iterator[tuple[str, int, object]]:
    """The values below a field, each with its path and its index among those of this path."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _leaves(f"{path}.{name}", item)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield path, index, item
    else:
        yield path, 0, value


def _name_in_words(name: str) -> str:
    group, _, reading = name.partition(".")
    known = known_reading(_READINGS[group].group, reading) if group in _READINGS else ""
    return known or reading_in_words(reading or group)


def _unit_of(name: str) -> str:
    group, _, reading = name.partition(".")
    if group in _READINGS:
        return usual_unit(_READINGS[group].group, reading)
    if name in {"patientAge", "patientContext.age"}:
        return "a"
    return ""


def _lines_by_place(report: FhirReport | None) -> dict[tuple[str, int], FhirTaken]:
    """The lines of a report by the name of their field on the wire and their index there."""
    lines: dict[tuple[str, int], FhirTaken] = {}
    if report is None:
        return lines
    counts: Counter[str] = Counter()
    for line in report.taken:
        place = _place_on_wire(line.field)
        lines[place, counts[place]] = line
        counts[place] += 1
    return lines


def _place_on_wire(field: str) -> str:
    group, dot, reading = field.partition(".")
    kind = _READINGS.get(to_camel(group))
    if kind and reading in kind.model_fields:
        reading = to_camel(reading)
    return f"{to_camel(group)}{dot}{reading}"


# -- names and counts ------------------------------------------------------------------------------


def names_sent(body: Fields) -> tuple[str, ...]:
    """The names of a request's fields; readings that are not documented count as `.*`."""
    names: list[str] = []
    for name, value in body.items():
        group = _GROUPS.get(name)
        if group is None:
            names.append(name)
            continue
        documented = frozenset(map(to_camel, group.model_fields))
        keys = (key if key in documented else "*" for key in value)
        names += dict.fromkeys(f"{name}.{key}" for key in keys)
    return tuple(names)


_ENTRIES = {
    "symptoms": "symptom",
    "currentMedications": "medication",
    "riskFactors": "risk factor",
    "images": "image",
}
# What a text of the history begins with, else it is a condition.
_IN_HISTORY = frozenset({"allergy", "intolerance", "observation", "procedure"})
_AS_WRITTEN = " as written"
# What a clinician misses first.
_FIRST = (
    "medicalHistory", "currentMedications", "labResults", "vitalSigns",
    "allergy", "condition", "medication", "medication administration", "result", "procedure",
)  # fmt: skip


def in_words(fields: Fields, own_readings: Mapping[str, str] | None = None) -> str:
    """The fields of a request by names and counts: "age, 2 conditions, 1 allergy".

    Any names may stand in a request: readings are named that are known here, and `own_readings`,
    those that the application has named, by their paths.
    """
    parts = (_part(name, value, own_readings or {}) for name, value in fields.items())
    return ", ".join(parts) or "nothing"


def of_record(record: Fields, names: Iterable[str], report: FhirReport | None) -> str:
    """Which parts of a record were sent and which were not, and what its import had left out."""
    fields_of_endpoint = [*names]
    taken = report.taken if report else ()
    own_readings = {line.field: line.name for line in taken}
    sent_fields = {name: record[name] for name in fields_of_endpoint if name in record}
    sentences = [
        f"Sent of the patient's record: {in_words(sent_fields, own_readings)}."
    ]
    left_out = _left_out(report) if report else ""
    if left_out:
        sentences.append(f"Left out when the record was read: {left_out}.")
    # The imaging type counts neither as not taken nor as missing: it describes the images.
    further = {
        name: record[name]
        for name in sorted(record, key=_urgency)
        if name not in fields_of_endpoint and name != "imagingType"
    }
    if further:
        words = in_words(further, own_readings)
        sentences.append(f"Not taken by this endpoint: {words}.")
    missing = [
        spaced(name)
        for name in fields_of_endpoint
        if name not in record and name != "imagingType"
    ]
    if missing:
        sentences.append(f"Not sent: {', '.join(missing)}.")
    return " ".join(sentences)


def _left_out(report: FhirReport) -> str:
    """The counts of all that may be true of the patient's health and was not taken."""
    counts: Counter[str] = Counter()
    results: list[str] = []
    for line in report.left_out:
        if line.is_missing:
            kind = kind_in_words(line.part or line.resource)
            counts[kind] += 1
            if kind == "result" and line.name:
                results.append(line.name)
    for name, count in report.not_read.items():
        kind = name.partition(" ")[0]
        if name != OF_OTHERS and kind not in ADMINISTRATIVE:
            counts[kind_in_words(kind)] += count
    parts = {kind: counted(counts[kind], kind) for kind in sorted(counts, key=_urgency)}
    if results:
        parts["result"] += f" ({_named(results, counts['result'])})"
    return ", ".join(parts.values())


def _urgency(name: str) -> int:
    return _FIRST.index(name) if name in _FIRST else len(_FIRST)


def _part(name: str, value: object, own_readings: Mapping[str, str]) -> str:
    if isinstance(value, Mapping):
        if name == "patientContext":
            return in_words(value)
        return (
            f"{spaced(name)} ({_readings(_READINGS[name].group, value, own_readings)})"
        )
    if isinstance(value, (list, tuple)):
        if name == "medicalHistory":
            return _history(value)
        return counted(len(value), _ENTRIES[name])
    return spaced(name)


def _history(lines: Sequence[str]) -> str:
    kinds: Counter[str] = Counter()
    typed: Counter[str] = Counter()
    for line in lines:
        label = line.partition(":")[0]
        kind = label.removesuffix(_AS_WRITTEN)
        if kind not in _IN_HISTORY:
            kinds["condition"] += 1
            continue
        kinds[kind] += 1
        if kind != label:
            typed[kind] += 1
    parts = {kind: counted(count, kind) for kind, count in kinds.items()}
    for kind, count in typed.items():
        parts[kind] += f" ({count} typed)"
    return ", ".join(parts.values())


def _readings(group: str, values: Fields, own_readings: Mapping[str, str]) -> str:
    """The readings of a group by name, and the number of those whose names may say anything."""
    names = []
    for key in values:
        name = known_reading(group, key) or own_readings.get(f"{group}.{key}")
        if name:
            names.append(name)
    return _named(names, len(values))


def _named(names: Sequence[str], total: int) -> str:
    """Things by name, and the number of the others."""
    counts = Counter(names)
    parts = [f"{n} {name}" if n > 1 else name for name, n in counts.items()]
    others = total - len(names)
    if others:
        parts.append(counted(others, "other" if parts else "reading"))
    return ", ".join(parts)
