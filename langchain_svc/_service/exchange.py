"""The conversation with the service, written once and without I/O.

`converse` is a generator. It yields what is to be done (`Open`, READ, CLOSE, `Sleep`) and is sent
what came of it; anything else it yields is a piece of the answer for the caller. Two short drivers
in `client.py` obey it, one blocking and one on an event loop.

Rules:
- A try is repeated after lost connections, timeouts and the statuses that come and go, at most
  `max_retries` times, and never after a piece of the answer was yielded.
- The service's own word on when to come back goes before our backoff. A wait that would pass
  `max_retry_wait` or the deadline is not begun: the error says when to come back.
- The same bytes are sent on every try.
- A retry after a failure of the service takes a token of `retry_budget.py`. Without one it is
  left out: its pause counts and nothing is sent, so that the call ends when its retries would have.
- While a service is down, a call goes on for `outage_wait` seconds after its first failure. Its
  last try, at the end of that time, needs no token. When the service is back, the call begins anew.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from .. import errors
from .._http import FOREVER, Timeouts
from .._wire import TRANSIENT, TROUBLE, BodyError, BodyReader, TooLargeError
from .steps import (
    CLOSE,
    ON_WAIT,
    READ,
    Acquire,
    AnswerParser,
    Conversation,
    Exchange,
    Head,
    Lost,
    Open,
    Reply,
    Sleep,
    Wait,
)
from .wording import how_lost, late, said, unreached

logger = logging.getLogger("langchain_svc")

_LONG_WAIT = 5.0  # seconds; a longer one is told
_FIRST_BACKOFF, _LONGEST_BACKOFF = 0.5, 8.0
_LONGEST_ERROR_BODY = 65_536
_ERROR_BODY_SECONDS = 5.0
# After the end mark only the end of the body can come, which lets the connection be used again;
# after a finish_reason, the usage and the end mark.
_LINGER_AFTER_END, _LINGER_AFTER_REASON = 0.2, 2.0
# Behind a gateway that says so the service may be at work on the request.
_OF_GATEWAYS = frozenset({502, 504})
# Heartbeats show that the service lives, but no longer than this many timeouts.
_TIMEOUTS_WITHOUT_CONTENT = 3


@dataclass(frozen=True)
class _Failure:
    error: errors.SvcError
    again: bool
    of_service: bool = False  # it shows the service in trouble
    sent: bool = True  # the service may have got the request


def converse(exchange: Exchange[Any]) -> Conversation:
    """Tries until an answer has come or hope is lost; then raises the last error."""
    failure: _Failure | None = None
    tries = _RetryState(exchange)
    try:
        while True:
            free = failure is None or not failure.of_service or tries.last
            sent = free or exchange.retry_budget.take(exchange.clock())
            if sent:
                exchange.retries += failure is not None
                exchange.parser = parser = exchange.new_parser()
                attempt = _attempt if exchange.limiter is None else _admitted
                failure = yield from attempt(exchange, parser)
                if failure is None:
                    exchange.retry_budget.succeeded()
                    return
            assert failure is not None  # noqa: S101  # without one a try is always sent
            pause = tries.pause(failure, sent=sent)
            if pause is None:
                failure.error.retries, failure.error.waited = (
                    exchange.retries,
                    exchange.waited,
                )
                raise failure.error
            name = type(failure.error).__name__
            logger.info(
                "%s: try %d follows in %.2f s", name, exchange.retries + 2, pause
            )
            asked = failure.error.retry_after is not None
            why = "the service said when to come back" if asked else "backoff"
            exchange.waited += pause
            if not _is_shown(
                pause, limit=isinstance(failure.error, errors.SvcRateLimitError)
            ):
                _warn_of(exchange, pause, f"{name}; {why}")
            yield Sleep(pause)
    finally:
        # The traceback of a raised error holds this frame: together they would be a cycle, which
        # keeps the caller's model and its connections until the next collection.
        failure = None


def _is_shown(seconds: float, *, limit: bool) -> bool:
    """Whether somebody shows the user this wait, who is told of it here."""
    tell = ON_WAIT.get()
    return tell is not None and tell(seconds, limit)


def _warn_of(exchange: Exchange[Any], seconds: float, reason: str) -> bool:
    """Say of a long wait why it is and when it ends: a program that stands still looks hung."""
    if seconds <= _LONG_WAIT:
        return False
    ends = time.strftime("%H:%M:%S", time.localtime(exchange.wall() + seconds))
    logger.warning("waiting %.0f s, until %s: %s", seconds, ends, reason)
    return True


class _RetryState:
    """How often a call was tried, and when the next try is due."""

    def __init__(self, exchange: Exchange[Any]) -> None:
        self._exchange = exchange
        self._pauses = 0  # that count against max_retries
        self._looked = exchange.clock()
        self._until = float("-inf")  # when an outage has been waited for long enough
        self._down = False
        self.last = (
            False  # the next try ends the wait for an outage; it is sent in any case
        )

    def pause(self, failure: _Failure, *, sent: bool) -> float | None:
        """Seconds until the next try, or None to give up."""
        exchange, error = self._exchange, failure.error
        asked = error.retry_after
        if asked is not None and asked > exchange.limits.max_retry_wait:
            error.is_retryable = False
            return None
        now = exchange.clock()
        self._look(failure, now, sent=sent)
        backoff = min(_LONGEST_BACKOFF, _FIRST_BACKOFF * 2 ** min(self._pauses, 9))
        # A tenth of jitter keeps the callers that were told the same moment from meeting again.
        pause = (
            backoff * exchange.jitter()
            if asked is None
            else asked * (1 + 0.1 * exchange.jitter())
        )
        self.last = self._down and asked is None and now < self._until < now + pause
        if self.last:
            pause = self._until - now
        waits = self._down and now + pause <= self._until
        patient = self._pauses < exchange.limits.max_retries or waits or self.last
        self._pauses += 1
        return (
            pause
            if failure.again and patient and now + pause < exchange.until
            else None
        )

    def _look(self, failure: _Failure, now: float, *, sent: bool) -> None:
        """Notes whether the service is down: it answered nobody, or the budget is used up."""
        exchange, was_down = self._exchange, self._down
        if failure.of_service and self._until < 0:
            self._until = now + exchange.limits.outage_wait
            was_down = True  # it may have been, until the moment of another's answer
        answered = exchange.retry_budget.answered_at >= self._looked
        self._down = failure.of_service and not (sent and answered)
        self._looked = now
        if was_down and not self._down and now < self._until:
            # It is back, if not quite well: the call begins anew, with a first try, since this
            # failure may have left the service before it was back.
            self._pauses = -1


def _admitted(
    exchange: Exchange[Any], parser: AnswerParser[Any]
) -> Generator[Any, Reply, _Failure | None]:
    """A try, once the quota and the budgets let it through; they learn what became of it."""
    limiter = exchange.limiter
    assert limiter is not None  # noqa: S101  # who calls this has looked
    waits, warned = True, False
    try:
        while waits:
            left = exchange.until - exchange.clock()
            wait: Reply = (
                limiter.acquire(left)
                if limiter.local
                else (yield Acquire(limiter, left))
            )
            if isinstance(wait, errors.SvcError):
                again = isinstance(wait, errors.SvcConnectionError)
                return _Failure(wait, again=again, sent=False)
            waits = isinstance(wait, Wait)
            if isinstance(wait, Wait):
                pause = min(wait.again, left)
                exchange.waited += pause
                if not _is_shown(wait.turn, limit=True) and not warned:
                    warned = _warn_of(exchange, wait.turn, "the quota's limit")
                yield Sleep(pause)
    finally:
        if waits:  # also where it is cancelled
            limiter.leave()
    exchange.head = failure = None
    sent = True
    try:
        failure = yield from _attempt(exchange, parser)
        sent = failure is None or failure.sent
    finally:
        head = exchange.head
        limiter.settle(
            sent=sent,
            status=None if head is None else head.status,
            headers=None if head is None else head.headers,
            usage=parser.usage,
            answered=parser.length,
            retry_after=None if failure is None else failure.error.retry_after,
        )
    return failure


def _attempt(
    exchange: Exchange[Any], parser: AnswerParser[Any]
) -> Generator[Any, Reply, _Failure | None]:
    idle = exchange.limits.timeout
    timeouts = Timeouts(FOREVER if idle is None else idle, exchange.until)
    begun = exchange.clock()
    if begun >= exchange.until:
        return _Failure(late(exchange), again=False, sent=False)
    head = yield Open(exchange.request, timeouts)
    if isinstance(head, Lost):
        again = exchange.limits.resend or not head.sent
        return _Failure(
            unreached(exchange, head),
            again=again,
            of_service=exchange.clock() < exchange.until,
            sent=head.sent,
        )
    assert isinstance(head, Head)  # noqa: S101  # what Open is answered with
    exchange.head = head
    if head.status not in TROUBLE:
        exchange.retry_budget.answered_at = max(
            exchange.retry_budget.answered_at, begun
        )
    if not 200 <= head.status < 300:
        return (yield from _refusal(exchange, head, timeouts))
    parser.begin(head)
    try:
        body = BodyReader(
            head.headers.get("content-encoding", ""), exchange.limits.max_bytes
        )
        lost = yield from _receive(exchange, parser, body, timeouts)
        if lost is None:
            body.finish()
            for piece in parser.finish():
                parser.delivered = True
                yield piece
    except BodyError as error:
        yield CLOSE
        refused = parser.failure(f"The answer's body cannot be read: {error}", None)
        if isinstance(error, TooLargeError):
            refused.is_retryable = False  # it would be too large again
        return _Failure(refused, again=False)
    verdict = _verdict(exchange, parser, lost)
    yield CLOSE
    return verdict


def _receive(
    exchange: Exchange[Any],
    parser: AnswerParser[Any],
    body: BodyReader,
    timeouts: Timeouts,
) -> Generator[Any, Reply, Lost | None]:
    """Yields pieces until the body ends; returns how it was lost, if it was."""
    exchange.received = 0
    content_due = exchange.clock() + _TIMEOUTS_WITHOUT_CONTENT * timeouts.idle
    while parser.fault is None:
        data = yield READ
        if isinstance(data, Lost):
            return None if parser.complete else data
        if not data:
            return None
        assert isinstance(data, bytes)  # noqa: S101  # what READ is answered with
        exchange.received += len(data)
        pieces = parser.feed(body.feed(data))
        now = exchange.clock()
        for piece in pieces:
            parser.delivered = True
            yield piece
        if pieces or parser.whole:
            content_due = exchange.clock() + _TIMEOUTS_WITHOUT_CONTENT * timeouts.idle
        if now > content_due or now > timeouts.until:
            return None if parser.complete else Lost("silence")
        if parser.complete:
            linger = _LINGER_AFTER_END if parser.ended else _LINGER_AFTER_REASON
            timeouts.until = min(timeouts.until, now + linger)
    return None


def _verdict(
    exchange: Exchange[Any], parser: AnswerParser[Any], lost: Lost | None
) -> _Failure | None:
    if lost is not None:
        message = how_lost(exchange, lost)
    elif parser.fault is not None:
        message = f"The answer cannot be used: {parser.fault}{said(exchange, parser)}"
    else:
        return None
    return _Failure(
        parser.failure(message, lost),
        again=lost is not None and not parser.delivered and exchange.limits.resend,
        of_service=lost is not None and exchange.clock() < exchange.until,
    )


def _refusal(
    exchange: Exchange[Any], head: Head, timeouts: Timeouts
) -> Generator[Any, Reply, _Failure | None]:
    """Reads an error answer, as far as it comes, and says what it means."""
    timeouts.until = min(timeouts.until, exchange.clock() + _ERROR_BODY_SECONDS)
    parts: list[bytes] = []
    try:
        body = BodyReader(head.headers.get("content-encoding", ""), _LONGEST_ERROR_BODY)
        while isinstance(data := (yield READ), bytes) and data:
            parts.append(body.feed(data))
    except BodyError:
        pass  # the status tells enough
    error = exchange.read_failure(
        head.status,
        head.headers,
        b"".join(parts),
        now=exchange.wall(),
        secrets=exchange.request.secrets,
        private=exchange.request.private,
        url=exchange.request.url,
        setting=exchange.request.setting,
        sent=exchange.request.body,
    )
    yield CLOSE
    again = head.status in TRANSIENT and (
        exchange.limits.resend or head.status not in _OF_GATEWAYS
    )
    return _Failure(error, again=again, of_service=head.status in TROUBLE)
