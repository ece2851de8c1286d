"""Coded concepts as texts: a terminology's own words, or what somebody typed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from .report import Untrue

if TYPE_CHECKING:
    from fhir.resources.R4B.codeableconcept import CodeableConcept
    from fhir.resources.R4B.coding import Coding

# Terminologies that publish a display for each code; the one in a record is what its sender wrote.
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
    system: name
    for name, systems in _TERMINOLOGIES.items()
    for system in systems.split()
}
LOINC = frozenset(_TERMINOLOGIES["LOINC"].split())
SNOMED = frozenset(_TERMINOLOGIES["SNOMED CT"].split())
# What these terminologies give as codes; the standard lets a sender write any words there.
_CODE = re.compile(r"[A-Z]{1,12}|(?=.*[0-9])[0-9A-Z.&/+*!-]{1,40}")
# Codes that say why there is no code.
_NO_CODE_SYSTEMS = frozenset({
    "http://terminology.hl7.org/CodeSystem/data-absent-reason",
    "http://terminology.hl7.org/CodeSystem/v3-NullFlavor",
})  # fmt: skip
# Codes that say that nothing is known of a kind, or that there is nothing.
_NOTHING_SYSTEMS = frozenset(
    {"http://hl7.org/fhir/uv/ips/CodeSystem/absent-unknown-uv-ips"}
)
_NOTHING_CODES = frozenset({  # SNOMED CT, those that the International Patient Summary names
    "716186003", "409137002", "428607008", "429625007", "1003774007", "787481004", "787480003",
    "787482006", "787483001", "160245001",
})  # fmt: skip
NOTHING = Untrue("it says that nothing is known, or that there is nothing of its kind")
# A longer text is a narrative, which may tell anything about anybody.
LONGEST_TYPED = 200


@dataclass(frozen=True)
class Wording:
    """A concept in words, and whether somebody typed them, so that they may say anything."""

    text: str
    typed: bool = False


def words_of(concept: CodeableConcept | None) -> tuple[Wording, ...]:
    """A concept in words, if it has any: displays of terminologies first, then what somebody typed.

    A text that differs from the display is kept beside it, and so is the code. Without a display of
    a terminology, the words are the first of these: the concept's text, another display, a code of
    a terminology, any code behind the last part of its system's name. All but displays and codes of
    terminologies count as typed. `name_by_codes` leaves of a display its code.
    """
    if concept is None:
        return ()
    codings = [coding for coding in concept.coding or () if not _says_nothing(coding)]
    typed = typed_words(concept.text) or _unpublished_words(codings)
    published = [
        coding for coding in codings if line(coding.display) and _terminology(coding)
    ]
    if not published:
        words = typed or _code_alone(codings)
        if words is None:
            return ()
        return (words,)
    displays = [line(coding.display) for coding in published]
    first, *others = dict.fromkeys(displays)
    further = [Wording(f"also coded as: {display}") for display in others]
    if typed and typed.text.lower() not in first.lower():
        name = _name_of_code(published[0])
        if first != name:
            first += f" [{name}]"
        further.append(Wording(f"as written: {typed.text}", typed=True))
    return (Wording(first), *further)


def _terminology(coding: Coding) -> str:
    """The name of the published terminology of a code; empty where it is of none."""
    return _PUBLISHED.get(coding.system or "", "")


def _name_of_code(coding: Coding) -> str:
    return " ".join(filter(None, (_terminology(coding), coding.code)))


def name_by_codes(element: BaseModel) -> None:
    """Put the codes of terminologies, such as SNOMED CT 38341003, in place of their displays.

    A sender may have written anything as a display, and as a code too: what is not of the form of
    a code counts as typed. A text that repeats a display goes with it.
    """
    for concept in _concepts(element):
        codings = concept.coding or []
        displays = " ".join(line(coding.display) for coding in codings)
        if line(concept.text).lower() in displays.lower():
            concept.text = None
        for coding in codings:
            if not _terminology(coding):
                continue
            if _CODE.fullmatch(coding.code or ""):
                coding.display = _name_of_code(coding)
            else:
                coding.system = None


def _concepts(element: BaseModel) -> Iterator[CodeableConcept]:
    values: list[Any] = [element]
    while values:
        value = values.pop()
        if isinstance(value, (list, tuple)):
            values += value
        elif hasattr(value, "coding"):
            yield value
        elif isinstance(value, BaseModel):
            values += vars(value).values()


def _unpublished_words(codings: Iterable[Coding]) -> Wording | None:
    for coding in codings:
        if not _terminology(coding) and (words := typed_words(coding.display)):
            return words
    return None


def labelled(label: str, *concepts: CodeableConcept | None) -> list[Wording]:
    """Concepts that another is about, such as its sites, in words behind a label."""
    return [
        Wording(f"{label}: {words.text}", words.typed)
        for concept in concepts
        for words in words_of(concept)
    ]


def _code_alone(codings: Sequence[Coding]) -> Wording | None:
    for coding in codings:
        if coding.code and _terminology(coding):
            return Wording(_name_of_code(coding))
    for coding in codings:
        name = re.search(r"[A-Za-z0-9.-]{1,40}$", coding.system or "")
        if coding.code and name:
            return typed_words(f"{name[0]} {coding.code}")
    return None


def _codings(concept: CodeableConcept | None) -> Sequence[Coding]:
    if concept is None:
        return ()
    return concept.coding or ()


def nothing_said(concept: CodeableConcept | None) -> str:
    """Why a concept names nothing; empty where it may.

    A code that says that nothing is known, or that there is nothing of its kind, counts only where
    no other code stands beside it. Words of its own are never untrue.
    """
    codings = _codings(concept)
    if not codings or any(not _says_nothing(coding) for coding in codings):
        return ""
    text = line(concept.text if concept else "").lower()
    displays = {line(coding.display).lower() for coding in codings}
    if not text or text in displays:
        return NOTHING
    if all(coding.system in _NO_CODE_SYSTEMS for coding in codings):
        return ""  # its text says what no code says
    return (
        "its code says that there is nothing of its kind, but it has a text of its own"
    )


def _says_nothing(coding: Coding) -> bool:
    if coding.system in _NO_CODE_SYSTEMS or coding.system in _NOTHING_SYSTEMS:
        return True
    return coding.code in _NOTHING_CODES


def typed_words(typed: str | None) -> Wording | None:
    """A text that somebody typed, in one line; None if it is empty."""
    text = line(typed)
    if not text:
        return None
    return Wording(text, typed=True)


def line(text: str | None) -> str:
    """A text in one line; empty for None, and for the white space that some systems export."""
    return " ".join((text or "").split())


def codes_of(
    concept: CodeableConcept | None, systems: frozenset[str] | None = None
) -> tuple[str, ...]:
    """A concept's codes, of some systems or of all."""
    return tuple(
        coding.code
        for coding in _codings(concept)
        if coding.code and (systems is None or coding.system in systems)
    )
