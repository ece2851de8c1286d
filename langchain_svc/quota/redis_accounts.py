"""The accounts that processes and machines share through Redis or Valkey, and the connection to it.

A process has one connection to a Redis and one thread that uses it. Requests that come while the
thread waits for a reply go out together. A caller waits no longer than its call may take, however
long the thread waits.

The ends of calls travel with the next request of the process, so that a call costs one round trip.
They travel at once only where other processes would otherwise wait for nothing, or send too much.

The scripts are ours. Of the libraries that were read, `limits` checks one limit at a time and
cannot give back what an estimate took too much; `pyrate-limiter` 4.5 has GCRA and state in Redis,
but neither a queue nor a way to give back.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import math
import os
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, InvalidStateError
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from hashlib import sha1
from itertools import count
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4
from weakref import WeakSet

from .._base.safe_errors import safe_repr
from .._base.threads import new_lock
from .._client import Wait
from ..errors import SvcConnectionError
from .budget_accounts import NOTHING, Amounts, Bounds, Reservation, Standing, add
from .estimates import Estimates
from .ledger import (
    BULK,
    INTERACTIVE,
    MINUTE,
    TOO_MANY_REQUESTS,
    Ledger,
    LedgerUse,
    Limit,
    Outcome,
    Ticket,
    Window,
)

try:
    from redis import ConnectionPool, RedisError, ResponseError
    from redis.backoff import NoBackoff
    from redis.exceptions import NoScriptError
    from redis.retry import Retry
except ImportError:
    raise ImportError(
        'A quota or a budget in Redis needs the extra: pip install "langchain-svc[redis]"'
    ) from None

REST = 2.0  # seconds after a failure in which Redis gets no request
_TIMEOUT = 2.0  # seconds for a reply of Redis
_LARGEST = 1e18
_MOST_AT_ONCE = 100  # requests in one round trip
_SCHEMES = ("redis", "rediss", "unix")
# What parsing a reply raises if it is not the script's.
NO_REPLY = (
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


Reply = TypeVar("Reply")


# -- requests --------------------------------------------------------------------------------------


class Account(Protocol[Reply]):
    """An account in Redis, as the connection uses it."""

    link: RedisLink
    source: str  # the script
    what: str  # "quota" or "budget", as errors name it
    advice: str  # what else a user can do while Redis is away

    def pack(self, request: RedisRequest[Reply]) -> bytes:
        """The bytes of a request."""
        ...

    def parse_reply(self, data: bytes) -> Reply:
        """The checked reply; raises one of `NO_REPLY` for anything else."""
        ...

    def note_reply(
        self, request: RedisRequest[Reply], reply: Reply | SvcConnectionError
    ) -> None:
        """Remember what a reply says, or that none came."""
        ...

    def give_back(
        self, request: RedisRequest[Reply], reply: Reply | SvcConnectionError
    ) -> None:
        """Undo what the reply granted: it came after its caller had stopped waiting."""
        ...


class RedisRequest(Future["Reply | SvcConnectionError"], Generic[Reply]):
    """One run of an account's script. Its result is the reply or a `SvcConnectionError`.

    The thread sets the result, or the waiting caller cancels it: a future never has both.
    """

    def __init__(self, account: Account[Reply], **body: Any) -> None:
        super().__init__()
        self.account = account
        self.body = body

    def reply_within(self, seconds: float) -> Reply:
        """The reply; SvcConnectionError if it does not come within so many seconds."""
        with self._put(), suppress(TimeoutError, FutureTimeout):
            self.result(max(0.0, min(_TIMEOUT, seconds)))
        return self._reply()

    async def areply_within(self, seconds: float) -> Reply:
        """The async version of `reply_within`."""
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

    def _reply(self) -> Reply:
        if self.cancel():
            raise self.account.link.failure(self.account)
        reply = self.result()
        if isinstance(reply, SvcConnectionError):
            raise reply.with_traceback(None)
        return reply

    def resolve(self, reply: Reply | SvcConnectionError) -> None:
        """Hand the reply to the waiting caller, or give back what it granted if none waits."""
        self.account.note_reply(self, reply)
        try:
            self.set_result(reply)
        except InvalidStateError:
            self.account.give_back(self, reply)


# -- one connection --------------------------------------------------------------------------------


class RedisLink:
    """The connection of this process to one Redis; ValueError for a URL that is not Redis'."""

    def __init__(self, url: str) -> None:
        self.place: str = place_of(url)
        self._url = url
        self._requests: SimpleQueue[RedisRequest[Any]] = SimpleQueue()
        self._rests_until = 0.0
        self._reason = ""
        self._used_at = 0.0
        self._pid = 0
        self._lock = new_lock()
        # This checks the URL; the connection opens with its first use.
        self._connection = self._new_connection()

    def _new_connection(self) -> Any:
        timeouts = {"socket_timeout": _TIMEOUT, "socket_connect_timeout": _TIMEOUT}
        no_retry = Retry(NoBackoff(), 0)
        try:
            pool = ConnectionPool.from_url(self._url, **timeouts, retry=no_retry)
            return pool.make_connection()
        except (ValueError, TypeError, RedisError):
            # The text of such an error may repeat the password: it may not be in ours.
            raise ValueError(_URL) from None

    def command(self, source: str, keys: list[str], fixed: str) -> bytes:
        """The bytes that run a script, without its last argument."""
        digest = sha1(source.encode(), usedforsecurity=False).hexdigest()
        parts = ("EVALSHA", digest, len(keys), *keys, fixed, "")
        packed: bytes = b"".join(self._connection.pack_command(*parts))
        return packed.removesuffix(b"$0\r\n\r\n")

    def put(self, request: RedisRequest[Any]) -> None:
        """Let the thread send a request; SvcConnectionError while Redis rests after a failure."""
        if time.monotonic() < self._rests_until:
            raise self.failure(request.account)
        if self._pid != os.getpid():
            with self._lock:
                if self._pid != os.getpid():
                    self._start()
        self._requests.put(request)

    def _start(self) -> None:
        """Begin in this process: a forked child has a copy of the connection, and no thread."""
        self._requests = SimpleQueue()
        self._connection = self._new_connection()
        threading.Thread(target=self._serve, name="svc quota", daemon=True).start()
        self._pid = os.getpid()

    def failure(self, account: Account[Any]) -> SvcConnectionError:
        """The error of a call that Redis did not let through."""
        what = account.what
        reason = self._reason or "not in time"
        error = SvcConnectionError(
            f"The {what}'s storage {self.place} did not answer ({reason}); this request was not "
            f"sent. Start it or correct its address. A {what} that came out of a pickle has no "
            f"password: make it here. {account.advice}".rstrip()
        )
        rest = self._rests_until - time.monotonic()
        if rest > 0:  # until then no request goes out
            error.retry_after = rest
        return error

    def _serve(self) -> None:
        queue = self._requests
        while True:
            requests = [queue.get()]
            with suppress(Empty):
                while len(requests) < _MOST_AT_ONCE:
                    requests.append(queue.get_nowait())
            responses = self._exchange(requests)
            for request, response in zip(requests, responses, strict=True):
                request.resolve(self._parse(request, response))

    def _exchange(self, requests: list[RedisRequest[Any]]) -> list[bytes | Exception]:
        """The response to each request, or the error that came instead."""
        responses: list[bytes | Exception] = []
        connection = self._connection
        try:
            packed = [request.account.pack(request) for request in requests]
            now = time.monotonic()
            if now - self._used_at > 1 and connection.can_read():
                connection.disconnect()  # closed by Redis, or out of step with it
            self._used_at = now
            connection.send_packed_command([b"".join(packed)])
            # One at a time: after a failure the responses before it still count.
            responses.extend(self._read_response() for _ in requests)
            for index, request in enumerate(requests):
                if isinstance(responses[index], NoScriptError):
                    connection.send_command("SCRIPT", "LOAD", request.account.source)
                    connection.read_response()
                    connection.send_packed_command([packed[index]])
                    responses[index] = self._read_response()
        except Exception as error:  # noqa: BLE001  # anything may listen in the place of Redis
            responses += [error] * (len(requests) - len(responses))
        return responses

    def _read_response(self) -> bytes | Exception:
        try:
            response: bytes = self._connection.read_response()
        except ResponseError as error:
            return error
        return response

    def _parse(
        self, request: RedisRequest[Reply], response: bytes | Exception
    ) -> Reply | SvcConnectionError:
        error = response
        if not isinstance(response, Exception):
            try:
                return request.account.parse_reply(response)
            except NO_REPLY as unreadable:
                error = unreadable
        # Only the name of the error: its text may be a stranger's, or hold the password.
        self._reason = type(error).__name__
        self._rests_until = time.monotonic() + REST
        with suppress(Exception):
            self._connection.disconnect()
        return self.failure(request.account)


