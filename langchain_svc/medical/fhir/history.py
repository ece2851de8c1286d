"""What the patient and the relatives have and have had: conditions, allergies, procedures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from .bundle import Resource
from .concepts import Words, codes_of, says_nothing, terminology, words_of
from .fields import HISTORY, RISKS
from .importing import Import
from .report import Settled
from .times import day

_OVER = frozenset({"inactive", "remission", "resolved"})
_WRONG = frozenset({"refuted", "entered-in-error"})
_DOUBTED = frozenset({"unconfirmed", "provisional", "differential"})
_ALLERGIES_FIRST, _PROCEDURES = -2, 1  # ranks in the history


def read_condition(importing: Import, resource: Resource, condition: Any) -> str | None:
    """Take a condition; a cancer and a mutation that leads to it are risk factors too."""
    wrong, doubt = _verified(condition)
    if wrong:
        return wrong
    over = _is_over(condition, importing.today)
    reasons = []
    if risk := _cancer_risk(condition.code, over=over):
        form = f"{risk}{{}}{doubt}"
        reasons.append(importing.take_concept(RISKS, resource, condition.code, form))
    if over and not importing.options.past_conditions:
        reasons.append(Settled("it is over (past_conditions=True takes it)"))
    else:
        form = f"{{}}{doubt}{' (past)' if over else ''}"
        reasons.append(importing.take_concept(HISTORY, resource, condition.code, form))
    return None if None in reasons else reasons[-1]


def _verified(told: Any) -> tuple[str, str]:
    """Why a condition or an allergy is none, and what is added to its text."""
    codes = set(codes_of(told.verificationStatus))
    wrong = sorted(codes & _WRONG)
    return Settled(f"it is {wrong[0]}") if wrong else "", " (unconfirmed)" * bool(codes & _DOUBTED)


def _is_over(condition: Any, today: date) -> bool:
    """Whether it had ended on a day: by its end where that is told, or else by its status."""
    states = set(codes_of(condition.clinicalStatus))
    if states and not states & _OVER:
        return False
    period = condition.abatementPeriod
    end = condition.abatementDateTime or (period and (period.end or period.start))
    if end:
        return day(end) <= today
    abated = condition.abatementAge or condition.abatementRange or condition.abatementString
    return bool(states or abated)


# -- cancer, by codes alone ------------------------------------------------------------------------

# ICD-10 C00 to C97 and Z85, personal history of malignant neoplasm; ICD-9-CM 140 to 208 and V10;
# ICD-10-CM Z15.0, genetic susceptibility to malignant neoplasm.
_CODED = (
    ("icd-10", re.compile(r"C[0-9][0-9AB].*"), "cancer"),
    ("icd-10", re.compile(r"Z85.*"), "history of cancer"),
    ("icd-10", re.compile(r"Z15\.?0.*"), "genetic risk"),
    ("icd-9", re.compile(r"(?:1[4-9][0-9]|20[0-8]).*"), "cancer"),
    ("icd-9", re.compile(r"V10.*"), "history of cancer"),
)
# SNOMED CT, whose hierarchy is not here: malignant neoplasm as a whole and the cancers of each
# organ, as problem lists have them. What is below them is known by an ICD code beside it, or by
# the caller's risk_factors.
_SNOMED_CANCERS: Mapping[str, str] = {
    "363346000": "any", "254837009": "breast", "363358000": "lung", "254637007": "lung, non-small",
    "254632001": "lung, small cell", "363406005": "colon", "93761005": "colon, primary",
    "109838007": "colon, overlapping", "363351006": "rectum", "399068003": "prostate",
    "363349007": "stomach", "363418001": "pancreas", "93870000": "liver", "363402007": "esophagus",
    "363443007": "ovary", "363354003": "cervix", "371973000": "uterus", "363449006": "testis",
    "363518003": "kidney", "399326009": "bladder", "363478007": "thyroid", "428061005": "brain",
    "372244006": "melanoma", "424413001": "sarcoma", "118600007": "lymphoma",
    "118599009": "Hodgkin", "118601006": "non-Hodgkin", "93143009": "leukemia",
    "109989006": "multiple myeloma",
}  # fmt: skip
_SNOMED: Mapping[str, str] = {
    **dict.fromkeys(_SNOMED_CANCERS, "cancer"),
    "266987004": "history of cancer",
    "412734009": "genetic risk",  # BRCA1
    "412738007": "genetic risk",  # BRCA2
}


def _cancer_risk(concept: Any, *, over: bool) -> str:
    """How a risk factor begins; empty for what is none."""
    codings = (concept and concept.coding) or ()
    found = {told for coding in codings for told in _told_by(coding)}
    if "cancer" in found and over:
        found.add("history of cancer")
    order = ("history of cancer", "cancer", "genetic risk")
    return next((f"{told}: " for told in order if told in found), "")


def _told_by(coding: Any) -> Iterator[str]:
    system, code = terminology(coding), str(coding.code or "")
    if "snomed" in system and code in _SNOMED:
        yield _SNOMED[code]
    for part, pattern, told in _CODED:
        if part in system and pattern.fullmatch(code):
            yield told


# -- allergies, procedures, relatives --------------------------------------------------------------


def read_allergy(importing: Import, resource: Resource, allergy: Any) -> str | None:
    """Take an allergy or intolerance with its reactions, before all conditions."""
    wrong, doubt = _verified(allergy)
    if wrong:
        return wrong
    if _OVER.intersection(codes_of(allergy.clinicalStatus)):
        return Settled("it is over")
    details = list(dict.fromkeys(_reactions(allergy)))
    if allergy.criticality in {"high", "low"}:
        details.append(Words(f"criticality: {allergy.criticality}"))
    kind = "intolerance" if allergy.type == "intolerance" else "allergy"
    form, more = f"{kind}: {{}}{doubt}", {"rank": _ALLERGIES_FIRST, "details": details}
    return importing.take_concept(HISTORY, resource, allergy.code, form, **more)


def _reactions(allergy: Any) -> Iterator[Words]:
    for reaction in allergy.reaction or ():
        severity = f" ({reaction.severity})" if reaction.severity in _SEVERITIES else ""
        for words in filter(None, map(words_of, reaction.manifestation or ())):
            yield Words(f"reaction: {words.text}{severity}", words.typed)


_SEVERITIES = frozenset({"mild", "moderate", "severe"})


def read_procedure(importing: Import, resource: Resource, procedure: Any) -> str | None:
    """Take a procedure that was done."""
    if procedure.status != "completed":
        return Settled("it is not completed")
    form = "procedure: {}"
    return importing.take_concept(HISTORY, resource, procedure.code, form, rank=_PROCEDURES)


def read_family(importing: Import, resource: Resource, family: Any) -> str | None:
    """Take what relatives had, with the relationship and the age at which it began."""
    if family.status not in {"completed", "partial"}:
        return Settled("its status is neither completed nor partial")
    relation = words_of(family.relationship)
    reasons = []
    for condition in family.condition or ():
        words = words_of(condition.code)
        if words and not says_nothing(condition.code):
            parts = (relation.text if relation else "", _onset(condition.onsetAge))
            about = ", ".join(filter(None, parts))
            typed = words.typed or bool(relation and relation.typed)
            told = Words(f"{words.text} ({about})" if about else words.text, typed)
            reasons.append(importing.take(RISKS, resource, told, "family history: {}"))
    if not reasons:
        return "it names no condition"
    return None if None in reasons else reasons[0]


def _onset(age: Any) -> str:
    """The age of onset in years; empty where it is not told as such."""
    known = age is not None and age.value is not None and not age.comparator
    unit = str(age.code or age.unit).lower() if known else ""
    return f"at {age.value:g}" if unit in {"a", "year", "years", "yr", "yrs"} else ""
