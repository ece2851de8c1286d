"""What the patient and the relatives have and have had: conditions, allergies, procedures."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

from .bundle import Resource
from .concepts import NOTHING, Words, codes_of, labelled, says_nothing, words_of
from .extensions import DOUBTED, OVER, REFUTED, extensions_of
from .fields import HISTORY, RISKS
from .importing import Import
from .report import Untrue
from .times import day, year

_PRESENT = frozenset({"active", "recurrence", "relapse"})
_ENDED = frozenset({"inactive", "remission", "resolved"})
_WRONG = frozenset({"refuted", "entered-in-error"})
_DOUBTS = frozenset({"unconfirmed", "provisional", "differential"})
_CLINICAL = _PRESENT | _ENDED
_VERIFICATION = _WRONG | _DOUBTS | {"confirmed"}
_ALLERGIES_FIRST, _PROCEDURES = -2, 1  # ranks in the history


def _begun(condition: Any) -> list[str]:
    """The year in which a condition began, or else was recorded."""
    period = condition.onsetPeriod
    if onset := year(condition.onsetDateTime or (period and period.start)):
        return [f"since {onset}"]
    recorded = year(condition.recordedDate)
    return [f"recorded {recorded}"] if recorded else []


def read_condition(importing: Import, resource: Resource, condition: Any) -> str | None:
    """Take a condition with its site, severity, stage and year."""
    decisions = extensions_of(resource).decisions
    if wrong := _wrong(condition, decisions):
        return wrong
    over = OVER in decisions or _is_over(condition, importing.clock.today)
    if over and not importing.options.past_conditions:
        return "it is over (past_conditions=True takes it)"
    remarks = _doubts(condition, decisions)
    if over:
        remarks.append("past")
    remarks += _begun(condition)
    details = [
        words for site in condition.bodySite or () for words in labelled("site", site)
    ]
    details += labelled("severity", condition.severity)
    details += [
        words
        for stage in condition.stage or ()
        for words in labelled("stage", stage.summary)
    ]
    return importing.take_concept(
        HISTORY, resource, condition.code, remarks=remarks, details=details
    )


def _wrong(condition: Any, decisions: frozenset[str]) -> str:
    """Why a condition or an allergy is none; empty where it is one."""
    wrong = sorted(_WRONG.intersection(codes_of(condition.verificationStatus)))
    if REFUTED in decisions:
        wrong.append("refuted")
    return Untrue(f"it is {wrong[0]}") if wrong else ""


def _doubts(condition: Any, decisions: frozenset[str]) -> list[str]:
    """That it is unconfirmed: by its status, by one that is not known here, or by an extension."""
    verification = condition.verificationStatus
    doubted = (
        DOUBTED in decisions
        or _DOUBTS.intersection(codes_of(verification))
        or _is_unknown(verification, _VERIFICATION)
        or _is_unknown(condition.clinicalStatus, _CLINICAL)
    )
    return ["unconfirmed"] if doubted else []


def _is_unknown(status: Any, known: frozenset[str]) -> bool:
    """Whether there is a status, but none of its codes is known: it may be a text alone."""
    return bool(status and (status.coding or status.text)) and not known & {
        *codes_of(status)
    }


def _is_over(condition: Any, today: date) -> bool:
    """Whether it had ended on a day: by its end where that is told, or else by its status."""
    states = set(codes_of(condition.clinicalStatus))
    if states & _PRESENT:
        return False
    period = condition.abatementPeriod
    end = condition.abatementDateTime or (period and (period.end or period.start))
    if end:
        return day(end) <= today
    abated = (
        condition.abatementAge or condition.abatementRange or condition.abatementString
    )
    return bool(states & _ENDED or abated)


# -- allergies, procedures, relatives --------------------------------------------------------------


def read_allergy(importing: Import, resource: Resource, allergy: Any) -> str | None:
    """Take an allergy or intolerance with its substances and reactions, before all conditions."""
    decisions = extensions_of(resource).decisions
    if wrong := _wrong(allergy, decisions):
        return wrong
    if _ENDED.intersection(codes_of(allergy.clinicalStatus)):
        return "it is over"
    details = list(dict.fromkeys(_reactions(allergy)))
    if allergy.criticality in {"high", "low"}:
        details.append(Words(f"criticality: {allergy.criticality}"))
    kind = "intolerance" if allergy.type == "intolerance" else "allergy"
    words = words_of(allergy.code)
    if words and words[0].typed:  # it may say that there is none
        kind = f"{kind} as written"
    return importing.take_concept(
        HISTORY,
        resource,
        allergy.code,
        f"{kind}: ",
        remarks=_doubts(allergy, decisions),
        details=details,
        rank=_ALLERGIES_FIRST,
    )


def _reactions(allergy: Any) -> Iterator[Words]:
    for reaction in allergy.reaction or ():
        yield from labelled("substance", reaction.substance)
        severity = f" ({reaction.severity})" if reaction.severity in _SEVERITIES else ""
        for manifestation in reaction.manifestation or ():
            for words in labelled("reaction", manifestation):
                yield Words(f"{words.text}{severity}", words.typed)


_SEVERITIES = frozenset({"mild", "moderate", "severe"})


def read_procedure(importing: Import, resource: Resource, procedure: Any) -> str | None:
    """Take a procedure that was done, with its site and year."""
    if procedure.status == "entered-in-error":
        return Untrue("it is entered-in-error")
    if procedure.status != "completed":
        return "it is not completed"
    period = procedure.performedPeriod
    done = year(
        procedure.performedDateTime or (period and (period.end or period.start))
    )
    return importing.take_concept(
        HISTORY,
        resource,
        procedure.code,
        "procedure: ",
        remarks=[done] if done else [],
        details=[
            words
            for site in procedure.bodySite or ()
            for words in labelled("site", site)
        ],
        rank=_PROCEDURES,
    )


def read_family(importing: Import, resource: Resource, family: Any) -> str | None:
    """Take what relatives had, with the relationship and the age at which it began."""
    if family.status == "entered-in-error":
        return Untrue("it is entered-in-error")
    if family.status not in {"completed", "partial"}:
        return "its status is neither completed nor partial"
    relation = words_of(family.relationship)[:1]
    for condition in family.condition or ():
        if reason := _take_relative(importing, resource, relation, condition):
            importing.leave(resource, reason, part="condition")
    return None if family.condition else "it names no condition"


def _take_relative(
    importing: Import, resource: Resource, relation: tuple[Words, ...], condition: Any
) -> str | None:
    """Take what one relative had, or say why not."""
    words = words_of(condition.code)
    if not words:
        return "it has no text"
    if says_nothing(condition.code):
        return NOTHING
    remarks = [*(part.text for part in relation), _onset(condition.onsetAge)]
    typed = words[0].typed or any(part.typed for part in relation)
    first = Words(words[0].text, typed)
    return importing.take(
        RISKS,
        resource,
        (first, *words[1:]),
        "family history: ",
        remarks=list(filter(None, remarks)),
    )


def _onset(age: Any) -> str:
    """The age of onset in years; empty where it is not told as such."""
    known = age is not None and age.value is not None and not age.comparator
    unit = str(age.code or age.unit).lower() if known else ""
    return f"at {age.value:g}" if unit in {"a", "year", "years", "yr", "yrs"} else ""
