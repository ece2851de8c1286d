"""What the patient takes now, with its strength and how it is taken."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any

from .bundle import ElementError, Resource, checked, objects
from .concepts import NOTHING, Words, says_nothing, typed_words, words_of
from .extensions import NOT_TAKEN, extensions_of
from .fields import MEDICATIONS
from .importing import Import
from .times import day, is_past

_PROPOSED = frozenset({"proposal", "plan", "option"})


def read_medication(
    importing: Import, resource: Resource, medication: Any
) -> str | None:
    """Take an active medication, if it is current on the day of the record."""
    requested = resource.kind == "MedicationRequest"
    if requested and medication.doNotPerform:
        return "it says that the medication is not to be given (doNotPerform)"
    if requested and medication.intent in _PROPOSED:
        return "it is a proposal, a plan or an option"
    if NOT_TAKEN in extensions_of(resource).decisions:
        return "an extension says that the patient does not take it"
    timed = _request_is_over if requested else _statement_is_over
    if reason := timed(medication, importing.clock.today):
        return reason
    if says_nothing(medication.medicationCodeableConcept):
        return NOTHING
    words = words_of(medication.medicationCodeableConcept)
    reference = medication.medicationReference
    if not words and reference is not None:
        words = _referred(importing, resource, reference)
    if not words:
        return "it names no medication, or refers to one that is not in the record"
    dosages = medication.dosageInstruction if requested else medication.dosage
    details = [_dosage(importing, resource, dosage) for dosage in dosages or ()]
    return importing.take(
        MEDICATIONS, resource, words, details=[*filter(None, details)]
    )


def _dosage(importing: Import, resource: Resource, dosage: Any) -> Words | None:
    """A dosage as it was typed; one without a text is counted as not sent."""
    text = typed_words(dosage.text)
    if text is None:
        importing.beside(resource, "dosage", "a dosage that has no text is not sent")
    return text


_NOT_BEGUN = "it has not begun yet"


def _statement_is_over(statement: Any, today: date) -> str:
    """Why a statement about a medication is not about this day; empty where it is."""
    period = statement.effectivePeriod
    if period and is_past(period.end, today):
        return "it has ended (effectivePeriod.end)"
    begun = statement.effectiveDateTime or (period and period.start)
    return _NOT_BEGUN if begun and day(begun) > today else ""


def _request_is_over(request: Any, today: date) -> str:
    """Why a request is not current; empty where it is."""
    dispensing = request.dispenseRequest
    validity = dispensing.validityPeriod if dispensing else None
    if validity and is_past(validity.end, today):
        return "its validity has ended (dispenseRequest.validityPeriod)"
    bounds = [_bounds(dosage) for dosage in request.dosageInstruction or ()]
    if bounds and all(period and is_past(period.end, today) for period in bounds):
        return "the bounds of its dosage have ended (dosageInstruction.timing)"
    periods = [*bounds, *filter(None, [validity])]
    return (
        _NOT_BEGUN
        if periods and all(_begins_later(period, today) for period in periods)
        else ""
    )


def _begins_later(period: Any, today: date) -> bool:
    """Whether a period is known to begin after this day."""
    return bool(period and period.start and day(period.start) > today)


def _bounds(dosage: Any) -> Any:
    """The period of a dosage; None where it is not told as such."""
    repeat = dosage.timing.repeat if dosage.timing else None
    return repeat.boundsPeriod if repeat else None


def _referred(
    importing: Import, resource: Resource, reference: Any
) -> tuple[Words, ...]:
    """The medication that a reference names: contained, in the record, or by its display only."""
    name = str(reference.reference or "")
    raw = _contained(resource, name)
    if raw is None and name in importing.medications:
        raw = importing.medications[name].raw
    words: tuple[Words, ...] = ()
    if raw is not None:
        if importing.options.leaves_out(raw):
            raise ElementError("the application never sends it (leave_out)")
        medication = checked("Medication", raw)
        if says_nothing(medication.code):
            return ()
        words = words_of(medication.code)
        for ingredient in (medication.ingredient or ()) if words else ():
            if contents := _contents(ingredient):
                words = (*words, contents)
            else:
                importing.beside(resource, "ingredient", "an ingredient has no text")
    display = typed_words(reference.display)
    return words or ((display,) if display else ())


def _contents(ingredient: Any) -> Words | None:
    """An ingredient with its strength, as it is told: contains metformin 500 mg / 1 tablet."""
    names = words_of(ingredient.itemCodeableConcept)[:1]
    strength = ingredient.strength
    amounts = [
        f"{part.value:g} {part.unit or part.code}"
        for part in (strength and strength.numerator, strength and strength.denominator)
        if part and part.value is not None and (part.unit or part.code)
    ]
    parts = [word.text for word in names]
    if amounts:
        parts.append(" / ".join(amounts))
    typed = any(word.typed for word in names)
    return Words(f"contains {' '.join(parts)}", typed) if parts else None


def _contained(resource: Resource, name: str) -> Mapping[str, Any] | None:
    for inner in objects(resource.raw.get("contained")):
        if inner.get("resourceType") == "Medication" and name == f"#{inner.get('id')}":
            return inner
    return None
