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
from collections.abc import Iterator
from concurrent.futures import Future, InvalidStateError
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha1
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

from .._safe_errors import safe_repr
from .._service import Wait
from .._threads import new_lock
from ..errors import SvcConnectionError
from .ledger import TOO_MANY_REQUESTS, Ledger, Outcome, Ticket, Window
from .plans import Limit

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
_FORMAT = 3  # of what the keys hold: packages that keep something else use other keys
_LONGEST_QUEUE = 10**6
_TOKENS = 3  # where a question about a call has its tokens
_NO_REPLY = (TypeError, ValueError, KeyError, AttributeError, OverflowError, RecursionError)
_URL = (
    'storage must be "memory", "redis://host:port/0", "rediss://host:port/0" or "unix://path", '
    "with / ? # @ in names and passwords written as %2F %3F %23 %40"
)


# -- questions and answers ------------------------------------------------------------------------


class Reply(NamedTuple):
    """What the script answers, checked: anything may listen where Redis should."""

    now: float
    born: str  # when the state in Redis began
    processes: int
    used: list[float]  # of each limit
    turn: float  # the call's place in the queue
    wait: Wait | None
    state: Ledger | None  # where that was asked for


def read_reply(answer: bytes, limits: int) -> Reply:
    """The script's answer about an account with so many limits; raises `_NO_REPLY` for others."""
    said = json.loads(answer)
    now, processes, turn, *used = _numbers(
        said["now"], said["processes"], said["turn"], *said["used"]
    )
    wait = None
    if said["wait"]:
        seconds, again, period = _numbers(*said["wait"])
        wait = Wait(max(0.001, seconds), min(max(0.005, again), 60.0), period)
    born = said["born"]
    if not isinstance(born, str) or len(used) != limits:
        raise ValueError("an answer of another form")
    state = _ledger(said["state"], now) if "state" in said else None
    return Reply(now, born, max(1, round(processes)), used, turn, wait, state)


def _ledger(said: dict[str, Any], now: float) -> Ledger:
    """A ledger in memory that stands where the account in Redis does."""
    found = Ledger((), clock=lambda: now)
    found.windows.clear()
    for unit, *numbers, held in said["windows"]:
        limit, seconds = _numbers(*numbers)
        most = max(1.0, limit) if limit > 0 else math.inf
        window = Window(Limit(str(unit), most, max(1.0, seconds)))
        found.windows[str(unit), seconds] = window
        for bucket, amount in held:
            window.add(math.floor(*_numbers(bucket)), *_numbers(amount))
    found.hold_until, *counts, tokens = _numbers(
        said["hold"], said["interactive"], said["bulk"], said["queued"]
    )
    if sum(counts) > _LONGEST_QUEUE:
        raise ValueError("no queue is so long")
    each = round(tokens / max(1, *counts, sum(counts)))
    for priority, count in enumerate(counts):
        found.waiting += [Ticket(tokens=each, priority=priority)] * round(count)
    return found


def _numbers(*values: Any) -> tuple[float, ...]:
    for value in values:
        if type(value) not in {int, float} or not abs(value) < _FOREVER**2:
            raise ValueError("not a number")
    return values


class _Question(Future[Any]):
    """What an account asks. Its result is a `Reply` or an error.

    The thread answers it, or whoever waits cancels it: a future is never both.
    """

    def __init__(self, account: RedisAccount, **asked: Any) -> None:
        super().__init__()
        self.account, self.asked = account, asked

    def within(self, left: float) -> Reply:
        """The reply; SvcConnectionError if it does not come within so many seconds."""
        with self._put(), suppress(TimeoutError, FutureTimeout):
            self.result(max(0.0, min(_TIMEOUT, left)))
        return self._taken()

    async def awithin(self, left: float) -> Reply:
        """The async version of `within`."""
        with self._put():
            await asyncio.wait([asyncio.wrap_future(self)], timeout=max(0.0, min(_TIMEOUT, left)))
        return self._taken()

    @contextmanager
    def _put(self) -> Iterator[None]:
        self.account.link.put(self)
        try:
            yield
        except BaseException:
            if not self.cancel():
                self.account.give_back(self, self.result())
            raise

    def _taken(self) -> Reply:
        found = self.account.link.failure() if self.cancel() else self.result()
        if isinstance(found, Reply):
            return found
        raise found.with_traceback(None)

    def answer(self, found: Reply | SvcConnectionError) -> None:
        """Tell whoever waits, or give back what nobody waits for any more."""
        self.account.heard(self, found)
        try:
            self.set_result(found)
        except InvalidStateError:
            self.account.give_back(self, found)


# -- one connection ------------------------------------------------------------------------------


