"""A patient's record from a FHIR server: which pages to fetch and what they add up to, without I/O.

`record_pages` is a generator. It yields the URL of each page and is sent what came of it, so the
rules exist once for blocking and asynchronous callers.

Rests on FHIR R4: Patient/$everything (operation-patient-everything.html), searches and their pages
(search.html, http.html section 3.1.0.7), OperationOutcome (operationoutcome.html).
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

from .._wire import UnreadableError, failure, safe_label
from ..errors import SvcAPIError, SvcRequestError, SvcResponseError
from .bundle import objects

_ID = re.compile(r"[A-Za-z0-9.-]{1,64}")  # datatypes.html, id
_SEARCH = re.compile(r"([A-Z][A-Za-z]{1,39})(?:\?([!-~]*))?")


@dataclass(frozen=True)
class Page:
    """One answer of the server: a Bundle or a Patient, and its bytes."""

    held: Mapping[str, Any] = field(repr=False)
    size: int


def read_page(body: bytes) -> Page:
    """The page in a body.

    Raises:
        UnreadableError: It is no Bundle and no Patient in JSON. The text holds nothing of it.
    """
    try:
        held = json.loads(body.decode("utf-8-sig"), parse_float=Decimal)
    except (ValueError, RecursionError):
        raise UnreadableError(
            "it is not JSON, though application/fhir+json was asked for"
        ) from None
    kind = held.get("resourceType") if isinstance(held, dict) else None
    if kind == "OperationOutcome":
        raise UnreadableError(f"it is an OperationOutcome{_said(held)}")
    if not isinstance(kind, str) or kind not in {"Bundle", "Patient"}:
        raise UnreadableError("it is no FHIR Bundle")
    return Page(held, len(body))


def record_pages(
    base_url: str, patient_id: str, searches: Sequence[str], *, max_pages: int, max_bytes: int
) -> Generator[str, Page, dict[str, Any]]:
    """Yields the URLs to fetch, and returns one Bundle of all that came.

    Args:
        base_url: The server's base, without a slash at its end.
        patient_id: The id of the Patient resource.
        searches: Searches to make instead of Patient/$everything, such as "Condition" or
            "Observation?category=laboratory".
        max_pages: The most pages in all.
        max_bytes: The most bytes in all.

    Raises:
        SvcRequestError: The id or a search is none.
        SvcResponseError: There is too much, a page leads elsewhere or in a circle, or the Patient
            that was asked for did not come.
    """
    entries: dict[Any, Any] = {}
    seen: set[str] = set()
    size = 0
    for first in _first_urls(base_url, patient_id, searches):
        url: str | None = first
        while url is not None:
            if url in seen:
                raise SvcResponseError("The FHIR server's pages lead in a circle: none was taken")
            if len(seen) == max_pages:
                raise SvcResponseError(
                    f"The record has more than {max_pages} pages, so none was taken; raise "
                    "max_pages or name fewer searches"
                )
            seen.add(url)
            page = yield url
            size += page.size
            if size > max_bytes:
                raise SvcResponseError(
                    f"The record has more than {max_bytes:,} bytes, so none was taken; raise "
                    "max_response_bytes or name fewer searches"
                )
            for entry in _entries(page.held, url):
                entries.setdefault(_key(entry, len(entries)), entry)
            url = _next_url(page.held, url, base_url)
    bundle = {"resourceType": "Bundle", "type": "searchset", "entry": list(entries.values())}
    _check_patient(bundle["entry"], patient_id)
    return bundle


def _first_urls(base_url: str, patient_id: str, searches: Sequence[str]) -> Iterator[str]:
    if not isinstance(patient_id, str) or not _ID.fullmatch(patient_id):
        raise SvcRequestError(
            "patient_id must be the id of a Patient resource: 1 to 64 letters, digits, '-' and '.'"
        )
    if isinstance(searches, str):
        raise SvcRequestError('searches must be a list, such as ["Condition", "Observation"]')
    found = [_SEARCH.fullmatch(search) for search in searches]
    for number, search in enumerate(found):
        if search is None:
            raise SvcRequestError(
                f"searches[{number}] must be a resource type, with parameters or without, such as "
                '"Condition" or "Observation?category=laboratory"'
            )
    patient = f"{base_url}/Patient/{patient_id}"
    yield patient if found else f"{patient}/$everything"
    for search in filter(None, found):
        more = f"&{search[2]}" if search[2] else ""
        yield f"{base_url}/{search[1]}?patient={patient_id}{more}"


def _entries(held: Mapping[str, Any], url: str) -> Iterator[Mapping[str, Any]]:
    if held["resourceType"] == "Patient":
        yield {"fullUrl": url, "resource": held}
        return
    entries = held.get("entry") or ()
    if not isinstance(entries, (list, tuple)):
        raise SvcResponseError("The FHIR server sent a Bundle whose entry is not a list")
    for entry in entries:
        resource = entry.get("resource") if isinstance(entry, dict) else None
        if not isinstance(resource, dict):
            continue
        if resource.get("resourceType") == "OperationOutcome":
            # What a search says of itself; where it failed in part, the record is not whole.
            if any(str(issue.get("severity")) in {"fatal", "error"} for issue in _issues(resource)):
                raise SvcResponseError(
                    f"The FHIR server sent only a part of the record{_said(resource)}"
                )
            continue
        yield entry


def _key(entry: Mapping[str, Any], number: int) -> Any:
    """What tells a resource that came on two pages from two resources."""
    url, resource = entry.get("fullUrl"), entry["resource"]
    if isinstance(url, str) and url:
        return url
    kind, own = resource.get("resourceType"), resource.get("id")
    return (kind, own) if isinstance(kind, str) and isinstance(own, str) else number


def _check_patient(entries: Sequence[Mapping[str, Any]], patient_id: str) -> None:
    people = [e["resource"] for e in entries if e["resource"].get("resourceType") == "Patient"]
    if not any(person.get("id") == patient_id for person in people):
        raise SvcResponseError(
            "The FHIR server's answer does not hold the Patient that was asked for, so none of it "
            "was taken"
        )


# -- the next page ---------------------------------------------------------------------------------

_PORTS = {"http": 80, "https": 443}


def _next_url(held: Mapping[str, Any], url: str, base_url: str) -> str | None:
    links = objects(held.get("link"))
    found = [link.get("url") for link in links if link.get("relation") == "next"]
    if not found:
        return None
    base, following = urlsplit(base_url), None
    try:
        following = urlsplit(urljoin(url, found[0])) if isinstance(found[0], str) else None
        same = following is not None and _origin(following) == _origin(base)
    except ValueError:
        same = False
    if following is None or not same:
        raise SvcResponseError(
            "The link to the next page leads to another scheme, host or port than the address "
            "given, and is not followed, as it would carry the token away. Give the address that "
            "the server itself uses in its links"
        )
    # Built anew, so that nothing in the link decides where the token goes.
    path = following.path if following.path.startswith("/") else f"/{following.path}"
    query = f"?{following.query}" if following.query else ""
    return f"{base.scheme}://{base.netloc}{path}{query}"


def _origin(parts: SplitResult) -> tuple[str, str | None, int | None]:
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


# -- errors ----------------------------------------------------------------------------------------

# The codes of FHIR R4 (valueset-issue-type.html): anything else might be somebody's name.
_CODES = frozenset(
    """
    invalid structure required value invariant security login unknown expired forbidden suppressed
    processing not-supported duplicate multiple-matches not-found deleted too-long code-invalid
    extension too-costly business-rule conflict transient lock-error no-store exception timeout
    incomplete throttled informational
    """.split()  # noqa: SIM905  # a list of so many quoted words reads worse
)
_NEXT_STEP = {
    401: "check the token, which may have expired",
    403: "the token is valid but not allowed to read this: check its scopes",
    404: "check the address and the patient's id",
    410: "the patient was deleted on the server",
}
_NO_EVERYTHING = frozenset({400, 403, 404, 405, 501})


def read_refusal(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    now: float,
    secrets: Sequence[str] = (),
    private: Sequence[str] = (),
    everything: bool = False,
) -> SvcAPIError:
    """The error that a FHIR server's refusal means.

    It has the status and the codes of the OperationOutcome. Its texts and diagnostics are left
    out, since they may name the patient.
    """
    try:
        held = json.loads(body)
    except (ValueError, RecursionError):
        held = None
    text = f"The FHIR server answered {status}{_said(held)}"
    if status in _NEXT_STEP:
        text += f"; {_NEXT_STEP[status]}"
    if everything and status in _NO_EVERYTHING:
        text += (
            ". A server without Patient/$everything is read by searches, such as "
            'searches=["Condition", "MedicationRequest", "Observation"]'
        )
    codes = _codes(held)
    identifier = safe_label(headers.get("x-request-id"), secrets=secrets, private=private)
    return failure(
        status, headers, text, now=now, code=codes[0] if codes else None, request_id=identifier
    )


def _issues(held: Any) -> Iterator[Mapping[str, Any]]:
    return objects(held.get("issue") if isinstance(held, dict) else None)


def _codes(held: Any) -> list[str]:
    codes = [issue.get("code") for issue in _issues(held)]
    return list(dict.fromkeys(c for c in codes if isinstance(c, str) and c in _CODES))


def _said(held: Any) -> str:
    codes = _codes(held)
    return f" (OperationOutcome: {', '.join(codes)})" if codes else ""
