"""Whose a resource is: a bundle is about one patient, and nothing of another may slip in."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...errors import SvcRequestError
from .bundle import Resource, objects, text

_PATIENT = re.compile(
    r"(?:.*/)?Patient/([A-Za-z0-9.-]{1,64})(?:/_history/[A-Za-z0-9.-]+)?"
)
_OF_A_PATIENT = frozenset({"FamilyMemberHistory", "AllergyIntolerance", "Consent"})
_ABSOLUTE = ("http://", "https://")


def _without_version(url: str) -> str:
    return url.partition("/_history/")[0]


class Subject:
    """The one patient of a record, as far as references tell; `wanted` passes others over."""

    def __init__(
        self, resources: Iterable[Resource], wanted: str | None = None
    ) -> None:
        self._kinds = {
            resource.url: resource.kind for resource in resources if resource.url
        }
        self._only = wanted is not None
        self._count_owners(resources)
        self._url, self._id = "", ""
        patients = [one for one in resources if one.kind == "Patient"]
        if wanted is not None:
            reference = (
                wanted if "/" in wanted or ":" in wanted else f"Patient/{wanted}"
            )
            self._url, self._id = _without_version(reference), _id_of(reference)
            patients = [
                one for one in patients if self._is(one.url) or one.id == self._id
            ]
        if len({_identity(one) for one in patients}) > 1:
            raise SvcRequestError(
                f"The record holds {len(patients)} patients (entries "
                f"{', '.join(str(one.entry) for one in patients[:10])}); a record is about one: "
                "give one for each, or name one with patient="
            )
        self.resource = patients[0] if patients else None
        if self.resource is not None:
            self._url = _without_version(self.resource.url)
            self._id = self.resource.id or _id_of(self._url)

    def _count_owners(self, resources: Iterable[Resource]) -> None:
        """Whether the source is of one patient on one server, so that nothing is of another's."""
        names = set(filter(self._names_a_patient, map(_name_of_patient, resources)))
        ids = {resource.id for resource in resources if resource.kind == "Patient"}
        ids.update(map(_id_of, names))
        self._servers = {
            _server_of(name) for name in names if name.startswith(_ABSOLUTE)
        }
        self._is_alone = len(ids - {""}) <= 1 and len(self._servers) <= 1

    def passes_over(self, resource: Resource) -> bool:
        """Whether a resource is another patient's than the one who was asked for."""
        if not self._only:
            return False
        if resource.kind == "Patient":
            return self.resource is None or _identity(resource) != _identity(
                self.resource
            )
        reference = _reference(resource)
        return self._names_a_patient(reference) and not self._is(
            _without_version(reference)
        )

    def owns(self, resource: Resource) -> bool:
        """Whether a resource is this patient's; False where that is unclear, else it raises."""
        name = _element(resource)
        if resource.raw.get(name) is None:
            return resource.kind == "Patient" or self._is_alone
        reference = _reference(resource)
        if not self._names_a_patient(reference):
            return False
        if (
            not self._url and not self._id
        ):  # there is no Patient: the first one named is the one
            self._url, self._id = _without_version(reference), _id_of(reference)
        if self._is(_without_version(reference)):
            return not self._is_of_an_unknown_server(reference)
        raise SvcRequestError(
            f"{resource.place} ({resource.kind}): {name} is another patient than that of the "
            "record, which is about one: give one record for each, or name one with patient="
        )

    def _names_a_patient(self, reference: str) -> bool:
        kind = self._kinds.get(reference)
        if kind is not None:
            return kind == "Patient"
        return reference.startswith("urn:") or _PATIENT.fullmatch(reference) is not None

    def _is_of_an_unknown_server(self, reference: str) -> bool:
        """Whether several servers have a patient of this id, and nothing says which is this one."""
        absolute = reference.startswith(_ABSOLUTE)
        return (
            absolute and not self._url.startswith(_ABSOLUTE) and len(self._servers) > 1
        )

    def _is(self, reference: str) -> bool:
        if reference == self._url:
            return True
        if reference.startswith(_ABSOLUTE) and self._url.startswith(_ABSOLUTE):
            return False  # the same id on two servers is two patients
        return bool(self._id) and _id_of(reference) == self._id


def _identity(patient: Resource) -> tuple[str, str, int]:
    """What tells Patient resources apart: pages of one search may repeat the same."""
    known = patient.id or patient.url
    server = patient.url if patient.url.startswith(_ABSOLUTE) else ""
    return (_without_version(server), known, 0 if known else patient.order)


def _element(resource: Resource) -> str:
    """The element that says whose a resource is."""
    return "patient" if resource.kind in _OF_A_PATIENT else "subject"


def _reference(resource: Resource) -> str:
    held = objects([resource.raw.get(_element(resource))])
    return next((text(one.get("reference")) for one in held), "")


def _id_of(reference: str) -> str:
    if reference.startswith("urn:"):
        return reference.rpartition(":")[2]
    found = _PATIENT.fullmatch(reference)
    return found[1] if found else ""


def _name_of_patient(resource: Resource) -> str:
    """The address of a Patient, or the reference to one."""
    return resource.url if resource.kind == "Patient" else _reference(resource)


def _server_of(reference: str) -> str:
    return reference.partition("/Patient/")[0]
