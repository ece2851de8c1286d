"""The resources of a record, unchecked: where each stands, what it says, and its names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

# -- bundle ----------------------------------------------------------------------------------------
# The resources of a record, unchecked: where each stands, and what it says of itself.

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
        found = self.all_of(name) if name else []
        if len(found) != 1:
            return None
        return found[0].raw, found[0]
