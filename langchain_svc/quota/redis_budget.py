"""The account of a budget that processes and machines share through Redis; see `budget.lua`."""

from __future__ import annotations

import atexit
import json
import math
from contextlib import suppress
from functools import lru_cache
from itertools import count
from typing import NamedTuple
from weakref import WeakSet

from .._base.threads import new_lock
from .._service import Wait
from ..errors import SvcConnectionError
from .budget_accounts import NOTHING, Amounts, Bounds, Reservation, Standing, add
from .estimates import Estimates
from .ledger import MINUTE
from .redis_link import (
    RedisLink,
    RedisRequest,
    as_numbers,
    pack_command,
    process_name,
    read_script,
)

_KEYS = ("state", "reservations", "processes", "times")
_FORMAT = 2  # of the keys' values: packages with other values use other keys
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
        keys = [f"svc-budget:{_FORMAT}:{{{name}}}:{key}" for key in _KEYS]
        keys.append(f"svc-budget:{_FORMAT}:began")
        self._command = link.command(self.source, keys, json.dumps([period]))
        self._lock = new_lock()
        self._process = process_name()
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
        identity = f"{process_name()}-{next(_serials)}"
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
            if self._process != process_name():
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
        period, wait, calls = as_numbers(body["period"], body["wait"], body["calls"])
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
        return pack_command(self._command, body)

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
        if self._process == process_name():
            return
        self._process = process_name()
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
    requests, tokens, cost = as_numbers(*map(float, values))
    return round(requests), round(tokens), round(cost)
