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
from typing import TypeAlias

from .._base.safe_errors import type_text
from .masks import word_set
from .names import name_words
from .vocabulary import GENERIC_PLACES, tokens

_PEOPLE = {"Patient": 0, "RelatedPerson": 1, "Practitioner": 2, "Person": 2}
_ROLES = {"PractitionerRole"}  # of people: its references show their names
_PLACES = {"Organization", "Location", "HealthcareService"}
_DATES = ("birthDate", "deceasedDateTime", "bornDate", "deceasedDate")
_FULL_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TARGET = re.compile(r"(?:^|/)([A-Z][A-Za-z]+)[/?]")
# References in these elements are to people, or to people and organizations (FHIR R4).
_OF_PEOPLE = word_set(
    """
    actor asserter assessor authenticator author authorReference beneficiary candidate
    careManager collector contributor deliverTo enterer expressedBy generalPractitioner
    individual informationSource interpreter legalAuthenticator member observer onBehalfOf
    operator orderer other participant party patient payee performer person policyHolder
    practitioner prescriber principalInvestigator provider receiver recipient recorder referrer
    reportedReference reporter requester requestProvider requestor responsible responsibleParty
    resultsInterpreter sender source sourcePatientInfo subject subjectReference submitter
    subscriber verifiedWith verifier who
    """
)
# And in these to organizations and places.
_OF_PLACES = word_set(
    """
    assigner careTeam costCenter custodian deliverFrom destination facility healthcareService
    insurer issuer location locationReference managingEntity managingOrganization organization
    origin owner participatingOrganization paymentIssuer payor performingOrganization providedBy
    requestingOrganization serviceProvider site sponsor supplier team
    """
)
# Texts that are identifiers, though FHIR's type of them is string.
_NUMBERS = word_set(
    """
    carrierHRF dependent deviceIdentifier distinctIdentifier preAuthRef serialNumber subscriberId
    uid
    """
)
_TELECOM_SYSTEMS = word_set("phone fax email pager url sms other")
_OF_OTHER_VALUES = ("code", "unit", "comparator", "url")  # quantities, extensions
_OF_NO_REFERENCES = ("code", "coding", "system", "value")
_MAIDEN_NAME = "patient-mothersMaidenName"
_PART_OF_STREET = "iso21090-ADXP-"
_SHORTEST_ID = 4
_LONGEST_PARTICLE = 3
Element: TypeAlias = "tuple[str, Mapping[str, object]]"
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
    elements = [*_elements(_loaded(record))]
    if not any(_kind(item) for _, item in elements):
        raise UnreadableRecordError(f"no FHIR resource is in it; give {_FORMS}")
    identities = Identities()
    # The patient is person 1, whatever stands first in the bundle.
    for key, item in sorted(elements, key=_order_of_people):
        _add_names(identities, key, item)
    for key, item in elements:
        _add_owner(identities, item)
        _add_element(identities, key, item)
    return identities


def _kind(item: Mapping[str, object]) -> str:
    """The type of a resource; "" for what is none."""
    kind = item.get("resourceType")
    return kind if isinstance(kind, str) else ""


def _order_of_people(element: Element) -> int:
    return _PEOPLE.get(_kind(element[1]), len(_PEOPLE))


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


def _elements(value: object) -> Iterator[Element]:
    """All objects in a record, however deep, in their order, each with its element's name."""
    remaining: list[tuple[str, object]] = [("", value)]
    while remaining:
        key, item = remaining.pop()
        if hasattr(item, "model_dump"):
            item = _loaded(item)
        if isinstance(item, Mapping):
            yield key, item
            inner = [(str(name), part) for name, part in item.items()]
            remaining.extend(reversed(inner))
        elif isinstance(item, (list, tuple)):
            remaining.extend((key, part) for part in reversed(item))


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


def _add_names(identities: Identities, key: str, item: Mapping[str, object]) -> None:
    """Adds the person whose names an object has."""
    for name in ("name", "valueHumanName"):
        names = [*_human_names(item.get(name))]
        if names:
            identities.persons.append(names)
    names = _texts(item.get("name"))
    is_person = _kind(item) in _PEOPLE or key in {"contact", "agent"}
    if _kind(item) == "FamilyMemberHistory":
        names = [name for name in names if name_words(name)]
        is_person = True
    if names and is_person:
        identities.persons.append(names)
    for element in _OF_PEOPLE:  # authorString
        identities.persons += [[text] for text in _texts(item.get(f"{element}String"))]
    if str(item.get("url")).endswith(_MAIDEN_NAME):
        identities.persons += [[text] for text in _texts(item.get("valueString"))]


