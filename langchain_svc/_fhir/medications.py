"""What the patient takes now."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from .bundle import Resource, checked, objects
from .concepts import NOTHING, Words, says_nothing, typed_words, words_of
from .importing import MEDICATIONS, Import
from .times import day, is_past


def read_medication(importing: Import, resource: Resource, medication: Any) -> str | None:
    """Take a medication that is active on the day of the record."""
    if medication.status != "active":
        return "it is not active"
    if resource.kind == "MedicationRequest":
        if medication.doNotPerform:
            return "it says that the medication is not to be given (doNotPerform)"
        if medication.intent in {"proposal", "plan", "option"}:
            return "it is a proposal, a plan or an option"
    elif reason := _not_now(medication, importing.today):
        return reason
    if says_nothing(medication.medicationCodeableConcept):
        return NOTHING
    words = words_of(medication.medicationCodeableConcept, importing.identifying)
    if words is None and medication.medicationReference is not None:
        words = _referred(importing, resource, medication.medicationReference)
    if words is None:
        return "it names no medication, or refers to one that is not in the record"
    return importing.take(MEDICATIONS, resource, words)


def _not_now(statement: Any, today: date) -> str | None:
    """Why a statement about a medication is not about this day."""
    period = statement.effectivePeriod
    if period and is_past(period.end, today):
        return "it has ended (effectivePeriod.end)"
    begun = statement.effectiveDateTime or (period and period.start)
    if begun and day(begun) > today:
        return "it has not begun yet"
    return None


def _referred(importing: Import, resource: Resource, reference: Any) -> Words | None:
    """The medication that a reference names: contained, in the record, or by its display only."""
    name = str(reference.reference or "")
    place, raw = f"{resource.place}.contained", _contained(resource, name)
    if raw is None and name in importing.medications:
        found = importing.medications[name]
        place, raw = found.place, found.raw
    words = None
    if raw is not None:
        code = checked("Medication", raw, place).code
        if says_nothing(code):
            return None
        words = words_of(code, importing.identifying)
    return words or typed_words(reference.display, importing.identifying)


def _contained(resource: Resource, name: str) -> Mapping[str, Any] | None:
    for one in objects(resource.raw.get("contained")):
        if one.get("resourceType") == "Medication" and name == f"#{one.get('id')}":
            return one
    return None
