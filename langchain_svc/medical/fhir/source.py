"""A record, in any of the forms that the FHIR import takes, as the resources that it holds.

Nothing is checked here but the frame: bundles (also within bundles, as answers to a batch are),
lists, one resource, and JSON of these as text, bytes, lines or a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

from ...errors import SvcRequestError
from .resources import KIND, Resource, is_restricted, name_of, objects, text

_DEEPEST = 4  # a batch's answer is two deep
_FORMS = (
    "given as a Bundle, a resource or a list of them: dicts, JSON text or bytes, or a Path. For "
    "objects of another library give their JSON, such as model_dump_json() of fhir.resources"
)


@dataclass
class FhirSource:
    """The resources of a record.

    `failed` says whether the server reports an error, and `restricted` whether a bundle has a label
    that restricts it.
    """

    resources: list[Resource] = field(default_factory=list)
    pages: list[_Page] = field(default_factory=list)
    failed: bool = False
    restricted: bool = False

    def missing_pages(self) -> str:
        """What its bundles say that is not here; empty where nothing is missing.

        A next link is settled by the bundle whose own address (its self link) it is. A search says
        how many it found; its pages must have as many.
        """
        by_address = {page.address: page for page in self.pages if page.address}
        linked = {page.next for page in self.pages if page.next}
        if linked - by_address.keys():
            return "it links to a next page that is not among its bundles"
        counted: set[_Page] = set()
        for page in sorted(self.pages, key=lambda page: page.address in linked):
            chain = list(_pages_from(page, by_address, counted))
            if chain and by_address.get(chain[-1].next) in chain:
                return "its next links lead in a circle"
            total = max((item.total for item in chain), default=0)
            if total > sum(item.matches for item in chain):
                return "its total is above the number of its entries"
        return ""

    def add_raw(self, raw: object, place: str, *entry: int, **of_entry: str) -> None:
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
        self._add(entry, kind, raw, place or kind, **of_entry)

    def _add(
        self,
        entry: tuple[int, ...],
        kind: str,
        raw: Mapping[str, Any],
        place: str,
        **of_entry: str,
    ) -> None:
        index: int | str = 0
        if len(entry) == 1:
            index = entry[0]
        elif entry:  # of a bundle within a bundle
            index = ".".join(map(str, entry))
        order = len(self.resources)
        self.resources.append(Resource(index, kind, raw, place, order, **of_entry))

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
        entries = raw.get("entry", [])
        if not isinstance(entries, (list, tuple)):
            raise SvcRequestError(f"{place}.entry must be a list")
        self.pages.append(_page(raw, entries))
        for index, item in enumerate(entries):
            item_place = f"{place}.entry[{index}]"
            if not isinstance(item, Mapping):
                raise SvcRequestError(f"{item_place} must be an object")
            self._add_entry(item, item_place, (*entry, index))

    def _add_entry(
        self, item: Mapping[str, Any], place: str, entry: tuple[int, ...]
    ) -> None:
        request = next(objects([item.get("request")]), {})
        response = next(objects([item.get("response")]), {})
        of_entry = {
            "url": text(item.get("fullUrl")),
            "method": text(request.get("method")),
            "target": text(request.get("url")),
            "answered": text(response.get("lastModified")),
        }
        if item.get("resource") is not None:
            self.add_raw(item["resource"], f"{place}.resource", *entry, **of_entry)
        elif of_entry["method"] == "DELETE":
            # What it deletes may stand elsewhere in the record.
            self._add(entry, _kind_of(of_entry["target"]), {}, place, **of_entry)


@dataclass(frozen=True, eq=False)
class _Page:
    """A bundle as a page of a search: its address, that of the next page, how many were found."""

    address: object
    next: object
    total: int
    matches: int


def _page(raw: Mapping[str, Any], entries: Sequence[Any]) -> _Page:
    links = {
        text(link.get("relation")): text(link.get("url"))
        for link in objects(raw.get("link"))
    }
    own = links.get("self", "")
    matches = sum(map(_is_match, objects(entries)))
    total = raw.get("total")
    if not isinstance(total, int) or isinstance(total, bool):
        total = 0
    return _Page(_address(own), _address(links.get("next", ""), own), total, matches)


def _is_match(entry: Mapping[str, Any]) -> bool:
    """Whether a search found an entry, and did not only include it."""
    search = next(objects([entry.get("search")]), {})
    return "resource" in entry and search.get("mode", "match") == "match"


def _address(url: str, within: str = "") -> object:
    """An address to compare; None for none. Its parameters may have any order."""
    if not url:
        return None
    try:
        parts = urlsplit(urljoin(within, url))
    except ValueError:
        return url
    return (*parts[:3], tuple(sorted(parse_qsl(parts.query, keep_blank_values=True))))


def _pages_from(
    page: _Page, by_address: Mapping[object, _Page], counted: set[_Page]
) -> Iterator[_Page]:
    """A page and those that follow it, each once."""
    following: _Page | None = page
    while following is not None and following not in counted:
        counted.add(following)
        yield following
        following = by_address.get(following.next)


def _kind_of(url: str) -> str:
    """The type that a request names; where it names none, any."""
    name = name_of(url)
    kind = name.kind if name else url.partition("?")[0].rpartition("/")[2]
    return kind if KIND.fullmatch(kind) else "Resource"


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
