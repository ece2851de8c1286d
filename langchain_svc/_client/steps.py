"""What a call of the service is made of, as values.

The conversation of `exchange.py` yields the steps, `drivers.py` performs them, and the classes of
the package say what to send and how to read it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from pydantic import SecretStr

from .. import errors
from .._http import FOREVER, Timeouts
from .._text import Pseudonymizer, restored, restored_text
from .._wire import (
    Event,
    Price,
    StreamDecoder,
    Text,
    UnreadableError,
    Usage,
    is_event_stream,
    read_error_value,
    safe_text,
    v1,
)

if TYPE_CHECKING:
    import httpx
    import httpx2

# -- retry budget ----------------------------------------------------------------------------------
# The retry budget: what the calls of one object owe a failing service together.
#
# A retry takes a token of a store, a good answer puts half a one back, and time a few: beyond a
# first store, retries stay below half of the good answers, whatever `max_retries` says. A first
# try takes none, so that nobody's failures keep another's call from being sent; nor does a
# retry after a 429, where the wait that the service asked for is its brake. When the service
# last answered tells an outage from a prompt that always fails.
#
# There is no lock: a count that two threads change at once may lose a token, which harms
# nobody.

STORE = 100.0
REFILL = 0.5
TOKENS_A_SECOND = 10.0


class RetryBudget:
    """The tokens of the calls of one client.

    Attributes:
        answered_at: When the newest request was sent that the service has answered.
    """

    def __init__(self) -> None:
        self._tokens = STORE
        self._refilled_at = 0.0
        self.answered_at: float = float("-inf")

    def take_token(self, now: float) -> bool:
        """Takes a token for a retry; False where there is none."""
        earned = TOKENS_A_SECOND * max(0.0, now - self._refilled_at)
        self._tokens = min(STORE, self._tokens + earned)
        self._refilled_at = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def record_success(self) -> None:
        """Refills the store a little: a whole good answer came."""
        self._tokens = min(STORE, self._tokens + REFILL)


# -- steps -----------------------------------------------------------------------------------------

T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """What is sent. `secrets` are what no error may repeat."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes | None = field(default=None, repr=False)
    private: bool = False
    """Whether an error repeats no word of the service's, which may quote a patient's record."""

    secrets: tuple[str, ...] = field(default=(), repr=False)
    setting: str = "the base URL"
    """What errors call the setting that `url` comes from."""


@dataclass(frozen=True)
class Route:
    """By which connections a request goes: those of a pool, or a client of the user's.

    Attributes:
        proxy: The URL of a proxy; None takes the environment's.
        api_key: Whose connections they are: no two keys share a pool.
        max_connections: The most requests at one time.
        client: A blocking client of the user's.
        async_client: An asynchronous one.
    """

    proxy: SecretStr | str | None = field(default=None, repr=False)
    api_key: SecretStr | str | None = field(default=None, repr=False)
    max_connections: int = 1024
    client: httpx.Client | httpx2.Client | None = None
    async_client: httpx.AsyncClient | httpx2.AsyncClient | None = None


@dataclass(frozen=True)
class Limits:
    """How long and how often to try, in seconds, tries and bytes.

    `begun` is the moment from which the deadline counts, where several calls share one; each
    counts from its own beginning where it is None. Without `resend`, nothing is sent again that the
    service may have got.
    """

    timeout: float | None = 120.0
    deadline: float | None = 600.0
    max_retries: int = 2
    max_retry_wait: float = 60.0
    outage_wait: float = 0.0
    max_bytes: int = 64 * 1024 * 1024
    begun: float | None = None
    resend: bool = True

    def until(self, now: float) -> float:
        """When the deadline passes, for a call that begins now."""
        if self.deadline is None:
            return FOREVER
        if self.begun is not None:
            return self.begun + self.deadline
        return now + self.deadline


