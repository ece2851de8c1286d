"""The whole service as a function from a request to an answer; no sockets, no faults.

In order: the path (404), the method (405), the key (401, 403), the plan's limits (429), the body
(400), then the endpoint. Every v1 answer, errors included, carries the rate limit headers.
"""

import hmac
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from email.utils import formatdate
from hashlib import sha256

from langchain_svc.sandbox import general, medical, v1
from langchain_svc.sandbox.endpoint import Ask, Endpoint, Messages
from langchain_svc.sandbox.errors import Problem, general_body, medical_body, v1_body
from langchain_svc.sandbox.limits import GENERAL_PLANS, RESET_FORMATS, V1_PLANS, Meter
from langchain_svc.sandbox.schema import check
from langchain_svc.sandbox.streams import FORMATS
from langchain_svc.sandbox.wire import Call, Reply, decode, json_reply

_LARGE = 64_000  # bytes of a body that takes the rules longer than a blink
_FORBIDDEN = b"forbidden"  # a key that begins so is valid, but authorized for nothing


Scripted = Callable[[Messages], str | None]


def _nothing(_messages: Messages) -> None:
    """No script: the rules answer."""


@dataclass(frozen=True)
class Settings:
    """What a sandbox was asked to be."""

    plan: str
    api_key: str
    medical_api_key: str
    stream_format: str | None
    stream_usage: bool
    strict: bool
    reset_format: str
    seed: int
    clock: Callable[[], float]


@dataclass(frozen=True)
class Interface:
    """One of the three documents: its endpoints, its key, its limits and its error body."""

    routes: dict[str, dict[str, Endpoint]]
    error_body: Callable[[Problem], dict[str, object]]
    stream_format: str
    key: bytes
    meter: Meter
    bearer: bool = True
    shows_limits: bool = False


@dataclass(frozen=True)
class Answered:
    """An answer, and the undocumented fields that its request carried."""

    reply: Reply
    unknown_fields: tuple[str, ...] = ()


class Service:
    """Answers requests; safe to call from any thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._serial = itertools.count(1)
        clock, plan = settings.clock, settings.plan
        key, medical_key = settings.api_key.encode(), settings.medical_api_key.encode()
        self._v1 = Interface(
            v1.ROUTES, v1_body, "sse", key, Meter(V1_PLANS[plan], clock), shows_limits=True
        )
        self._general = Interface(
            general.ROUTES, general_body, "text", key, Meter(GENERAL_PLANS[plan], clock)
        )
        self._medical = Interface(
            medical.ROUTES, medical_body, "json", medical_key, Meter((), clock), bearer=False
        )

    def is_slow(self, call: Call) -> bool:
        """Whether answering may take long enough to hold up other requests."""
        endpoint = self._interface(call.path).routes.get(call.path, {}).get(call.method)
        return endpoint is not None and (endpoint.slow or len(call.body) > _LARGE)

    def answer(self, call: Call, scripted: Scripted = _nothing) -> Answered:
        """Return the answer to a request; a refusal is an answer too.

        `scripted` gives the text that a test has written for a chat, or None.
        """
        interface = self._interface(call.path)
        serial = next(self._serial)
        unknown: list[str] = []
        try:
            endpoint = _endpoint(interface, call)
            _authorize(interface, call)
            _admit(interface)
            reply = self._run(interface, endpoint, call, serial, unknown=unknown, scripted=scripted)
        except Problem as problem:
            reply = _refusal(interface, problem)
        return Answered(self._dressed(interface, call, reply, serial), tuple(unknown))

    def refuse(self, call: Call, problem: Problem) -> Answered:
        """Return this refusal in the words of the interface, nothing checked or counted."""
        interface = self._interface(call.path)
        reply = _refusal(interface, problem)
        return Answered(self._dressed(interface, call, reply, next(self._serial)))

    def _interface(self, path: str) -> Interface:
        if path == "/v1" or path.startswith("/v1/"):
            return self._v1
        return self._medical if path.startswith("/api/medical") else self._general

    def _run(
        self,
        interface: Interface,
        endpoint: Endpoint,
        call: Call,
        serial: int,
        *,
        unknown: list[str],
        scripted: Scripted,
    ) -> Reply:
        body: dict[str, object] = {}
        if endpoint.fields is not None:
            body = decode(call)
            unknown.extend(check(endpoint.fields, body))
        settings = self._settings
        if settings.strict and unknown:
            raise Problem(400, f"{unknown[0]}: this field is not documented.")
        ask = Ask(
            body=body,
            serial=serial,
            now=settings.clock(),
            seed=settings.seed,
            strict=settings.strict,
            stream_format=_stream_format(call, settings.stream_format or interface.stream_format),
            stream_usage=settings.stream_usage,
            charge=interface.meter.charge,
            scripted=scripted,
        )
        return endpoint.run(ask)

    def _dressed(self, interface: Interface, call: Call, reply: Reply, serial: int) -> Reply:
        now = self._settings.clock()
        digest = sha256(call.path.encode() + call.body).hexdigest()
        headers = {
            "date": formatdate(now, usegmt=True),
            "x-request-id": f"req_{digest[:12]}{serial:06d}",
            **reply.headers,
        }
        standing = interface.meter.standing() if interface.shows_limits else None
        if standing is not None:
            headers["x-ratelimit-limit"] = str(standing.limit)
            headers["x-ratelimit-remaining"] = str(standing.remaining)
            wording = RESET_FORMATS[self._settings.reset_format]
            headers["x-ratelimit-reset"] = wording(standing.reset_at, now)
        return replace(reply, headers=headers)


def _refusal(interface: Interface, problem: Problem) -> Reply:
    body = interface.error_body(problem) if problem.status >= 400 else {}  # noqa: PLR2004
    reply = json_reply(body, status=problem.status)
    return replace(reply, headers={**reply.headers, **problem.headers})


def _endpoint(interface: Interface, call: Call) -> Endpoint:
    methods = interface.routes.get(call.path)
    if methods is None:
        raise Problem(404)
    if call.method not in methods:
        allowed = ", ".join(sorted(methods))
        raise Problem(405, f"This path answers {allowed} only.", headers={"allow": allowed})
    return methods[call.method]


def _authorize(interface: Interface, call: Call) -> None:
    if interface.bearer:
        scheme, _, key = call.headers.get("authorization", "").partition(" ")
        given = key.strip().encode() if scheme.lower() == "bearer" else b""
    else:
        given = call.headers.get("x-api-key", "").encode()
    if given.startswith(_FORBIDDEN):
        raise Problem(403)
    if not hmac.compare_digest(given, interface.key):
        raise Problem(401)


def _admit(interface: Interface) -> None:
    wait = interface.meter.admit()
    if wait > 0:
        raise Problem(429, headers={"retry-after": str(math.ceil(wait))})


def _stream_format(call: Call, default: str) -> str:
    chosen = call.headers.get("x-sandbox-stream", default)
    if chosen not in FORMATS:
        raise Problem(400, f"X-Sandbox-Stream: expected one of {', '.join(FORMATS)}.")
    return chosen
