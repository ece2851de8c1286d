"""Accounts that processes and machines share through Redis or Valkey.

The scripts are ours. Of the libraries that were read, `limits` asks for one limit at a time and
cannot give back what an estimate took too much; `pyrate-limiter` has neither a queue nor a way to
give back.

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
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit
from uuid import uuid4

from .._base.safe_errors import safe_repr
from .._base.threads import new_lock
from .._service import Wait
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
        'A quota or a budget in Redis needs the extra: pip install "langchain-svc[redis]"'
    ) from None

_TIMEOUT = 2.0  # seconds for an answer of Redis
_REST = 2.0  # seconds before Redis is asked again after a failure
_FOREVER = 1e9  # JSON has no infinity
_NEWS = 0.02  # of a limit: a wrong estimate that others should hear of at once
_TOGETHER = 100  # questions at most in one round trip
_KEYS = ("state", "queue", "seen", "tokens", "processes", "turns0", "turns1")
_FORMAT = 4  # of what the keys hold: packages that keep something else use other keys
_LONGEST_QUEUE = 10**6
_TOKENS = 3  # where a question about a call has its tokens
_NO_REPLY = (
    TypeError,
    ValueError,
    KeyError,
    AttributeError,
    OverflowError,
    RecursionError,
)
_URL = (
    'storage must be "memory", "redis://host:port/0", "rediss://host:port/0" or "unix://path", '
    "with / ? # @ in names and passwords written as %2F %3F %23 %40"
)


# -- questions ------------------------------------------------------------------------------------


class Account(Protocol):
    """What the connection asks for, and tells the answers to."""

    link: RedisLink
    source: str  # the script
    what: str  # "quota" or "budget", as errors name it
    advice: str  # what else may be done while Redis is away

    def packed(self, question: Question) -> bytes:
        """The question as it is sent."""
        ...

    def read(self, answer: Any) -> Any:
        """The checked reply; raises one of `_NO_REPLY` for anything else."""
        ...

    def heard(self, question: Question, reply: Any) -> None:
        """Take in a reply, or the `SvcConnectionError` that came instead."""
        ...

    def give_back(self, question: Question, reply: Any) -> None:
        """The reply came when nobody waited for it any more."""
        ...


class Question(Future[Any]):
    """What an account asks. Its result is a reply or a `SvcConnectionError`.

    The thread answers it, or whoever waits cancels it: a future is never both.
    """

    def __init__(self, account: Account, **body: Any) -> None:
        super().__init__()
        self.account = account
        self.body = body

    def within(self, seconds: float) -> Any:
        """The reply; SvcConnectionError if it does not come within so many seconds."""
        with self._put(), suppress(TimeoutError, FutureTimeout):
            self.result(max(0.0, min(_TIMEOUT, seconds)))
        return self._reply()

    async def awithin(self, seconds: float) -> Any:
        """The async version of `within`."""
        with self._put():
            timeout = max(0.0, min(_TIMEOUT, seconds))
            await asyncio.wait([asyncio.wrap_future(self)], timeout=timeout)
        return self._reply()

    @contextmanager
    def _put(self) -> Iterator[None]:
        self.account.link.put(self)
        try:
            yield
        except BaseException:
            if not self.cancel():
                self.account.give_back(self, self.result())
            raise

    def _reply(self) -> Any:
        if self.cancel():
            raise self.account.link.failure(self.account)
        reply = self.result()
        if isinstance(reply, SvcConnectionError):
            raise reply.with_traceback(None)
        return reply

    def answer(self, reply: Any) -> None:
        """Tell whoever waits, or give back what nobody waits for any more."""
        self.account.heard(self, reply)
        try:
            self.set_result(reply)
        except InvalidStateError:
            self.account.give_back(self, reply)


# -- one connection ------------------------------------------------------------------------------


class RedisLink:
    """The connection of this process to one Redis; ValueError where the URL is of none."""

    def __init__(self, url: str) -> None:
        self.place = place_of(url)
        self._url = url
        self._questions: SimpleQueue[Question] = SimpleQueue()
        self._rests_until = 0.0
        self._reason = ""
        self._used_at = 0.0
        self._pid = 0
        self._lock = new_lock()
        self._connection = (
            self._connected()
        )  # which checks the URL, and connects when it is used

    def _connected(self) -> Any:
        times = {"socket_timeout": _TIMEOUT, "socket_connect_timeout": _TIMEOUT}
        try:
            pool = ConnectionPool.from_url(
                self._url, **times, retry=Retry(NoBackoff(), 0)
            )
            return pool.make_connection()
        except (ValueError, TypeError, RedisError):
            # The text of such an error may repeat the password: it may not be in ours.
            raise ValueError(_URL) from None

    def command(self, source: str, keys: list[str], fixed: str) -> bytes:
        """The call of a script, as it is sent, but for its last argument."""
        digest = sha1(source.encode(), usedforsecurity=False).hexdigest()
        parts = ("EVALSHA", digest, len(keys), *keys, fixed, "")
        packed: bytes = b"".join(self._connection.pack_command(*parts))
        return packed.removesuffix(b"$0\r\n\r\n")

    def put(self, question: Question) -> None:
        """Let the thread ask it; SvcConnectionError while Redis rests after a failure."""
        if time.monotonic() < self._rests_until:
            raise self.failure(question.account)
        if self._pid != os.getpid():
            with self._lock:
                if self._pid != os.getpid():
                    # Of a parent's connection a forked child has a copy, and of its thread none.
                    self._questions = SimpleQueue()
                    self._connection = self._connected()
                    threading.Thread(
                        target=self._serve, name="svc quota", daemon=True
                    ).start()
                    self._pid = os.getpid()
        self._questions.put(question)

    def failure(self, account: Account) -> SvcConnectionError:
        """The error of a call that Redis did not let through."""
        what = account.what
        reason = self._reason or "not in time"
        error = SvcConnectionError(
            f"The {what}'s storage {self.place} did not answer ({reason}); nothing was sent. Start "
            f"it or correct its address. A {what} that came out of a pickle has no password: make "
            f"it here. {account.advice}".rstrip()
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
            for question, answer in zip(
                questions, self._answers(questions), strict=True
            ):
                question.answer(self._checked(question, answer))

    def _answers(self, questions: list[Question]) -> list[Any]:
        """What Redis answers to each question, or why there is no answer."""
        answers: list[Any] = []
        connection = self._connection
        try:
            packed = [question.account.packed(question) for question in questions]
            now = time.monotonic()
            if (
                now - self._used_at > 1 and connection.can_read()
            ):  # closed, or out of step
                connection.disconnect()
            self._used_at = now
            connection.send_packed_command([b"".join(packed)])
            answers += (self._answer() for _ in questions)
            for at, question in enumerate(questions):
                if isinstance(answers[at], NoScriptError):
                    connection.send_command("SCRIPT", "LOAD", question.account.source)
                    connection.read_response()
                    connection.send_packed_command([packed[at]])
                    answers[at] = self._answer()
        except Exception as error:  # noqa: BLE001  # whatever answers in the place of Redis
            answers += [error] * (len(questions) - len(answers))
        return answers

    def _answer(self) -> Any:
        try:
            return self._connection.read_response()
        except ResponseError as error:
            return error

    def _checked(self, question: Question, answer: Any) -> Any:
        error = answer
        if not isinstance(answer, Exception):
            try:
                return question.account.read(answer)
            except _NO_REPLY as unreadable:
                error = unreadable
        # Only the name of the error: its text may be what anybody wrote, or hold the password.
        self._reason = type(error).__name__
        self._rests_until = time.monotonic() + _REST
        with suppress(Exception):
            self._connection.disconnect()
        return self.failure(question.account)


def place_of(url: str) -> str:
    """The address of a Redis without names and passwords; ValueError where that is not clear."""
    if not isinstance(url, str):
        raise ValueError(f"{_URL}, not {safe_repr(url)}")  # noqa: TRY004  # as all wrong arguments
    scheme, _, rest = url.partition("://")
    user, at, _ = rest.rpartition("@")
    is_socket = scheme == "unix" and rest.startswith("/")
    # urlsplit ends the host's part at the first of / ? #. With one of them in a password, the rest
    # of the password would be taken for the path, which errors and reprs show: that may not happen.
    is_cut = bool(at) and not is_socket and any(letter in user for letter in "/?")
    if "#" in url or is_cut:
        raise ValueError(_URL)
    has_scheme = scheme in {"redis", "rediss", "unix"}
    parts = urlsplit(url) if has_scheme else urlsplit("")
    is_place = bool(parts.hostname) or (is_socket and bool(parts.path))
    if not is_place:
        # The value may hold a password, so no error may repeat it, unless it has no place at all.
        value = "a URL of another form" if rest else safe_repr(url)
        raise ValueError(f"{_URL}, not {value}")
    host = parts.netloc.rpartition("@")[
        2
    ]  # what stands before the last @ is a name or a password
    return f"{scheme}://{host}{parts.path}"


link_to = cache(RedisLink)


def script(name: str) -> str:
    """The text of a script that lies beside this module."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


