"""The resources of a record, each cut down to the elements that the import uses.

Names, addresses, identifiers and narratives never become objects: what is not in `USED` is dropped
before a resource is checked. fhir.resources checks the rest by its R4B classes, which for these
types are those of R4. Errors name the entry and the element, never a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from .times import without_leap_second

if TYPE_CHECKING:
    from fhir_core.fhirabstractmodel import FHIRAbstractModel
    from pydantic_core import ErrorDetails

USED: Mapping[str, str] = {
    "Patient": "birthDate gender",
    "Condition": """
        clinicalStatus verificationStatus severity code bodySite stage subject onsetDateTime
        onsetPeriod recordedDate
        abatementDateTime abatementAge abatementPeriod abatementRange abatementString
    """,
    "AllergyIntolerance": """
        clinicalStatus verificationStatus type code patient onsetDateTime onsetPeriod recordedDate
        criticality reaction
    """,
    "Procedure": "status code bodySite subject performedDateTime performedPeriod",
    "MedicationStatement": """
        status medicationCodeableConcept medicationReference subject effectiveDateTime
        effectivePeriod dateAsserted dosage
    """,
    "MedicationRequest": """
        status intent doNotPerform medicationCodeableConcept medicationReference subject authoredOn
        dosageInstruction dispenseRequest
    """,
    "Medication": "code ingredient",
    "FamilyMemberHistory": "status patient relationship condition date",
    "Observation": """
        status code subject effectiveDateTime effectivePeriod effectiveInstant issued valueQuantity
        valueCodeableConcept valueString valueDateTime valueBoolean bodySite component
    """,
}
# What is used within these elements. Their displays and identifiers may name people.
_USED_WITHIN: Mapping[str, str] = {
    "subject": "reference type",
    "patient": "reference type",
    "medicationReference": "reference type display",
    "component": "code valueQuantity modifierExtension",
    "condition": "code onsetAge",
    "stage": "summary",
    "reaction": "substance manifestation severity",
    "ingredient": "itemCodeableConcept strength",
    "dosage": "text",
    "dosageInstruction": "text timing",
    "timing": "repeat",
    "repeat": "boundsPeriod",
    "dispenseRequest": "validityPeriod",
}
# Low, moderate, normal and unrestricted of v3 Confidentiality, and test data, which is about
# nobody. Every other label restricts.
_UNRESTRICTED = frozenset({"L", "M", "N", "U", "HTEST"})
_NAMED_CODES: Mapping[str, re.Pattern[str]] = {
    "http://loinc.org": re.compile(r"[0-9]{1,7}-[0-9]"),
    "http://snomed.info/sct": re.compile(r"[0-9]{6,18}"),
}
KIND = re.compile(r"[A-Z][A-Za-z]{1,39}")


def objects(value: object) -> Iterator[Mapping[str, Any]]:
    """The objects in an unchecked JSON list; none if the value is no list."""
    if not isinstance(value, (list, tuple)):
        return
    for item in value:
        if isinstance(item, Mapping):
            yield item


def text(value: object) -> str:
    """An unchecked value if it is a text, or else an empty text."""
    return value if isinstance(value, str) else ""


def is_restricted(raw: Mapping[str, Any]) -> bool:
    """Whether a resource or bundle has a security label that restricts who may read it."""
    labels = [
        text(label.get("code"))
        for meta in objects([raw.get("meta")])
        for label in objects(meta.get("security"))
    ]
    if "confidentiality" in raw:  # of a Composition
        labels.append(text(raw["confidentiality"]))
    return not _UNRESTRICTED.issuperset(labels)


class ElementError(Exception):
    """One resource cannot be read; its text names the element and no value."""


@dataclass(frozen=True)
class Resource:
    """One entry's resource, unchecked.

    Reports name it by its index `entry`, errors by its `place`. `order` is its number among all
    resources; `url` and `method` are those of its entry.
    """

    entry: int | str
    kind: str
    raw: Mapping[str, Any] = field(repr=False)
    place: str
    order: int
    url: str = ""
    method: str = ""

    @property
    def id(self) -> str:
        return text(self.raw.get("id"))

    @property
    def modified(self) -> bool:
        return "modifierExtension" in self.raw or "implicitRules" in self.raw

    @property
    def restricted(self) -> bool:
        return is_restricted(self.raw)

    @property
    def name(self) -> str:
        """Its type, and of an Observation its code too, where a terminology publishes it."""
        if self.kind != "Observation":
            return self.kind
        for concept in objects([self.raw.get("code")]):
            for coding in objects(concept.get("coding")):
                code = text(coding.get("code"))
                pattern = _NAMED_CODES.get(text(coding.get("system")))
                if pattern and pattern.fullmatch(code):
                    return f"{self.kind} {code}"
        return self.kind

    def codes(self) -> set[str] | None:
        """The unchecked codes of an Observation and its components; None if they are odd."""
        if self.kind != "Observation":
            return None
        try:
            codes = _codes_of(self.raw)
            for component in self.raw.get("component", ()):
                codes |= _codes_of(component)
        except (AttributeError, KeyError, TypeError):
            return None
        return codes

    def own_codes(self) -> set[str]:
        """The unchecked codes of an Observation as a whole; none if they are odd."""
        try:
            return _codes_of(self.raw)
        except (AttributeError, KeyError, TypeError):
            return set()


def _codes_of(part: Mapping[str, Any]) -> set[str]:
    return {coding.get("code") for coding in part["code"]["coding"]}


def checked(kind: str, raw: Mapping[str, Any]) -> Any:
    """A resource's used elements as an object of fhir.resources, or an ElementError."""
    if is_of_another_version(kind, raw):
        raise ElementError("it holds an element of FHIR STU3 or R5, which R4 lacks")
    elements = {
        name: _pruned(name, raw[name]) for name in USED[kind].split() if name in raw
    }
    try:
        return _model(kind).model_validate({"resourceType": kind, **elements})
    except ValidationError as error:
        first = error.errors(
            include_url=False, include_context=False, include_input=False
        )[0]
        raise ElementError(_problem_text(first)) from None
    except RecursionError:
        raise ElementError("it is nested too deeply") from None


