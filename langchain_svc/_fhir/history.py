"""What the patient has and has had: conditions, allergies, procedures, conclusions, relatives."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Any

from .bundle import Resource
from .concepts import NOTHING, Words, codes_of, says_nothing, typed_words, words_of
from .importing import HISTORY, RISKS, Conclusion, Import
from .observations import is_final, time_of
from .times import OLDEST, day, days_before

_OVER = frozenset({"inactive", "remission", "resolved"})
_WRONG = frozenset({"refuted", "entered-in-error"})
_DOUBTED = frozenset({"unconfirmed", "provisional", "differential"})
_ALLERGIES_FIRST, _PROCEDURES = -1, 1  # ranks in the history
_NO_TEXT = "it has no text"


def read_condition(importing: Import, resource: Resource, condition: Any) -> str | None:
    """Take a condition; a cancer and a BRCA mutation are risk factors too."""
    verified = set(codes_of(condition.verificationStatus))
    if wrong := verified & _WRONG:
        return f"it is {wrong.pop()}"
    if says_nothing(condition.code):
        return NOTHING
    states = set(codes_of(condition.clinicalStatus))
    abated = _has_abated(condition, importing.today)
    over = bool(states & _OVER) or (not states and abated)
    words = words_of(condition.code, importing.identifying)
    if words is None:
        return _NO_TEXT
    form = "{} (unconfirmed)" if verified & _DOUBTED else "{}"
    reasons = []
    if _is_cancer(condition.code, words):
        told = f"personal history of {form}" if over else f"cancer: {form}"
        reasons.append(importing.take(RISKS, resource, words, told))
    elif _is_brca(condition.code, words):
        reasons.append(importing.take(RISKS, resource, words, form))
    if not over:
        reasons.append(importing.take(HISTORY, resource, words, form))
    elif importing.options.past_conditions:
        reasons.append(importing.take(HISTORY, resource, words, form + " (past)"))
    else:
        reasons.append("it is over (past_conditions=True takes it)")
    return None if None in reasons else reasons[-1]


def _has_abated(condition: Any, today: date) -> bool:
    """Whether an abatement is told that is not in the future."""
    period = condition.abatementPeriod
    end = condition.abatementDateTime or (period and (period.end or period.start))
    if end:
        return day(end) <= today
    return bool(condition.abatementAge or condition.abatementRange or condition.abatementString)


# ICD-10 C00 to C97, and Z85 (personal history of malignant neoplasm); ICD-9-CM 140 to 208 and V10.
_CANCER_CODES: Mapping[str, re.Pattern[str]] = {
    "icd-10": re.compile(r"C[0-9]{2}(?:\..*)?|Z85(?:\..*)?"),
    "icd-9": re.compile(r"(?:1[4-9][0-9]|20[0-8]|V10)(?:\..*)?"),
}
_CANCER_WORDS = re.compile(
    r"\b(?:cancer|carcinoma|adenocarcinoma|malignan\w+|lymphoma|leuk[a]?emia|melanoma|sarcoma"
    r"|myeloma|\w*blastoma)\b",
    re.IGNORECASE,
)
_NO_CANCER_WORDS = re.compile(
    r"\b(?:benign|screening|family|suspected|fear|risk|no evidence|non-?malignant"
    r"|susceptibility)\b",
    re.IGNORECASE,
)
_BRCA_CODES = re.compile(r"Z15\.0[0-9]?")  # ICD-10-CM: genetic susceptibility to malignant neoplasm


def _is_cancer(concept: Any, words: Words) -> bool:
    for coding in concept.coding or ():
        for system, pattern in _CANCER_CODES.items():
            if system in str(coding.system) and pattern.fullmatch(str(coding.code)):
                return True
    return bool(_CANCER_WORDS.search(words.text)) and not _NO_CANCER_WORDS.search(words.text)


def _is_brca(concept: Any, words: Words) -> bool:
    coded = any(_BRCA_CODES.fullmatch(code) for code in codes_of(concept))
    return coded or "BRCA" in words.text


def read_allergy(importing: Import, resource: Resource, allergy: Any) -> str | None:
    """Take an allergy or intolerance, before all conditions."""
    verified = set(codes_of(allergy.verificationStatus))
    if wrong := verified & _WRONG:
        return f"it is {wrong.pop()}"
    if says_nothing(allergy.code):
        return NOTHING
    if set(codes_of(allergy.clinicalStatus)) & _OVER:
        return "it is over"
    words = words_of(allergy.code, importing.identifying)
    if words is None:
        return _NO_TEXT
    kind = "intolerance" if allergy.type == "intolerance" else "allergy"
    form = f"{kind}: {{}}" + (" (unconfirmed)" if verified & _DOUBTED else "")
    return importing.take(HISTORY, resource, words, form, _ALLERGIES_FIRST)


def read_procedure(importing: Import, resource: Resource, procedure: Any) -> str | None:
    """Take a procedure that was done."""
    if procedure.status != "completed":
        return "it is not completed"
    if says_nothing(procedure.code):
        return NOTHING
    words = words_of(procedure.code, importing.identifying)
    if words is None:
        return _NO_TEXT
    return importing.take(HISTORY, resource, words, "procedure: {}", _PROCEDURES)


def read_report(importing: Import, resource: Resource, report: Any) -> str | None:
    """Take the conclusions of a report within the window of laboratory results."""
    if not is_final(report) and report.status != "appended":
        return "its status is not final, amended, corrected or appended"
    made = time_of(report)
    if reason := _outside(importing.options.lab_window, made, importing.today):
        return reason
    name = words_of(report.code, importing.identifying)
    about = codes_of(report.code) or ((name.text,) if name else ())
    # The words of a report's name are shown within the entry, so they are judged with it.
    found = [
        words.joined(f"{name.text}: {words.text}" if name else words.text, name)
        for words in _concluded(report, importing.identifying)
    ]
    importing.conclusions += [Conclusion(about, made or OLDEST, resource, words) for words in found]
    return None if found else "it has no conclusion"


def _outside(window: timedelta | None, made: datetime | None, today: date) -> str | None:
    """Why a report is not of the time of the record."""
    if made is None:
        return "it does not say when it was made" if window is not None else None
    days = days_before(made, today)
    if days < 0:
        return "it was made after the day of the record"
    too_old = window is not None and days > window.days
    return "older than lab_window allows" if too_old else None


def _concluded(report: Any, identifying: re.Pattern[str]) -> list[Words]:
    """The codes that have words, else what was typed, else the codes alone, which say little."""
    coded = report.conclusionCode or ()
    worded = [one for one in coded if one.text or any(part.display for part in one.coding or ())]
    told = [words_of(one, identifying) for one in worded] or [
        typed_words(report.conclusion, identifying)
    ]
    if not any(told):
        told = [words_of(one, identifying) for one in coded]
    return [words for words in told if words]


def read_family(importing: Import, resource: Resource, family: Any) -> str | None:
    """Take what relatives had, with the relationship and the age at which it began."""
    if family.status not in {"completed", "partial"}:
        return "its status is neither completed nor partial"
    relation = words_of(family.relationship, importing.identifying)
    reasons = [
        importing.take(
            RISKS,
            resource,
            words.joined(f"{words.text} ({', '.join(about)})" if about else words.text, relation),
            "family history: {}",
        )
        for words, onset in _conditions_of(importing, family)
        for about in [[part for part in (relation and relation.text, onset) if part]]
    ]
    if not reasons:
        return "it names no condition"
    return None if None in reasons else reasons[0]


def _conditions_of(importing: Import, family: Any) -> Iterator[tuple[Words, str]]:
    for condition in family.condition or ():
        words = words_of(condition.code, importing.identifying)
        if words and not says_nothing(condition.code):
            yield words, _onset(condition)


_YEARS = frozenset({"a", "year", "years", "yr", "yrs"})
_ONSET = re.compile(
    r"(?:at )?(?:age )?(?:of )?([0-9]{1,3})(?: ?(?:y|yrs?|years?)(?: old)?)?", re.IGNORECASE
)


def _onset(condition: Any) -> str:
    """The age of onset in years; empty where it is not told as such."""
    at, between = condition.onsetAge, condition.onsetRange
    if at is not None:
        return f"at {at.value:g}" if _is_years(at) and not at.comparator else ""
    if between is not None and _is_years(between.low) and _is_years(between.high):
        return f"at {between.low.value:g} to {between.high.value:g}"
    told = _ONSET.fullmatch((condition.onsetString or "").strip())
    return f"at {told[1]}" if told else ""


def _is_years(quantity: Any) -> bool:
    if quantity is None or quantity.value is None:
        return False
    return str(quantity.code or quantity.unit).lower() in _YEARS
