"""A quota's account that processes and machines share through Redis or Valkey; see `quota.lua`.

The scripts are ours. Of the libraries that were read, `limits` checks one limit at a time and
cannot give back what an estimate took too much; `pyrate-limiter` 4.5 has GCRA and state in
Redis, but neither a queue nor a way to give back.

The ends of calls travel with the next request of the process, so that a call costs one round trip.
They travel at once only where other processes would otherwise wait for nothing, or send too much.
"""

from __future__ import annotations

import json
import math
import time
from contextlib import suppress
from typing import Any, NamedTuple

from .._service import Wait
from ..errors import SvcConnectionError
from .ledger import (
    BULK,
    INTERACTIVE,
    TOO_MANY_REQUESTS,
    Ledger,
    LedgerUse,
    Limit,
    Outcome,
    Ticket,
    Window,
)
from .redis_link import (
    RedisLink,
    RedisRequest,
    as_numbers,
    pack_command,
    process_name,
    read_script,
)

_FOREVER = 1e9  # JSON has no infinity
# A share of a limit: other processes hear at once of an estimate that was wrong by more.
_LARGE_ERROR = 0.02
_KEYS = ("state", "queue", "seen", "tokens", "processes", "turns0", "turns1")
_FORMAT = 4  # of the keys' values: packages with other values use other keys
_LONGEST_QUEUE = 10**6
_MOST_NEWS = 1_000  # ends of calls that are kept while Redis is away
_TOKENS = 3  # the place of the tokens in a request's `call`


# -- replies --------------------------------------------------------------------------------------


class Reply(NamedTuple):
    """The script's reply, checked: anything may listen in the place of Redis."""

    now: float
    born: str  # when the state in Redis began
    processes: int
    used: list[float]  # of each limit
    turn: float  # the call's place in the queue
    wait: Wait | None
    state: Ledger | None  # where the request wanted it


def parse_reply(data: bytes, limits: int) -> Reply:
    """The reply about an account with so many limits; raises one of `NO_REPLY` for others."""
    body = json.loads(data)
    now, processes, turn, *used = as_numbers(
        body["now"], body["processes"], body["turn"], *body["used"]
    )
    wait = _parse_wait(body["wait"])
    born = body["born"]
    if not isinstance(born, str) or len(used) != limits:
        raise ValueError("an answer of another form")
    state = None
    if "state" in body:
        state = _ledger_of(body["state"], now)
    return Reply(now, born, max(1, round(processes)), used, turn, wait, state)


def _parse_wait(values: list[object] | None) -> Wait | None:
    """How long a call shall wait, within bounds whatever the reply says."""
    if not values:
        return None
    turn, again, period = as_numbers(*values)
    return Wait(max(0.001, turn), min(max(0.005, again), 60.0), period)


def _ledger_of(state: dict[str, Any], now: float) -> Ledger:
    """A ledger in memory with the state of the account in Redis."""
    ledger = Ledger((), clock=lambda: now)
    ledger.windows.clear()
    for unit, limit, seconds, buckets in state["windows"]:
        window = _window_of(str(unit), limit, seconds)
        ledger.windows[window.unit, seconds] = window
        for bucket, amount in buckets:
            bucket_number, bucket_amount = as_numbers(bucket, amount)
            window.add(math.floor(bucket_number), bucket_amount)
    hold, bulk_at, interactive, bulk, tokens = as_numbers(
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
    amount, period = as_numbers(limit, seconds)
    if amount <= 0:  # the script has no other sign for no limit
        amount = math.inf
    return Window(Limit(unit, max(1.0, amount), max(1.0, period)))


# -- accounts ------------------------------------------------------------------------------------


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
        keys = [f"svc-quota:{_FORMAT}:{{{name}}}:{key}" for key in _KEYS]
        keys.append(f"svc-quota:{_FORMAT}:began")
        self._command = link.command(self.source, keys, json.dumps(limits))
        self._news = _no_news()
        # The processes that shared the account at the last reply; 0 before the first one.
        self._processes = 0
        self._use_to_share: list[float] | None = None  # of each limit, at that time
        self._born = ""  # when the state in Redis began
        # How far Redis' clock is ahead of ours.
        self._ahead = time.time() - time.monotonic()
        self._process = process_name()

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

    def _request(self, ticket: Ticket) -> RedisRequest[Reply]:
        party = ticket.party or process_name()
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
        return f"{process_name()}-{ticket.serial}"

    def _apply(self, reply: Reply, ticket: Ticket) -> Wait | None:
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
        if self._process == process_name():
            return
        self._process = process_name()
        self._news = _no_news()
        self._processes = 0
        self._use_to_share = None
        self._born = ""

    # -- what the thread of the link calls --------------------------------------------------------

    def parse_reply(self, data: bytes) -> Reply:
        """The checked reply; raises one of `NO_REPLY` for anything else."""
        return parse_reply(data, len(self._limits))

    def pack(self, request: RedisRequest[Reply]) -> bytes:
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
        return pack_command(self._command, body)

    def note_reply(
        self, request: RedisRequest[Reply], reply: Reply | SvcConnectionError
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
        self, request: RedisRequest[Reply], reply: Reply | SvcConnectionError
    ) -> None:
        """Report as unsent a call that was let through after it had stopped waiting."""
        call = request.body.get("call")
        if call and isinstance(reply, Reply) and reply.wait is None:
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
