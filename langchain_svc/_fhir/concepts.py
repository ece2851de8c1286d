"""Coded concepts as texts: a terminology's own words before what somebody typed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Terminologies whose displays are published words and so cannot name a patient.
_PUBLISHED: Mapping[str, str] = {
    "http://snomed.info/sct": "SNOMED CT",
    "http://hl7.org/fhir/sid/icd-9-cm": "ICD-9-CM",
    "http://hl7.org/fhir/sid/icd-10": "ICD-10",
    "http://hl7.org/fhir/sid/icd-10-cm": "ICD-10-CM",
    "http://fhir.de/CodeSystem/bfarm/icd-10-gm": "ICD-10-GM",
    "http://id.who.int/icd/release/11/mms": "ICD-11",
    "http://hl7.org/fhir/sid/icpc-2": "ICPC-2",
    "http://www.nlm.nih.gov/research/umls/rxnorm": "RxNorm",
    "http://hl7.org/fhir/sid/ndc": "NDC",
    "http://www.whocc.no/atc": "ATC",
    "http://fhir.de/CodeSystem/bfarm/atc": "ATC",
    "http://loinc.org": "LOINC",
    "https://dmd.nhs.uk": "dm+d",
    "http://terminology.hl7.org/CodeSystem/v3-RoleCode": "RoleCode",
}
LOINC = frozenset({"http://loinc.org", "urn:oid:2.16.840.1.113883.6.1"})
MASK = "[...]"


@dataclass(frozen=True)
class Words:
    """A concept in words.

    Attributes:
        text: The words.
        masked: Whether something that identifies the patient was taken out of them.
    """

    text: str
    masked: bool = False


def words_of(concept: Any, identifying: re.Pattern[str] | None) -> Words | None:
    """A concept in words; None where it has none.

    A published display goes first. Without one: the concept's text, another display, or a
    published code. Those may have been typed by anyone, so what identifies the patient is masked.
    """
    if concept is None:
        return None
    codings = concept.coding or ()
    for coding in codings:
        if coding.display and coding.system in _PUBLISHED:
            return Words(_line(coding.display))
    typed = concept.text or next((coding.display for coding in codings if coding.display), None)
    for coding in codings if not typed else ():
        if coding.code and coding.system in _PUBLISHED:
            typed = f"{_PUBLISHED[coding.system]} {coding.code}"
            break
    return masked(typed, identifying)


def masked(typed: str | None, identifying: re.Pattern[str] | None) -> Words | None:
    """A text that somebody typed, without what identifies the patient; None where it is empty."""
    text = _line(typed or "")
    if not text:
        return None
    if identifying is None:
        return Words(text)
    bare = identifying.sub(MASK, text)
    return Words(bare, masked=bare != text)


def _line(text: str) -> str:
    return " ".join(text.split())


def codes_of(concept: Any, systems: frozenset[str] | None = None) -> tuple[str, ...]:
    """A concept's codes, of some systems or of all."""
    codings = (concept.coding or ()) if concept is not None else ()
    return tuple(
        str(coding.code)
        for coding in codings
        if coding.code and (systems is None or coding.system in systems)
    )
