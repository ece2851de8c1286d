"""What the patient takes now, with strength and dosage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from .bundle import ElementError, Resource, objects
from .concepts import NOTHING, Words, line, says_nothing, typed_words, words_of
from .extensions import NOT_TAKEN, extensions_of
from .fields import MEDICATIONS
from .importing import Import
from .times import FhirTime, day, is_past, start_of
from .units import is_unit

if TYPE_CHECKING:
    from fhir.resources.R4B.dosage import Dosage
    from fhir.resources.R4B.medication import Medication, MedicationIngredient
    from fhir.resources.R4B.medicationrequest import MedicationRequest
    from fhir.resources.R4B.medicationstatement import MedicationStatement
    from fhir.resources.R4B.period import Period
    from fhir.resources.R4B.quantity import Quantity
    from fhir.resources.R4B.reference import Reference

_PROPOSED = frozenset({"proposal", "plan", "option"})


def read_request(
    importing: Import, resource: Resource, request: MedicationRequest
) -> str | None:
    """Take what an active request asks for, if it is current on the day of the record."""
    if request.doNotPerform:
        return "it says that the medication is not to be given (doNotPerform)"
    if request.intent in _PROPOSED:
        return "it is a proposal, a plan or an option"
    today = importing.clock.today
    if reason := _not_taken(resource) or _request_is_over(request, today):
        return reason
    return _add_medication(importing, resource, request, request.dosageInstruction)


def read_statement(
    importing: Import, resource: Resource, statement: MedicationStatement
) -> str | None:
    """Take what an active statement names, if it is current on the day of the record."""
    today = importing.clock.today
    if reason := _not_taken(resource) or _statement_is_over(statement, today):
        return reason
    return _add_medication(importing, resource, statement, statement.dosage)


def _not_taken(resource: Resource) -> str:
    if NOT_TAKEN not in extensions_of(resource).decisions:
        return ""
    return "an extension says that the patient does not take it"


def _add_medication(
    importing: Import,
    resource: Resource,
    medication: MedicationRequest | MedicationStatement,
    dosages: Sequence[Dosage] | None,
) -> str | None:
    concept = medication.medicationCodeableConcept
    if says_nothing(concept):
        return NOTHING
    words = words_of(concept)
    reference = medication.medicationReference
    if not words and reference is not None:
        words = _referred(importing, resource, reference)
    if not words:
        return "it names no medication, or refers to one that is not in the record"
    details = []
    for dosage in dosages or ():
        # Sent as it was typed; the structured amounts of a dosage are not put into words.
        if text := typed_words(dosage.text):
            details.append(text)
        else:
            reason = "a dosage that has no text is not sent"
            importing.add_aside(resource, "dosage", reason)
    return importing.add_text(MEDICATIONS, resource, words, details=details)


# -- whether it is current -------------------------------------------------------------------------

_NOT_BEGUN = "it has not begun yet"


def _statement_is_over(statement: MedicationStatement, today: date) -> str:
    """Why a statement about a medication is not about this day; empty if it is."""
    period = statement.effectivePeriod
    if _has_ended(period, today):
        return "it has ended (effectivePeriod.end)"
    if _is_later(statement.effectiveDateTime or start_of(period), today):
        return _NOT_BEGUN
    return ""


def _request_is_over(request: MedicationRequest, today: date) -> str:
    """Why a request is not current; empty if it is.

    Two elements may bound a request in time: the validity of the prescription, outside of which
    nothing is dispensed, and the timing of each dosage.
    """
    dispensing = request.dispenseRequest
    validity = dispensing.validityPeriod if dispensing else None
    if _has_ended(validity, today):
        return "its validity has ended (dispenseRequest.validityPeriod)"
    # A request of several dosages ends with the last one of them.
    bounds = [_bounds(dosage) for dosage in request.dosageInstruction or ()]
    if bounds and all(_has_ended(period, today) for period in bounds):
        return "the bounds of its dosage have ended (dosageInstruction.timing)"
    # It begins with the first dosage. One that names no day can begin once it can be dispensed.
    starts = [start_of(period) or start_of(validity) for period in bounds or [None]]
    if all(_is_later(start, today) for start in starts):
        return _NOT_BEGUN
    return ""


def _bounds(dosage: Dosage) -> Period | None:
    """The period of a dosage; None if its bounds are not given as a period."""
    if dosage.timing is None or dosage.timing.repeat is None:
        return None
    return dosage.timing.repeat.boundsPeriod


def _has_ended(period: Period | None, today: date) -> bool:
    """Whether a period is known to have ended before this day."""
    return period is not None and is_past(period.end, today)


def _is_later(start: FhirTime | None, today: date) -> bool:
    """Whether a start is known to be after this day."""
    return start is not None and day(start) > today


# -- what a reference names ------------------------------------------------------------------------


def _referred(
    importing: Import, resource: Resource, reference: Reference
) -> tuple[Words, ...]:
    """The medication that a reference names: contained, in the record, or by its display only."""
    name = reference.reference or ""
    raw = _contained(resource, name)
    if raw is None and name in importing.medications:
        raw = importing.medications[name].raw
    words: tuple[Words, ...] = ()
    if raw is not None:
        if importing.options.leaves_out(raw):
            raise ElementError("the application never sends it (leave_out)")
        medication: Medication = importing.checked("Medication", raw)
        if says_nothing(medication.code):
            return ()
        words = _with_ingredients(importing, resource, medication)
    display = typed_words(reference.display)
    if not words and display:
        return (display,)
    return words


def _with_ingredients(
    importing: Import, resource: Resource, medication: Medication
) -> tuple[Words, ...]:
    """A medication in words with its ingredients; nothing if it has no words of its own."""
    words = list(words_of(medication.code))
    if not words:
        return ()
    for ingredient in medication.ingredient or ():
        if contents := _contents(ingredient):
            words.append(contents)
        else:
            importing.add_aside(resource, "ingredient", "an ingredient has no text")
    return tuple(words)


def _contents(ingredient: MedicationIngredient) -> Words | None:
    """An ingredient with its strength as it is given: contains metformin 500 mg / 1 tablet."""
    names = words_of(ingredient.itemCodeableConcept)[:1]
    parts = [name.text for name in names]
    amounts: list[Words] = []
    if strength := ingredient.strength:
        amounts += _amount(strength.numerator)
        amounts += _amount(strength.denominator)
    if amounts:
        parts.append(" / ".join(amount.text for amount in amounts))
    if not parts:
        return None
    typed = any(words.typed for words in (*names, *amounts))
    return Words(f"contains {' '.join(parts)}", typed)


def _amount(quantity: Quantity | None) -> list[Words]:
    """A number with its unit; none if either is missing. What is no unit of UCUM was typed."""
    if quantity is None or quantity.value is None:
        return []
    unit = line(quantity.unit) or quantity.code
    if not unit:
        return []
    return [Words(f"{quantity.value:g} {unit}", not is_unit(unit))]


def _contained(resource: Resource, name: str) -> Mapping[str, Any] | None:
    for inner in objects(resource.raw.get("contained")):
        if inner.get("resourceType") == "Medication" and name == f"#{inner.get('id')}":
            return inner
    return None
