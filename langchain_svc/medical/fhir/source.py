"""What is given to the FHIR import, in any of its forms, as the resources that it holds.

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
    """The resources of a record, whether it is one page of several, and whether a search failed.

    `restricted` says whether a bundle of it has a label that restricts it.
    """

    resources: list[Resource] = field(default_factory=list)
    further_pages: bool = False
    failed: bool = False
    restricted: bool = False

    def add(self, raw: Any, place: str, *entry: int, **request: str) -> None:
        """Take a resource, or those of a bundle."""
        kind = raw.get("resourceType") if isinstance(raw, Mapping) else None
        if not isinstance(raw, Mapping) or (kind is None and not place):
            raise SvcRequestError(
                f"{place} must be an object" if place else f"FHIR is {_FORMS}"
            )
        if not isinstance(kind, str) or not KIND.fullmatch(kind):
            name = f"{place}.resourceType".lstrip(".")
            raise SvcRequestError(f"{name} must be the name of a FHIR resource")
        if kind == "Bundle":
            self._add_bundle(raw, place or "Bundle", entry)
            return
        self.failed |= kind == "OperationOutcome" and any(
            issue.get("severity") in ("fatal", "error")
            for issue in objects(raw.get("issue"))
        )
        label = ".".join(map(str, entry))
        index = int(label or 0) if len(entry) < 2 else label  # nested
        order = len(self.resources)
        self.resources.append(
            Resource(index, kind, raw, place or kind, order, **request)
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
        self.restricted |= is_restricted(raw)
        links = objects(raw.get("link"))
        self.further_pages |= any(link.get("relation") == "next" for link in links)
        entries = raw.get("entry", [])
        if not isinstance(entries, (list, tuple)):
            raise SvcRequestError(f"{place}.entry must be a list")
        for index, one in enumerate(entries):
            where = f"{place}.entry[{index}]"
            if not isinstance(one, Mapping):
                raise SvcRequestError(f"{where} must be an object")
            if one.get("resource") is not None:
                method = next(
                    (r.get("method") for r in objects([one.get("request")])), ""
                )
                request = {"url": text(one.get("fullUrl")), "method": text(method)}
                self.add(one["resource"], f"{where}.resource", *entry, index, **request)


def read_source(given: Any) -> FhirSource:
    """The resources of a record, unchecked."""
    held, source = _loaded(given), FhirSource()
    if not isinstance(held, list):
        source.add(held, "")
        return source
    for index, one in enumerate(held):
        source.further_pages = (
            False  # the next one in the list is the page that follows
        )
        source.add(one, f"resources[{index}]", index)
    return source


# -- forms ----------------------------------------------------------------------------------------


def _loaded(given: Any) -> Any:
    """The JSON that something stands for: a dict, or a list of what a list or lines hold."""
    if isinstance(given, Path):
        given = _file(given)
        if not given.strip():
            return []  # a bulk export has empty files
    if isinstance(given, (bytes, bytearray)):
        try:
            given = bytes(given).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise SvcRequestError(
                "The record is not valid JSON: it is not UTF-8"
            ) from None
    if isinstance(given, (list, tuple)):
        held: list[Any] = []
        for one in given:
            inner = _loaded(one)
            held += inner if isinstance(inner, list) else [inner]
        return held
    return _parsed(given) if isinstance(given, str) else given


def _file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:  # its name may be the patient's
        raise SvcRequestError(f"The file cannot be read: {error.strerror}") from None


def _parsed(text: str) -> Any:
    """JSON, or lines of JSON as a bulk export has them."""
    whole = _json(text)
    if whole is not _NO_JSON:
        return whole
    held = [_json(line) for line in text.split("\n") if line.strip()]
    if len(held) < 2 or held[0] is _NO_JSON:  # one line is not a list of them
        raise SvcRequestError(
            "The record is not valid JSON. Texts are not read as paths and addresses: give the "
            "JSON itself, or a pathlib.Path"
        )
    if _NO_JSON in held:
        number = held.index(_NO_JSON) + 1
        raise SvcRequestError(f"Line {number} of the record is not valid JSON")
    return held


_NO_JSON = object()


def _json(text: str) -> Any:
    try:
        return json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError):
        return _NO_JSON
