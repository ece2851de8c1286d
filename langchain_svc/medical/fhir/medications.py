"""What the patient takes now, with strength and dosage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

from .concepts import Wording, line, nothing_said, typed_words, words_of
from .elements import NOT_TAKEN, ElementError, extensions_of
from .fields import MEDICATIONS
from .importing import Import
from .report import Untrue
from .resources import Resource, text
from .times import FhirTime, day, is_past, month, start_of
from .units import is_unit

if TYPE_CHECKING:
    from fhir.resources.R4B.dosage import Dosage
    from fhir.resources.R4B.medication import Medication, MedicationIngredient
    from fhir.resources.R4B.medicationrequest import MedicationRequest
    from fhir.resources.R4B.medicationstatement import MedicationStatement
    from fhir.resources.R4B.period import Period
    from fhir.resources.R4B.quantity import Quantity
    from fhir.resources.R4B.range import Range
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
    ordered = f"ordered {month(request.authoredOn)}" if request.authoredOn else ""
    dosages = request.dosageInstruction
    return _add_medication(importing, resource, request, dosages, ordered)


def read_statement(
    importing: Import, resource: Resource, statement: MedicationStatement
) -> str | None:
    """Take what an active statement names, if it is current on the day of the record."""
    today = importing.clock.today
    if reason := _not_taken(resource) or _statement_is_over(statement, today):
        return reason
    dosages = statement.dosage
    return _add_medication(importing, resource, statement, dosages, _time_of(statement))


def _time_of(statement: MedicationStatement) -> str:
    """Since when a medication is taken, or else when that was recorded."""
    if taken := _span(statement.effectivePeriod):
        return taken
    if statement.effectiveDateTime:
        return f"taken {month(statement.effectiveDateTime)}"
    if statement.dateAsserted:
        return f"recorded {month(statement.dateAsserted)}"
    return ""


def _not_taken(resource: Resource) -> str:
    if NOT_TAKEN not in extensions_of(resource).decisions:
        return ""
    return "an extension says that the patient does not take it"


def _add_medication(
    importing: Import,
    resource: Resource,
    medication: MedicationRequest | MedicationStatement,
    dosages: Sequence[Dosage] | None,
    time: str,
) -> str | None:
    """Take a medication with the month of its order and its dosages with theirs."""
    concept = medication.medicationCodeableConcept
    if nothing := nothing_said(concept):
        return nothing
    words = words_of(concept)
    reference = medication.medicationReference
    if not words and reference is not None:
        words = _referred(importing, resource, reference)
    if not words:
        return "it names no medication, or refers to one that is not in the record"
    current = list(_current_dosages(importing, resource, dosages or ()))
    remarks = [time] if time else []
    if len(current) == 1:
        remarks += _times(current[0])
    details: list[Wording] = []
    for dosage in current:
        times = [] if len(current) == 1 else _times(dosage)
        details += _dosage_words(importing, resource, dosage, times)
    return importing.add_text(
        MEDICATIONS, resource, words, remarks=remarks, details=details
    )


def _current_dosages(
    importing: Import, resource: Resource, dosages: Sequence[Dosage]
) -> Iterator[Dosage]:
    for dosage in dosages:
        if _has_ended(_bounds(dosage), importing.clock.today):
            importing.leave_out(resource, _DOSAGE_IS_OVER, part="dosage")
        else:
            yield dosage


_DOSAGE_IS_OVER = Untrue("the period of a dosage is over")


def _dosage_words(
    importing: Import, resource: Resource, dosage: Dosage, times: Sequence[str]
) -> Iterator[Wording]:
    """A dosage as it was typed, with what stands beside its text.

    The structured amounts of a dosage are not put into words.
    """
    typed = typed_words(dosage.text)
    if typed is None:
        importing.add_aside(resource, "dosage", "a dosage that has no text is not sent")
    else:
        remark = f" ({', '.join(times)})" if times else ""
        yield Wording(f"{typed.text}{remark}", typed=True)
    for instruction in dosage.additionalInstruction or ():
        yield from words_of(instruction)
    if told := typed_words(dosage.patientInstruction):
        yield told
    if dosage.asNeededBoolean:
        yield Wording("as needed")
    for words in words_of(dosage.asNeededCodeableConcept):
        yield Wording(f"as needed for {words.text}", words.typed)


# -- when it is taken ------------------------------------------------------------------------------


def _times(dosage: Dosage) -> list[str]:
    """For how long, or when, a dosage is taken: its bounds and its moments."""
    timing = dosage.timing
    if timing is None:
        return []
    times = []
    if timing.repeat:
        repeat = timing.repeat
        times += [
            _span(repeat.boundsPeriod),
            _length(repeat.boundsDuration),
            _length_between(repeat.boundsRange),
        ]
    months = sorted({month(moment) for moment in timing.event or ()})
    if months:
        times.append(" to ".join(dict.fromkeys((months[0], months[-1]))))
    return [time for time in times if time]


def _span(period: Period | None) -> str:
    """A period in months; empty where there is none."""
    if period is None:
        return ""
    start, end = month(period.start), month(period.end)
    if start and end:
        return f"{start} to {end}"
    if start:
        return f"since {start}"
    return f"until {end}" if end else ""


_LENGTHS: Mapping[str, str] = {
    "min": "minutes", "h": "hours", "d": "days", "wk": "weeks", "mo": "months", "a": "years",
}  # fmt: skip


def _length(duration: Quantity | None) -> str:
    """A duration in words, for 7 days; empty where its unit is not one of time."""
    if duration is None or duration.value is None:
        return ""
    unit = _LENGTHS.get(duration.code or line(duration.unit))
    bound = duration.comparator or ""
    return f"for {bound}{duration.value:g} {unit}" if unit else ""


def _length_between(bounds: Range | None) -> str:
    if bounds is None:
        return ""
    low, high = _length(bounds.low), _length(bounds.high)
    return " to ".join(filter(None, (low, high.removeprefix("for "))))


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
) -> tuple[Wording, ...]:
    """The medication that a reference names: contained, in the record, or by its display only."""
    found = importing.subject.resolved(reference.reference or "", resource)
    display = typed_words(reference.display)
    if found is not None and found[0].get("resourceType") == "Medication":
        raw, holder = found
        if problem := importing.doubts_about(raw):
            raise ElementError(f"its Medication: {problem}")
        if (status := text(raw.get("status"))) in {"entered-in-error", "inactive"}:
            raise ElementError(f"its Medication is {status}")
        medication: Medication = importing.checked("Medication", raw, resource)
        words = _with_ingredients(importing, resource, medication, holder)
        if words or nothing_said(medication.code):
            return words
    return (display,) if display else ()


def _with_ingredients(
    importing: Import, resource: Resource, medication: Medication, holder: Resource
) -> tuple[Wording, ...]:
    """A medication in words with its ingredients, which name it where it has no code."""
    words: list[Wording] = []
    if not nothing_said(medication.code):
        words += words_of(medication.code)
    for ingredient in medication.ingredient or ():
        if contents := _contents(importing, ingredient, holder):
            words.append(contents)
        else:
            importing.add_aside(resource, "ingredient", "an ingredient has no text")
    return tuple(words)


def _contents(
    importing: Import, ingredient: MedicationIngredient, holder: Resource
) -> Wording | None:
    """An ingredient with its strength as it is given: contains metformin 500 mg / 1 tablet."""
    names = words_of(ingredient.itemCodeableConcept)[:1]
    if not names and ingredient.itemReference:
        names = _substance(importing, ingredient.itemReference, holder)
    parts = [name.text for name in names]
    amounts: list[Wording] = []
    if strength := ingredient.strength:
        amounts += _amount(strength.numerator)
        amounts += _amount(strength.denominator)
    if amounts:
        parts.append(" / ".join(amount.text for amount in amounts))
    if not names:
        return None
    typed = any(words.typed for words in (*names, *amounts))
    return Wording(f"contains {' '.join(parts)}", typed)


def _substance(
    importing: Import, reference: Reference, holder: Resource
) -> tuple[Wording, ...]:
    """What an ingredient refers to, by its code, or else by the reference's display."""
    found = importing.subject.resolved(reference.reference or "", holder)
    words: tuple[Wording, ...] = ()
    if found is not None:
        raw = found[0]
        kind = text(raw.get("resourceType"))
        if kind in {"Medication", "Substance"} and not importing.doubts_about(raw):
            words = words_of(importing.checked(kind, raw, holder).code)[:1]
    display = typed_words(reference.display)
    if not words and display:
        return (display,)
    return words


def _amount(quantity: Quantity | None) -> list[Wording]:
    """A number with its unit; none if either is missing. A unit unknown to UCUM counts as typed."""
    if quantity is None or quantity.value is None:
        return []
    unit = line(quantity.unit) or quantity.code
    if not unit:
        return []
    return [Wording(f"{quantity.value:g} {unit}", not is_unit(unit))]