@dataclass(frozen=True)
class Head:
    """The beginning of an answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class Loss:
    """What a driver answers to a step that failed: `kind` is connect, timeout, silence or read.

    `sent` says whether the service may have got the request.
    """

    kind: str
    detail: str = ""
    sent: bool = True


# Is told of the pauses of the calls in a context: the seconds, and whether a limit is the reason.
# It answers whether it shows them; a longer one is logged where nobody does.
ON_WAIT: ContextVar[Callable[[float, bool], bool] | None] = ContextVar(
    "langchain_svc_on_wait", default=None
)


class CallSize(NamedTuple):
    """How large a call is.

    Attributes:
        body: Bytes of its request.
        model: The model that is asked; None where the service chooses.
        max_tokens: The most tokens of its answer, if that is limited.
        metered: Whether it takes tokens: a chat does, an image or a translation reports none.
        free: Whether it costs nothing: a listing of models.
        prices: What tokens cost by model id, as the service listed it for this address and key.
    """

    body: int = 0
    model: str | None = None
    max_tokens: int | None = None
    metered: bool = False
    free: bool = False
    prices: Mapping[str, Price] = MappingProxyType({})


class Wait(NamedTuple):
    """A call may not be sent yet. All are seconds."""

    turn: float  # until it can be this call's turn
    again: float  # until it is to ask again
    period: float  # of the limit that it waits for


class RateLimiter(Protocol):
    """What one call asks before each of its tries, and tells how the try ended.

    `acquire` gives None where the call may be sent, else how long to wait, or why it may not be
    sent; `remaining` are the seconds that the call has. `settle` waits for nothing. `leave` ends a
    wait.
    """

    @property
    def local(self) -> bool: ...  # asking needs no I/O

    def acquire(self, remaining: float, /) -> Wait | errors.SvcError | None: ...

    async def aacquire(self, remaining: float, /) -> Wait | errors.SvcError | None: ...

    def settle(
        self,
        *,
        sent: bool,
        status: int | None,
        headers: Mapping[str, str] | None,
        usage: Mapping[str, int] | None,
        answered: int | None,
        retry_after: float | None,
    ) -> None: ...

    def leave(self) -> None: ...


class TextEstimates(Protocol):
    """What a quota learned of the service's tokens."""

    def text(self, size: int) -> int | None:
        """The tokens of a text of so many bytes; None before any report."""


class UseLimit(Protocol):
    """What `quota=` and `budget=` take, and what a block may set for the calls inside it.

    The first of all that a call runs under makes the limiter of the call for all of them.
    """

    setting: str  # the parameter that takes it

    @property
    def estimates(self) -> TextEstimates: ...

    def limiter(
        self, interface: str, key: str, size: CallSize, limits: tuple[UseLimit, ...]
    ) -> RateLimiter: ...


BLOCK_LIMITS: ContextVar[tuple[UseLimit, ...]] = ContextVar(
    "langchain_svc_limits", default=()
)


ANSWERED = "answered"  # the outcome of a try that got an answer which can be read


class TryEnd(NamedTuple):
    """How a try ended.

    Attributes:
        outcome: In a few words: "answered", "status 500", "timed out".
        left: Whether the service may have got the request.
    """

    outcome: str
    left: bool = True


class TryLog(Protocol):
    """What keeps on record that a request is sent.

    It is told before the bytes of each try go to the connection (`end` is None), and when the try
    has ended. Before a try it may answer why that is not to be sent. A try that is interrupted has
    no end.
    """

    def record(self, end: TryEnd | None) -> errors.SvcError | None: ...

    async def arecord(self, end: TryEnd | None) -> errors.SvcError | None: ...


# -- the steps of a conversation, and how a driver answers them ----------------------------------


class Step:
    """What a driver is to do. All else that a conversation yields is a piece of the answer."""


@dataclass(frozen=True)
class Open(Step):
    """Send the request and wait for the head of its answer."""

    request: Request
    timeouts: Timeouts


class Read(Step):
    """Read the next bytes of the body; none at its end."""


class Close(Step):
    """Give the connection back, or close it if the body was not read to its end."""


@dataclass(frozen=True)
class Sleep(Step):
    """Wait before the next try."""

    seconds: float


@dataclass(frozen=True)
class Acquire(Step):
    """Ask whether the call may be sent: seconds to wait, 0 for none, or why it may not."""

    limiter: RateLimiter
    remaining: float


@dataclass(frozen=True)
class PutOnRecord(Step):
    """Put on record that a try begins, or how it ended; the reply may be why it is not to begin."""

    log: TryLog
    end: TryEnd | None = None


READ = Read()
CLOSE = Close()
Reply = Head | Loss | bytes | Wait | errors.SvcError | None
Conversation = Generator[Step | T, Reply, None]


# -- reading an answer ----------------------------------------------------------------------------


class AnswerParser(Generic[T]):
    """Turns the body of one good answer into pieces for the caller.

    `read_head(head)` comes first, then `parse_chunk(data)` for what each read of the body brought,
    and `close()` at its end.

    Attributes:
        whole: Whether there is one piece, at the end, so that every byte counts as content.
        fault: Why the answer cannot be used.
        error: An error object that stood in the answer.
        delivered: Whether a piece has been yielded.
        complete: Whether the whole answer is here, whatever may follow.
        ended: Whether nothing can follow.
        usage: The tokens that the service reported.
        length: Characters of text that came, where that is known.
        pseudonyms: What restores the texts of the answer, where its request was hidden.
    """

    whole = False
    fault: str | None = None
    error: object = None
    delivered = False
    complete = False
    ended = False
    usage: Mapping[str, int] | None = None
    length: int | None = None
    pseudonyms: Pseudonymizer | None = None

    def read_head(self, head: Head) -> None:
        raise NotImplementedError

    def parse_chunk(self, data: bytes) -> T | None:
        """What the data adds to the answer; None where nothing can be handed on yet."""
        raise NotImplementedError

    def close(self) -> T | None:
        """The last piece, if there is one."""
        raise NotImplementedError

    def failure(self, message: str, loss: Loss | None) -> errors.SvcError:
        """The error of an answer that cannot be used, or that was lost on its way."""
        raise NotImplementedError


