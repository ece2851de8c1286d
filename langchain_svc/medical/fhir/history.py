"""What the patient and the relatives have or had: conditions, allergies, procedures."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING

from .bundle import Resource
from .concepts import NOTHING, Words, codes_of, labelled, says_nothing, words_of
from .extensions import DOUBTED, OVER, REFUTED, extensions_of
from .fields import HISTORY, RISKS
from .importing import Import
from .report import Untrue
from .times import day, end_of, start_of, year

if TYPE_CHECKING:
    from fhir.resources.R4B.age import Age
    from fhir.resources.R4B.allergyintolerance import AllergyIntolerance
    from fhir.resources.R4B.codeableconcept import CodeableConcept
    from fhir.resources.R4B.condition import Condition
    from fhir.resources.R4B.familymemberhistory import (
        FamilyMemberHistory,
        FamilyMemberHistoryCondition,
    )
    from fhir.resources.R4B.procedure import Procedure

_PRESENT = frozenset({"active", "recurrence", "relapse"})
_ENDED = frozenset({"inactive", "remission", "resolved"})
_WRONG = frozenset({"refuted", "entered-in-error"})
_DOUBTS = frozenset({"unconfirmed", "provisional", "differential"})
_CLINICAL = _PRESENT | _ENDED
_VERIFICATION = _WRONG | _DOUBTS | {"confirmed"}
# Ranks in the history, in which conditions have 0.
_ALLERGIES_FIRST = -2
_PROCEDURES = 1


def read_condition(
    importing: Import, resource: Resource, condition: Condition
) -> str | None:
    """Take a condition with its site, severity, stage and year."""
    decisions = extensions_of(resource).decisions
    if reason := _untrue(condition, decisions):
        return reason
    over = OVER in decisions or _is_over(condition, importing.clock.today)
    if over and not importing.options.past_conditions:
        return "it is over (past_conditions=True takes it)"
    if says_nothing(condition.code):
        return NOTHING
    remarks = _doubts(condition, decisions)
    if over:
        remarks.append("past")
    remarks += _first_year(condition)
    stages = (stage.summary for stage in condition.stage or ())
    details = labelled("site", *(condition.bodySite or ()))
    details += labelled("severity", condition.severity)
    details += labelled("stage", *stages)
    words = words_of(condition.code)
    return importing.add_text(
        HISTORY, resource, words, remarks=remarks, details=details
    )


def _first_year(condition: Condition) -> list[str]:
    """The year in which a condition began, or else was recorded."""
    if onset := year(condition.onsetDateTime or start_of(condition.onsetPeriod)):
        return [f"since {onset}"]
    if recorded := year(condition.recordedDate):
        return [f"recorded {recorded}"]
    return []


def _untrue(
    condition: Condition | AllergyIntolerance, decisions: frozenset[str]
) -> str:
    """Why the patient does not have a condition or an allergy; empty if nothing denies it."""
    reasons = sorted(_WRONG.intersection(codes_of(condition.verificationStatus)))
    if REFUTED in decisions:
        reasons.append("refuted")
    if not reasons:
        return ""
    return Untrue(f"it is {reasons[0]}")


def _doubts(
    condition: Condition | AllergyIntolerance, decisions: frozenset[str]
) -> list[str]:
    """The remark that it is unconfirmed: a status, an unknown status or an extension says so."""
    verification = condition.verificationStatus
    is_doubted = (
        DOUBTED in decisions
        or not _DOUBTS.isdisjoint(codes_of(verification))
        or _is_unknown(verification, _VERIFICATION)
        or _is_unknown(condition.clinicalStatus, _CLINICAL)
    )
    return ["unconfirmed"] if is_doubted else []


def _is_unknown(status: CodeableConcept | None, codes: frozenset[str]) -> bool:
    """Whether there is a status, but none of its codes is known: it may be a text alone."""
    if status is None or not (status.coding or status.text):
        return False
    return codes.isdisjoint(codes_of(status))


def _is_over(condition: Condition, today: date) -> bool:
    """Whether it had ended on a day: by its end if it has one, or else by its status."""
    states = set(codes_of(condition.clinicalStatus))
    if states & _PRESENT:
        return False
    end = condition.abatementDateTime or end_of(condition.abatementPeriod)
    if end:
        return day(end) <= today
    abated = (
        condition.abatementAge or condition.abatementRange or condition.abatementString
    )
    return bool(states & _ENDED or abated)


# -- allergies, procedures, relatives --------------------------------------------------------------


def read_allergy(
    importing: Import, resource: Resource, allergy: AllergyIntolerance
) -> str | None:
    """Take an allergy or intolerance with its substances and reactions, before all conditions."""
    decisions = extensions_of(resource).decisions
    if reason := _untrue(allergy, decisions):
        return reason
    if _ENDED.intersection(codes_of(allergy.clinicalStatus)):
        return "it is over"
    if says_nothing(allergy.code):
        return NOTHING
    details = list(dict.fromkeys(_reactions(allergy)))
    if allergy.criticality in {"high", "low"}:
        details.append(Words(f"criticality: {allergy.criticality}"))
    kind = "intolerance" if allergy.type == "intolerance" else "allergy"
    words = words_of(allergy.code)
    if words and words[0].typed:  # it may say that there is none
        kind = f"{kind} as written"
    return importing.add_text(
        HISTORY,
        resource,
        words,
        f"{kind}: ",
        remarks=_doubts(allergy, decisions),
        details=details,
        rank=_ALLERGIES_FIRST,
    )


def _reactions(allergy: AllergyIntolerance) -> Iterator[Words]:
    for reaction in allergy.reaction or ():
        yield from labelled("substance", reaction.substance)
        severity = ""
        if reaction.severity in _SEVERITIES:
            severity = f" ({reaction.severity})"
        for words in labelled("reaction", *(reaction.manifestation or ())):
            yield Words(f"{words.text}{severity}", words.typed)


_SEVERITIES = frozenset({"mild", "moderate", "severe"})


def read_procedure(
    importing: Import, resource: Resource, procedure: Procedure
) -> str | None:
    """Take a procedure that was done, with its site and year."""
    if procedure.status == "entered-in-error":
        return Untrue("it is entered-in-error")
    if procedure.status != "completed":
        return "it is not completed"
    if says_nothing(procedure.code):
        return NOTHING
    performed = year(procedure.performedDateTime or end_of(procedure.performedPeriod))
    return importing.add_text(
        HISTORY,
        resource,
        words_of(procedure.code),
        "procedure: ",
        remarks=[performed] if performed else [],
        details=labelled("site", *(procedure.bodySite or ())),
        rank=_PROCEDURES,
    )


def read_family(
    importing: Import, resource: Resource, family: FamilyMemberHistory
) -> str | None:
    """Take what relatives had, with the relationship and the age at which it began."""
    if family.status == "entered-in-error":
        return Untrue("it is entered-in-error")
    if family.status not in {"completed", "partial"}:
        return "its status is neither completed nor partial"
    if not family.condition:
        return "it names no condition"
    relation = words_of(family.relationship)[:1]
    for condition in family.condition:
        if reason := _add_relative(importing, resource, relation, condition):
            importing.leave_out(resource, reason, part="condition")
    return None


def _add_relative(
    importing: Import,
    resource: Resource,
    relation: tuple[Words, ...],
    condition: FamilyMemberHistoryCondition,
) -> str | None:
    """Take what one relative had, or say why not."""
    words = words_of(condition.code)
    if not words:
        return "it has no text"
    if says_nothing(condition.code):
        return NOTHING
    remarks = [part.text for part in relation if part.text]
    if onset := _onset(condition.onsetAge):
        remarks.append(onset)
    typed = words[0].typed or any(part.typed for part in relation)
    first = Words(words[0].text, typed)
    return importing.add_text(
        RISKS, resource, (first, *words[1:]), "family history: ", remarks=remarks
    )


def _onset(age: Age | None) -> str:
    """The age of onset in years; empty where it is not given in years."""
    if age is None or age.value is None or age.comparator:
        return ""
    unit = str(age.code or age.unit).lower()
    if unit not in {"a", "year", "years", "yr", "yrs"}:
        return ""
    return f"at {age.value:g}"
