"""Coded concepts as texts: a terminology's own words, or what somebody typed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .report import Settled

# Terminologies whose displays are published words and so cannot name a patient.
_TERMINOLOGIES: Mapping[str, str] = {
    "SNOMED CT": "http://snomed.info/sct urn:oid:2.16.840.1.113883.6.96",
    "ICD-9-CM": "http://hl7.org/fhir/sid/icd-9-cm urn:oid:2.16.840.1.113883.6.103",
    "ICD-10": "http://hl7.org/fhir/sid/icd-10 urn:oid:2.16.840.1.113883.6.3",
    "ICD-10-CM": "http://hl7.org/fhir/sid/icd-10-cm urn:oid:2.16.840.1.113883.6.90",
    "ICD-10-GM": "http://fhir.de/CodeSystem/bfarm/icd-10-gm",
    "ICD-11": "http://id.who.int/icd/release/11/mms",
    "ICPC-2": "http://hl7.org/fhir/sid/icpc-2",
    "RxNorm": "http://www.nlm.nih.gov/research/umls/rxnorm urn:oid:2.16.840.1.113883.6.88",
    "NDC": "http://hl7.org/fhir/sid/ndc",
    "ATC": """
        http://www.whocc.no/atc http://fhir.de/CodeSystem/bfarm/atc urn:oid:2.16.840.1.113883.6.73
    """,
    "LOINC": "http://loinc.org urn:oid:2.16.840.1.113883.6.1",
    "dm+d": "https://dmd.nhs.uk",
    "RoleCode": "http://terminology.hl7.org/CodeSystem/v3-RoleCode",
}
_PUBLISHED = {
    system: name for name, systems in _TERMINOLOGIES.items() for system in systems.split()
}
LOINC = frozenset(_TERMINOLOGIES["LOINC"].split())
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
NOTHING = Settled("it says that nothing is known, or that there is nothing of its kind")
LONGEST_TYPED = 200  # what is longer is a narrative, which may tell anything of anybody


@dataclass(frozen=True)
class Words:
    """A concept in words, and whether somebody typed them, so that they are not published ones."""

    text: str
    typed: bool = False


def words_of(concept: Any, *, text_first: bool = False) -> Words | None:
    """A concept in words; None where it has none.

    A published display goes first. Without one: the concept's text, another display, a published
    code, or any code with the last part of its system's name. All but published displays and codes
    may have been typed by anyone. With `text_first` the text goes first, or what tells a number:
    a display may be less than was prescribed.
    """
    if concept is None:
        return None
    codings = concept.coding or ()
    shown = [
        Words(_line(one.display)) for one in codings if one.display and one.system in _PUBLISHED
    ]
    typed = concept.text or next((one.display for one in codings if one.display), None)
    told = typed_words(typed)
    if text_first and told and len(told.text) <= LONGEST_TYPED:
        both = (told, *shown)
        return next((one for one in both if re.search("[0-9]", one.text)), told)
    return next(iter(shown), None) or told or _code_alone(codings)


def _code_alone(codings: Any) -> Words | None:
    for one in codings:
        if one.code and one.system in _PUBLISHED:
            return Words(f"{_PUBLISHED[one.system]} {one.code}")
    for one in codings:
        name = re.search(r"[A-Za-z0-9.-]{1,40}$", str(one.system or ""))
        if one.code and name:
            return typed_words(f"{name[0]} {one.code}")
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


def typed_words(typed: str | None) -> Words | None:
    """A text that somebody typed, in one line; None where it is empty."""
    text = _line(typed or "")
    return Words(text, typed=True) if text else None


def _line(text: str) -> str:
    return " ".join(text.split())


def terminology(coding: Any) -> str:
    """The system of a code, by its address and its usual name, in lower case."""
    return f"{coding.system} {_PUBLISHED.get(str(coding.system), '')}".lower()


def codes_of(concept: Any, systems: frozenset[str] | None = None) -> tuple[str, ...]:
    """A concept's codes, of some systems or of all."""
    codings = (concept.coding or ()) if concept is not None else ()
    return tuple(
        str(coding.code)
        for coding in codings
        if coding.code and (systems is None or coding.system in systems)
    )
