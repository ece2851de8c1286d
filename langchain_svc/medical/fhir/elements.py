"""The elements of a resource that the import uses, and the names of those that it drops.

Names, addresses, identifiers and narratives never become objects: what is not in `USED` is dropped
before a resource is checked. What is dropped and may say more of a patient than what is sent has a
line in the report. fhir.resources checks the rest by its R4B classes, which for these types are
those of R4. Errors name the element, never a value.

An extension may change what an element means: in German records one says that a diagnosis is
excluded. A few are known and decide; every other one of a used element has a line in the report.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import ValidationError

from .resources import Resource, objects, text
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
    "Substance": "code",
    "FamilyMemberHistory": "status patient relationship condition date",
    "Observation": """
        status code subject effectiveDateTime effectivePeriod effectiveInstant effectiveTiming
        issued valueQuantity valueCodeableConcept valueString valueDateTime valueBoolean bodySite
        component
    """,
    "Specimen": "type subject",
}
# Types that are read where something refers to them.
REFERRED = frozenset({"Medication", "Substance", "Specimen"})
_DOSAGE = """
    text additionalInstruction patientInstruction timing asNeededBoolean asNeededCodeableConcept
"""
_PERIOD = "start end"
# What is used within these elements. Their displays and identifiers may name people.
_USED_WITHIN: Mapping[str, str] = {
    "subject": "reference type",
    "patient": "reference type",
    "medicationReference": "reference type display",
    "itemReference": "reference type display",
    "component": "code valueQuantity modifierExtension",
    "condition": "code onsetAge",
    "stage": "summary",
    "reaction": "substance manifestation severity",
    "ingredient": "itemCodeableConcept itemReference strength",
    "dosage": _DOSAGE,
    "dosageInstruction": _DOSAGE,
    "timing": "event repeat",
    "repeat": "boundsPeriod boundsDuration boundsRange",
    "dispenseRequest": "validityPeriod",
}
# What is neither used nor told of: it says nothing of the patient's state, says it again in another
# form (as a dose beside the dosage's own text), or is read elsewhere from the unchecked JSON.
_HARMLESS = frozenset("""
    resourceType id meta implicitRules language text contained extension modifierExtension
    identifier display type category code
    encounter context recorder asserter informationSource performer performerType requester
    location basedOn partOf derivedFrom instantiatesCanonical instantiatesUri groupIdentifier
    supportingInformation insurance priorPrescription eventHistory report device hasMember
    focus specimen reasonCode reasonReference reportedBoolean reportedReference priority
    substitution
    courseOfTherapyType focalDevice usedReference usedCode name sex
    manufacturer form amount batch isActive status
    sequence route site method doseAndRate count countMax duration durationMax durationUnit
    frequency frequencyMax period periodMax periodUnit dayOfWeek timeOfDay when offset
    initialFill dispenseInterval numberOfRepeatsAllowed quantity expectedSupplyDuration
    interpretation referenceRange dataAbsentReason exposureRoute onset assessment evidence
    bornPeriod bornDate bornString ageAge ageRange ageString estimatedAge
    deceasedBoolean deceasedAge deceasedRange deceasedDate deceasedString
    valueInteger valueRange valueRatio valueSampledData valueTime valuePeriod
    valueCodeableConcept valueString valueBoolean valueDateTime
""".split())  # fmt: skip
OF_ANOTHER_VERSION = "it holds an element of FHIR STU3 or R5, which R4 lacks"
_MODIFIED = "it has a modifierExtension, which may change it"
_DATATYPES = ("dosage", "timing")
_OF_NO_VERSION = "an element that FHIR R4 does not have"
# What a reader calls a part that is left out whole.
_PARTS: Mapping[str, str] = {
    "condition": "family history",
    "dosageInstruction": "dosage",
}


class ElementError(Exception):
    """One resource cannot be read; its text names the element and no value."""


class UsedElements(NamedTuple):
    """The used elements of a resource as an object of fhir.resources, and what was dropped.

    `dropped` has the parts of the resource with the reasons.
    """

    elements: Any
    dropped: tuple[tuple[str, str], ...]


def checked(kind: str, raw: Mapping[str, Any]) -> UsedElements:
    """A resource's used elements, or an ElementError."""
    if is_of_another_version(kind, raw):
        raise ElementError(OF_ANOTHER_VERSION)
    pruning = _Pruning(kind)
    elements = pruning.kept_of(raw, USED[kind].split())
    try:
        model = _model(kind).model_validate({"resourceType": kind, **elements})
    except ValidationError as error:
        first = error.errors(
            include_url=False, include_context=False, include_input=False
        )[0]
        raise ElementError(_problem_text(first)) from None
    except RecursionError:
        raise ElementError("it is nested too deeply") from None
    return UsedElements(model, tuple(dict.fromkeys(pruning.dropped)))


