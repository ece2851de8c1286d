"""The whole service as a function from a request to an answer; no sockets, no faults.

In order: the path (404), the method (405), the key (401, 403), the plan's limits (429), the body
(400), then the endpoint. Every v1 answer, errors included, carries the rate limit headers.
"""

import asyncio
import hmac
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from email.utils import formatdate
from hashlib import sha256
from http import HTTPStatus

from .answers import Script
from .endpoints import LARGE, ROUTES, Endpoint, RequestContext, Settings
from .limits import GENERAL_PLANS, V1_PLANS, Meter
from .log import ServedExchange
from .wire import (
    Body,
    HttpReply,
    HttpRequest,
    Problem,
    json_reply,
    parse_body,
    v1_error,
)

# A key that begins so is valid, but not authorized for anything.
_FORBIDDEN = b"forbidden"


@dataclass(frozen=True)
class ServedInterface:
    """One of the three interfaces: its error body, its streams, its key and its limits."""

    error_body: Callable[[Problem], dict[str, object]]
    stream_format: str
    key: str
    meter: Meter
    bearer: bool = True
    shows_limits: bool = False


class Service:
    """Answers requests on an event loop."""

    def __init__(self, settings: Settings, script: Script) -> None:
        self._settings = settings
        self._script = script
        self._serial = itertools.count(1)
        self._v1 = ServedInterface(
            v1_error,
            "sse",
            settings.api_key,
            Meter(V1_PLANS[settings.plan], settings.clock),
            shows_limits=True,
        )
        self._general = ServedInterface(
            lambda problem: {"success": False, "error": problem.message},
            "text",
            settings.api_key,
            Meter(GENERAL_PLANS[settings.plan], settings.clock),
        )
        self._medical = ServedInterface(
            lambda problem: {"error": problem.message},
            "json",
            settings.medical_api_key,
            Meter((), settings.clock),
            bearer=False,
        )

    async def answer(self, request: HttpRequest, exchange: ServedExchange) -> HttpReply:
        """Return the answer to a request; a refusal is an answer too.

        The `exchange` records what the service learns about the request.
        """
        interface = self._interface(request.path)
        serial = next(self._serial)
        try:
            endpoint = _endpoint(request)
            _authorize(interface, request)
            _admit(interface)
            if len(request.body) > LARGE:
                body = await asyncio.to_thread(
                    self._read_body, endpoint, request, exchange
                )
            else:
                body = self._read_body(endpoint, request, exchange)
            context = RequestContext(
                id=f"{sha256(request.body).hexdigest()[:16]}{serial:06d}",
                now=self._settings.clock(),
                settings=self._settings,
                stream_format=self._settings.stream_format or interface.stream_format,
                meter=interface.meter,
                exchange=exchange,
                script=self._script,
            )
            reply = await _run(endpoint, context, body)
        except Problem as problem:
            reply = _refusal(interface, problem)
        if exchange.upstream:
            headers = {"x-sandbox-upstream": exchange.upstream, **reply.headers}
            reply = replace(reply, headers=headers)
        return self._with_headers(interface, request, reply, serial)

    def refuse(self, request: HttpRequest, problem: Problem) -> HttpReply:
        """Return this refusal in the interface's error body; check and count nothing."""
        interface = self._interface(request.path)
        reply = _refusal(interface, problem)
        return self._with_headers(interface, request, reply, next(self._serial))

    def meters(self) -> dict[str, list[dict[str, object]]]:
        """The limits of the plan, by interface; none where it has no limit."""
        return {
            "v1": self._v1.meter.windows(),
            "general": self._general.meter.windows(),
        }

    def _interface(self, path: str) -> ServedInterface:
        if f"{path}/".startswith("/v1/"):
            return self._v1
        if path.startswith("/api/medical"):
            return self._medical
        return self._general

    def _read_body(
        self, endpoint: Endpoint, request: HttpRequest, exchange: ServedExchange
    ) -> Body | None:
        if endpoint.body is None:
            return None
        body = parse_body(endpoint.body, request)
        unknown = tuple(body.undocumented())
        exchange.update(unknown_fields=unknown)
        if unknown and self._settings.strict:
            raise Problem(400, f"{unknown[0]}: this field is not documented.")
        return body

    def _with_headers(
        self,
        interface: ServedInterface,
        request: HttpRequest,
        reply: HttpReply,
        serial: int,
    ) -> HttpReply:
        now = self._settings.clock()
        digest = sha256(request.path.encode() + request.body).hexdigest()
        headers = {
            "date": formatdate(now, usegmt=True),
            "x-request-id": f"req_{digest[:12]}{serial:06d}",
        }
        if interface.shows_limits:
            limit, remaining, reset_at = interface.meter.standing()
            headers["x-ratelimit-limit"] = str(limit)
            headers["x-ratelimit-remaining"] = str(remaining)
            # Rounded up: a client that waits until then must find the window open.
            headers["x-ratelimit-reset"] = str(math.ceil(reset_at))
        return replace(reply, headers={**headers, **reply.headers})


async def _run(
    endpoint: Endpoint, context: RequestContext, body: Body | None
) -> HttpReply:
    if endpoint.slow:
        reply = await asyncio.to_thread(endpoint.run, context, body)
    else:
        reply = endpoint.run(context, body)
    if isinstance(reply, HttpReply):
        return reply
    return await reply


def _refusal(interface: ServedInterface, problem: Problem) -> HttpReply:
    body: dict[str, object] = {}
    if problem.status >= HTTPStatus.BAD_REQUEST:
        body = interface.error_body(problem)
    reply = json_reply(body, status=problem.status)
    return replace(reply, headers={**reply.headers, **problem.headers})


def _endpoint(request: HttpRequest) -> Endpoint:
    methods = ROUTES.get(request.path)
    if methods is None:
        raise Problem(404)
    if request.method not in methods:
        allowed = ", ".join(sorted(methods))
        raise Problem(
            405, f"This path answers {allowed} only.", headers={"allow": allowed}
        )
    return methods[request.method]


def _authorize(interface: ServedInterface, request: HttpRequest) -> None:
    key = _key_of(request, bearer=interface.bearer).encode()
    if key.startswith(_FORBIDDEN):
        raise Problem(403)
    if not hmac.compare_digest(key, interface.key.encode()):
        raise Problem(401)


def _key_of(request: HttpRequest, *, bearer: bool) -> str:
    if not bearer:
        return request.headers.get("x-api-key", "")
    authorization = request.headers.get("authorization", "")
    scheme, _, key = authorization.partition(" ")
    if scheme.lower() != "bearer":
        return ""
    return key.strip()


def _admit(interface: ServedInterface) -> None:
    seconds = interface.meter.admit()
    if seconds > 0:
        headers = {"retry-after": str(math.ceil(seconds))}
        raise Problem(429, headers=headers)
