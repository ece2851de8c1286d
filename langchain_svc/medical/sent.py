"""What a result may say of its request: names and counts of the fields."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic.alias_generators import to_camel

from .fhir import FhirReport, known_reading
from .fhir.report import OF_OTHERS
from .fhir.wording import ADMINISTRATIVE, counted, kind_in_words, spaced
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
_GROUPS = {"vitalSigns": VitalSigns.group, "labResults": LabResults.group}


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
        return f"{spaced(name)} ({_readings(_GROUPS[name], value, own_readings)})"
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
