"""What identifies the people of a FHIR record, read from any form of it without checking it.

It reads more than a medical import may use and refuses less: a name in a broken resource is still
a name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from .._base.safe_errors import type_text
from .person_names import name_words

_PEOPLE = {"Patient": 0, "RelatedPerson": 1, "Practitioner": 2, "Person": 2}
_PLACES = {"Organization", "Location"}
_DATES = ("birthDate", "deceasedDateTime", "bornDate", "deceasedDate")
_FULL_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
# References in these elements are to people, also where only a name is given.
_ELEMENTS_OF_PEOPLE = (
    "generalPractitioner",
    "practitioner",
    "performer",
    "asserter",
    "recorder",
    "requester",
    "prescriber",
    "author",
    "individual",
    "actor",
    "subject",
    "patient",
)
_MAIDEN_NAME = "patient-mothersMaidenName"
_SHORTEST_ID = 4
_FORMS = (
    "a FHIR Bundle, a resource or a list of them: dicts, JSON text or bytes, a pathlib.Path, or an "
    "object with model_dump()"
)


class UnreadableRecordError(Exception):
    """Says why a record cannot be read, without a word of it."""


@dataclass(repr=False)
class Identities:
    """What to hide, as plain values.

    `persons` holds all written names of each person, and `places` the names of organizations.
    """

    persons: list[list[str]] = field(default_factory=list)
    identifiers: list[str] = field(default_factory=list)
    telecoms: list[str] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    dates: list[date] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def joined(self, other: Identities) -> Identities:
        """These identities and then those of the other."""
        return Identities(
            persons=self.persons + other.persons,
            identifiers=self.identifiers + other.identifiers,
            telecoms=self.telecoms + other.telecoms,
            addresses=self.addresses + other.addresses,
            places=self.places + other.places,
            dates=self.dates + other.dates,
            texts=self.texts + other.texts,
        )


def read_identities(record: object) -> Identities:
    """The identities in a record.

    Raises:
        UnreadableRecordError: The record is none of the forms, or holds no resource.
    """
    objects = [*_objects(_loaded(record))]
    if not any(isinstance(item.get("resourceType"), str) for item in objects):
        raise UnreadableRecordError(f"no FHIR resource is in it; give {_FORMS}")
    identities = Identities()
    resources = [item for item in objects if item.get("resourceType") in _PEOPLE]
    # The patient is person 1, whatever stands first in the bundle.
    resources.sort(key=lambda item: _PEOPLE[str(item["resourceType"])])
    for resource in resources:
        _add_person(identities, resource)
        if resource["resourceType"] == "Patient":
            _add_logical_id(identities, resource)
            for contact in _mappings(resource.get("contact")):
                _add_person(identities, contact)
    for item in objects:
        kind = item.get("resourceType")
        if kind == "FamilyMemberHistory":
            _add_relative(identities, item)
        elif kind in _PLACES:
            _add_place(identities, item)
        else:
            _add_reference(identities, item)
        _add_named_people(identities, item)
    return identities


# -- forms of a record -----------------------------------------------------------------------------


def _loaded(record: object) -> object:
    if isinstance(record, Path):
        try:
            record = record.read_bytes()
        except OSError as error:  # its name may be the patient's
            raise UnreadableRecordError(
                f"the file cannot be read: {error.strerror}"
            ) from None
    if isinstance(record, (bytes, bytearray)):
        record = record.decode("utf-8-sig", "replace")
    if isinstance(record, str):
        return _parsed(record)
    if isinstance(record, (Mapping, list, tuple)):
        return record
    model_dump = getattr(record, "model_dump", None)
    if callable(model_dump):
        return _dumped(model_dump)
    raise UnreadableRecordError(f"it is {type_text(record)}; give {_FORMS}")


def _dumped(model_dump: Callable[..., object]) -> object:
    try:
        return model_dump(mode="json", by_alias=True)
    except TypeError:  # of a library with its own parameters
        return model_dump()


def _parsed(text: str) -> object:
    """JSON, or lines of JSON as a bulk export has them."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        lines = [line for line in text.split("\n") if line.strip()]
    values: list[object] = []
    for number, line in enumerate(lines, start=1):
        values.append(_parsed_line(number, line))
    return values


