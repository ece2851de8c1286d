"""The values of a request with their unit, source and age, for the reader of the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic.alias_generators import to_camel

from .fhir import FhirReport, FhirTaken, known_reading, usual_unit
from .fhir.wording import kind_in_words, reading_in_words, unit_in_words
from .patient import LabResults, VitalSigns

Fields = Mapping[str, Any]

_READINGS: Mapping[str, type[VitalSigns | LabResults]] = {
    "vitalSigns": VitalSigns,
    "labResults": LabResults,
}


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
            values.append(_of_record(name, value, lines.get((place, index))))
    return tuple(values)


def _of_record(name: str, value: object, line: FhirTaken | None) -> SentValue:
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
