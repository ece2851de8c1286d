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
from functools import partial
from hashlib import sha256
from http import HTTPStatus

from langchain_svc.sandbox.ask import LARGE, Ask, Settings
from langchain_svc.sandbox.endpoints import ROUTES, Endpoint
from langchain_svc.sandbox.limits import GENERAL_PLANS, V1_PLANS, Meter
from langchain_svc.sandbox.log import ServedExchange
from langchain_svc.sandbox.scripted import Script
from langchain_svc.sandbox.wire import (
    Body,
    HttpReply,
    HttpRequest,
    Problem,
    json_reply,
    parsed,
    v1_error,
)

_FORBIDDEN = b"forbidden"  # a key that begins so is valid, but authorized for nothing


@dataclass(frozen=True)
class ServedInterface:
    """One of the three documents: its error body, its streams, its key and its limits."""

    error_body: Callable[[Problem], dict[str, object]]
    stream_format: str
    key: str
    meter: Meter
    bearer: bool = True
    shows_limits: bool = False


class Service:
    """Answers requests on an event loop."""

    def __init__(self, settings: Settings, script: Script) -> None:
        self._settings, self._script = settings, script
        self._serial = itertools.count(1)
        limits = (V1_PLANS[settings.plan], GENERAL_PLANS[settings.plan], ())
        meters = [Meter(each, settings.clock) for each in limits]
        key, medical_key = settings.api_key, settings.medical_api_key
        self._v1 = ServedInterface(v1_error, "sse", key, meters[0], shows_limits=True)
        self._general = ServedInterface(
            lambda problem: {"success": False, "error": problem.message},
            "text",
            key,
            meters[1],
        )
        self._medical = ServedInterface(
            lambda problem: {"error": problem.message},
            "json",
            medical_key,
            meters[2],
            bearer=False,
        )

    async def answer(self, request: HttpRequest, exchange: ServedExchange) -> HttpReply:
        """Return the answer to a request; a refusal is an answer too.

        What becomes known of the request is written into the `exchange`.
        """
        interface, serial = self._interface(request.path), next(self._serial)
        try:
            endpoint = _endpoint(request)
            _authorize(interface, request)
            _admit(interface)
            large = len(request.body) > LARGE
            read = partial(self._body, endpoint, request, exchange)
            body = await asyncio.to_thread(read) if large else read()
            ask = Ask(
                id=f"{sha256(request.body).hexdigest()[:16]}{serial:06d}",
                now=self._settings.clock(),
                settings=self._settings,
                stream_format=self._settings.stream_format or interface.stream_format,
                meter=interface.meter,
                exchange=exchange,
                script=self._script,
            )
            run = partial(endpoint.run, ask, body)
            reply = await asyncio.to_thread(run) if endpoint.slow else run()
            reply = reply if isinstance(reply, HttpReply) else await reply
        except Problem as problem:
            reply = _refusal(interface, problem)
        if exchange.upstream:
            named = {"x-sandbox-upstream": exchange.upstream}
            reply = replace(reply, headers={**named, **reply.headers})
        return self._with_headers(interface, request, reply, serial)

    def refuse(self, request: HttpRequest, problem: Problem) -> HttpReply:
        """Return this refusal in the interface's error body, nothing checked or counted."""
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
        return self._medical if path.startswith("/api/medical") else self._general

    def _body(
        self, endpoint: Endpoint, request: HttpRequest, exchange: ServedExchange
    ) -> Body | None:
        if endpoint.body is None:
            return None
        body = parsed(endpoint.body, request)
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
            # Rounded up: whoever waits for it must find the window open.
            headers["x-ratelimit-reset"] = str(math.ceil(reset_at))
        return replace(reply, headers={**headers, **reply.headers})


def _refusal(interface: ServedInterface, problem: Problem) -> HttpReply:
    body = (
        interface.error_body(problem)
        if problem.status >= HTTPStatus.BAD_REQUEST
        else {}
    )
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
    given = request.headers.get("x-api-key", "")
    if interface.bearer:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        given = key.strip() if scheme.lower() == "bearer" else ""
    if given.encode().startswith(_FORBIDDEN):
        raise Problem(403)
    if not hmac.compare_digest(given.encode(), interface.key.encode()):
        raise Problem(401)


def _admit(interface: ServedInterface) -> None:
    wait = interface.meter.admit()
    if wait > 0:
        raise Problem(429, headers={"retry-after": str(math.ceil(wait))})
