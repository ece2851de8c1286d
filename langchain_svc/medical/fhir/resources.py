"""The resources of a record, unchecked: where each stands, its names, and whose it is.

A record is about one patient, and nothing of another may get into it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...errors import SvcRequestError

# Low, moderate, normal and unrestricted of v3 Confidentiality, and test data, which is about
# nobody. Every other label restricts.
_UNRESTRICTED = frozenset({"L", "M", "N", "U", "HTEST"})
_LOINC = re.compile(r"[0-9]{1,7}-[0-9]")
_NAMED_CODES: Mapping[str, re.Pattern[str]] = {
    "http://loinc.org": _LOINC,
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


def is_loinc(code: str) -> bool:
    """Whether a text has the form of a LOINC code."""
    return _LOINC.fullmatch(code) is not None


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


@dataclass(frozen=True)
class Resource:
    """One entry's resource, unchecked.

    Reports name it by its index `entry`, errors by its `place`. `order` is its number among all
    resources; `url` is the address of its entry, `method` and `target` are those of the request
    that the entry is, and `answered` is when the server carried it out.
    """

    entry: int | str
    kind: str
    raw: Mapping[str, Any] = field(repr=False)
    place: str
    order: int
    url: str = ""
    method: str = ""
    target: str = ""
    answered: str = ""

    @property
    def id(self) -> str:
        return text(self.raw.get("id"))

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

    @cached_property
    def names(self) -> tuple[Name, ...]:
        """Its names: by its entry's address, and by its id."""
        names = []
        if name := name_of(self.url):
            names.append(name)
        if self.id:
            server = names[0].server if names and names[0].kind else ""
            names.append(Name(server, self.kind, self.id))
        return tuple(dict.fromkeys(names))

    def contained(self) -> Iterator[Mapping[str, Any]]:
        """The unchecked resources that it contains."""
        return objects(self.raw.get("contained"))


def _codes_of(part: Mapping[str, Any]) -> set[str]:
    return {coding.get("code") for coding in part["code"]["coding"]}


# -- names -----------------------------------------------------------------------------------------
# Names of resources: what an entry's address and a reference say, resolved once and compared.
#
# A relative reference means the server of the entry in which it stands (FHIR R4, Bundle,
# "Resolving references"). Where an entry names no server, its references may mean any.

_ADDRESS = re.compile(r"(?:(.*)/)?([A-Z][A-Za-z]{1,39})/([A-Za-z0-9.-]{1,64})")
_SERVERS = ("http://", "https://")


@dataclass(frozen=True)
class Name:
    """Which resource is meant.

    `server` is empty where it is not known, and `kind` for a URN. An address that is not that of a
    resource on a server is all `server`.
    """

    server: str
    kind: str = ""
    id: str = ""

    def may_be(self, other: Name) -> bool:
        """Whether both can mean one resource, as far as they go."""
        if not (self.id and other.id):
            return self == other
        return (
            self.id == other.id
            and _agree(self.kind, other.kind)
            and _agree(self.server, other.server)
        )


def _agree(first: str, second: str) -> bool:
    return not first or not second or first == second


def name_of(reference: str, within: str = "") -> Name | None:
    """The resource that a reference means in an entry with the address `within`; None for none."""
    address = reference.partition("/_history/")[0]
    if address.startswith("urn:"):
        return Name("", id=address.rpartition(":")[2])
    match = _ADDRESS.fullmatch(address)
    if match is None:
        return Name(address) if address.startswith(_SERVERS) else None
    server = match[1] or ""
    if not server and within:
        holder = name_of(within)
        server = holder.server if holder and holder.id else ""
    return Name(server if server.startswith(_SERVERS) else "", match[2], match[3])


class Names:
    """The resources of a record by their names."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._named: dict[str, list[tuple[Name, Resource]]] = {}
        for resource in resources:
            for name in resource.names:
                named = self._named.setdefault(name.id or name.server, [])
                named.append((name, resource))

    def any_of(self, name: Name) -> list[tuple[Name, Resource]]:
        """The resources that a name can mean, of whatever server, each with its own name."""
        return [
            (own, resource)
            for own, resource in self._named.get(name.id or name.server, ())
            if own.may_be(name)
        ]

    def all_of(self, name: Name) -> list[Resource]:
        """The resources that a name can mean; those of its own server alone, if there are any."""
        named = self.any_of(name)
        of_its_server = [item for item in named if item[0].server == name.server]
        found = {resource.order: resource for _, resource in of_its_server or named}
        return list(found.values())


# -- whose a resource is ---------------------------------------------------------------------------

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
        """What a resource refers to, contained or in the record, with what it stands in.

        None where it is not there, or where several servers have one of its name.
        """
        if reference.startswith("#"):
            for inner in origin.contained():
                if inner.get("id") == reference[1:]:
                    return inner, origin
            return None
        name = name_of(reference, origin.url)
        found = self._names.all_of(name) if name else []
        if len(found) != 1:
            return None
        return found[0].raw, found[0]

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
