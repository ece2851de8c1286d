"""The conversation with the service, written once and without I/O.

`converse` is a generator. It yields what is to be done (`Open`, READ, CLOSE, `Sleep`) and is sent
what came of it; anything else it yields is a piece of the answer for the caller. Two short drivers
in `client.py` obey it, one blocking and one on an event loop. So retries, waits, deadlines, size
limits and error mapping exist once and are tested without a network or a clock.

Rules:
- A try is repeated after lost connections, timeouts and the statuses that come and go, at most
  `max_retries` times, and never after a piece of the answer was handed on.
- The service's own word on when to come back goes before our backoff. A wait that would pass
  `max_retry_wait` or the deadline is not begun: the error says when to come back.
- The same bytes are sent on every try.
- Before every try the policy of `budget.py` is asked, and told afterwards how the service did. It
  may hold a call that can be tried again for `max_retry_wait` seconds in all.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from .. import errors
from .._wire.body import BodyError, BodyReader, TooLargeError
from .._wire.failures import TRANSIENT, TROUBLE, read_failure, read_safely, safe_text
from .budget import ALONE, Hold, Permit, Policy
from .patience import FOREVER, Patience

logger = logging.getLogger("langchain_svc")

_FIRST_BACKOFF, _LONGEST_BACKOFF = 0.5, 8.0
_LONGEST_ERROR_BODY = 65_536
_ERROR_BODY_SECONDS = 5.0
# After the end mark only the end of the body can come, which lets the connection be used again;
# after a finish_reason, the usage and the end mark.
_LINGER_AFTER_END, _LINGER_AFTER_REASON = 0.2, 2.0
# Heartbeats show that the service lives, but no longer than this many timeouts.
_TIMEOUTS_WITHOUT_CONTENT = 3

T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """What is sent. `private` and `secrets` are what no error may repeat."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes | None = field(default=None, repr=False)
    private: tuple[str, ...] = field(default=(), repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Limits:
    """How long and how often to try, in seconds, tries and bytes.

    `begun` is the moment from which the deadline counts, where several calls share one; each
    counts from its own beginning where it is None.
    """

    timeout: float | None = 120.0
    deadline: float | None = 600.0
    max_retries: int = 2
    max_retry_wait: float = 60.0
    max_bytes: int = 64 * 1024 * 1024
    begun: float | None = None


@dataclass(frozen=True)
class Head:
    """The beginning of an answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class Lost:
    """What was to be done could not be: `kind` is connect, timeout, silence or read."""

    kind: str
    detail: str = ""


@dataclass(frozen=True)
class Open:
    """Send the request and wait for the head of its answer."""

    request: Request
    patience: Patience


@dataclass(frozen=True)
class Sleep:
    """Wait before the next try."""

    seconds: float


class Read:
    """Read the next bytes of the body; none at its end."""


class Close:
    """Give the connection back, or close it if the body was not read to its end."""


READ, CLOSE = Read(), Close()
Reply = Head | Lost | bytes | None
Conversation = Generator[Any, Reply, None]


class Reader(Protocol, Generic[T]):
    """Turns the body of one good answer into pieces for the caller."""

    secrets: tuple[str, ...]  # keys, which a service may repeat and nobody may see
    fault: str | None  # why the answer cannot be taken
    error: Any  # an error object that stood in the answer
    delivered: bool  # a piece has been handed on
    complete: bool  # the whole answer is here, whatever may follow
    ended: bool  # nothing can follow
    whole: bool  # there is one piece, at the end, so that every byte counts as content

    def begin(self, head: Head) -> None: ...

    def feed(self, data: bytes) -> list[T]: ...

    def finish(self) -> list[T]: ...

    def failure(self, message: str, lost: Lost | None) -> errors.SvcError: ...


@dataclass
class Call(Generic[T]):
    """One call of the service: what to send, how to read the answer and what became of it."""

    request: Request
    limits: Limits
    new_reader: Callable[[], Reader[T]]
    policy: Policy = ALONE
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    jitter: Callable[[], float] = random.random
    reader: Reader[T] | None = None
    head: Head | None = None
    retries: int = 0
    waited: float = 0.0
    held: float = 0.0

    def __post_init__(self) -> None:
        limit, begun = self.limits.deadline, self.limits.begun
        begun = self.clock() if begun is None else begun
        self.until = FOREVER if limit is None else begun + limit


@dataclass(frozen=True)
class _Failure:
    error: errors.SvcError
    again: bool
    of_service: bool = False  # it shows the service in trouble


def converse(call: Call[Any]) -> Conversation:
    """Tries until an answer has come or hope is lost; then raises the last error."""
    failure: _Failure | None = None
    try:
        while True:
            permit = yield from _admitted(call, retry=failure is not None and failure.of_service)
            if isinstance(permit, Hold):
                raise _last(call, failure.error if failure is not None else _spared(call, permit))
            with permit:
                call.reader = reader = call.new_reader()
                failure = yield from _attempt(call, reader, permit)
                _tell(call, permit, failure)
            if failure is None:
                return
            pause = _pause(call, failure)
            if pause is None:
                raise _last(call, failure.error)
            name = type(failure.error).__name__
            logger.info("%s: try %d follows in %.2f s", name, call.retries + 2, pause)
            call.retries += 1
            call.waited += pause
            yield Sleep(pause)
    finally:
        # The traceback of a raised error holds this frame: together they would be a cycle, which
        # keeps the caller's model and its connections until the next collection.
        failure = None


def _last(call: Call[Any], error: errors.SvcError) -> errors.SvcError:
    error.retries, error.waited = call.retries, call.waited
    return error


def _admitted(call: Call[Any], *, retry: bool) -> Generator[Any, Reply, Permit | Hold]:
    """Waits until the policy lets a try through; a Hold where that would take too long."""
    while isinstance(answer := call.policy.ask(call.clock(), retry=retry), Hold):
        wait = answer.seconds
        patient = call.limits.max_retries and call.held + wait <= call.limits.max_retry_wait
        if not patient or call.clock() + wait >= call.until:
            return answer
        logger.info("the service keeps failing: a try waits for %.2f s", wait)
        call.held += wait
        call.waited += wait
        yield Sleep(wait)
    return answer


def _tell(call: Call[Any], permit: Permit, failure: _Failure | None) -> None:
    if failure is None:
        permit.succeeded()
    elif failure.of_service and permit.failed(call.clock()):
        logger.warning("%s keeps failing: calls wait until it answers again", _place(call))


def _pause(call: Call[Any], failure: _Failure) -> float | None:
    """Seconds until the next try, or None to give up."""
    limits, error = call.limits, failure.error
    asked: float | None = getattr(error, "retry_after", None)
    if asked is not None and asked > limits.max_retry_wait:
        error.is_retryable = False
        return None
    if not failure.again or call.retries >= limits.max_retries:
        return None
    backoff = min(_LONGEST_BACKOFF, _FIRST_BACKOFF * 2**call.retries)
    # A tenth of jitter keeps the callers that were told the same moment from meeting again.
    pause = backoff * call.jitter() if asked is None else asked * (1 + 0.1 * call.jitter())
    return pause if call.clock() + pause < call.until else None


def _attempt(
    call: Call[Any], reader: Reader[Any], permit: Permit
) -> Generator[Any, Reply, _Failure | None]:
    patience = Patience(call.limits.timeout, call.until)
    if call.clock() >= call.until:
        return _Failure(_late(call), again=False)
    head = yield Open(call.request, patience)
    if isinstance(head, Lost):
        return _Failure(_unreached(call, head), again=True, of_service=call.clock() < call.until)
    assert isinstance(head, Head)  # noqa: S101  # what Open is answered with
    call.head = head
    if head.status not in TROUBLE:
        permit.answered()
    if not 200 <= head.status < 300:  # noqa: PLR2004
        return (yield from _refusal(call, head, patience))
    reader.secrets = call.request.secrets
    reader.begin(head)
    try:
        body = BodyReader(head.headers.get("content-encoding", ""), call.limits.max_bytes)
        lost = yield from _receive(call, reader, body, patience)
        if lost is None:
            body.finish()
            for piece in reader.finish():
                reader.delivered = True
                yield piece
    except BodyError as error:
        yield CLOSE
        refused = reader.failure(f"The answer's body cannot be read: {error}", None)
        if isinstance(error, TooLargeError):
            refused.is_retryable = False  # it would be too large again
        return _Failure(refused, again=False)
    yield CLOSE
    return _verdict(call, reader, lost)


def _receive(
    call: Call[Any], reader: Reader[Any], body: BodyReader, patience: Patience
) -> Generator[Any, Reply, Lost | None]:
    """Hands on pieces until the body ends; returns how it was lost, if it was."""
    content_due = call.clock() + _TIMEOUTS_WITHOUT_CONTENT * patience
    while reader.fault is None:
        data = yield READ
        if isinstance(data, Lost):
            return None if reader.complete else data
        if not data:
            return None
        assert isinstance(data, bytes)  # noqa: S101  # what READ is answered with
        pieces = reader.feed(body.feed(data))
        now = call.clock()
        for piece in pieces:
            reader.delivered = True
            yield piece
        if pieces or reader.whole:
            content_due = call.clock() + _TIMEOUTS_WITHOUT_CONTENT * patience
        if now > content_due or now > patience.until:
            return None if reader.complete else Lost("silence")
        if reader.complete and patience.until == call.until:
            linger = _LINGER_AFTER_END if reader.ended else _LINGER_AFTER_REASON
            patience.until = min(call.until, now + linger)
    return None


def _verdict(call: Call[Any], reader: Reader[Any], lost: Lost | None) -> _Failure | None:
    if lost is not None:
        message = _how_lost(call, lost)
    elif reader.fault is not None:
        message = f"The answer cannot be used: {reader.fault}{_said(call, reader)}"
    else:
        return None
    return _Failure(
        reader.failure(message, lost),
        again=lost is not None and not reader.delivered,
        of_service=lost is not None and call.clock() < call.until,
    )


def _said(call: Call[Any], reader: Reader[Any]) -> str:
    """What an error object inside the answer says, made safe."""
    if reader.error is None:
        return ""
    text, _, code = read_safely(
        reader.error, secrets=call.request.secrets, private=call.request.private
    )
    return (f": {text}" if text else "") + (f" (code {code})" if code else "")


def _refusal(
    call: Call[Any], head: Head, patience: Patience
) -> Generator[Any, Reply, _Failure | None]:
    """Reads an error answer, as far as it comes, and says what it means."""
    patience.until = min(patience.until, call.clock() + _ERROR_BODY_SECONDS)
    parts: list[bytes] = []
    try:
        body = BodyReader(head.headers.get("content-encoding", ""), _LONGEST_ERROR_BODY)
        while isinstance(data := (yield READ), bytes) and data:
            parts.append(body.feed(data))
    except BodyError:
        pass  # the status tells enough
    yield CLOSE
    error = read_failure(
        head.status,
        head.headers,
        b"".join(parts),
        now=call.wall(),
        secrets=call.request.secrets,
        private=call.request.private,
    )
    return _Failure(error, again=head.status in TRANSIENT, of_service=head.status in TROUBLE)


def _spared(call: Call[Any], hold: Hold) -> errors.SvcUnavailableError:
    return errors.SvcUnavailableError(
        f"The service at {_place(call)} failed {hold.failures} times in a row, so nothing was "
        f"sent; come back in {hold.seconds:.3g} s. A call waits that long by itself where "
        "max_retries, max_retry_wait and deadline allow it; circuit_breaker=False always sends",
        retry_after=hold.seconds,
    )


def _place(call: Call[Any]) -> str:
    return origin(call.request.url)


def origin(url: str) -> str:
    """The scheme, host and port of a URL."""
    return "/".join(url.split("/", 3)[:3])


def _late(call: Call[Any]) -> errors.SvcTimeoutError:
    return errors.SvcTimeoutError(
        f"No answer within the deadline of {call.limits.deadline:g} s; a larger one waits longer"
    )


def _unreached(call: Call[Any], lost: Lost) -> errors.SvcError:
    if lost.kind == "timeout":
        if call.clock() >= call.until:
            return _late(call)
        return errors.SvcTimeoutError(
            f"No answer within {_timeout(call)}; raise timeout to wait longer"
        )
    detail = safe_text(lost.detail, secrets=call.request.secrets)
    place = _place(call)
    what = (
        f"The service at {place} could not be reached"
        if lost.kind == "connect"
        else f"The connection to {place} was lost before an answer came"
    )
    return errors.SvcConnectionError(f"{what}: {detail}" if detail else what)


def _how_lost(call: Call[Any], lost: Lost) -> str:
    if lost.kind not in {"timeout", "silence"}:
        return "The connection was lost inside the answer"
    if call.clock() >= call.until:
        return f"The answer was not complete within the deadline of {call.limits.deadline:g} s"
    if lost.kind == "silence":
        return "The answer stalled: the service kept the connection alive but sent no content"
    return f"The answer stalled: nothing came for {_timeout(call)}"


def _timeout(call: Call[Any]) -> str:
    return f"{call.limits.timeout:g} s" if call.limits.timeout is not None else "the time allowed"