def _parsed_line(number: int, line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        problem = f"line {number} of it is not valid JSON"
    raise UnreadableRecordError(problem)


def _objects(value: object) -> Iterator[Mapping[str, object]]:
    """All objects in a record, however deep, in the order in which they stand."""
    remaining = [value]
    while remaining:
        item = remaining.pop()
        if hasattr(item, "model_dump"):
            item = _loaded(item)
        if isinstance(item, Mapping):
            yield item
            remaining.extend(reversed([*item.values()]))
        elif isinstance(item, (list, tuple)):
            remaining.extend(reversed(item))


# -- parts of resources ----------------------------------------------------------------------------


def _mappings(value: object) -> list[Mapping[str, object]]:
    """The objects of an element, which servers write as a list or as one object."""
    if isinstance(value, Mapping):
        return [value]
    if not isinstance(value, (list, tuple)):
        return []
    return [item for item in value if isinstance(item, Mapping)]


def _texts(value: object) -> list[str]:
    """The texts of an element: itself, or those of a list."""
    if isinstance(value, (list, tuple)):
        return [item for item in value if isinstance(item, str) and item.strip()]
    if isinstance(value, str) and value.strip():
        return [value]
    return []


def _add_person(identities: Identities, person: Mapping[str, object]) -> None:
    names = [*_human_names(person.get("name"))]
    if names:
        identities.persons.append(names)
    for extension in _mappings(person.get("extension")):
        if str(extension.get("url")).endswith(_MAIDEN_NAME):
            identities.persons += [
                [name] for name in _texts(extension.get("valueString"))
            ]
    _add_contacts(identities, person)
    _add_dates(identities, person)


def _human_names(value: object) -> Iterator[str]:
    """The names of a person: their parts in order, and as they are written whole."""
    yield from _texts(value)
    for name in _mappings(value):
        parts = _texts(name.get("given")) + _texts(name.get("family"))
        if parts:
            yield " ".join(parts)
        yield from _texts(name.get("text"))


def _add_contacts(identities: Identities, item: Mapping[str, object]) -> None:
    """Adds the identifiers, the telecoms and the addresses of a person or an organization."""
    for identifier in _mappings(item.get("identifier")):
        identities.identifiers += _texts(identifier.get("value"))
    for telecom in _mappings(item.get("telecom")):
        identities.telecoms += _texts(telecom.get("value"))
    for address in _mappings(item.get("address")):
        for name in ("text", "line", "city", "district", "postalCode"):
            identities.addresses += _texts(address.get(name))
        city = _texts(address.get("city"))
        code = _texts(address.get("postalCode"))
        if city and code:
            identities.addresses.append(f"{code[0]} {city[0]}")


def _add_dates(identities: Identities, item: Mapping[str, object]) -> None:
    for name in _DATES:
        for text in _texts(item.get(name)):
            day = full_date(text)
            if day is not None:
                identities.dates.append(day)


def full_date(text: str) -> date | None:
    """The date that an ISO date or time starts with, or None if its day is open."""
    match = _FULL_DATE.match(text)
    if match is None:
        return None
    try:
        return date.fromisoformat(match[0])
    except ValueError:
        return None


def _add_logical_id(identities: Identities, patient: Mapping[str, object]) -> None:
    for text in _texts(patient.get("id")):
        has_digit = any(sign.isdigit() for sign in text)
        if has_digit and len(text) >= _SHORTEST_ID:
            identities.identifiers.append(text)


def _add_relative(identities: Identities, history: Mapping[str, object]) -> None:
    names = [name for name in _texts(history.get("name")) if name_words(name)]
    if names:
        identities.persons.append(names)
    _add_dates(identities, history)


def _add_place(identities: Identities, place: Mapping[str, object]) -> None:
    for name in ("name", "alias"):
        identities.places += _texts(place.get(name))
    _add_contacts(identities, place)
    for contact in _mappings(place.get("contact")):
        _add_person(identities, contact)


def _add_named_people(identities: Identities, item: Mapping[str, object]) -> None:
    for element in _ELEMENTS_OF_PEOPLE:
        for reference in _mappings(item.get(element)):
            names = _texts(reference.get("display"))
            if names and not reference.get("reference") and not reference.get("type"):
                identities.persons.append(names)


def _add_reference(identities: Identities, item: Mapping[str, object]) -> None:
    """Adds whom a reference names, if it says that it refers to a person or a place."""
    names = _texts(item.get("display"))
    if not names:
        return
    target = " ".join(_texts(item.get("type")) + _texts(item.get("reference")))
    kinds = set(re.split(r"\W+", target))
    if kinds & _PEOPLE.keys():
        identities.persons.append(names)
    elif kinds & _PLACES:
        identities.places += names
