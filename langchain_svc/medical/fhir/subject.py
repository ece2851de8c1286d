"""Whose a resource is: a record is about one patient, and nothing of another may get into it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ...errors import SvcRequestError
from .bundle import Resource, text

_PATIENT = re.compile(
    r"(?:.*/)?Patient/([A-Za-z0-9.-]{1,64})(?:/_history/[A-Za-z0-9.-]+)?"
)
_OF_A_PATIENT = frozenset({"FamilyMemberHistory", "AllergyIntolerance", "Consent"})
_ABSOLUTE = ("http://", "https://")


def _without_version(url: str) -> str:
    return url.partition("/_history/")[0]


class Subject:
    """The one patient of a record.

    With `patient`, an id or a reference, it is that one, and resources of all others are passed
    over.
    """

    def __init__(
        self, resources: Iterable[Resource], patient: str | None = None
    ) -> None:
        self._kinds = {
            resource.url: resource.kind for resource in resources if resource.url
        }
        self._is_named = patient is not None
        self._look_for_others(resources)
        self._url = ""
        self._id = ""
        patients = [resource for resource in resources if resource.kind == "Patient"]
        if patient is not None:
            is_reference = "/" in patient or ":" in patient
            self._point_to(patient if is_reference else f"Patient/{patient}")
            patients = [
                resource
                for resource in patients
                if self._is(resource.url) or resource.id == self._id
            ]
        if len(set(map(_identity, patients))) > 1:
            entries = ", ".join(str(resource.entry) for resource in patients[:10])
            raise SvcRequestError(
                f"The record holds {len(patients)} patients (entries {entries}); a record is about "
                "one: give one for each, or name one with patient="
            )
        self.resource = patients[0] if patients else None
        if self.resource is not None:
            self._url = _without_version(self.resource.url)
            self._id = self.resource.id or _id_of(self._url)

    def _point_to(self, reference: str) -> None:
        self._url = _without_version(reference)
        self._id = _id_of(reference)

    def _look_for_others(self, resources: Iterable[Resource]) -> None:
        """Note the servers, and whether the source knows one patient alone.

        If so, a resource without a reference can only be that patient's.
        """
        ids = set()
        self._servers = set()
        for resource in resources:
            if resource.kind == "Patient":
                ids.add(resource.id)
            name = _name_of_patient(resource)
            if not self._names_a_patient(name):
                continue
            ids.add(_id_of(name))
            if name.startswith(_ABSOLUTE):
                self._servers.add(_server_of(name))
        self._is_alone = len(ids - {""}) <= 1 and len(self._servers) <= 1

    def passes_over(self, resource: Resource) -> bool:
        """Whether the caller named a patient, and a resource is another's."""
        if not self._is_named:
            return False
        if resource.kind == "Patient":
            if self.resource is None:
                return True
            return _identity(resource) != _identity(self.resource)
        reference = _reference(resource)
        if not self._names_a_patient(reference):
            return False
        return not self._is(_without_version(reference))

    def owns(self, resource: Resource) -> bool:
        """Whether a resource is this patient's; False if that is unclear.

        Raises:
            SvcRequestError: It is another patient's.
        """
        name = _element(resource)
        if resource.raw.get(name) is None:
            return resource.kind == "Patient" or self._is_alone
        reference = _reference(resource)
        if not self._names_a_patient(reference):
            return False
        if not self._url and not self._id:
            self._point_to(reference)  # no Patient: the first reference decides
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
        """Whether several servers have a patient of this id, and it is unclear which is meant."""
        if not reference.startswith(_ABSOLUTE) or self._url.startswith(_ABSOLUTE):
            return False
        return len(self._servers) > 1

    def _is(self, reference: str) -> bool:
        if reference == self._url:
            return True
        if reference.startswith(_ABSOLUTE) and self._url.startswith(_ABSOLUTE):
            return False  # the same id on two servers is two patients
        return bool(self._id) and _id_of(reference) == self._id


def _identity(patient: Resource) -> tuple[str, str, int]:
    """What tells Patient resources apart: pages of one search may repeat the same."""
    server = ""
    if patient.url.startswith(_ABSOLUTE):
        server = _without_version(patient.url)
    name = patient.id or patient.url
    return (server, name, 0 if name else patient.order)


def _element(resource: Resource) -> str:
    """The element that says whose a resource is."""
    return "patient" if resource.kind in _OF_A_PATIENT else "subject"


def _reference(resource: Resource) -> str:
    element = resource.raw.get(_element(resource))
    if not isinstance(element, Mapping):
        return ""
    return text(element.get("reference"))


def _id_of(reference: str) -> str:
    if reference.startswith("urn:"):
        return reference.rpartition(":")[2]
    match = _PATIENT.fullmatch(reference)
    return match[1] if match else ""


def _name_of_patient(resource: Resource) -> str:
    """The address of a Patient, or the reference to one."""
    return resource.url if resource.kind == "Patient" else _reference(resource)


def _server_of(reference: str) -> str:
    return reference.partition("/Patient/")[0]
