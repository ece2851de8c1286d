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
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from .. import errors
from .._http import FOREVER, Timeouts
from .._wire import Price, read_failure
from .retry_budget import RetryBudget

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
        return (now if self.begun is None else self.begun) + self.deadline


@dataclass(frozen=True)
class Head:
    """The beginning of an answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class Lost:
    """What was to be done could not be: `kind` is connect, timeout, silence or read.

    `sent` says whether the service may have got the request.
    """

    kind: str
    detail: str = ""
    sent: bool = True


@dataclass(frozen=True)
class Open:
    """Send the request and wait for the head of its answer."""

    request: Request
    timeouts: Timeouts


# Is told of the pauses of the calls in a context: the seconds, and whether a limit is the reason.
# It answers whether it shows them; a longer one is logged where nobody does.
ON_WAIT: ContextVar[Callable[[float, bool], bool] | None] = ContextVar(
    "langchain_svc_on_wait", default=None
)


@dataclass(frozen=True)
class Sleep:
    """Wait before the next try."""

    seconds: float


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
    """What one call asks before each of its tries, and tells what became of it.

    `acquire` gives None where the call may be sent, else how long to wait, or why it may not be
    sent; `left` are the seconds that the call has. `settle` waits for nothing. `leave` ends a wait.
    """

    @property
    def local(self) -> bool: ...  # asking needs no I/O

    def acquire(self, left: float) -> Wait | errors.SvcError | None: ...

    async def aacquire(self, left: float) -> Wait | errors.SvcError | None: ...

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

    def text(
        self, size: int
    ) -> int | None: ...  # of so many bytes; None before any report


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


@dataclass(frozen=True)
class Acquire:
    """Ask whether the call may be sent: seconds to wait, 0 for none, or why it may not."""

    limiter: RateLimiter
    left: float


class Read:
    """Read the next bytes of the body; none at its end."""


class Close:
    """Give the connection back, or close it if the body was not read to its end."""


READ, CLOSE = Read(), Close()
Reply = Head | Lost | bytes | Wait | errors.SvcError | None
Conversation = Generator[Any, Reply, None]


class AnswerParser(Generic[T]):
    """Turns the body of one good answer into pieces for the caller."""

    whole = (
        False  # there is one piece, at the end, so that every byte counts as content
    )

    def __init__(self) -> None:
        self.fault: str | None = None  # why the answer cannot be taken
        self.error: Any = None  # an error object that stood in the answer
        self.delivered = False  # a piece has been yielded
        self.complete = False  # the whole answer is here, whatever may follow
        self.ended = False  # nothing can follow
        self.usage: Mapping[str, int] | None = (
            None  # the tokens that the service reported
        )
        self.length: int | None = (
            None  # characters of text that came, where that is known
        )

    def begin(self, head: Head) -> None:
        raise NotImplementedError

    def feed(self, data: bytes) -> list[T]:
        raise NotImplementedError

    def finish(self) -> list[T]:
        raise NotImplementedError

    def failure(self, message: str, lost: Lost | None) -> errors.SvcError:
        raise NotImplementedError


@dataclass
class Exchange(Generic[T]):
    """One request with its retries: what to send, how to read the answer, what became of it."""

    request: Request
    limits: Limits
    new_parser: Callable[[], AnswerParser[T]]
    retry_budget: RetryBudget = field(default_factory=RetryBudget)
    limiter: RateLimiter | None = None
    read_failure: Callable[..., errors.SvcAPIError] = read_failure
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    jitter: Callable[[], float] = random.random
    parser: AnswerParser[T] | None = None
    head: Head | None = None
    received: int = 0  # bytes of the last answer's body
    retries: int = 0
    waited: float = 0.0

    def __post_init__(self) -> None:
        self.until = self.limits.until(self.clock())


def origin(url: str) -> str:
    """The scheme, host and port of a URL."""
    return "/".join(url.split("/", 3)[:3])
