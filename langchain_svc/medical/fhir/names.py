"""Names of resources: what an entry's address and a reference say, resolved once and compared.

A relative reference means the server of the entry in which it stands (FHIR R4, Bundle, "Resolving
references"). Where an entry names no server, its references may mean any.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .bundle import Resource

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


def names_of(resource: Resource) -> tuple[Name, ...]:
    """The names of a resource: by its entry's address, and by its id."""
    names = []
    if name := name_of(resource.url):
        names.append(name)
    if resource.id:
        server = names[0].server if names and names[0].kind else ""
        names.append(Name(server, resource.kind, resource.id))
    return tuple(dict.fromkeys(names))


class Names:
    """The resources of a record by their names."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._named: dict[str, list[tuple[Name, Resource]]] = {}
        for resource in resources:
            for name in names_of(resource):
                named = self._named.setdefault(name.id or name.server, [])
                named.append((name, resource))

    def all_of(self, name: Name) -> list[Resource]:
        """The resources that a name can mean; those of its own server alone, if there are any."""
        named = [
            (own, resource)
            for own, resource in self._named.get(name.id or name.server, ())
            if own.may_be(name)
        ]
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


def servers_of(names: Iterable[Name]) -> Iterator[str]:
    """The servers that names name."""
    return (name.server for name in names if name.server)