@dataclass
class Exchange(Generic[T]):
    """One request with its retries: what to send, how to read the answer, and how it went."""

    request: Request
    limits: Limits
    new_parser: Callable[[], AnswerParser[T]]
    retry_budget: RetryBudget = field(default_factory=RetryBudget)
    route: Route = field(default=Route(), repr=False)
    limiter: RateLimiter | None = None
    try_log: TryLog | None = None
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    jitter: Callable[[], float] = random.random
    parser: AnswerParser[T] | None = None
    head: Head | None = None
    retries: int = 0
    waited: float = 0.0

    def __post_init__(self) -> None:
        self.until: float = self.limits.until(self.clock())


@lru_cache(maxsize=64)  # an object asks the same few again and again
def origin(url: str) -> str:
    """The scheme, host and port of a URL."""
    return "/".join(url.split("/", 3)[:3])


# -- wording ---------------------------------------------------------------------------------------
# What the failures of a call are called, and how their errors describe them.


def describe_error(exchange: Exchange[Any], parser: AnswerParser[Any]) -> str:
    """What an error object inside the answer says, made safe; "" where there is none."""
    if parser.error is None:
        return ""
    request = exchange.request
    text, _, code = read_error_value(
        parser.error,
        secrets=request.secrets,
        sent=request.body,
        private=request.private,
    )
    description = ""
    if text:
        description += f": {text}"
    if code:
        description += f" (code {code})"
    return description


def deadline_error(exchange: Exchange[Any]) -> errors.SvcTimeoutError:
    """A call whose deadline has passed."""
    return errors.SvcTimeoutError(
        f"No answer within the deadline of {exchange.limits.deadline:g} s; a larger one waits "
        "longer"
    )


def connection_error(exchange: Exchange[Any], loss: Loss) -> errors.SvcError:
    """A try that was lost before an answer came."""
    if loss.kind == "timeout":
        if exchange.clock() >= exchange.until:
            return deadline_error(exchange)
        return errors.SvcTimeoutError(
            f"No answer within {_timeout(exchange)}; raise timeout to wait longer"
        )
    detail = safe_text(loss.detail, secrets=exchange.request.secrets)
    place = origin(exchange.request.url)
    if loss.kind == "connect":
        text = f"The service at {place} could not be reached"
    else:
        text = f"The connection to {place} was lost before an answer came"
    if detail:
        text += f": {detail}"
    if loss.kind == "connect":
        text += _advice(detail, exchange.request.setting)
    return errors.SvcConnectionError(text)


def _advice(detail: str, setting: str) -> str:
    if "certificate verify failed" in detail:
        return (
            "; check the host in the base URL and the clock of this machine, and if you trust the "
            "server's authority, name that one's file in SSL_CERT_FILE"
        )
    if detail.startswith("the proxy"):
        return "; check the proxy"
    return f"; check {setting}, and that the server is running"


def describe_loss(exchange: Exchange[Any], loss: Loss) -> str:
    """How an answer was lost on its way."""
    if loss.kind not in {"timeout", "silence"}:
        return "The connection was lost inside the answer"
    if exchange.clock() >= exchange.until:
        return f"The answer was not complete within the deadline of {exchange.limits.deadline:g} s"
    if loss.kind == "silence":
        return "The answer stalled: the service kept the connection alive but sent no content"
    return f"The answer stalled: nothing came for {_timeout(exchange)}"


def outcome_of_loss(loss: Loss) -> str:
    """A try that was lost before an answer came, in the words of a record."""
    if loss.kind == "timeout":
        return "timed out" if loss.sent else "not sent: timed out before that"
    if loss.kind == "connect":
        return "not sent: the service could not be reached"
    return "connection lost"


def outcome_of_broken_answer(loss: Loss) -> str:
    """A try whose answer was lost on its way, in the same words."""
    if loss.kind in {"timeout", "silence"}:
        return "timed out within the answer"
    return "connection lost within the answer"


def _timeout(exchange: Exchange[Any]) -> str:
    if exchange.limits.timeout is None:
        return "the time allowed"
    return f"{exchange.limits.timeout:g} s"


