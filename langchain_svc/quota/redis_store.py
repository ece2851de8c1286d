"""Accounts that processes and machines share through Redis or Valkey.

The script of `quota.lua` is ours. Of the libraries that were read, `limits` asks for one limit at a
time and cannot give back what an estimate took too much; `pyrate-limiter` keeps one entry for every
token and trusts the clients' clocks. Neither queues.

A process has one connection to a Redis and one thread that speaks on it. Questions that come while
an answer is awaited go out together. Whoever asks waits no longer than the call may take, whatever
the thread waits for. What became of calls travels with the next question of the process, so that a
call costs one round trip; it goes at once only where others would wait for nothing, or send too
much.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import sha1
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from .._forks import new_lock
from .._safe_errors import safe_repr
from ..errors import SvcConnectionError
from .ledger import TOO_MANY_REQUESTS, Ledger, Outcome, Ticket, Wait
from .plans import HOUR, Limit

try:
    from redis import ConnectionPool, RedisError, ResponseError
    from redis.backoff import NoBackoff
    from redis.exceptions import NoScriptError
    from redis.retry import Retry
except ImportError:
    raise ImportError(
        'A quota in Redis needs the extra: pip install "langchain-svc[redis]"'
    ) from None

_TIMEOUT = 2.0  # seconds for an answer of Redis
_REST = 2.0  # seconds before Redis is asked again after a failure
_FOREVER = 1e9  # JSON has no infinity
_NEWS = 0.02  # of a limit: a wrong estimate that others should hear of at once
_TOGETHER = 100  # questions at most in one round trip
_KEYS = ("state", "queue", "seen", "tokens", "processes", "turns0", "turns1")
_FORMAT = 2  # of what the keys hold: packages that keep something else use other keys
_URL = (
    'storage must be "memory", "redis://host:port/0", "rediss://host:port/0" or "unix://path", '
    "with / ? # @ in names and passwords written as %2F %3F %23 %40"
)


# -- what the script answers ----------------------------------------------------------------------


@dataclass(frozen=True)
class Reply:
    """What the script answers, checked: anything may listen where Redis should."""

    now: float
    born: str  # when the state in Redis began
    lost: bool  # it is not the state that this process knew: nothing was done
    processes: int
    used: tuple[float, ...]  # of each limit
    turn: float  # the call's place in the queue
    wait: Wait | None
    more: Any  # of `eta` and `look`


def read_reply(answer: bytes, limits: int) -> Reply:
    """The script's answer about an account with so many limits.

    Raises:
        TypeError, ValueError, KeyError, RecursionError: It is none.
    """
    said = json.loads(answer)
    now, processes, turn = _numbers(said["now"], said["processes"], said["turn"])
    used = _numbers(*said["used"])
    wait: Wait | None = None
    more: Any = None
    if said["wait"]:
        seconds, again, period = _numbers(*said["wait"])
        wait = Wait(max(0.001, seconds), min(max(0.005, again), 60.0), period)
    born, lost = said["born"], said["lost"]
    if not isinstance(born, str) or not isinstance(lost, bool) or len(used) != limits:
        raise ValueError("an answer of another form")
    if "eta" in said:
        (more,) = _numbers(said["eta"])
    elif "windows" in said:
        more = _look_of(said)
    return Reply(now, born, lost, max(1, round(processes)), used, turn, wait, more)


def _look_of(said: dict[str, Any]) -> dict[str, Any]:
    interactive, waiting, hold = _numbers(said["interactive"], said["waiting"], said["hold"])
    windows = []
    for unit, *numbers in said["windows"]:
        limit, seconds, used, empty_in = _numbers(*numbers)
        limit = math.inf if limit < 0 else limit
        windows.append((str(unit), limit, seconds, max(0, round(used)), empty_in))
    waits = (round(interactive), round(waiting - interactive))
    return {"windows": sorted(windows), "waiting": waits, "hold": hold}


def _numbers(*values: Any) -> tuple[float, ...]:
    for value in values:
        if type(value) not in {int, float} or not abs(value) < _FOREVER**2:
            raise ValueError("not a number")
    return values


# -- one connection ------------------------------------------------------------------------------


Talk = Generator[bytes, Reply, Any]


class _Job:
    """A talk with Redis, and who waits for its result.

    The thread ends it, or whoever waits leaves it: who comes second sees that by `_claims`.
    """

    def __init__(
        self, talk: Talk, wake: Callable[[], Any], late: Callable[[Any], None], limits: int
    ) -> None:
        self._talk, self._wake, self._late, self.limits = talk, wake, late, limits
        self._claims = count()
        self._result: Any = None

    def advance(self, reply: Any) -> bytes | None:
        """The next question; None where there is none, and whoever waits has been told."""
        try:
            if isinstance(reply, Exception):
                return self._talk.throw(reply)
            return self._talk.send(reply)
        except StopIteration as over:
            self._result = over.value
        except SvcConnectionError as error:
            self._result = error
        if next(self._claims):
            self._late(self._result)
        else:
            try:
                self._wake()
            except RuntimeError:  # its event loop is closed
                self._late(self._result)
        return None

    def leave(self) -> None:
        """Nobody waits any more."""
        if next(self._claims):
            self._late(self._result)

    def take(self, missed: Callable[[], SvcConnectionError]) -> Any:
        """The result, where it has come."""
        if not next(self._claims):
            raise missed()
        if isinstance(self._result, SvcConnectionError):
            raise self._result.with_traceback(None)
        return self._result


class RedisLink:
    """The connection of this process to one Redis.

    Args:
        url: "redis://host:port/0", "rediss://..." over TLS, or "unix://path".

    Raises:
        ValueError: The URL is none of these.
    """

    def __init__(self, url: str) -> None:
        self.place, self._url = place_of(url), url
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._rests_until, self._why, self._used_at = 0.0, "", 0.0
        self._pid, self._lock = 0, new_lock()
        self._connection = self._connected()  # which checks the URL, and connects when it is used
        self.source = Path(__file__).with_name("quota.lua").read_text(encoding="utf-8")

    def _connected(self) -> Any:
        times = {"socket_timeout": _TIMEOUT, "socket_connect_timeout": _TIMEOUT}
        try:
            pool = ConnectionPool.from_url(self._url, **times, retry=Retry(NoBackoff(), 0))
            return pool.make_connection()
        except (ValueError, TypeError, RedisError):  # which may tell the password
            raise ValueError(_URL) from None

    def account(
        self, limits: tuple[Limit, ...], *, learns: bool, name: str, goes_on: bool
    ) -> RedisAccount:
        """The account of this name."""
        return RedisAccount(self, limits, learns=learns, name=name, goes_on=goes_on)

    def prefix(self, name: str, fixed: str) -> bytes:
        """A question about an account, but for its last argument."""
        keys = (f"svc-quota:{_FORMAT}:{{{name}}}:{key}" for key in _KEYS)
        digest = sha1(self.source.encode(), usedforsecurity=False).hexdigest()
        command = ("EVALSHA", digest, len(_KEYS), *keys, fixed, "")
        packed: bytes = b"".join(self._connection.pack_command(*command))
        return packed.removesuffix(b"$0\r\n\r\n")

    def run(self, talk: Talk, limits: int, left: float, late: Callable[[Any], None]) -> Any:
        """What the talk comes to; `late` gets it where it is over after `left` seconds.

        Raises:
            SvcConnectionError: Redis did not answer, or not in time.
        """
        heard = threading.Lock()
        heard.acquire()
        job = _Job(talk, heard.release, late, limits)
        self._put(job)
        try:
            heard.acquire(timeout=max(0.0, min(_TIMEOUT, left)))
        except BaseException:
            job.leave()
            raise
        return job.take(self.failure)

    async def arun(self, talk: Talk, limits: int, left: float, late: Callable[[Any], None]) -> Any:
        """The async version of `run`."""
        loop = asyncio.get_running_loop()
        heard = loop.create_future()

        def wake() -> None:
            if not heard.done():
                heard.set_result(None)

        job = _Job(talk, lambda: loop.call_soon_threadsafe(wake), late, limits)
        self._put(job)
        timer = loop.call_later(max(0.0, min(_TIMEOUT, left)), wake)
        try:
            await heard
        except BaseException:
            job.leave()
            raise
        finally:
            timer.cancel()
        return job.take(self.failure)

    def tell(self, talk: Talk, limits: int) -> None:
        """Let the talk happen, some time."""
        with suppress(SvcConnectionError):  # it is told later
            self._put(_Job(talk, lambda: None, lambda _: None, limits))

    def _put(self, job: _Job) -> None:
        if time.monotonic() < self._rests_until:
            raise self.failure()
        if self._pid != os.getpid():
            with self._lock:
                if self._pid != os.getpid():
                    # Of a parent's connection a forked child has a copy, and of its thread none.
                    self._jobs, self._connection = SimpleQueue(), self._connected()
                    threading.Thread(target=self._serve, name="svc quota", daemon=True).start()
                    self._pid = os.getpid()
        self._jobs.put(job)

    def failure(self) -> SvcConnectionError:
        why = self._why or "not in time"
        return SvcConnectionError(
            f"The quota's storage {self.place} did not answer ({why}); nothing was sent. Start it "
            "or correct its address. A quota that came out of a pickle has no password: make it "
            'here. SvcQuota(on_storage_failure="local") goes on with a share of the plan'
        )

    def _serve(self) -> None:
        jobs = self._jobs
        while True:
            talks: list[tuple[_Job, Any]] = [(jobs.get(), None)]
            with suppress(Empty):
                while len(talks) < _TOGETHER:
                    talks.append((jobs.get_nowait(), None))
            while talks:
                asked = [(job, job.advance(reply)) for job, reply in talks]
                going = [(job, question) for job, question in asked if question is not None]
                talks = [*zip((job for job, _ in going), self._replies(going), strict=True)]

    def _replies(self, asked: list[tuple[_Job, bytes]]) -> list[Reply | SvcConnectionError]:
        """What Redis answers to each question, or why there is no answer."""
        if not asked:
            return []
        found: list[Any] = []
        connection = self._connection
        try:
            now = time.monotonic()
            if now - self._used_at > 1 and connection.can_read():  # closed, or out of step
                connection.disconnect()
            self._used_at = now
            connection.send_packed_command([b"".join(question for _, question in asked)])
            found += (self._answer() for _ in asked)
            for at, (_, question) in enumerate(asked):
                if isinstance(found[at], NoScriptError):
                    connection.send_command("SCRIPT", "LOAD", self.source)
                    connection.read_response()
                    connection.send_packed_command([question])
                    found[at] = self._answer()
        except Exception as error:  # noqa: BLE001  # whatever answers in the place of Redis
            found += [error] * (len(asked) - len(found))
        return [self._checked(job, answer) for (job, _), answer in zip(asked, found, strict=True)]

    def _answer(self) -> Any:
        try:
            return self._connection.read_response()
        except ResponseError as error:
            return error

    def _checked(self, job: _Job, answer: Any) -> Reply | SvcConnectionError:
        error = answer
        if not isinstance(answer, Exception):
            try:
                return read_reply(answer, job.limits)
            except (TypeError, ValueError, KeyError, AttributeError, RecursionError) as bad:
                error = bad
        self._why, self._rests_until = type(error).__name__, time.monotonic() + _REST
        with suppress(Exception):
            self._connection.disconnect()
        return self.failure()


def place_of(url: str) -> str:
    """The address of a Redis without names and passwords.

    Raises:
        ValueError: It is none, or it is not clear what is the password.
    """
    scheme, _, rest = url.partition("://") if isinstance(url, str) else ("", "", "")
    user, at, _ = rest.rpartition("@")
    socket = scheme == "unix" and rest.startswith("/")
    if isinstance(url, str) and ("#" in url or (at and not socket and {*"/?"} & {*user})):
        raise ValueError(_URL)
    parts = urlsplit(url) if scheme in {"redis", "rediss", "unix"} else None
    if parts is None or not (parts.hostname or (socket and parts.path)):
        # Not the value: it may hold a password.
        raise ValueError(f"{_URL}, not {'a URL of another form' if rest else safe_repr(url)}")
    return f"{scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


link_to = cache(RedisLink)


_STARTED = uuid4().hex


def _process() -> str:
    """Which process this is; a forked child is another."""
    return f"{_STARTED}-{os.getpid()}"


# -- accounts ------------------------------------------------------------------------------------


class RedisAccount(Ledger):
    """An account in Redis, with what this process counted itself beside it.

    Args:
        link: The connection.
        limits: The plan's limits.
        learns: Whether there is no plan.
        name: What the account is called in Redis.
        goes_on: Whether calls go on with a share of the plan while Redis does not answer.
    """

    local = False

    def __init__(
        self, link: RedisLink, limits: tuple[Limit, ...], *, learns: bool, name: str, goes_on: bool
    ) -> None:
        super().__init__(limits, learns=learns)
        self._tokens_limit = min((n.amount for n in limits if n.unit == "tokens"), default=0)
        self._link, self._goes_on = link, goes_on
        plan = [(limit.unit, limit.seconds, limit.amount) for limit in limits]
        self._prefix = link.prefix(name, json.dumps({"limits": plan, "learns": learns}))
        self._settled: deque[dict[str, Any]] = deque()
        self._left: deque[str] = deque()
        self._sent_here: deque[tuple[float, int]] = deque()  # and not told yet
        self._seen: tuple[int, tuple[float, ...]] | None = None  # processes, use of each limit
        self._born = "never"  # when the state in Redis began
        self._pid = os.getpid()

    # -- asking ---------------------------------------------------------------------------------

    def ask(self, ticket: Ticket) -> Wait | None:
        """None where the call may be sent now; else it stands in the queue."""
        talk, late = self._asking(ticket)
        try:
            reply = self._link.run(talk, len(self._limits), ticket.left, late)
        except SvcConnectionError:
            if not self._goes_on:
                raise
            return self._ask_here(ticket)
        return self._placed(ticket, reply)

    async def aask(self, ticket: Ticket) -> Wait | None:
        """The async version of `ask`."""
        talk, late = self._asking(ticket)
        try:
            reply = await self._link.arun(talk, len(self._limits), ticket.left, late)
        except SvcConnectionError:
            if not self._goes_on:
                raise
            return self._ask_here(ticket)
        return self._placed(ticket, reply)

    def _asking(self, ticket: Ticket) -> tuple[Talk, Callable[[Any], None]]:
        ticket.id = ticket.id or uuid4().hex
        tokens = ticket.tokens
        call = {
            "id": ticket.id,
            "priority": ticket.priority,
            "party": ticket.party or _process(),
            "tokens": ticket.tokens,
            "turn": ticket.turn,
            "left": min(ticket.left, _FOREVER),
        }

        def give_back(reply: Any) -> None:
            """The call was let through when nobody waited for it any more."""
            if isinstance(reply, Reply) and reply.wait is None:
                self._settled.append(_told(reply.now, tokens, Outcome(sent=False, tokens=0)))

        return self._talk(call=call), give_back

    def _placed(self, ticket: Ticket, reply: Reply) -> Wait | None:
        ticket.turn = reply.turn
        if reply.wait is None:
            ticket.stored_at = reply.now
            self.note(ticket)
        return reply.wait

    def _ask_here(self, ticket: Ticket) -> Wait | None:
        """Within this process's share, while Redis is away."""
        with self._lock:
            seen, self._seen = self._seen, None
        if seen is not None:
            self.share(*seen)
        wait = super().ask(ticket)
        if wait is None:
            self._sent_here.append((time.monotonic(), ticket.tokens))
        return wait

    def _talk(self, **question: Any) -> Talk:
        """One question, and it again where Redis is new or has forgotten everything."""
        if self._pid != os.getpid():  # the parent tells what it did before the fork
            self._pid = os.getpid()
            self._settled.clear()
            self._left.clear()
        settled, left = _drained(self._settled), _drained(self._left)
        here = _drained(self._sent_here)
        asked = {"process": _process(), "born": self._born, **question}
        if settled or left or here:
            asked |= {"settle": settled, "leave": left, "counted": self._counted_here(here)}
        try:
            reply = yield self._packed(asked)
            if reply.lost:  # what this process knows is told again
                new, self._born = self._born != reply.born, reply.born
                counted = self.counted() if new else []
                asked |= {"settle": [], "leave": [], "born": self._born, "counted": counted}
                reply = yield self._packed(asked)
                if reply.lost:
                    raise self._link.failure()
        except SvcConnectionError:
            # What is older than a window means nothing any more.
            self._settled.extend(settled[-1000:])
            self._left.extend(left[-1000:])
            self._sent_here.extend(here)
            raise
        self._born = reply.born
        self._seen = reply.processes, reply.used
        return reply

    def _packed(self, question: dict[str, Any]) -> bytes:
        text = json.dumps(question).encode()
        return b"%b$%d\r\n%b\r\n" % (self._prefix, len(text), text)

    def _counted_here(self, here: list[tuple[float, int]]) -> list[tuple[str, float, float, int]]:
        """What was let through while Redis was away: the window, its age and the amount."""
        now = time.monotonic()
        return [
            (unit, seconds, now - at, 1 if unit == "requests" else tokens)
            for at, tokens in here
            for unit, _, seconds in self._limits
            if now - at < seconds
        ]

    # -- what became of it ----------------------------------------------------------------------

    def settle(self, ticket: Ticket, outcome: Outcome) -> None:
        """Count what became of a call that was let through."""
        super().settle(ticket, outcome)
        if ticket.stored_at is None:  # it was let through here
            return
        self._settled.append(_told(ticket.stored_at, ticket.tokens, outcome))
        ticket.stored_at = None
        off = 0 if outcome.tokens is None else abs(outcome.tokens - ticket.tokens)
        if outcome.status == TOO_MANY_REQUESTS or off > _NEWS * self._tokens_limit > 0:
            self._link.tell(self._talk(), len(self._limits))

    def leave(self, ticket: Ticket) -> None:
        """The call does not wait any more."""
        super().leave(ticket)
        if ticket.id and ticket.stored_at is None:
            self._left.append(ticket.id)

    # -- looking --------------------------------------------------------------------------------

    def _look(self, **question: Any) -> Any:
        talk = self._talk(**question)
        return self._link.run(talk, len(self._limits), math.inf, lambda _: None).more

    def eta(self, requests: int, tokens: int) -> float:
        """Seconds until so much more has fitted."""
        return float(max(0.0, self._look(eta=[requests, tokens])))

    def look(self) -> dict[str, Any]:
        """What a snapshot tells."""
        found: dict[str, Any] = self._look(look=True)
        return found


def _told(at: float, held: int, outcome: Outcome) -> dict[str, Any]:
    told: dict[str, Any] = {
        "at": at,
        "held": held,
        "sent": outcome.sent,
        "tokens": -1 if outcome.tokens is None else outcome.tokens,
        "status": outcome.status or 0,
        "retry_after": -1 if outcome.retry_after is None else min(outcome.retry_after, HOUR),
    }
    return told if outcome.limits is None else told | {"limits": outcome.limits}


def _drained(queue: deque[Any]) -> list[Any]:
    parts: list[Any] = []
    with suppress(IndexError):  # it is empty
        while True:
            parts.append(queue.popleft())
    return parts