_STARTED = uuid4().hex


def process_name() -> str:
    """Which process this is; a forked child is another."""
    return f"{_STARTED}-{os.getpid()}"


# -- what the script answers ----------------------------------------------------------------------


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
    body = json.loads(answer)
    now, processes, turn, *used = numbers(
        body["now"], body["processes"], body["turn"], *body["used"]
    )
    wait = read_wait(body["wait"])
    born = body["born"]
    if not isinstance(born, str) or len(used) != limits:
        raise ValueError("an answer of another form")
    state = _ledger(body["state"], now) if "state" in body else None
    return Reply(now, born, max(1, round(processes)), used, turn, wait, state)


def read_wait(value: Any) -> Wait | None:
    """How long a call shall wait, within bounds whatever the answer says."""
    if not value:
        return None
    seconds, again, period = numbers(*value)
    return Wait(max(0.001, seconds), min(max(0.005, again), 60.0), period)


def _ledger(body: dict[str, Any], now: float) -> Ledger:
    """A ledger in memory that stands where the account in Redis does."""
    ledger = Ledger((), clock=lambda: now)
    ledger.windows.clear()
    for unit, *bounds, buckets in body["windows"]:
        limit, seconds = numbers(*bounds)
        most = max(1.0, limit) if limit > 0 else math.inf
        window = Window(Limit(str(unit), most, max(1.0, seconds)))
        ledger.windows[str(unit), seconds] = window
        for bucket, amount in buckets:
            window.add(math.floor(*numbers(bucket)), *numbers(amount))
    ledger.hold_until, *counts, tokens = numbers(
        body["hold"], body["interactive"], body["bulk"], body["queued"]
    )
    if sum(counts) > _LONGEST_QUEUE:
        raise ValueError("no queue is so long")
    average = round(tokens / max(1, *counts, sum(counts)))
    for priority, count in enumerate(counts):
        ledger.waiting += [Ticket(tokens=average, priority=priority)] * round(count)
    return ledger


