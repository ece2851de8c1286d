"""The whole service as a function from a request to an answer; no sockets, no faults.

In order: the path (404), the method (405), the key (401, 403), the plan's limits (429), the body
(400), then the endpoint. Every v1 answer, errors included, carries the rate limit headers.
"""

from __future__ import annotations

import asyncio
import hmac
import itertools
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from email.utils import formatdate
from hashlib import sha256
from http import HTTPStatus
from typing import Literal

from .answers import Script
from .endpoints import LARGE, ROUTES, RequestContext, ServedEndpoint, Settings
from .log import ServedExchange
from .wire import (
    Body,
    HttpReply,
    HttpRequest,
    Problem,
    interface_of,
    json_reply,
    parse_body,
    v1_error,
)

Plan = Literal["free", "starter", "pro", "enterprise"]
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
        self._interfaces = {
            "v1": ServedInterface(
                v1_error,
                "sse",
                settings.api_key,
                Meter(_V1_PLANS[settings.plan], settings.clock),
                shows_limits=True,
            ),
            "general": ServedInterface(
                lambda problem: {"success": False, "error": problem.message},
                "text",
                settings.api_key,
                Meter(_GENERAL_PLANS[settings.plan], settings.clock),
            ),
            "medical": ServedInterface(
                lambda problem: {"error": problem.message},
                "json",
                settings.medical_api_key,
                Meter((), settings.clock),
                bearer=False,
            ),
        }

    async def answer(self, request: HttpRequest, exchange: ServedExchange) -> HttpReply:
        """Return the answer to a request; a refusal is an answer too.

        The `exchange` records what the service learns about the request.
        """
        interface = self._interface(request)
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
                charge=interface.meter.charge,
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
        interface = self._interface(request)
        reply = _refusal(interface, problem)
        return self._with_headers(interface, request, reply, next(self._serial))

    def meters(self) -> dict[str, list[dict[str, object]]]:
        """The limits of the plan, by interface; none where it has no limit."""
        return {
            name: interface.meter.windows()
            for name, interface in self._interfaces.items()
        }

    def _interface(self, request: HttpRequest) -> ServedInterface:
        return self._interfaces[interface_of(request.path)]

    def _read_body(
        self, endpoint: ServedEndpoint, request: HttpRequest, exchange: ServedExchange
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
    endpoint: ServedEndpoint, context: RequestContext, body: Body | None
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


def _endpoint(request: HttpRequest) -> ServedEndpoint:
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


# -- the limits of a plan --------------------------------------------------------------------------
# Fixed windows that begin with a key's first request in them: v1 API, section 8, and general API,
# section 8. The medical document gives no limits. Requests are counted when they are admitted,
# tokens when the answer is known; a window whose tokens are used up admits nobody until it ends.

_MINUTE = 60.0
_HOUR = 3_600.0
_DAY = 86_400.0

# Each limit: a unit, an amount of it, and the window's seconds.
_Limits = tuple[tuple[str, int, float], ...]


def _v1(per_minute: int, per_hour: int, tokens: int) -> _Limits:
    return (
        ("requests", per_minute, _MINUTE),
        ("requests", per_hour, _HOUR),
        ("tokens", tokens, _MINUTE),
    )


def _general(per_minute: int, per_day: int, tokens: int) -> _Limits:
    return (
        ("requests", per_minute, _MINUTE),
        ("requests", per_day, _DAY),
        ("tokens", tokens, _DAY),  # the document does not show their period
    )


# The v1 document has no Starter row: such a key gets the Free row there. Its Enterprise row is
# "custom", but every response needs numbers for the headers: these are out of reach.
_V1_PLANS: dict[str, _Limits] = {
    "free": _v1(3, 100, 50_000),
    "starter": _v1(3, 100, 50_000),
    "pro": _v1(60, 3_000, 500_000),
    "enterprise": _v1(1_000_000, 60_000_000, 1_000_000_000),
}
_GENERAL_PLANS: dict[str, _Limits] = {
    "free": _general(10, 100, 10_000),
    "starter": _general(60, 10_000, 100_000),
    "pro": _general(300, 100_000, 1_000_000),
    "enterprise": (),
}


@dataclass
class _Window:
    """At most `amount` of "requests" or "tokens" in `seconds`, and how many were used."""

    unit: str
    amount: int
    seconds: float
    used: int = 0
    began: float | None = None

    def restart_if_over(self, now: float) -> None:
        if self.began is not None and now >= self.began + self.seconds:
            self.began = None
            self.used = 0

    def use(self, now: float, amount: int) -> None:
        if self.began is None:
            self.began = now
        self.used += amount

    @property
    def remaining(self) -> int:
        return max(0, self.amount - self.used)

    def ends(self, now: float) -> float:
        if self.began is None:
            return now + self.seconds
        return self.began + self.seconds


class Meter:
    """Counts one key's requests and tokens on one interface; safe to use from any thread."""

    def __init__(self, limits: _Limits, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._windows = [_Window(*limit) for limit in limits]

    def admit(self) -> float:
        """Count one request and return 0, or return the seconds to wait and count nothing."""
        with self._lock:
            now = self._restart_windows()
            waits = [
                window.ends(now) - now
                for window in self._windows
                if window.remaining == 0
            ]
            if waits:
                return max(waits)
            for window in self._of("requests"):
                window.use(now, 1)
            return 0.0

    def charge(self, tokens: int) -> None:
        with self._lock:
            now = self._restart_windows()
            for window in self._of("tokens"):
                window.use(now, tokens)

    def standing(self) -> tuple[int, int, float]:
        """The limit, the remaining requests and the end of the tightest request window.

        The tightest is the one with the least remaining; the later end breaks a tie.
        """
        with self._lock:
            now = self._restart_windows()
            window = min(
                self._of("requests"),
                key=lambda window: (window.remaining, -window.ends(now)),
            )
            return window.amount, window.remaining, window.ends(now)

    def windows(self) -> list[dict[str, object]]:
        """Every limit with its use, and the seconds until its window ends."""
        with self._lock:
            now = self._restart_windows()
            return [
                {**vars(window), "ends_in": window.ends(now) - now}
                for window in self._windows
            ]

    def _of(self, unit: str) -> list[_Window]:
        return [window for window in self._windows if window.unit == unit]

    def _restart_windows(self) -> float:
        """Restart the windows that are over, and return the time now."""
        now = self._clock()
        for window in self._windows:
            window.restart_if_over(now)
        return now
