"""Which version of a resource counts: before anything is read, the newest of each is chosen.

A record that is put together from several exports or pages may hold a resource several times, and
also requests to delete it. An older version says what was taken back since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from .report import SAME, Untrue
from .resources import Name, Names, Resource, name_of, objects, text
from .times import OLDEST, to_datetime

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
