"""What the patient and the relatives have or had: conditions, allergies, procedures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import TYPE_CHECKING

from .concepts import Wording, codes_of, labelled, line, nothing_said, words_of
from .elements import DOUBTED, OVER, REFUTED, extensions_of
from .fields import HISTORY, RISKS
from .importing import Import
from .report import Untrue
from .resources import Resource
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
# What SNOMED CT calls them.
_SNOMED: Mapping[str, str] = {
    "410605003": "confirmed", "410515003": "confirmed",
    "410516002": "refuted", "410594000": "refuted",
    "415684004": "provisional", "410592001": "provisional", "410590009": "provisional",
}  # fmt: skip
_NOT_VERIFIED = "its verification status is not one that is known"
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
    if nothing := nothing_said(condition.code):
        return nothing
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
    """Why the patient may not have a condition or an allergy; empty if nothing speaks of it."""
    status = condition.verificationStatus
    reasons = sorted(_WRONG & _states(status))
    if REFUTED in decisions:
        reasons.append("refuted")
    if reasons:
        return Untrue(f"it is {reasons[0]}")
    return _NOT_VERIFIED if _is_unknown(status, _VERIFICATION) else ""


def _doubts(
    condition: Condition | AllergyIntolerance, decisions: frozenset[str]
) -> list[str]:
    """The remarks that a status or an extension makes necessary."""
    remarks = []
    if DOUBTED in decisions or _DOUBTS & _states(condition.verificationStatus):
        remarks.append("unconfirmed")
    if _is_unknown(condition.clinicalStatus, _CLINICAL):
        remarks.append("status unknown")
    return remarks


def _states(status: CodeableConcept | None) -> set[str]:
    """A status by FHIR's codes: its codes, those of SNOMED CT, and a text that is one of them."""
    if status is None:
        return set()
    states = {_SNOMED.get(code, code) for code in codes_of(status)}
    return states | {line(status.text).lower()} - {""}


def _is_unknown(status: CodeableConcept | None, known: frozenset[str]) -> bool:
    """Whether there is a status, but not one that is known."""
    if status is None or not (status.coding or status.text):
        return False
    return known.isdisjoint(_states(status))


def _is_over(condition: Condition, today: date) -> bool:
    """Whether it had ended on a day: by its end if it has one, or else by its status."""
    states = _states(condition.clinicalStatus)
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
    if _ENDED & _states(allergy.clinicalStatus):
        return "it is over"
    if nothing := nothing_said(allergy.code):
        return nothing
    details = list(dict.fromkeys(_reactions(allergy)))
    if allergy.criticality in {"high", "low"}:
        details.append(Wording(f"criticality: {allergy.criticality}"))
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


def _reactions(allergy: AllergyIntolerance) -> Iterator[Wording]:
    for reaction in allergy.reaction or ():
        yield from labelled("substance", reaction.substance)
        severity = ""
        if reaction.severity in _SEVERITIES:
            severity = f" ({reaction.severity})"
        for words in labelled("reaction", *(reaction.manifestation or ())):
            yield Wording(f"{words.text}{severity}", words.typed)


_SEVERITIES = frozenset({"mild", "moderate", "severe"})


def read_procedure(
    importing: Import, resource: Resource, procedure: Procedure
) -> str | None:
    """Take a procedure that was done, with its site and year."""
    if procedure.status != "completed":
        return "it is not completed"
    if nothing := nothing_said(procedure.code):
        return nothing
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
    if family.status not in {"completed", "partial"}:
        return "its status is neither completed nor partial"
    if not family.condition:
        return "it names no condition"
    relation = words_of(family.relationship)[:1]
    for condition in family.condition:
        if reason := _add_relative(importing, resource, relation, condition):
            importing.leave_out(resource, reason, part="family history")
    return None


def _add_relative(
    importing: Import,
    resource: Resource,
    relation: tuple[Wording, ...],
    condition: FamilyMemberHistoryCondition,
) -> str | None:
    """Take what one relative had, or say why not."""
    words = words_of(condition.code)
    if not words:
        return "it has no text"
    if nothing := nothing_said(condition.code):
        return nothing
    remarks = [part.text for part in relation if part.text]
    if onset := _onset(condition.onsetAge):
        remarks.append(onset)
    typed = words[0].typed or any(part.typed for part in relation)
    first = Wording(words[0].text, typed)
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