def place_of(url: str) -> str:
    """The address of a Redis without names and passwords; ValueError where that is not clear.

    Errors, reprs and pickles show the address. So this may not happen: that a part of a password
    counts as a part of the address, or that an error repeats a URL which may hold a password.
    """
    if not isinstance(url, str):
        raise ValueError(f"{_URL}, not {safe_repr(url)}")  # noqa: TRY004  # as all wrong arguments
    scheme, _, rest = url.partition("://")
    is_socket = scheme == "unix" and rest.startswith("/")
    credentials = ""
    if not is_socket:
        credentials, _, _ = rest.rpartition("@")
    # urlsplit ends the host at the first / ? or #. If that stands in a password, the rest of the
    # password would count as the path, which the address shows.
    if "#" in url or "/" in credentials or "?" in credentials:
        raise ValueError(_URL)
    if scheme in _SCHEMES:
        try:
            parts = urlsplit(url)
        except ValueError:  # its text may repeat the password
            raise ValueError(_URL) from None
        if parts.hostname or is_socket:
            # A name or a password stands before the last @.
            _, _, host = parts.netloc.rpartition("@")
            return f"{scheme}://{host}{parts.path}"
    # A value without :// is no URL, so it may be shown.
    value = "a URL of another form"
    if not rest:
        value = safe_repr(url)
    raise ValueError(f"{_URL}, not {value}")


