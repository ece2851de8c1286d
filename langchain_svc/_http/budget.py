"""What calls of one key owe a failing service together: a retry budget and a circuit breaker.

One call alone cannot know that a hundred others fail beside it. Those that share a key and an
origin therefore share a `Circuit`, which is asked before every try and told what became of it:

- The budget. A retry takes a token, a success puts half a one back, and time a few. So, beyond a
  first store, retries stay below half of the successes (1.5 requests for each), whatever
  `max_retries` says. A try that follows a 429 takes none: the wait it was told is its brake.
- The circuit. After `FAILURES` failures in a rush, without a single answer between them, it opens:
  nothing is sent until a pause is over. Then one call goes ahead as a probe while the others wait.
  If it fails, the next pause is twice as long; an answer that shows the service alive closes the
  circuit.

Failures are lost connections, timeouts and the statuses 408, 500, 502, 503 and 504. Every other
status (400, 401, 429, ...) comes from a service that lives. A caller's own deadline and a try that
was cancelled say nothing.

Whoever is held is told for how long and decides what to do: there is no clock, no thread and no
sleep in here. What is imperfect: a waiting caller asks again about once a second instead of being
woken, which keeps threads and event loops apart, and spreads those who waited when it closes.
"""

from __future__ import annotations

import os
import random
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from typing_extensions import Self

FAILURES = 20
# Seconds for as many: one caller, with the pauses between its tries, hammers nobody and is slower.
RUSH = 3.0
# The longest is short beside the minute that calls wait by default: the last probes fall into it.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 10.0
STORE = 100.0
REFILL = 0.5
TOKENS_A_SECOND = 10.0
_ASK_AGAIN = 1.0


@dataclass(frozen=True)
class Hold:
    """Not now: ask again after so many seconds. `failures` of an open circuit, else 0."""

    seconds: float
    failures: int = 0


class Permit(Protocol):
    """One try that was let through, and what is told about it."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...

    def answered(self) -> None:
        """The head of an answer shows that the service lives."""

    def succeeded(self) -> None:
        """A whole good answer came."""

    def failed(self, now: float) -> bool:
        """The service failed; True where this opens the circuit."""


class Policy(Protocol):
    """Lets tries through, or not yet."""

    def ask(self, now: float, *, retry: bool) -> Permit | Hold: ...


class Circuit:
    """The state that calls of one key and origin share. Safe in threads, loops and forks.

    Args:
        jitter: Draws from 0 to 1, so that many processes do not come back at one moment.
    """

    def __init__(self, jitter: Callable[[], float] = random.random) -> None:
        self._lock = threading.Lock()
        self._jitter = jitter
        self._tokens = STORE
        self._counted = 0.0  # when time last gave tokens
        self._failures = 0  # without an answer between them
        self._times: deque[float] = deque(maxlen=FAILURES)  # when the last of these were
        self._pause = 0.0  # seconds; 0 while closed
        self._until = 0.0  # when the pause is over
        self._probe: _Try | None = None

    def __repr__(self) -> str:
        state = f"open for {self._pause:g} s" if self._pause else "closed"
        return f"<Circuit {state}, {self._failures} failures, {self._tokens:.1f} retries left>"

    def ask(self, now: float, *, retry: bool) -> Permit | Hold:
        """A permit to try now, or how long to wait before asking again."""
        with self._lock:
            this = _Try(self)
            if self._pause:
                if now < self._until:
                    return Hold(self._until - now, self._failures)
                if self._probe is not None:
                    return self._later()
                self._probe = this
            elif retry and not self._take(now):
                return self._later()
            return this

    def _later(self) -> Hold:
        return Hold(_ASK_AGAIN * (0.5 + self._jitter()), self._failures if self._pause else 0)

    def _take(self, now: float) -> bool:
        """Whether there is a token for a retry, which is then gone."""
        earned = TOKENS_A_SECOND * max(0.0, now - self._counted)
        self._tokens, self._counted = min(STORE, self._tokens + earned), now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def answered(self) -> None:
        with self._lock:
            self._failures, self._pause, self._probe = 0, 0.0, None
            self._times.clear()

    def succeeded(self) -> None:
        # The service's answers count at both ends: on a busy event loop all heads may come first.
        self.answered()
        with self._lock:
            self._tokens = min(STORE, self._tokens + REFILL)

    def failed(self, this: _Try, now: float) -> bool:
        with self._lock:
            self._failures += 1
            self._times.append(now)
            closed = not self._pause
            if closed and len(self._times) == FAILURES and now - self._times[0] <= RUSH:
                self._open(now, FIRST_PAUSE)
                return True
            if this is self._probe:
                self._open(now, min(2 * self._pause, LONGEST_PAUSE))
            return False

    def _open(self, now: float, pause: float) -> None:
        self._pause, self._probe = pause, None
        self._until = now + pause * (1 + 0.1 * self._jitter())

    def left(self, this: _Try) -> None:
        """A try is over. A probe that told nothing makes room for another."""
        if this is self._probe:
            with self._lock:
                if this is self._probe:
                    self._probe = None

    def renew(self) -> None:
        """Begin anew in a forked child: whoever held the lock or probed is in the parent."""
        self._lock = threading.Lock()
        self._probe = None


class _Try:
    """A try that a circuit let through."""

    def __init__(self, circuit: Circuit) -> None:
        self._circuit = circuit

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._circuit.left(self)

    def answered(self) -> None:
        self._circuit.answered()

    def succeeded(self) -> None:
        self._circuit.succeeded()

    def failed(self, now: float) -> bool:
        return self._circuit.failed(self, now)


class _Alone:
    """Lets every try through and learns nothing: for calls that spare nobody."""

    def ask(self, now: float, *, retry: bool) -> Permit | Hold:
        del now, retry
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def answered(self) -> None:
        pass

    def succeeded(self) -> None:
        pass

    def failed(self, now: float) -> bool:
        del now
        return False


ALONE: Policy = _Alone()


class Kept(dict[bytes, Circuit]):
    """The circuits that one object keeps alive. Copies and pickles begin with none."""

    def __reduce__(self) -> tuple[type[Kept], tuple[()]]:
        return Kept, ()

    def __deepcopy__(self, memo: dict[int, Any]) -> Kept:
        return Kept()


# Keys are told apart by a digest that means nothing outside this process.
_SALT = os.urandom(16)
_SHARED: WeakValueDictionary[bytes, Circuit] = WeakValueDictionary()
_finding = threading.Lock()


def shared_circuit(origin: str, key: str, kept: Kept) -> Circuit:
    """The circuit of a key at an origin. It lives as long as one object keeps it."""
    name = blake2b(f"{origin}\0{key}".encode(), key=_SALT, digest_size=16).digest()
    found = kept.get(name)
    if found is None:
        with _finding:
            found = _SHARED.get(name)
            if found is None:
                found = _SHARED[name] = Circuit()
        kept[name] = found
    return found


def _renew_all() -> None:
    global _finding  # noqa: PLW0603  # another thread may have held it at the fork
    _finding = threading.Lock()
    for circuit in list(_SHARED.values()):
        circuit.renew()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no forks
    os.register_at_fork(after_in_child=_renew_all)
