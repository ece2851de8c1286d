"""The resources of a record, unchecked: where each stands, and what it says of itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

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

    def contained(self) -> Iterator[Mapping[str, Any]]:
        """The unchecked resources that it contains."""
        return objects(self.raw.get("contained"))


def _codes_of(part: Mapping[str, Any]) -> set[str]:
    return {coding.get("code") for coding in part["code"]["coding"]}