link_to = cache(RedisLink)


def read_script(name: str) -> str:
    """The text of a script that lies beside this module."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


_STARTED = uuid4().hex


def _process_name() -> str:
    """The name of this process; a forked child has another."""
    return f"{_STARTED}-{os.getpid()}"


def _keys_of(prefix: str, name: str, keys: Iterable[str]) -> list[str]:
    """The keys of an account, and last the one that says since when this Redis keeps any."""
    return [*(f"{prefix}:{{{name}}}:{key}" for key in keys), f"{prefix}:began"]


def _pack_command(command: bytes, body: dict[str, Any]) -> bytes:
    """The bytes of a script's call, with its last argument."""
    text = json.dumps(body).encode()
    return b"%b$%d\r\n%b\r\n" % (command, len(text), text)


def _as_numbers(*values: object) -> tuple[float, ...]:
    """The values, if all are numbers that an account may hold; else ValueError."""
    numbers: list[float] = []
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError("not a number")  # noqa: TRY004  # one of `NO_REPLY`, as the next
        if not abs(value) < _LARGEST:  # a NaN is not, either
            raise ValueError("not a number")
        numbers.append(value)
    return tuple(numbers)


# -- the account of a quota ------------------------------------------------------------------------
# Its rules are in `quota.lua`.

_FOREVER = 1e9  # JSON has no infinity
# A share of a limit: other processes hear at once of an estimate that was wrong by more.
_LARGE_ERROR = 0.02
# The number is the format of the values: packages with other values use other keys.
_QUOTA_PREFIX = "svc-quota:4"
_QUOTA_KEYS = ("state", "queue", "seen", "tokens", "processes", "turns0", "turns1")
_LONGEST_QUEUE = 10**6
_MOST_NEWS = 1_000  # ends of calls that are kept while Redis is away
_TOKENS = 3  # the place of the tokens in a request's `call`


class QuotaReply(NamedTuple):
    """The script's reply, checked: anything may listen in the place of Redis."""

    now: float
    born: str  # when the state in Redis began
    processes: int
    used: list[float]  # of each limit
    turn: float  # the call's place in the queue
    wait: Wait | None
    state: Ledger | None  # where the request wanted it