class RedisLink:
    """The connection of this process to one Redis; ValueError where the URL is of none."""

    def __init__(self, url: str) -> None:
        self.place, self._url = place_of(url), url
        self._questions: SimpleQueue[_Question] = SimpleQueue()
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

    def prefix(self, name: str, fixed: str) -> bytes:
        """A question about an account, but for its last argument."""
        keys = (f"svc-quota:{_FORMAT}:{{{name}}}:{key}" for key in _KEYS)
        digest = sha1(self.source.encode(), usedforsecurity=False).hexdigest()
        command = ("EVALSHA", digest, len(_KEYS), *keys, fixed, "")
        packed: bytes = b"".join(self._connection.pack_command(*command))
        return packed.removesuffix(b"$0\r\n\r\n")

    def put(self, question: _Question) -> None:
        """Let the thread ask it; SvcConnectionError while Redis rests after a failure."""
        if time.monotonic() < self._rests_until:
            raise self.failure()
        if self._pid != os.getpid():
            with self._lock:
                if self._pid != os.getpid():
                    # Of a parent's connection a forked child has a copy, and of its thread none.
                    self._questions, self._connection = SimpleQueue(), self._connected()
                    threading.Thread(target=self._serve, name="svc quota", daemon=True).start()
                    self._pid = os.getpid()
        self._questions.put(question)

    def failure(self) -> SvcConnectionError:
        why = self._why or "not in time"
        error = SvcConnectionError(
            f"The quota's storage {self.place} did not answer ({why}); nothing was sent. Start it "
            "or correct its address. A quota that came out of a pickle has no password: make it "
            'here. SvcQuota(on_storage_failure="local") goes on with a share of the plan'
        )
        rest = self._rests_until - time.monotonic()
        error.retry_after = rest if rest > 0 else None  # sooner asks nobody
        return error

    def _serve(self) -> None:
        waiting = self._questions
        while True:
            questions = [waiting.get()]
            with suppress(Empty):
                while len(questions) < _TOGETHER:
                    questions.append(waiting.get_nowait())
            for question, answer in zip(questions, self._answers(questions), strict=True):
                question.answer(self._checked(question, answer))

    def _answers(self, questions: list[_Question]) -> list[Any]:
        """What Redis answers to each question, or why there is no answer."""
        found: list[Any] = []
        connection = self._connection
        try:
            packed = [question.account.packed(question) for question in questions]
            now = time.monotonic()
            if now - self._used_at > 1 and connection.can_read():  # closed, or out of step
                connection.disconnect()
            self._used_at = now
            connection.send_packed_command([b"".join(packed)])
            found += (self._answer() for _ in questions)
            for at, question in enumerate(packed):
                if isinstance(found[at], NoScriptError):
                    connection.send_command("SCRIPT", "LOAD", self.source)
                    connection.read_response()
                    connection.send_packed_command([question])
                    found[at] = self._answer()
        except Exception as error:  # noqa: BLE001  # whatever answers in the place of Redis
            found += [error] * (len(questions) - len(found))
        return found

    def _answer(self) -> Any:
        try:
            return self._connection.read_response()
        except ResponseError as error:
            return error

    def _checked(self, question: _Question, answer: Any) -> Reply | SvcConnectionError:
        error = answer
        if not isinstance(answer, Exception):
            try:
                return read_reply(answer, question.account.limits)
            except _NO_REPLY as bad:
                error = bad
        self._why, self._rests_until = type(error).__name__, time.monotonic() + _REST
        with suppress(Exception):
            self._connection.disconnect()
        return self.failure()


