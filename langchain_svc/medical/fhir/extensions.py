"""Extensions of the elements that are used: the few that decide, and the names of all others.

An extension may change what an element means: in German records one says that a diagnosis is
excluded. So the report names every extension that is not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .elements import USED
from .resources import Resource, objects, text

REFUTED = "refuted"
DOUBTED = "doubted"
OVER = "over"
NOT_TAKEN = "not taken"
_NOTHING = ""
# What an extension's code decides, by the last part of the extension's address.
_DECIDING: Mapping[str, Mapping[str, str]] = {
    # German ICD-10-GM: excluded, suspected, state after, certain
    "icd-10-gm-diagnosesicherheit": {
        "A": REFUTED,
        "V": DOUBTED,
        "Z": OVER,
        "G": _NOTHING,
    },
    # US Core, by SNOMED CT: drug treatment is not taken; complies with it
    "us-core-medication-adherence": {"715036001": NOT_TAKEN, "1156699004": _NOTHING},
    # The assertion that a substance does no harm is written as an allergy to it.
    "allergyintolerance-substanceExposureRisk": {
        "no-known-reaction-risk": REFUTED,
        "known-reaction-risk": _NOTHING,
    },
}
_LAST_PART = re.compile(r"(?:https?://|urn:).*?([A-Za-z][A-Za-z0-9.-]{0,79})")


@dataclass(frozen=True)
class Extensions:
    """What a resource's extensions decide, and the names of those that are not known here."""

    decisions: frozenset[str]
    unknown: tuple[str, ...]


def extensions_of(resource: Resource) -> Extensions:
    """The extensions of the elements that are used, and of the resource itself.

    Those of a Patient itself describe the person, of whom no used element speaks.
    """
    decisions = set[str]()
    unknown = []
    for extension in _extensions(resource):
        match = _LAST_PART.fullmatch(text(extension.get("url")))
        name = match[1] if match else "one without a name"
        deciding = _DECIDING.get(name, {})
        codes = [code for code in codes_in(extension) if code in deciding]
        decisions.update(deciding[code] for code in codes)
        if not codes:
            unknown.append(name)
    return Extensions(frozenset(decisions), tuple(dict.fromkeys(unknown)))


def _extensions(resource: Resource) -> Iterator[Mapping[str, Any]]:
    raw = resource.raw
    if resource.kind != "Patient":
        yield from objects(raw.get("extension"))
    values: list[object] = []
    for element in USED[resource.kind].split():
        # What extends a primitive value stands beside it, behind an underscore.
        values += (raw.get(element), raw.get(f"_{element}"))
    while values:
        value = values.pop()
        if isinstance(value, (list, tuple)):
            values += reversed(value)
        elif isinstance(value, Mapping):
            yield from objects(value.get("extension"))
            values += [inner for name, inner in value.items() if name != "extension"]


def codes_in(extension: Mapping[str, Any]) -> Iterator[str]:
    """Every code in an extension, and in those within it."""
    values: list[tuple[str, object]] = [("", extension)]
    while values:
        name, value = values.pop()
        if isinstance(value, (list, tuple)):
            values += [(name, inner) for inner in value]
        elif isinstance(value, Mapping):
            values += value.items()
        elif name in {"code", "valueCode"}:
            yield text(value)