def is_of_another_version(kind: str, raw: Mapping[str, Any]) -> bool:
    """Whether a resource has an element that only FHIR STU3 or R5 has."""
    unknown = {name.removeprefix("_") for name in raw} - _elements("R4B.", kind)
    return bool(unknown and unknown & (_elements("STU3.", kind) | _elements("", kind)))


def _pruned(name: str, value: object) -> object:
    """The value of an element without what is not used of it."""
    if isinstance(value, str):
        return without_leap_second(value)
    inner_names = _USED_WITHIN.get(name)
    if name.endswith("Period"):
        inner_names = "start end"
    if inner_names is None:
        return value
    if isinstance(value, (list, tuple)):
        return [_pruned(name, item) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {
        inner: _pruned(inner, value[inner])
        for inner in inner_names.split()
        if inner in value
    }


_PROBLEMS: Mapping[str, str] = {
    "missing": "is missing",
    "string_type": "must be a text",
    "extra_forbidden": "holds an element that FHIR R4 does not have",
}


def _problem_text(problem: ErrorDetails) -> str:
    """What is wrong, by the names of elements: a name that FHIR does not have is not repeated."""
    path = problem["loc"]
    if problem["type"] == "extra_forbidden":
        path = path[:-1]
    place = ""
    for part in path:
        place += f"[{part}]" if isinstance(part, int) else f".{part}"
    reason = _PROBLEMS.get(problem["type"], "is not what FHIR R4 allows there")
    return f"{place.lstrip('.') or 'the resource'} {reason}"


@lru_cache
def is_of_r4(kind: str) -> bool:
    """Whether FHIR R4 has a type of resource of this name."""
    _model("Patient")  # without the extra, say how to get it
    return find_spec(f"fhir.resources.R4B.{kind.lower()}") is not None


@lru_cache
def _elements(version: str, kind: str) -> frozenset[str]:
    """The elements of a type of resource in a version of FHIR; without one, in R5."""
    return frozenset((*_model(kind, version).elements_sequence(), "resourceType"))


@lru_cache
def _model(kind: str, version: str = "R4B.") -> type[FHIRAbstractModel]:
    try:
        module = import_module(f"fhir.resources.{version}{kind.lower()}")
    except ImportError:
        raise ImportError(
            "Reading FHIR needs fhir.resources: pip install 'langchain-svc[fhir]'"
        ) from None
    model: type[FHIRAbstractModel] = getattr(module, kind)
    return model
