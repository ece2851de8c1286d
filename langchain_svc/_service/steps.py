"""What a call of the service is made of, as values.

The conversation of `exchange.py` yields the steps, `client.py` performs them, and the classes of
the package say what to send and how to read it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Generic, NamedTuple, Protocol, TypeVar

from .. import errors
from .._http import FOREVER, Timeouts
from .._text import Pseudonymizer
from .._wire import Price
from .retry_budget import RetryBudget

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
class Record(Step):
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
