"""Whose a resource is: a bundle is about one patient, and nothing of another may slip in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import SvcRequestError
from .bundle import Resource

_PATIENT = re.compile(r"(?:.*/)?Patient/([A-Za-z0-9.-]{1,64})(?:/_history/[A-Za-z0-9.-]+)?")
_ABSOLUTE = ("http://", "https://")


def _without_version(url: str) -> str:
    return url.partition("/_history/")[0]


class Subject:
    """The one patient of a bundle, as far as references tell.

    Raises:
        SvcRequestError: The bundle holds several Patient resources.
    """

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._kinds = {one.url: one.kind for one in resources if one.url}
        patients = [one for one in resources if one.kind == "Patient"]
        if len(patients) > 1:
            raise SvcRequestError(
                f"The bundle holds {len(patients)} patients (entries "
                f"{', '.join(str(one.entry) for one in patients[:10])}); a record is about one: "
                "give one bundle for each"
            )
        self.resource = patients[0] if patients else None
        self._url, self._id = "", ""
        if self.resource is not None:
            self._url = _without_version(self.resource.url)
            self._id = self.resource.id or _id_of(self._url)

    def owns(self, resource: Resource) -> bool:
        """Whether a resource is this patient's; false where it is about something else or unclear.

        Raises:
            SvcRequestError: It is another patient's.
        """
        name = "patient" if resource.kind == "FamilyMemberHistory" else "subject"
        held = resource.raw.get(name)
        if held is None:
            return True
        reference = held.get("reference") if isinstance(held, Mapping) else None
        if not isinstance(reference, str) or not self._names_a_patient(reference):
            return False
        if not self._url and not self._id:  # there is no Patient: the first one named is the one
            self._url, self._id = _without_version(reference), _id_of(reference)
        if self._is(_without_version(reference)):
            return True
        raise SvcRequestError(
            f"Bundle.entry[{resource.entry}].resource ({resource.kind}): {name} is another patient "
            "than that of the bundle; a record is about one: give one bundle for each"
        )

    def _names_a_patient(self, reference: str) -> bool:
        kind = self._kinds.get(reference)
        if kind is not None:
            return kind == "Patient"
        return reference.startswith("urn:") or _PATIENT.fullmatch(reference) is not None

    def _is(self, reference: str) -> bool:
        if reference == self._url:
            return True
        if reference.startswith(_ABSOLUTE) and self._url.startswith(_ABSOLUTE):
            return False  # the same id on two servers is two patients
        return bool(self._id) and _id_of(reference) == self._id


def _id_of(reference: str) -> str:
    if reference.startswith("urn:"):
        return reference.rpartition(":")[2]
    found = _PATIENT.fullmatch(reference)
    return found[1] if found else ""


def identifying(patient: Mapping[str, Any]) -> re.Pattern[str] | None:
    """Finds a patient's names, identifiers, numbers and addresses in a text; None without any.

    Names are found by their words, the others as they are.
    """
    names = {word for text in _texts(patient.get("name")) for word in text.split()}
    whole = _texts([patient.get(name) for name in ("identifier", "telecom", "address")])
    contacts = patient.get("contact")
    if isinstance(contacts, (list, tuple)):
        for contact in contacts:
            if isinstance(contact, Mapping):
                names |= {word for text in _texts(contact.get("name")) for word in text.split()}
                whole |= _texts([contact.get("telecom"), contact.get("address")])
    sought = {word.strip(".,;") for word in names | whole}
    sought = {word for word in sought if len(word) >= _SHORTEST}
    if not sought:
        return None
    longest_first = sorted(sought, key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)", re.IGNORECASE)


_SHORTEST = 3  # initials and particles of names are parts of too many words
_IDENTIFYING = frozenset({"family", "given", "text", "value", "line", "postalCode"})


_DEEPEST = 8  # names and addresses are flatter; what is deeper are extensions of extensions


def _texts(value: Any, *, taken: bool = False, depth: int = 0) -> set[str]:
    """The texts under the names that identify somebody."""
    if isinstance(value, str):
        return {value.strip()} if taken else set()
    parts: list[set[str]] = []
    if isinstance(value, Mapping) and depth < _DEEPEST:
        for name, held in value.items():
            parts.append(_texts(held, taken=name in _IDENTIFYING, depth=depth + 1))
    elif isinstance(value, (list, tuple)) and depth < _DEEPEST:
        parts = [_texts(one, taken=taken, depth=depth + 1) for one in value]
    return set().union(*parts)
