"""A record's resources, and of each only the elements that are used.

Names, addresses, identifiers and narratives are not read into anything: what is not in `_USED` is
dropped before a resource is checked. What remains is checked by the R4B classes of fhir.resources,
which for these types are those of R4. Errors name the entry and the element, never a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import Any

from pydantic import ValidationError

_STATUS = ("clinicalStatus", "verificationStatus", "status")
_ABATED = ("abatementDateTime", "abatementAge", "abatementPeriod", "abatementRange")
_MEDICATION = ("medicationCodeableConcept", "medicationReference")
_USED: Mapping[str, tuple[str, ...]] = {
    "Patient": ("birthDate", "gender", "deceasedDateTime", "deceasedBoolean"),
    "Condition": (*_STATUS[:2], "code", "subject", *_ABATED, "abatementString"),
    "AllergyIntolerance": (*_STATUS[:2], "type", "code", "patient"),
    "Procedure": ("status", "code", "subject"),
    "DiagnosticReport": (
        "status", "code", "subject", "effectiveDateTime", "effectivePeriod", "issued",
        "conclusion", "conclusionCode",
    ),
    "MedicationStatement": (
        "status", *_MEDICATION, "subject", "effectiveDateTime", "effectivePeriod",
    ),
    "MedicationRequest": ("status", "intent", "doNotPerform", *_MEDICATION, "subject"),
    "Medication": ("code",),
    "FamilyMemberHistory": ("status", "patient", "relationship", "condition"),
    "Observation": (
        "status", "code", "subject", "effectiveDateTime", "effectivePeriod", "effectiveInstant",
        "issued", "valueQuantity", "valueCodeableConcept", "component",
    ),
}  # fmt: skip
# Of what these hold, too, only that: their displays and identifiers may name people.
_USED_WITHIN: Mapping[str, tuple[str, ...]] = {
    "subject": ("reference", "type"),
    "patient": ("reference", "type"),
    "medicationReference": ("reference", "type", "display"),
    "component": ("code", "valueQuantity", "modifierExtension"),
    "condition": ("code", "onsetAge", "onsetRange", "onsetString"),
}
_RESTRICTED = ("R", "V")  # HL7 v3 Confidentiality
KIND = re.compile(r"[A-Z][A-Za-z]{1,39}")


def objects(held: Any) -> Iterator[Mapping[str, Any]]:
    """The objects of an unchecked JSON list; none where there is no list."""
    for one in held if isinstance(held, (list, tuple)) else ():
        if isinstance(one, Mapping):
            yield one


class ElementError(Exception):
    """One resource cannot be read; its `reason` names the element and no value."""

    def __init__(self, place: str, kind: str, reason: str) -> None:
        super().__init__(f"{place} ({kind}): {reason}")
        self.reason = reason


@dataclass(frozen=True)
class Resource:
    """One entry's resource, unchecked; `read()` checks it.

    Attributes:
        entry: Its index in `Bundle.entry`; in a bundle within a bundle both, such as "3.0".
        kind: Its resource type.
        url: The entry's `fullUrl`; empty where there is none.
        raw: Its JSON.
        method: The HTTP method of the entry's request; empty where there is none.
        place: Where it stands, for errors.
        order: Its number among all.
    """

    entry: int | str
    kind: str
    url: str
    raw: Mapping[str, Any] = field(repr=False)
    method: str
    place: str
    order: int

    @property
    def id(self) -> str:
        """Its id; empty where it has none."""
        held = self.raw.get("id")
        return held if isinstance(held, str) else ""

    @property
    def modified(self) -> bool:
        """Whether it says that its elements mean something else for those who know."""
        return "modifierExtension" in self.raw or "implicitRules" in self.raw

    @property
    def restricted(self) -> bool:
        """Whether its confidentiality label is restricted (R) or very restricted (V)."""
        meta = self.raw.get("meta")
        labels = meta.get("security") if isinstance(meta, Mapping) else None
        return any(label.get("code") in _RESTRICTED for label in objects(labels))

    def codes(self) -> set[str] | None:
        """The unchecked codes of an Observation and its components; None if they are odd."""
        if self.kind != "Observation":
            return None
        try:
            parts = [self.raw, *self.raw.get("component", ())]
            return {coding.get("code") for part in parts for coding in part["code"]["coding"]}
        except (AttributeError, KeyError, TypeError):
            return None

    def read(self) -> Any:
        """The resource as an object of fhir.resources, with the used elements only.

        Raises:
            ElementError: An element is not what FHIR R4 allows.
        """
        return checked(self.kind, self.raw, self.place)


def checked(kind: str, raw: Mapping[str, Any], place: str) -> Any:
    """A resource's used elements as an object of fhir.resources.

    Raises:
        ElementError: An element is not what FHIR R4 allows.
    """
    kept = {name: _pruned(name, raw[name]) for name in _USED[kind] if name in raw}
    try:
        return _model(kind).model_validate({"resourceType": kind, **kept})
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise ElementError(place, kind, _said(first)) from None
    except RecursionError:
        raise ElementError(place, kind, "it is nested too deeply") from None


def _pruned(name: str, value: Any) -> Any:
    within = _USED_WITHIN.get(name)
    if within is None:
        return value
    if isinstance(value, (list, tuple)):
        return [_pruned(name, one) for one in value]
    if not isinstance(value, Mapping):
        return value
    return {inner: value[inner] for inner in within if inner in value}


_PROBLEMS: Mapping[str, str] = {
    "missing": "is missing",
    "string_type": "must be a text",
    "extra_forbidden": "holds an element that FHIR R4 does not have",
}


def _said(problem: Any) -> str:
    """What is wrong, by the names of elements: a name that FHIR does not have is not repeated."""
    path = problem["loc"]
    if problem["type"] == "extra_forbidden":
        path = path[:-1]
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    said = _PROBLEMS.get(problem["type"], "is not what FHIR R4 allows there")
    return f"{where.lstrip('.') or 'the resource'} {said}"


@lru_cache
def _model(kind: str) -> Any:
    try:
        module = import_module(f"fhir.resources.R4B.{kind.lower()}")
    except ImportError:
        raise ImportError(
            "Reading FHIR needs fhir.resources: pip install 'langchain-svc[fhir]'"
        ) from None
    return getattr(module, kind)