class _Pruning:
    """Cuts a resource down to what is used of it, and notes what that drops."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self.dropped: list[tuple[str, str]] = []

    def kept_of(
        self, value: Mapping[str, Any], used: Iterable[str], place: str = ""
    ) -> dict[str, Any]:
        """The used elements of an object."""
        if self._kind != "Patient":  # what else it holds is who the patient is
            self._note_dropped(value, used, place)
        kept = {name: self._kept(name, value[name]) for name in used if name in value}
        return {name: item for name, item in kept.items() if item is not _DROPPED}

    def _note_dropped(
        self, value: Mapping[str, Any], used: Iterable[str], place: str
    ) -> None:
        for name in sorted(value.keys() - _HARMLESS - set(used), key=str):
            if name.startswith(
                "_"
            ):  # extends a value; extensions are told of elsewhere
                continue
            known = name in _names_within(self._kind)  # another may say anything
            element = f"{place}.{name}".lstrip(".") if known else _OF_NO_VERSION
            part = "note" if name == "note" else "detail"
            self.dropped.append((part, f"{element} is not read"))

    def _kept(self, name: str, value: object) -> object:
        if isinstance(value, str):
            return without_leap_second(value)
        used = _PERIOD if name.endswith("Period") else _USED_WITHIN.get(name)
        if used is None:
            return value
        if isinstance(value, (list, tuple)):
            kept = [self._kept(name, item) for item in value]
            return [item for item in kept if item is not _DROPPED]
        if not isinstance(value, Mapping):
            return value
        if "modifierExtension" in value and "modifierExtension" not in used:
            self.dropped.append((_PARTS.get(name, name), _MODIFIED))
            return _DROPPED
        return self.kept_of(value, used.split(), name)


_DROPPED = object()


@lru_cache
def _names_within(kind: str) -> frozenset[str]:
    """The names of the elements of a type of resource, and of the parts that only it has."""
    names: set[str] = set()
    for module in (kind.lower(), *_DATATYPES):
        for value in vars(import_module(f"fhir.resources.R4B.{module}")).values():
            if isinstance(value, type) and hasattr(value, "elements_sequence"):
                names.update(value.elements_sequence())
    return frozenset(names)


def is_of_another_version(kind: str, raw: Mapping[str, Any]) -> bool:
    """Whether a resource has an element that only FHIR STU3 or R5 has."""
    unknown = {name.removeprefix("_") for name in raw} - _elements("R4B.", kind)
    return bool(unknown and unknown & (_elements("STU3.", kind) | _elements("", kind)))


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


# -- extensions ------------------------------------------------------------------------------------

REFUTED = "refuted"
DOUBTED = "doubted"
OVER = "over"
NOT_TAKEN = "not taken"
_NOTHING = ""
# What an extension's code decides, by the last part of the extension's address.
_DECIDING: Mapping[str, Mapping[str, str]] = {
    # German ICD-10-GM: excluded, suspected, state after, certain
    "icd-10-gm-diagnosesicherheit": {
        "A": REFUTED,
        "V": DOUBTED,
        "Z": OVER,
        "G": _NOTHING,
    },
    # US Core, by SNOMED CT: drug treatment is not taken; complies with it
    "us-core-medication-adherence": {"715036001": NOT_TAKEN, "1156699004": _NOTHING},
    # The assertion that a substance does no harm is written as an allergy to it.
    "allergyintolerance-substanceExposureRisk": {
        "no-known-reaction-risk": REFUTED,
        "known-reaction-risk": _NOTHING,
    },
}
# The address that FHIR has for an extension is that of its definition, which is of no patient. A
# sender may have written anything into any other.
_DEFINITION = re.compile(
    r"https?://[^\s?#]+/StructureDefinition/(?:[A-Za-z]+/)?([A-Za-z][\w.-]{0,63})",
    re.ASCII,
)


@dataclass(frozen=True)
class Extensions:
    """What a resource's extensions decide, and the names of those that are not known here."""

    decisions: frozenset[str]
    unknown: tuple[str, ...]


def extensions_of(resource: Resource) -> Extensions:
    """The extensions of the elements that are used, and of the resource itself.

    Those of a Patient itself describe the person, of whom no used element speaks.
    """
    decisions = set[str]()
    unknown = []
    for extension in _extensions(resource):
        url = text(extension.get("url"))
        deciding = _DECIDING.get(url.rpartition("/")[2], {})
        codes = [code for code in codes_in(extension) if code in deciding]
        decisions.update(deciding[code] for code in codes)
        if not codes:
            definition = _DEFINITION.fullmatch(url)
            unknown.append(definition[1] if definition else "one without a definition")
    return Extensions(frozenset(decisions), tuple(dict.fromkeys(unknown)))


def _extensions(resource: Resource) -> Iterator[Mapping[str, Any]]:
    raw = resource.raw
    if resource.kind != "Patient":
        yield from objects(raw.get("extension"))
    values: list[object] = []
    for element in USED[resource.kind].split():
        # What extends a primitive value stands beside it, behind an underscore.
        values += (raw.get(element), raw.get(f"_{element}"))
    while values:
        value = values.pop()
        if isinstance(value, (list, tuple)):
            values += reversed(value)
        elif isinstance(value, Mapping):
            yield from objects(value.get("extension"))
            values += [inner for name, inner in value.items() if name != "extension"]


def codes_in(extension: Mapping[str, Any]) -> Iterator[str]:
    """Every code in an extension, and in those within it."""
    values: list[tuple[str, object]] = [("", extension)]
    while values:
        name, value = values.pop()
        if isinstance(value, (list, tuple)):
            values += [(name, inner) for inner in value]
        elif isinstance(value, Mapping):
            values += value.items()
        elif name in {"code", "valueCode"}:
            yield text(value)
