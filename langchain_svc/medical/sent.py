"""What may be said of a request: names and counts of what was sent, and the values to mask."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic.alias_generators import to_camel

from .fhir import FhirReport
from .patient import Demographics, LabResults, VitalSigns

Fields = Mapping[str, Any]

_READINGS: Mapping[str, frozenset[str]] = {
    name: frozenset(map(to_camel, kind.model_fields))
    for name, kind in (
        ("patientContext", Demographics),
        ("vitalSigns", VitalSigns),
        ("labResults", LabResults),
    )
}


def names_sent(body: Fields) -> tuple[str, ...]:
    """The names of a request's fields; readings that are not documented count as `.*`."""
    names: list[str] = []
    for name, value in body.items():
        known = _READINGS.get(name)
        if known is None:
            names.append(name)
        else:
            names += dict.fromkeys(
                f"{name}.{key if key in known else '*'}" for key in value
            )
    return tuple(names)


# -- names and counts in words --------------------------------------------------------------------

_ENTRIES = {
    "symptoms": "symptom",
    "currentMedications": "medication",
    "riskFactors": "risk factor",
    "images": "image",
}
_IN_HISTORY = {  # else a condition
    **{kind: kind for kind in ("allergy", "intolerance", "observation", "procedure")},
    "allergy as written": "typed text",
    "intolerance as written": "typed text",
}
_RESOURCES = {
    "Observation": "result",
    "MedicationStatement": "medication",
    "MedicationRequest": "medication",
    "AllergyIntolerance": "allergy",
    "DiagnosticReport": "report",
    "text": "typed text",
}
_MOST_CODES = 20


def in_words(fields: Fields) -> str:
    """The fields of a request by names and counts: "age, 2 conditions, 1 allergy"."""
    return ", ".join(_part(name, value) for name, value in fields.items()) or "nothing"


def of_record(record: Fields, names: Iterable[str], report: FhirReport | None) -> str:
    """What of a record was sent, what was not, and what its import had left out."""
    names = [*names]
    sent = {name: record[name] for name in names if name in record}
    missing = [
        _words(name) for name in names if name not in record and name != "imagingType"
    ]
    told = [f"Sent of the patient's record: {in_words(sent)}."]
    if further := {
        name: record[name] for name in record if name not in {*names, "imagingType"}
    }:
        told.append(f"Not taken by this endpoint: {in_words(further)}.")
    if missing:
        told.append(f"Not sent: {', '.join(missing)}.")
    if report is not None and (left_out := _left_out(report)):
        told.append(f"Left out when the record was read: {left_out}.")
    if report is not None and (unread := _not_read(report)):
        told.append(f"Not read: {unread}.")
    return " ".join(told)


def _left_out(report: FhirReport) -> str:
    counts: Counter[str] = Counter()
    for kind, count in report.missing().items():
        counts[_RESOURCES.get(kind) or _words(kind)] += count
    return ", ".join(_number(count, kind) for kind, count in counts.items())


def _not_read(report: FhirReport) -> str:
    """What is of types and codes that are not read; results by their codes."""
    counts: Counter[str] = Counter()
    codes: list[str] = []
    for name, count in report.not_read.items():
        kind, _, code = name.partition(" ")
        if kind == "of":  # other patients
            continue
        counts[_RESOURCES.get(kind) or _words(kind)] += count
        if code:
            codes.append(code)
    listed = ", ".join(codes[:_MOST_CODES])
    if further := len(codes) - _MOST_CODES:
        listed += f" and {_number(further, 'further code')}" if further > 0 else ""
    parts = {kind: _number(count, kind) for kind, count in counts.items()}
    if listed:
        parts["result"] += f" ({listed})"
    return ", ".join(parts.values())


def _part(name: str, value: Any) -> str:
    if name == "medicalHistory":
        labels = (line.partition(":")[0] for line in value)
        kinds = Counter(_IN_HISTORY.get(label, "condition") for label in labels)
        return ", ".join(_number(count, kind) for kind, count in kinds.items())
    if name == "patientContext":
        return in_words(value)
    if isinstance(value, Mapping):
        listed = [_words(key) for key in value if key in _READINGS[name]]
        if further := len(value) - len(listed):
            listed.append(_number(further, "other" if listed else "reading"))
        return f"{_words(name)} ({', '.join(listed)})"
    if isinstance(value, (list, tuple)):
        return _number(len(value), _ENTRIES[name])
    return _words(name)


def _number(count: int, word: str) -> str:
    plural = f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
    return f"{count:,} {word if count == 1 else plural}"


def _words(name: str) -> str:
    """`heartRate` and `HeartRate` are both "heart rate"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


# -- values ---------------------------------------------------------------------------------------

_IMAGE_ENDS = 4_000
_ROUNDED_FROM = 10


def values_sent(body: Fields) -> tuple[str, ...]:
    """Every value of a request as a text, for masking what an error of the service says of it.

    Of an image only both ends: an answer that quotes it begins or ends with them.
    """
    return tuple(
        _values(body, frozenset(body) | frozenset().union(*_READINGS.values()))
    )


def _values(value: Any, documented: frozenset[str]) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, held in value.items():
            if name not in documented:
                yield name  # what was measured tells of the patient too
            yield from _values(held, documented)
    elif isinstance(value, (list, tuple)):
        for held in value:
            yield from _values(held, documented)
    elif isinstance(value, str):
        yield value if len(value) <= 2 * _IMAGE_ENDS else value[:_IMAGE_ENDS]
        if len(value) > 2 * _IMAGE_ENDS:
            yield value[-_IMAGE_ENDS:]
    else:
        yield str(int(value) if value == int(value) else value)
        if abs(value) > _ROUNDED_FROM:
            yield str(round(value))  # as an answer may quote it