def _parse_wait(values: list[object] | None) -> Wait | None:
    """How long a call shall wait, within bounds whatever the reply says."""
    if not values:
        return None
    turn, again, period = _as_numbers(*values)
    return Wait(max(0.001, turn), min(max(0.005, again), 60.0), period)


def _ledger_of(state: dict[str, Any], now: float) -> Ledger:
    """A ledger in memory with the state of the account in Redis."""
    ledger = Ledger((), clock=lambda: now)
    ledger.windows.clear()
    for unit, limit, seconds, buckets in state["windows"]:
        window = _window_of(str(unit), limit, seconds)
        ledger.windows[window.unit, seconds] = window
        for bucket, amount in buckets:
            bucket_number, bucket_amount = _as_numbers(bucket, amount)
            window.add(math.floor(bucket_number), bucket_amount)
    hold, bulk_at, interactive, bulk, tokens = _as_numbers(
        *(state[name] for name in ("hold", "bulk_at", "interactive", "bulk", "queued"))
    )
    ledger.hold_until = hold
    ledger.bulk_at = bulk_at
    calls = interactive + bulk
    if calls > _LONGEST_QUEUE:
        raise ValueError("no queue is so long")
    average = round(tokens / max(1, interactive, bulk, calls))
    for priority, queued in ((INTERACTIVE, interactive), (BULK, bulk)):
        ticket = Ticket(tokens=average, priority=priority)
        ledger.waiting += [ticket] * round(queued)
    return ledger


def _window_of(unit: str, limit: object, seconds: object) -> Window:
    amount, period = _as_numbers(limit, seconds)
    if amount <= 0:  # the script has no other sign for no limit
        amount = math.inf
    return Window(Limit(unit, max(1.0, amount), max(1.0, period)))