# -- parsers ---------------------------------------------------------------------------------------
# What becomes of a good answer's body: events as they arrive, or one value at its end.

_text_of = attrgetter("text")
# The reasons for which an answer may rightly be without any text.
_EMPTY_REASONS = frozenset({"content_filter"})


class EventParser(AnswerParser[list[Event]]):
    """Reads a streamed answer: a piece is the events that one network read completed.

    What the service says beside the text waits for the next text or for the end of the stream:
    until a text is handed on, the call may be tried again.

    Args:
        merge: Make one of the texts that came in one network read. It never waits for more; it
            only yields together what is there together.
        strict_end: See `StreamDecoder`.
    """

    _decoder: StreamDecoder  # once the head says what comes

    def __init__(self, *, merge: bool = True, strict_end: bool = True) -> None:
        self._merge = merge
        self._strict_end = strict_end
        self._waiting: list[Event] = []
        self._texts: list[str] = []
        self.length: int = 0

    def read_head(self, head: Head) -> None:
        label = head.headers.get("content-type", "")
        self._decoder = StreamDecoder(label, strict_end=self._strict_end)

    def parse_chunk(self, data: bytes) -> list[Event] | None:
        return self._piece(self._decoder.decode(data))

    def close(self) -> list[Event] | None:
        piece = self._piece(self._decoder.close()) or self._waiting
        reason = self._decoder.state.finish_reason
        if self.fault is None and not self._texts and reason not in _EMPTY_REASONS:
            self.fault = "the stream ended without any text"
        return piece or None

    def _piece(self, events: list[Event]) -> list[Event] | None:
        piece = self._waiting
        texts: list[Text] = []
        for event in events:
            if isinstance(event, Text):
                texts.append(event)
                if self._merge and len(texts) > 1:
                    continue  # the first of them gets its text, below
            elif isinstance(event, Usage):
                self.usage = event.counts
            piece.append(event)
        state = self._decoder.state
        self.ended = state.ended
        self.complete = state.ended or state.finish_reason is not None
        self.fault = state.fault
        self.error = state.error
        if not texts:
            return None
        if self._merge and len(texts) > 1:
            texts[0].text = "".join(map(_text_of, texts))
            texts = texts[:1]
        for text in map(_text_of, texts):
            self._texts.append(text)
            self.length += len(text)
        self._waiting = []
        return piece

    def failure(self, message: str, loss: Loss | None) -> errors.SvcError:
        del loss
        partial = restored_text("".join(self._texts), self.pseudonyms, cut=True)
        return errors.SvcStreamError(message, partial=partial)


class WholeParser(AnswerParser[T]):
    """Reads a whole answer: its one piece is what `parse` makes of the body, and is given out."""

    whole = True

    def __init__(self, parse: Callable[[bytes], T]) -> None:
        self._parse = parse
        self._parts: list[bytes] = []
        self._status = 0

    def read_head(self, head: Head) -> None:
        self._status = head.status

    def parse_chunk(self, data: bytes) -> None:
        self._parts.append(data)

    def close(self) -> T | None:
        return restored(self._answer(), self.pseudonyms)

    def _answer(self) -> T | None:
        """The answer as the service wrote it; None where it cannot be read."""
        try:
            return self._parse(b"".join(self._parts))
        except UnreadableError as error:
            self.fault = str(error)
            self.error = error.error
            return None

    def failure(self, message: str, loss: Loss | None) -> errors.SvcError:
        if loss is None:
            return errors.SvcResponseError(message, status_code=self._status)
        if loss.kind in {"timeout", "silence"}:
            return errors.SvcTimeoutError(message)
        return errors.SvcConnectionError(message)


class CompletionParser(WholeParser[list[Event]]):
    """Reads a whole answer of a chat into the events that a stream of it would have brought.

    Their text is the service's, with marks: the turn gives it out. Some gateways stream every
    answer, so that a stream is read, too, where none was asked for.
    """

    def __init__(self, *, strict_end: bool = True) -> None:
        super().__init__(self._read)
        self._strict_end = strict_end

    def read_head(self, head: Head) -> None:
        super().read_head(head)
        self._head = head

    def _read(self, body: bytes) -> list[Event]:
        try:
            return v1.read_completion(body)
        except UnreadableError:
            if not is_event_stream(body, self._head.headers.get("content-type", "")):
                raise
        parser = EventParser(strict_end=self._strict_end)
        parser.read_head(self._head)
        events = [*(parser.parse_chunk(body) or ()), *(parser.close() or ())]
        if parser.fault is not None:
            raise UnreadableError(parser.fault, parser.error)
        return events

    def close(self) -> list[Event] | None:
        events = self._answer()
        for event in events or ():
            if isinstance(event, Usage):
                self.usage = event.counts
        return events
