"""Coded concepts as texts: a terminology's own words before what somebody typed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
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
    # The same by their object identifiers.
    "urn:oid:2.16.840.1.113883.6.96": "SNOMED CT",
    "urn:oid:2.16.840.1.113883.6.103": "ICD-9-CM",
    "urn:oid:2.16.840.1.113883.6.3": "ICD-10",
    "urn:oid:2.16.840.1.113883.6.90": "ICD-10-CM",
    "urn:oid:2.16.840.1.113883.6.88": "RxNorm",
    "urn:oid:2.16.840.1.113883.6.73": "ATC",
    "urn:oid:2.16.840.1.113883.6.1": "LOINC",
}
# Codes that say that nothing is known, or that there is nothing.
_NOTHING_SYSTEMS = frozenset({
    "http://hl7.org/fhir/uv/ips/CodeSystem/absent-unknown-uv-ips",
    "http://terminology.hl7.org/CodeSystem/data-absent-reason",
    "http://terminology.hl7.org/CodeSystem/v3-NullFlavor",
})  # fmt: skip
_NOTHING_CODES = frozenset({  # SNOMED CT, those that the International Patient Summary names
    "716186003", "409137002", "428607008", "429625007", "1003774007", "787481004", "787480003",
    "787482006", "787483001", "160245001",
})  # fmt: skip
_NOTHING_WORDS = re.compile(
    r"(?:no|nil)\s+(?:known|information|data|current|active|significant|relevant)\b.*"
    r"|none(?:\s+(?:known|reported|recorded))?|nil|unknown|not known|not recorded|n/?a",
    re.IGNORECASE,
)
LOINC = frozenset({"http://loinc.org", "urn:oid:2.16.840.1.113883.6.1"})
MASK = "[...]"
NOTHING = "it says that nothing is known, or that there is nothing of its kind"


@dataclass(frozen=True)
class Words:
    """A concept in words.

    Attributes:
        text: The words.
        masked: Whether something that identifies the patient, or a date, was taken out of them.
        typed: Whether somebody typed them, so that they are not a terminology's own.
    """

    text: str
    masked: bool = False
    typed: bool = False

    @property
    def note(self) -> str:
        """What the report says of them."""
        told = ["typed"] * self.typed + ["what identifies the patient is masked"] * self.masked
        return ", ".join(told)

    def joined(self, text: str, other: Words | None) -> Words:
        """A text made of these words and of others, marked as both are."""
        if other is None:
            return replace(self, text=text)
        return Words(text, self.masked or other.masked, self.typed or other.typed)


def words_of(concept: Any, identifying: re.Pattern[str]) -> Words | None:
    """A concept in words; None where it has none.

    A published display goes first. Without one: the concept's text, another display, a published
    code, or any code with the last part of its system's name. All but published displays and codes
    may have been typed by anyone, so what identifies the patient is masked.
    """
    if concept is None:
        return None
    codings = concept.coding or ()
    for coding in codings:
        if coding.display and coding.system in _PUBLISHED:
            return Words(_line(coding.display))
    typed = concept.text or next((coding.display for coding in codings if coding.display), None)
    if typed:
        return typed_words(typed, identifying)
    for coding in codings:
        if coding.code and coding.system in _PUBLISHED:
            return Words(f"{_PUBLISHED[coding.system]} {coding.code}")
    for coding in codings:
        name = re.search(r"[A-Za-z0-9.-]{1,40}$", str(coding.system or ""))
        if coding.code and name:
            return typed_words(f"{name[0]} {coding.code}", identifying)
    return None


def says_nothing(concept: Any) -> bool:
    """Whether a concept says that nothing is known, or that there is nothing of its kind."""
    if concept is None:
        return False
    codings = concept.coding or ()
    if any(one.system in _NOTHING_SYSTEMS or one.code in _NOTHING_CODES for one in codings):
        return True
    told = [concept.text, *(one.display for one in codings)]
    return any(_NOTHING_WORDS.fullmatch(_line(text)) for text in told if text)


def typed_words(typed: str | None, identifying: re.Pattern[str]) -> Words | None:
    """A text that somebody typed, without what identifies the patient; None where it is empty."""
    text = _line(typed or "")
    if not text:
        return None
    bare = identifying.sub(MASK, text)
    return Words(bare, masked=bare != text, typed=True)


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
