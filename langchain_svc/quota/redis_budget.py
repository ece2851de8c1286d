"""The account of a budget that processes and machines share through Redis; see `budget.lua`."""

from __future__ import annotations

import atexit
import json
import math
from contextlib import suppress
from functools import lru_cache
from itertools import count
from typing import Any, NamedTuple
from weakref import WeakSet

from .._base.threads import new_lock
from .._service import Wait
from ..errors import SvcConnectionError
from .budget_accounts import NOTHING, Amounts, Bounds, Reservation, Standing, add
from .estimates import Estimates
from .plans import MINUTE
from .redis_store import Question, RedisLink, numbers, packed_with, process_name, script

_KEYS = ("state", "reservations", "processes", "times")
_FORMAT = 1  # of what the keys hold: packages that keep something else use other keys
_serials = count(1)
_UNNAMED = -1  # the period before Redis has named one
_ACCOUNTS = 10_000  # that a process keeps
_LAST_WORDS = 2.0  # seconds in which a process that ends tells what its last calls used


class BudgetReply(NamedTuple):
    """What the script answers, checked: anything may listen where Redis should."""

    born: str  # when the state in Redis began
    period: int
    lost: bool  # Redis does not know this process any more
    granted: bool
    wait: float  # seconds until that can be decided
    used: Amounts
    reserved: Amounts
    calls: int


