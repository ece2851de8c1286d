"""What a result may say of its request: names and counts of the fields."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
        documented = _READINGS.get(name)
        if documented is None:
            names.append(name)
            continue
        keys = (key if key in documented else "*" for key in value)
        names += dict.fromkeys(f"{name}.{key}" for key in keys)
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
    """Which parts of a record were sent and which were not, and what its import had left out."""
    fields_of_endpoint = [*names]
    sent_fields = {name: record[name] for name in fields_of_endpoint if name in record}
    sentences = [f"Sent of the patient's record: {in_words(sent_fields)}."]
    # The imaging type counts neither as not taken nor as missing: it describes the images.
    further = {
        name: value
        for name, value in record.items()
        if name not in fields_of_endpoint and name != "imagingType"
    }
    if further:
        sentences.append(f"Not taken by this endpoint: {in_words(further)}.")
    missing = [
        _words(name)
        for name in fields_of_endpoint
        if name not in record and name != "imagingType"
    ]
    if missing:
        sentences.append(f"Not sent: {', '.join(missing)}.")
    if report is not None:
        left_out = _left_out(report)
        if left_out:
            sentences.append(f"Left out when the record was read: {left_out}.")
        unread = _not_read(report)
        if unread:
            sentences.append(f"Not read: {unread}.")
    return " ".join(sentences)


def _left_out(report: FhirReport) -> str:
    counts: Counter[str] = Counter()
    for kind, count in report.missing().items():
        counts[_RESOURCES.get(kind) or _words(kind)] += count
    return ", ".join(_number(count, kind) for kind, count in counts.items())


def _not_read(report: FhirReport) -> str:
    """The counts of types and codes that are not read; results with their codes."""
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
    further = len(codes) - _MOST_CODES
    if further > 0:
        listed += f" and {_number(further, 'further code')}"
    parts = {kind: _number(count, kind) for kind, count in counts.items()}
    if listed:
        parts["result"] += f" ({listed})"
    return ", ".join(parts.values())


def _part(name: str, value: object) -> str:
    if isinstance(value, Mapping):
        if name == "patientContext":
            return in_words(value)
        return f"{_words(name)} ({_readings(name, value)})"
    if isinstance(value, (list, tuple)):
        if name == "medicalHistory":
            return _history(value)
        return _number(len(value), _ENTRIES[name])
    return _words(name)


def _history(lines: Sequence[str]) -> str:
    kinds: Counter[str] = Counter()
    for line in lines:
        label = line.partition(":")[0]
        kinds[_IN_HISTORY.get(label, "condition")] += 1
    return ", ".join(_number(count, kind) for kind, count in kinds.items())


def _readings(name: str, values: Fields) -> str:
    """The documented readings of a group by name, and the number of the others."""
    parts = [_words(key) for key in values if key in _READINGS[name]]
    others = len(values) - len(parts)
    if others:
        parts.append(_number(others, "other" if parts else "reading"))
    return ", ".join(parts)


def _number(count: int, word: str) -> str:
    if count == 1:
        return f"1 {word}"
    plural = f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"
    return f"{count:,} {plural}"


def _words(name: str) -> str:
    """`heartRate` and `HeartRate` are both "heart rate"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