def place_of(url: str) -> str:
    """The address of a Redis without names and passwords; ValueError where that is not clear."""
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

    Where it `goes_on`, calls have a share of the plan while Redis does not answer.
    """

    local = False

    def __init__(
        self, link: RedisLink, limits: tuple[Limit, ...], *, name: str, goes_on: bool
    ) -> None:
        super().__init__(limits)
        self.link, self.limits, self._goes_on = link, len(limits), goes_on
        self._tokens_limit = min((n.amount for n in limits if n.unit == "tokens"), default=0)
        self._prefix = link.prefix(name, json.dumps(limits))
        self._news: dict[str, list[Any]] = {"settle": [], "leave": [], "counted": []}
        self._seen: tuple[int, list[float]] | None = None  # processes, use of each limit
        self._born = ""  # when the state in Redis began
        self._ahead = time.time() - time.monotonic()  # Redis' clock, of ours
        self._process = _process()

    # -- asking ---------------------------------------------------------------------------------

    def ask(self, ticket: Ticket) -> Wait | None:
        """None where the call may be sent now; else it stands in the queue."""
        try:
            return self._placed(ticket, self._about(ticket).within(ticket.left))
        except SvcConnectionError as error:
            return self._ask_here(ticket, error)

    async def aask(self, ticket: Ticket) -> Wait | None:
        """The async version of `ask`."""
        try:
            return self._placed(ticket, await self._about(ticket).awithin(ticket.left))
        except SvcConnectionError as error:
            return self._ask_here(ticket, error)

    def _about(self, ticket: Ticket) -> _Question:
        party, left = ticket.party or _process(), min(ticket.left, _FOREVER)
        call = (self._name_of(ticket), ticket.priority, party, ticket.tokens, ticket.turn, left)
        return _Question(self, call=call)

    def _name_of(self, ticket: Ticket) -> str:
        return f"{_process()}-{ticket.serial}"

    def _placed(self, ticket: Ticket, reply: Reply) -> Wait | None:
        ticket.turn = reply.turn
        if reply.wait is None:
            ticket.stored_at = reply.now
            with self._lock:
                self._leave(ticket)
                self._count(ticket, self._rolled())
        return reply.wait

    def _ask_here(self, ticket: Ticket, error: SvcConnectionError) -> Wait | None:
        """Within this process's share, while Redis is away."""
        if not self._goes_on:
            raise error
        with self._lock:
            seen, self._seen = self._seen, None
            if seen is not None:
                self._share(*seen)
        if not ticket.waits:
            ticket.turn = 0.0  # of Redis' queue
        found = super().ask(ticket)
        if ticket.at is not None:
            ticket.stored_at = at = ticket.at + self._ahead
            with self._lock:
                self._news["counted"] += [
                    (w.unit, w.seconds, at, 1 if w.unit == "requests" else ticket.tokens)
                    for w in self.windows.values()
                ]
        return found

    def _share(self, parties: int, used: list[float]) -> None:
        """Keep to one of so many equal shares of the plan, and of what was used of each limit."""
        now = self._rolled()
        for (unit, amount, seconds), total in zip(self._limits, used, strict=True):
            window = self.windows[unit, seconds]
            window.planned = window.limit = max(1.0, amount / parties)
            window.add(window.at(now), max(0, math.ceil(total / parties - window.used)))

    # -- what the thread of the link calls --------------------------------------------------------

    def packed(self, question: _Question) -> bytes:
        """A question with the news of this process, as it is sent."""
        with self._lock:
            news, self._news = self._news, {name: [] for name in self._news}
        if self._process != _process():  # the parent tells what it did before the fork
            self._process, news = _process(), {}
        question.asked |= {"process": self._process, "born": self._born}
        question.asked |= {name: parts for name, parts in news.items() if parts}
        text = json.dumps(question.asked).encode()
        return b"%b$%d\r\n%b\r\n" % (self._prefix, len(text), text)

    def heard(self, question: _Question, found: Reply | SvcConnectionError) -> None:
        """Remember what a reply says, and tell again what Redis did not hear or has lost."""
        asked = question.asked
        with self._lock:
            if isinstance(found, SvcConnectionError):
                for name, parts in self._news.items():
                    # Of the others, what is older than a window means nothing any more.
                    kept = None if name == "counted" else -1000
                    parts[:0] = asked.get(name, [])[kept:]
                return
            self._seen, self._ahead = (found.processes, found.used), found.now - time.monotonic()
            if asked.get("born") and found.born not in {asked["born"], self._born}:
                self._news["counted"] = [
                    (w.unit, w.seconds, (bucket + 1) * w.width + self._ahead, amount)
                    for w in self.windows.values()
                    for bucket, amount in w.buckets.items()
                ]
            self._born = found.born

    def give_back(self, question: _Question, found: Reply | SvcConnectionError) -> None:
        """The call was let through when nobody waited for it any more."""
        call = question.asked.get("call")
        if call and isinstance(found, Reply) and found.wait is None:
            with self._lock:
                told = (found.now, call[_TOKENS], Outcome(sent=False, tokens=0))
                self._news["settle"].append(told)

    # -- what became of it ----------------------------------------------------------------------

    def settle(self, ticket: Ticket, outcome: Outcome) -> None:
        """Count what became of a call that was let through."""
        super().settle(ticket, outcome)
        if ticket.stored_at is None:
            return
        with self._lock:
            self._news["settle"].append((ticket.stored_at, ticket.tokens, outcome))
        ticket.stored_at = None
        off = 0 if outcome.tokens is None else abs(outcome.tokens - ticket.tokens)
        if outcome.status == TOO_MANY_REQUESTS or off > _NEWS * self._tokens_limit > 0:
            with suppress(SvcConnectionError):  # it is told later
                self.link.put(_Question(self))

    def leave(self, ticket: Ticket) -> None:
        """The call does not wait any more."""
        super().leave(ticket)
        if ticket.stored_at is None:
            with self._lock:
                self._news["leave"].append(self._name_of(ticket))

    # -- looking --------------------------------------------------------------------------------

    def _state(self) -> Ledger:
        for _ in range(2):  # the first tells what Redis had lost, if it had
            question = _Question(self, look=True)
            reply = question.within(math.inf)
            if question.asked["born"] in {"", reply.born} and reply.state is not None:
                return reply.state
        raise self.link.failure()

    def eta(self, requests: int, tokens: int) -> float:
        """Seconds until so much more has fitted."""
        return self._state().eta(requests, tokens)

    def look(self) -> dict[str, Any]:
        """What a snapshot tells."""
        return self._state().look()