class RedisBudget:
    """An account in Redis, with what was used through this object beside it.

    The objects of a process that name one account share this one; see `account_in`. Where there is
    a second one, it counts as another process does.
    """

    local = False
    what = "budget"
    advice = ""

    def __init__(self, link: RedisLink, *, name: str, period: str | None) -> None:
        self.link = link
        self.source = script("budget.lua")
        self.estimates = (
            Estimates()
        )  # which outlive a budget that is made for one request
        keys = [f"svc-budget:{_FORMAT}:{{{name}}}:{key}" for key in _KEYS]
        keys.append(f"svc-budget:{_FORMAT}:began")
        self._command = link.command(self.source, keys, json.dumps([period]))
        self._lock = new_lock()
        self._process = process_name()
        self._serial = next(_serials)
        self._born = ""  # when the state in Redis began
        self._period = _UNNAMED  # of what is counted below
        self._sum = NOTHING  # used by all, as Redis said last
        self._used = NOTHING  # through this object, in this process
        self._told = NOTHING  # the part of it that Redis has acknowledged
        self._reservations: dict[str, Reservation] = {}  # of this process
        self._released: list[str] = []  # what Redis has to be told
        self._recovers = False  # Redis has lost the account, and has to be told all
        _OPEN.add(self)

    # -- asking ---------------------------------------------------------------------------------

    def reserve(self, most: Amounts, bounds: Bounds, seconds: float) -> Standing:
        """Take a share, if no bound is passed; SvcConnectionError where Redis does not answer."""
        question = self._about(most, bounds)
        reply: BudgetReply = question.within(seconds)
        if reply.lost:  # that it has lost is known now, and told with the next question
            question = self._about(most, bounds)
            reply = question.within(seconds)
        return self._standing(reply, question)

    async def areserve(self, most: Amounts, bounds: Bounds, seconds: float) -> Standing:
        """The async version of `reserve`."""
        question = self._about(most, bounds)
        reply: BudgetReply = await question.awithin(seconds)
        if reply.lost:
            question = self._about(most, bounds)
            reply = await question.awithin(seconds)
        return self._standing(reply, question)

    def _about(self, most: Amounts, bounds: Bounds) -> Question:
        identity = f"{process_name()}-{next(_serials)}"
        return Question(self, call={"id": identity, "most": most, "bounds": bounds})

    def _standing(self, reply: BudgetReply, question: Question) -> Standing:
        wait = None
        if reply.wait or reply.lost:
            wait = Wait(
                max(0.005, reply.wait), max(0.005, min(0.2, reply.wait)), MINUTE
            )
        reservation = None
        if reply.granted:
            with self._lock:
                reservation = self._reservations.get(question.body["call"]["id"])
        return Standing(reply.used, reply.reserved, reply.calls, reservation, wait)

    # -- what became of it ----------------------------------------------------------------------

    def settle(self, reservation: Reservation, used: Amounts | None) -> None:
        """Count what the call used; None gives its share back. The others hear of it at once."""
        with self._lock:
            self._note_fork()
            if self._reservations.pop(reservation.identity, None) is None:
                return  # a forked child has it of its parent, which settles it
            self._released.append(reservation.identity)
            if reservation.period == self._period:
                self._used = add(self._used, used or NOTHING)
        with suppress(SvcConnectionError):  # the next question tells it
            self.link.put(Question(self))

    def look(self) -> Standing:
        """Where the account stands; SvcConnectionError where Redis does not answer."""
        for _ in range(
            3
        ):  # one may say that Redis has lost the account, one that a period began
            question = Question(self)
            reply: BudgetReply = question.within(math.inf)
            is_complete = question.body["period"] in {_UNNAMED, reply.period}
            if is_complete and not reply.lost:
                return Standing(reply.used, reply.reserved, reply.calls)
        raise self.link.failure(self)

    def has_news(self) -> bool:
        """Whether Redis has not yet heard what calls of this process used."""
        with self._lock:
            is_own = self._process == process_name()
            return is_own and bool(self._released or self._used != self._told)

    # -- what the thread of the link calls --------------------------------------------------------

    def read(self, answer: Any) -> BudgetReply:
        """The checked reply; raises ValueError or the like for anything else."""
        body = json.loads(answer)
        born, lost, granted = body["born"], body["lost"], body["granted"]
        is_reply = (
            isinstance(born, str)
            and isinstance(lost, bool)
            and isinstance(granted, bool)
        )
        if not is_reply:
            raise ValueError("an answer of another form")
        period, wait, calls = numbers(body["period"], body["wait"], body["calls"])
        used = _amounts(body["used"])
        reserved = _amounts(body["reserved"])
        return BudgetReply(
            born, int(period), lost, granted, wait, used, reserved, int(calls)
        )

    def packed(self, question: Question) -> bytes:
        """A question with all that this process used, as it is sent."""
        body = question.body
        with self._lock:
            self._note_fork()
            body |= {"process": f"{self._process}-{self._serial}"}
            body |= {"born": self._born, "period": self._period}
            body |= {"used": self._used, "told": self._told, "release": self._released}
            self._released = []
            if self._recovers:
                body["recovery"] = {
                    "sum": self._sum,
                    "told": self._told,
                    "reserved": {
                        identity: reservation.most
                        for identity, reservation in self._reservations.items()
                        if reservation.period == self._period
                    },
                }
        return packed_with(self._command, body)

    def heard(
        self, question: Question, reply: BudgetReply | SvcConnectionError
    ) -> None:
        """Remember what a reply says, and tell again what Redis did not hear or has lost."""
        body = question.body
        with self._lock:
            if body.get("process") != f"{self._process}-{self._serial}":
                return  # it is about what the parent did, before this process was forked
            if isinstance(reply, SvcConnectionError):
                self._released[:0] = body.get("release", [])
                if "call" in body:  # Redis may have granted it, and nobody will use it
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
                self._told = NOTHING
            elif body["period"] == reply.period:
                self._told = body["used"]
            self._sum = reply.used
            if reply.granted and "call" in body:
                call = body["call"]
                reservation = Reservation(call["most"], reply.period, call["id"])
                self._reservations[call["id"]] = reservation

    def give_back(
        self, question: Question, reply: BudgetReply | SvcConnectionError
    ) -> None:
        """The share was granted when nobody waited for it any more."""
        call = question.body.get("call")
        if call is None or not isinstance(reply, BudgetReply):
            return
        with self._lock:
            reservation = self._reservations.get(call["id"])
        if reservation is not None:
            self.settle(reservation, None)

    def _note_fork(self) -> None:
        """A forked child is a new process. Its parent tells what was used before the fork."""
        if self._process == process_name():
            return
        self._process = process_name()
        self._used = NOTHING
        self._told = NOTHING
        self._reservations = {}
        self._released = []
        self._recovers = False


_OPEN: WeakSet[RedisBudget] = WeakSet()


@lru_cache(maxsize=_ACCOUNTS)
def account_in(link: RedisLink, name: str, period: str | None) -> RedisBudget:
    """The account of this name. It outlives a budget that is made for one request.

    So Redis is told again what earlier requests used, if it loses its state.
    """
    return RedisBudget(link, name=name, period=period)


@atexit.register
def _tell_the_rest() -> None:
    """Tell Redis what the last calls of this process used, which it is told in the background."""
    for account in [*_OPEN]:
        if account.has_news():
            with suppress(SvcConnectionError):
                Question(account).within(_LAST_WORDS)


def _amounts(values: list[str]) -> Amounts:
    requests, tokens, cost = numbers(*map(float, values))
    return round(requests), round(tokens), cost
