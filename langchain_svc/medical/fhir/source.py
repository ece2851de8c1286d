"""A record, in any of the forms that the FHIR import takes, as the resources that it holds.

Nothing is checked here but the frame: bundles (also within bundles, as answers to a batch are),
lists, one resource, and JSON of these as text, bytes, lines or a file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from ...errors import SvcRequestError
from .bundle import KIND, Resource, is_restricted, objects, text

_DEEPEST = 4  # a batch's answer is two deep
_FORMS = (
    "given as a Bundle, a resource or a list of them: dicts, JSON text or bytes, or a Path. For "
    "objects of another library give their JSON, such as model_dump_json() of fhir.resources"
)


@dataclass
class FhirSource:
    """The resources of a record.

    `further_pages` says whether a bundle links to a next page, `failed` whether the server reports
    an error, and `restricted` whether a bundle has a label that restricts it.
    """

    resources: list[Resource] = field(default_factory=list)
    further_pages: bool = False
    failed: bool = False
    restricted: bool = False

    def add_raw(
        self, raw: object, place: str, *entry: int, url: str = "", method: str = ""
    ) -> None:
        """Take a resource, or those of a bundle."""
        if not isinstance(raw, Mapping):
            raise SvcRequestError(
                f"{place} must be an object" if place else f"FHIR is {_FORMS}"
            )
        kind = _kind(raw, place)
        if kind == "Bundle":
            self._add_bundle(raw, place or "Bundle", entry)
            return
        if kind == "OperationOutcome" and _is_failure(raw):
            self.failed = True
        index: int | str = 0
        if len(entry) == 1:
            index = entry[0]
        elif entry:  # of a bundle within a bundle
            index = ".".join(map(str, entry))
        order = len(self.resources)
        self.resources.append(
            Resource(index, kind, raw, place or kind, order, url, method)
        )

    def _add_bundle(
        self, raw: Mapping[str, Any], place: str, entry: tuple[int, ...]
    ) -> None:
        if len(entry) >= _DEEPEST:
            raise SvcRequestError(
                f"{place}: bundles are nested more than {_DEEPEST} deep"
            )
        if raw.get("type") == "history":
            raise SvcRequestError(
                "The bundle's type is history, which holds old versions; give a searchset, a "
                "collection, a document or a transaction"
            )
        if is_restricted(raw):
            self.restricted = True
        for link in objects(raw.get("link")):
            if link.get("relation") == "next":
                self.further_pages = True
        entries = raw.get("entry", [])
        if not isinstance(entries, (list, tuple)):
            raise SvcRequestError(f"{place}.entry must be a list")
        for index, item in enumerate(entries):
            item_place = f"{place}.entry[{index}]"
            if not isinstance(item, Mapping):
                raise SvcRequestError(f"{item_place} must be an object")
            if item.get("resource") is None:
                continue
            request = item.get("request")
            method = request.get("method") if isinstance(request, Mapping) else ""
            self.add_raw(
                item["resource"],
                f"{item_place}.resource",
                *entry,
                index,
                url=text(item.get("fullUrl")),
                method=text(method),
            )


def _kind(raw: Mapping[str, Any], place: str) -> str:
    kind = raw.get("resourceType")
    if kind is None and not place:
        raise SvcRequestError(f"FHIR is {_FORMS}")
    if not isinstance(kind, str) or not KIND.fullmatch(kind):
        name = f"{place}.resourceType".lstrip(".")
        raise SvcRequestError(f"{name} must be the name of a FHIR resource")
    return kind


def _is_failure(outcome: Mapping[str, Any]) -> bool:
    issues = objects(outcome.get("issue"))
    return any(issue.get("severity") in ("fatal", "error") for issue in issues)


def read_source(record: object) -> FhirSource:
    """The resources of a record, unchecked."""
    source = FhirSource()
    value = _loaded(record)
    if not isinstance(value, list):
        source.add_raw(value, "")
        return source
    for index, item in enumerate(value):
        # What follows in the list is the next page of what stood before.
        source.further_pages = False
        source.add_raw(item, f"resources[{index}]", index)
    return source


# -- forms ----------------------------------------------------------------------------------------


def _loaded(record: object) -> object:
    """The JSON of a record: a dict, or a list of what stands in a list or in lines."""
    if isinstance(record, Path):
        record = _read_file(record)
        if not record.strip():
            return []  # a bulk export has empty files
    if isinstance(record, (bytes, bytearray)):
        try:
            record = record.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise SvcRequestError(
                "The record is not valid JSON: it is not UTF-8"
            ) from None
    if isinstance(record, str):
        return _parsed(record)
    if not isinstance(record, (list, tuple)):
        return record
    items: list[object] = []
    for item in record:
        inner = _loaded(item)
        if isinstance(inner, list):
            items += inner
        else:
            items.append(inner)
    return items


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:  # its name may be the patient's
        raise SvcRequestError(f"The file cannot be read: {error.strerror}") from None


def _parsed(text: str) -> object:
    """JSON, or lines of JSON as a bulk export has them."""
    whole = _json(text)
    if whole is not _NO_JSON:
        return whole
    values = [_json(line) for line in text.split("\n") if line.strip()]
    if len(values) < 2 or values[0] is _NO_JSON:  # one line is not a list of them
        raise SvcRequestError(
            "The record is not valid JSON. Texts are not read as paths and addresses: give the "
            "JSON itself, or a pathlib.Path"
        )
    if _NO_JSON in values:
        number = values.index(_NO_JSON) + 1
        raise SvcRequestError(f"Line {number} of the record is not valid JSON")
    return values


_NO_JSON = object()


def _json(text: str) -> object:
    try:
        return json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        return _NO_JSON
