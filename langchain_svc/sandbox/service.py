"""The whole service as a function from a request to an answer; no sockets, no faults.

In order: the path (404), the method (405), the key (401, 403), the plan's limits (429), the body
(400), then the endpoint. Every v1 answer, errors included, carries the rate limit headers.
"""

import hmac
import itertools
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from email.utils import formatdate
from hashlib import sha256
from http import HTTPStatus

from langchain_svc.sandbox import general, medical, v1
from langchain_svc.sandbox.endpoint import Ask, Endpoint, Messages, Settings
from langchain_svc.sandbox.limits import GENERAL_PLANS, RESET_FORMATS, V1_PLANS, Meter
from langchain_svc.sandbox.log import ServedExchange
from langchain_svc.sandbox.wire import (
    FORMATS,
    HttpReply,
    HttpRequest,
    Problem,
    general_error,
    json_reply,
    medical_error,
    parsed,
    v1_error,
)

_LARGE = 64_000  # bytes of a body that takes the rules longer than a blink
_FORBIDDEN = b"forbidden"  # a key that begins so is valid, but authorized for nothing

Routes = Mapping[str, dict[str, Endpoint]]
Scripted = Callable[[Messages], str | None]


@dataclass(frozen=True)
class ServedInterface:
    """One of the three documents: its endpoints, its key, its limits and its error body."""

    routes: dict[str, dict[str, Endpoint]]
    error_body: Callable[[Problem], dict[str, object]]
    stream_format: str
    key: str
    meter: Meter
    bearer: bool = True
    shows_limits: bool = False


@dataclass(frozen=True)
class Answered:
    """An answer, and the undocumented fields that its request carried."""

    reply: HttpReply
    unknown_fields: tuple[str, ...] = ()