def numbers(*values: Any) -> tuple[float, ...]:
    """The values, where all are numbers that an account may hold; else ValueError."""
    for value in values:
        if type(value) not in {int, float} or not abs(value) < _FOREVER**2:
            raise ValueError("not a number")
    return values


# -- accounts ------------------------------------------------------------------------------------


class RedisAccount(Ledger):
    """An account in Redis, with what this process counted itself beside it.

    Where it `goes_on`, calls have a share of the plan while Redis does not answer.
    """

    local = False
    what = "quota"
    advice = 'SvcQuota(on_storage_failure="local") goes on with a share of the plan'

    def __init__(
        self,
        link: RedisLink,
        limits: tuple[Limit, ...],
        *,
        name: str,
        goes_on: bool,
        source: str | None = None,
    ) -> None:
        super().__init__(limits)
        self.link = link
        self.source = script("quota.lua") if source is None else source
        self._goes_on = goes_on
        self._tokens_limit = min(
            (n.amount for n in limits if n.unit == "tokens"), default=0
        )
        keys = [f"svc-quota:{_FORMAT}:{{{name}}}:{key}" for key in _KEYS]
        keys.append(f"svc-quota:{_FORMAT}:began")
        self._command = link.command(self.source, keys, json.dumps(limits))
        self._news = _no_news()
        self._processes = (
            0  # that shared the account when Redis answered last; 0: it never did
        )
        self._use_to_share: list[float] | None = None  # of each limit, at that time
        self._born = ""  # when the state in Redis began
        self._ahead = time.time() - time.monotonic()  # Redis' clock, of ours
        self._process = process_name()

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

    def _about(self, ticket: Ticket) -> Question:
        party = ticket.party or process_name()
        seconds = min(ticket.left, _FOREVER)
        call = (
            self._name_of(ticket),
            ticket.priority,
            party,
            ticket.tokens,
            ticket.turn,
            seconds,
        )
        return Question(self, call=call)

    def _name_of(self, ticket: Ticket) -> str:
        return f"{process_name()}-{ticket.serial}"

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
            self._note_fork()
            self._take_share()
        if not ticket.waits:
            ticket.turn = 0.0  # of Redis' queue
        wait = super().ask(ticket)
        if ticket.at is not None:
            ticket.stored_at = at = ticket.at + self._ahead
            with self._lock:
                self._news["counted"] += [
                    (
                        w.unit,
                        w.seconds,
                        at,
                        1 if w.unit == "requests" else ticket.tokens,
                    )
                    for w in self.windows.values()
                ]
        return wait

    def _take_share(self) -> None:
        """Bound this process to its share of the plan, once for each failure of Redis."""
        if not self._processes:
            # Nobody knows how many processes there are: a roll-out may have started hundreds while
            # Redis was away. May they not send more than the plan together, each sends one request
            # in a window; more processes than that can only keep the plan by sending nothing.
            requests = [
                limit.amount for limit in self._limits if limit.unit == "requests"
            ]
            self._share(min(requests, default=math.inf), [0.0] * len(self._limits))
        elif self._use_to_share is not None:
            self._share(self._processes, self._use_to_share)
            self._use_to_share = None

    def _share(self, parties: float, used: list[float]) -> None:
        """Keep to one of so many equal shares of the plan, and of what was used of each limit."""
        now = self._rolled()
        for (unit, amount, seconds), total in zip(self._limits, used, strict=True):
            window = self.windows[unit, seconds]
            window.planned = window.limit = max(1.0, amount / parties)
            window.add(window.at(now), max(0, math.ceil(total / parties - window.used)))

    def _note_fork(self) -> None:
        """A forked child is a new process. Its parent tells what was done before the fork."""
        if self._process == process_name():
            return
        self._process = process_name()
        self._news = _no_news()
        self._processes = 0
        self._use_to_share = None
        self._born = ""

    # -- what the thread of the link calls --------------------------------------------------------

    def read(self, answer: Any) -> Reply:
        """The checked reply; raises one of `_NO_REPLY` for anything else."""
        return read_reply(answer, len(self._limits))

    def packed(self, question: Question) -> bytes:
        """A question with the news of this process, as it is sent."""
        with self._lock:
            self._note_fork()
            news = self._news
            self._news = _no_news()
            question.body |= {"process": self._process, "born": self._born}
            question.body["processes"] = self._processes
        question.body |= {name: parts for name, parts in news.items() if parts}
        return packed_with(self._command, question.body)

    def heard(self, question: Question, reply: Reply | SvcConnectionError) -> None:
        """Remember what a reply says, and tell again what Redis did not hear or has lost."""
        body = question.body
        with self._lock:
            if isinstance(reply, SvcConnectionError):
                self._tell_again(body)
                return
            born_before = body.get("born")
            is_lost = bool(born_before) and reply.born not in {born_before, self._born}
            if is_lost:
                self._news["recovered"] = [True]
                self._news["counted"] = [
                    (w.unit, w.seconds, (bucket + 1) * w.width + self._ahead, amount)
                    for w in self.windows.values()
                    for bucket, amount in w.buckets.items()
                ]
            self._processes = reply.processes
            self._use_to_share = reply.used
            self._ahead = reply.now - time.monotonic()
            self._born = reply.born

    def _tell_again(self, body: dict[str, Any]) -> None:
        for name, parts in self._news.items():
            # Of the others, what is older than a window means nothing any more.
            most = None if name == "counted" else -1000
            parts[:0] = body.get(name, [])[most:]

    def give_back(self, question: Question, reply: Reply | SvcConnectionError) -> None:
        """The call was let through when nobody waited for it any more."""
        call = question.body.get("call")
        if call and isinstance(reply, Reply) and reply.wait is None:
            with self._lock:
                unsent = (reply.now, call[_TOKENS], Outcome(sent=False, tokens=0))
                self._news["settle"].append(unsent)

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
                self.link.put(Question(self))

    def leave(self, ticket: Ticket) -> None:
        """The call does not wait any more."""
        super().leave(ticket)
        if ticket.stored_at is None:
            with self._lock:
                self._news["leave"].append(self._name_of(ticket))

    # -- looking --------------------------------------------------------------------------------

    def _state(self) -> Ledger:
        for _ in range(2):  # the first tells what Redis had lost, if it had
            question = Question(self, look=True)
            reply: Reply = question.within(math.inf)
            if question.body["born"] in {"", reply.born} and reply.state is not None:
                return reply.state
        raise self.link.failure(self)

    def eta(self, requests: int, tokens: int) -> float:
        """Seconds until so much more has fitted."""
        return self._state().eta(requests, tokens)

    def look(self) -> dict[str, Any]:
        """What a snapshot tells."""
        return self._state().look()


def packed_with(command: bytes, body: dict[str, Any]) -> bytes:
    """A script's call with its last argument."""
    text = json.dumps(body).encode()
    return b"%b$%d\r\n%b\r\n" % (command, len(text), text)


def _no_news() -> dict[str, list[Any]]:
    """What a process has to tell: nothing yet."""
    return {"settle": [], "leave": [], "counted": [], "recovered": []}
