"""What the patient takes now, with its strength and how it is taken."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Any

from .bundle import Resource, checked, objects
from .concepts import NOTHING, Words, says_nothing, typed_words, words_of
from .fields import MEDICATIONS
from .importing import Import
from .report import Settled
from .times import day, is_later, is_past

_PROPOSED = frozenset({"proposal", "plan", "option"})


def read_medication(importing: Import, resource: Resource, medication: Any) -> str | None:
    """Take an active medication, if it is current on the day of the record."""
    requested = resource.kind == "MedicationRequest"
    if requested and medication.doNotPerform:
        return Settled("it says that the medication is not to be given (doNotPerform)")
    if requested and medication.intent in _PROPOSED:
        return Settled("it is a proposal, a plan or an option")
    timed = _request_is_over if requested else _statement_is_over
    if reason := timed(medication, importing.today):
        return reason
    if says_nothing(medication.medicationCodeableConcept):
        return NOTHING
    text_first = importing.options.typed_texts == "take"
    words = words_of(medication.medicationCodeableConcept, text_first=text_first)
    if words is None and medication.medicationReference is not None:
        words = _referred(
            importing, resource, medication.medicationReference, text_first=text_first
        )
    if words is None:
        return "it names no medication, or refers to one that is not in the record"
    dosages = (medication.dosageInstruction if requested else medication.dosage) or ()
    told = [text for one in dosages if (text := typed_words(one.text))]
    note = "" if len(told) == len(dosages) else "a dosage that has no text is not sent"
    return importing.take(MEDICATIONS, resource, words, details=told, note=note)


_NOT_BEGUN = Settled("it has not begun yet")


def _statement_is_over(statement: Any, today: date) -> str:
    """Why a statement about a medication is not about this day; empty where it is."""
    period = statement.effectivePeriod
    if period and is_past(period.end, today):
        return Settled("it has ended (effectivePeriod.end)")
    begun = statement.effectiveDateTime or (period and period.start)
    return _NOT_BEGUN if begun and day(begun) > today else ""


def _request_is_over(request: Any, today: date) -> str:
    """Why a request is not current; empty where it is."""
    dispensing = request.dispenseRequest
    validity = dispensing.validityPeriod if dispensing else None
    if validity and is_past(validity.end, today):
        return Settled("its validity has ended (dispenseRequest.validityPeriod)")
    bounds = [_bounds(one, request.authoredOn) for one in request.dosageInstruction or ()]
    if bounds and all(end is not None and is_past(end, today) for _, end in bounds):
        return Settled("the bounds of its dosage have ended (dosageInstruction.timing)")
    starts = [start for start, _ in bounds] + ([validity.start] if validity else [])
    return _NOT_BEGUN if starts and all(is_later(start, today) for start in starts) else ""


_DAYS_OF: Mapping[str, float] = {"s": 0, "min": 0, "h": 0.05, "d": 1, "wk": 7, "mo": 31, "a": 366}


def _bounds(dosage: Any, authored: Any) -> tuple[Any, Any]:
    """When a dosage begins and ends, each None where that is not told."""
    repeat = dosage.timing.repeat if dosage.timing else None
    if repeat is None:
        return None, None
    if repeat.boundsPeriod:
        return repeat.boundsPeriod.start, repeat.boundsPeriod.end
    length = repeat.boundsDuration
    days = _DAYS_OF.get(str(length.code)) if length and not length.comparator else None
    if days is None or authored is None or not 0 <= (length.value or -1) * days < _A_LIFE:
        return None, None
    return None, day(authored) + timedelta(days=float(length.value) * days)


_A_LIFE = 36_600  # days


def _referred(
    importing: Import, resource: Resource, reference: Any, *, text_first: bool
) -> Words | None:
    """The medication that a reference names: contained, in the record, or by its display only."""
    name = str(reference.reference or "")
    raw = _contained(resource, name)
    if raw is None and name in importing.medications:
        raw = importing.medications[name].raw
    words = None
    if raw is not None:
        held = checked("Medication", raw)
        if says_nothing(held.code):
            return None
        words = words_of(held.code, text_first=text_first)
        if words and not any(letter.isdigit() for letter in words.text):
            words = Words(" ".join((words.text, *_strengths(held))), words.typed)
    return words or typed_words(reference.display)


def _strengths(medication: Any) -> Iterator[str]:
    """The strength of a medication's only ingredient, as it is told: 500 mg / 1 tablet."""
    strengths = [one.strength for one in medication.ingredient or ()]
    parts = strengths[0] if len(strengths) == 1 else None
    for sign, part in (("", parts and parts.numerator), ("/ ", parts and parts.denominator)):
        if part and part.value is not None and (part.unit or part.code):
            yield f"{sign}{part.value:g} {part.unit or part.code}"


def _contained(resource: Resource, name: str) -> Mapping[str, Any] | None:
    for one in objects(resource.raw.get("contained")):
        if one.get("resourceType") == "Medication" and name == f"#{one.get('id')}":
            return one
    return None