class RedisAccount(Ledger):
    """An account in Redis, with this process's own counts beside it.

    With `goes_on`, calls have a share of the plan while Redis does not answer.
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
        self.source: str = source or read_script("quota.lua")
        self._goes_on = goes_on
        self._tokens_limit = min(
            (limit.amount for limit in limits if limit.unit == "tokens"), default=0
        )
        keys = _keys_of(_QUOTA_PREFIX, name, _QUOTA_KEYS)
        self._command = link.command(self.source, keys, json.dumps(limits))
        self._news = _no_news()
        # The processes that shared the account at the last reply; 0 before the first one.
        self._processes = 0
        self._use_to_share: list[float] | None = None  # of each limit, at that time
        self._born = ""  # when the state in Redis began
        # How far Redis' clock is ahead of ours.
        self._ahead = time.time() - time.monotonic()
        self._process = _process_name()

    # -- letting calls through ------------------------------------------------------------------

    def acquire(self, ticket: Ticket) -> Wait | None:
        """Let the call through, or say how long to wait; it stands in the queue then."""
        try:
            reply = self._request(ticket).reply_within(ticket.patience)
        except SvcConnectionError as error:
            return self._acquire_share(ticket, error)
        return self._apply(reply, ticket)

    async def aacquire(self, ticket: Ticket) -> Wait | None:
        """The async version of `acquire`."""
        try:
            reply = await self._request(ticket).areply_within(ticket.patience)
        except SvcConnectionError as error:
            return self._acquire_share(ticket, error)
        return self._apply(reply, ticket)

    def _request(self, ticket: Ticket) -> RedisRequest[QuotaReply]:
        party = ticket.party or _process_name()
        seconds = min(ticket.patience, _FOREVER)
        call = (
            self._name_of(ticket),
            ticket.priority,
            party,
            ticket.tokens,
            ticket.turn,
            seconds,
        )
        return RedisRequest(self, call=call)

    def _name_of(self, ticket: Ticket) -> str:
        return f"{_process_name()}-{ticket.serial}"

    def _apply(self, reply: QuotaReply, ticket: Ticket) -> Wait | None:
        ticket.turn = reply.turn
        if reply.wait is None:
            ticket.stored_at = reply.now
            with self._lock:
                self._leave(ticket)
                self._count(ticket, self._roll_windows())
        return reply.wait

    def _acquire_share(self, ticket: Ticket, error: SvcConnectionError) -> Wait | None:
        """The same within this process's share of the plan, while Redis is away."""
        if not self._goes_on:
            raise error
        with self._lock:
            self._note_fork()
            self._take_share()
        if not ticket.waits:
            ticket.turn = 0.0  # of Redis' queue
        wait = super().acquire(ticket)
        if ticket.counted_at is not None:
            ticket.stored_at = ticket.counted_at + self._ahead
            with self._lock:
                for window in self.windows.values():
                    amount = 1
                    if window.unit == "tokens":
                        amount = ticket.tokens
                    self._news["counted"].append(
                        (window.unit, window.seconds, ticket.stored_at, amount)
                    )
        return wait

    def _take_share(self) -> None:
        """Bound this process to its share of the plan, once for each failure of Redis."""
        if not self._processes:
            # Redis never replied, so the number of processes is unknown: a roll-out may have
            # started hundreds while Redis was away. Together they may not send more than the plan,
            # so each sends one request in a window. Still more processes could keep the plan only
            # by sending nothing.
            requests = [
                limit.amount for limit in self._limits if limit.unit == "requests"
            ]
            shares = min(requests, default=math.inf)
            self._keep_to_share(shares, [0.0] * len(self._limits))
        elif self._use_to_share is not None:
            self._keep_to_share(self._processes, self._use_to_share)
            self._use_to_share = None

    def _keep_to_share(self, shares: float, used: list[float]) -> None:
        """Keep to one of so many equal shares of the plan, and of the use of each limit."""
        now = self._roll_windows()
        for limit, total in zip(self._limits, used, strict=True):
            window = self.windows[limit.unit, limit.seconds]
            window.planned = max(1.0, limit.amount / shares)
            window.limit = window.planned
            used_by_others = math.ceil(total / shares - window.used)
            window.add(window.bucket_at(now), max(0, used_by_others))

    def _note_fork(self) -> None:
        """Begin as a new process after a fork. The parent reports what was before it."""
        if self._process == _process_name():
            return
        self._process = _process_name()
        self._news = _no_news()
        self._processes = 0
        self._use_to_share = None
        self._born = ""

    # -- what the thread of the link calls --------------------------------------------------------

    def parse_reply(self, data: bytes) -> QuotaReply:
        """The checked reply; raises one of `NO_REPLY` for anything else."""
        body = json.loads(data)
        now, processes, turn, *used = _as_numbers(
            body["now"], body["processes"], body["turn"], *body["used"]
        )
        wait = _parse_wait(body["wait"])
        born = body["born"]
        if not isinstance(born, str) or len(used) != len(self._limits):
            raise ValueError("an answer of another form")
        state = None
        if "state" in body:
            state = _ledger_of(body["state"], now)
        processes = max(1, round(processes))
        return QuotaReply(now, born, processes, used, turn, wait, state)

    def pack(self, request: RedisRequest[QuotaReply]) -> bytes:
        """The bytes of a request, with the news of this process."""
        body = request.body
        with self._lock:
            self._note_fork()
            news = self._news
            self._news = _no_news()
            body["process"] = self._process
            body["born"] = self._born
            body["processes"] = self._processes
        body |= {name: items for name, items in news.items() if items}
        return _pack_command(self._command, body)

    def note_reply(
        self, request: RedisRequest[QuotaReply], reply: QuotaReply | SvcConnectionError
    ) -> None:
        """Remember the reply, and report again what did not reach Redis or is lost there."""
        body = request.body
        with self._lock:
            if isinstance(reply, SvcConnectionError):
                self._restore_news(body)
                return
            born_before = body.get("born")
            is_lost = bool(born_before) and reply.born not in {born_before, self._born}
            if is_lost:
                self._report_all_counts()
            self._processes = reply.processes
            self._use_to_share = reply.used
            self._ahead = reply.now - time.monotonic()
            self._born = reply.born

    def _report_all_counts(self) -> None:
        """Report all that this process counted: Redis has lost the account."""
        self._news["recovered"] = [True]
        counted: list[tuple[str, float, float, float]] = []
        for window in self.windows.values():
            for bucket, amount in window.buckets.items():
                ends_at = (bucket + 1) * window.width + self._ahead
                counted.append((window.unit, window.seconds, ends_at, amount))
        self._news["counted"] = counted

    def _restore_news(self, body: dict[str, Any]) -> None:
        """Report again the news of a request that failed."""
        for name, items in self._news.items():
            unsent = body.get(name, [])
            if name != "counted":
                # The rest of such news is older than a window, and means nothing any more.
                unsent = unsent[-_MOST_NEWS:]
            items[:0] = unsent

    def give_back(
        self, request: RedisRequest[QuotaReply], reply: QuotaReply | SvcConnectionError
    ) -> None:
        """Report as unsent a call that was let through after it had stopped waiting."""
        call = request.body.get("call")
        if call and isinstance(reply, QuotaReply) and reply.wait is None:
            with self._lock:
                unsent = (reply.now, call[_TOKENS], Outcome(sent=False, tokens=0))
                self._news["settle"].append(unsent)

    # -- ends of calls --------------------------------------------------------------------------

    def settle(self, ticket: Ticket, outcome: Outcome) -> None:
        """Count what a call really took, and report it to Redis."""
        super().settle(ticket, outcome)
        if ticket.stored_at is None:
            return
        with self._lock:
            self._news["settle"].append((ticket.stored_at, ticket.tokens, outcome))
        ticket.stored_at = None
        if self._is_urgent(ticket, outcome):
            with suppress(SvcConnectionError):  # the next request reports it
                self.link.put(RedisRequest(self))

    def _is_urgent(self, ticket: Ticket, outcome: Outcome) -> bool:
        """Whether other processes would wait for nothing, or send too much, without the news."""
        if outcome.status == TOO_MANY_REQUESTS:
            return True
        if outcome.tokens is None or self._tokens_limit <= 0:
            return False
        error = abs(outcome.tokens - ticket.tokens)
        return error > _LARGE_ERROR * self._tokens_limit

    def leave(self, ticket: Ticket) -> None:
        """The call does not wait any more."""
        super().leave(ticket)
        if ticket.stored_at is None:
            with self._lock:
                self._news["leave"].append(self._name_of(ticket))

    # -- looking --------------------------------------------------------------------------------

    def _copy(self) -> Ledger:
        """A ledger in memory with the state of this account."""
        # If Redis had lost the account, the second request restores it.
        for _ in range(2):
            request = RedisRequest(self, look=True)
            reply = request.reply_within(math.inf)
            if request.body["born"] in {"", reply.born} and reply.state is not None:
                return reply.state
        raise self.link.failure(self)

    def eta(self, requests: int, tokens: int, priority: int = INTERACTIVE) -> float:
        """Seconds until so much more is let through, behind the calls that wait before it."""
        return self._copy().eta(requests, tokens, priority)

    def look(self) -> LedgerUse:
        """The state now, for a snapshot."""
        return self._copy().look()


