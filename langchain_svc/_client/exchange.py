"""The conversation with the service, written once and without I/O.

`converse` is a generator. It yields steps (`Open`, READ, CLOSE, `Sleep`, `Acquire`,
`PutOnRecord`) and is sent the reply to each; anything else it yields is a piece of the answer for
the caller. Two short drivers in `drivers.py` obey it, one blocking and one on an event loop.

Rules:
- A try is repeated after lost connections, timeouts and the statuses that come and go, at most
  `max_retries` times, and never after a piece of the answer was yielded.
- The service's own word on when to come back goes before our backoff. A wait that would pass
  `max_retry_wait` or the deadline is not begun: the error says when to come back.
- The same bytes are sent on every try.
- A retry after a failure of the service takes a token of `RetryBudget`. Without one it is
  left out: its pause counts and nothing is sent, so that the call ends when its retries would have.
- While a service is down, a call goes on for `outage_wait` seconds after its first failure. Its
  last try, at the end of that time, needs no token. When the service is back, the call begins anew.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, TypeVar

from .. import errors
from .._http import FOREVER, Timeouts
from .._wire import (
    OF_SERVICE,
    TRANSIENT,
    TROUBLE,
    BodyDecoder,
    BodyError,
    TooLargeError,
    read_failure,
)
from .steps import (
    ANSWERED,
    CLOSE,
    ON_WAIT,
    READ,
    Acquire,
    AnswerParser,
    Conversation,
    Exchange,
    Head,
    Loss,
    Open,
    PutOnRecord,
    RateLimiter,
    Reply,
    Sleep,
    Step,
    TryEnd,
    TryLog,
    Wait,
    connection_error,
    deadline_error,
    describe_error,
    describe_loss,
    outcome_of_broken_answer,
    outcome_of_loss,
)

logger = logging.getLogger("langchain_svc")
T = TypeVar("T")

_LONG_WAIT = 5.0  # seconds; a longer one is logged
_FIRST_BACKOFF = 0.5
_LONGEST_BACKOFF = 8.0
_MOST_DOUBLINGS = 9
_LONGEST_ERROR_BODY = 65_536
_ERROR_BODY_SECONDS = 5.0
# After the end mark only the end of the body can come, which lets the connection be used again;
# after a finish_reason, the usage and the end mark.
_LINGER_AFTER_END = 0.2
_LINGER_AFTER_REASON = 2.0
# Heartbeats show that the service lives, but no longer than this many timeouts.
_TIMEOUTS_WITHOUT_CONTENT = 3
_NEVER = float("-inf")
_UNREADABLE = "the answer cannot be read"


@dataclass(frozen=True)
class _Failure:
    """How a try failed.

    Attributes:
        error: What the call raises if no other try follows.
        again: Whether another try may do better, and does no harm.
        of_service: Whether it shows the service in trouble.
        sent: Whether the service may have got the request.
        outcome: What a record says of it; "" where the try did not begin.
    """

    error: errors.SvcError
    again: bool
    of_service: bool = False
    sent: bool = True
    outcome: str = ""


def converse(exchange: Exchange[T]) -> Conversation[T]:
    """Tries until an answer has come or no try is left; then raises the last error."""
    failure: _Failure | None = None
    retries = _RetryState(exchange)
    try:
        while True:
            sent = True
            if failure is not None and failure.of_service and not retries.is_last:
                sent = exchange.retry_budget.take_token(exchange.clock())
            if sent:
                if failure is not None:
                    exchange.retries += 1
                parser = exchange.new_parser()
                exchange.parser = parser
                if exchange.limiter is None:
                    failure = yield from _attempt(exchange, parser)
                else:
                    failure = yield from _admitted(exchange, parser, exchange.limiter)
                if exchange.try_log is not None:
                    yield from _record_end(exchange.try_log, failure)
                if failure is None:
                    exchange.retry_budget.record_success()
                    return
            assert failure is not None  # noqa: S101  # without one a try is always sent
            pause = retries.next_pause(failure, sent=sent)
            if pause is None:
                failure.error.retries = exchange.retries
                failure.error.waited = exchange.waited
                raise failure.error
            exchange.waited += pause
            _announce_retry(exchange, failure.error, pause)
            yield Sleep(pause)
    finally:
        # The traceback of a raised error holds this frame: together they would be a cycle, which
        # keeps the caller's model and its connections until the next collection.
        failure = None


def _record_end(log: TryLog, failure: _Failure | None) -> Generator[Step, Reply, None]:
    """Tells whoever keeps tries on record how one ended that had begun."""
    if failure is None:
        yield PutOnRecord(log, TryEnd(ANSWERED))
    elif failure.outcome:
        yield PutOnRecord(log, TryEnd(failure.outcome, failure.sent))


def _announce_retry(
    exchange: Exchange[T], error: errors.SvcError, pause: float
) -> None:
    name = type(error).__name__
    logger.info("%s: try %d follows in %.2f s", name, exchange.retries + 2, pause)
    if not _is_shown(pause, is_limit=isinstance(error, errors.SvcRateLimitError)):
        reason = "backoff"
        if error.retry_after is not None:
            reason = "the service said when to come back"
        _warn_of_wait(exchange, pause, f"{name}; {reason}")


def _is_shown(seconds: float, *, is_limit: bool) -> bool:
    """Whether whoever listens to waits (`ON_WAIT`) shows this one to the user."""
    listener = ON_WAIT.get()
    return listener is not None and listener(seconds, is_limit)


def _warn_of_wait(exchange: Exchange[T], seconds: float, reason: str) -> bool:
    """Log why a long wait is and when it ends: a program that stands still looks hung."""
    if seconds <= _LONG_WAIT:
        return False
    ends = time.strftime("%H:%M:%S", time.localtime(exchange.wall() + seconds))
    logger.warning("waiting %.0f s, until %s: %s", seconds, ends, reason)
    return True


class _RetryState:
    """How often a call was retried, and when the next try is due.

    Attributes:
        is_last: Whether the next try ends the wait for an outage; it is sent in any case.
    """

    def __init__(self, exchange: Exchange[Any]) -> None:
        self._exchange = exchange
        self._retries = 0  # that count against max_retries, sent or left out
        self._is_down = False
        self._checked_at = exchange.clock()
        self._outage_end = _NEVER  # when an outage has been waited for long enough
        self.is_last = False

    def next_pause(self, failure: _Failure, *, sent: bool) -> float | None:
        """Seconds until the next try, or None to give up."""
        exchange = self._exchange
        retry_after = failure.error.retry_after
        if retry_after is not None and retry_after > exchange.limits.max_retry_wait:
            failure.error.is_retryable = False
            return None
        now = exchange.clock()
        begins_anew = self._check_service(failure, now, sent=sent)
        pause = self._pause(retry_after, begins_anew=begins_anew)
        # The try that would come after the end of the wait for an outage comes at its end. The
        # service's word on when to come back is kept.
        self.is_last = False
        if self._is_down and retry_after is None:
            self.is_last = now < self._outage_end < now + pause
        if self.is_last:
            pause = self._outage_end - now
        if not failure.again or now + pause >= exchange.until:
            return None
        waits_for_outage = self._is_down and now + pause < self._outage_end
        if begins_anew:
            self._retries = 0
        elif (
            self._retries < exchange.limits.max_retries
            or waits_for_outage
            or self.is_last
        ):
            self._retries += 1
        else:
            return None
        return pause

    def _check_service(self, failure: _Failure, now: float, *, sent: bool) -> bool:
        """Note whether the service is down; says whether it is back, so that the call begins anew.

        It is down while it fails and answers nobody, or while the retry budget is used up.
        """
        was_down = self._is_down
        if failure.of_service and self._outage_end == _NEVER:
            self._outage_end = now + self._exchange.limits.outage_wait
            # It may have been down until this moment, in which it answered another call.
            was_down = True
        has_answered = self._exchange.retry_budget.answered_at >= self._checked_at
        self._is_down = failure.of_service and not (sent and has_answered)
        self._checked_at = now
        # Back is not quite well: this failure may have left the service before it was back. The
        # call begins anew, as if it had not been sent yet.
        return was_down and not self._is_down and now < self._outage_end

    def _pause(self, retry_after: float | None, *, begins_anew: bool) -> float:
        jitter = self._exchange.jitter()
        if retry_after is not None:
            # A tenth keeps the callers that were told the same moment from meeting again.
            return retry_after * (1 + 0.1 * jitter)
        if begins_anew:  # the first try of a call, which comes before the first backoff
            return _FIRST_BACKOFF / 2 * jitter
        doublings = min(self._retries, _MOST_DOUBLINGS)
        return min(_LONGEST_BACKOFF, _FIRST_BACKOFF * 2.0**doublings) * jitter


def _admitted(
    exchange: Exchange[T], parser: AnswerParser[T], limiter: RateLimiter
) -> Generator[Step | T, Reply, _Failure | None]:
    """A try, once the quota and the budgets let it through; they learn how it ended."""
    refusal = yield from _wait_for_limits(exchange, limiter)
    if refusal is not None:
        again = isinstance(refusal, errors.SvcConnectionError)
        return _Failure(refusal, again=again, sent=False)
    failure: _Failure | None = None
    sent = True
    try:
        failure = yield from _attempt(exchange, parser)
        sent = failure is None or failure.sent
    finally:
        status = None
        headers = None
        if exchange.head is not None:
            status = exchange.head.status
            headers = exchange.head.headers
        retry_after = None
        if failure is not None:
            retry_after = failure.error.retry_after
        limiter.settle(
            sent=sent,
            status=status,
            headers=headers,
            usage=parser.usage,
            answered=parser.length,
            retry_after=retry_after,
        )
    return failure


def _wait_for_limits(
    exchange: Exchange[T], limiter: RateLimiter
) -> Generator[Step | T, Reply, errors.SvcError | None]:
    """Waits until the call may be sent; returns why it may not be sent at all."""
    admitted = False
    warned = False
    try:
        while True:
            remaining = exchange.until - exchange.clock()
            reply: Reply
            if limiter.local:
                reply = limiter.acquire(remaining)
            else:
                reply = yield Acquire(limiter, remaining)
            if isinstance(reply, errors.SvcError):
                return reply
            if not isinstance(reply, Wait):
                admitted = True
                return None
            pause = min(reply.again, remaining)
            exchange.waited += pause
            is_shown = _is_shown(reply.turn, is_limit=True)
            if not is_shown and not warned:
                warned = _warn_of_wait(exchange, reply.turn, "the quota's limit")
            yield Sleep(pause)
    finally:
        if not admitted:  # also where the wait is cancelled
            limiter.leave()


def _attempt(
    exchange: Exchange[T], parser: AnswerParser[T]
) -> Generator[Step | T, Reply, _Failure | None]:
    """One try: the request, the head of its answer, and the answer."""
    idle = FOREVER
    if exchange.limits.timeout is not None:
        idle = exchange.limits.timeout
    timeouts = Timeouts(idle, exchange.until)
    exchange.head = None
    opened_at = exchange.clock()
    if opened_at >= exchange.until:
        return _Failure(deadline_error(exchange), again=False, sent=False)
    if exchange.try_log is not None:  # the request is on record before it is sent
        refusal = yield PutOnRecord(exchange.try_log)
        if isinstance(refusal, errors.SvcError):
            return _Failure(refusal, again=False, sent=False)
    head = yield Open(exchange.request, timeouts)
    if isinstance(head, Loss):
        return _lost(exchange, head)
    assert isinstance(head, Head)  # noqa: S101  # what Open is answered with
    exchange.head = head
    if head.status not in TROUBLE:
        budget = exchange.retry_budget
        budget.answered_at = max(budget.answered_at, opened_at)
    if not 200 <= head.status < 300:
        return (yield from _refusal(exchange, head, timeouts))
    parser.read_head(head)
    try:
        body = BodyDecoder(
            head.headers.get("content-encoding", ""), exchange.limits.max_bytes
        )
        loss = yield from _receive(exchange, parser, body, timeouts)
        if loss is None:
            body.close()
            piece = parser.close()
            if piece is not None:
                parser.delivered = True
                yield piece
    except BodyError as error:
        yield CLOSE
        unusable = parser.failure(f"The answer's body cannot be read: {error}", None)
        if isinstance(error, TooLargeError):
            unusable.is_retryable = False  # it would be too large again
        return _Failure(unusable, again=False, outcome=_UNREADABLE)
    failure = _answer_failure(exchange, parser, loss)
    yield CLOSE
    return failure


def _lost(exchange: Exchange[Any], loss: Loss) -> _Failure:
    """A try to which no answer came."""
    return _Failure(
        connection_error(exchange, loss),
        again=exchange.limits.resend or not loss.sent,
        of_service=exchange.clock() < exchange.until,
        sent=loss.sent,
        outcome=outcome_of_loss(loss),
    )


def _receive(
    exchange: Exchange[T],
    parser: AnswerParser[T],
    body: BodyDecoder,
    timeouts: Timeouts,
) -> Generator[Step | T, Reply, Loss | None]:
    """Yields pieces until the body ends; returns how it was lost, if it was."""
    content_due = exchange.clock() + _TIMEOUTS_WITHOUT_CONTENT * timeouts.idle
    while parser.fault is None:
        data = yield READ
        if isinstance(data, Loss):
            return _unless_complete(parser, data)
        if not data:
            return None
        assert isinstance(data, bytes)  # noqa: S101  # what READ is answered with
        piece = parser.parse_chunk(body.decode(data))
        now = exchange.clock()
        if piece is not None:
            parser.delivered = True
            yield piece
        if piece is not None or parser.whole:
            # The wait for content begins when the caller comes back for more.
            content_due = exchange.clock() + _TIMEOUTS_WITHOUT_CONTENT * timeouts.idle
        if now > content_due or now > timeouts.until:
            return _unless_complete(parser, Loss("silence"))
        if parser.complete:
            linger = _LINGER_AFTER_REASON
            if parser.ended:
                linger = _LINGER_AFTER_END
            timeouts.until = min(timeouts.until, now + linger)
    return None


def _unless_complete(parser: AnswerParser[T], loss: Loss) -> Loss | None:
    """What a loss means for the answer: nothing, once all of it has come."""
    if parser.complete:
        return None
    return loss


def _answer_failure(
    exchange: Exchange[T], parser: AnswerParser[T], loss: Loss | None
) -> _Failure | None:
    """Why the answer that came is none; None where it is one."""
    if loss is not None:
        error = parser.failure(describe_loss(exchange, loss), loss)
        return _Failure(
            error,
            again=exchange.limits.resend and not parser.delivered,
            of_service=exchange.clock() < exchange.until,
            outcome=outcome_of_broken_answer(loss),
        )
    if parser.fault is not None:
        description = describe_error(exchange, parser)
        message = f"The answer cannot be used: {parser.fault}{description}"
        return _Failure(parser.failure(message, None), again=False, outcome=_UNREADABLE)
    return None


def _refusal(
    exchange: Exchange[T], head: Head, timeouts: Timeouts
) -> Generator[Step | T, Reply, _Failure | None]:
    """Reads an error answer, as far as it comes, and says what it means."""
    timeouts.until = min(timeouts.until, exchange.clock() + _ERROR_BODY_SECONDS)
    parts: list[bytes] = []
    try:
        body = BodyDecoder(
            head.headers.get("content-encoding", ""), _LONGEST_ERROR_BODY
        )
        while isinstance(data := (yield READ), bytes) and data:
            parts.append(body.decode(data))
    except BodyError:
        pass  # the status tells enough
    request = exchange.request
    error = read_failure(
        head.status,
        head.headers,
        b"".join(parts),
        now=exchange.wall(),
        secrets=request.secrets,
        sent=request.body,
        private=request.private,
        url=request.url,
        setting=request.setting,
    )
    yield CLOSE
    is_safe = exchange.limits.resend or head.status in OF_SERVICE
    return _Failure(
        error,
        again=head.status in TRANSIENT and is_safe,
        of_service=head.status in TROUBLE,
        outcome=f"status {head.status}",
    )
