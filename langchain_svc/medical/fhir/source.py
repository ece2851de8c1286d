"""A record, in any of the forms that the FHIR import takes, as the resources that count.

Nothing is checked here but the frame: bundles (also within bundles, as answers to a batch are),
lists, one resource, and JSON of these as text, bytes, lines or a file.

A record that is put together from several exports or pages may hold a resource several times, and
also requests to delete it. An older version says what was taken back since, so the newest of each
is chosen before anything is read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urljoin, urlsplit

from ...errors import SvcRequestError
from .report import SAME, Untrue
from .resources import (
    KIND,
    Name,
    Names,
    Resource,
    is_restricted,
    name_of,
    objects,
    text,
)
from .times import OLDEST, to_datetime

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


# -- forms -----------------------------------------------------------------------------------------


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


# -- which version counts --------------------------------------------------------------------------

_OLDER = Untrue("a newer version of it is there")
_DELETED = Untrue("a request in the source deletes it")
UNDECIDED = (
    "the source has versions of it that differ, and nothing says which is the newest"
)
_DELETES_BY_SEARCH = "it deletes what a search finds, which is not followed"

LeftOut = list[tuple[Resource, str]]


def current(resources: Iterable[Resource]) -> tuple[list[Resource], LeftOut]:
    """The resources that count, in their order, and those that do not, with the reason."""
    kept: list[Resource] = []
    left_out: LeftOut = []
    deletions: list[tuple[Name, Resource]] = []
    versions: dict[Name | int, list[Resource]] = {}
    for resource in resources:
        if resource.method != "DELETE":
            versions.setdefault(_identity(resource), []).append(resource)
            continue
        named = _deleted(resource)
        if not named or resource.raw:
            reason = _DELETED if named else _DELETES_BY_SEARCH
            left_out.append((resource, reason))
        deletions += [(name, resource) for name in named]
    for same in _of_one_server(versions):
        newest, reasons = _newest(same)
        left_out += reasons
        if newest is not None:
            kept.append(newest)
    gone = _gone(kept, deletions)
    left_out += [(resource, _DELETED) for resource in kept if resource.order in gone]
    kept = [resource for resource in kept if resource.order not in gone]
    return sorted(kept, key=lambda resource: resource.order), left_out


def _identity(resource: Resource) -> Name | int:
    names = resource.names
    if not names:
        return resource.order
    name = names[0]
    return Name(name.server, resource.kind, name.id)


def _of_one_server(
    versions: Mapping[Name | int, list[Resource]],
) -> Iterable[list[Resource]]:
    """The versions of each resource; one without a server is of the only one that is named."""
    servers: dict[tuple[str, str], set[str]] = {}
    for name in versions:
        if isinstance(name, Name):
            servers.setdefault((name.kind, name.id), set()).add(name.server)
    groups: dict[Name | int, list[Resource]] = {}
    for name, resources in versions.items():
        key = name
        if isinstance(name, Name) and name.id:
            known = servers[name.kind, name.id] - {""}
            if len(known) == 1:
                key = Name(known.pop(), name.kind, name.id)
        groups.setdefault(key, []).extend(resources)
    return groups.values()


def _newest(versions: list[Resource]) -> tuple[Resource | None, LeftOut]:
    """The version that is as new as each other, and the others; None where nothing says it."""
    if len(versions) == 1:
        return versions[0], []
    by_age = sorted(versions, key=lambda version: version.order)
    by_age.sort(key=_probable_age, reverse=True)
    for candidate in by_age:
        others = [version for version in versions if version is not candidate]
        if all(_says_no_less(candidate, other) for other in others):
            return candidate, [(other, _why_not(candidate, other)) for other in others]
    return None, [(version, UNDECIDED) for version in versions]


def _probable_age(version: Resource) -> tuple[int, datetime]:
    """Which versions to try first."""
    return _number(version) or 0, _updated(version) or OLDEST


def _says_no_less(version: Resource, other: Resource) -> bool:
    return _is_newer(version, other) or _contents(version) == _contents(other)


def _why_not(newest: Resource, other: Resource) -> str:
    return SAME if _contents(newest) == _contents(other) else _OLDER


def _contents(resource: Resource) -> tuple[object, bool]:
    """What a version says, without its bookkeeping."""
    contents = {name: value for name, value in resource.raw.items() if name != "meta"}
    return contents, resource.restricted


def _is_newer(version: Resource, other: Resource) -> bool:
    """Whether number and time of a version say that it is newer; False where they disagree."""
    answers = set()
    number, other_number = _number(version), _number(other)
    if number is not None and other_number is not None and number != other_number:
        answers.add(number > other_number)
    updated, other_updated = _updated(version), _updated(other)
    if updated and other_updated and updated != other_updated:
        answers.add(updated > other_updated)
    return answers == {True}


def _number(resource: Resource) -> int | None:
    number = text(_meta(resource).get("versionId"))
    return int(number) if number.isdecimal() and len(number) < 20 else None


def _updated(resource: Resource) -> datetime | None:
    return _moment(_meta(resource).get("lastUpdated"))


def _meta(resource: Resource) -> Mapping[str, Any]:
    return next(objects([resource.raw.get("meta")]), {})


def _moment(value: object) -> datetime | None:
    try:
        return to_datetime(datetime.fromisoformat(text(value)))
    except ValueError:
        return None


# -- what was deleted ------------------------------------------------------------------------------


def _deleted(request: Resource) -> tuple[Name, ...]:
    """The names that a request to delete means; none where it deletes by a search."""
    name = name_of(request.target, request.url) if request.target else None
    if name is not None and name.id:
        return (name,)
    return request.names


def _gone(
    resources: Iterable[Resource], deletions: Sequence[tuple[Name, Resource]]
) -> set[int]:
    """The resources that a request deleted and that were not made again since, by their order."""
    if not deletions:
        return set()
    named = Names(resources)
    return {
        resource.order
        for name, request in deletions
        for _, resource in named.any_of(name)
        if not _is_made_again(resource, request)
    }


def _is_made_again(resource: Resource, request: Resource) -> bool:
    """Whether a resource says that it was changed after a request to delete it."""
    updated, deleted = _updated(resource), _moment(request.answered)
    return updated is not None and deleted is not None and updated > deleted