class Service:
    """Answers requests; safe to call from any thread. `routes` take the place of the rules'."""

    def __init__(self, settings: Settings, routes: Routes) -> None:
        self._settings = settings
        self._serial = itertools.count(1)
        key, clock = settings.api_key, settings.clock
        on_v1, on_general, on_medical = (
            Meter(limits, clock)
            for limits in (V1_PLANS[settings.plan], GENERAL_PLANS[settings.plan], ())
        )
        self._v1 = ServedInterface(
            {**v1.ROUTES, **routes}, v1_error, "sse", key, on_v1, shows_limits=True
        )
        self._general = ServedInterface(
            {**general.ROUTES, **routes}, general_error, "text", key, on_general
        )
        key = settings.medical_api_key
        self._medical = ServedInterface(
            {**medical.ROUTES, **routes}, medical_error, "json", key, on_medical, bearer=False
        )

    def is_slow(self, request: HttpRequest) -> bool:
        """Whether answering may take long enough to hold up other requests."""
        endpoint = self._interface(request.path).routes.get(request.path, {}).get(request.method)
        return endpoint is not None and (endpoint.slow or len(request.body) > _LARGE)

    def answer(
        self, request: HttpRequest, scripted: Scripted, exchange: ServedExchange
    ) -> Answered | Awaitable[Answered]:
        """Return the answer to a request, or wait for it; a refusal is an answer too.

        `scripted` gives the text that a test has written for a chat, or None. The tokens are
        written into the `exchange`.
        """
        interface = self._interface(request.path)
        unknown: list[str] = []
        serial = next(self._serial)
        try:
            endpoint = _endpoint(interface, request)
            _authorize(interface, request)
            _admit(interface)
            body = None if endpoint.body is None else parsed(endpoint.body, request)
            unknown += body.undocumented() if body else ()
            if self._settings.strict:
                _refuse_undocumented(unknown)
            reply = endpoint.run(self._ask(interface, request, serial, scripted, exchange), body)
        except Problem as problem:
            reply = _refusal(interface, problem)
        if isinstance(reply, HttpReply):
            return Answered(self._with_headers(interface, request, reply, serial), tuple(unknown))
        return self._later(interface, request, reply, serial, tuple(unknown))

    async def _later(
        self,
        interface: ServedInterface,
        request: HttpRequest,
        coming: Awaitable[HttpReply],
        serial: int,
        unknown: tuple[str, ...],
    ) -> Answered:
        try:
            reply = await coming
        except Problem as problem:
            reply = _refusal(interface, problem)
        return Answered(self._with_headers(interface, request, reply, serial), unknown)

    def refuse(self, request: HttpRequest, problem: Problem) -> Answered:
        """Return this refusal in the interface's error body, nothing checked or counted."""
        interface = self._interface(request.path)
        reply = _refusal(interface, problem)
        return Answered(self._with_headers(interface, request, reply, next(self._serial)))

    def meters(self) -> dict[str, list[dict[str, object]]]:
        """The limits of the plan, by interface; none where it has no limit."""
        return {"v1": self._v1.meter.windows(), "general": self._general.meter.windows()}

    def _interface(self, path: str) -> ServedInterface:
        if path == "/v1" or path.startswith("/v1/"):
            return self._v1
        return self._medical if path.startswith("/api/medical") else self._general

    def _ask(
        self,
        interface: ServedInterface,
        request: HttpRequest,
        serial: int,
        scripted: Scripted,
        exchange: ServedExchange,
    ) -> Ask:
        default = self._settings.stream_format or interface.stream_format
        stream_format = request.headers.get("x-sandbox-stream", default)
        if stream_format not in FORMATS:
            raise Problem(400, f"X-Sandbox-Stream: expected one of {', '.join(FORMATS)}.")
        return Ask(
            id=f"{sha256(request.body).hexdigest()[:16]}{serial:06d}",
            now=self._settings.clock(),
            settings=self._settings,
            stream_format=stream_format,
            meter=interface.meter,
            exchange=exchange,
            scripted=scripted,
        )

    def _with_headers(
        self, interface: ServedInterface, request: HttpRequest, reply: HttpReply, serial: int
    ) -> HttpReply:
        now = self._settings.clock()
        digest = sha256(request.path.encode() + request.body).hexdigest()
        headers = {
            "date": formatdate(now, usegmt=True),
            "x-request-id": f"req_{digest[:12]}{serial:06d}",
        }
        standing = interface.meter.standing() if interface.shows_limits else None
        if standing is not None:
            headers["x-ratelimit-limit"] = str(standing.limit)
            headers["x-ratelimit-remaining"] = str(standing.remaining)
            written = RESET_FORMATS[self._settings.reset_format]
            headers["x-ratelimit-reset"] = written(standing.reset_at, now)
        return replace(reply, headers={**headers, **reply.headers})


def _refusal(interface: ServedInterface, problem: Problem) -> HttpReply:
    body = interface.error_body(problem) if problem.status >= HTTPStatus.BAD_REQUEST else {}
    reply = json_reply(body, status=problem.status)
    return replace(reply, headers={**reply.headers, **problem.headers})


def _admit(interface: ServedInterface) -> None:
    wait = interface.meter.admit()
    if wait > 0:
        raise Problem(429, headers={"retry-after": str(math.ceil(wait))})


def _refuse_undocumented(fields: Sequence[str]) -> None:
    if fields:
        raise Problem(400, f"{fields[0]}: this field is not documented.")


def _endpoint(interface: ServedInterface, request: HttpRequest) -> Endpoint:
    methods = interface.routes.get(request.path)
    if methods is None:
        raise Problem(404)
    if request.method not in methods:
        allowed = ", ".join(sorted(methods))
        raise Problem(405, f"This path answers {allowed} only.", headers={"allow": allowed})
    return methods[request.method]


def _authorize(interface: ServedInterface, request: HttpRequest) -> None:
    given = request.headers.get("x-api-key", "")
    if interface.bearer:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        given = key.strip() if scheme.lower() == "bearer" else ""
    if given.encode().startswith(_FORBIDDEN):
        raise Problem(403)
    if not hmac.compare_digest(given.encode(), interface.key.encode()):
        raise Problem(401)