def _human_names(value: object) -> Iterator[str]:
    """The names of a person: their parts in order, and as they are written whole."""
    for name in _mappings(value):
        parts = _texts(name.get("given")) + _texts(name.get("family"))
        if parts:
            yield " ".join(parts)
        yield from _texts(name.get("text"))
        for family in _mappings(name.get("_family")):  # its own part, and the partner's
            parts = _extension_texts(family)
            if parts:
                yield " ".join(parts)


def _extension_texts(item: Mapping[str, object]) -> list[str]:
    texts: list[str] = []
    for extension in _mappings(item.get("extension")):
        texts += _texts(extension.get("valueString"))
    return texts


def _add_owner(identities: Identities, item: Mapping[str, object]) -> None:
    """Adds what only a person or an organization has: dates, short identifiers, its own name."""
    _add_dates(identities, item)
    kind = _kind(item)
    if kind in _PEOPLE or kind in _PLACES:
        for identifier in _mappings(item.get("identifier")):
            identities.identifiers += _texts(identifier.get("value"))
    if kind in _PLACES:
        identities.places += _texts(item.get("name")) + _texts(item.get("alias"))
    if kind == "Patient":
        identities.identifiers += filter(_is_distinct, _texts(item.get("id")))


def _add_element(identities: Identities, key: str, item: Mapping[str, object]) -> None:
    """Adds what the shape of an object says that it is, in whichever element it stands."""
    values = _texts(item.get("value"))
    is_telecom = not _TELECOM_SYSTEMS.isdisjoint(_texts(item.get("system")))
    if is_telecom or key == "telecom":
        identities.telecoms += values
    elif not any(name in item for name in _OF_OTHER_VALUES):
        identities.identifiers += filter(_is_distinct, values)
    for name in _NUMBERS:
        identities.identifiers += filter(_is_distinct, _texts(item.get(name)))
    is_address = any(name in item for name in ("line", "_line", "city", "postalCode"))
    if is_address or key.lower().endswith("address"):
        _add_address(identities, item)
    if not any(name in item for name in _OF_NO_REFERENCES):
        _add_reference(identities, key, item)


def _is_distinct(text: str) -> bool:
    """Whether an identifier is no number or word that stands for other things, too."""
    has_digit = any(sign.isdigit() for sign in text)
    return has_digit and sum(map(str.isalnum, text)) >= _SHORTEST_ID


def _add_address(identities: Identities, address: Mapping[str, object]) -> None:
    lines = _texts(address.get("line")) + _streets(address)
    city = _texts(address.get("city"))
    code = _texts(address.get("postalCode"))
    identities.addresses += _texts(address.get("text")) + lines + city
    identities.addresses += _texts(address.get("district")) + code
    if city and code:
        identities.addresses.append(f"{code[0]} {city[0]}")
        state = " ".join([*_texts(address.get("state")), code[0]])
        for end in (f"{code[0]} {city[0]}", f"{city[0]}, {state}"):
            identities.addresses += [f"{line}, {end}" for line in lines]


def _streets(address: Mapping[str, object]) -> list[str]:
    """Lines that are given as parts: the street, the number of the house."""
    streets: list[str] = []
    for line in _mappings(address.get("_line")):
        parts: list[str] = []
        for extension in _mappings(line.get("extension")):
            if _PART_OF_STREET in str(extension.get("url")):
                parts += _texts(extension.get("valueString"))
        if parts:
            streets += [" ".join(parts), " ".join(reversed(parts))]
    return streets


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


def _add_reference(
    identities: Identities, key: str, item: Mapping[str, object]
) -> None:
    """Adds whom a reference shows, if it says that it is a person or a place."""
    names = _texts(item.get("display"))
    target = "".join(_texts(item.get("type")))
    if not target:
        targets = _TARGET.findall("".join(_texts(item.get("reference"))))
        target = targets[-1] if targets else ""
    is_person = target in _PEOPLE or target in _ROLES
    is_place = target in _PLACES
    if not target:
        is_place = key in _OF_PLACES
        is_person = key in _OF_PEOPLE
    if is_person and not target and any(map(_is_organization, names)):
        is_person = False
        is_place = True
    if names and is_person:
        identities.persons.append(names)
    if is_place:
        identities.places += names


def _is_organization(name: str) -> bool:
    """Whether one of its words is what organizations are, such as a clinic."""
    long_words = {word for word in tokens(name) if len(word) > _LONGEST_PARTICLE}
    return not GENERIC_PLACES.isdisjoint(long_words)