def _no_news() -> dict[str, list[Any]]:
    """The news that a process has for Redis: nothing yet."""
    return {"settle": [], "leave": [], "counted": [], "recovered": []}


# -- the account of a budget -----------------------------------------------------------------------
# Its rules are in `budget.lua`.

_BUDGET_PREFIX = "svc-budget:2"  # as for a quota
_BUDGET_KEYS = ("state", "reservations", "processes", "times")
_serials = count(1)
_NO_PERIOD = -1  # before Redis has named one
_MOST_ACCOUNTS = 10_000  # that a process keeps
_REPORT_SECONDS = 2.0  # that a process may take at its end to report its last calls


class BudgetReply(NamedTuple):
    """The script's reply, checked: anything may listen in the place of Redis."""

    born: str  # when the state in Redis began
    period: int
    lost: bool  # Redis has lost what this process reported
    granted: bool
    wait: float  # seconds until that can be decided
    used: Amounts
    reserved: Amounts
    calls: int


class RedisBudget:
    """An account in Redis, with the use through this object beside it.

    The budgets of a process that name one account share this object; see `account_in`. A second
    object of the same account would count as another process does.
    """

    local = False
    what = "budget"
    advice = ""

    def __init__(self, link: RedisLink, *, name: str, period: str | None) -> None:
        self.link = link
        self.source: str = read_script("budget.lua")
        self.estimates: Estimates = Estimates()
        keys = _keys_of(_BUDGET_PREFIX, name, _BUDGET_KEYS)
        self._command = link.command(self.source, keys, json.dumps([period]))
        self._lock = new_lock()
        self._process = _process_name()
        self._serial = next(_serials)
        self._born = ""  # when the state in Redis began
        # The use of the period: by all processes, as Redis reported it last; through this object
        # in this process; and the part of the latter that Redis has acknowledged.
        self._period = _NO_PERIOD
        self._sum = NOTHING
        self._used = NOTHING
        self._acknowledged = NOTHING
        self._reservations: dict[str, Reservation] = {}  # of this process
        self._released: list[str] = []  # reservations that Redis still has
        # Whether Redis has lost the account, so that the next request reports all.
        self._recovers = False
        _OPEN.add(self)

    # -- reserving ------------------------------------------------------------------------------

    def reserve(self, most: Amounts, bounds: Bounds, seconds: float) -> Standing:
        """Take a share, if no bound is passed; SvcConnectionError where Redis does not answer."""
        request = self._request(most, bounds)
        reply = request.reply_within(seconds)
        if reply.lost:  # the next request reports what Redis has lost
            request = self._request(most, bounds)
            reply = request.reply_within(seconds)
        return self._standing(reply, request)

    async def areserve(self, most: Amounts, bounds: Bounds, seconds: float) -> Standing:
        """The async version of `reserve`."""
        request = self._request(most, bounds)
        reply = await request.areply_within(seconds)
        if reply.lost:
            request = self._request(most, bounds)
            reply = await request.areply_within(seconds)
        return self._standing(reply, request)

    def _request(self, most: Amounts, bounds: Bounds) -> RedisRequest[BudgetReply]:
        identity = f"{_process_name()}-{next(_serials)}"
        call = {"id": identity, "most": most, "bounds": bounds}
        return RedisRequest(self, call=call)

    def _standing(
        self, reply: BudgetReply, request: RedisRequest[BudgetReply]
    ) -> Standing:
        wait = None
        if reply.wait or reply.lost:
            turn = max(0.005, reply.wait)
            again = min(0.2, turn)
            wait = Wait(turn, again, MINUTE)
        reservation = None
        if reply.granted:
            with self._lock:
                reservation = self._reservations.get(request.body["call"]["id"])
        return Standing(reply.used, reply.reserved, reply.calls, reservation, wait)

    # -- ends of calls --------------------------------------------------------------------------

    def settle(self, reservation: Reservation, used: Amounts | None) -> None:
        """Count what the call used; None gives its share back. Redis hears of it at once."""
        with self._lock:
            self._note_fork()
            if self._reservations.pop(reservation.identity, None) is None:
                return  # a forked child inherited it: the parent settles it
            self._released.append(reservation.identity)
            if reservation.period == self._period:
                self._used = add(self._used, used or NOTHING)
        with suppress(SvcConnectionError):  # the next request reports it
            self.link.put(RedisRequest(self))

    def look(self) -> Standing:
        """The state of the account now; SvcConnectionError where Redis does not answer."""
        # One reply may say that Redis has lost the account, and one that a period began.
        for _ in range(3):
            request = RedisRequest(self)
            reply = request.reply_within(math.inf)
            is_complete = request.body["period"] in {_NO_PERIOD, reply.period}
            if is_complete and not reply.lost:
                return Standing(reply.used, reply.reserved, reply.calls)
        raise self.link.failure(self)

    def has_news(self) -> bool:
        """Whether Redis has not yet acknowledged the use by calls of this process."""
        with self._lock:
            if self._process != _process_name():
                return False
            return bool(self._released) or self._used != self._acknowledged

    # -- what the thread of the link calls --------------------------------------------------------

    def parse_reply(self, data: bytes) -> BudgetReply:
        """The checked reply; raises one of `NO_REPLY` for anything else."""
        body = json.loads(data)
        born = body["born"]
        lost = body["lost"]
        granted = body["granted"]
        are_flags = isinstance(lost, bool) and isinstance(granted, bool)
        if not (isinstance(born, str) and are_flags):
            raise ValueError("an answer of another form")
        period, wait, calls = _as_numbers(body["period"], body["wait"], body["calls"])
        used = _amounts(body["used"])
        reserved = _amounts(body["reserved"])
        return BudgetReply(
            born, int(period), lost, granted, wait, used, reserved, int(calls)
        )

    def pack(self, request: RedisRequest[BudgetReply]) -> bytes:
        """The bytes of a request, with all that this process used."""
        body = request.body
        with self._lock:
            self._note_fork()
            body["process"] = f"{self._process}-{self._serial}"
            body["born"] = self._born
            body["period"] = self._period
            body["used"] = self._used
            body["told"] = self._acknowledged
            body["release"] = self._released
            self._released = []
            if self._recovers:
                body["recovery"] = {
                    "sum": self._sum,
                    "told": self._acknowledged,
                    "reserved": self._amounts_reserved(),
                }
        return _pack_command(self._command, body)

    def _amounts_reserved(self) -> dict[str, Amounts]:
        """The open reservations of this process in this period."""
        amounts: dict[str, Amounts] = {}
        for identity, reservation in self._reservations.items():
            if reservation.period == self._period:
                amounts[identity] = reservation.most
        return amounts

    def note_reply(
        self,
        request: RedisRequest[BudgetReply],
        reply: BudgetReply | SvcConnectionError,
    ) -> None:
        """Remember the reply, and report again what did not reach Redis or is lost there."""
        body = request.body
        with self._lock:
            if body.get("process") != f"{self._process}-{self._serial}":
                return  # the parent sent it, before this process was forked
            if isinstance(reply, SvcConnectionError):
                self._released[:0] = body.get("release", [])
                if "call" in body:  # Redis may have granted it, and no call will use it
                    self._released.append(body["call"]["id"])
                return
            if reply.lost:
                self._recovers = self._recovers or self._born != reply.born
                self._born = reply.born
                return
            self._born = reply.born
            if "recovery" in body:
                self._recovers = False
            if reply.period != self._period:
                self._period = reply.period
                self._used = NOTHING
                self._acknowledged = NOTHING
            elif body["period"] == reply.period:
                self._acknowledged = body["used"]
            self._sum = reply.used
            if reply.granted and "call" in body:
                call = body["call"]
                reservation = Reservation(call["most"], reply.period, call["id"])
                self._reservations[call["id"]] = reservation

    def give_back(
        self,
        request: RedisRequest[BudgetReply],
        reply: BudgetReply | SvcConnectionError,
    ) -> None:
        """Give back a share that was granted after its call had stopped waiting."""
        call = request.body.get("call")
        if call is None or not isinstance(reply, BudgetReply):
            return
        with self._lock:
            reservation = self._reservations.get(call["id"])
        if reservation is not None:
            self.settle(reservation, None)

    def _note_fork(self) -> None:
        """Begin as a new process after a fork. The parent reports the use before it."""
        if self._process == _process_name():
            return
        self._process = _process_name()
        self._used = NOTHING
        self._acknowledged = NOTHING
        self._reservations = {}
        self._released = []
        self._recovers = False


_OPEN: WeakSet[RedisBudget] = WeakSet()


@lru_cache(maxsize=_MOST_ACCOUNTS)
def account_in(link: RedisLink, name: str, period: str | None) -> RedisBudget:
    """The account of this name, which outlives a budget that is made for one web request.

    So this process can report the use of earlier calls again if Redis loses its state.
    """
    return RedisBudget(link, name=name, period=period)


@atexit.register
def _report_last_calls() -> None:
    """Report the use by the last calls of this process.

    The link reports in the background, by a daemon thread, which ends with the process.
    """
    for account in [*_OPEN]:
        if account.has_news():
            with suppress(SvcConnectionError):
                RedisRequest(account).reply_within(_REPORT_SECONDS)


def _amounts(values: list[str]) -> Amounts:
    requests, tokens, cost = _as_numbers(*map(float, values))
    return round(requests), round(tokens), round(cost)
