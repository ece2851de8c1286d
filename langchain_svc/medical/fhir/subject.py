"""Whose a resource is: a record is about one patient, and nothing of another may get into it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...errors import SvcRequestError
from .resources import Name, Names, Resource, name_of, text

_OF_A_PATIENT = frozenset({"FamilyMemberHistory", "AllergyIntolerance", "Consent"})


class Subject:
    """The one patient of a record.

    With `patient`, an id or a reference, it is that one, and resources of all others are passed
    over.
    """

    def __init__(
        self, resources: Sequence[Resource], patient: str | None = None
    ) -> None:
        self._names = Names(resources)
        self._is_named = patient is not None
        self._look_for_others(resources)
        self._own: tuple[Name, ...] = ()
        patients = [resource for resource in resources if resource.kind == "Patient"]
        if patient is not None:
            name = _name_given(patient)
            self._own = (name,)
            patients = [
                found for found in self._names.all_of(name) if found.kind == "Patient"
            ]
        if len(patients) > 1:
            entries = ", ".join(str(resource.entry) for resource in patients[:10])
            raise SvcRequestError(
                f"The record holds {len(patients)} patients (entries {entries}); a record is about "
                "one: give one for each, or name one with patient=, by its whole address where "
                "two servers have one of its id"
            )
        self.resource: Resource | None = patients[0] if patients else None
        if self.resource is not None:
            self._own = self.resource.names

    def _look_for_others(self, resources: Iterable[Resource]) -> None:
        """Note the servers, and whether the source knows one patient alone.

        If so, a resource without a reference can only be that patient's.
        """
        owners: set[object] = set()
        self._servers: set[str] = set()
        for resource in resources:
            for name in _patients_of(resource):
                if self._is_a_patient(name):
                    owners.add(self._identity(name))
                    self._servers |= {name.server} - {""}
        self._is_alone = len(owners) <= 1 and len(self._servers) <= 1

    def _identity(self, name: Name) -> object:
        """The Patient that a name means, or else its id."""
        found = self._names.all_of(name)
        return found[0].order if len(found) == 1 else name.id

    def passes_over(self, resource: Resource) -> bool:
        """Whether the caller named a patient, and a resource is another's."""
        if not self._is_named:
            return False
        if resource.kind == "Patient":
            return not any(map(self._is, resource.names))
        name = _name_of_owner(resource.raw, resource.kind, resource)
        return name is not None and self._is_a_patient(name) and not self._is(name)

    def owns(self, resource: Resource) -> bool:
        """Whether a resource is this patient's; False if that is unclear.

        Raises:
            SvcRequestError: It is another patient's.
        """
        element = _element(resource.kind)
        if resource.raw.get(element) is None:
            return resource.kind == "Patient" or self._is_alone
        name = _name_of_owner(resource.raw, resource.kind, resource)
        if name is None or not self._is_a_patient(name):
            return False
        if not self._own:
            self._own = (name,)  # no Patient: the first reference decides
        if self._is(name):
            return not self._is_of_an_unknown_server(name)
        if any(own.id == name.id for own in self._own):
            return False  # of another server, where the same id may be anybody's
        raise SvcRequestError(
            f"{resource.place} ({resource.kind}): {element} is another patient than that of the "
            "record, which is about one: give one record for each, or name one with patient="
        )

    def is_another(self, raw: Mapping[str, Any], kind: str, origin: Resource) -> bool:
        """Whether what a resource refers to says that it is of somebody else."""
        name = _name_of_owner(raw, kind, origin)
        return name is not None and not self._is(name)

    def resolved(
        self, reference: str, origin: Resource
    ) -> tuple[Mapping[str, Any], Resource] | None:
        """What a resource refers to, with what it stands in; None where that is not clear."""
        return self._names.resolved(reference, origin)

    def _is_a_patient(self, name: Name) -> bool:
        if name.kind:
            return name.kind == "Patient"
        kinds = {resource.kind for resource in self._names.all_of(name)}
        # A URN of nothing that is in the source is taken for a patient's.
        return kinds == {"Patient"} or (not kinds and bool(name.id))

    def _is_of_an_unknown_server(self, name: Name) -> bool:
        """Whether several servers have a patient of this id, and it is unclear which is meant."""
        if len(self._servers) <= 1:
            return False
        return all(own.server != name.server for own in self._own)

    def _is(self, name: Name) -> bool:
        return any(own.may_be(name) for own in self._own)


def _name_given(patient: str) -> Name:
    is_reference = "/" in patient or ":" in patient
    name = name_of(patient if is_reference else f"Patient/{patient}")
    if name is None:
        raise SvcRequestError(
            "patient= must be the id of a Patient, or a reference such as Patient/123, its whole "
            "address or a urn:uuid"
        )
    return name


def _element(kind: str) -> str:
    """The element that says whose a resource is."""
    return "patient" if kind in _OF_A_PATIENT else "subject"


def _name_of_owner(raw: Mapping[str, Any], kind: str, origin: Resource) -> Name | None:
    """Whose a resource says it is; it is `origin`, or stands in it."""
    element = raw.get(_element(kind))
    if not isinstance(element, Mapping):
        return None
    return name_of(text(element.get("reference")), origin.url)


def _patients_of(resource: Resource) -> tuple[Name, ...]:
    """The names of a Patient, or the reference to one."""
    if resource.kind == "Patient":
        return resource.names
    name = _name_of_owner(resource.raw, resource.kind, resource)
    return (name,) if name else ()
